//! Division of Rust and Java text into code, comments and strings.

/// Part of a source text.
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    /// Line of its first character.
    pub(crate) line: usize,
    /// Its text, with comment marks and quotation marks.
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Code,
    Comment,
    Text,
}

/// Divides a text of Rust, or of Java.
pub(crate) fn pieces(text: &str, is_java: bool) -> Vec<Piece> {
    let mut found = Vec::new();
    let (mut line, mut code_begin, mut at) = (1, 0, 0);
    let mut add = |kind, piece: &str| {
        if !piece.is_empty() {
            found.push(Piece { kind, line, text: piece.to_owned() });
            line += piece.bytes().filter(|octet| *octet == b'\n').count();
        }
    };
    while at < text.len() {
        let rest = &text[at..];
        let is_in_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let special = comment_len(rest, !is_java)
            .map(|len| (PieceKind::Comment, len))
            .or_else(|| text_len(rest, is_java, is_in_word).map(|len| (PieceKind::Text, len)));
        if let Some((kind, len)) = special {
            add(PieceKind::Code, &text[code_begin..at]);
            add(kind, &rest[..len]);
            at += len;
            code_begin = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    add(PieceKind::Code, &text[code_begin..]);
    found
}

/// Length of the comment that a text begins with, without the line break after `//`.
fn comment_len(text: &str, nests: bool) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.strip_prefix("/*")?;
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let close = text[at..].find("*/").map_or(text.len(), |close| at + close);
        match text[at..close].find("/*") {
            Some(open) if nests => (depth, at) = (depth + 1, at + open + 2),
            _ => (depth, at) = (depth - 1, (close + 2).min(text.len())),
        }
    }
    Some(at)
}

/// Length of the string or character literal that a text begins with.
fn text_len(text: &str, is_java: bool, is_in_word: bool) -> Option<usize> {
    match text.as_bytes()[0] {
        b'"' if is_java && text.starts_with("\"\"\"") => Some(closed(text, 3, "\"\"\"")),
        b'"' => Some(quoted_len(text)),
        b'\'' => char_len(text),
        b'r' | b'b' | b'c' if !is_java && !is_in_word => {
            let prefix = ["br", "cr", "r"].into_iter().find(|prefix| text.starts_with(prefix))?;
            let marks = text[prefix.len()..].bytes().take_while(|octet| *octet == b'#').count();
            let begin = prefix.len() + marks;
            text[begin..]
                .starts_with('"')
                .then(|| closed(text, begin + 1, &format!("\"{}", "#".repeat(marks))))
        }
        _ => None,
    }
}

/// Length up to the end of the closing mark.
fn closed(text: &str, begin: usize, mark: &str) -> usize {
    text[begin..].find(mark).map_or(text.len(), |at| begin + at + mark.len())
}

/// Length of a string with escapes.
fn quoted_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, octet) in text.bytes().enumerate().skip(1) {
        match octet {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character literal; a lifetime is none.
fn char_len(text: &str) -> Option<usize> {
    let inner = &text[1..];
    if inner.starts_with('\\') {
        return inner[2..].find('\'').map(|at| at + 4);
    }
    let len = inner.chars().next()?.len_utf8();
    inner[len..].starts_with('\'').then_some(len + 2)
}

/// Blanks items of code (without comments and strings) that are compiled for tests only.
pub(crate) fn without_test_items(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    let marks = ["#[cfg(test)]", "#[cfg(all(test", "#[test]"];
    while let Some(begin) = marks.iter().filter_map(|mark| rest.find(mark)).min() {
        kept.push_str(&rest[..begin]);
        let len = item_len(&rest[begin..]);
        kept.extend(rest[begin..begin + len].chars().filter(|c| *c == '\n'));
        rest = &rest[begin + len..];
    }
    kept + rest
}

/// Length of the item that a text begins with: to its semicolon, or to the end of its block.
fn item_len(text: &str) -> usize {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, octet) in text.bytes().enumerate() {
        match octet {
            b'{' => braces += 1,
            b'}' if braces == 1 => return at + 1,
            b'}' => braces = braces.saturating_sub(1),
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b';' | b',' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether the word occurs, not as a part of another.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: PieceKind, text: &str, is_java: bool) -> Vec<(usize, String)> {
        let found = pieces(text, is_java);
        assert_eq!(found.iter().map(|piece| piece.text.as_str()).collect::<String>(), text);
        let found = found.into_iter().filter(|piece| piece.kind == kind);
        found.map(|piece| (piece.line, piece.text)).collect()
    }

    #[test]
    fn comments_are_found_beside_strings() {
        let text = "a; // one \"x\"\nlet s = \"// no\\\"\"; /* two /* in */ two */ b";
        let comments = of(PieceKind::Comment, text, false);
        assert_eq!(comments, [(1, "// one \"x\"".to_owned()), (2, "/* two /* in */ two */".to_owned())]);
        assert_eq!(of(PieceKind::Comment, "/* a /* b */ c", true), [(1, "/* a /* b */".to_owned())]);
    }

    #[test]
    fn strings_are_found_raw_and_escaped_and_in_blocks() {
        let text =
            "f(\"a\\\\\", r#\"b\"c\"#, br\"d\", '\"', 'x', '\\'', '\\u{1f}', \"e\n\"); fn g<'a>(x: &'a u8)";
        let strings: Vec<String> =
            of(PieceKind::Text, text, false).into_iter().map(|(_, text)| text).collect();
        let expected =
            ["\"a\\\\\"", "r#\"b\"c\"#", "br\"d\"", "'\"'", "'x'", "'\\''", "'\\u{1f}'", "\"e\n\""];
        assert_eq!(strings, expected);
        let block = "x = \"\"\"\n  a \"b\"\n  \"\"\" + \"c\"";
        let strings: Vec<usize> =
            of(PieceKind::Text, block, true).into_iter().map(|(line, _)| line).collect();
        assert_eq!(strings, [1, 3]);
    }

    #[test]
    fn test_items_are_blanked_and_what_follows_is_kept() {
        let code =
            "use a;\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod tests {\n fn d() {}\n}\nfn e() {}\n";
        assert_eq!(without_test_items(code), "use a;\n\n\nfn c() {}\n\n\n\n\nfn e() {}\n");
        assert_eq!(without_test_items("#[cfg(all(test, not(loom)))]\nmod tests;\nfn e();"), "\n\nfn e();");
    }
}
