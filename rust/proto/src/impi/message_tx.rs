//! The send side of messages between two processes (IMPI 8.2, 8.3).

use std::collections::{BTreeMap, VecDeque};

use super::event::Event;
use super::packet::{Packet, PacketType};
use super::pair_error::{ProtocolError, SendError};
use crate::completion::Completion;

/// Octets of a rendezvous in its first packet: two headers, from which a probe knows type and count of the
/// first section. Not 0: a rest in one packet would resemble a short message.
pub const RTS_DATA_LEN: u32 = 16;

/// A message to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Send {
    /// Context id.
    pub cid: u64,
    /// Rank of the sender in the communicator; not sent in the draft.
    pub lsrank: i32,
    /// Tag.
    pub tag: i32,
    /// Octets of the message.
    pub msglen: u64,
    /// Its completion.
    pub completion: Completion,
    /// Whether it is a rendezvous: only its first [`RTS_DATA_LEN`] octets are sent before the match, whatever
    /// its length. On the wire it is a long message with a short first packet. IMPI 8.3 fills the first
    /// packet, so this is for ranks of this project only. It bounds the memory at the receiver.
    pub rendezvous: bool,
    /// The driver's name of the message and its octets, and its srqid: not 0, and different from those of all
    /// sends that are not complete.
    pub token: u64,
}

impl Send {
    /// Whether its octets are sent in several packets, most of them after the match.
    fn is_long(&self, maxdatalen: u32) -> bool {
        self.msglen > u64::from(maxdatalen) || (self.rendezvous && self.msglen > u64::from(RTS_DATA_LEN))
    }
}

/// Octets of a message that follow a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Of the send.
    pub token: u64,
    /// Their offset in the message.
    pub offset: u64,
    /// Their number; 0 in an empty message.
    pub len: u32,
    /// Whether these are the last octets of the message.
    pub last: bool,
}

impl Body {
    /// The first octets, at most `len`.
    fn shortened(self, len: u32) -> Body {
        let len = self.len.min(len);
        Body { len, last: self.last && len == self.len, ..self }
    }
}

/// The sends of one pair.
#[derive(Debug)]
pub(super) struct MessageTx {
    maxdatalen: u32,
    sends_max: usize,
    /// Messages whose first packet is not sent, in order.
    queue: VecDeque<Send>,
    /// Messages whose first packet is sent and whose token is in use.
    active: BTreeMap<u64, Active>,
    /// Matched long messages with octets to send, in the order of their SyncAcks.
    tails: VecDeque<u64>,
    /// Whether the rest of a long message is next, if both a first packet and a rest wait.
    is_tails_turn: bool,
    /// The number of messages whose first packet is sent.
    seqnum: u64,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    send: Send,
    seqnum: u64,
    /// Octets handed over.
    offset: u64,
    phase: Phase,
}

/// The state of a message whose first packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for the SyncAck.
    Unmatched,
    /// Long and matched: the rest is being sent.
    Tail { drqid: u64 },
}

impl MessageTx {
    pub(super) fn new(maxdatalen: u32, sends_max: usize) -> Self {
        Self {
            maxdatalen,
            sends_max,
            queue: VecDeque::new(),
            active: BTreeMap::new(),
            tails: VecDeque::new(),
            is_tails_turn: false,
            seqnum: 0,
        }
    }

    #[inline]
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty() || !self.tails.is_empty()
    }

    /// Whether no send is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.active.is_empty()
    }

    pub(super) fn push(&mut self, send: Send) -> Result<(), SendError> {
        if self.queue.len() + self.active.len() >= self.sends_max {
            return Err(SendError::Full { sends_max: self.sends_max });
        }
        self.queue.push_back(send);
        Ok(())
    }

    /// Fills in the only packet of a short message.
    #[inline]
    pub(super) fn fill_now(&mut self, packet: &mut Packet, send: &Send) {
        self.seqnum += 1;
        fill(packet, send, self.seqnum);
        packet.len = send.msglen as u32;
    }

    /// Fills in the next packet with data; returns its body. A packet of a rest has the first octets of the
    /// given body, as many as `there` returns, and waits while these are none.
    pub(super) fn poll(&mut self, packet: &mut Packet, there: impl Fn(&Body) -> u32) -> Option<Body> {
        let is_tails_turn = self.queue.is_empty() || self.is_tails_turn;
        let tail = is_tails_turn.then(|| self.next_tail()).flatten();
        let tail = tail.map(|body| body.shortened(there(&body))).filter(|body| body.len > 0);
        self.is_tails_turn = tail.is_none();
        match tail {
            Some(body) => self.put_tail(packet, body),
            None => self.poll_first(packet),
        }
    }

    fn poll_first(&mut self, packet: &mut Packet) -> Option<Body> {
        let send = self.queue.pop_front()?;
        self.seqnum += 1;
        fill(packet, &send, self.seqnum);
        let is_long = send.is_long(self.maxdatalen);
        packet.len = match (send.rendezvous, is_long) {
            (true, true) => RTS_DATA_LEN.min(self.maxdatalen),
            (false, true) => self.maxdatalen,
            (_, false) => send.msglen as u32,
        };
        if is_long || send.completion == Completion::Synchronous {
            packet.kind = PacketType::DataSync;
            packet.srqid = send.token;
            let (seqnum, offset) = (self.seqnum, u64::from(packet.len));
            let active = Active { send, seqnum, offset, phase: Phase::Unmatched };
            let before = self.active.insert(send.token, active);
            debug_assert!(send.token != 0 && before.is_none(), "token {} is in use", send.token);
        }
        Some(Body { token: send.token, offset: 0, len: packet.len, last: !is_long })
    }

    /// The next octets of the first rest in the queue.
    fn next_tail(&self) -> Option<Body> {
        let token = *self.tails.front()?;
        let Active { send, offset, .. } = *self.active.get(&token)?;
        let rest = send.msglen - offset;
        let len = u32::try_from(rest).map_or(self.maxdatalen, |rest| rest.min(self.maxdatalen));
        Some(Body { token, offset, len, last: u64::from(len) == rest })
    }

    fn put_tail(&mut self, packet: &mut Packet, body: Body) -> Option<Body> {
        let active = self.active.get_mut(&body.token)?;
        let Phase::Tail { drqid } = active.phase else { return None };
        fill(packet, &active.send, active.seqnum);
        (packet.len, packet.srqid, packet.drqid) = (body.len, body.token, drqid);
        active.offset += u64::from(body.len);
        if body.last {
            self.tails.pop_front();
            self.active.remove(&body.token);
        }
        Some(body)
    }

    /// A receive has matched the message with this id.
    pub(super) fn handle_syncack(&mut self, srqid: u64, drqid: u64) -> Result<Event, ProtocolError> {
        let active = self.active.get_mut(&srqid).filter(|active| active.phase == Phase::Unmatched);
        let Some(active) = active else {
            return Err(ProtocolError::Answer { kind: PacketType::SyncAck, srqid });
        };
        if active.offset < active.send.msglen {
            active.phase = Phase::Tail { drqid };
            self.tails.push_back(srqid);
        } else {
            self.active.remove(&srqid);
        }
        Ok(Event::Matched { token: srqid })
    }

    /// Removes all messages; returns their tokens, ascending.
    pub(super) fn take_all(&mut self) -> Vec<u64> {
        self.tails.clear();
        let active = std::mem::take(&mut self.active);
        let queued = self.queue.drain(..).map(|send| send.token);
        let mut tokens: Vec<u64> = active.into_keys().chain(queued).collect();
        tokens.sort_unstable();
        tokens
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.queue.len() + self.active.len() <= self.sends_max);
        for (token, active) in &self.active {
            let is_long = active.send.is_long(self.maxdatalen);
            let is_partial = active.offset < active.send.msglen;
            assert_eq!(*token, active.send.token);
            assert!(active.offset <= active.send.msglen, "{active:?}");
            let first_len = if active.send.rendezvous { 1 } else { u64::from(self.maxdatalen) };
            assert!(active.offset >= active.send.msglen.min(first_len), "{active:?}");
            let is_sound = match active.phase {
                Phase::Unmatched => is_long == is_partial,
                Phase::Tail { .. } => is_long && is_partial,
            };
            assert!(is_sound, "{active:?}");
            let is_tail = matches!(active.phase, Phase::Tail { .. });
            assert_eq!(self.tails.iter().filter(|tail| *tail == token).count(), usize::from(is_tail));
        }
        assert!(self.tails.iter().all(|tail| self.active.contains_key(tail)));
    }
}

/// Fills in the fields that are equal in all packets of a message (IMPI 8.3).
#[inline]
fn fill(packet: &mut Packet, send: &Send, seqnum: u64) {
    packet.msglen = send.msglen;
    packet.lsrank = send.lsrank;
    packet.tag = send.tag;
    packet.cid = send.cid;
    packet.seqnum = seqnum;
}
