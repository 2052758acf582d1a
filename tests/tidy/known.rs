//! Known exceptions to the rules. An entry that no longer occurs fails its test, so that the lists only
//! shrink.

/// Public items that only tests or benchmarks use, each with its purpose.
pub(crate) const UNUSED_ITEMS: [(&str, &str); 6] = [
    ("is_resting", "a state that tests wait for"),
    ("clear_doorbells", "a loss of hints that tests cause"),
    ("clear_epoch", "a loss of hints that tests cause"),
    ("udp_socket", "the socket that tests disturb"),
    ("close_peer", "a failed peer that tests cause"),
    ("jobs", "ranks of one process, which tests connect"),
];

/// Edges between modules that lead up or sideways.
pub(crate) const MODULE_EDGES: [&str; 0] = [];

/// Files that take part in a cycle of imports, by crate.
pub(crate) const CYCLES: [&[&str]; 0] = [];

/// Areas with comments or strings that are still to be wrapped.
pub(crate) const WIDE: [&str; 0] = [];

/// Areas with docs that begin with a relative clause.
pub(crate) const CLAUSES: [&str; 0] = [];

/// Phrases that the glossary replaces, with the areas that still have them.
pub(crate) const PHRASES: [&str; 0] = [];

/// Areas with citations that lead nowhere.
pub(crate) const CITATIONS: [&str; 0] = [];

/// Files whose module docs begin with a long sentence.
pub(crate) const LONG_SENTENCES: [&str; 0] = [];

/// Files that are named by gerunds.
pub(crate) const GERUND_FILES: [&str; 0] = [];

/// Functions of more than 70 lines, by file.
pub(crate) const LONG_FUNCTIONS: [&str; 0] = [];

/// Areas with test names that have phrases which the glossary replaces.
pub(crate) const TEST_NAMES: [&str; 0] = [];
