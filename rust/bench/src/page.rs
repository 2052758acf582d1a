//! Page of docs/performance: runs of `figures` and of `series` as Markdown, with the charts beside it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use serde::Deserialize;

use super::chart;
use super::environment::{Environment, UNKNOWN};
use super::figures::{Held, Limit, Verdict, short};
use super::report::{Absent, Row, Unit, processors, size, table, time};
use super::series::{Cliff, STEP_MAX};

/// One run of `figures` or of `series`, as its JSON has it.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// Environment of the run.
    pub environment: Option<Environment>,
    /// Targets beside what was measured.
    #[serde(default)]
    pub figures: Vec<Held>,
    /// Everything that took turns.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// Of a series.
    pub cliffs: Option<Vec<Cliff>>,
    /// Contestants that could not be started.
    #[serde(default)]
    pub absent: Vec<Absent>,
}

/// The page of runs with these names.
pub fn page(runs: &[(String, Run)]) -> String {
    let month = month(runs);
    let mut text = format!("# Performance, {month}\n\n");
    text += "`mpjdev-bench report` writes this page from runs of `mpjdev-bench figures` and `series`; it is \
             not edited by hand. [Method](README.md#method).\n\n";
    text += &origins(runs);
    for (name, run) in runs {
        text += &match &run.cliffs {
            Some(cliffs) => series_section(name, run, cliffs, month),
            None => section(name, run),
        };
    }
    text
}

/// Charts of the series among these runs: name of a file beside the page, and its SVG.
///
/// # Errors
/// A chart does not fit into its picture.
pub fn charts(runs: &[(String, Run)]) -> io::Result<Vec<(String, String)>> {
    let mut charts = Vec::new();
    for (name, run) in runs.iter().filter(|(_, run)| run.cliffs.is_some()) {
        let svg = chart::draw(&format!("One way between two ranks: {name}"), &run.rows)?;
        charts.extend(svg.map(|svg| (chart_file(month(runs), name), svg)));
    }
    Ok(charts)
}

fn chart_file(month: &str, name: &str) -> String {
    format!("{month}-{}.svg", name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
}

/// The latest month of the runs, as 2026-11.
fn month(runs: &[(String, Run)]) -> &str {
    let environments = runs.iter().filter_map(|(_, run)| run.environment.as_ref());
    let months = environments.filter_map(|environment| environment.date.get(..7));
    months.max().unwrap_or(UNKNOWN)
}

/// Table of the environments of all runs.
fn origins(runs: &[(String, Run)]) -> String {
    let mut text = row(&["run", "date", "commit", "processor", "kernel", "JDK"].map(String::from));
    text += &rule(6);
    for (name, run) in runs {
        let unknown = || std::array::from_fn(|_| UNKNOWN.to_owned());
        let of = |environment: &Environment| {
            let processor = format!("{} x {}", environment.processors, environment.processor);
            let Environment { date, commit, kernel, jdk, .. } = environment.clone();
            [date, commit, processor, kernel, jdk]
        };
        let words: [String; 5] = run.environment.as_ref().map_or_else(unknown, of);
        text += &row(&[std::slice::from_ref(name), &words[..]].concat());
    }
    text
}

/// Name and command line of a run.
fn head(name: &str, run: &Run) -> String {
    let command = run.environment.as_ref().map(|environment| format!("    {}\n\n", environment.command));
    format!("\n## {name}\n\n{}", command.unwrap_or_default())
}

/// A series: its chart and its cliffs.
fn series_section(name: &str, run: &Run, cliffs: &[Cliff], month: &str) -> String {
    let mut text = head(name, run) + &format!("![Time over size: {name}]({})\n\n", chart_file(month, name));
    if cliffs.is_empty() {
        text += &format!("No step between neighbouring sizes is more than {STEP_MAX} x.\n");
    } else {
        text += &format!("Steps of more than {STEP_MAX} x between neighbouring sizes, measured twice:\n\n");
        text += &row(&["contestant", "case", "size", "time", "next size", "time", "step"].map(String::from));
        text += &rule(7);
        for cliff in cliffs {
            let [smaller, larger] = [0, 1].map(|at| [size(cliff.octets[at]), time(cliff.nanos[at])]);
            let ends = [cliff.name.clone(), cliff.case.title().to_owned()];
            let step = [format!("{:.2} x", cliff.ratio())];
            text += &row(&[&ends[..], &smaller, &larger, &step].concat());
        }
    }
    text + &without(&run.absent)
}

fn section(name: &str, run: &Run) -> String {
    let mut text = head(name, run);
    text += &row(&["row", "asked", "measured", "ours", "beside", "others", ""].map(String::from));
    text += &rule(7);
    let nanos = |value: Option<f64>| value.map_or(String::new(), time);
    for figure in &run.figures {
        text += &row(&[
            figure.title.clone(),
            asked(figure.asked),
            figure.measured.map_or(String::new(), short),
            nanos(figure.ours),
            nanos(figure.against),
            figure.others.map_or(String::new(), |_| processors(figure.others)),
            verdict(figure.verdict).to_owned(),
        ]);
    }
    text += &summary(&run.figures);
    text + &without(&run.absent) + &times(&run.rows)
}

/// Contestants that are not there.
fn without(absent: &[Absent]) -> String {
    let line = |Absent { name, why }: &Absent| {
        format!("\n{name} did not take part: {}\n", why.lines().next().unwrap_or_default())
    };
    absent.iter().map(line).collect()
}

fn asked(limit: Limit) -> String {
    match limit {
        Limit::Most(most) => format!("at most {}", short(most)),
        Limit::Least(least) => format!("at least {}", short(least)),
        Limit::None => String::new(),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reached => "reached",
        Verdict::Missed => "**missed**",
        Verdict::Reported => "reported",
        Verdict::Unknown => "not measured",
    }
}

/// Number of reached targets.
fn summary(figures: &[Held]) -> String {
    let targets = || figures.iter().filter(|figure| figure.asked != Limit::None);
    let count = |verdict| targets().filter(|figure| figure.verdict == verdict).count();
    format!(
        "\n{} targets: {} reached, {} missed, {} not measured.\n",
        targets().count(),
        count(Verdict::Reached),
        count(Verdict::Missed),
        count(Verdict::Unknown)
    )
}

/// Medians of all contestants, a table for each number of ranks.
fn times(rows: &[Row]) -> String {
    let mut by_ranks: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    for row in rows {
        by_ranks.entry(row.ranks).or_default().push(row.clone());
    }
    let mut text = String::new();
    for (ranks, rows) in by_ranks {
        // A text takes any of this.
        let _ = write!(
            text,
            "\nMedian times of {ranks} ranks:\n\n```text\n{}```\n",
            table(&rows, &[], Unit::Time)
        );
    }
    text
}

/// A line of a table. What would end a cell is escaped.
fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
        "environment": {"command": "mpjdev-bench figures --transport shm", "date": "2026-11-23", "commit": "abc1234",
            "processor": "Some CPU", "processors": 2, "kernel": "Linux 6.1", "jdk": "openjdk 17"},
        "rows": [{"case": "arrays", "octets": 8, "ranks": 2, "mode": "fast", "line": 30.0, "others": 0.0,
            "contestants": [{"name": "Java shm", "median": 331.0, "best": 320.0, "extra": 0.0, "turns": 9}]}],
        "figures": [
            {"title": "8 B | arrays", "asked": {"most": 1.3}, "measured": 1.27, "verdict": "reached", "ours": 331.0,
                "against": 257.0, "mode": "fast", "line": 30.0, "others": 0.0},
            {"title": "speed", "asked": {"least": 5.0}, "measured": 4.0, "verdict": "missed", "ours": null,
                "against": null, "mode": "mixed", "line": null, "others": null},
            {"title": "only told", "asked": "none", "measured": null, "verdict": "unknown", "ours": null,
                "against": null, "mode": "mixed", "line": null, "others": null}],
        "absent": [{"name": "C MPICH", "why": "it is not installed\nat all"}]
    }"#;

    #[test]
    fn page_has_every_row_with_what_is_asked_measured_and_beside() {
        let runs = [("shm".to_owned(), serde_json::from_str(JSON).expect("a run"))];
        let text = page(&runs);
        for line in [
            "# Performance, 2026-11",
            "| shm | 2026-11-23 | abc1234 | 2 x Some CPU | Linux 6.1 | openjdk 17 |",
            "## shm",
            "    mpjdev-bench figures --transport shm",
            "| 8 B \\| arrays | at most 1.30 | 1.27 | 331 ns | 257 ns | 0.0 CPU | reached |",
            "| speed | at least 5.00 | 4.00 |  |  |  | **missed** |",
            "| only told |  |  |  |  |  | not measured |",
            "2 targets: 1 reached, 1 missed, 0 not measured.",
            "C MPICH did not take part: it is not installed",
            "Median times of 2 ranks:",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("array to array   8 B    331 ns    30.0 ns  0.0 CPU\n```\n"), "{text}");
    }

    #[test]
    fn series_has_its_chart_beside_the_page_and_its_cliffs() {
        let json = r#"{
            "rows": [{"case": "direct", "octets": 8, "ranks": 2, "mode": "fast", "line": 30.0, "others": 0.0,
                "contestants":
                    [{"name": "Java shm", "median": 331.0, "best": 320.0, "extra": 0.0, "turns": 9}]}],
            "cliffs": [{"name": "Java shm", "case": "direct", "octets": [8, 16], "nanos": [331.0, 662.0]}]}"#;
        let run = |json: &str| serde_json::from_str(json).expect("a run");
        let runs = [("a series".to_owned(), run(json)), ("flat".to_owned(), run(r#"{"cliffs": []}"#))];
        let text = page(&runs);
        for line in [
            "![Time over size: a series](unknown-a-series.svg)",
            "| Java shm | array to array, direct | 8 B | 331 ns | 16 B | 662 ns | 2.00 x |",
            "No step between neighbouring sizes is more than 1.6 x.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let charts = charts(&runs).expect("they fit");
        let names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["unknown-a-series.svg"], "without rows there is nothing to draw");
        assert!(charts[0].1.contains("One way between two ranks: a series"), "{}", charts[0].1);
    }

    #[test]
    fn run_without_an_environment_is_unknown() {
        let run = serde_json::from_str(r#"{"figures": []}"#).expect("a run");
        let text = page(&[("old".to_owned(), run)]);
        assert!(text.starts_with("# Performance, unknown\n"), "{text}");
        assert!(text.contains("| old | unknown | unknown | unknown | unknown | unknown |\n"), "{text}");
    }
}
