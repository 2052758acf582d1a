//! Files of the tree, and how findings in them are reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::text::{Piece, PieceKind, pieces, without_test_items};

/// Folders whose contents are generated.
const GENERATED: [&str; 4] = ["target", "build", ".git", ".gradle"];

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a member of the workspace").to_owned()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file of the project, by its path from the root, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pieces: OnceLock<Vec<Piece>>,
    product: OnceLock<String>,
}

impl Source {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Source { path: path.into(), text: text.into(), pieces: OnceLock::new(), product: OnceLock::new() }
    }

    /// The text before the unit tests.
    pub(crate) fn without_tests(&self) -> &str {
        let ends = ["\n#[cfg(test)]", "\n#[cfg(all(test"].map(|mark| self.text.find(mark));
        let end = ends.into_iter().flatten().min().unwrap_or(self.text.len());
        &self.text[..end]
    }

    /// Lines of code before the unit tests with their numbers, without `//` comments.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.without_tests().lines().map(|line| line.split("//").next().unwrap_or(line));
        (1..).zip(code)
    }

    /// The text as comments, strings and code.
    pub(crate) fn pieces(&self) -> &[Piece] {
        self.pieces.get_or_init(|| pieces(&self.text, self.path.ends_with(".java")))
    }

    /// Lines of all comments and strings with their numbers.
    pub(crate) fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let prose = self.pieces().iter().filter(|piece| piece.kind != PieceKind::Code);
        prose.flat_map(|piece| (piece.line..).zip(piece.text.lines()))
    }

    /// Code of the product: comments, contents of strings and test items are blank, line breaks remain.
    pub(crate) fn product(&self) -> &str {
        self.product.get_or_init(|| without_test_items(&code_only(self.pieces())))
    }

    /// Whether the whole file is a test, a benchmark or a tool for one.
    pub(crate) fn is_test(&self) -> bool {
        let folders = [
            "/tests/",
            "/benches/",
            "/test/",
            "/mpiTest/",
            "/compatTest/",
            "/testSupport/",
            "/benchTest/",
            "/jmh/",
        ];
        let crates = ["tests/", "rust/fuzz/", "rust/bench/", "rust/sim/", "rust/testing/", "rust/unet/"];
        folders.iter().any(|folder| self.path.contains(folder))
            || crates.iter().any(|name| self.path.starts_with(name))
            || self.path.ends_with("/tests.rs")
    }
}

/// The text of the code, and blanks in the place of all other characters but line breaks.
pub(crate) fn code_only(pieces: &[Piece]) -> String {
    let mut code = String::new();
    for piece in pieces {
        match piece.kind {
            PieceKind::Code => code.push_str(&piece.text),
            _ => code.extend(piece.text.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
        }
    }
    code
}

/// All files below a folder whose names have this ending.
pub(crate) fn sources(folder: &str, extension: &str) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !GENERATED.contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(extension) {
                let inside = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
                found.push(Source::new(inside, read(&path)));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// All Rust files, read once.
pub(crate) fn rust_sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| ["rust", "tests"].iter().flat_map(|folder| sources(folder, ".rs")).collect())
}

/// All Java files, read once.
pub(crate) fn java_sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| ["java", "tests"].iter().flat_map(|folder| sources(folder, ".java")).collect())
}

/// Folders of the Java classes that are installed.
pub(crate) const PRODUCT: [&str; 3] = ["java/src/core/", "java/src/main/", "java/src/mpi/"];

/// The Java files that are installed.
pub(crate) fn product_sources() -> impl Iterator<Item = &'static Source> {
    java_sources().iter().filter(|source| PRODUCT.iter().any(|folder| source.path.starts_with(folder)))
}

/// All documents, read once.
pub(crate) fn documents() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| sources("", ".md"))
}

/// The first two folders of a path: a crate, or a set of Java sources.
pub(crate) fn area(path: &str) -> String {
    path.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// Fails with all findings, not only the first.
#[track_caller]
pub(crate) fn none(findings: Vec<String>, rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

/// Fails with findings that are not known, and with known ones that no longer occur: the list only shrinks.
#[track_caller]
pub(crate) fn none_but(known: &[&str], findings: Vec<(String, String)>, rule: &str) {
    let (new, fixed) = compare(known, &findings);
    none(new, rule);
    none(fixed, "a known exception that no longer occurs; delete it from the list in tests/tidy");
}

/// Findings as (key, message): messages of those whose key is not known, and known keys without a finding.
fn compare(known: &[&str], findings: &[(String, String)]) -> (Vec<String>, Vec<String>) {
    let new = findings.iter().filter(|(key, _)| !known.contains(&key.as_str()));
    let new = new.map(|(_, message)| message.clone()).collect();
    let fixed = known.iter().filter(|key| !findings.iter().any(|(found, _)| found == *key));
    (new, fixed.map(|key| (*key).to_owned()).collect())
}

#[test]
fn exceptions_are_reported_when_new_and_when_fixed() {
    let findings = [("a", "a.rs:1"), ("b", "b.rs:2")].map(|(k, m)| (k.to_owned(), m.to_owned()));
    let (new, fixed) = compare(&["b", "c"], &findings);
    assert_eq!((new, fixed), (vec!["a.rs:1".to_owned()], vec!["c".to_owned()]));
}
