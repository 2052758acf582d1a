//! Samples of turns, the mode of the machine, and comparable medians.

use serde::{Deserialize, Serialize};

use super::counters::Counted;

/// Limit between both modes of a bare cache line, whose times are far apart: two hardware threads of a core
/// or neighbouring cores, and other cores or sockets. Virtual processors move between them.
const SLOW_NANOS: f64 = 100.0;
/// Least samples of a median.
const LEAST: usize = 3;

/// Distance of both processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The cache line takes less than 100 ns before and after the turn.
    Fast,
    /// The cache line takes at least 100 ns before and after the turn.
    Slow,
    /// The mode changed during the turn or is unknown.
    Mixed,
}

impl Mode {
    /// The mode of a turn, from the bare line before and after it.
    pub fn of(before: Option<f64>, after: Option<f64>) -> Mode {
        match (before, after) {
            (Some(before), Some(after)) if before.max(after) < SLOW_NANOS => Mode::Fast,
            (Some(before), Some(after)) if before.min(after) >= SLOW_NANOS => Mode::Slow,
            _ => Mode::Mixed,
        }
    }
}

/// One turn of one contestant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Nanoseconds of one unit: a one-way trip, a message or a hop.
    pub nanos: f64,
    /// Second result of the case, for one unit.
    pub extra: f64,
    /// Nanoseconds of the bare line before the turn.
    pub before: Option<f64>,
    /// Nanoseconds of the bare line after the turn.
    pub after: Option<f64>,
    /// Counters of ranks over datagrams.
    pub counted: Option<Counted>,
}

impl Sample {
    fn mode(&self) -> Mode {
        Mode::of(self.before, self.after)
    }
}

/// Result of one contestant in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Median of the nanoseconds.
    pub median: f64,
    /// Least of the nanoseconds.
    pub best: f64,
    /// Median of the second result.
    pub extra: f64,
    /// Number of turns.
    pub turns: usize,
    /// Sum of the UDP ranks' counters in these turns.
    #[serde(rename = "counters", skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub counted: Option<Counted>,
}

impl Summary {
    /// The summary of one contestant in several jobs.
    pub fn median_of(jobs: &[Summary]) -> Option<Summary> {
        Some(Summary {
            median: median(jobs.iter().map(|job| job.median).collect())?,
            best: jobs.iter().map(|job| job.best).fold(f64::INFINITY, f64::min),
            extra: median(jobs.iter().map(|job| job.extra).collect())?,
            turns: jobs.iter().map(|job| job.turns).sum(),
            counted: jobs.iter().filter_map(|job| job.counted).reduce(|sum, one| sum.plus(&one)),
        })
    }
}

/// Summaries of contestants that took turns, in the mode with the most turns of each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// That mode. It is mixed, and all turns count, if no mode has enough turns of every contestant.
    pub mode: Mode,
    /// Median of the bare line before and after these turns.
    pub line: Option<f64>,
    /// Summary of each contestant; `None` without turns.
    pub summaries: Vec<Option<Summary>>,
}

/// Compares contestants that took turns.
pub fn compare(contestants: &[Vec<Sample>]) -> Compared {
    let count = |samples: &[Sample], mode| samples.iter().filter(|s| s.mode() == mode).count();
    let least = |mode| contestants.iter().map(|samples| count(samples, mode)).min().unwrap_or(0);
    let mode = if least(Mode::Fast) >= least(Mode::Slow) { Mode::Fast } else { Mode::Slow };
    let mode = if least(mode) >= LEAST { mode } else { Mode::Mixed };
    let counts = |sample: &&Sample| mode == Mode::Mixed || sample.mode() == mode;
    let lines = contestants.iter().flatten().filter(counts);
    let lines = lines.flat_map(|sample| [sample.before, sample.after]).flatten();
    Compared {
        mode,
        line: median(lines.collect()),
        summaries: contestants
            .iter()
            .map(|samples| {
                let samples: Vec<_> = samples.iter().filter(counts).collect();
                Some(Summary {
                    median: median(samples.iter().map(|s| s.nanos).collect())?,
                    best: samples.iter().map(|s| s.nanos).fold(f64::INFINITY, f64::min),
                    extra: median(samples.iter().map(|s| s.extra).collect())?,
                    turns: samples.len(),
                    counted: samples.iter().filter_map(|s| s.counted).reduce(|sum, one| sum.plus(&one)),
                })
            })
            .collect(),
    }
}

/// The median: of an even number of values the mean of the middle two.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(line: f64, nanos: &[f64]) -> Vec<Sample> {
        let sample = |nanos| Sample { nanos, before: Some(line), after: Some(line), ..Sample::default() };
        nanos.iter().map(|n| sample(*n)).collect()
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn only_turns_of_one_mode_are_compared() {
        let mut ours = samples(30.0, &[100.0, 110.0, 120.0]);
        ours.extend(samples(220.0, &[300.0, 310.0]));
        let mut theirs = samples(220.0, &[330.0; 5]);
        theirs.extend(samples(40.0, &[90.0, 91.0, 92.0]));
        let compared = compare(&[ours, theirs]);
        assert_eq!(compared.mode, Mode::Fast);
        let medians: Vec<_> = compared.summaries.iter().flatten().map(|s| (s.median, s.turns)).collect();
        assert_eq!(medians, [(110.0, 3), (91.0, 3)]);
    }

    #[test]
    fn turns_without_a_common_mode_are_compared_as_mixed() {
        let compared = compare(&[samples(30.0, &[1.0, 2.0, 3.0]), samples(220.0, &[4.0, 5.0, 6.0])]);
        assert_eq!(compared.mode, Mode::Mixed);
        assert_eq!(compared.summaries[1].map(|s| s.median), Some(5.0));
        assert_eq!(compare(&[vec![], samples(30.0, &[1.0])]).summaries[0], None);
    }

    #[test]
    fn turn_with_a_changed_line_time_is_mixed() {
        assert_eq!(Mode::of(Some(30.0), Some(220.0)), Mode::Mixed);
        assert_eq!(Mode::of(None, Some(30.0)), Mode::Mixed);
        assert_eq!(Mode::of(Some(180.0), Some(220.0)), Mode::Slow);
    }
}
