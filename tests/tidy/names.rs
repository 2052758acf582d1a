//! Names and lengths of files.

use crate::known;
use crate::tree::{java_sources, none, none_but, rust_sources};

/// Lines of a file without its tests.
const LINES_MAX: usize = 600;
/// Nouns of the field, or of the platform, that end like gerunds.
const NOUNS: [&str; 9] = [
    "binding",
    "encoding",
    "logging",
    "matching",
    "pacing",
    "recording",
    "ring",
    "string",
    "troubleshooting",
];

/// The last word of a file's name if it is a gerund.
fn gerund(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?.split('.').next()?;
    let last_capital = name.rfind(char::is_uppercase).unwrap_or(0);
    let word = name[last_capital..].rsplit('_').next()?.to_lowercase();
    let singular = word.trim_end_matches('s');
    (singular.ends_with("ing") && !NOUNS.contains(&singular) && word != "settings").then_some(word)
}

#[test]
fn files_are_named_by_nouns() {
    let sources = rust_sources().iter().chain(java_sources());
    let gerunds = sources.filter_map(|source| Some((source.path.clone(), gerund(&source.path)?)));
    let findings = gerunds.map(|(path, word)| (path.clone(), format!("{path}: {word}"))).collect();
    none_but(
        &known::GERUND_FILES,
        findings,
        "a gerund as the name of a file; name it by the noun that it defines",
    );
}

#[test]
fn files_are_short_enough_to_be_read() {
    let long = rust_sources().iter().filter_map(|source| {
        let lines = source.without_tests().lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", source.path))
    });
    none(long.collect(), "more than 600 lines before the tests; divide the file");
}

#[test]
fn gerunds_are_distinguished_from_nouns() {
    for name in ["a/sending.rs", "a/mod_telling.rs", "NowComputing.java", "endings.rs"] {
        assert!(gerund(name).is_some(), "{name}");
    }
    for name in ["a/ring.rs", "ObjectRing.java", "settings.rs", "sending/mod.rs", "credit.rs", "encoding.rs"]
    {
        assert_eq!(gerund(name), None, "{name}");
    }
}
