//! Receipt of an acknowledgment (5.3, 5.5, 5.7).

use super::super::extension::Sack;
use super::super::packet::Packet;
use super::super::sequence::FullSequence;
use super::congestion::{Acked, Algorithm};
use super::connection::{Connection, Event};
use super::content::Content;
use super::loss::Cause;
use super::packet_tx::{Ack, Progress};
use super::time::{MICROSECOND, Nanos, SECOND};

impl Connection {
    /// Applies the ack of a packet.
    pub(super) fn handle_ack(&mut self, now: Nanos, ack: FullSequence, packet: &Packet) {
        let extension = &packet.extension;
        let acked = ack.expand(self.packet_tx.una());
        let reported_end = match (extension.nak, &extension.sack) {
            (false, None) => u64::MAX,
            (true, None) => acked.saturating_add(1),
            (_, Some(sack)) => acked.saturating_add(sack.reach() + 1),
        };
        let (sack, is_missing) = (extension.sack.as_ref().map_or(&[][..], Sack::words), extension.nak);
        let ack = Ack { ack: acked, sack, reported_end, is_missing };
        let (in_flight, expiries) = (self.packet_tx.in_flight() as u64, self.rtt.expiries());
        let Some(progress) = self.apply_ack(now, &ack) else {
            self.counters.bad_acks += 1;
            return;
        };
        self.send_window.handle(acked, extension.window);
        if extension.duplicate {
            self.handle_duplicate(now);
        }
        if let (Some(elapsed), Some(delay_us)) = (progress.sample, extension.delay_us) {
            let min = self.rtt.min();
            self.rtt.sample(elapsed, u64::from(delay_us) * MICROSECOND);
            if self.rtt.min() != min {
                self.declare();
            }
            self.congestion.rtt_sampled(self.rtt.latest().unwrap_or(0));
        }
        if progress.count > 0 {
            self.rtt.progressed();
            let window = u64::from(self.congestion.window());
            // A burst that pacing permits is not in flight yet.
            let is_limited = in_flight * 5 >= window * 4;
            let smoothed = self.rtt.smoothed().unwrap_or(0);
            self.congestion.round_acked(self.packet_tx.largest_acked_tx(), self.packet_tx.next_tx());
            self.congestion.acked(now, &Acked { count: progress.since_epoch, smoothed, is_limited });
        }
        if progress.count > 0 || is_missing {
            self.detect(now, expiries >= PERSISTENT_EXPIRIES);
        }
        if self.packet_tx.is_empty() {
            self.waiting_since = None;
        }
    }

    /// Sets the least window of a private link from its declared rate and the shortest round trip.
    pub(super) fn declare(&mut self) {
        let (path, len) = (&self.settings.path, self.settings.datagram_len_max);
        if let (Algorithm::Private, Some(rate), Some(min)) = (path.algorithm, path.rate, self.rtt.min()) {
            let octets = u128::from(rate) * u128::from(min) / u128::from(SECOND);
            let packets = u64::try_from(octets / len as u128).unwrap_or(u64::MAX);
            self.congestion.declare(packets.saturating_mul(ROUND_TRIPS));
        }
    }

    /// Applies an ack and releases the messages that are acked completely.
    pub(super) fn apply_ack(&mut self, now: Nanos, ack: &Ack<'_>) -> Option<Progress> {
        let Self { packet_tx, message_tx, events, .. } = self;
        let release = |content: &Content| {
            events.extend(message_tx.acknowledged(content).map(|token| Event::Released { token }));
        };
        packet_tx.handle(now, ack, self.rtt.min(), self.congestion.epoch(), release)
    }

    pub(super) fn detect(&mut self, now: Nanos, is_persistent: bool) {
        let time_threshold = self.detection.time_threshold(&self.rtt);
        let latest = self.packet_tx.detect(now, self.detection.packet_threshold(), time_threshold);
        if let Some(latest) = latest {
            self.lost(latest);
            if is_persistent {
                self.congestion.collapse(self.packet_tx.next_tx());
                self.rtt.forget_min();
            }
        }
    }

    /// A transmission was lost.
    fn lost(&mut self, transmission: u64) {
        if self.congestion.packet_lost(transmission, self.packet_tx.next_tx()) {
            self.counters.cuts += 1;
            self.detection.window_cut();
            self.has_retransmit_allowance = true;
        }
    }

    fn handle_duplicate(&mut self, now: Nanos) {
        let spurious = self.detection.handle_duplicate(now, &self.rtt, self.packet_tx.next_tx());
        self.counters.spurious += u64::from(spurious.is_ours);
        if spurious.undo && self.congestion.undo() {
            self.counters.undone_cuts += 1;
        }
    }

    /// A packet is retransmitted.
    pub(super) fn note_retransmission(&mut self, now: Nanos, cause: Cause) {
        self.counters.retransmitted += 1;
        self.counters.probes += u64::from(cause == Cause::Probe);
        self.detection.retransmitted(now, cause);
    }
}

/// Consecutive PTO expiries after which a loss is persistent congestion (5.3).
const PERSISTENT_EXPIRIES: u32 = 3;
/// Round trips of a private link's rate that may be in flight. A lost packet is retransmitted in the second
/// one, and the packets sent meanwhile may be beyond what an ack can report.
const ROUND_TRIPS: u64 = 2;
