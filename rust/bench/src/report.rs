//! Results of a measurement, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::outcome::{Compared, Mode, Summary, median};
use super::protocol::Case;

/// Contestants that did the same and took turns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Case.
    pub case: Case,
    /// Octets of a message's elements.
    pub octets: u64,
    /// Ranks of each.
    pub ranks: u32,
    /// Distance of the processors.
    pub mode: Mode,
    /// Nanoseconds of the bare cache line, one way.
    pub line: Option<f64>,
    /// Processors that other processes used meanwhile.
    pub others: Option<f64>,
    /// Results of the contestants.
    pub contestants: Vec<Cell>,
}

/// Result of one contestant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the contestant.
    pub name: String,
    /// In nanoseconds.
    #[serde(flatten)]
    pub summary: Summary,
}

/// A contestant that could not be started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absent {
    /// Name of the contestant.
    pub name: String,
    /// Why not.
    pub why: String,
}

impl Row {
    /// From a comparison whose contestants have these names.
    pub fn new(case: Case, octets: u64, ranks: u32, names: &[String], compared: Compared) -> Row {
        let cells = names.iter().zip(compared.summaries);
        let cells = cells.filter_map(|(name, summary)| Some(Cell { name: name.clone(), summary: summary? }));
        let contestants = cells.collect();
        Row { case, octets, ranks, mode: compared.mode, line: compared.line, others: None, contestants }
    }

    /// With what others used of the machine.
    pub fn beside(self, others: Option<f64>) -> Row {
        Row { others, ..self }
    }

    /// The medians of rows of the same case and size in several jobs.
    fn median_of(rows: &[Row]) -> Option<Row> {
        let first = rows.first()?;
        let mut names: Vec<&str> = Vec::new();
        for cell in rows.iter().flat_map(|row| &row.contestants) {
            if !names.contains(&cell.name.as_str()) {
                names.push(&cell.name);
            }
        }
        let cell = |name: &&str| {
            let summaries: Vec<Summary> = rows.iter().filter_map(|row| row.find(name)).copied().collect();
            Some(Cell { name: (*name).to_owned(), summary: Summary::median_of(&summaries)? })
        };
        let is_same = rows.iter().all(|row| row.mode == first.mode);
        Some(Row {
            mode: if is_same { first.mode } else { Mode::Mixed },
            line: median(rows.iter().filter_map(|row| row.line).collect()),
            others: median(rows.iter().filter_map(|row| row.others).collect()),
            contestants: names.iter().filter_map(cell).collect(),
            ..first.clone()
        })
    }

    fn find(&self, name: &str) -> Option<&Summary> {
        self.contestants.iter().find(|cell| cell.name == name).map(|cell| &cell.summary)
    }
}

/// The medians of the same rows of several jobs. The n-th row of a case and size in one job belongs to the
/// n-th one in the others.
pub fn medians(jobs: Vec<Vec<Row>>) -> Vec<Row> {
    let mut groups: Vec<((Case, u64, usize), Vec<Row>)> = Vec::new();
    for rows in jobs {
        let mut counts: BTreeMap<(Case, u64), usize> = BTreeMap::new();
        for row in rows {
            let count = counts.entry((row.case, row.octets)).or_default();
            let key = (row.case, row.octets, *count);
            *count += 1;
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, group)) => group.push(row),
                None => groups.push((key, vec![row])),
            }
        }
    }
    groups.iter().filter_map(|(_, rows)| Row::median_of(rows)).collect()
}

/// Meaning of a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time of one.
    Time,
    /// Octets of one by its time.
    Bandwidth,
    /// Number in a second.
    Rate,
}

impl Unit {
    fn show(self, octets: u64, nanos: f64) -> String {
        match self {
            Unit::Time => time(nanos),
            Unit::Bandwidth if octets as f64 / nanos < 0.1 => {
                format!("{:.2} MB/s", 1000.0 * octets as f64 / nanos)
            }
            Unit::Bandwidth => format!("{:.2} GB/s", octets as f64 / nanos),
            Unit::Rate if nanos > 10_000.0 => format!("{:.2} k/s", 1e6 / nanos),
            Unit::Rate => format!("{:.2} M/s", 1000.0 / nanos),
        }
    }
}

/// A table: a line for each row, a column for each contestant, also for those that are not there.
pub fn table(rows: &[Row], absent: &[Absent], unit: Unit) -> String {
    let mut names: Vec<&str> = Vec::new();
    for cell in rows.iter().flat_map(|row| &row.contestants) {
        if !names.contains(&cell.name.as_str()) {
            names.push(&cell.name);
        }
    }
    names.extend(absent.iter().map(|absent| absent.name.as_str()));
    let mut lines = vec![vec![String::new(), "size".to_owned()]];
    lines[0].extend(names.iter().map(|name| (*name).to_owned()));
    lines[0].extend(["bare line", "others"].map(str::to_owned));
    for row in rows {
        let mut line = vec![row.case.title().to_owned(), size(row.octets)];
        let cells = names.iter().map(|name| row.find(name));
        line.extend(cells.map(|cell| cell.map_or("-".to_owned(), |c| cell_text(row, c, unit))));
        line.extend([bare_line(row.line, row.mode), processors(row.others)]);
        lines.push(line);
    }
    aligned(&lines)
}

/// The result of a contestant; of trips that were timed, their mean and their median.
fn cell_text(row: &Row, summary: &Summary, unit: Unit) -> String {
    let result = unit.show(row.octets, summary.median);
    match row.case {
        Case::Timed => format!("{result} / {}", unit.show(row.octets, summary.extra)),
        _ => result,
    }
}

/// Columns side by side, the first to the left and the others to the right.
pub fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| lines.iter().filter_map(|l| l.get(at)).map(|w| w.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (at, word) in line.iter().enumerate() {
            // A text takes any of this.
            let _ = if at == 0 {
                write!(text, "{word:<0$}", widths[at])
            } else {
                write!(text, "  {word:>0$}", widths[at])
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// Time of the bare line, with the mode if that is mixed.
pub fn bare_line(nanos: Option<f64>, mode: Mode) -> String {
    let time = nanos.map_or("unknown".to_owned(), time);
    match mode {
        Mode::Mixed => format!("{time}, mixed"),
        Mode::Fast | Mode::Slow => time,
    }
}

/// Processors that other processes used, as text.
pub fn processors(others: Option<f64>) -> String {
    others.map_or("unknown".to_owned(), |number| format!("{number:.1} CPU"))
}

/// Nanoseconds in the unit that suits them, with three digits.
pub fn time(nanos: f64) -> String {
    let units = ["ns", "us", "ms", "s"];
    let mut value = nanos;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {}", units[unit])
}

/// Octets as 8 B, 64 KiB, 16 MiB; with three digits where the unit does not divide them.
pub fn size(octets: u64) -> String {
    let (unit, name) = match octets {
        0..0x400 => return format!("{octets} B"),
        0x400..0x10_0000 => (1_u64 << 10, "KiB"),
        _ => (1 << 20, "MiB"),
    };
    let number = octets as f64 / unit as f64;
    let digits = match number {
        _ if octets.is_multiple_of(unit) => 0,
        ..10.0 => 2,
        _ => usize::from(number < 100.0),
    };
    format!("{number:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_has_the_unit_of_its_size() {
        assert_eq!([8, 1024, 16 << 20].map(size), ["8 B", "1 KiB", "16 MiB"]);
        assert_eq!(
            [1408, 30_848, 1_572_864, 130_000].map(size),
            ["1.38 KiB", "30.1 KiB", "1.50 MiB", "127 KiB"]
        );
        assert_eq!(
            [0.5, 93.2, 999.0, 1500.0, 2.5e6, 3e9].map(time),
            ["0.50 ns", "93.2 ns", "999 ns", "1.50 us", "2.50 ms", "3.00 s"]
        );
        assert_eq!(Unit::Bandwidth.show(1 << 20, 1e5), "10.49 GB/s");
        assert_eq!(Unit::Bandwidth.show(1 << 16, 1e7), "6.55 MB/s");
        assert_eq!([50.0, 20_000.0].map(|nanos| Unit::Rate.show(8, nanos)), ["20.00 M/s", "50.00 k/s"]);
    }

    #[test]
    fn absent_contestant_has_a_dash() {
        let summary = Summary { median: 100.0, best: 90.0, extra: 0.0, turns: 7, counted: None };
        let row = |octets, name: &str| Row {
            case: Case::Arrays,
            octets,
            ranks: 2,
            mode: Mode::Fast,
            line: Some(30.0),
            others: Some(0.25),
            contestants: vec![Cell { name: name.into(), summary }],
        };
        let absent = Absent { name: "three".into(), why: "it is not there".into() };
        let text = table(&[row(8, "one"), row(1024, "two")], &[absent], Unit::Time);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["size", "one", "two", "three", "bare", "line", "others"]);
        assert_eq!(
            lines[1],
            ["array", "to", "array", "8", "B", "100", "ns", "-", "-", "30.0", "ns", "0.2", "CPU"]
        );
        assert_eq!(lines[2][3..], ["1", "KiB", "-", "100", "ns", "-", "30.0", "ns", "0.2", "CPU"]);
    }

    #[test]
    fn rows_of_several_jobs_are_merged_by_case_size_and_position() {
        let row = |octets, nanos: &[(&str, f64)], mode| {
            let summary = |median| Summary { median, best: median, extra: 0.0, turns: 7, counted: None };
            let cell = |(name, nanos): &(&str, f64)| Cell { name: (*name).into(), summary: summary(*nanos) };
            let contestants = nanos.iter().map(cell).collect();
            let (case, line, others) = (Case::Arrays, Some(30.0), None);
            Row { case, octets, ranks: 2, mode, line, others, contestants }
        };
        let job = |first: f64, second: f64, mode| {
            vec![row(8, &[("one", first)], mode), row(8, &[("one", second)], mode), row(64, &[], mode)]
        };
        let mut absent = job(9.0, 20.0, Mode::Fast);
        absent[1] = row(8, &[("two", 5.0)], Mode::Fast);
        let merged = medians(vec![job(1.0, 40.0, Mode::Fast), job(3.0, 10.0, Mode::Slow), absent]);
        let found: Vec<Vec<(&str, f64)>> = merged
            .iter()
            .map(|row| row.contestants.iter().map(|c| (c.name.as_str(), c.summary.median)).collect())
            .collect();
        assert_eq!(found, [vec![("one", 3.0)], vec![("one", 25.0), ("two", 5.0)], vec![]]);
        assert_eq!((merged[0].mode, merged[0].contestants[0].summary.turns), (Mode::Mixed, 21));
    }

    #[test]
    fn timed_trips_have_mean_and_median() {
        let summary = Summary { median: 1000.0, best: 90.0, extra: 300.0, turns: 7, counted: None };
        let compared = Compared { mode: Mode::Mixed, line: None, summaries: vec![Some(summary)] };
        let row = |case| Row::new(case, 8, 2, &["one".into()], compared.clone());
        assert!(table(&[row(Case::Timed)], &[], Unit::Time).contains(" 1.00 us / 300 ns "));
        assert!(table(&[row(Case::Arrays)], &[], Unit::Time).contains(" 1.00 us  "));
    }
}
