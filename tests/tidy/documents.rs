//! Lengths of the documents in the root folder, the width of their prose, and the form of decision records.

use crate::tree::{documents, none};

/// Documents with the lines that each may have.
const LINES_MAX: [(&str, usize); 3] =
    [("README.md", 200), ("ARCHITECTURE.md", 250), ("CONTRIBUTING.md", 120)];
/// Documents of other widths: specifications, and the pages that a command writes.
const WIDE: [&str; 3] = ["rust/", "docs/spec/", "docs/performance/2"];
/// Columns of a line of prose.
const WIDTH_MAX: usize = 120;

/// Lines of prose that are too wide, with their columns. Code and rows of tables cannot be wrapped.
fn wide_lines(text: &str) -> Vec<(usize, usize)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        is_code ^= line.starts_with("```");
        let is_prose = !is_code && !line.starts_with('|') && !line.starts_with("    ");
        let columns = line.chars().count();
        if is_prose && columns > WIDTH_MAX {
            found.push((number, columns));
        }
    }
    found
}

#[test]
fn documents_are_not_longer_than_allowed() {
    let mut findings = Vec::new();
    for (path, max) in LINES_MAX {
        let document = documents().iter().find(|document| document.path == path);
        let lines = document.unwrap_or_else(|| panic!("no {path}")).text.lines().count();
        if lines > max {
            findings.push(format!("{path}: {lines} lines, {max} allowed"));
        }
    }
    none(findings, "a document that is too long; shorten it, or move a part into docs/");
}

#[test]
fn prose_of_documents_is_not_too_wide() {
    let is_ours = |path: &str| !WIDE.iter().any(|place| path.starts_with(place));
    let documents = documents().iter().filter(|document| is_ours(&document.path));
    let findings = documents.flat_map(|document| {
        let wide = wide_lines(&document.text).into_iter();
        wide.map(|(line, columns)| format!("{}:{line}: {columns} columns", document.path))
    });
    none(findings.collect(), "prose of more than 120 columns; wrap it");
}

/// Folder of the decision records, and the sections of each.
const DECISIONS: (&str, [&str; 4]) =
    ("docs/decisions/", ["## Context", "## Decision", "## Consequences", "## Alternatives"]);

#[test]
fn decision_records_have_their_sections_and_are_listed() {
    let (folder, sections) = DECISIONS;
    let index = format!("{folder}README.md");
    let list = &documents().iter().find(|document| document.path == index).expect("the list of records").text;
    let mut findings = Vec::new();
    for record in documents().iter().filter(|record| record.path.starts_with(folder) && record.path != index)
    {
        if !list.contains(&format!("({})", &record.path[folder.len()..])) {
            findings.push(format!("{}: not in {index}", record.path));
        }
        let has = |section: &&str| record.text.lines().any(|line| line.starts_with(section));
        let missing = sections.iter().filter(|section| !has(section));
        findings.extend(missing.map(|section| format!("{}: no {section:?}", record.path)));
    }
    none(findings, "a decision record without a section, or without a line in the list");
}

#[test]
fn wide_prose_is_found_outside_code_and_tables() {
    let long = "word ".repeat(30);
    let text = format!("{long}\n| {long}|\n```\n{long}\n```\n    {long}\n- {long}");
    assert_eq!(wide_lines(&text).into_iter().map(|(line, _)| line).collect::<Vec<_>>(), [1, 7]);
}
