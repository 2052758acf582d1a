//! Load of other processes on the machine, which disturbs a measurement.

use std::fs;
use std::time::Instant;

use super::memory::descendants;

/// Ticks per second of the counters in proc(5): USER_HZ, which is 100 on all supported machines.
const TICKS: f64 = 100.0;
/// Indexes of idle and iowait in the first line of proc(5), stat: user, nice, system, idle, iowait, irq,
/// softirq, steal.
const IDLE: [usize; 2] = [3, 4];
const COUNTERS: usize = 8;

/// Measurement of the load since its beginning.
#[derive(Debug)]
pub struct BackgroundLoad {
    begin: Instant,
    before: Option<Ticks>,
}

/// Ticks since boot.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// Ticks in which processors were not idle.
    busy: u64,
    /// Ticks of this process and its descendants.
    own: u64,
}

impl BackgroundLoad {
    /// Begins a measurement.
    pub fn begin() -> BackgroundLoad {
        BackgroundLoad { begin: Instant::now(), before: Ticks::now() }
    }

    /// Processors that other processes have used since the beginning. `None` if the system does not report
    /// them, or if descendants of this process have ended, whose ticks are lost.
    pub fn processors_of_others(&self) -> Option<f64> {
        let (before, after) = (self.before?, Ticks::now()?);
        let own = after.own.checked_sub(before.own)?;
        let others = after.busy.saturating_sub(before.busy).saturating_sub(own);
        Some(others as f64 / TICKS / self.begin.elapsed().as_secs_f64())
    }
}

impl Ticks {
    fn now() -> Option<Ticks> {
        let busy = busy(&fs::read_to_string("/proc/stat").ok()?)?;
        let mut own = used(&fs::read_to_string("/proc/self/stat").ok()?)?;
        for process in descendants(std::process::id()).ok()? {
            own +=
                used(&fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default()).unwrap_or(0);
        }
        Some(Ticks { busy, own })
    }
}

/// Ticks in which processors were not idle.
fn busy(stat: &str) -> Option<u64> {
    let counters = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(COUNTERS);
    let counters: Vec<u64> = counters.map(|n| n.parse().ok()).collect::<Option<_>>()?;
    Some((0..counters.len()).filter(|at| !IDLE.contains(at)).map(|at| counters[at]).sum())
}

/// Ticks of a process in proc(5), stat: utime and stime. The name before them may contain spaces and
/// brackets.
fn used(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_parsed_from_proc() {
        assert_eq!(busy("cpu  10 20 30 1000 500 1 2 3 99 99\ncpu0 1 1 1 1\n"), Some(66));
        assert_eq!(used("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0"), Some(42));
        assert_eq!((busy(""), used("7 (a)")), (None, None));
    }

    #[test]
    fn load_of_other_processes_is_not_negative() {
        let others = BackgroundLoad::begin().processors_of_others();
        assert!(others.is_some_and(|processors| processors >= 0.0), "{others:?}");
    }
}
