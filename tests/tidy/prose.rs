//! Rules for comments and strings: width, and the beginnings of docs.

use crate::known;
use crate::text::{Piece, PieceKind};
use crate::tree::{Source, area, java_sources, none, none_but, rust_sources};

/// Columns of a line. `cargo fmt` holds code to it, and neither comments nor strings.
const WIDTH_MAX: usize = 110;
/// Words of the first sentence of a module doc.
const FIRST_SENTENCE_MAX: usize = 20;
/// First words that make a sentence a relative clause. `Whether` is not among them: a function or a field of
/// type bool says so what its value answers.
const CLAUSES: [&str; 9] = ["What", "How", "Who", "Whom", "Whose", "Whoever", "Whatever", "Where", "Which"];

/// Lines that are too wide where a comment or a string passes the limit, with their columns. Strings count in
/// the product's Rust code alone; one that is raw, or has no blank before the limit, cannot be wrapped.
fn wide_lines(pieces: &[Piece], with_strings: bool) -> Vec<(usize, usize)> {
    let mut wide = Vec::new();
    let mut begin = 0;
    for piece in pieces {
        for (line, text) in (piece.line..).zip(piece.text.split('\n')) {
            begin = if line == piece.line { begin } else { 0 };
            let end = begin + text.chars().count();
            let can_wrap = match piece.kind {
                PieceKind::Code => false,
                PieceKind::Comment => true,
                PieceKind::Text => {
                    let is_quoted = piece.text.starts_with('"') && !piece.text.starts_with("\"\"\"");
                    let inside = text.chars().take(WIDTH_MAX.saturating_sub(begin + 2));
                    with_strings && is_quoted && inside.skip_while(|c| *c == ' ').any(|c| c == ' ')
                }
            };
            if begin <= WIDTH_MAX && end > WIDTH_MAX && can_wrap {
                wide.push((line, end));
            }
            begin = end;
        }
    }
    wide
}

/// Docs of a source, each as the line of its beginning and its text as one line. `mark` begins each line.
fn line_docs(pieces: &[Piece], mark: &str) -> Vec<(usize, String)> {
    let mut docs: Vec<(usize, String)> = Vec::new();
    let mut last_line = 0;
    for piece in pieces.iter().filter(|piece| piece.kind == PieceKind::Comment) {
        let Some(text) = piece.text.strip_prefix(mark) else { continue };
        if text.starts_with('/') {
            continue;
        }
        match docs.last_mut() {
            Some((_, doc)) if piece.line == last_line + 1 => {
                doc.push_str(if text.trim().is_empty() { "\n" } else { " " });
                doc.push_str(text.trim());
            }
            _ => docs.push((piece.line, text.trim().to_owned())),
        }
        last_line = piece.line;
    }
    docs
}

/// Javadoc comments, each as the line of its beginning and its first paragraph as one line.
fn javadocs(pieces: &[Piece]) -> Vec<(usize, String)> {
    let docs = pieces.iter().filter(|piece| piece.kind == PieceKind::Comment);
    let docs = docs.filter_map(|piece| Some((piece.line, piece.text.strip_prefix("/**")?)));
    docs.map(|(line, doc)| {
        let lines = doc.trim_end_matches("*/").lines().map(|line| line.trim().trim_start_matches('*').trim());
        (line, lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" "))
    })
    .collect()
}

/// The relative pronoun that a doc begins with.
fn clause(doc: &str) -> Option<&'static str> {
    let first = doc.split_whitespace().next()?.trim_end_matches(|c: char| !c.is_alphanumeric());
    CLAUSES.into_iter().find(|clause| *clause == first)
}

/// Words of the first sentence or paragraph. The text behind a colon is a part of its own.
fn first_sentence_words(doc: &str) -> usize {
    let words: Vec<&str> = doc.split('\n').next().unwrap_or_default().split_whitespace().collect();
    let ends = |word: &&str| word.ends_with(['.', ':']) && !["e.g.", "i.e."].contains(word);
    words.iter().position(ends).map_or(words.len(), |last| last + 1)
}

#[test]
fn comments_and_strings_are_not_too_wide() {
    let sources = rust_sources().iter().chain(java_sources());
    let mut findings = Vec::new();
    for source in sources {
        for (line, columns) in wide_lines(source.pieces(), source.path.ends_with(".rs") && !source.is_test())
        {
            findings.push((area(&source.path), format!("{}:{line}: {columns} columns", source.path)));
        }
    }
    none_but(
        &known::WIDE,
        findings,
        "more than 110 columns; wrap the comment, or end the line of the string with `\\`",
    );
}

#[test]
fn wide_comments_and_strings_are_found() {
    let long = "word ".repeat(22);
    let found = |text: &str| wide_lines(&crate::text::pieces(text, false), true);
    assert_eq!(found(&format!("a();\n// {long}b")), [(2, 114)]);
    assert_eq!(found(&format!("f(\"{long}\");")), [(1, 114)]);
    assert_eq!(found(&format!("f(r\"{long}b\", \"{}\");", "x".repeat(120))), []);
    assert_eq!(found(&format!("{} // b", "a + ".repeat(28))), []);
}

#[test]
fn clauses_and_long_sentences_are_found() {
    let text = "//! How it is\n//! done.\n/// Whether so.\nfn f() {}\n/// What\n///\n/// How\nfn g() {}";
    let pieces = crate::text::pieces(text, false);
    assert_eq!(line_docs(&pieces, "//!"), [(1, "How it is done.".to_owned())]);
    let begins: Vec<_> = line_docs(&pieces, "///").iter().map(|(line, doc)| (*line, clause(doc))).collect();
    assert_eq!(begins, [(3, None), (5, Some("What"))]);
    let java = crate::text::pieces("/**\n * How\n * far.\n */ int a; /** The b. */", true);
    assert_eq!(javadocs(&java), [(1, "How far.".to_owned()), (4, "The b.".to_owned())]);
    assert_eq!(first_sentence_words("One two, e.g. three: four. Five"), 4);
}

#[test]
fn docs_begin_with_their_subject() {
    let found = |source: &'static Source| -> Vec<(usize, String)> {
        if source.path.ends_with(".java") {
            return javadocs(source.pieces());
        }
        ["//!", "///"].into_iter().flat_map(|mark| line_docs(source.pieces(), mark)).collect()
    };
    let mut findings = Vec::new();
    for source in rust_sources().iter().chain(java_sources()) {
        for (line, doc) in found(source) {
            if clause(&doc).is_some() {
                let begin: String = doc.chars().take(60).collect();
                findings.push((area(&source.path), format!("{}:{line}: {begin}", source.path)));
            }
        }
    }
    none_but(
        &known::CLAUSES,
        findings,
        "a doc that begins with a relative clause; begin with a noun, or a verb for a function",
    );
}

#[test]
fn module_docs_begin_with_a_short_noun_phrase() {
    let (mut long, mut clauses) = (Vec::new(), Vec::new());
    for source in rust_sources() {
        let Some((line, doc)) = line_docs(source.pieces(), "//!").into_iter().next() else { continue };
        let words = first_sentence_words(&doc);
        if words > FIRST_SENTENCE_MAX {
            long.push((source.path.clone(), format!("{}:{line}: {words} words", source.path)));
        }
        if ["When ", "Whether "].iter().any(|clause| doc.starts_with(clause)) {
            clauses.push(format!("{}:{line}: {doc}", source.path));
        }
    }
    none_but(
        &known::LONG_SENTENCES,
        long,
        "a module doc whose first sentence has more than 20 words; cut it",
    );
    none(clauses, "a module doc that begins with a clause; begin with a noun");
}
