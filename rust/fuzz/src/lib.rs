//! Fuzz targets: one function per parser or state machine. Each takes octets and panics if an invariant in
//! its doc does not hold.
//!
//! They build on stable Rust. tests/soak.rs calls them with the corpus and seeded mutations of it. README.md
//! describes the use of a coverage-guided fuzzer.
#![forbid(unsafe_code)]

mod counting_source;
mod datagram;
mod handshake;
mod inspect;
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

/// All targets: name, folder of the corpus, function.
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
