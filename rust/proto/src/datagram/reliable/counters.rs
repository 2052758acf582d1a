//! The counters of a connection.

use super::time::Nanos;

/// Numbers since the connection began; they only grow, but for the round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets with a sequence number that left for the first time.
    pub sent: u64,
    /// Packets with a sequence number that left again, for whatever reason.
    pub retransmitted: u64,
    /// Of those, packets of which the peer says that it had them already.
    pub spurious: u64,
    /// Of those, packets that left because the timer expired.
    pub probes: u64,
    /// Acknowledgments that left on a packet with a sequence number.
    pub piggy_backed: u64,
    /// Packets without a sequence number that left.
    pub pure_acks: u64,
    /// Of those, acknowledgments that left because the socket was drained, and nobody answered.
    pub acks_drained: u64,
    /// Of those, acknowledgments that had waited for max_ack_delay.
    pub acks_late: u64,
    /// Of those, questions for the peer's window.
    pub window_probes: u64,
    /// Timers that expired in vain.
    pub timeouts: u64,
    /// Cuts of the congestion window.
    pub cuts: u64,
    /// Cuts that were taken back.
    pub undone_cuts: u64,
    /// Packets that came and were of this connection.
    pub received: u64,
    /// Of those, packets without a sequence number.
    pub received_pure: u64,
    /// Of those, packets that were kept until earlier ones had come.
    pub buffered: u64,
    /// Packets with the number of another connection: of an earlier run, or of nobody.
    pub stale: u64,
    /// Resets that were not believed.
    pub ignored_resets: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets beyond the window.
    pub beyond_window: u64,
    /// Acknowledgments of what was never sent.
    pub bad_acks: u64,
    /// Packets that no honest peer sends; what they say was ignored.
    pub violations: u64,
    /// S, or 0 before any sample.
    pub smoothed_rtt: Nanos,
    /// V, or 0 before any sample.
    pub rtt_variation: Nanos,
}
