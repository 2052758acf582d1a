//! The Hello of a rank to another one: its first octets on their connection.
//!
//! ```text
//! word 0   "mpjU"                 word 5   first sequence number of the sender's packets
//! word 1   version                word 6   octets of a datagram that it takes at most
//! word 2   its UDP port           word 7   packets that the reader may send ahead
//! word 3   connection id of       word 8   microseconds that its acknowledgments may wait
//! word 4   packets to the sender  word 9   1 if all packets are to have a checksum, else 0
//!                                 word 10  1 if the length of datagrams is to be proved, else 0
//! ```
//!
//! All are big-endian, 32 bits each.

use std::time::Duration;

use bytes::{Buf, BufMut};
use mpjdev_proto::datagram::layout::FULL_SEQUENCE_BITS;
use mpjdev_proto::datagram::reliable::settings::DATAGRAM_LEN_MIN;
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_proto::datagram::reliable::windows::RECEIVE_WINDOW_MAX;
use mpjdev_proto::datagram::sequence::FullSequence;

use super::error::SetupError;

/// Its first word.
const MAGIC: u32 = u32::from_be_bytes(*b"mpjU");
/// The version of the layout above, and of the packets.
const VERSION: u32 = 7;
/// Length in octets.
pub(super) const LEN: usize = 44;
/// The largest sequence number.
const SEQUENCE_MAX: u32 = (1 << FULL_SEQUENCE_BITS) - 1;
/// The limit on the delay of an ack.
const ACK_DELAY_MAX: Duration = Duration::from_secs(1);

/// The Hello that one rank sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) port: u16,
    pub(super) connection: u64,
    pub(super) first: FullSequence,
    pub(super) datagram_len_max: usize,
    pub(super) window: u16,
    pub(super) max_ack_delay: Nanos,
    pub(super) wants_checksums: bool,
    /// Whether the path to the reader may drop long datagrams silently: it leaves the machine.
    pub(super) wants_proof: bool,
}

impl Hello {
    pub(super) fn emit(&self) -> [u8; LEN] {
        let numbers = [
            MAGIC,
            VERSION,
            self.port.into(),
            (self.connection >> 32) as u32,
            self.connection as u32,
            self.first.bits(),
            u32::try_from(self.datagram_len_max).unwrap_or(u32::MAX),
            self.window.into(),
            u32::try_from(self.max_ack_delay / 1000).unwrap_or(u32::MAX),
            self.wants_checksums.into(),
            self.wants_proof.into(),
        ];
        let mut octets = [0; LEN];
        let mut rest = &mut octets[..];
        numbers.into_iter().for_each(|number| rest.put_u32(number));
        octets
    }

    /// Parses the Hello of `peer`.
    pub(super) fn parse(octets: &[u8; LEN], peer: u32) -> Result<Hello, SetupError> {
        let mut rest = &octets[..];
        let numbers: [u32; LEN / 4] = std::array::from_fn(|_| rest.get_u32());
        let [magic, version, port, high, low, first, len, window, delay, checksums, proof] = numbers;
        check_version([magic, version], peer)?;
        let within = |field, value: u32, min: u32, max: u32| {
            let is_within = (min..=max).contains(&value);
            if is_within { Ok(value) } else { Err(SetupError::Value { peer, field, value }) }
        };
        within("the UDP port", port, 1, u16::MAX.into())?;
        let connection = u64::from(high) << 32 | u64::from(low);
        within("the first sequence number", first, 0, SEQUENCE_MAX)?;
        within("the maximum length of datagrams", len, DATAGRAM_LEN_MIN as u32, u32::MAX)?;
        within("the window", window, 1, RECEIVE_WINDOW_MAX.into())?;
        within(
            "the maximum delay of an acknowledgment in microseconds",
            delay,
            0,
            ACK_DELAY_MAX.as_micros() as u32,
        )?;
        within("the flag for checksums", checksums, 0, 1)?;
        within("the flag for a proof of lengths", proof, 0, 1)?;
        Ok(Hello {
            port: port as u16,
            connection,
            first: FullSequence::of(first.into()),
            datagram_len_max: len as usize,
            window: window as u16,
            max_ack_delay: Nanos::from(delay) * 1000,
            wants_checksums: checksums == 1,
            wants_proof: proof == 1,
        })
    }
}

pub(super) fn check_version(begin: [u32; 2], peer: u32) -> Result<(), SetupError> {
    let own = [MAGIC, VERSION];
    if begin == own { Ok(()) } else { Err(SetupError::Version { peer, begin, own }) }
}
