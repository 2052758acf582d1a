//! Fuzz targets: one function per parser, each takes octets and panics when a promise is broken.
//!
//! They build on stable Rust and are called by tests/soak.rs with the corpus and seeded mutations of it; README.md
//! says how to put a coverage-guided fuzzer in front of them.
#![forbid(unsafe_code)]

mod inspect;
mod ledger;
mod message;
mod mutate;
mod reader;

pub use inspect::{input, inspect};
pub use message::message;
pub use mutate::Mutator;
pub use reader::reader;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets: name, folder of its corpus, function.
pub const TARGETS: [(&str, &str, Target); 4] = [
    ("message", "message", message),
    ("reader", "reader", reader),
    ("inspect", "message", inspect),
    ("input", "input", input),
];
