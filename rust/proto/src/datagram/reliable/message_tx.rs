//! The send side of messages: their packets, their ids, cancel (5.9, 2.3).
//!
//! | message | packets |
//! |---|---|
//! | fits a datagram | Short; synchronous: with its id in REQUEST |
//! | up to eager_max, standard | Long, in order |
//! | longer, synchronous or rendezvous | RequestSend of 8 octets; granted: Long, destination |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashSet;

use super::super::extension::{Fragment, Grant, Request};
use super::super::header::Mode;
use super::super::layout::{CONTEXT_LEN, FRAGMENT_LEN, LRANK_MAX, REQUEST_LEN};
use super::content::{Block, Body, Content};
use super::context_ids::TxContextIds;
use super::error::SendError;
use super::settings::{RTS_DATA_LEN, Settings};
use crate::completion::Completion;

/// A message to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Send {
    /// The context of the message.
    pub context: u64,
    /// Rank of the sender in the communicator, at most 2047 (2.2).
    pub lrank: u16,
    /// Tag.
    pub tag: i32,
    /// Octets of the message.
    pub len: u64,
    /// Its completion.
    pub completion: Completion,
    /// Whether it is a rendezvous: only its first [`RTS_DATA_LEN`] octets are sent before the match, whatever
    /// its length.
    pub rendezvous: bool,
    /// The driver's name of the message: not 0, and different from those of all pending sends.
    pub token: u64,
}

/// Sends of one connection, and answers to the peer.
#[derive(Debug)]
pub(super) struct MessageTx {
    /// Octets for blocks and user data in a packet.
    room: usize,
    eager_len: u64,
    sends_max: usize,
    context_ids: TxContextIds,
    /// Messages of which nothing was sent, in order.
    queue: VecDeque<Send>,
    /// The eager message that is being sent in fragments, from this offset on.
    eager: Option<Part>,
    /// Messages whose id the peer may still name.
    active: BTreeMap<u32, ActiveSend>,
    /// Their ids, by token.
    ids: BTreeMap<u64, u32>,
    /// Messages with granted octets that are not sent.
    granted: VecDeque<u32>,
    /// Whether a granted message is next, if both they and the queue wait.
    is_granted_turn: bool,
    /// Packets without a message.
    controls: VecDeque<Content>,
    /// Of these, answers.
    answers: usize,
    last_id: u32,
    /// Whether the peer has sent its FIN, and so answers nothing.
    has_peer_finished: bool,
    /// Tokens of messages that are partly or wholly sent and not acked.
    unreleased: FxHashSet<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    send: Send,
    id: u32,
    offset: u64,
}

#[derive(Clone, Copy, Debug)]
struct ActiveSend {
    send: Send,
    /// Octets sent.
    offset: u64,
    /// Octets that may be sent.
    granted: u64,
    destination_id: u32,
    phase: Phase,
    is_cancel_requested: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for the grant.
    Unmatched,
    /// The grant was received.
    Matched,
    /// Complete, except for the answer to a cancel request.
    Done,
}

/// The effect of an answer of the peer on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Matched(u64),
    Cancelled(u64),
    NotCancelled(u64),
}

/// The outcome of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Nothing was sent: the message is removed and its token is free.
    Done,
    /// A cancel request is queued.
    Asked,
    /// It is matched, or short and standard, or the peer has sent its FIN.
    TooLate,
}

impl MessageTx {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            room: settings.room(),
            eager_len: settings.eager_len(),
            sends_max: settings.sends_max,
            context_ids: TxContextIds::new(),
            queue: VecDeque::new(),
            eager: None,
            active: BTreeMap::new(),
            ids: BTreeMap::new(),
            granted: VecDeque::new(),
            is_granted_turn: false,
            controls: VecDeque::new(),
            answers: 0,
            last_id: 0,
            has_peer_finished: false,
            unreleased: FxHashSet::default(),
        }
    }

    /// Sets the octets of blocks and user data that fit a packet from now on.
    pub(super) const fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Whether a packet waits for the window.
    #[inline]
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
            || self.eager.is_some()
            || !self.controls.is_empty()
            || !self.granted.is_empty()
    }

    /// Answers that wait.
    #[inline]
    pub(super) const fn answers(&self) -> usize {
        self.answers
    }

    /// Whether no message waits for the peer.
    pub(super) fn is_idle(&self) -> bool {
        !self.has_queued() && self.active.is_empty()
    }

    pub(super) fn push(&mut self, send: Send) -> Result<(), SendError> {
        if send.lrank > LRANK_MAX {
            return Err(SendError::Lrank { lrank: send.lrank });
        }
        if send.token == 0 {
            return Err(SendError::Token);
        }
        if self.queue.len() + self.active.len() + self.unreleased.len() >= self.sends_max {
            return Err(SendError::Full { sends_max: self.sends_max });
        }
        self.queue.push_back(send);
        Ok(())
    }

    /// Queues a packet without a message.
    pub(super) fn push_control(&mut self, content: Content, is_answer: bool) {
        self.answers += usize::from(is_answer);
        self.controls.push_back(content);
    }

    /// Whether [`poll`](Self::poll) returns a packet.
    #[inline]
    pub(super) fn is_ready(&self, is_there: &impl Fn(&Body) -> bool) -> bool {
        !self.queue.is_empty()
            || self.eager.is_some()
            || !self.controls.is_empty()
            || self.granted.iter().any(|id| self.granted_body(*id).is_some_and(|body| is_there(&body)))
    }

    /// The next packet. Answers first, then messages in the order of the sends, alternating with granted
    /// octets that are there.
    pub(super) fn poll(&mut self, is_there: &impl Fn(&Body) -> bool) -> Option<Content> {
        if let Some(control) = self.controls.pop_front() {
            self.answers -= usize::from(matches!(control.mode, Mode::OkToSend | Mode::AntiSendOk));
            return Some(control);
        }
        let has_others = self.eager.is_some() || !self.queue.is_empty();
        let is_granted = !self.granted.is_empty() && (!has_others || self.is_granted_turn);
        self.is_granted_turn = !is_granted;
        if is_granted && let Some(content) = self.poll_granted(is_there) {
            return Some(content);
        }
        match self.eager {
            Some(part) => Some(self.poll_eager(part)),
            None => self.queue.pop_front().map(|send| self.first_packet(send)),
        }
    }

    fn first_packet(&mut self, send: Send) -> Content {
        let (context_id, is_new) = self.context_ids.id_of(send.context);
        let is_sync = send.completion == Completion::Synchronous;
        let blocks = if is_new { CONTEXT_LEN } else { 0 } + if is_sync { REQUEST_LEN } else { 0 };
        let is_rendezvous = send.rendezvous && send.len > u64::from(RTS_DATA_LEN);
        let mut content = Content {
            is_sync,
            context_id,
            context: is_new.then_some(send.context),
            lrank: send.lrank,
            tag: send.tag,
            token: send.token,
            ..Content::new(Mode::Short)
        };
        if send.len + blocks as u64 <= self.room as u64 && !is_rendezvous {
            content.len = send.len as u32;
            content.is_last = true;
            if is_sync {
                content.block = Block::Request(self.assign_id(send, send.len));
            }
        } else if send.len <= self.eager_len && !is_sync && !is_rendezvous {
            content.mode = Mode::Long;
            let part = Part { send, id: self.next_id(), offset: 0 };
            self.next_fragment(&mut content, part);
        } else {
            content.mode = Mode::RequestSend;
            content.len = RTS_DATA_LEN.min(u32::try_from(send.len).unwrap_or(u32::MAX));
            content.block = Block::Request(self.assign_id(send, u64::from(content.len)));
        }
        self.unreleased.insert(send.token);
        content
    }

    fn poll_eager(&mut self, part: Part) -> Content {
        let mut content = Content { token: part.send.token, ..Content::new(Mode::Long) };
        self.next_fragment(&mut content, part);
        content
    }

    /// The next fragment of an eager message.
    fn next_fragment(&mut self, content: &mut Content, part: Part) {
        let Part { send, id, offset } = part;
        let room = self.room - FRAGMENT_LEN - if content.context.is_some() { CONTEXT_LEN } else { 0 };
        let len = (send.len - offset).min(room as u64);
        content.len = len as u32;
        content.block =
            Block::Fragment(Fragment { message_id: id, destination_id: 0, total: send.len, offset });
        content.is_last = offset + len == send.len;
        self.eager = (!content.is_last).then_some(Part { offset: offset + len, ..part });
    }

    /// The next octets of a message with granted ones.
    fn granted_body(&self, id: u32) -> Option<Body> {
        let ActiveSend { send, offset, granted, .. } = self.active.get(&id)?;
        let len = (granted - offset).min((self.room - FRAGMENT_LEN) as u64);
        Some(Body { token: send.token, offset: *offset, len: len as u32 })
    }

    fn poll_granted(&mut self, is_there: &impl Fn(&Body) -> bool) -> Option<Content> {
        let is_next = |id: &u32| self.granted_body(*id).is_some_and(|body| is_there(&body));
        let at = self.granted.iter().position(is_next)?;
        // Those before it keep their order.
        let id = self.granted.remove(at)?;
        let len = u64::from(self.granted_body(id)?.len);
        let active = self.active.get_mut(&id)?;
        let ActiveSend { send, offset, granted, destination_id, .. } = *active;
        active.offset += len;
        let is_last = active.offset == send.len;
        if active.offset < granted {
            self.granted.push_back(id);
        } else if is_last {
            active.phase = Phase::Done;
            self.remove_if_over(id);
        }
        let fragment = Fragment { message_id: id, destination_id, total: send.len, offset };
        Some(Content {
            token: send.token,
            len: len as u32,
            is_last,
            block: Block::Fragment(fragment),
            ..Content::new(Mode::Long)
        })
    }

    /// Assigns an id that the peer may name.
    fn assign_id(&mut self, send: Send, offset: u64) -> Request {
        let message_id = self.next_id();
        let active = ActiveSend {
            send,
            offset,
            granted: offset,
            destination_id: 0,
            phase: Phase::Unmatched,
            is_cancel_requested: false,
        };
        self.active.insert(message_id, active);
        self.ids.insert(send.token, message_id);
        Request { message_id, total: send.len }
    }

    /// An id that is not in use; there are far more ids than messages.
    fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if !self.active.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// A packet was acked. Returns the token of the message whose octets are no longer needed.
    pub(super) fn acknowledged(&mut self, content: &Content) -> Option<u64> {
        if !content.is_last || content.token == 0 {
            return None;
        }
        self.unreleased.remove(&content.token).then_some(content.token)
    }

    /// The peer grants octets of a message, or reports its match. `None` if no such message waits.
    pub(super) fn handle_grant(&mut self, grant: &Grant) -> Option<Answer> {
        let active = self.active.get_mut(&grant.message_id)?;
        if active.phase != Phase::Unmatched || grant.granted != active.send.len {
            return None;
        }
        let token = active.send.token;
        active.granted = grant.granted;
        active.destination_id = grant.destination_id;
        if active.offset == active.granted {
            active.phase = Phase::Done;
            self.remove_if_over(grant.message_id);
        } else if grant.destination_id == 0 {
            active.granted = active.offset;
            return None;
        } else {
            active.phase = Phase::Matched;
            self.granted.push_back(grant.message_id);
        }
        Some(Answer::Matched(token))
    }

    /// The peer answers a cancel request. `None` if there was no request, or if a packet of a cancelled
    /// message is not acked: a peer that answers has received it.
    pub(super) fn handle_anti_send_ok(
        &mut self,
        grant: &Grant,
        may_leave_again: impl Fn(u64) -> bool,
    ) -> Option<Answer> {
        let id = grant.message_id;
        let active = self.active.get_mut(&id).filter(|active| active.is_cancel_requested)?;
        let (token, phase) = (active.send.token, active.phase);
        if grant.granted == 0 {
            if phase != Phase::Unmatched || may_leave_again(token) {
                return None;
            }
            self.remove(id);
            self.unreleased.remove(&token);
            return Some(Answer::Cancelled(token));
        }
        self.refuse_cancel(id)
    }

    /// Cancels a message, or requests its cancel from the peer.
    pub(super) fn cancel(&mut self, token: u64) -> Cancel {
        if let Some(place) = self.queue.iter().position(|send| send.token == token) {
            self.queue.remove(place);
            return Cancel::Done;
        }
        let id = self.ids.get(&token).copied();
        let active = id.and_then(|id| Some((id, self.active.get_mut(&id)?)));
        let Some((message_id, active)) = active else { return Cancel::TooLate };
        let is_open = active.phase == Phase::Unmatched && !self.has_peer_finished;
        if active.is_cancel_requested || !is_open {
            return Cancel::TooLate;
        }
        active.is_cancel_requested = true;
        let block = Block::Request(Request { message_id, total: 0 });
        self.push_control(Content { block, ..Content::new(Mode::AntiSend) }, false);
        Cancel::Asked
    }

    /// The peer has sent its FIN, so it answers no cancel request: the messages of those requests are not
    /// cancelled.
    pub(super) fn peer_finished(&mut self) -> Vec<Answer> {
        self.has_peer_finished = true;
        let asked: Vec<u32> =
            self.active.iter().filter(|(_, active)| active.is_cancel_requested).map(|(id, _)| *id).collect();
        asked.into_iter().filter_map(|id| self.refuse_cancel(id)).collect()
    }

    /// A requested cancel did not succeed.
    fn refuse_cancel(&mut self, id: u32) -> Option<Answer> {
        let active = self.active.get_mut(&id)?;
        let token = active.send.token;
        active.is_cancel_requested = false;
        self.remove_if_over(id);
        Some(Answer::NotCancelled(token))
    }

    fn remove(&mut self, id: u32) {
        if let Some(active) = self.active.remove(&id) {
            self.ids.remove(&active.send.token);
        }
    }

    fn remove_if_over(&mut self, id: u32) {
        if self
            .active
            .get(&id)
            .is_some_and(|active| active.phase == Phase::Done && !active.is_cancel_requested)
        {
            self.remove(id);
        }
    }

    /// Tokens of all messages that are not complete, ascending.
    pub(super) fn pending(&self) -> Vec<u64> {
        let active = self.active.values().map(|active| active.send.token);
        let queued = self.queue.iter().map(|send| send.token);
        let tokens: BTreeSet<u64> = active.chain(queued).chain(self.unreleased.iter().copied()).collect();
        tokens.into_iter().collect()
    }

    /// Messages with octets that are queued or not acked.
    pub(super) fn unacknowledged(&self) -> usize {
        self.queue.len() + self.unreleased.len()
    }

    pub(super) fn check(&self) {
        self.context_ids.check();
        assert_eq!(self.ids.len(), self.active.len());
        assert!(self.granted.iter().all(|id| self.active.contains_key(id)));
        for (id, active) in &self.active {
            assert_eq!(self.ids.get(&active.send.token), Some(id));
            assert!(active.offset <= active.granted && active.granted <= active.send.len, "{active:?}");
            let waits = self.granted.iter().filter(|granted| *granted == id).count();
            assert_eq!(waits, usize::from(active.offset < active.granted), "{active:?}");
            assert!(active.phase != Phase::Done || active.is_cancel_requested, "{active:?}");
        }
        let is_answer = |c: &&Content| matches!(c.mode, Mode::OkToSend | Mode::AntiSendOk);
        assert_eq!(self.answers, self.controls.iter().filter(is_answer).count());
    }
}
