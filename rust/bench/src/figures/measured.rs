//! Measured figures: value, status, table.

use serde::{Deserialize, Serialize};

use super::{Limit, Quantity, Target, short};
use crate::outcome::{Compared, Mode, Sample, Summary, median};
use crate::report::{aligned, bare_line, processors, time};

/// Result of the comparison of a figure with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureStatus {
    /// Within the limit.
    Reached,
    /// Beyond the limit.
    Missed,
    /// Without a limit.
    Reported,
    /// Not measured, since a contestant is absent.
    Unknown,
}

/// A measured figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Name in reports.
    pub title: String,
    /// Limit of the figure.
    #[serde(rename = "asked")]
    pub limit: Limit,
    /// Measured value.
    pub measured: Option<f64>,
    /// Result of the comparison with the limit.
    #[serde(rename = "verdict")]
    pub status: FigureStatus,
    /// Nanoseconds of mpjdev.
    pub ours: Option<f64>,
    /// Nanoseconds of the contestant that mpjdev is compared with.
    pub against: Option<f64>,
    /// Distance of the processors.
    pub mode: Mode,
    /// Nanoseconds of the bare line.
    pub line: Option<f64>,
    /// Processors that other processes used meanwhile.
    pub others: Option<f64>,
}

impl Target {
    /// Computes the figure from the results of a comparison.
    pub fn evaluate(&self, compared: &Compared, samples: &[Vec<Sample>]) -> Figure {
        let summary = |at: usize| compared.summaries.get(at).copied().flatten();
        let nanos = |at: usize| summary(at).map(|s: Summary| s.median);
        let extra = |at: usize| summary(at).map(|s: Summary| s.extra);
        let all = |from: usize, to: usize| (from..=to).map(nanos).collect::<Option<Vec<f64>>>();
        let most = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
        let least = |all: Vec<f64>| all.into_iter().fold(f64::INFINITY, f64::min);
        let (ours, against) = match self.quantity {
            Quantity::Ratio(ours, theirs)
            | Quantity::Beyond(ours, theirs)
            | Quantity::Speed(ours, theirs) => (nanos(ours), nanos(theirs)),
            Quantity::ExtraRatio(ours, theirs) => (extra(ours), extra(theirs)),
            Quantity::Flat(from, to) => (all(from, to).map(most), all(from, to).map(least)),
            Quantity::Slowest(from, to, by) => (all(from, to).map(most), nanos(by)),
            Quantity::WorstMicros(at) => {
                let turns = samples.get(at).map(|turns| turns.iter().map(|s| s.nanos).collect());
                (turns.map(most), None)
            }
            Quantity::Micros(at) | Quantity::Millis(at) | Quantity::Extra(at) => (nanos(at), None),
            Quantity::Counted(..) => (None, None),
        };
        let measured = match self.quantity {
            Quantity::Ratio(..) | Quantity::ExtraRatio(..) | Quantity::Flat(..) | Quantity::Slowest(..) => {
                ours.zip(against).map(|(o, a)| o / a)
            }
            Quantity::Beyond(..) => ours.zip(against).map(|(o, a)| o - a),
            Quantity::Speed(..) => ours.zip(against).map(|(o, a)| a / o),
            Quantity::WorstMicros(_) | Quantity::Micros(_) => ours.map(|nanos| nanos / 1000.0),
            Quantity::Millis(_) => ours.map(|nanos| nanos / 1e6),
            Quantity::Extra(at) => extra(at),
            Quantity::Counted(at, count) => samples.get(at).and_then(|turns| count.of(turns)),
        };
        Figure { ours, against, line: compared.line, mode: compared.mode, ..self.figure(measured) }
    }

    /// A figure of a value that was measured without a comparison.
    pub fn figure(&self, measured: Option<f64>) -> Figure {
        Figure {
            title: self.title.to_owned(),
            limit: self.limit,
            measured,
            status: self.limit.status(measured),
            ours: None,
            against: None,
            mode: Mode::Mixed,
            line: None,
            others: None,
        }
    }
}

impl Limit {
    fn status(self, measured: Option<f64>) -> FigureStatus {
        let Some(measured) = measured else { return FigureStatus::Unknown };
        let is_within = match self {
            Limit::Most(most) => measured <= most,
            Limit::Least(least) => measured >= least,
            Limit::None => return FigureStatus::Reported,
        };
        if is_within { FigureStatus::Reached } else { FigureStatus::Missed }
    }
}

impl Figure {
    /// The medians of this figure and of the same figure of other jobs.
    fn beside(self, others: &[&Figure]) -> Figure {
        let middle = |value: fn(&Figure) -> Option<f64>| {
            median(others.iter().copied().chain([&self]).filter_map(value).collect())
        };
        let measured = middle(|held| held.measured);
        let is_same = others.iter().all(|held| held.mode == self.mode);
        Figure {
            measured,
            status: self.limit.status(measured),
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
pub fn medians(mut jobs: Vec<Vec<Figure>>) -> Vec<Figure> {
    let Some(first) = jobs.pop() else { return Vec::new() };
    let of_others = |at: usize| jobs.iter().filter_map(move |job| job.get(at)).collect::<Vec<_>>();
    first.into_iter().enumerate().map(|(at, held)| held.beside(&of_others(at))).collect()
}

/// A table with a line for each figure, and the numbers of reached and missed ones.
pub fn table(held: &[Figure]) -> String {
    let head = ["", "asked", "measured", "reached", "ours", "against", "bare line", "others"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for figure in held {
        let status = match figure.status {
            FigureStatus::Reached => "yes",
            FigureStatus::Missed => "NO",
            FigureStatus::Reported => "reported",
            FigureStatus::Unknown => "not measured",
        };
        let nanos = |value: Option<f64>| value.map_or(String::new(), time);
        lines.push(vec![
            figure.title.clone(),
            figure.limit.to_string(),
            figure.measured.map_or("-".to_owned(), short),
            status.to_owned(),
            nanos(figure.ours),
            nanos(figure.against),
            figure.line.map_or(String::new(), |_| bare_line(figure.line, figure.mode)),
            figure.others.map_or(String::new(), |_| processors(figure.others)),
        ]);
    }
    // Empty columns are omitted.
    let is_used = |at: usize| at < 4 || lines[1..].iter().any(|line| !line[at].is_empty());
    let columns: Vec<usize> = (0..head.len()).filter(|at| is_used(*at)).collect();
    let lines: Vec<Vec<String>> =
        lines.iter().map(|line| columns.iter().map(|at| line[*at].clone()).collect()).collect();
    let asked = || held.iter().filter(|figure| figure.limit != Limit::None);
    let count = |status| asked().filter(|figure| figure.status == status).count();
    let (reached, missed) = (count(FigureStatus::Reached), count(FigureStatus::Missed));
    format!(
        "{}\nOf {} figures {reached} are reached, {missed} missed, {} not measured.\n",
        aligned(&lines),
        asked().count(),
        count(FigureStatus::Unknown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::compare;

    fn turns(nanos: f64, extra: f64) -> Vec<Sample> {
        vec![Sample { nanos, extra, before: Some(30.0), after: Some(30.0), counted: None }; 3]
    }

    fn held(quantity: Quantity, most: f64, samples: &[Vec<Sample>]) -> (Option<f64>, FigureStatus) {
        limited(quantity, Limit::Most(most), samples)
    }

    fn limited(quantity: Quantity, limit: Limit, samples: &[Vec<Sample>]) -> (Option<f64>, FigureStatus) {
        let held = Target { title: "", quantity, limit }.evaluate(&compare(samples), samples);
        (held.measured, held.status)
    }

    #[test]
    fn upper_limit_is_reached_up_to_its_value() {
        let samples = [turns(130.0, 0.0), turns(100.0, 0.0), vec![]];
        assert_eq!(held(Quantity::Ratio(0, 1), 1.3, &samples), (Some(1.3), FigureStatus::Reached));
        assert_eq!(held(Quantity::Ratio(0, 1), 1.2, &samples), (Some(1.3), FigureStatus::Missed));
        assert_eq!(held(Quantity::Ratio(0, 2), 1.3, &samples), (None, FigureStatus::Unknown));
        let reported = Target { title: "", quantity: Quantity::Micros(0), limit: Limit::None };
        assert_eq!(reported.evaluate(&compare(&samples), &samples).status, FigureStatus::Reported);
    }

    #[test]
    fn lower_limit_is_reached_from_its_value() {
        let samples = [turns(100.0, 0.0), turns(500.0, 0.0), vec![]];
        assert_eq!(
            limited(Quantity::Speed(0, 1), Limit::Least(5.0), &samples),
            (Some(5.0), FigureStatus::Reached)
        );
        assert_eq!(
            limited(Quantity::Speed(0, 1), Limit::Least(5.1), &samples),
            (Some(5.0), FigureStatus::Missed)
        );
        assert_eq!(
            limited(Quantity::Speed(2, 1), Limit::Least(5.0), &samples),
            (None, FigureStatus::Unknown)
        );
    }

    #[test]
    fn table_has_the_limit_and_the_result() {
        let asked = |title, limit| Target { title, quantity: Quantity::Micros(0), limit };
        let (most, least) = (asked("most", Limit::Most(1.25)), asked("least", Limit::Least(5.0)));
        let held = [most.figure(Some(1.3)), least.figure(Some(12.0)), least.figure(None)];
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
        assert_eq!(held(Quantity::Flat(1, 3), 1.2, &samples).0, Some(77.0 / 70.0));
        assert_eq!(held(Quantity::Slowest(1, 3, 0), 1.5, &samples).0, Some(77.0 / 50.0));
    }

    #[test]
    fn second_results_are_compared() {
        let samples = [turns(900.0, 30.0), turns(100.0, 60.0), vec![]];
        assert_eq!(held(Quantity::ExtraRatio(0, 1), 1.0, &samples), (Some(0.5), FigureStatus::Reached));
        assert_eq!(held(Quantity::ExtraRatio(1, 2), 1.0, &samples), (None, FigureStatus::Unknown));
    }

    #[test]
    fn figure_of_several_jobs_is_their_median() {
        let target = Target { title: "hop", quantity: Quantity::Ratio(0, 1), limit: Limit::Most(1.4) };
        let job = |nanos: f64| {
            let samples = [turns(nanos, 0.0), turns(100.0, 0.0)];
            vec![target.evaluate(&compare(&samples), &samples)]
        };
        let held = medians(vec![job(500.0), job(120.0), job(130.0)]);
        let [held] = &held[..] else { panic!("{held:?}") };
        assert_eq!((held.measured, held.ours, held.status), (Some(1.3), Some(130.0), FigureStatus::Reached));
        assert_eq!((held.mode, held.line), (Mode::Fast, Some(30.0)));
        let unknown = medians(vec![vec![target.figure(None)], vec![target.figure(None)]]);
        assert_eq!(unknown[0].status, FigureStatus::Unknown);
    }

    #[test]
    fn worst_turn_counts_in_any_mode() {
        let mut ring = turns(2000.0, 32.0);
        ring.push(Sample { nanos: 30_000.0, extra: 32.0, ..Sample::default() });
        assert_eq!(held(Quantity::WorstMicros(0), 20.0, &[ring.clone()]), (Some(30.0), FigureStatus::Missed));
        assert_eq!(held(Quantity::Extra(0), 32.0, &[ring]), (Some(32.0), FigureStatus::Reached));
    }
}
