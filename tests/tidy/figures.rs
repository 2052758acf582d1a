//! Measured figures in documents.

use crate::tree::{documents, none};

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
            if is_number && UNITS.contains(&word.trim_end_matches('.')) {
                found.push((number, format!("{before} {word}")));
            }
            before = word;
        }
    }
    found
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
    let text = "takes 331 ns.\nafter 20 ms\n## Performance\n| 1.2 MiB/s |";
    let lines = |path: &str| figures(path, text).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(lines("docs/user/launcher.md"), [1, 4]);
    assert_eq!(lines("README.md"), [1]);
}
