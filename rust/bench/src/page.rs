//! Page of docs/performance: runs of `figures` as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use super::environment::{Environment, UNKNOWN};
use super::figures::{Held, Limit, Verdict, short};
use super::report::{Absent, Row, Unit, processors, table, time};

/// One run of `figures`, as its JSON has it.
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
    /// Contestants that could not be started.
    #[serde(default)]
    pub absent: Vec<Absent>,
}

/// The page of runs with these names.
pub fn page(runs: &[(String, Run)]) -> String {
    let environments = runs.iter().filter_map(|(_, run)| run.environment.as_ref());
    let month = environments.map(|environment| environment.date.get(..7).unwrap_or(UNKNOWN)).max();
    let mut text = format!("# Performance, {}\n\n", month.unwrap_or(UNKNOWN));
    text += "`mpjdev-bench report` writes this page from runs of `mpjdev-bench figures`; it is not edited by \
             hand. [Method](README.md#method).\n\n";
    text += &origins(runs);
    for (name, run) in runs {
        text += &section(name, run);
    }
    text
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

fn section(name: &str, run: &Run) -> String {
    let mut text = format!("\n## {name}\n\n");
    if let Some(environment) = &run.environment {
        text += &format!("    {}\n\n", environment.command);
    }
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
    for Absent { name, why } in &run.absent {
        text += &format!("\n{name} did not take part: {}\n", why.lines().next().unwrap_or_default());
    }
    text + &times(&run.rows)
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
    fn run_without_an_environment_is_unknown() {
        let run = serde_json::from_str(r#"{"figures": []}"#).expect("a run");
        let text = page(&[("old".to_owned(), run)]);
        assert!(text.starts_with("# Performance, unknown\n"), "{text}");
        assert!(text.contains("| old | unknown | unknown | unknown | unknown | unknown |\n"), "{text}");
    }
}
