//! The settings that both ends agree on at setup (5.10), and the limits of one of them.

use thiserror::Error;

use super::super::layout::{CONTEXT_LEN, FIXED_LEN, FRAGMENT_LEN, TRAILER_LEN, WINDOW_MAX};
use super::super::sequence::FullSequence;
use super::arrival::ArrivalId;
use super::congestion::Algorithm;
use super::rtt::Timing;
use super::time::{MILLISECOND, Nanos, SECOND};
use super::windows::RECEIVE_WINDOW_MAX;

/// The parameters of the path to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The congestion control algorithm.
    pub algorithm: Algorithm,
    /// The initial congestion window, in packets.
    pub window: u32,
    /// The largest congestion window, in packets.
    pub window_max: u32,
    /// The declared rate of a private link in octets per second, which paces it.
    pub rate: Option<u64>,
    /// Limits of the timer.
    pub timing: Timing,
    /// Longest delay of an ack; sent to the peer at setup.
    pub max_ack_delay: Nanos,
}

impl Path {
    /// Loopback, or a LAN without other traffic: 64 packets at once (5.4), acks after 1 ms (5.6).
    pub const PRIVATE: Self = Self {
        algorithm: Algorithm::Private,
        window: 64,
        window_max: WINDOW_LIMIT,
        rate: None,
        timing: Timing::SHARED,
        max_ack_delay: MILLISECOND,
    };
    /// An unknown path: 10 packets at first (5.4), acks after 25 ms (5.6).
    pub const UNKNOWN: Self = Self {
        algorithm: Algorithm::Cubic,
        window: 10,
        window_max: WINDOW_LIMIT,
        rate: None,
        timing: Timing::UNKNOWN_PATH,
        max_ack_delay: 25 * MILLISECOND,
    };
}

/// The default of the largest congestion window (5.4).
const WINDOW_LIMIT: u32 = 2048;

/// The settings of one end. The ids and numbers of both ends come from an exchange outside this protocol
/// (5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The id that this end chose for the connection: received packets have it.
    pub ours: u64,
    /// The id that the peer chose: sent packets have it.
    pub theirs: u64,
    /// The first sequence number of this end.
    pub first_ours: FullSequence,
    /// The peer's first sequence number.
    pub first_theirs: FullSequence,
    /// Most octets of a datagram, header included, as agreed; at least [`DATAGRAM_LEN_MIN`].
    pub datagram_len_max: usize,
    /// Packets that the peer may send ahead: its share of this end's socket ([`super::windows::share`]); at
    /// least 1.
    pub receive_window: u16,
    /// Packets that this end may send ahead at first: the peer's `receive_window`.
    pub send_window: u16,
    /// The peer's `max_ack_delay`.
    pub peer_max_ack_delay: Nanos,
    /// The parameters of the path.
    pub path: Path,
    /// Whether a RST ends the connection. False where the driver detects the end of the peer by other means,
    /// such as a TCP connection to it: a RST can be forged by anyone who sees the packets of the connection.
    pub trusts_resets: bool,
    /// A round trip that was measured before (5.10: a UDP echo).
    pub first_rtt: Option<Nanos>,
    /// Packets after which an ack is sent at once; 0 for a quarter of the window (5.6).
    pub ack_every: u16,
    /// Whether sent packets have a CRC32C.
    pub checked: bool,
    /// Longest message that is sent without a grant, if it fits a quarter of the window as well (5.9).
    pub eager_max: u32,
    /// Most pending sends. At least 1.
    pub sends_max: usize,
    /// The peer's `sends_max`: messages that may wait for answers of this end.
    pub peer_sends_max: usize,
    /// Most unmatched messages with ids; more than `receive_window`, at most [`ARRIVALS_MAX`].
    pub arrivals_max: usize,
    /// Time without a packet after which the peer is dead, while an ack or a window is due (5.8).
    pub dead_after: Nanos,
}

/// The shortest datagram with room for a fragment of one octet and all blocks.
pub const DATAGRAM_LEN_MIN: usize =
    FIXED_LEN + CONTEXT_LEN + FRAGMENT_LEN + TRAILER_LEN + RTS_DATA_LEN as usize;
/// Octets of a rendezvous in its RTS, from which a probe knows type and count of the first section (as over
/// IMPI).
pub const RTS_DATA_LEN: u32 = 16;
/// The default of [`Settings::dead_after`] (5.8).
pub const DEAD_AFTER: Nanos = 30 * SECOND;
/// The default of [`Settings::eager_max`] (5.9).
pub const EAGER_MAX: u32 = 16 * 1024;
/// Most arrivals with ids.
pub const ARRIVALS_MAX: usize = ArrivalId::SLOTS_MAX - 1;
/// Settings with which a connection cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// No fragment fits.
    #[error("datagrams of {datagram_len_max} octets are too short, {DATAGRAM_LEN_MIN} are needed")]
    DatagramLen {
        /// Most octets of a datagram.
        datagram_len_max: usize,
    },
    /// Nothing can be received, or sequence numbers become ambiguous.
    #[error("a receive window of {receive_window} packets, 1 to {RECEIVE_WINDOW_MAX} can be had")]
    ReceiveWindow {
        /// Packets that the peer may send ahead.
        receive_window: u16,
    },
    /// The peer grants more than the numbers allow.
    #[error("a send window of {send_window} packets, at most {WINDOW_MAX} can be used")]
    SendWindow {
        /// Packets that this end may send ahead.
        send_window: u16,
    },
    /// Nothing can be sent.
    #[error("sends_max is 0")]
    SendsMax,
    /// Nothing can be received, or there are not enough ids.
    #[error(
        "arrivals_max {arrivals_max} is not above the receive window of {receive_window}, or above \
         {ARRIVALS_MAX}"
    )]
    ArrivalsMax {
        /// Most unmatched messages of the peer.
        arrivals_max: usize,
        /// Packets that the peer may send ahead.
        receive_window: u16,
    },
}

impl Settings {
    /// Default settings for a path. The caller fills in ids, numbers and windows.
    #[must_use]
    pub const fn new(path: Path) -> Self {
        Self {
            ours: 0,
            theirs: 0,
            first_ours: FullSequence::of(0),
            first_theirs: FullSequence::of(0),
            datagram_len_max: 1200,
            receive_window: 64,
            send_window: 64,
            peer_max_ack_delay: path.max_ack_delay,
            path,
            trusts_resets: true,
            first_rtt: None,
            ack_every: 0,
            checked: false,
            eager_max: EAGER_MAX,
            sends_max: 1 << 16,
            peer_sends_max: 1 << 16,
            arrivals_max: 1 << 14,
            dead_after: DEAD_AFTER,
        }
    }

    /// # Errors
    /// The first limit with which a connection cannot work.
    pub const fn check(&self) -> Result<(), SettingsError> {
        let Self { datagram_len_max, receive_window, send_window, arrivals_max, .. } = *self;
        if datagram_len_max < DATAGRAM_LEN_MIN {
            return Err(SettingsError::DatagramLen { datagram_len_max });
        }
        if receive_window == 0 || receive_window > RECEIVE_WINDOW_MAX {
            return Err(SettingsError::ReceiveWindow { receive_window });
        }
        if send_window > WINDOW_MAX {
            return Err(SettingsError::SendWindow { send_window });
        }
        if self.sends_max == 0 {
            return Err(SettingsError::SendsMax);
        }
        if arrivals_max <= receive_window as usize || arrivals_max > ARRIVALS_MAX {
            return Err(SettingsError::ArrivalsMax { arrivals_max, receive_window });
        }
        Ok(())
    }

    /// Octets of blocks and user data in one packet.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.datagram_len_max - FIXED_LEN - if self.checked { TRAILER_LEN } else { 0 }
    }

    /// Most answers that wait: each message of the peer may have one for its match and one for its cancel.
    pub(super) const fn answers_max(&self) -> usize {
        self.peer_sends_max.saturating_mul(2).saturating_add(self.receive_window as usize * 2)
    }

    /// Longest message that is sent without a grant.
    pub(super) fn eager_len(&self) -> u64 {
        let fragment = (self.room() - FRAGMENT_LEN - CONTEXT_LEN) as u64;
        u64::from(self.eager_max).min(fragment * u64::from(self.send_window / 4))
    }
}
