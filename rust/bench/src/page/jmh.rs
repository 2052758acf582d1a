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

/// A table for each group of rows.
pub(super) fn section(report: &JmhReport) -> String {
    let mut text = String::new();
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
    text
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
