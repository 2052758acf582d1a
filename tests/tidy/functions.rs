//! Lengths of the product's functions.

use crate::known;
use crate::tree::{none_but, rust_sources};

/// Lines of a function, from its name to its closing brace.
const LINES_MAX: usize = 70;

/// Functions of a code without comments and strings: line, name, and number of lines.
fn functions(code: &str) -> Vec<(usize, &str, usize)> {
    let mut found = Vec::new();
    for (begin, _) in code.match_indices("fn ") {
        let is_word = !code[..begin].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &code[begin + 3..];
        let name = &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(0)];
        if is_word && !name.is_empty() {
            let line = 1 + code[..begin].matches('\n').count();
            found.push((line, name, body(rest).lines().count()));
        }
    }
    found
}

/// The text of a function up to the end of its body, or to the semicolon of a declaration.
fn body(text: &str) -> &str {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, octet) in text.bytes().enumerate() {
        match octet {
            b'{' => braces += 1,
            b'}' => braces = braces.saturating_sub(1),
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        let ends = octet == b'}' || octet == b';';
        if ends && braces == 0 && brackets == 0 {
            return &text[..=at];
        }
    }
    text
}

#[test]
fn functions_are_short_enough_to_be_read() {
    let mut findings = Vec::new();
    for source in rust_sources().iter().filter(|source| !source.is_test()) {
        for (line, name, lines) in functions(source.product()) {
            if lines > LINES_MAX {
                let message = format!("{}:{line}: {name} has {lines} lines", source.path);
                findings.push((format!("{}: {name}", source.path), message));
            }
        }
    }
    none_but(&known::LONG_FUNCTIONS, findings, "a function of more than 70 lines; divide it");
}

#[test]
fn functions_are_found_with_their_lengths() {
    let code =
        "trait T {\n    fn a(x: [u8; 2]);\n}\nfn b() {\n    if c {\n    }\n}\nlet not_fn = 1;\nimpl fn_ {}";
    assert_eq!(functions(code), [(2, "a", 1), (4, "b", 4)]);
}
