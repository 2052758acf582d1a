//! The order of locks: the table of ARCHITECTURE.md has the ranks of `sys::lock_order`, from the first to the
//! last.

use crate::tree::{read, root};

/// Head of the table.
const HEAD: &str = "| `LockRank` |";
/// File with the ranks, and the line before them.
const CODE: (&str, &str) = ("rust/sys/src/lock_order.rs", "pub enum LockRank {");

/// Names in `code` type in the first column of the table.
fn ranks_of_document(document: &str) -> Vec<&str> {
    let rows = document.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.trim_start_matches("| ").split(" |").next().unwrap_or_default());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// Variants of the enum in their order.
fn ranks_of_code(code: &str) -> Vec<&str> {
    let lines = code.lines().skip_while(|line| *line != CODE.1).skip(1).take_while(|line| *line != "}");
    let variants = lines.map(str::trim).filter(|line| !line.starts_with("//"));
    variants.map(|line| line.trim_end_matches(',')).collect()
}

#[test]
fn lock_ranks_of_the_document_are_those_of_the_code() {
    let (document, code) = (read(&root().join("ARCHITECTURE.md")), read(&root().join(CODE.0)));
    let ranks = ranks_of_code(&code);
    assert!(!ranks.is_empty(), "{}: no ranks below {:?}", CODE.0, CODE.1);
    assert_eq!(ranks_of_document(&document), ranks, "ARCHITECTURE.md, and {}", CODE.0);
}

#[test]
fn lock_ranks_are_found_in_order() {
    let document = "x\n| `LockRank` | lock |\n|---|---|\n| `A`, then `B` | `c` |\n| `D` | e |\n\n| `F` |";
    assert_eq!(ranks_of_document(document), ["A", "B", "D"]);
    let code = "use x;\npub enum LockRank {\n    /// A.\n    A,\n    B,\n}\nstruct C;";
    assert_eq!(ranks_of_code(code), ["A", "B"]);
}
