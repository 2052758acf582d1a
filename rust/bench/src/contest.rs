//! Taking turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::BenchError;
use super::background_load::BackgroundLoad;
use super::busy_threads::BusyThreads;
use super::cacheline;
use super::contestant::RunningJob;
use super::counters::Counted;
use super::outcome::{Compared, Sample};
use super::protocol::{Answer, Case, Order};
use super::report::Row;

/// Durations of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Before anything counts, for each entry: caches, branch predictors, compilers.
    pub warm_up: Duration,
    /// The same at least for ranks in Java, whose code is compiled meanwhile.
    pub compiled_after: Duration,
    /// One turn, about.
    pub turn: Duration,
    /// All turns of an entry together, about.
    pub time: Duration,
    /// Least number of turns, however long one takes.
    pub turns: usize,
    /// Whether progress is reported every few seconds.
    pub tells: bool,
    /// Busy threads beside the ranks.
    pub busy: u32,
}

impl Pace {
    /// For so much time per entry.
    pub fn of(time: Duration) -> Pace {
        Pace {
            warm_up: time,
            compiled_after: Duration::ZERO,
            turn: time.mul_f64(0.02).min(Duration::from_millis(10)),
            time,
            turns: 7,
            tells: false,
            busy: 0,
        }
    }

    /// Beside this number of busy threads. A turn has many time slices then, so that each has its mean.
    pub fn beside(self, busy: u32) -> Pace {
        let turn = if busy > 0 { self.time.mul_f64(0.2).min(LONG_TURN) } else { self.turn };
        Pace { turn, busy, ..self }
    }
}

/// Warm-up of a JVM with a processor of its own, until its hot code is compiled.
pub const COMPILED_AFTER: Duration = Duration::from_millis(1500);

/// Interval of progress reports.
const TELL_AFTER: Duration = Duration::from_secs(5);
/// A turn beside busy threads at most, about: the time slice of a thread is 3 to 4 ms.
const LONG_TURN: Duration = Duration::from_millis(100);
/// Turns of one entry at most.
const TURNS_MAX: usize = 200;
/// Times of one order at most.
const TIMES_MAX: u64 = 1 << 24;

/// Part of one contestant in a contest.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Index of its job.
    pub job: usize,
    /// Its case.
    pub case: Case,
    /// Octets of a message.
    pub octets: u64,
}

/// Set when somebody wants all this to end.
pub type Stop = AtomicBool;

/// Result of a contest.
#[derive(Debug)]
pub struct Turns {
    /// Those of each entry, in their order.
    pub samples: Vec<Vec<Sample>>,
    /// Processors that other processes used meanwhile.
    pub others: Option<f64>,
}

/// Has all entries take turns.
///
/// # Errors
/// A contestant fails, or it is to stop.
pub fn contest(
    jobs: &mut [RunningJob],
    entries: &[Entry],
    pace: Pace,
    stop: &Stop,
) -> Result<Turns, BenchError> {
    let _busy = BusyThreads::start(pace.busy);
    let times =
        entries.iter().map(|entry| warm_up(jobs, *entry, pace, stop)).collect::<Result<Vec<_>, _>>()?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); entries.len()];
    let deadline = Instant::now() + pace.time * entries.len() as u32;
    let load = BackgroundLoad::begin();
    let mut before = cacheline::one_way();
    let mut told = Instant::now();
    for turn in 0..TURNS_MAX {
        if turn >= pace.turns && Instant::now() > deadline {
            break;
        }
        if pace.tells && told.elapsed() > TELL_AFTER {
            told = Instant::now();
            eprintln!("mpjdev-bench: {turn} of {} turns at least are done", pace.turns);
        }
        for at in 0..entries.len() {
            // Everybody comes first at times.
            let at = (at + turn) % entries.len();
            let (answer, count) = follow(jobs, entries[at], times[at], stop)?;
            let after = cacheline::one_way();
            samples[at].push(Sample {
                nanos: answer.nanos / count,
                extra: answer.extra / count,
                counted: answer.counted.map(|numbers| Counted { messages: count as u64, numbers }),
                before,
                after,
            });
            before = after;
        }
    }
    Ok(Turns { samples, others: load.processors_of_others() })
}

/// One row for each case and size.
pub fn rows(entries: &[Entry], jobs: &[RunningJob], compared: &Compared) -> Vec<Row> {
    let mut kinds: Vec<(Case, u64)> = Vec::new();
    for entry in entries {
        if !kinds.contains(&(entry.case, entry.octets)) {
            kinds.push((entry.case, entry.octets));
        }
    }
    let row = |(case, octets): (Case, u64)| {
        let is_same = |at: &usize| (entries[*at].case, entries[*at].octets) == (case, octets);
        let places: Vec<usize> = (0..entries.len()).filter(is_same).collect();
        let names: Vec<String> = places.iter().map(|at| jobs[entries[*at].job].name().to_owned()).collect();
        let summaries = places.iter().map(|at| compared.summaries[*at]).collect();
        let ranks = jobs.first().map_or(0, RunningJob::size);
        Row::new(case, octets, ranks, &names, Compared { summaries, ..compared.clone() })
    };
    kinds.into_iter().map(row).collect()
}

/// Warms an entry up; gives the times that make a turn.
fn warm_up(jobs: &mut [RunningJob], entry: Entry, pace: Pace, stop: &Stop) -> Result<u64, BenchError> {
    let begin = Instant::now();
    let least = if jobs[entry.job].is_java() { pace.compiled_after } else { Duration::ZERO };
    let mut times = 1;
    loop {
        let (answer, _) = follow(jobs, entry, times, stop)?;
        times = adapted(times, answer.nanos, pace.turn);
        if begin.elapsed() >= pace.warm_up.max(least) {
            return Ok(times);
        }
    }
}

/// Repetitions that take as long as a turn, when `times` took `nanos` nanoseconds; at most eight times as
/// many.
fn adapted(times: u64, nanos: f64, turn: Duration) -> u64 {
    let fitting = turn.as_nanos() as f64 * times as f64 / nanos.max(1.0);
    (fitting as u64).clamp(1, times.saturating_mul(8)).min(TIMES_MAX)
}

/// Gives the answer and how many of what is counted it is for.
fn follow(
    jobs: &mut [RunningJob],
    entry: Entry,
    times: u64,
    stop: &Stop,
) -> Result<(Answer, f64), BenchError> {
    if stop.load(Ordering::Relaxed) {
        return Err(BenchError::Stopped);
    }
    let job = &mut jobs[entry.job];
    let answer = job.follow(Order { case: entry.case, octets: entry.octets, times })?;
    Ok((answer, (times * entry.case.per_time(entry.octets, job.size())) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_beside_busy_threads_are_longer() {
        let pace = Pace::of(Duration::from_millis(600));
        assert_eq!((pace.beside(0).turn, pace.beside(0).busy), (pace.turn, 0));
        assert_eq!((pace.beside(2).turn, pace.beside(2).busy), (LONG_TURN, 2));
        assert_eq!(Pace::of(Duration::ZERO).beside(1).turn, Duration::ZERO);
    }

    #[test]
    fn repetitions_grow_to_the_turn_in_bounded_steps() {
        let turn = Duration::from_millis(1);
        assert_eq!(adapted(10, 1e6, turn), 10);
        assert_eq!(adapted(10, 1e7, turn), 1);
        assert_eq!(adapted(10, 1e9, turn), 1);
        assert_eq!(adapted(10, 1.0, turn), 80);
        assert_eq!(adapted(TIMES_MAX, 0.0, turn), TIMES_MAX);
    }
}
