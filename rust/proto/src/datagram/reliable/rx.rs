//! Receipt of a packet with a sequence number.

use super::super::header::Mode;
use super::super::packet::Packet;
use super::super::sequence::FullSequence;
use super::connection::{Connection, Event, Verdict};
use super::content::{Block, Content};
use super::message_rx::{Arrival, Delivery, PLACES_MAX};
use super::message_tx::Answer;
use super::packet_rx::Place;
use super::time::Nanos;

impl Connection {
    pub(super) fn handle_sequenced(&mut self, now: Nanos, seq: FullSequence, packet: &Packet) -> Verdict {
        let number = seq.expand(self.receiver.next());
        let extension = &packet.extension;
        match self.receiver.place(number) {
            Place::Twice => {
                self.counters.duplicates += 1;
                self.receiver.note_twice();
                self.acks.urge();
                self.closing.came_twice(now, self.rtt.base_pto());
                Verdict::Drop
            }
            Place::Beyond => {
                self.counters.beyond_window += 1;
                self.acks.urge();
                Verdict::Drop
            }
            Place::Next => {
                let at_once = extension.ack_req || extension.fin || self.receiver.has_gap();
                if extension.ack_req {
                    self.acks.asked(now);
                }
                self.receiver.take_next(now);
                self.acks.came(now, at_once);
                match self.read(packet).and_then(|content| self.understand(&content)) {
                    Some(delivery) => Verdict::Deliver(delivery),
                    None => Verdict::Drop,
                }
            }
            Place::Ahead => self.keep(now, number, packet),
        }
    }

    /// A packet whose turn it is not yet.
    fn keep(&mut self, now: Nanos, number: u64, packet: &Packet) -> Verdict {
        let content = self.read(packet);
        if let Some(content) = content
            && content.destination().is_some()
        {
            let is_urgent = self.receiver.keep(now, number, None);
            self.acks.came(now, is_urgent || packet.extension.ack_req);
            return self.understand(&content).map_or(Verdict::Drop, Verdict::Deliver);
        }
        let is_urgent = self.receiver.keep(now, number, content);
        self.acks.came(now, is_urgent || packet.extension.ack_req || packet.extension.fin);
        let is_message = content.is_some_and(|content| content.mode.is_matched() && !content.is_fin);
        if !is_message {
            return Verdict::Drop;
        }
        self.counters.kept += 1;
        Verdict::Keep { slot: self.receiver.slot(number) }
    }

    fn read(&mut self, packet: &Packet) -> Option<Content> {
        let content = Content::of(packet);
        self.counters.violations += u64::from(content.is_none());
        content
    }

    /// A packet in its turn, or one whose turn does not matter.
    pub(super) fn understand(&mut self, content: &Content) -> Option<Delivery> {
        let understood = self.try_understand(content);
        self.counters.violations += u64::from(understood.is_none());
        understood.flatten()
    }

    /// None: no honest peer says that.
    fn try_understand(&mut self, content: &Content) -> Option<Option<Delivery>> {
        if content.is_fin {
            self.closing.peer_finished()?;
            for answer in self.sending.peer_finished() {
                self.answered(answer);
            }
            self.push_event(Event::PeerFinished);
            return Some(None);
        }
        if self.closing.has_peer_finished() {
            return None;
        }
        let arrived = |arrival: Arrival| Some(Delivery::Arrived(arrival));
        match (content.mode, content.block) {
            (Mode::Long, Block::Fragment(fragment)) if fragment.destination_id != 0 => {
                self.receiving.place(&fragment, content.len)
            }
            (Mode::Long, Block::Fragment(fragment)) if fragment.offset > 0 => {
                self.receiving.go_on(&fragment, content.len)
            }
            (Mode::Short | Mode::RequestSend | Mode::Long, _) => self.receiving.begin(content).map(arrived),
            (Mode::OkToSend, Block::Grant(grant)) => {
                let answer = self.sending.handle_grant(&grant)?;
                Some(self.answered(answer))
            }
            (Mode::AntiSendOk, Block::Grant(grant)) => {
                let may_leave_again = |token| self.sender.holds(|content| content.token == token);
                let answer = self.sending.handle_anti_send_ok(&grant, may_leave_again)?;
                Some(self.answered(answer))
            }
            (Mode::AntiSend, Block::Request(request)) => {
                let (answer, taken) = self.receiving.anti_send(&request);
                self.answer(Some(answer));
                self.events.extend(taken.map(|arrival| Event::Withdraw { arrival }));
                Some(None)
            }
            _ => None,
        }
    }

    fn answered(&mut self, answer: Answer) -> Option<Delivery> {
        self.push_event(match answer {
            Answer::Matched(token) => Event::Matched { token },
            Answer::Cancelled(token) => Event::Cancelled { token },
            Answer::NotCancelled(token) => Event::NotCancelled { token },
        });
        None
    }

    /// Queues an answer to the peer. None leaves behind our last packet.
    pub(super) fn answer(&mut self, content: Option<Content>) {
        if let Some(content) = content
            && !self.closing.has_fin_left()
        {
            self.sending.push_control(content, true);
        }
        self.settle();
    }

    /// Holds the window as long as a window more might be more than is kept; the packet that makes it so has moved the window by
    /// one before.
    ///
    /// Messages that wait for their match hold it, and matching ends that. Answers that wait for the peer's window do not, or
    /// two ends could wait for each other for ever: there are never more than the peer keeps sends, and only one that
    /// lies about that is held because of them (a choice of ours).
    pub(super) fn settle(&mut self) {
        let more = usize::from(self.settings.receive_window);
        let is_full = self.receiving.load() + more >= self.settings.arrivals_max
            || self.receiving.len() + more >= PLACES_MAX
            || self.sending.answers() + more >= self.settings.answers_max();
        let next = self.receiver.next();
        let window = self.receiver.window();
        let hold = self.told_to_hold || is_full;
        if window.is_held() != hold {
            window.hold(hold, next);
        }
        if window.is_news(next) {
            self.acks.urge();
        }
    }
}
