//! Texts that docs/user/troubleshooting.md lists, checked against the literals of the sources.

use std::collections::HashSet;

use crate::tree::{none, product_sources, read, root, sources};

/// Stands in the document for a number, a name, or a text of the system.
const VALUE: char = '…';
/// Begins a remark behind a text that is another program's.
const OTHERS: &str = "(of ";
/// A fragment that a program inserts a value into is at least this long without the value.
const FIXED_MIN: usize = 3;

/// Fixed fragments of the literals of all programs: what stands between the values that are formatted into
/// them.
struct Fragments<'a> {
    whole: HashSet<&'a str>,
    beginnings: HashSet<&'a str>,
    ends: HashSet<&'a str>,
}

impl<'a> Fragments<'a> {
    fn of(literals: &'a [String]) -> Self {
        let whole: HashSet<&str> = literals.iter().map(String::as_str).collect();
        let cuts = || whole.iter().flat_map(|whole| boundaries(whole).map(move |at| whole.split_at(at)));
        Fragments {
            beginnings: cuts().map(|(beginning, _)| beginning).chain(whole.iter().copied()).collect(),
            ends: cuts().map(|(_, end)| end).collect(),
            whole,
        }
    }

    /// Whether programs may print this: as a part of one fragment, or as the end of one and the beginning of
    /// another, with nothing or a number or a literal between them.
    fn print(&self, text: &str) -> bool {
        self.whole.iter().any(|whole| whole.contains(text))
            || boundaries(text).any(|at| {
                let (end, rest) = text.split_at(at);
                let is_end = end.is_empty() || self.ends.contains(end);
                is_end && self.go_on(end.len(), rest)
            })
    }

    /// Whether this may follow the end of a fragment of so many octets.
    fn go_on(&self, end_len: usize, text: &str) -> bool {
        boundaries(text).chain([text.len()]).any(|at| {
            let (value, beginning) = text.split_at(at);
            let is_value = self.whole.contains(value) || value.bytes().all(|octet| octet.is_ascii_digit());
            let is_beginning = beginning.is_empty() || self.beginnings.contains(beginning);
            is_value && is_beginning && end_len + beginning.len() >= FIXED_MIN
        })
    }

    /// The same for each part between punctuation marks, if not for all: one text is often inserted into
    /// another there.
    fn print_parts(&self, text: &str) -> bool {
        let parts = text.split_inclusive([':', ';', ',']).flat_map(|part| part.split(" ("));
        let mut parts = parts.map(str::trim).filter(|part| part.len() >= FIXED_MIN);
        self.print(text)
            || parts.all(|part| self.print(part) || self.print(part.trim_end_matches([':', ';', ','])))
    }
}

/// Positions at which a text may be cut in two, from its beginning to before its end.
fn boundaries(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().map(|(at, _)| at)
}

/// The string literals of a source; those that Java joins as one.
fn literals(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    // What stands behind the last literal.
    let mut between: Option<String> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, rest)| rest);
        } else if let Some(len) = char_literal(rest) {
            rest = &rest[len..];
            between = None;
        } else if c == '"' {
            let (literal, behind) = string_literal(&rest[1..]);
            match (found.last_mut(), between) {
                (Some(last), Some(between)) if between.trim() == "+" => last.push_str(&literal),
                _ => found.push(literal),
            }
            (between, rest) = (Some(String::new()), behind);
        } else {
            if let Some(between) = &mut between {
                between.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    found
}

/// Length of the character literal that a text begins with.
fn char_literal(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let escape_len = usize::from(inner.starts_with('\\'));
    let len = escape_len + inner[escape_len..].chars().next()?.len_utf8();
    inner[len..].starts_with('\'').then_some(len + 2)
}

/// The contents of a string literal from behind its first quotation mark, and what stands behind it.
fn string_literal(text: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('\n') => chars = chars.as_str().trim_start().chars(),
                Some('n') => literal.push('\n'),
                Some(escaped) => literal.push(escaped),
                None => break,
            },
            c => literal.push(c),
        }
    }
    (literal, chars.as_str())
}

/// Parts of a format string that stay when values are put into it.
fn fixed(format: &str) -> Vec<String> {
    let mut fragments = vec![String::new()];
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        let is_doubled = chars.peek() == Some(&c);
        match c {
            '{' if !is_doubled => {
                chars.by_ref().find(|c| *c == '}');
                fragments.push(String::new());
            }
            c => {
                if matches!(c, '{' | '}') && is_doubled {
                    chars.next();
                }
                fragments.last_mut().expect("there is one").push(c);
            }
        }
    }
    fragments
}

/// Fixed fragments of what the programs may print; tests print nothing.
fn printed() -> Vec<String> {
    let rust = sources("rust", ".rs");
    let programs = rust.iter().filter(|s| s.path.contains("/src/") && !s.path.contains("/tests"));
    let of_rust = programs.flat_map(|source| literals(source.without_tests()));
    let of_rust = of_rust.flat_map(|literal| fixed(&literal));
    let of_java = product_sources().flat_map(|source| literals(&source.text));
    of_rust.chain(of_java).filter(|fragment| !fragment.is_empty()).collect()
}

/// The texts in the first column of the document's tables, with the numbers of their lines.
fn listed(document: &str) -> Vec<(usize, &str)> {
    let rows = (1..).zip(document.lines()).filter(|(_, line)| line.starts_with("| "));
    let cells = rows.filter_map(|(number, row)| Some((number, row.split_once(" | ")?.0)));
    let ours = cells.filter(|(_, cell)| !cell.contains(OTHERS));
    let texts = ours.flat_map(|(number, cell)| cell.split('`').skip(1).step_by(2).map(move |t| (number, t)));
    // The name of a class is no text.
    texts.filter(|(_, text)| text.contains(' ')).collect()
}

#[test]
fn every_text_in_troubleshooting_is_printed_by_some_program() {
    let document = read(&root().join("docs/user/troubleshooting.md"));
    let texts = listed(&document);
    assert!(!texts.is_empty(), "the document has no tables");
    let printed = printed();
    let fragments = Fragments::of(&printed);
    let mut findings = Vec::new();
    for (number, text) in texts {
        let parts = text.split(VALUE).filter(|part| !part.trim().is_empty());
        findings.extend(
            parts
                .filter(|part| !fragments.print_parts(part))
                .map(|part| format!("troubleshooting.md:{number}: {part:?}")),
        );
    }
    none(findings, "a text that nothing prints");
}

#[test]
fn literals_are_found_among_comments_and_characters() {
    let source = "// \"no\"\nlet q = '\"'; f(\"a \\\"b\\\" \\\n    c\"); /* \"no\" */ '\\'' + \"d\"";
    assert_eq!(literals(source), ["a \"b\" c", "d"]);
    assert_eq!(literals("x(\"one \"\n + \"two \" + n + \" three\")"), ["one two ", " three"]);
    assert_eq!(fixed("{n} of {m:?} in {{braces}}"), ["", " of ", " in {braces}"]);
}

#[test]
fn texts_are_found_whole_and_around_values_and_no_other_is() {
    let printed = ["the ", " cannot do this: ", "it is empty", "buffer", "more than "].map(str::to_owned);
    let fragments = Fragments::of(&printed);
    for text in ["cannot do", "the buffer cannot do this: it is empty", "more than 64", ": it is empty"] {
        assert!(fragments.print_parts(text), "{text}");
    }
    for text in ["must not do", "the letter cannot do this: it is empty", "more than all", ": it is full"] {
        assert!(!fragments.print_parts(text), "{text}");
    }
}
