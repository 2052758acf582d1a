//! Measured figures: the value of each, its verdict, and their table.

use serde::{Deserialize, Serialize};

use super::{Asked, Limit, Of, short};
use crate::outcome::{Compared, Mode, Sample, Summary, median};
use crate::report::{aligned, bare_line, processors, time};

/// The result of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As asked.
    Reached,
    /// Past the limit.
    Missed,
    /// Nothing is asked.
    Reported,
    /// The other contestant is absent.
    Unknown,
}

/// A figure beside what was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Name in reports.
    pub title: String,
    /// Limit of the figure.
    pub asked: Limit,
    /// Measured value.
    pub measured: Option<f64>,
    /// Verdict.
    pub verdict: Verdict,
    /// Nanoseconds of ours.
    pub ours: Option<f64>,
    /// Nanoseconds of what it is held against.
    pub against: Option<f64>,
    /// Distance of the processors.
    pub mode: Mode,
    /// Nanoseconds of the bare line.
    pub line: Option<f64>,
    /// Processors that other processes used meanwhile.
    pub others: Option<f64>,
}

impl Asked {
    /// Holds what was measured of a trial against it.
    pub fn hold(&self, compared: &Compared, samples: &[Vec<Sample>]) -> Held {
        let summary = |at: usize| compared.summaries.get(at).copied().flatten();
        let nanos = |at: usize| summary(at).map(|s: Summary| s.median);
        let extra = |at: usize| summary(at).map(|s: Summary| s.extra);
        let all = |from: usize, to: usize| (from..=to).map(nanos).collect::<Option<Vec<f64>>>();
        let most = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
        let least = |all: Vec<f64>| all.into_iter().fold(f64::INFINITY, f64::min);
        let (ours, against) = match self.of {
            Of::Ratio(ours, theirs) | Of::Beyond(ours, theirs) | Of::Speed(ours, theirs) => {
                (nanos(ours), nanos(theirs))
            }
            Of::ExtraRatio(ours, theirs) => (extra(ours), extra(theirs)),
            Of::Flat(from, to) => (all(from, to).map(most), all(from, to).map(least)),
            Of::Slowest(from, to, by) => (all(from, to).map(most), nanos(by)),
            Of::WorstMicros(at) => {
                let turns = samples.get(at).map(|turns| turns.iter().map(|s| s.nanos).collect());
                (turns.map(most), None)
            }
            Of::Micros(at) | Of::Millis(at) | Of::Extra(at) => (nanos(at), None),
            Of::Counted(..) => (None, None),
        };
        let measured = match self.of {
            Of::Ratio(..) | Of::ExtraRatio(..) | Of::Flat(..) | Of::Slowest(..) => {
                ours.zip(against).map(|(o, a)| o / a)
            }
            Of::Beyond(..) => ours.zip(against).map(|(o, a)| o - a),
            Of::Speed(..) => ours.zip(against).map(|(o, a)| a / o),
            Of::WorstMicros(_) | Of::Micros(_) => ours.map(|nanos| nanos / 1000.0),
            Of::Millis(_) => ours.map(|nanos| nanos / 1e6),
            Of::Extra(at) => extra(at),
            Of::Counted(at, count) => samples.get(at).and_then(|turns| count.of(turns)),
        };
        Held { ours, against, line: compared.line, mode: compared.mode, ..self.value(measured) }
    }

    /// A figure that was measured in another way.
    pub fn value(&self, measured: Option<f64>) -> Held {
        Held {
            title: self.title.to_owned(),
            asked: self.limit,
            measured,
            verdict: self.limit.verdict(measured),
            ours: None,
            against: None,
            mode: Mode::Mixed,
            line: None,
            others: None,
        }
    }
}

impl Limit {
    fn verdict(self, measured: Option<f64>) -> Verdict {
        let Some(measured) = measured else { return Verdict::Unknown };
        let is_within = match self {
            Limit::Most(most) => measured <= most,
            Limit::Least(least) => measured >= least,
            Limit::None => return Verdict::Reported,
        };
        if is_within { Verdict::Reached } else { Verdict::Missed }
    }
}

impl Held {
    /// The medians of this figure and of the same figure of other jobs.
    fn beside(self, others: &[&Held]) -> Held {
        let middle = |value: fn(&Held) -> Option<f64>| {
            median(others.iter().copied().chain([&self]).filter_map(value).collect())
        };
        let measured = middle(|held| held.measured);
        let is_same = others.iter().all(|held| held.mode == self.mode);
        Held {
            measured,
            verdict: self.asked.verdict(measured),
            ours: middle(|held| held.ours),
            against: middle(|held| held.against),
            mode: if is_same { self.mode } else { Mode::Mixed },
            line: middle(|held| held.line),
            others: middle(|held| held.others),
            ..self
        }
    }
}

/// The medians of the same figures of several jobs.
pub fn medians(mut jobs: Vec<Vec<Held>>) -> Vec<Held> {
    let Some(first) = jobs.pop() else { return Vec::new() };
    let of_others = |at: usize| jobs.iter().filter_map(move |job| job.get(at)).collect::<Vec<_>>();
    first.into_iter().enumerate().map(|(at, held)| held.beside(&of_others(at))).collect()
}

/// A line for each figure, and what is missed once more.
pub fn table(held: &[Held]) -> String {
    let head = ["", "asked", "measured", "reached", "ours", "against", "bare line", "others"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for figure in held {
        let verdict = match figure.verdict {
            Verdict::Reached => "yes",
            Verdict::Missed => "NO",
            Verdict::Reported => "reported",
            Verdict::Unknown => "not measured",
        };
        let nanos = |value: Option<f64>| value.map_or(String::new(), time);
        lines.push(vec![
            figure.title.clone(),
            figure.asked.to_string(),
            figure.measured.map_or("-".to_owned(), short),
            verdict.to_owned(),
            nanos(figure.ours),
            nanos(figure.against),
            figure.line.map_or(String::new(), |_| bare_line(figure.line, figure.mode)),
            figure.others.map_or(String::new(), |_| processors(figure.others)),
        ]);
    }
    // A column that has nothing to say is none.
    let says = |at: usize| at < 4 || lines[1..].iter().any(|line| !line[at].is_empty());
    let said: Vec<usize> = (0..head.len()).filter(|at| says(*at)).collect();
    let lines: Vec<Vec<String>> =
        lines.iter().map(|line| said.iter().map(|at| line[*at].clone()).collect()).collect();
    let asked = || held.iter().filter(|figure| figure.asked != Limit::None);
    let count = |verdict| asked().filter(|figure| figure.verdict == verdict).count();
    let (reached, missed) = (count(Verdict::Reached), count(Verdict::Missed));
    format!(
        "{}\nOf {} figures {reached} are reached, {missed} missed, {} not measured.\n",
        aligned(&lines),
        asked().count(),
        count(Verdict::Unknown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::compare;

    fn turns(nanos: f64, extra: f64) -> Vec<Sample> {
        vec![Sample { nanos, extra, before: Some(30.0), after: Some(30.0), counted: None }; 3]
    }

    fn held(of: Of, most: f64, samples: &[Vec<Sample>]) -> (Option<f64>, Verdict) {
        limited(of, Limit::Most(most), samples)
    }

    fn limited(of: Of, limit: Limit, samples: &[Vec<Sample>]) -> (Option<f64>, Verdict) {
        let held = Asked { title: "", of, limit }.hold(&compare(samples), samples);
        (held.measured, held.verdict)
    }

    #[test]
    fn upper_limit_is_reached_up_to_its_value() {
        let samples = [turns(130.0, 0.0), turns(100.0, 0.0), vec![]];
        assert_eq!(held(Of::Ratio(0, 1), 1.3, &samples), (Some(1.3), Verdict::Reached));
        assert_eq!(held(Of::Ratio(0, 1), 1.2, &samples), (Some(1.3), Verdict::Missed));
        assert_eq!(held(Of::Ratio(0, 2), 1.3, &samples), (None, Verdict::Unknown));
        let reported = Asked { title: "", of: Of::Micros(0), limit: Limit::None };
        assert_eq!(reported.hold(&compare(&samples), &samples).verdict, Verdict::Reported);
    }

    #[test]
    fn lower_limit_is_reached_from_its_value() {
        let samples = [turns(100.0, 0.0), turns(500.0, 0.0), vec![]];
        assert_eq!(limited(Of::Speed(0, 1), Limit::Least(5.0), &samples), (Some(5.0), Verdict::Reached));
        assert_eq!(limited(Of::Speed(0, 1), Limit::Least(5.1), &samples), (Some(5.0), Verdict::Missed));
        assert_eq!(limited(Of::Speed(2, 1), Limit::Least(5.0), &samples), (None, Verdict::Unknown));
    }

    #[test]
    fn table_has_the_limit_and_the_verdict() {
        let asked = |title, limit| Asked { title, of: Of::Micros(0), limit };
        let (most, least) = (asked("most", Limit::Most(1.25)), asked("least", Limit::Least(5.0)));
        let held = [most.value(Some(1.3)), least.value(Some(12.0)), least.value(None)];
        let text = table(&held);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..3], ["asked", "measured", "reached"]);
        assert_eq!(lines[1], ["most", "<=", "1.25", "1.30", "NO"]);
        assert_eq!(lines[2], ["least", ">=", "5.00", "12.0", "yes"]);
        assert_eq!(lines[3], ["least", ">=", "5.00", "-", "not", "measured"]);
        assert!(text.ends_with("Of 3 figures 1 are reached, 1 missed, 1 not measured.\n"), "{text}");
    }

    #[test]
    fn sizes_are_compared_with_each_other_and_with_one_size() {
        let samples = [turns(50.0, 0.0), turns(70.0, 0.0), turns(77.0, 0.0), turns(72.0, 0.0)];
        assert_eq!(held(Of::Flat(1, 3), 1.2, &samples).0, Some(77.0 / 70.0));
        assert_eq!(held(Of::Slowest(1, 3, 0), 1.5, &samples).0, Some(77.0 / 50.0));
    }

    #[test]
    fn second_results_are_compared() {
        let samples = [turns(900.0, 30.0), turns(100.0, 60.0), vec![]];
        assert_eq!(held(Of::ExtraRatio(0, 1), 1.0, &samples), (Some(0.5), Verdict::Reached));
        assert_eq!(held(Of::ExtraRatio(1, 2), 1.0, &samples), (None, Verdict::Unknown));
    }

    #[test]
    fn figure_of_several_jobs_is_their_median() {
        let asked = Asked { title: "hop", of: Of::Ratio(0, 1), limit: Limit::Most(1.4) };
        let job = |nanos: f64| {
            let samples = [turns(nanos, 0.0), turns(100.0, 0.0)];
            vec![asked.hold(&compare(&samples), &samples)]
        };
        let held = medians(vec![job(500.0), job(120.0), job(130.0)]);
        let [held] = &held[..] else { panic!("{held:?}") };
        assert_eq!((held.measured, held.ours, held.verdict), (Some(1.3), Some(130.0), Verdict::Reached));
        assert_eq!((held.mode, held.line), (Mode::Fast, Some(30.0)));
        let unknown = medians(vec![vec![asked.value(None)], vec![asked.value(None)]]);
        assert_eq!(unknown[0].verdict, Verdict::Unknown);
    }

    #[test]
    fn worst_turn_counts_in_any_mode() {
        let mut ring = turns(2000.0, 32.0);
        ring.push(Sample { nanos: 30_000.0, extra: 32.0, ..Sample::default() });
        assert_eq!(held(Of::WorstMicros(0), 20.0, &[ring.clone()]), (Some(30.0), Verdict::Missed));
        assert_eq!(held(Of::Extra(0), 32.0, &[ring]), (Some(32.0), Verdict::Reached));
    }
}
