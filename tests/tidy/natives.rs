//! Rules for Javadoc: native methods are documented, and overloads once.

use std::collections::HashMap;

use crate::text::{Piece, PieceKind};
use crate::tree::{Source, none, product_sources, read, root};

/// The class with all native methods.
const NATIVES: &str = "java/src/core/java/mpjdev/core/Native.java";
/// Words of a doc that may stand twice: a phrase with a link.
const REPEATED_MAX: usize = 14;

/// Native methods without a Javadoc comment before them, with their lines.
fn undocumented(pieces: &[Piece]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut has_doc = false;
    for piece in pieces {
        match piece.kind {
            PieceKind::Comment => has_doc = piece.text.starts_with("/**"),
            PieceKind::Text => {}
            PieceKind::Code => {
                let mut line = piece.line;
                for statement in piece.text.split_inclusive([';', '{', '}']) {
                    let words: Vec<&str> = statement.split_whitespace().collect();
                    if words.contains(&"native") && !has_doc {
                        found.push((line, words.join(" ")));
                    }
                    has_doc &= statement.trim().is_empty();
                    line += statement.matches('\n').count();
                }
            }
        }
    }
    found
}

/// Javadoc texts of more than a few words that occur more than once, with the lines of all but the first.
fn repeated(source: &Source) -> Vec<(usize, String)> {
    let mut first_lines: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    let docs = source.pieces().iter().filter(|piece| piece.text.starts_with("/**"));
    for doc in docs.filter(|piece| piece.kind == PieceKind::Comment) {
        let text = doc.text.trim_start_matches("/**").trim_end_matches("*/");
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "*").collect();
        if words.len() > REPEATED_MAX && first_lines.insert(words.join(" "), doc.line).is_some() {
            found.push((doc.line, words[..6].join(" ")));
        }
    }
    found
}

#[test]
fn native_methods_are_documented() {
    let source = Source::new(NATIVES, read(&root().join(NATIVES)));
    let findings = undocumented(source.pieces()).into_iter();
    let findings = findings.map(|(line, method)| format!("{NATIVES}:{line}: {method}"));
    none(findings.collect(), "a native method without Javadoc");
}

#[test]
fn overloads_are_documented_once() {
    let findings = product_sources().flat_map(|source| {
        let found = repeated(source).into_iter();
        found.map(|(line, begin)| format!("{}:{line}: {begin}...", source.path))
    });
    none(findings.collect(), "a Javadoc text that stands twice; document one overload and link to it");
}

#[test]
fn undocumented_and_repeated_docs_are_found() {
    let long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
    let text = format!(
        "class N {{\n/** A. */\nnative int a();\nnative int b();\n/** {long} */ int c;\n/** {long} */\nint d;\n}}"
    );
    let source = Source::new("N.java", text);
    assert_eq!(undocumented(source.pieces()), [(3, "native int b();".to_owned())]);
    assert_eq!(repeated(&source), [(6, "one two three four five six".to_owned())]);
}
