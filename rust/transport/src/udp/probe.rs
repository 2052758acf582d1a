//! Path probe: a datagram by which two ranks find out, before the first packet, that datagrams arrive, and of
//! which length (5.10, 5.2).
//!
//! An outsider cannot make one, since it names the connection. It may arrive after the first packets.
//!
//! ```text
//! "mpjE", connection id 8, zeros: no packet begins like that
//! ```

use std::net::SocketAddr;

/// First octets of a probe. As a packet header they would be neither a message nor an ack.
const MAGIC: [u8; 4] = *b"mpjE";
/// Octets of the shortest probe: shorter than any packet.
pub const LEN: usize = 12;

/// A datagram that arrived before this rank was ready, and its source.
pub type Early = (SocketAddr, Vec<u8>);

/// The probe of a connection with `len` octets.
#[must_use]
pub fn emit(connection: u64, len: usize) -> Vec<u8> {
    let mut octets = [&MAGIC[..], &connection.to_be_bytes()].concat();
    octets.resize(len.max(LEN), 0);
    octets
}

/// Whether a datagram with these first octets is a probe.
pub(super) fn is_probe(begin: [u8; 4], len: usize) -> bool {
    len >= LEN && begin == MAGIC
}

/// The connection that a probe names; `None` if this is no probe.
#[must_use]
pub fn connection_of(octets: &[u8]) -> Option<u64> {
    let (begin, rest) = octets.split_first_chunk()?;
    let id = rest.first_chunk().copied().map(u64::from_be_bytes);
    id.filter(|_| is_probe(*begin, octets.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_octets_of_a_probe_have_a_connection_id() {
        for len in [LEN, LEN + 1, 1472] {
            let probe = emit(0x1234_5678_9abc_def0, len);
            assert_eq!((probe.len(), connection_of(&probe)), (len, Some(0x1234_5678_9abc_def0)));
            // A packet header without a number and without an ack is rejected.
            assert_eq!((probe[0] >> 7, probe[2] >> 7), (0, 0));
        }
        for other in [&b"mpjE1234567"[..], b"mpjU12345678", b"mpjU123456789", b"mpjE", b""] {
            assert_eq!(connection_of(other), None, "{other:?}");
        }
    }
}
