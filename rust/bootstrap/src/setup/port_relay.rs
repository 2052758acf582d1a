//! Port relays: programs that forward the datagrams between ranks, for tests and benchmarks of bad networks.

use std::fmt::Debug;
use std::io;
use std::time::Instant;

/// A relay between this rank and its peers. The peers send to ports of the relay, which forwards their
/// datagrams to the rank's own port. The launcher's ranks have none.
pub trait PortRelay: Debug + Sync {
    /// The relay's ports for `rank`, one for each of `ranks`: a peer reaches this rank at the port with the
    /// peer's number. That of the rank itself is 0. `port` is the rank's own port. May block until the
    /// deadline.
    ///
    /// # Errors
    /// The relay does not answer, or refuses.
    fn ports(&self, rank: u32, ranks: usize, port: u16, deadline: Instant) -> io::Result<Vec<u16>>;

    /// Whether the path through the relay counts as one to another machine, which may be congested.
    fn is_inter_node(&self) -> bool;
}
