//! Page of docs/performance: results of several runs as Markdown, with charts beside the page.

mod budget;
mod goodput;
mod jmh;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

use serde::Deserialize;
use serde_json::Value;

use jmh::JmhReport;

use super::budget::Budget;
use super::chart;
use super::environment::{Environment, UNKNOWN};
use super::figures::{CROWDED_JOBS, Figure, FigureStatus, Limit, short};
use super::goodput::Measured;
use super::protocol::Case;
use super::report::{Absent, Row, Unit, processors, size, table, time};
use super::series::{Cliff, STEP_MAX};

/// File that a section of a page is made from.
#[derive(Debug)]
pub enum Source {
    /// `figures --save` or `series --save`.
    Run(Run),
    /// `budget --save`.
    Budget(Budget),
    /// `goodput --save`.
    Goodput(Box<Measured>),
    /// report.json of `./gradlew bench`.
    Jmh(JmhReport),
}

impl Source {
    /// Parses a file, whose kind follows from its keys.
    ///
    /// # Errors
    /// The text is not JSON, or has not the keys of its kind.
    pub fn parse(json: &str) -> serde_json::Result<Source> {
        let value: Value = serde_json::from_str(json)?;
        if value.get("costs").is_some() {
            return serde_json::from_value(value).map(Source::Budget);
        }
        if value.get("streams").is_some() {
            return serde_json::from_value(value).map(|measured| Source::Goodput(Box::new(measured)));
        }
        if value["rows"][0].get("group").is_some() {
            return serde_json::from_value(value).map(Source::Jmh);
        }
        serde_json::from_value(value).map(Source::Run)
    }

    /// Whether the file has results.
    pub fn has_results(&self) -> bool {
        !matches!(self, Source::Run(run) if run.figures.is_empty() && run.cliffs.is_none())
    }

    fn environment(&self) -> Option<&Environment> {
        match self {
            Source::Run(run) => run.environment.as_ref(),
            Source::Budget(budget) => Some(&budget.environment),
            Source::Goodput(measured) => measured.environment(),
            Source::Jmh(report) => report.environment.as_ref(),
        }
    }

    fn section(&self, name: &str, month: &str) -> String {
        match self {
            Source::Run(run) => match &run.cliffs {
                Some(cliffs) => series_section(name, run, cliffs, month),
                None => figures_section(run),
            },
            Source::Budget(budget) => budget::section(budget),
            Source::Goodput(measured) => goodput::section(measured),
            Source::Jmh(report) => jmh::section(report),
        }
    }
}

/// A run of `figures` or `series`, as its JSON has it.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// Environment of the run.
    pub environment: Option<Environment>,
    /// Jobs whose medians the figures are; files of older versions have no number.
    pub jobs: Option<u8>,
    /// Figures of all targets.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Results of all contestants.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// Cliffs of a series.
    pub cliffs: Option<Vec<Cliff>>,
    /// Contestants that could not be started.
    #[serde(default)]
    pub absent: Vec<Absent>,
}

/// The page of sources with their names. A subject stands behind the month in the title.
pub fn page(subject: Option<&str>, sources: &[(String, Source)]) -> String {
    let month = month(sources);
    let subject = subject.map_or(String::new(), |subject| format!(": {subject}"));
    let mut text = format!("# Performance, {month}{subject}\n\n");
    text += "`mpjdev-bench report` writes this page from saved results; it is not edited by hand. \
             [Method](README.md#method).\n\n";
    text += &origins(sources);
    for (name, source) in sources {
        text += &head(name, source.environment());
        text += &source.section(name, month);
    }
    text
}

/// Charts of the series among these sources: name of a file beside the page, and its SVG.
///
/// # Errors
/// A chart does not fit into its picture.
pub fn charts(sources: &[(String, Source)]) -> io::Result<Vec<(String, String)>> {
    let mut charts = Vec::new();
    for (name, source) in sources {
        let Source::Run(run) = source else { continue };
        if run.cliffs.is_none() {
            continue;
        }
        let svg = chart::draw(&format!("One way between two ranks: {name}"), &run.rows)?;
        charts.extend(svg.map(|svg| (chart_file(month(sources), name), svg)));
    }
    Ok(charts)
}

fn chart_file(month: &str, name: &str) -> String {
    format!("{month}-{}.svg", name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
}

/// The latest month of the sources, as 2026-11.
fn month(sources: &[(String, Source)]) -> &str {
    let environments = sources.iter().filter_map(|(_, source)| source.environment());
    let months = environments.filter_map(|environment| environment.date.get(..7));
    months.max().unwrap_or(UNKNOWN)
}

/// Table of all environments.
fn origins(sources: &[(String, Source)]) -> String {
    let mut text = row(&["run", "date", "commit", "processor", "kernel", "JDK"].map(String::from));
    text += &rule(6);
    for (name, source) in sources {
        let unknown = || std::array::from_fn(|_| UNKNOWN.to_owned());
        let of = |environment: &Environment| {
            let processor = format!("{} x {}", environment.processors, environment.processor);
            let Environment { date, commit, kernel, jdk, .. } = environment.clone();
            [date, commit, processor, kernel, jdk]
        };
        let words: [String; 5] = source.environment().map_or_else(unknown, of);
        text += &row(&[std::slice::from_ref(name), &words[..]].concat());
    }
    text
}

/// Title and command line of a section.
fn head(name: &str, environment: Option<&Environment>) -> String {
    let command = environment.map(|environment| format!("    {}\n\n", environment.command));
    format!("\n## {name}\n\n{}", command.unwrap_or_default())
}

/// Section of a series: its chart and its cliffs.
fn series_section(name: &str, run: &Run, cliffs: &[Cliff], month: &str) -> String {
    let mut text = format!("![Time over size: {name}]({})\n\n", chart_file(month, name));
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

/// Section of figures: targets, absent contestants, times.
fn figures_section(run: &Run) -> String {
    figures(&run.figures) + &jobs(run) + &without(&run.absent) + &times(&run.rows)
}

/// Table of figures, and the number of reached ones.
fn figures(figures: &[Figure]) -> String {
    let mut text = row(&["row", "asked", "measured", "ours", "beside", "others", ""].map(String::from));
    text += &rule(7);
    let nanos = |value: Option<f64>| value.map_or(String::new(), time);
    for figure in figures {
        text += &row(&[
            figure.title.clone(),
            asked(figure.limit),
            figure.measured.map_or(String::new(), short),
            nanos(figure.ours),
            nanos(figure.against),
            figure.others.map_or(String::new(), |_| processors(figure.others)),
            status_text(figure.status).to_owned(),
        ]);
    }
    text + &summary(figures)
}

/// Absent contestants with their reasons.
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

fn status_text(status: FigureStatus) -> &'static str {
    match status {
        FigureStatus::Reached => "reached",
        FigureStatus::Missed => "**missed**",
        FigureStatus::Reported => "reported",
        FigureStatus::Unknown => "not measured",
    }
}

/// Number of jobs whose medians the figures are. Collective calls have as many for all numbers of ranks.
fn jobs(run: &Run) -> String {
    let count =
        |jobs: usize| if jobs == 1 { "one job".to_owned() } else { format!("the median of {jobs} jobs") };
    let jobs = run.jobs.map(usize::from);
    if run.rows.iter().any(|row| matches!(row.case, Case::Collective(_))) {
        return jobs.map_or(String::new(), |jobs| format!("\nA figure is of {}.\n", count(jobs)));
    }
    let jobs = jobs.map(|jobs| (count(jobs), count(jobs.max(CROWDED_JOBS))));
    jobs.map_or(String::new(), |(of_two, of_more)| {
        format!("\nA figure of two ranks is of {of_two}, a figure of more ranks of {of_more}.\n")
    })
}

/// Number of reached targets.
fn summary(figures: &[Figure]) -> String {
    let targets = || figures.iter().filter(|figure| figure.limit != Limit::None);
    let count = |status| targets().filter(|figure| figure.status == status).count();
    format!(
        "\n{} targets: {} reached, {} missed, {} not measured.\n",
        targets().count(),
        count(FigureStatus::Reached),
        count(FigureStatus::Missed),
        count(FigureStatus::Unknown)
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

/// A line of a table, with escaped bars.
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
            {"title": "only reported", "asked": "none", "measured": null, "verdict": "unknown", "ours": null,
                "against": null, "mode": "mixed", "line": null, "others": null}],
        "jobs": 5,
        "absent": [{"name": "C MPICH", "why": "it is not installed\nat all"}]
    }"#;

    #[test]
    fn page_has_every_row_with_what_is_asked_measured_and_beside() {
        let runs = [("shm".to_owned(), Source::parse(JSON).expect("a run"))];
        let text = page(Some("one machine"), &runs);
        for line in [
            "# Performance, 2026-11: one machine",
            "| shm | 2026-11-23 | abc1234 | 2 x Some CPU | Linux 6.1 | openjdk 17 |",
            "## shm",
            "    mpjdev-bench figures --transport shm",
            "| 8 B \\| arrays | at most 1.30 | 1.27 | 331 ns | 257 ns | 0.0 CPU | reached |",
            "| speed | at least 5.00 | 4.00 |  |  |  | **missed** |",
            "| only reported |  |  |  |  |  | not measured |",
            "A figure of two ranks is of the median of 5 jobs, a figure of more ranks of the median of 9 jobs.",
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
        let run = |json: &str| Source::parse(json).expect("a run");
        let runs = [("a series".to_owned(), run(json)), ("flat".to_owned(), run(r#"{"cliffs": []}"#))];
        let text = page(None, &runs);
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
        let run = Source::parse(r#"{"figures": []}"#).expect("a run");
        let text = page(None, &[("old".to_owned(), run)]);
        assert!(text.starts_with("# Performance, unknown\n"), "{text}");
        assert!(text.contains("| old | unknown | unknown | unknown | unknown | unknown |\n"), "{text}");
    }

    #[test]
    fn jmh_rows_become_a_table_per_group() {
        let json = r#"{
            "environment": {"command": "./gradlew bench", "date": "2026-11-24", "commit": "abc1234",
                "processor": "Some CPU", "processors": 2, "kernel": "Linux 6.1", "jdk": "openjdk 17"},
            "rows": [
                {"group": "One section", "row": "write 8 B", "columns": [
                    {"name": "ours", "value": 15.0, "text": "15.0 ns"}, {"name": "region", "value": 10.0, "text": "10.0 ns"}], "figure": "at most 1.8 x region",
                    "ratio": 1.5, "verdict": "reached"},
                {"group": "Other", "row": "read", "columns": [{"name": "ours", "value": null, "text": "-"}]}],
            "contestants": [{"name": "ours", "meaning": "mpjdev"}]}"#;
        let text = page(None, &[("jmh".to_owned(), Source::parse(json).expect("a report"))]);
        for line in [
            "    ./gradlew bench",
            "One section:",
            "| row | ours | region | ratio | asked |  |",
            "| write 8 B | 15.0 ns | 10.0 ns | 1.50 | at most 1.8 x region | reached |",
            "| read | - |  |  |  |",
            "| ours | mpjdev |",
            "1 targets: 1 reached, 0 level, 0 missed.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
