//! Flow control and heartbeats of the connection between launcher and agent. Pure: the caller passes the
//! time.
//!
//! A stream without credit waits, and frames of other kinds overtake it. So a reader of output that is slow
//! delays no signal and no heartbeat.

use std::time::Duration;

use super::frame::Stream;

/// Octets of a stream that may be in flight.
pub const CREDIT: u32 = 256 << 10;
/// Heartbeats per time of silence.
const HEARTBEATS: u32 = 8;

/// The credit that the receivers of this end's streams have granted.
#[derive(Debug)]
pub struct SendCredit {
    left: [u32; Stream::COUNT],
}

impl Default for SendCredit {
    fn default() -> SendCredit {
        SendCredit { left: [CREDIT; Stream::COUNT] }
    }
}

impl SendCredit {
    /// Octets of the stream that may be sent now.
    #[must_use]
    pub fn left(&self, stream: Stream) -> usize {
        self.left[stream.number()] as usize
    }

    /// Octets were sent.
    pub fn spend(&mut self, stream: Stream, octets: usize) {
        let left = &mut self.left[stream.number()];
        debug_assert!(octets <= *left as usize, "{stream:?}: {octets} of {left}");
        *left = left.saturating_sub(octets as u32);
    }

    /// The receiver takes more. Credit beyond [`CREDIT`] is a mistake of the other end, and ignored.
    pub fn handle_credit(&mut self, stream: Stream, octets: u32) {
        let left = &mut self.left[stream.number()];
        *left = left.saturating_add(octets).min(CREDIT);
    }
}

/// Octets that the other end may still send, and those that are consumed and not granted again.
#[derive(Debug)]
pub struct ReceiveCredit {
    /// Octets that may arrive.
    granted: [u32; Stream::COUNT],
    /// Octets that were consumed since the last grant.
    consumed: [u32; Stream::COUNT],
}

impl Default for ReceiveCredit {
    fn default() -> ReceiveCredit {
        ReceiveCredit { granted: [CREDIT; Stream::COUNT], consumed: [0; Stream::COUNT] }
    }
}

impl ReceiveCredit {
    /// Octets of the stream have arrived; false if the other end has sent more than it may.
    pub fn handle_data(&mut self, stream: Stream, octets: usize) -> bool {
        let granted = &mut self.granted[stream.number()];
        let left = (*granted as usize).checked_sub(octets);
        *granted = left.unwrap_or(0) as u32;
        left.is_some()
    }

    /// Octets of the stream were consumed.
    pub fn consume(&mut self, stream: Stream, octets: usize) {
        self.consumed[stream.number()] += octets as u32;
    }

    /// The credit to grant now: a quarter of the window at least, so that frames of credit are few.
    pub fn grant(&mut self, stream: Stream) -> Option<u32> {
        let consumed = &mut self.consumed[stream.number()];
        if *consumed < CREDIT / 4 {
            return None;
        }
        let octets = std::mem::take(consumed);
        self.granted[stream.number()] += octets;
        Some(octets)
    }
}

/// The heartbeats of both ends. Times are those since any fixed moment.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    silence: Duration,
    sent: Duration,
    heard: Duration,
}

impl Liveness {
    /// Both ends live now. The other end is lost after `silence` without a frame.
    #[must_use]
    pub fn new(silence: Duration, now: Duration) -> Liveness {
        Liveness { silence, sent: now, heard: now }
    }

    /// Something has arrived.
    pub fn handle_octets(&mut self, now: Duration) {
        self.heard = now;
    }

    /// Whether to send a heartbeat now.
    pub fn takes_heartbeat(&mut self, now: Duration) -> bool {
        let is_due = now >= self.sent + self.silence / HEARTBEATS;
        if is_due {
            self.sent = now;
        }
        is_due
    }

    /// Whether the other end is lost.
    #[must_use]
    pub fn is_lost(&self, now: Duration) -> bool {
        now >= self.heard + self.silence
    }

    /// The time of the next heartbeat or loss.
    #[must_use]
    pub fn next(&self) -> Duration {
        (self.sent + self.silence / HEARTBEATS).min(self.heard + self.silence)
    }

    /// The time without a frame after which the other end is lost.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_waits_without_credit_and_continues_with_it() {
        let mut credit = SendCredit::default();
        credit.spend(Stream::Output, CREDIT as usize);
        assert_eq!((credit.left(Stream::Output), credit.left(Stream::Error)), (0, CREDIT as usize));
        credit.handle_credit(Stream::Output, 10);
        assert_eq!(credit.left(Stream::Output), 10);
        credit.handle_credit(Stream::Output, u32::MAX);
        assert_eq!(credit.left(Stream::Output), CREDIT as usize, "not more than the window");
    }

    #[test]
    fn receiver_grants_what_it_has_consumed() {
        let mut credit = ReceiveCredit::default();
        assert!(credit.handle_data(Stream::Input, CREDIT as usize));
        assert!(!credit.handle_data(Stream::Input, 1), "more than was granted");
        credit.consume(Stream::Input, 100);
        assert_eq!(credit.grant(Stream::Input), None, "too little for a frame");
        credit.consume(Stream::Input, CREDIT as usize / 4);
        assert_eq!(credit.grant(Stream::Input), Some(CREDIT / 4 + 100));
        assert!(credit.handle_data(Stream::Input, CREDIT as usize / 4 + 100));
        assert!(!credit.handle_data(Stream::Input, 1));
    }

    #[test]
    fn silent_end_is_lost_and_a_live_one_is_not() {
        let ms = Duration::from_millis;
        let mut liveness = Liveness::new(ms(800), ms(0));
        assert_eq!(liveness.next(), ms(100));
        assert!(!liveness.takes_heartbeat(ms(99)));
        assert!(liveness.takes_heartbeat(ms(100)) && !liveness.takes_heartbeat(ms(150)));
        assert!(!liveness.is_lost(ms(799)) && liveness.is_lost(ms(800)));
        liveness.handle_octets(ms(700));
        assert!(!liveness.is_lost(ms(1499)) && liveness.is_lost(ms(1500)));
    }
}
