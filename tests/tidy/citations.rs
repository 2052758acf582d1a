//! Citations of the notes in `docs/spec`.

use std::collections::HashSet;

use crate::known;
use crate::tree::{area, documents, java_sources, none_but, read, root, rust_sources};

/// Name in a citation, and the document with the sections.
const NOTES: [(&str, &str); 3] = [("IMPI", "impi"), ("U-Net", "unet"), ("mpjdev", "mpjdev")];
/// Folder whose citations without a name are of the notes on U-Net.
const UNET_FOLDERS: [&str; 2] = ["rust/proto/src/datagram", "rust/unet"];

/// Numbers of the headings of a document: `8.6` of `### 8.6 Cancelling a send`.
fn sections(document: &str) -> HashSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let numbers = headings.filter_map(|line| line.trim_start_matches('#').split_whitespace().next());
    numbers.map(|number| number.trim_end_matches(['.', ':']).to_owned()).collect()
}

/// Sections that a line cites of the notes with this name: `IMPI 8.6`, `IMPI 3, 7.1 and 9`.
fn cited(line: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices(name) {
        let is_part =
            line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "-_/.`".contains(c));
        let mut rest = &line[at + name.len()..];
        while !is_part && let Some((number, behind)) = leading_section(rest) {
            found.push(number);
            let joints = [", ", " and ", "; ", " to "];
            // A number behind a comma is a section only if it has a dot: "IMPI 7.1, 64 octets".
            let next = joints.iter().find_map(|joint| behind.strip_prefix(joint));
            rest = match next.filter(|next| next.split([' ', ',', ')', ';']).next().is_some_and(is_dotted)) {
                Some(_) => &behind[behind.find(' ').unwrap_or(0)..],
                None => break,
            };
            rest = rest.strip_prefix(" and").or(rest.strip_prefix(" to")).unwrap_or(rest);
        }
    }
    found
}

fn is_dotted(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ':']);
    word.contains('.')
        && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// The number of a section behind one blank, and what follows it. Versions (`0.1`) are no sections.
fn leading_section(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix(' ')?;
    let len = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text[..len].trim_end_matches('.');
    let behind = &text[number.len()..];
    let ends = !behind.starts_with(|c: char| c.is_alphanumeric() || c == '-');
    (!number.is_empty() && !number.starts_with("0.") && ends).then(|| (number.to_owned(), behind))
}

/// Sections in brackets without a name: `(5.5)`, `(5.2, 5.10)`.
fn bare_citations(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for inner in line.split('(').skip(1).filter_map(|rest| rest.split_once(')')).map(|(inner, _)| inner) {
        if inner.split(", ").all(is_dotted) {
            found.extend(inner.split(", ").map(str::to_owned));
        }
    }
    found
}

#[test]
fn citations_lead_to_sections_of_the_notes() {
    let notes =
        NOTES.map(|(name, file)| (name, sections(&read(&root().join(format!("docs/spec/{file}.md"))))));
    let unet = &notes[1].1;
    let mut findings = Vec::new();
    let mut check = |path: &str, number: usize, line: &str, is_comment: bool| {
        for (name, sections) in &notes {
            let missing = cited(line, name).into_iter().filter(|section| !sections.contains(section));
            findings
                .extend(missing.map(|section| (area(path), format!("{path}:{number}: {name} {section}"))));
        }
        if is_comment && UNET_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
            let missing = bare_citations(line).into_iter().filter(|section| !unet.contains(section));
            findings.extend(missing.map(|section| (area(path), format!("{path}:{number}: ({section})"))));
        }
    };
    for source in rust_sources().iter().chain(java_sources()).filter(|s| !s.path.starts_with("tests/tidy/")) {
        source.prose().for_each(|(number, line)| check(&source.path, number, line, true));
    }
    for document in documents() {
        (1..)
            .zip(document.text.lines())
            .for_each(|(number, line)| check(&document.path, number, line, false));
    }
    none_but(&known::CITATIONS, findings, "a citation that leads to no heading in docs/spec");
}

#[test]
fn citations_are_found_one_by_one_and_in_lists() {
    assert_eq!(cited("see IMPI 8.6 and 9.1, then IMPI 3, 4 of them", "IMPI"), ["8.6", "9.1", "3"]);
    assert_eq!(cited("IMPI 0.0, IMPI 64-bit, MPI 3.2, xIMPI 3", "IMPI"), [""; 0]);
    assert_eq!(cited("(U-Net 5.1, 5.8)", "U-Net"), ["5.1", "5.8"]);
    assert_eq!(bare_citations("a (5.5) f(1.5, x) (5.2, 5.10)"), ["5.5", "5.2", "5.10"]);
    let found = sections("# Notes\n## 0. Status\n### 3.1 Codes\ntext 4.4\n### D47: x");
    assert!(["0", "3.1", "D47"].iter().all(|section| found.contains(*section)) && !found.contains("4.4"));
}
