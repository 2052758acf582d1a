//! Collective calls of package `mpi` beside those of C MPIs.
//!
//! A contestant is a program that measures all rows in one job and prints a line for each. Contestants take
//! turns job by job, because eight JVMs beside sixteen C ranks would disturb each other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::BenchError;
use super::environment::Environment;
use super::outcome::median;

/// Main class of the Java program.
pub const JAVA_PROGRAM: &str = "mpjdev.tools.Collectives";
/// Source of the C program.
pub const C_SOURCE: &str = include_str!("collectives.c");

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;

/// Rows that C programs have as well: a call and a number of octets of a rank, for allreduce of doubles.
pub const ROWS: [(&str, &[u32]); 9] = [
    ("barrier", &[0]),
    ("bcast", &[8, 64 * KIB, MIB, 16 * MIB]),
    ("allreduce", &[1, 128, 8192, MIB]),
    ("alltoall", &[8, 4 * KIB, 256 * KIB]),
    ("allgather", &[KIB, 256 * KIB]),
    ("gather", &[KIB, 256 * KIB]),
    ("scatter", &[KIB, 256 * KIB]),
    ("reduce_scatter", &[KIB, 256 * KIB]),
    ("scan", &[KIB, 256 * KIB]),
];

/// Rows of Java alone: `Allreduce` of doubles by a predefined operation and by a function of the program, and
/// octets of garbage of a predefined one.
pub const JAVA_ROWS: [(&str, u32); 3] = [("allreduce", 1000), ("function", 1000), ("garbage", 1)];

/// Largest time of Java by the best C that is asked; for a function by the predefined operation, and for
/// garbage its octets.
fn limit(call: &str, number: u32, ranks: u32) -> Option<f64> {
    Some(match (call, number) {
        ("barrier", _) if ranks == 2 => 1.0,
        ("barrier", _) => 1.2,
        ("bcast", 8) => 1.0,
        ("bcast", n) if n <= 64 * KIB => 0.8,
        ("bcast", _) => 0.7,
        ("allreduce", 1) => 1.1,
        ("allreduce", 128) => 1.0,
        ("allreduce", 8192) => 0.8,
        ("allreduce", MIB) => 0.7,
        ("alltoall", _) if ranks < 4 => return None,
        ("alltoall", 8) => 1.2,
        ("alltoall", n) if n <= 4 * KIB => 0.9,
        ("alltoall", _) => 0.8,
        ("function", _) => 2.0,
        ("garbage", _) => 0.0,
        ("allgather" | "gather" | "scatter" | "reduce_scatter" | "scan", _) => 1.1,
        _ => return None,
    })
}

/// A program with the command line that starts its ranks, to which seconds and rows are added.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Its name.
    pub name: String,
    /// Its command line.
    pub words: Vec<OsString>,
    /// Whether it has the rows of Java alone.
    pub is_java: bool,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The call.
    pub call: String,
    /// Octets of a rank; doubles for allreduce.
    pub number: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Microseconds of each contestant: the median of its jobs. Octets in the row of garbage.
    pub micros: BTreeMap<String, f64>,
    /// Time of Java by the best C program; of a function by the predefined operation; octets of garbage.
    pub ratio: Option<f64>,
    /// Its limit.
    pub limit: Option<f64>,
}

/// All rows of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Environment of the run.
    pub environment: Environment,
    /// Jobs of each contestant.
    pub jobs: u16,
    /// The rows.
    pub rows: Vec<Row>,
}

/// The rows whose names contain one of these texts, or all.
pub fn selected(wanted: &[String], is_java: bool) -> Vec<String> {
    let names = ROWS.iter().flat_map(|(call, numbers)| numbers.iter().map(move |n| format!("{call}:{n}")));
    let java = JAVA_ROWS.iter().filter(|_| is_java).map(|(call, number)| format!("{call}:{number}"));
    let is_wanted =
        |name: &String| wanted.is_empty() || wanted.iter().any(|text| name.contains(text.as_str()));
    names.chain(java).filter(is_wanted).collect()
}

/// The lines of one job: microseconds by row.
type Lines = BTreeMap<String, f64>;

/// Runs one job of a contestant.
///
/// # Errors
/// It cannot be started, fails, or does not print the rows.
pub fn run_job(contestant: &Contestant, time: Duration, rows: &[String]) -> Result<Lines, BenchError> {
    let words = &contestant.words;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(time.as_secs_f64().to_string()).args(rows);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(BenchError::system(words[0].to_string_lossy()))?;
    let failed = |why: String| BenchError::Contestant { name: contestant.name.clone(), why };
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Lines = text.lines().filter_map(line).collect();
    match rows.iter().find(|row| !lines.contains_key(*row)) {
        Some(row) => Err(failed(format!("it prints no line of {row}"))),
        None => Ok(lines),
    }
}

fn line(text: &str) -> Option<(String, f64)> {
    let (row, micros) = text.split_once(' ')?;
    Some((row.to_owned(), micros.trim().parse().ok()?))
}

/// The rows of a number of ranks, from the lines of all jobs of each contestant.
pub fn rows(ranks: u32, jobs: &[(Contestant, Vec<Lines>)]) -> Vec<Row> {
    let names = selected(&[], true);
    let mut rows = Vec::new();
    for name in names {
        let (call, number) = name
            .split_once(':')
            .map_or((name.as_str(), 0), |(call, number)| (call, number.parse().unwrap_or_default()));
        let of = |lines: &Vec<Lines>| median(lines.iter().filter_map(|l| l.get(&name).copied()).collect());
        let times = jobs.iter().filter_map(|(who, lines)| Some((who, of(lines)?)));
        let times: Vec<(&Contestant, f64)> = times.collect();
        let best = |is_java: bool| {
            times.iter().filter(|(who, _)| who.is_java == is_java).map(|(_, time)| *time).reduce(f64::min)
        };
        let ratio = match call {
            "function" => best(true).zip(predefined(jobs, number)).map(|(ours, theirs)| ours / theirs),
            "garbage" => best(true),
            _ => best(true).zip(best(false)).map(|(ours, theirs)| ours / theirs),
        };
        let micros: BTreeMap<String, f64> =
            times.iter().map(|(who, time)| (who.name.clone(), *time)).collect();
        if !micros.is_empty() {
            let limit = limit(call, number, ranks).filter(|_| ratio.is_some());
            rows.push(Row { call: call.to_owned(), number, ranks, micros, ratio, limit });
        }
    }
    rows
}

/// The time of `Allreduce` of this number of doubles by a predefined operation in Java.
fn predefined(jobs: &[(Contestant, Vec<Lines>)], number: u32) -> Option<f64> {
    let (_, lines) = jobs.iter().find(|(who, _)| who.is_java)?;
    median(lines.iter().filter_map(|lines| lines.get(&format!("allreduce:{number}")).copied()).collect())
}

/// The cells of the rows, below those of the head.
pub fn cells(measured: &Measured) -> Vec<Vec<String>> {
    let mut names: Vec<&String> = measured.rows.iter().flat_map(|row| row.micros.keys()).collect();
    names.sort();
    names.dedup();
    let head = ["call", "size", "ranks"].into_iter().map(str::to_owned);
    let tail = ["Java by C", "asked", ""].into_iter().map(str::to_owned);
    let head: Vec<String> = head.chain(names.iter().map(|name| (*name).clone())).chain(tail).collect();
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let line = |row: &Row| {
        let is_reached = row.ratio.zip(row.limit).map(|(ratio, limit)| ratio <= limit);
        let reached = is_reached.map_or("", |reached| if reached { "reached" } else { "missed" });
        let times = names.iter().map(|name| number(row.micros.get(*name).copied()));
        let first = [row.call.clone(), row.number.to_string(), row.ranks.to_string()];
        let last = [number(row.ratio), number(row.limit), reached.to_owned()];
        first.into_iter().chain(times).chain(last).collect()
    };
    [head].into_iter().chain(measured.rows.iter().map(line)).collect()
}

/// The rows as text.
pub fn table(measured: &Measured) -> String {
    let cells = cells(measured);
    let widths: Vec<usize> = (0..cells[0].len())
        .map(|column| cells.iter().map(|line| line[column].len()).max().unwrap_or_default())
        .collect();
    let line = |line: &Vec<String>| {
        let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        padded.collect::<String>().trim_end().to_owned() + "\n"
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contestant(name: &str, is_java: bool) -> Contestant {
        Contestant { name: name.into(), words: vec![], is_java }
    }

    fn lines(rows: &[(&str, f64)]) -> Lines {
        rows.iter().map(|(row, micros)| ((*row).to_owned(), *micros)).collect()
    }

    #[test]
    fn rows_are_selected_by_parts_of_their_names() {
        let wanted = ["bcast".to_owned(), ":1000".to_owned()];
        assert_eq!(selected(&wanted, false), ["bcast:8", "bcast:65536", "bcast:1048576", "bcast:16777216"]);
        assert_eq!(selected(&wanted, true)[4..], ["allreduce:1000", "function:1000"]);
        assert_eq!(selected(&[], false).len(), 22);
    }

    #[test]
    fn ratio_is_that_of_the_medians_to_the_better_c() {
        let java = (contestant("Java", true), vec![lines(&[("bcast:8", 3.0)]), lines(&[("bcast:8", 1.0)])]);
        let slow = (contestant("C 1", false), vec![lines(&[("bcast:8", 9.0)])]);
        let fast = (contestant("C 2", false), vec![lines(&[("bcast:8", 1.0)])]);
        let rows = rows(2, &[java, slow, fast]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].ratio, rows[0].limit), (Some(2.0), Some(1.0)));
    }

    #[test]
    fn table_has_a_column_for_each_contestant() {
        let environment = Environment::now([], std::path::Path::new("/"), std::ffi::OsStr::new("true"));
        let row = Row {
            call: "bcast".into(),
            number: 8,
            ranks: 2,
            micros: lines(&[("C", 2.0), ("Java", 1.0)]),
            ratio: Some(0.5),
            limit: Some(1.0),
        };
        let measured = Measured { environment, jobs: 1, rows: vec![row] };
        let expected = "\
call   size  ranks     C  Java  Java by C  asked
bcast     8      2  2.00  1.00       0.50   1.00  reached
";
        assert_eq!(table(&measured), expected);
    }

    #[test]
    fn line_is_a_row_and_a_number() {
        assert_eq!(line("bcast:8 1.25"), Some(("bcast:8".to_owned(), 1.25)));
        assert_eq!((line("bcast:8"), line("a warning of the launcher")), (None, None));
    }
}
