//! Targets of logging: those of the events in the sources, those that `MPJDEV_LOG` may name, and those that
//! docs/user/logging.md lists.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{read, root, sources};

/// The levels, as the document orders them.
const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];
/// The beginning of an event's arguments.
const TARGET: &str = "target:";

/// The levels of each target.
type Targets = BTreeMap<String, BTreeSet<usize>>;

/// The text between the first two quotation marks.
fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

/// The targets of the events in a source, each with its level.
fn events(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for (level, name) in LEVELS.iter().enumerate() {
        for (at, call) in text.match_indices(&format!("{name}!(")) {
            let is_name = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let arguments = text[at + call.len()..].trim_start();
            if !is_name && let Some(target) = arguments.strip_prefix(TARGET) {
                found.extend(quoted(target).map(|target| (target, level)));
            }
        }
    }
    found
}

/// The targets of all programs.
fn emitted() -> Targets {
    let mut targets = Targets::new();
    let rust = sources("rust", ".rs");
    for source in rust.iter().filter(|source| source.path.contains("/src/")) {
        for (target, level) in events(source.without_tests()) {
            targets.entry(target.to_owned()).or_default().insert(level);
        }
    }
    targets
}

/// The rows of the document.
fn listed() -> Targets {
    let document = read(&root().join("docs/user/logging.md"));
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `mpjdev::"));
    let rows = rows.map(|row| {
        let mut cells = row.split(" | ");
        let target = cells.next().unwrap_or_default().trim_end_matches('`');
        let levels = cells.next().unwrap_or_default().split(", ").map(str::trim);
        let levels = levels.map(|level| LEVELS.iter().position(|known| *known == level).expect("a level"));
        (format!("mpjdev::{target}"), levels.collect())
    });
    rows.collect()
}

#[test]
fn targets_and_levels_of_the_document_are_those_of_the_events() {
    assert_eq!(listed(), emitted());
}

#[test]
fn targets_that_the_variable_may_name_are_those_of_the_events() {
    let filter = read(&root().join("rust/logging/src/filter.rs"));
    let list = filter.split("pub const TARGETS").nth(1).and_then(|rest| rest.split("];").next());
    let named: BTreeSet<String> =
        list.expect("the list").split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(named, emitted().into_keys().collect());
}

#[test]
fn events_are_found_on_one_line_and_on_several() {
    let source = "debug!(target: \"a\", \"x\"); tracing::warn!(\n    target: \"b\", n, \"y\"\n); my_info!(target: \"c\");";
    assert_eq!(events(source), [("b", 1), ("a", 3)]);
    assert_eq!(events("info!(\"no target\")"), []);
}
