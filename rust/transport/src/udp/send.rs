//! Sending of messages: through the state machine, to the socket.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use mpjdev_buffer::octets::copy_in;
use mpjdev_buffer::{Slab, SlabSource};
use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::layout::{CONTEXT_LEN, LRANK_MAX};
use mpjdev_proto::datagram::reliable::message_tx::Send;
use mpjdev_proto::datagram::reliable::time::{MILLISECOND, Nanos};

use super::peer::{Peer, PeerSession};
use super::retransmit_buffer::Owner;
use super::timers::{NEVER, Sleeper};
use super::transport::UdpTransport;
use crate::net::control::{self, ControlMessage};
use crate::{Header, Kind, Outgoing, Payload};

/// Time after which a socket that takes nothing is tried again.
const BLOCKED: Nanos = MILLISECOND;
/// A packet due within this time waits only for a poll of the socket.
const SOON: Nanos = MILLISECOND / 10;
/// Most control messages that may wait beside the other messages.
const CONTROL_MAX: usize = 16;

impl UdpTransport {
    /// Passes a message to the state machine. Returns false when it would have to wait.
    pub(super) fn send_message(&self, session: &mut PeerSession, header: Header, body: Outgoing<'_>) -> bool {
        let (slab, len) = match body {
            Outgoing::Message(message) => (message.first_slab(), message.first_len()),
            Outgoing::Payload(Payload::Physical(slab, len)) => (slab, *len),
            _ => unreachable!("ranks whose messages are copied get physical ones"),
        };
        let waits = header.kind != Kind::Eager;
        // The other messages end when their octets have arrived. Synchronous ones may wait without limit for
        // a match.
        if !waits && session.store.held() >= self.terms.sends_max {
            return false;
        }
        let owner = if waits { Owner::Request(header.token) } else { Owner::Program };
        let send = Send {
            context: header.context,
            lrank: self.lrank(),
            tag: header.tag,
            len: len as u64,
            completion: if waits { Completion::Synchronous } else { Completion::Standard },
            rendezvous: header.kind == Kind::Rts,
            token: 0,
        };
        let is_put = self.put(session, &send, slab, owner);
        if is_put {
            session.tally.sent += 1;
            session.tally.data_sent += send.len;
        }
        is_put
    }

    /// Returns false when there is no room. A closing connection accepts everything and sends nothing.
    fn put(&self, session: &mut PeerSession, send: &Send, slab: &Slab, owner: Owner) -> bool {
        let token = session.store.put(slab, send.len as usize, owner, &*self.net.source);
        match session.connection.send(Send { token, ..*send }) {
            Ok(()) => true,
            Err(error) => {
                session.store.release(token);
                session.store.answer(token);
                !matches!(error, mpjdev_proto::datagram::reliable::error::SendError::Full { .. })
            }
        }
    }

    /// The header has room for a rank in a communicator only. The connection identifies the sender.
    fn lrank(&self) -> u16 {
        u16::try_from(self.net.rank).map_or(0, |rank| if rank <= LRANK_MAX { rank } else { 0 })
    }

    /// Sends a control message to a rank of ours. Returns false when it would have to wait.
    pub(super) fn put_control(&self, session: &mut PeerSession, message: &ControlMessage) -> bool {
        if session.store.held() >= self.terms.sends_max + CONTROL_MAX {
            return false;
        }
        let mut octets = message.octets();
        // A reason that does not fit a datagram is cut.
        let mut fits = octets.len().min(session.connection.settings().room() - CONTEXT_LEN);
        while fits < octets.len() && octets[fits] & 0xc0 == 0x80 {
            fits -= 1;
        }
        octets.truncate(fits);
        let source: &dyn SlabSource = &*self.net.source;
        let Ok(slab) = source.take_arrived(octets.len()) else { return false };
        copy_in(slab.words(), 0, &octets);
        let send = Send {
            context: control::CONTEXT,
            lrank: self.lrank(),
            tag: message.tag(),
            len: octets.len() as u64,
            ..Send::default()
        };
        self.put(session, &send, &slab, Owner::Control)
    }

    fn flush_control(&self, session: &mut PeerSession) {
        if let Some(octets) = session.pending_credit
            && self.put_control(session, &ControlMessage::Credit(octets))
        {
            session.pending_credit = None;
        }
        if let Some(calls) = session.alive
            && self.put_control(session, &ControlMessage::Heartbeat(calls))
        {
            session.alive = None;
        }
        if let Some(why) = session.failure.take() {
            let message = ControlMessage::JobFailed(why);
            if !self.put_control(session, &message)
                && let ControlMessage::JobFailed(why) = message
            {
                session.failure = Some(why);
            }
        }
    }

    /// Sends packets that may leave now, and records the next timer. Returns whether more may leave right
    /// after the next poll.
    pub(super) fn transmit(&self, peer: &Peer, session: &mut PeerSession, now: Nanos) -> bool {
        session.waiting = (0, 0);
        if peer.has_waiting.load(Relaxed) && peer.has_waiting.swap(false, SeqCst) {
            self.net.waiting_count.fetch_sub(1, SeqCst);
        }
        self.flush_control(session);
        loop {
            while !session.outgoing.is_full()
                && let Some(transmit) =
                    session.connection.poll_transmit_if(now, |body| session.store.is_packed(body))
            {
                if transmit.packet.extension.fin {
                    session.state = session.state.fin_sent();
                }
                session.outgoing.push(&transmit.packet, transmit.body, &session.store);
            }
            let was_full = session.outgoing.is_full();
            session.outgoing.flush(now, self.socket(), &session.store);
            if session.outgoing.is_too_long() {
                self.send_in_fragments(peer, session, now);
            }
            if !was_full || session.outgoing.is_blocked() {
                break;
            }
        }
        self.note_timeout(peer, session, now)
    }

    /// Records that messages to a peer wait for others. Every caller holds the peer's lock.
    pub(super) fn note_waiting(&self, peer: &Peer) {
        if !peer.has_waiting.swap(true, SeqCst) {
            self.net.waiting_count.fetch_add(1, SeqCst);
        }
    }

    /// Sends the messages that wait for others.
    pub(super) fn send_waiting(&self) {
        self.net.count_write_round();
        if self.net.waiting_count.load(SeqCst) == 0 {
            return;
        }
        let now = self.timers.now();
        for peer in self.peers().filter(|peer| peer.has_waiting.load(Relaxed)) {
            self.transmit(peer, &mut peer.session(), now);
        }
    }

    /// Records the time of the next timer of a peer. Returns whether it is very soon.
    fn note_timeout(&self, peer: &Peer, session: &PeerSession, now: Nanos) -> bool {
        let machine = session.connection.next_timeout().unwrap_or(NEVER);
        let network = session.outgoing.next_time().unwrap_or(NEVER);
        let blocked = if session.outgoing.is_blocked() { now + BLOCKED } else { NEVER };
        let fault = if session.fault.is_some() { now } else { NEVER };
        let at = machine.min(network).min(blocked).min(fault);
        peer.next_timeout.store(at, SeqCst);
        self.wake_sleepers(self.timers.arm(at));
        at <= now + SOON
    }

    /// Wakes the sleepers that would sleep past a timer.
    pub(super) fn wake_sleepers(&self, sleepers: impl Iterator<Item = Sleeper>) {
        for sleeper in sleepers {
            match sleeper {
                Sleeper::Program => self.net.wake(),
                Sleeper::ProgressThread => self.net.progress.kick(),
            }
        }
    }

    /// Records that a send that found no room at a peer may find some now.
    pub(super) fn note_room(&self, session: &mut PeerSession) {
        if session.has_refused && session.store.held() < self.terms.sends_max {
            session.has_refused = false;
            self.net.has_room.store(true, SeqCst);
        }
    }
}
