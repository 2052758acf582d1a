//! Names in the charts of ARCHITECTURE.md: each is a function or a module of the product.

use crate::text::has_word;
use crate::tree::{Source, none, read, root, rust_sources};

/// Section with the charts.
const SECTION: &str = "\n## 3. ";

/// Names with an underscore in the code blocks of the section. A name that ends with one is part of a list.
fn names(document: &str) -> Vec<&str> {
    let section =
        document.split_once(SECTION).map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or(rest));
    let charts = section.split("```").skip(1).step_by(2);
    let words = charts.flat_map(|chart| chart.split(|c: char| !(c.is_alphanumeric() || c == '_')));
    let mut names: Vec<&str> = words.filter(|word| word.trim_matches('_').contains('_')).collect();
    names.retain(|name| !name.ends_with('_'));
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether a source is this module, or defines this function.
fn defines(source: &Source, name: &str) -> bool {
    source.path.ends_with(&format!("/{name}.rs")) || has_word(source.product(), &format!("fn {name}"))
}

#[test]
fn charts_name_functions_and_modules_that_exist() {
    let document = read(&root().join("ARCHITECTURE.md"));
    let names = names(&document);
    assert!(!names.is_empty(), "no names in the charts below {SECTION:?}");
    let product = || rust_sources().iter().filter(|source| !source.is_test());
    let missing = names.iter().filter(|name| !product().any(|source| defines(source, name)));
    let findings = missing.map(|name| format!("ARCHITECTURE.md: {name}"));
    none(findings.collect(), "a chart names neither a function nor a module");
}

#[test]
fn names_are_found_in_charts_alone() {
    let document = "\n## 3. Life\na_b\n```text\nc: d_e -> F::g_h, i_{j,k}\n```\nl_m\n## 4. X\n```\nn_o\n```";
    assert_eq!(names(document), ["d_e", "g_h"]);
    let source = Source::new("rust/x/src/a_b.rs", "fn c_d() {}\n// fn e_f");
    assert_eq!(["a_b", "c_d", "e_f"].map(|name| defines(&source, name)), [true, true, false]);
}
