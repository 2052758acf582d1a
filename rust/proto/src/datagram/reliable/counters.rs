//! The counters of a connection.

use super::time::Nanos;

/// Counts since the connection began. All only grow, except the round trip and the congestion window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets with a sequence number, without retransmissions.
    pub sent: u64,
    /// Retransmissions of any cause.
    pub retransmitted: u64,
    /// Of those, spurious ones: the peer had received the packet.
    pub spurious: u64,
    /// Of those, PTO probes.
    pub probes: u64,
    /// Acks sent on a packet with a sequence number.
    pub piggy_backed: u64,
    /// Packets without a sequence number that were sent.
    pub pure_acks: u64,
    /// Of those, acks sent because the socket was drained and the program did not reply.
    pub acks_drained: u64,
    /// Of those, acks that had waited for max_ack_delay.
    pub acks_late: u64,
    /// Of those, window probes.
    pub window_probes: u64,
    /// Expiries of the PTO timer.
    pub timeouts: u64,
    /// Cuts of the congestion window.
    pub cuts: u64,
    /// Cuts that were undone.
    pub undone_cuts: u64,
    /// Packets received for this connection.
    pub received: u64,
    /// Of those, packets without a sequence number.
    pub received_pure: u64,
    /// Of those, packets buffered until earlier ones arrived.
    pub buffered: u64,
    /// Packets with another connection id: of an earlier run, or forged.
    pub stale: u64,
    /// RSTs that were ignored.
    pub ignored_resets: u64,
    /// Packets received before.
    pub duplicates: u64,
    /// Packets beyond the window.
    pub beyond_window: u64,
    /// Acks of numbers that were never sent.
    pub bad_acks: u64,
    /// Packets that no honest peer sends; their contents are ignored.
    pub violations: u64,
    /// S, or 0 before any sample.
    pub smoothed_rtt: Nanos,
    /// V, or 0 before any sample.
    pub rtt_variation: Nanos,
    /// The congestion window, in packets.
    pub congestion_window: u32,
}
