//! Sending of messages: through the state machine, after pending packets, to the socket.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use mpjdev_proto::completion::Completion;
use mpjdev_proto::impi::message_tx::Send;

use super::channel::Channel;
use super::channel_state::{Backlog, TxState};
use super::transport::TcpTransport;
use super::tx_stream::TxStream;
use crate::net::control::{self, ControlMessage};
use crate::{Header, Kind, Outgoing, Payload};

impl TcpTransport {
    /// Passes a message to the state machine and its first packet to the channel. Returns false when it would
    /// have to wait.
    pub(super) fn send_message(
        &self,
        tx: &mut TxStream,
        at: usize,
        header: Header,
        body: Outgoing<'_>,
    ) -> bool {
        let (slab, len) = match body {
            Outgoing::Message(message) => (message.first_slab(), message.first_len()),
            Outgoing::Payload(Payload::Physical(slab, len)) => (slab, *len),
            _ => unreachable!("ranks whose messages are copied get physical ones"),
        };
        let session = &mut tx.sessions[at];
        if !session.pair.flow().is_open() || session.pair.wants_to_send() {
            return false;
        }
        let completion =
            if header.kind == Kind::Eager { Completion::Standard } else { Completion::Synchronous };
        let send = Send {
            cid: header.context,
            lsrank: self.net.rank as i32,
            tag: header.tag,
            msglen: len as u64,
            completion,
            rendezvous: header.kind == Kind::Rts,
            token: header.token + 1,
        };
        if let Some(packet) = session.pair.try_send_now(&send) {
            tx.put(at, &packet, Some((slab, 0, len)));
            return true;
        }
        session.sends.insert(send.token, slab.clone());
        if session.pair.send(send).is_err() {
            session.sends.remove(&send.token);
            return false;
        }
        tx.fill_from_sessions();
        true
    }

    /// Writes as many octets as the socket takes, and records whether some are left.
    pub(super) fn write(&self, channel: &Channel, tx: &mut TxStream) {
        loop {
            if let Err(error) = tx.write(channel.socket.as_fd()) {
                return self.stop_sending(channel, tx, &error);
            }
            // Written octets make room for more.
            if tx.waiting_len() > 0 {
                break;
            }
            self.flush_control(tx);
            tx.fill_from_sessions();
            if tx.waiting_len() == 0 {
                break;
            }
        }
        let backlog = Backlog::after_write(tx.waiting_len());
        if self.set_backlog(channel, backlog) != backlog && backlog == Backlog::Full {
            // A sleeping thread must watch for room from now on.
            self.net.wake();
        }
    }

    /// Records for the next poll whether octets wait. The caller holds the lock of `tx`.
    pub(super) fn note_waiting(&self, channel: &Channel, tx: &TxStream) {
        self.set_backlog(channel, channel.backlog.load(Relaxed).after_put(tx.waiting_len()));
    }

    /// Changes the backlog of a channel. Returns the earlier one. The caller holds the lock of the sending
    /// direction, so no read-modify-write is needed.
    fn set_backlog(&self, channel: &Channel, to: Backlog) -> Backlog {
        let from = channel.backlog.load(Relaxed);
        if from != to {
            channel.backlog.store(to, SeqCst);
            if from == Backlog::Empty {
                self.net.waiting_count.fetch_add(1, SeqCst);
            } else if to == Backlog::Empty {
                self.net.waiting_count.fetch_sub(1, SeqCst);
            }
        }
        from
    }

    /// Records that a send that found no room may find some now.
    pub(super) fn note_room(&self, tx: &mut TxStream) {
        if std::mem::take(&mut tx.has_refused) {
            self.net.has_room.store(true, SeqCst);
        }
    }

    /// Writes pending octets, and control messages that had to wait for them.
    pub(crate) fn write_waiting(&self) {
        self.net.count_write_round();
        if self.net.waiting_count.load(Relaxed) == 0 {
            return;
        }
        for channel in &self.channels {
            if channel.backlog.load(Relaxed) == Backlog::Empty {
                continue;
            }
            let mut tx = channel.tx();
            self.write(channel, &mut tx);
            if tx.has_room() {
                self.note_room(&mut tx);
            }
        }
    }

    /// Sends a control message to a rank of ours. Returns false when it would have to wait.
    pub(super) fn put_control(&self, tx: &mut TxStream, at: usize, message: &ControlMessage) -> bool {
        let octets = message.octets_within(self.terms.maxdatalen as usize);
        let send = Send {
            cid: control::CONTEXT,
            lsrank: self.net.rank as i32,
            tag: message.tag(),
            msglen: octets.len() as u64,
            ..Send::default()
        };
        if !tx.has_room() {
            return false;
        }
        let Some(packet) = tx.sessions[at].pair.try_send_now(&send) else { return false };
        tx.put(at, &packet, None);
        tx.put_octets(&octets);
        true
    }

    pub(super) fn send_control(&self, rank: u32, message: &ControlMessage) {
        if let Some(channel) = self.channel(rank).filter(|_| !self.is_foreign[rank as usize]) {
            let mut tx = channel.tx();
            if tx.state != TxState::Closed {
                let at = tx.session_of(rank);
                self.put_control(&mut tx, at, message);
                self.write(channel, &mut tx);
            }
        }
    }

    pub(super) fn flush_control(&self, tx: &mut TxStream) {
        for at in 0..tx.sessions.len() {
            if let Some(octets) = tx.sessions[at].pending_credit
                && self.put_control(tx, at, &ControlMessage::Credit(octets))
            {
                tx.sessions[at].pending_credit = None;
            }
            if let Some(why) = tx.sessions[at].failure.take() {
                let message = ControlMessage::JobFailed(why);
                if !self.put_control(tx, at, &message)
                    && let ControlMessage::JobFailed(why) = message
                {
                    tx.sessions[at].failure = Some(why);
                }
            }
        }
    }
}
