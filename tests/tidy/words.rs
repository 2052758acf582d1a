//! Phrases that the glossary replaces, over comments, strings and documents.

use crate::known;
use crate::text::has_word;
use crate::tree::{area, code_only, documents, java_sources, none_but, read, root, rust_sources};

/// Document with the table of phrases.
const GLOSSARY: &str = "docs/glossary.md";
/// Heading above the table.
const HEADING: &str = "## Words we do not use";

/// The phrases in `code` type of the table's first column, each with the second column.
fn replaced_phrases(glossary: &str) -> Vec<(String, &str)> {
    let table = glossary.split_once(HEADING).map_or("", |(_, table)| table);
    let mut found = Vec::new();
    for row in table.lines().filter_map(|line| line.strip_prefix("| ")) {
        let Some((instead_of, write)) = row.split_once(" | ") else { continue };
        let phrases = instead_of.split('`').skip(1).step_by(2);
        found.extend(phrases.map(|phrase| (phrase.to_lowercase(), write.trim_end_matches(" |"))));
    }
    found
}

/// Lines of a document outside code, with inline code cut out, up to the table of phrases.
fn document_lines(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines().take_while(|line| *line != HEADING)) {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence && !line.starts_with("    ") {
            found.push((number, line.split('`').step_by(2).collect()));
        }
    }
    found
}

/// The phrases in a text, each with its line and its replacement. A phrase may begin on one line and end on
/// the next.
fn phrases<'a>(
    lines: &[(usize, String)],
    replaced: &'a [(String, &'a str)],
) -> Vec<(usize, &'a str, &'a str)> {
    let plain = |line: &str| {
        let text = line.trim().trim_start_matches(['/', '!', '*', '"', ' ']).trim_end_matches(['\\', ' ']);
        text.to_lowercase()
    };
    let plains: Vec<String> = lines.iter().map(|(_, line)| plain(line)).collect();
    let all = plains.join(" ");
    let replaced: Vec<_> = replaced.iter().filter(|(phrase, _)| all.contains(phrase)).collect();
    let mut found = Vec::new();
    for (at, line) in plains.iter().enumerate() {
        let next = plains.get(at + 1).filter(|_| lines[at + 1].0 == lines[at].0 + 1);
        let joined = next.map(|next| format!("{line} {next}"));
        for (phrase, write) in &replaced {
            let spans = || {
                let joined =
                    joined.as_deref().filter(|joined| phrase.contains(' ') && has_word(joined, phrase));
                joined.is_some() && !has_word(next.map_or("", |next| next), phrase)
            };
            if has_word(line, phrase) || spans() {
                found.push((lines[at].0, phrase.as_str(), *write));
            }
        }
    }
    found
}

#[test]
fn replaced_phrases_are_not_used() {
    let glossary = read(&root().join(GLOSSARY));
    let replaced = replaced_phrases(&glossary);
    assert!(!replaced.is_empty(), "{GLOSSARY} has no phrases in `code` type below {HEADING:?}");
    let sources = rust_sources().iter().chain(java_sources());
    let sources = sources.filter(|source| !source.path.starts_with("tests/tidy/"));
    let code = sources.map(|source| {
        let lines = source.prose().map(|(number, line)| (number, line.to_owned()));
        (source, lines.collect::<Vec<_>>())
    });
    let texts = documents().iter().map(|document| (document, document_lines(&document.text)));
    let mut findings = Vec::new();
    for (source, lines) in code.chain(texts) {
        for (line, phrase, write) in phrases(&lines, &replaced) {
            let message = format!("{}:{line}: {phrase:?}; write: {write}", source.path);
            findings.push((format!("{}: {phrase}", area(&source.path)), message));
        }
    }
    none_but(&known::PHRASES, findings, "a phrase that the glossary replaces");
}

/// First words of a test's name that name no case.
const CLAUSES: [&str; 6] = ["what", "who", "whom", "whose", "whoever", "how"];

/// Names of the tests in a code without comments and strings, with their lines: functions below `#[test]` or
/// `@Test`.
fn test_names(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for mark in ["#[test]", "@Test", "@ParameterizedTest"] {
        for (begin, _) in code.match_indices(mark) {
            let rest = &code[begin..];
            let Some(open) =
                ["fn ", "void "].iter().filter_map(|word| Some(rest.find(word)? + word.len())).min()
            else {
                continue;
            };
            let name = rest[open..].split('(').next().unwrap_or_default();
            found.push((1 + code[..begin + open].matches('\n').count(), name));
        }
    }
    found
}

/// The words of a name in snake case or camel case, in lower case, with blanks between them.
fn words_of(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            words.push(' ');
        }
        words.extend(if c == '_' { ' ' } else { c }.to_lowercase());
    }
    words
}

#[test]
fn test_names_state_case_and_result() {
    let glossary = read(&root().join(GLOSSARY));
    let replaced = replaced_phrases(&glossary);
    let mut findings = Vec::new();
    for source in rust_sources().iter().chain(java_sources()) {
        for (line, name) in test_names(&code_only(source.pieces())) {
            let words = words_of(name);
            let phrase = replaced.iter().find(|(phrase, _)| has_word(&words, phrase));
            let clause = words.split(' ').next().filter(|first| CLAUSES.contains(first));
            if let Some(found) = phrase.map(|(phrase, _)| phrase.as_str()).or(clause) {
                findings.push((area(&source.path), format!("{}:{line}: {name}: {found:?}", source.path)));
            }
        }
    }
    none_but(&known::TEST_NAMES, findings, "a test's name with a phrase that the glossary replaces");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_are_found_as_words() {
        let code = "#[test]\n#[cfg(x)]\nfn a_rank_goes_on() {}\nfn b() {}\n@Test void shouldGoOn() {}";
        assert_eq!(test_names(code), [(3, "a_rank_goes_on"), (5, "shouldGoOn")]);
        assert_eq!([words_of("a_rank_goes_on"), words_of("shouldGoOn")], ["a rank goes on", "should go on"]);
    }

    #[test]
    fn phrases_are_found_across_lines_and_not_in_words_or_code() {
        let glossary = "| `x` | y |\n## Words we do not use\n| instead of | write |\n| `in vain`, `lend`, \"lines\" | loan |\n";
        let replaced = replaced_phrases(glossary);
        assert_eq!(replaced, [("in vain".to_owned(), "loan"), ("lend".to_owned(), "loan")]);
        let lines =
            |text: &str| -> Vec<(usize, String)> { (1..).zip(text.lines().map(str::to_owned)).collect() };
        let found = phrases(&lines("/// Lend a slab.\n// polls in\n// vain, blends"), &replaced);
        assert_eq!(
            found.iter().map(|(line, phrase, _)| (*line, *phrase)).collect::<Vec<_>>(),
            [(1, "lend"), (2, "in vain")]
        );
        let document = document_lines("a `lend` b\n```\nlend\n```\nc\n## Words we do not use\nlend");
        assert_eq!(document, [(1, "a  b".to_owned()), (5, "c".to_owned())]);
    }
}
