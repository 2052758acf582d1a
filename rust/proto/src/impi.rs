//! IMPI 0.0: start-up of the sites of a job, and messages between them.
//!
//! All integers are big-endian on the wire. *IMPI n* is section n of `docs/spec/impi.md`. It separates the
//! draft of March 1999, the later text, and the observed behaviour of existing implementations.

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
    /// The later text, which every existing implementation uses (IMPI 15).
    #[default]
    Final,
    /// The draft of 22 March 1999: an 8-octet tag and no lsrank in the packet header, seven packet types,
    /// process ids of 4 octets, a key in clear first (IMPI 15).
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

/// The name of a process in the whole job (IMPI 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proc {
    /// Host id exactly as it was announced, normally an address in the form of IPv6; compared octet by octet.
    pub host_id: [u8; 16],
    /// A number that is unique among the processes of the host id.
    pub pid: i64,
}
