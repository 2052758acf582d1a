//! The probe: a datagram by which two ranks find out, before the first packet, that datagrams arrive (5.10).
//!
//! A stranger cannot make one, since it names the connection. It may arrive after the first packets.

use std::net::SocketAddr;

/// What a probe begins with.
const MAGIC: [u8; 4] = *b"mpjE";
/// Octets of a probe: shorter than any packet.
pub const LEN: usize = 12;

/// A datagram that came before this rank was ready, and where it came from.
pub type Early = (SocketAddr, Vec<u8>);

/// The probe of a connection.
#[must_use]
pub fn emit(connection: u64) -> [u8; LEN] {
    let mut octets = [0; LEN];
    octets[..4].copy_from_slice(&MAGIC);
    octets[4..].copy_from_slice(&connection.to_be_bytes());
    octets
}

/// Whether a datagram with these first octets is a probe.
pub(super) fn is_probe(begin: [u8; 4], len: usize) -> bool {
    len == LEN && begin == MAGIC
}

/// The connection that a probe names, if this is one.
#[must_use]
pub fn connection_of(octets: &[u8]) -> Option<u64> {
    let (begin, id) = octets.split_first_chunk()?;
    let id = id.try_into().ok().map(u64::from_be_bytes);
    id.filter(|_| is_probe(*begin, octets.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_names_its_connection_and_nothing_else_is_one() {
        assert_eq!(connection_of(&emit(0x1234_5678_9abc_def0)), Some(0x1234_5678_9abc_def0));
        for other in [&b"mpjE1234567"[..], b"mpjE123456789", b"mpjU12345678", b""] {
            assert_eq!(connection_of(other), None, "{other:?}");
        }
    }
}
