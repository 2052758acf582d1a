//! Poll frequency of the network in a thread that spins on shared memory.
//!
//! A poll of the connections is a system call; a poll of the intra-node queues is a few loads. A packet from
//! an intra-node rank is usually followed by another one after a few polls, so the network is polled rarely
//! just after one. It is always polled from time to time.
//!
//! | empty intra-node polls since the last intra-node packet | the network is polled |
//! |---|---|
//! | fewer than [`BUSY_POLLS`] | every 65th time |
//! | fewer than [`IDLE_POLLS`] | every 9th time |
//! | more, or after a network packet | every time |

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Empty intra-node polls after an intra-node packet in which the network is polled only once per
/// [`BUSY_SKIPS`].
const BUSY_POLLS: u32 = 16;
/// Empty intra-node polls after which each poll includes the network. Until then one in [`QUIET_SKIPS`]
/// does.
const IDLE_POLLS: u32 = 256;
const QUIET_SKIPS: u32 = 8;
/// Intra-node polls between two polls of the network, just after an intra-node packet.
const BUSY_SKIPS: u32 = 64;

/// Poll counters. Threads that poll at the same time may lose counts, which is harmless.
#[derive(Debug)]
pub(super) struct NetPollPolicy {
    /// Empty polls since the last intra-node packet, up to [`IDLE_POLLS`].
    empty_polls: AtomicU32,
    /// Polls since the last one of the network.
    skipped: AtomicU32,
}

impl Default for NetPollPolicy {
    fn default() -> Self {
        NetPollPolicy { empty_polls: AtomicU32::new(IDLE_POLLS), skipped: AtomicU32::new(0) }
    }
}

impl NetPollPolicy {
    /// Whether a poll of the network is due.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let empty_polls = self.empty_polls.load(Relaxed);
        if empty_polls >= IDLE_POLLS {
            return true;
        }
        let skipped = self.skipped.load(Relaxed);
        let most = if empty_polls < BUSY_POLLS { BUSY_SKIPS } else { QUIET_SKIPS };
        let is_due = skipped >= most;
        self.empty_polls.store(empty_polls + 1, Relaxed);
        self.skipped.store(if is_due { 0 } else { skipped + 1 }, Relaxed);
        is_due
    }

    /// Records an intra-node packet.
    #[inline]
    pub(super) fn record_intra_packet(&self) {
        self.empty_polls.store(0, Relaxed);
    }

    /// Records a packet from the network, or the chance of one.
    #[inline]
    pub(super) fn record_inter_packet(&self) {
        self.empty_polls.store(IDLE_POLLS, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of polls until the network is polled, this one included.
    fn polls_until_due(net_poll: &NetPollPolicy) -> u32 {
        let polls = (1..1000).find(|_| net_poll.is_due());
        polls.expect("polled")
    }

    #[test]
    fn network_is_polled_every_time_unless_an_intra_node_packet_arrived() {
        let net_poll = NetPollPolicy::default();
        assert_eq!([polls_until_due(&net_poll), polls_until_due(&net_poll)], [1, 1]);
        net_poll.record_intra_packet();
        assert_eq!(
            [polls_until_due(&net_poll), polls_until_due(&net_poll)],
            [BUSY_POLLS + 1, QUIET_SKIPS + 1]
        );
        net_poll.record_intra_packet();
        let due = (0..IDLE_POLLS).filter(|_| net_poll.is_due()).count() as u32;
        assert!((1..=IDLE_POLLS / QUIET_SKIPS).contains(&due), "{due} of {IDLE_POLLS}");
        assert_eq!([polls_until_due(&net_poll), polls_until_due(&net_poll)], [1, 1]);
        net_poll.record_intra_packet();
        net_poll.record_inter_packet();
        assert_eq!(polls_until_due(&net_poll), 1);
    }

    #[test]
    fn network_is_polled_however_many_intra_node_packets_arrive() {
        let net_poll = NetPollPolicy::default();
        let mut polls = 0;
        for _ in 0..100 * BUSY_SKIPS {
            net_poll.record_intra_packet();
            polls += u32::from(net_poll.is_due());
        }
        assert_eq!(polls, 100 * BUSY_SKIPS / (BUSY_SKIPS + 1));
    }
}
