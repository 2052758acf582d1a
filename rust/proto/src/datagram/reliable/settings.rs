//! The settings that both ends agree on at setup (5.10), and the limits of one of them.

use thiserror::Error;

use super::super::layout::{CONTEXT_LEN, FIXED_LEN, FRAGMENT_LEN, TRAILER_LEN, WINDOW_MAX};
use super::super::sequence::FullSequence;
use super::congestion::Algorithm;
use super::message_rx::SLOTS_MAX;
use super::rtt::Timing;
use super::time::{MILLISECOND, Nanos, SECOND};
use super::windows::RECEIVE_WINDOW_MAX;

/// What is known of the way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Which rule the congestion window follows.
    pub algorithm: Algorithm,
    /// Packets that may be under way at first.
    pub window: u32,
    /// Packets that may be under way at most.
    pub window_max: u32,
    /// Octets in a second, if it is a private link whose rate was declared: it is paced at that.
    pub rate: Option<u64>,
    /// Limits of the timer.
    pub timing: Timing,
    /// Longest wait of an acknowledgment for a packet to ride on; told to the peer at setup.
    pub max_ack_delay: Nanos,
}

impl Path {
    /// Loopback, or a LAN that nobody else uses: 64 packets at once (5.4), acknowledgments after 1 ms (5.6).
    pub const PRIVATE: Self = Self {
        algorithm: Algorithm::Private,
        window: 64,
        window_max: WINDOW_LIMIT,
        rate: None,
        timing: Timing::SHARED,
        max_ack_delay: MILLISECOND,
    };
    /// Nothing is known: 10 packets at first (5.4), acknowledgments after 25 ms (5.6).
    pub const UNKNOWN: Self = Self {
        algorithm: Algorithm::Cubic,
        window: 10,
        window_max: WINDOW_LIMIT,
        rate: None,
        timing: Timing::UNKNOWN_PATH,
        max_ack_delay: 25 * MILLISECOND,
    };
}

/// Packets that may be under way at most, unless the driver says otherwise (5.4).
const WINDOW_LIMIT: u32 = 2048;

/// What one end knows at setup. Both ends' numbers come from the exchange that is no part of this protocol (5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The connection, as this end has called it: packets that come have this number.
    pub ours: u64,
    /// The same, as the peer has called it: packets that leave have this number.
    pub theirs: u64,
    /// Our first sequence number.
    pub first_ours: FullSequence,
    /// The peer's first sequence number.
    pub first_theirs: FullSequence,
    /// Octets of a datagram at most, from the header on, as both ends have agreed; at least [`DATAGRAM_LEN_MIN`].
    pub datagram_len_max: usize,
    /// Packets that the peer may send ahead: this end's part of its socket ([`super::windows::Shares`]); at least 1.
    pub receive_window: u16,
    /// Packets that this end may send ahead at first: what the peer has as its `receive_window`.
    pub send_window: u16,
    /// The peer's `max_ack_delay`.
    pub peer_max_ack_delay: Nanos,
    /// What is known of the way.
    pub path: Path,
    /// Whether a RST ends the connection. It does not where the driver has a better witness, such as a TCP connection
    /// to the peer, which ends when the peer does: anybody who sees the packets of a connection can forge a RST.
    pub trusts_resets: bool,
    /// A round trip that was measured before (5.10: a UDP echo).
    pub first_rtt: Option<Nanos>,
    /// Packets after which an acknowledgment leaves at once; 0: a quarter of the window (5.6).
    pub ack_every: u16,
    /// Whether packets that leave have a CRC32C.
    pub checked: bool,
    /// Octets of a message that leave without a grant, if they fit a quarter of the window as well (5.9).
    pub eager_max: u32,
    /// Most sends that are kept here. At least 1.
    pub sends_max: usize,
    /// The peer's `sends_max`: so many messages may wait for our answers.
    pub peer_sends_max: usize,
    /// Most unmatched messages with ids that the peer makes us keep; more than `receive_window`, at most [`ARRIVALS_MAX`].
    pub arrivals_max: usize,
    /// The peer is dead after that long without a packet, while something is to come from it (5.8).
    pub dead_after: Nanos,
}

/// The shortest datagram with room for a fragment of an octet, whatever blocks it needs.
pub const DATAGRAM_LEN_MIN: usize =
    FIXED_LEN + CONTEXT_LEN + FRAGMENT_LEN + TRAILER_LEN + RTS_DATA_LEN as usize;
/// Octets of an announced message that go with its request: what a receiver needs to judge it (as over IMPI).
pub const RTS_DATA_LEN: u32 = 8;
/// How long nothing may come from a peer that owes something (5.8).
pub const DEAD_AFTER: Nanos = 30 * SECOND;
/// Most octets of a message without a grant (5.9).
pub const EAGER_MAX: u32 = 16 * 1024;
/// The most arrivals that have ids.
pub const ARRIVALS_MAX: usize = SLOTS_MAX - 1;
/// Settings with which a connection cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// No fragment would fit.
    #[error("datagrams of {datagram_len_max} octets are too short, {DATAGRAM_LEN_MIN} are needed")]
    DatagramLen {
        /// Octets of a datagram at most.
        datagram_len_max: usize,
    },
    /// Nothing could come, or the numbers would not do.
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
    /// Nothing could be sent.
    #[error("sends_max is 0")]
    SendsMax,
    /// Nothing could come, or the ids would not do.
    #[error(
        "arrivals_max {arrivals_max} is not above the receive window of {receive_window}, or above {ARRIVALS_MAX}"
    )]
    ArrivalsMax {
        /// Most unmatched messages that the peer makes us keep.
        arrivals_max: usize,
        /// Packets that the peer may send ahead.
        receive_window: u16,
    },
}

impl Settings {
    /// For a path of which nothing else is known, numbers and windows to be filled in.
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

    /// Answers that wait at most: each message of the peer may have one for its match and one for its cancel.
    pub(super) const fn answers_max(&self) -> usize {
        self.peer_sends_max.saturating_mul(2).saturating_add(self.receive_window as usize * 2)
    }

    /// Octets of a message that leave without a grant.
    pub(super) fn eager_len(&self) -> u64 {
        let fragment = (self.room() - FRAGMENT_LEN - CONTEXT_LEN) as u64;
        u64::from(self.eager_max).min(fragment * u64::from(self.send_window / 4))
    }
}
