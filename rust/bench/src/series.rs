//! Series of sizes: time over the length of a message, and the cliffs in it.

use serde::{Deserialize, Serialize};

use super::BenchError;
use super::contest::{self, COMPILED_AFTER, Entry, Pace, Stop};
use super::contestant::RunningJob;
use super::outcome::{compare, median};
use super::protocol::Case;
use super::report::{Row, aligned, bare_line, processors, size, time};

/// Cases of a series.
pub const CASES: [Case; 3] = [Case::Arrays, Case::Direct, Case::Buffers];
/// Limit of the quotient of two neighbours' times, the longer by the shorter. A larger one is a cliff.
pub const STEP_MAX: f64 = 1.6;

/// Octets of the shortest and of the longest message.
const ENDS: [u64; 2] = [8, 64 << 20];
/// Quotient of neighbouring sizes, in tenths.
const FACTOR_TENTHS: u64 = 14;

/// Sizes from 8 octets to 64 MiB. Each is a multiple of 8 and 1.4 times the size before, or 8 more.
pub fn sizes() -> Vec<u64> {
    let after = |octets: &u64| (*octets < ENDS[1]).then(|| next(*octets).min(ENDS[1]));
    std::iter::successors(Some(ENDS[0]), after).collect()
}

/// The next larger size.
fn next(octets: u64) -> u64 {
    (octets * FACTOR_TENTHS / 10 / 8 * 8).max(octets + 8)
}

/// A step between neighbouring sizes that a second measurement by turns confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cliff {
    /// Name of the contestant.
    pub name: String,
    /// Its case.
    pub case: Case,
    /// Both sizes, the smaller first.
    pub octets: [u64; 2],
    /// Nanoseconds of both.
    pub nanos: [f64; 2],
}

impl Cliff {
    /// The longer time by the shorter one.
    pub fn ratio(&self) -> f64 {
        step(self.nanos)
    }

    /// The cliff between two rows of one contestant, if their sizes are neighbours and there is one.
    fn between(rows: [&Row; 2]) -> Option<Cliff> {
        let [smaller, larger] = rows.map(|row| row.contestants.first());
        let nanos = [smaller?.summary.median, larger?.summary.median];
        let cliff = Cliff {
            name: smaller?.name.clone(),
            case: rows[0].case,
            octets: rows.map(|row| row.octets),
            nanos,
        };
        let [smaller, larger] = cliff.octets;
        let is_neighbour = larger <= next(smaller);
        (is_neighbour && step(nanos) > STEP_MAX).then_some(cliff)
    }
}

fn step(nanos: [f64; 2]) -> f64 {
    (nanos[1] / nanos[0]).max(nanos[0] / nanos[1])
}

/// Measures all cases and sizes, one contestant after the other. `progress` gets the name of each
/// measurement.
///
/// # Errors
/// A contestant fails, or `stop` is set.
pub fn run(
    jobs: &mut [RunningJob],
    sizes: &[u64],
    pace: Pace,
    stop: &Stop,
    progress: &dyn Fn(&str),
) -> Result<(Vec<Row>, Vec<Cliff>), BenchError> {
    let (mut rows, mut cliffs, mut done) = (Vec::new(), Vec::new(), 0);
    let all = jobs.len() * CASES.len() * sizes.len();
    for job in 0..jobs.len() {
        let sizes_of_job: Vec<u64> =
            sizes.iter().copied().filter(|octets| jobs[job].takes(*octets)).collect();
        for case in CASES {
            let name = jobs[job].name().to_owned();
            let measure = |octets: &[u64]| {
                let sizes = octets.iter().map(|octets| size(*octets)).collect::<Vec<_>>().join(" and ");
                // A repetition of two sizes does not count.
                done += usize::from(octets.len() == 1);
                progress(&format!("{name}, {}, {sizes}, {done} of {all}", case.title()));
                // The first messages of a case trigger the compilation of its code.
                let is_first = octets.first() == sizes_of_job.first();
                let compiled_after = if is_first { COMPILED_AFTER } else { pace.compiled_after };
                let pace = Pace { compiled_after, ..pace };
                let entries: Vec<Entry> =
                    octets.iter().map(|octets| Entry { job, case, octets: *octets }).collect();
                let turns = contest::contest(jobs, &entries, pace, stop)?;
                let rows = contest::rows(&entries, jobs, &compare(&turns.samples));
                Ok(rows.into_iter().map(|row| row.beside(turns.others)).collect())
            };
            let (measured, found) = repeat_steps(&sizes_of_job, measure)?;
            rows.extend(measured);
            cliffs.extend(found);
        }
    }
    Ok((rows, cliffs))
}

/// Rows of all sizes, and the cliffs among them. Two neighbours whose times are far apart are measured again
/// by turns, since other work on the machine may have slowed only one of them.
fn repeat_steps<E>(
    sizes: &[u64],
    mut measure: impl FnMut(&[u64]) -> Result<Vec<Row>, E>,
) -> Result<(Vec<Row>, Vec<Cliff>), E> {
    let mut rows = Vec::new();
    for octets in sizes {
        rows.extend(measure(&[*octets])?);
    }
    let mut cliffs = Vec::new();
    let mut is_repeated = vec![false; rows.len()];
    let is_far = |rows: &[Row], at: usize| Cliff::between([&rows[at - 1], &rows[at]]).is_some();
    while let Some(at) = (1..rows.len()).find(|at| !is_repeated[*at] && is_far(&rows, *at)) {
        is_repeated[at] = true;
        let repeated = measure(&[rows[at - 1].octets, rows[at].octets])?;
        let [smaller, larger] = &repeated[..] else { continue };
        cliffs.extend(Cliff::between([smaller, larger]));
        rows.splice(at - 1..=at, repeated);
    }
    cliffs.sort_by_key(|cliff| cliff.octets);
    Ok((rows, cliffs))
}

/// Text with a table for each contestant, a line for each size, and the cliffs.
pub fn text(rows: &[Row], cliffs: &[Cliff]) -> String {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| &row.contestants).map(|cell| cell.name.as_str()).collect();
    names.dedup();
    let mut text = String::new();
    for name in names {
        let of_name = |row: &&Row| row.contestants.iter().any(|cell| cell.name == name);
        let rows: Vec<&Row> = rows.iter().filter(of_name).collect();
        let found: Vec<&Cliff> = cliffs.iter().filter(|cliff| cliff.name == name).collect();
        text += &format!("{}{}\n", aligned(&lines(name, &rows)), cliff_lines(&found));
    }
    text
}

fn lines(name: &str, rows: &[&Row]) -> Vec<Vec<String>> {
    let mut sizes: Vec<u64> = rows.iter().map(|row| row.octets).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut head = vec![name.to_owned()];
    head.extend(CASES.map(|case| case.title().to_owned()));
    head.extend(["bare line", "others"].map(str::to_owned));
    let line = |octets: u64| {
        let of_size = || rows.iter().filter(move |row| row.octets == octets);
        let cell = |case: Case| {
            let cell = of_size().find(|row| row.case == case).and_then(|row| row.contestants.first());
            cell.map_or("-".to_owned(), |cell| time(cell.summary.median))
        };
        let mut line = vec![size(octets)];
        line.extend(CASES.map(cell));
        let first = of_size().next();
        let bare = median(of_size().filter_map(|row| row.line).collect());
        line.push(first.map_or(String::new(), |row| bare_line(bare, row.mode)));
        line.push(processors(of_size().filter_map(|row| row.others).reduce(f64::max)));
        line
    };
    let mut lines = vec![head];
    lines.extend(sizes.into_iter().map(line));
    lines
}

fn cliff_lines(cliffs: &[&Cliff]) -> String {
    if cliffs.is_empty() {
        return format!("No step between neighbours is more than {STEP_MAX} x.\n");
    }
    let line = |cliff: &&Cliff| {
        let [smaller, larger] =
            [0, 1].map(|at| format!("{}: {}", size(cliff.octets[at]), time(cliff.nanos[at])));
        format!("  {}, {smaller}, {larger}, {:.2} x\n", cliff.case.title(), cliff.ratio())
    };
    format!("Steps of more than {STEP_MAX} x between neighbours:\n")
        + &cliffs.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Mode, Summary};
    use crate::report::Cell;

    fn row(case: Case, octets: u64, median: f64) -> Row {
        let summary = Summary { median, best: median, extra: 0.0, turns: 7, counted: None };
        let contestants = vec![Cell { name: "Java shm".into(), summary }];
        Row { case, octets, ranks: 2, mode: Mode::Fast, line: Some(30.0), others: Some(0.0), contestants }
    }

    /// Rows and cliffs if a size takes `nanos(octets, number of earlier measurements)`.
    fn measured(nanos: impl Fn(u64, usize) -> f64) -> (Vec<Row>, Vec<Cliff>, usize) {
        let mut seen: Vec<u64> = Vec::new();
        let measure = |sizes: &[u64]| -> Result<Vec<Row>, ()> {
            let rows = sizes.iter().map(|octets| {
                let before = seen.iter().filter(|seen| *seen == octets).count();
                row(Case::Arrays, *octets, nanos(*octets, before))
            });
            let rows = rows.collect();
            seen.extend(sizes);
            Ok(rows)
        };
        let (rows, cliffs) = repeat_steps(&[8, 16, 24, 32], measure).expect("rows");
        (rows, cliffs, seen.len())
    }

    #[test]
    fn sizes_grow_by_the_factor_or_by_one_element() {
        let sizes = sizes();
        assert_eq!(sizes[..7], [8, 16, 24, 32, 40, 56, 72]);
        assert_eq!(sizes.last(), Some(&(64 << 20)));
        for pair in sizes.windows(2) {
            let is_near = pair[1] * 10 <= pair[0] * 14 || pair[1] == pair[0] + 8;
            assert!(pair[0] < pair[1] && pair[1] % 8 == 0 && is_near, "{pair:?}");
        }
    }

    #[test]
    fn step_of_a_noisy_neighbour_is_no_cliff() {
        let (rows, cliffs, _) =
            measured(|octets, before| if (octets, before) == (24, 0) { 500.0 } else { 100.0 });
        assert_eq!(cliffs, []);
        assert!(rows.iter().all(|row| row.contestants[0].summary.median == 100.0), "the second one counts");
    }

    #[test]
    fn step_that_is_there_twice_is_a_cliff() {
        let (rows, cliffs, measured) = measured(|octets, _| if octets < 24 { 100.0 } else { 161.0 });
        assert_eq!((rows.len(), measured), (4, 4 + 2), "neighbours alone are repeated, once");
        let [cliff] = &cliffs[..] else { panic!("{cliffs:?}") };
        assert_eq!((cliff.octets, cliff.ratio()), ([16, 24], 1.61));
    }

    #[test]
    fn step_between_sizes_that_are_far_apart_is_no_cliff() {
        let rows = [8, 24].map(|octets| row(Case::Arrays, octets, octets as f64));
        assert_eq!(Cliff::between([&rows[0], &rows[1]]), None);
    }

    #[test]
    fn falling_step_is_a_cliff_too() {
        let (_, cliffs, _) = measured(|octets, _| if octets < 24 { 200.0 } else { 100.0 });
        assert_eq!(
            cliffs.iter().map(|cliff| (cliff.octets, cliff.ratio())).collect::<Vec<_>>(),
            [([16, 24], 2.0)]
        );
    }

    #[test]
    fn text_has_a_line_per_size_and_names_the_cliffs() {
        let rows: Vec<Row> =
            CASES.iter().flat_map(|case| [8, 1408].map(|octets| row(*case, octets, 100.0))).collect();
        let quiet = text(&rows, &[]);
        let lines: Vec<&str> = quiet.lines().collect();
        assert!(
            lines[0].starts_with("Java shm  array to array") && lines[2].starts_with("1.38 KiB"),
            "{quiet}"
        );
        assert_eq!(lines[3], "No step between neighbours is more than 1.6 x.");
        let cliff =
            Cliff { name: "Java shm".into(), case: Case::Direct, octets: [8, 1408], nanos: [100.0, 250.0] };
        let steep = text(&rows, &[cliff]);
        assert!(
            steep.contains("\n  array to array, direct, 8 B: 100 ns, 1.38 KiB: 250 ns, 2.50 x\n"),
            "{steep}"
        );
    }
}
