//! Measured figures in documents and comments.

use crate::text::PieceKind;
use crate::tree::{Source, documents, java_sources, none, rust_sources};

/// Places of figures, and documents whose times and rates are those of a protocol.
const PLACES: [&str; 4] = ["docs/performance/", "docs/decisions/", "docs/spec/", "rust/proto/PROTOCOL.md"];
/// The README shows a few figures in this section.
const SUMMARY: (&str, &str) = ("README.md", "## Performance");
/// Units of measurements. Limits and settings are in milliseconds and seconds.
const UNITS: [&str; 9] = ["ns", "us", "µs", "MiB/s", "GiB/s", "MB/s", "GB/s", "Mbit/s", "Gbit/s"];

/// Numbers with a unit of a measurement, with their lines.
fn figures(path: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut section = "";
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("## ") {
            section = line;
        }
        if (path, section) == SUMMARY {
            continue;
        }
        let mut words =
            line.split(|c: char| c.is_whitespace() || "|()`,;".contains(c)).filter(|w| !w.is_empty());
        let mut before = words.next().unwrap_or_default();
        for word in words {
            let is_number = before.ends_with(|c: char| c.is_ascii_digit());
            let is_ratio = word == "x" && before.contains('.');
            if is_number && (is_ratio || UNITS.contains(&word.trim_end_matches('.'))) {
                found.push((number, format!("{before} {word}")));
            }
            before = word;
        }
    }
    found
}

/// Code whose comments have times and rates of a protocol or a format, and not of a measurement.
const PROTOCOLS: [&str; 7] = [
    "rust/proto/src/datagram/layout.rs",
    "rust/sim/",
    "rust/proto/src/datagram/reliable/pacing.rs",
    "rust/proto/src/datagram/reliable/pending_acks.rs",
    "rust/proto/tests/datagram/",
    "rust/bench/src/",
    "tests/tidy/",
];

/// Figures in the comments of a source.
fn figures_of_comments(source: &Source) -> Vec<(usize, String)> {
    let comments = source.pieces().iter().filter(|piece| piece.kind == PieceKind::Comment);
    let mut found = Vec::new();
    for comment in comments {
        let figures = figures(&source.path, &comment.text).into_iter();
        found.extend(figures.map(|(line, figure)| (comment.line + line - 1, figure)));
    }
    found
}

#[test]
fn comments_leave_figures_to_decision_records() {
    let sources = rust_sources().iter().chain(java_sources());
    let sources = sources.filter(|source| !PROTOCOLS.iter().any(|place| source.path.starts_with(place)));
    let findings = sources.flat_map(|source| {
        let found = figures_of_comments(source).into_iter();
        found.map(|(line, figure)| format!("{}:{line}: {figure}", source.path))
    });
    none(findings.collect(), "a measured figure in a comment; move it to a record in docs/decisions");
}

#[test]
fn figures_in_comments_are_found_with_their_lines() {
    let source = Source::new("rust/x.rs", "fn f() {\n    // fast\n    /* is\n 20 ns */ a(\"5 us\");\n}");
    assert_eq!(figures_of_comments(&source), [(4, "20 ns".to_owned())]);
}

#[test]
fn documents_leave_figures_to_the_performance_pages() {
    let others = documents().iter().filter(|d| !PLACES.iter().any(|place| d.path.starts_with(place)));
    let findings = others.flat_map(|document| {
        let found = figures(&document.path, &document.text).into_iter();
        found.map(|(line, figure)| format!("{}:{line}: {figure}", document.path))
    });
    none(
        findings.collect(),
        "a figure outside docs/performance and docs/decisions; move it there and link to it",
    );
}

#[test]
fn figures_are_numbers_with_units_of_measurements() {
    let text = "takes 331 ns.\nafter 20 ms, 2 x 3\n## Performance\n| 1.2 MiB/s | 1.1 x";
    let lines = |path: &str| figures(path, text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(lines("docs/user/launcher.md"), [1, 4, 4]);
    assert_eq!(lines("README.md"), [1]);
}
