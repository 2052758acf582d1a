//! Edges between the modules of a crate, and cycles of imports between its files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::known;
use crate::tree::{Source, none_but, read, root, rust_sources};

/// Crates whose modules are checked.
const CRATES: [&str; 11] = [
    "buffer",
    "datatype",
    "group",
    "reduction",
    "schedule",
    "proto",
    "transport",
    "engine",
    "bootstrap",
    "jni",
    "cli",
];

/// Path of a module from the crate's root: empty for the root itself.
type Module = Vec<String>;

/// Modules of a crate with what they import.
struct Crate {
    modules: BTreeMap<Module, File>,
}

/// Module in a file of its own.
struct File {
    path: String,
    /// Names that `use` brings into the module, with the paths that they stand for.
    imports: HashMap<String, Module>,
    /// All paths in the code, with the line of each, as they are written.
    paths: Vec<(usize, Vec<String>)>,
}

impl Crate {
    fn of(prefix: &str, sources: &[Source]) -> Crate {
        let mut modules = BTreeMap::new();
        for source in sources.iter().filter(|source| source.path.starts_with(prefix) && !source.is_test()) {
            let Some(module) = module_of(&source.path[prefix.len()..]) else { continue };
            let tokens = tokens(source.product());
            let mut paths = paths(&tokens);
            let mut names = HashMap::new();
            for (line, name, path) in imports(&tokens) {
                paths.push((line, path.clone()));
                names.insert(name, absolute(&module, path));
            }
            modules.insert(module, File { path: source.path.clone(), imports: names, paths });
        }
        Crate { modules }
    }

    /// The module that a path from the root leads to, through re-exports.
    fn resolve(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        // A re-export leads to another path; the bound ends a circle of them.
        for _ in 0..8 {
            let deepest = (0..=path.len()).rev().find(|len| self.modules.contains_key(&path[..*len]))?;
            let next = path.get(deepest).and_then(|name| self.modules[&path[..deepest]].imports.get(name));
            match next {
                Some(import) => path = import.iter().chain(&path[deepest + 1..]).cloned().collect(),
                None => return Some(path[..deepest].to_vec()),
            }
        }
        None
    }

    /// Each module that another one names, with the line of the first mention.
    fn edges(&self) -> BTreeMap<(&Module, Module), usize> {
        let mut edges = BTreeMap::new();
        for (module, file) in &self.modules {
            for (line, path) in &file.paths {
                let is_ours = ["crate", "self", "super"].contains(&path[0].as_str());
                let mut child = module.clone();
                child.push(path[0].clone());
                let target = if is_ours {
                    self.resolve(&absolute(module, path.clone()))
                } else if self.modules.contains_key(&child) && !file.imports.contains_key(&path[0]) {
                    child.extend_from_slice(&path[1..]);
                    self.resolve(&child)
                } else {
                    None
                };
                if let Some(target) = target.filter(|target| target != module) {
                    edges.entry((module, target)).or_insert(*line);
                }
            }
        }
        edges
    }

    fn path(&self, module: &Module) -> &str {
        self.modules.get(module).map_or("", |file| &file.path)
    }
}

/// The module of a file below `src`: none for the program beside a library.
fn module_of(path: &str) -> Option<Module> {
    let path = path.strip_suffix(".rs")?;
    let mut parts: Module = path.split('/').map(str::to_owned).collect();
    match parts.last().map(String::as_str) {
        Some("main") => return None,
        Some("lib" | "mod") => drop(parts.pop()),
        _ => {}
    }
    Some(parts)
}

/// A path with `crate`, `self` and `super` resolved; other paths lead out of the crate and stay.
fn absolute(module: &Module, path: Vec<String>) -> Module {
    let mut base = module.clone();
    let mut parts = path.into_iter().peekable();
    match parts.peek().map(String::as_str) {
        Some("crate") => {
            parts.next();
            base.clear();
        }
        Some("self" | "super") => {
            while let Some(part) = parts.next_if(|part| part == "self" || part == "super") {
                if part == "super" {
                    base.pop();
                }
            }
        }
        // A child of this module, or another crate; `resolve` finds out.
        _ => {}
    }
    base.extend(parts);
    base
}

/// The imports of a code without comments and strings, each as name and path.
fn imports(tokens: &[(usize, String)]) -> Vec<(usize, String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = tokens;
    while let Some(begin) = rest.iter().position(|(_, token)| token == "use") {
        let len = rest[begin..].iter().position(|(_, token)| token == ";").unwrap_or(rest.len() - begin);
        let words: Vec<&str> = rest[begin + 1..begin + len].iter().map(|(_, token)| token.as_str()).collect();
        let trees = import_tree(&words, &[]).into_iter();
        found.extend(trees.map(|(name, path)| (rest[begin].0, name, path)));
        rest = &rest[begin + len..];
    }
    found
}

/// Names and paths of one tree of imports; all names of a module have the name `*`.
fn import_tree(words: &[&str], prefix: &[String]) -> Vec<(String, Vec<String>)> {
    let mut path = prefix.to_vec();
    for (at, word) in words.iter().enumerate() {
        match *word {
            "::" => {}
            "{" => {
                let inner = &words[at + 1..words.len() - 1];
                return branches(inner).into_iter().flat_map(|tree| import_tree(tree, &path)).collect();
            }
            "as" => return words.get(at + 1).map(|name| ((*name).to_owned(), path)).into_iter().collect(),
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
    }
    path.last().cloned().map(|name| (name, path)).into_iter().collect()
}

/// The parts between the outer commas.
fn branches<'a, 'w>(words: &'a [&'w str]) -> Vec<&'a [&'w str]> {
    let mut depth = 0;
    let parts = words.split(|word| {
        match *word {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        *word == "," && depth == 0
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// The paths of more than one name outside imports and visibilities, with their lines.
fn paths(tokens: &[(usize, String)]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|(_, token)| token == text);
    while let Some((line, token)) = tokens.get(at) {
        if token == "use" || (token == "pub" && is(at + 1, "(")) {
            let end = if token == "use" { ";" } else { ")" };
            at += tokens[at..].iter().position(|(_, token)| token == end).unwrap_or(0);
        } else if is_word(token) {
            let mut path = vec![token.clone()];
            while is(at + 1, "::") && tokens.get(at + 2).is_some_and(|(_, next)| is_word(next)) {
                path.push(tokens[at + 2].1.clone());
                at += 2;
            }
            if path.len() > 1 {
                found.push((*line, path));
            }
        }
        at += 1;
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single characters, with their lines.
fn tokens(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let len = if c.is_alphanumeric() || c == '_' {
            rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        if c == '\n' {
            line += 1;
        } else if !c.is_whitespace() {
            found.push((line, rest[..len].to_owned()));
        }
        rest = &rest[len..];
    }
    found
}

/// Groups of files of which each imports all others of its group, directly or through more files.
fn cycles(edges: &BTreeMap<(&Module, Module), usize>) -> Vec<BTreeSet<Module>> {
    let nodes: BTreeSet<&Module> = edges.keys().map(|(from, _)| *from).collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = nodes
        .iter()
        .map(|node| {
            let mut seen = BTreeSet::new();
            let mut open = vec![*node];
            while let Some(next) = open.pop() {
                for (_, target) in edges.keys().filter(|(from, _)| *from == next) {
                    if seen.insert(target) {
                        open.push(target);
                    }
                }
            }
            (*node, seen)
        })
        .collect();
    let mut groups = BTreeSet::new();
    for (node, seen) in &reached {
        let group = seen.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(node)));
        let group: BTreeSet<Module> = group.map(|module| (*module).clone()).collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

/// Order of the modules of a crate, as ARCHITECTURE.md draws it: groups from the lowest to the highest.
fn order(document: &str, name: &str) -> Vec<Vec<String>> {
    let mut rows = document.lines().skip_while(|line| !line.starts_with("| modules of |"));
    let row = rows.find_map(|line| line.strip_prefix(&format!("| {name} |")));
    let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md's table has no row for the modules of {name}"));
    let groups = row.trim_end_matches('|').split('→');
    groups.map(|group| group.split(',').map(|module| module.trim().to_owned()).collect()).collect()
}

/// Fault of an edge between two modules of the first level.
fn fault(order: &[Vec<String>], from: &str, to: &str) -> Option<String> {
    let level = |name: &str| order.iter().position(|group| group.iter().any(|module| module == name));
    match (level(from), level(to)) {
        (None, _) => Some(format!("the table has no module {from}")),
        (_, None) => Some(format!("the table has no module {to}")),
        (Some(upper), Some(lower)) if lower < upper => None,
        (Some(upper), Some(lower)) if lower == upper => Some(format!("{from} stands beside {to}")),
        _ => Some(format!("{from} stands below {to}")),
    }
}

/// `mod.rs` and `lib.rs` declare children, and what all of them share: they take part in no cycle.
fn is_counted(path: &str) -> bool {
    !path.ends_with("/mod.rs") && !path.ends_with("/lib.rs")
}

#[test]
fn modules_use_those_before_them_in_the_table() {
    let document = read(&root().join("ARCHITECTURE.md"));
    let mut findings = Vec::new();
    for name in CRATES {
        let order = order(&document, name);
        let tree = Crate::of(&format!("rust/{name}/src/"), rust_sources());
        for ((from, to), line) in &tree.edges() {
            let (Some(upper), Some(lower)) = (from.first(), to.first()) else { continue };
            if let Some(fault) = (upper != lower).then(|| fault(&order, upper, lower)).flatten() {
                let message = format!("{}:{line}: uses {name}::{}; {fault}", tree.path(from), to.join("::"));
                findings.push((format!("{name}::{upper} -> {lower}"), message));
            }
        }
    }
    none_but(
        &known::MODULE_EDGES,
        findings,
        "an edge that ARCHITECTURE.md does not draw; move what is used down",
    );
}

#[test]
fn files_import_each_other_in_no_cycle() {
    let mut findings = Vec::new();
    for name in CRATES {
        let tree = Crate::of(&format!("rust/{name}/src/"), rust_sources());
        let mut edges = tree.edges();
        edges.retain(|(from, to), _| is_counted(tree.path(from)) && is_counted(tree.path(to)));
        for group in cycles(&edges) {
            let inside = edges.iter().filter(|((from, to), _)| group.contains(*from) && group.contains(to));
            findings.extend(inside.map(|((from, to), line)| {
                let path = tree.path(from);
                (path.to_owned(), format!("{path}:{line}: imports {}, which leads back", tree.path(to)))
            }));
        }
    }
    let known: Vec<&str> = known::CYCLES.iter().flat_map(|files| files.iter().copied()).collect();
    none_but(&known, findings, "a cycle of imports; move what both need into a file of its own");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(files: &[(&str, &str)]) -> Vec<(String, String, usize)> {
        let files: Vec<Source> = files.iter().map(|(path, text)| Source::new(*path, *text)).collect();
        let tree = Crate::of("src/", &files);
        let edges = tree.edges();
        edges.iter().map(|((from, to), line)| (from.join("::"), to.join("::"), *line)).collect()
    }

    #[test]
    fn imports_are_found_in_trees_and_through_re_exports() {
        let found = edges(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "mod c;\nmod d;\npub use c::{C, self as other};\nstruct A;"),
            ("src/a/c.rs", "pub(in super::super) struct C;"),
            ("src/a/d.rs", "use super::{A, C};\n// use crate::b;\nfn f() { \"crate::b\"; }"),
            ("src/b.rs", "use std::fmt;\nuse crate::{\n    a::{C as D, d::*},\n};\nfn g() { std::a::c() }"),
            ("src/b/tests.rs", "use crate::a::d;"),
        ]);
        let expected =
            [("a", "a::c", 3), ("a::d", "a", 1), ("a::d", "a::c", 1), ("b", "a::c", 2), ("b", "a::d", 2)];
        assert_eq!(found, expected.map(|(from, to, line)| (from.to_owned(), to.to_owned(), line)));
    }

    #[test]
    fn paths_in_code_are_edges_and_those_of_tests_are_none() {
        let found = edges(&[
            (
                "src/a.rs",
                "mod c;\nfn f() { c::g(); super::b::h(); Vec::new() }\n#[cfg(test)]\nmod tests { use crate::d; }",
            ),
            ("src/a/c.rs", ""),
            ("src/b.rs", ""),
            ("src/d.rs", ""),
        ]);
        let expected = [("a", "a::c", 2), ("a", "b", 2)];
        assert_eq!(found, expected.map(|(from, to, line)| (from.to_owned(), to.to_owned(), line)));
    }

    #[test]
    fn cycles_are_found_with_all_their_files() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| vec![name.to_owned()]);
        let edges = [(&a, &b), (&b, &c), (&c, &a), (&c, &d)].map(|(from, to)| ((from, to.clone()), 1));
        let found = cycles(&edges.into_iter().collect());
        assert_eq!(found, [BTreeSet::from([a.clone(), b.clone(), c.clone()])]);
    }

    #[test]
    fn an_edge_leads_down_the_table() {
        let document = "| x | y |\n| modules of | order |\n|---|---|\n| x | a, b → c |\n";
        let order = order(document, "x");
        assert_eq!(fault(&order, "c", "b"), None);
        assert_eq!(fault(&order, "a", "b").as_deref(), Some("a stands beside b"));
        assert_eq!(fault(&order, "a", "c").as_deref(), Some("a stands below c"));
        assert_eq!(fault(&order, "c", "d").as_deref(), Some("the table has no module d"));
    }
}
