//! Fuzz targets: one function per parser or machine, each takes octets and panics when a promise is broken.
//!
//! They build on stable Rust and are called by tests/soak.rs with the corpus and seeded mutations of it;
//! README.md says how to put a coverage-guided fuzzer in front of them.
#![forbid(unsafe_code)]

mod datagram;
mod handshake;
mod inspect;
mod ledger;
mod message;
mod mutate;
mod packet;
mod pair;
mod reader;
mod recording;
mod reliable;
mod startup;
mod unet;
mod world;

pub use datagram::datagram;
pub use handshake::handshake;
pub use inspect::{input, inspect};
pub use message::message;
pub use mutate::Mutator;
pub use packet::packet;
pub use pair::pair;
pub use reader::reader;
pub use recording::recording;
pub use reliable::reliable;
pub use startup::{startup_client, startup_server};
pub use unet::unet;
pub use world::world;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets: name, folder of its corpus, function.
pub const TARGETS: [(&str, &str, Target); 14] = [
    ("message", "message", message),
    ("reader", "reader", reader),
    ("inspect", "message", inspect),
    ("input", "input", input),
    ("startup-client", "startup-client", startup_client),
    ("startup-server", "startup-server", startup_server),
    ("packet", "packet", packet),
    ("pair", "pair", pair),
    ("recording", "recording", recording),
    ("handshake", "handshake", handshake),
    ("world", "world", world),
    ("datagram", "datagram", datagram),
    ("datagram-unet", "datagram-unet", unet),
    ("datagram-reliable", "datagram-reliable", reliable),
];
