//! Results of turns: samples, the mode of the machine, and medians that may be compared.

use serde::{Deserialize, Serialize};

use super::counters::Counted;

/// A bare line that takes longer than this has crossed to another physical core or socket: virtual processors
/// move, and the times that are seen, 25 to 50 and about 220 ns, are well on either side.
const SLOW_NANOS: f64 = 100.0;
/// Fewer samples than this are no median.
const LEAST: usize = 3;

/// Distance of the two processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A line takes less than 100 ns, before and after.
    Fast,
    /// A line takes more, before and after.
    Slow,
    /// It changed, or is not known.
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
    /// Nanoseconds for one of what is counted: a way, a message, a hop.
    pub nanos: f64,
    /// Second result of the case, for one time.
    pub extra: f64,
    /// The bare line before.
    pub before: Option<f64>,
    /// And after.
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
    /// The least.
    pub best: f64,
    /// Median of what else the case tells.
    pub extra: f64,
    /// Turns that this comes from.
    pub turns: usize,
    /// Counters of ranks over datagrams in all these turns.
    #[serde(rename = "counters", skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub counted: Option<Counted>,
}

/// Several contestants that took turns, in the mode in which most is known of all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// That mode; mixed when no mode has enough turns of everybody, and then all turns count.
    pub mode: Mode,
    /// Median of the bare line around the turns that count.
    pub line: Option<f64>,
    /// One for each contestant; none when it did nothing.
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

/// The middle one, or the mean of the two in the middle.
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
