//! Section of the JMH benchmarks, from the report.json of `./gradlew bench`.

use serde::Deserialize;

use super::{row, rule};
use crate::environment::Environment;
use crate::figures::short;

/// Report of the JMH benchmarks.
#[derive(Debug, Deserialize)]
pub struct JmhReport {
    /// Environment of the run.
    pub environment: Option<Environment>,
    rows: Vec<JmhRow>,
    #[serde(default)]
    contestants: Vec<Contestant>,
}

/// Name of a column and its meaning.
#[derive(Debug, Deserialize)]
struct Contestant {
    name: String,
    meaning: String,
}

/// Row of a table.
#[derive(Debug, Deserialize)]
struct JmhRow {
    group: String,
    row: String,
    columns: Vec<Column>,
    figure: Option<String>,
    ratio: Option<f64>,
    verdict: Option<String>,
}

/// Result of mpjdev or of a baseline.
#[derive(Debug, Deserialize)]
struct Column {
    name: String,
    text: String,
}

/// The contestants, a table for each group of rows, and the number of reached targets.
pub(super) fn section(report: &JmhReport) -> String {
    let mut text = contestants(&report.contestants);
    let mut groups: Vec<&str> = Vec::new();
    for jmh_row in &report.rows {
        if !groups.contains(&jmh_row.group.as_str()) {
            groups.push(&jmh_row.group);
        }
    }
    for group in groups {
        let rows: Vec<&JmhRow> = report.rows.iter().filter(|jmh_row| jmh_row.group == group).collect();
        text += &table(group, &rows);
    }
    text + &summary(&report.rows)
}

/// Table of the contestants by the names of their columns.
fn contestants(contestants: &[Contestant]) -> String {
    if contestants.is_empty() {
        return String::new();
    }
    let mut text = row(&["column", "contestant"].map(String::from)) + &rule(2);
    text.extend(contestants.iter().map(|one| row(&[one.name.clone(), one.meaning.clone()])));
    text
}

/// Number of reached targets. A row is level if it misses its target by less than the accuracy.
fn summary(rows: &[JmhRow]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict.as_deref() == Some(verdict)).count();
    let [reached, level, missed] = ["reached", "level", "missed"].map(count);
    format!("\n{} targets: {reached} reached, {level} level, {missed} missed.\n", reached + level + missed)
}

fn table(group: &str, rows: &[&JmhRow]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for column in rows.iter().flat_map(|jmh_row| &jmh_row.columns) {
        if !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    let head = [&["row"], &names[..], &["ratio", "asked", ""]].concat();
    let mut text = format!("\n{group}:\n\n");
    text += &row(&head.iter().map(ToString::to_string).collect::<Vec<_>>());
    text += &rule(head.len());
    for jmh_row in rows {
        let of_name = |name: &&str| jmh_row.columns.iter().find(|column| column.name == *name);
        let mut cells = vec![jmh_row.row.clone()];
        cells.extend(names.iter().map(|name| of_name(name).map_or(String::new(), |c| c.text.clone())));
        cells.push(jmh_row.ratio.map_or(String::new(), short));
        cells.push(jmh_row.figure.clone().unwrap_or_default());
        cells.push(match jmh_row.verdict.as_deref() {
            Some("missed") => "**missed**".to_owned(),
            verdict => verdict.unwrap_or_default().to_owned(),
        });
        text += &row(&cells);
    }
    text
}
