//! IMPI 0.0: what sites say to the startup server and to each other.
//!
//! All integers are big-endian on the wire. *IMPI n* is section n of `docs/spec/impi.md`, which says what
//! comes from the draft of March 1999, what from the later text, and what was seen in the octets of living
//! implementations.

mod arrival;
pub mod barrier;
mod cancel;
mod event;
pub mod fini;
pub mod flow;
pub mod layout;
pub mod marker;
pub mod message_rx;
pub mod message_tx;
pub mod packet;
pub mod pair;
pub mod pair_error;
pub mod startup;

/// The version of the specification that a job follows, the same for all of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The later text, which every living implementation speaks (IMPI 15).
    #[default]
    Final,
    /// The draft of 22 March 1999: an 8-octet tag and no lsrank in the packet header, seven packet types,
    /// process ids of 4 octets, a plain key in front (IMPI 15).
    Draft,
}

impl Dialect {
    /// `final` or `draft`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Final => "final",
            Dialect::Draft => "draft",
        }
    }
}

/// A process as the whole job knows it (IMPI 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proc {
    /// Host id exactly as it was announced: normally an address in the form of IPv6; compared octet for
    /// octet.
    pub host_id: [u8; 16],
    /// Number that no other process of the same host id has.
    pub pid: i64,
}
