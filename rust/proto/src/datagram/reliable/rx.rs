//! Receipt of a packet with a sequence number.

use super::super::header::Mode;
use super::super::packet::Packet;
use super::super::sequence::FullSequence;
use super::arrival::ArrivalId;
use super::connection::{Connection, Disposition, Event};
use super::content::{Block, Content};
use super::message_rx::{Arrival, Delivery};
use super::message_tx::Answer;
use super::packet_rx::Position;
use super::time::Nanos;

impl Connection {
    pub(super) fn handle_sequenced(&mut self, now: Nanos, seq: FullSequence, packet: &Packet) -> Disposition {
        let number = seq.expand(self.packet_rx.next());
        let extension = &packet.extension;
        match self.packet_rx.position(number) {
            Position::Duplicate => {
                self.counters.duplicates += 1;
                self.packet_rx.note_duplicate();
                self.pending_acks.urge();
                self.close.extend_linger(now, self.rtt.base_pto());
                Disposition::Drop
            }
            Position::Beyond => {
                self.counters.beyond_window += 1;
                self.pending_acks.urge();
                Disposition::Drop
            }
            Position::Next => {
                let at_once = extension.ack_req || extension.fin || self.packet_rx.has_gap();
                if extension.ack_req {
                    self.pending_acks.ack_requested(now);
                }
                self.packet_rx.accept_next(now);
                self.pending_acks.packet_received(now, at_once);
                match self.read(packet).and_then(|content| self.accept(&content)) {
                    Some(delivery) => Disposition::Deliver(delivery),
                    None => Disposition::Drop,
                }
            }
            Position::Ahead => self.keep(now, number, packet),
        }
    }

    /// Buffers a packet that is ahead of a gap.
    fn keep(&mut self, now: Nanos, number: u64, packet: &Packet) -> Disposition {
        let content = self.read(packet);
        if let Some(content) = content
            && content.destination().is_some()
        {
            let is_urgent = self.packet_rx.buffer(now, number, None);
            self.pending_acks.packet_received(now, is_urgent || packet.extension.ack_req);
            return self.accept(&content).map_or(Disposition::Drop, Disposition::Deliver);
        }
        let is_urgent = self.packet_rx.buffer(now, number, content);
        self.pending_acks.packet_received(now, is_urgent || packet.extension.ack_req || packet.extension.fin);
        let is_message = content.is_some_and(|content| content.mode.is_matched() && !content.is_fin);
        if !is_message {
            return Disposition::Drop;
        }
        self.counters.buffered += 1;
        Disposition::Buffer { slot: self.packet_rx.slot(number) }
    }

    fn read(&mut self, packet: &Packet) -> Option<Content> {
        let content = Content::of(packet);
        self.counters.violations += u64::from(content.is_none());
        content
    }

    /// Applies a packet that is in order, or one whose order does not matter.
    pub(super) fn accept(&mut self, content: &Content) -> Option<Delivery> {
        let understood = self.try_accept(content);
        self.counters.violations += u64::from(understood.is_none());
        understood.flatten()
    }

    /// `None` if no honest peer sends that.
    fn try_accept(&mut self, content: &Content) -> Option<Option<Delivery>> {
        if content.is_fin {
            self.close.peer_finished()?;
            for answer in self.message_tx.peer_finished() {
                self.answered(answer);
            }
            self.push_event(Event::PeerFinished);
            return Some(None);
        }
        if self.close.has_peer_finished() {
            return None;
        }
        let arrived = |arrival: Arrival| Some(Delivery::Arrived(arrival));
        match (content.mode, content.block) {
            (Mode::Long, Block::Fragment(fragment)) if fragment.destination_id != 0 => {
                self.message_rx.accept_fragment(&fragment, content.len)
            }
            (Mode::Long, Block::Fragment(fragment)) if fragment.offset > 0 => {
                self.message_rx.continue_eager(&fragment, content.len)
            }
            (Mode::Short | Mode::RequestSend | Mode::Long, _) => self.message_rx.begin(content).map(arrived),
            (Mode::OkToSend, Block::Grant(grant)) => {
                let answer = self.message_tx.handle_grant(&grant)?;
                Some(self.answered(answer))
            }
            (Mode::AntiSendOk, Block::Grant(grant)) => {
                let may_leave_again = |token| self.packet_tx.contains(|content| content.token == token);
                let answer = self.message_tx.handle_anti_send_ok(&grant, may_leave_again)?;
                Some(self.answered(answer))
            }
            (Mode::AntiSend, Block::Request(request)) => {
                let (answer, taken) = self.message_rx.withdraw(&request);
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

    /// Queues an answer to the peer. No packet is sent behind the FIN.
    pub(super) fn answer(&mut self, content: Option<Content>) {
        if let Some(content) = content
            && !self.close.is_fin_sent()
        {
            self.message_tx.push_control(content, true);
        }
        self.settle();
    }

    /// Holds the window while another full window could exceed a limit.
    ///
    /// Unmatched messages hold the window until they are matched. Answers that wait for the peer's window do
    /// not, since two ends could deadlock. An honest peer causes at most one answer for each of its pending
    /// sends (a choice of ours).
    pub(super) fn settle(&mut self) {
        let more = usize::from(self.settings.receive_window);
        let is_full = self.message_rx.unmatched_len() + more >= self.settings.arrivals_max
            || self.message_rx.len() + more >= ArrivalId::SLOTS_MAX
            || self.message_tx.answers() + more >= self.settings.answers_max();
        let next = self.packet_rx.next();
        let window = self.packet_rx.window();
        let hold = self.is_held_by_driver || is_full;
        if window.is_held() != hold {
            window.hold(hold, next);
        }
        if window.is_update_due(next) {
            self.pending_acks.urge();
        }
    }
}
