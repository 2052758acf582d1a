//! Public items that nothing uses.

use std::collections::HashSet;

use crate::known;
use crate::tree::{Source, none_but, rust_sources};

/// Crates whose public items need a user.
const CRATES: [&str; 12] = [
    "buffer",
    "datatype",
    "group",
    "reduction",
    "schedule",
    "proto",
    "sys",
    "transport",
    "engine",
    "bootstrap",
    "jni",
    "cli",
];
/// Words between `pub` and the name of an item.
const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "macro"];
/// Words that may precede the kind.
const QUALIFIERS: [&str; 3] = ["unsafe", "async", "extern"];

/// Public items that a code defines: line, kind and name.
fn public_items(code: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let Some(rest) = line.trim_start().strip_prefix("pub ") else { continue };
        let mut words =
            rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        let mut kind = words.next();
        while kind.is_some_and(|word| QUALIFIERS.contains(&word)) {
            kind = words.next();
        }
        let Some(mut kind) = kind.filter(|kind| KINDS.contains(kind)) else { continue };
        let mut name = words.next();
        if kind == "const" && name.is_some_and(|name| name == "fn" || name == "unsafe") {
            kind = "fn";
            name = words.find(|word| *word != "fn");
        }
        found.extend(name.map(|name| (number, kind, name)));
    }
    found
}

/// Names that a code uses, without those of definitions. A function is used where it is called, named by a
/// path or imported. A variable of the same name is no use.
#[derive(Default)]
struct Uses<'a> {
    all: HashSet<&'a str>,
    functions: HashSet<&'a str>,
}

impl<'a> Uses<'a> {
    fn add(&mut self, code: &'a str) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let (mut before, mut is_import, mut at) = ("", false, 0);
        while let Some(begin) = code[at..].find(is_part).map(|found| at + found) {
            let gap = &code[at..begin];
            let end = code[begin..].find(|c| !is_part(c)).map_or(code.len(), |len| begin + len);
            let word = &code[begin..end];
            is_import = word == "use" || (is_import && !gap.contains(';'));
            if !KINDS.contains(&before) && before != "mod" {
                self.all.insert(word);
                let is_path = gap.ends_with("::") || gap.ends_with('.');
                let is_call = code[end..].starts_with('(') || code[end..].starts_with("::<");
                if is_import || is_path || is_call {
                    self.functions.insert(word);
                }
            }
            (before, at) = (word, end);
        }
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        if kind == "fn" { self.functions.contains(name) } else { self.all.contains(name) }
    }
}

/// Items of the crates that no code outside tests uses.
fn unused(sources: &[Source]) -> Vec<(&Source, usize, &str, &str)> {
    let mut uses = Uses::default();
    sources.iter().filter(|source| !source.is_test()).for_each(|source| uses.add(source.product()));
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        if CRATES.iter().any(|name| source.path.starts_with(&format!("rust/{name}/src/"))) {
            let items = public_items(source.product()).into_iter();
            let items = items.filter(|(_, kind, name)| !uses.has(kind, name));
            found.extend(items.map(|(line, kind, name)| (source, line, kind, name)));
        }
    }
    found
}

#[test]
fn public_items_have_a_user_outside_tests() {
    let findings = unused(rust_sources()).into_iter().map(|(source, line, kind, name)| {
        (name.to_owned(), format!("{}:{line}: {kind} {name}", source.path))
    });
    let known: Vec<&str> = known::UNUSED_ITEMS.iter().map(|(name, _)| *name).collect();
    none_but(
        &known,
        findings.collect(),
        "a public item that nothing but tests uses; delete it or make it `cfg(test)`",
    );
}

#[test]
fn public_items_and_their_uses_are_found() {
    let code = "pub fn a() { b(); }\npub const fn c() {}\npub const D: u8 = 1;\npub(crate) fn e() {}\n    pub unsafe fn f() {}";
    let names: Vec<_> = public_items(code);
    assert_eq!(names, [(1, "fn", "a"), (2, "fn", "c"), (3, "const", "D"), (5, "fn", "f")]);
    let sources = [
        Source::new("rust/sys/src/x.rs", code),
        Source::new("rust/sys/src/y.rs", "fn g() { let f = 1; a(); x.c() }"),
    ];
    let found: Vec<_> = unused(&sources).into_iter().map(|(_, _, _, name)| name).collect();
    assert_eq!(found, ["D", "f"]);
}
