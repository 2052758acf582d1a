//! Contest: the turns of all contestants.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::BenchError;
use super::background_load::BackgroundLoad;
use super::busy_threads::BusyThreads;
use super::cacheline;
use super::contestant::RunningJob;
use super::counters::Counted;
use super::outcome::{Compared, Sample};
use super::protocol::{Answer, Case, RunCommand};
use super::report::Row;

/// Durations of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Warm-up of each entry: caches, branch predictors, compilers.
    pub warm_up: Duration,
    /// Least warm-up of ranks in Java, whose code must be compiled.
    pub compiled_after: Duration,
    /// Approximate length of a turn.
    pub turn: Duration,
    /// Approximate sum of the turns of an entry.
    pub time: Duration,
    /// Least number of turns.
    pub turns: usize,
    /// Whether progress is reported every few seconds.
    pub reports_progress: bool,
    /// Busy threads beside the ranks.
    pub busy: u32,
}

impl Pace {
    /// The pace for this time per entry.
    pub fn of(time: Duration) -> Pace {
        Pace {
            warm_up: time,
            compiled_after: Duration::ZERO,
            turn: time.mul_f64(0.02).min(Duration::from_millis(10)),
            time,
            turns: 7,
            reports_progress: false,
            busy: 0,
        }
    }

    /// The pace beside this number of busy threads. A turn then has many time slices of the scheduler, so
    /// that its mean is meaningful.
    pub fn beside(self, busy: u32) -> Pace {
        let turn = if busy > 0 { self.time.mul_f64(0.2).min(LONG_TURN) } else { self.turn };
        Pace { turn, busy, ..self }
    }
}

/// Warm-up of a JVM with a processor of its own, until its hot code is compiled.
pub const COMPILED_AFTER: Duration = Duration::from_millis(1500);

/// Interval of progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Longest turn beside busy threads. The time slice of a thread is 3 to 4 ms.
const LONG_TURN: Duration = Duration::from_millis(100);
/// Limit of the turns of an entry.
const TURNS_MAX: usize = 200;
/// Limit of the repetitions of one command.
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

/// Flag that a signal sets to end the measurement.
pub type Stop = AtomicBool;

/// Result of a contest.
#[derive(Debug)]
pub struct ContestResult {
    /// Turns of each entry, in the order of the entries.
    pub samples: Vec<Vec<Sample>>,
    /// Processors that other processes used meanwhile.
    pub others: Option<f64>,
}

/// Runs the turns of all entries.
///
/// # Errors
/// A contestant fails, or `stop` is set.
pub fn contest(
    jobs: &mut [RunningJob],
    entries: &[Entry],
    pace: Pace,
    stop: &Stop,
) -> Result<ContestResult, BenchError> {
    let _busy = BusyThreads::start(pace.busy);
    let times =
        entries.iter().map(|entry| warm_up(jobs, *entry, pace, stop)).collect::<Result<Vec<_>, _>>()?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); entries.len()];
    let deadline = Instant::now() + pace.time * entries.len() as u32;
    let load = BackgroundLoad::begin();
    let mut before = cacheline::one_way();
    let mut reported_at = Instant::now();
    for turn in 0..TURNS_MAX {
        if turn >= pace.turns && Instant::now() > deadline {
            break;
        }
        if pace.reports_progress && reported_at.elapsed() > REPORT_INTERVAL {
            reported_at = Instant::now();
            eprintln!("mpjdev-bench: {turn} of {} turns at least are done", pace.turns);
        }
        for at in 0..entries.len() {
            // The first entry changes from turn to turn.
            let at = (at + turn) % entries.len();
            let (answer, count) = run_command(jobs, entries[at], times[at], stop)?;
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
    Ok(ContestResult { samples, others: load.processors_of_others() })
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
        let indexes: Vec<usize> = (0..entries.len()).filter(is_same).collect();
        let names: Vec<String> = indexes.iter().map(|at| jobs[entries[*at].job].name().to_owned()).collect();
        let summaries = indexes.iter().map(|at| compared.summaries[*at]).collect();
        let ranks = jobs.first().map_or(0, RunningJob::size);
        Row::new(case, octets, ranks, &names, Compared { summaries, ..compared.clone() })
    };
    kinds.into_iter().map(row).collect()
}

/// Warms an entry up. Returns the repetitions that fill a turn.
fn warm_up(jobs: &mut [RunningJob], entry: Entry, pace: Pace, stop: &Stop) -> Result<u64, BenchError> {
    let begin = Instant::now();
    let least = if jobs[entry.job].is_java() { pace.compiled_after } else { Duration::ZERO };
    let mut times = 1;
    loop {
        let (answer, _) = run_command(jobs, entry, times, stop)?;
        times = adapted(times, answer.nanos, pace.turn);
        if begin.elapsed() >= pace.warm_up.max(least) {
            return Ok(times);
        }
    }
}

/// Repetitions that fill a turn if `times` took `nanos` nanoseconds; at most eight times as many.
fn adapted(times: u64, nanos: f64, turn: Duration) -> u64 {
    let fitting = turn.as_nanos() as f64 * times as f64 / nanos.max(1.0);
    (fitting as u64).clamp(1, times.saturating_mul(8)).min(TIMES_MAX)
}

/// Runs one command. Returns the answer and the number of measured units: one-way trips, messages or hops.
fn run_command(
    jobs: &mut [RunningJob],
    entry: Entry,
    times: u64,
    stop: &Stop,
) -> Result<(Answer, f64), BenchError> {
    if stop.load(Ordering::Relaxed) {
        return Err(BenchError::Stopped);
    }
    let job = &mut jobs[entry.job];
    let answer = job.run(RunCommand { case: entry.case, octets: entry.octets, times })?;
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
