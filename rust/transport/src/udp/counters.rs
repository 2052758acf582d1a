//! Statistics of a rank behind a UDP socket, gathered from their counters.

use super::peer::{Peer, PeerSession};
use super::transport::UdpTransport;
use crate::stats::{Datagrams, UdpStats};

impl UdpTransport {
    /// The counts so far.
    pub(super) fn counted(&self) -> UdpStats {
        let seen = self.stage.lock().seen;
        let socket = Datagrams {
            octets_received: seen.octets,
            malformed: seen.malformed,
            bad_checksums: seen.bad_checksums,
            unknown: seen.unknown,
            // Drops that the system does not report count as zero.
            socket_drops: self.drops().unwrap_or(0).into(),
            receive_calls: seen.calls,
            data_copied_after: seen.moved,
            ..Datagrams::default()
        };
        let peers = self.peers().map(|peer: &Peer| (peer.rank, peer.session().counted())).collect();
        UdpStats { socket, peers }
    }
}

impl PeerSession {
    fn counted(&self) -> Datagrams {
        let (counters, left) = (self.connection.counters(), self.outgoing.left());
        Datagrams {
            messages_sent: self.tally.sent,
            messages_received: self.tally.received,
            packets_sent: counters.sent,
            packets_received: counters.received,
            octets_sent: left.octets,
            acks: counters.piggy_backed,
            pure_acks: counters.pure_acks,
            acks_drained: counters.acks_drained,
            acks_late: counters.acks_late,
            window_probes: counters.window_probes,
            retransmitted: counters.retransmitted,
            spurious: counters.spurious,
            probes: counters.probes,
            timeouts: counters.timeouts,
            cuts: counters.cuts,
            undone_cuts: counters.undone_cuts,
            kept: counters.buffered,
            unknown: counters.stale + counters.ignored_resets,
            duplicates: counters.duplicates,
            beyond_window: counters.beyond_window,
            violations: counters.violations + counters.bad_acks,
            send_calls: left.calls,
            data_sent: self.tally.data_sent,
            data_copied_before: self.store.copied() + left.copied,
            data_copied_to_system: left.data,
            data_received: self.tally.data_received,
            data_copied_after: self.tally.copied,
            window: self.connection.settings().send_window.into(),
            datagram_len: self.connection.settings().datagram_len_max as u64,
            round_trip_ns: counters.smoothed_rtt,
            round_trip_variation_ns: counters.rtt_variation,
            ..Datagrams::default()
        }
    }
}
