//! The receive side of messages that are incomplete, unmatched, or that the peer may still name (5.9, 2.3).

use std::collections::BTreeMap;

use super::super::extension::{Fragment, Grant, Request};
use super::super::header::Mode;
pub use super::arrival::ArrivalId;
use super::arrival::ArrivalTable;
use super::content::{Block, Content};
use super::context_ids::RxContextIds;
use super::error::NoSuchArrival;
use super::settings::RTS_DATA_LEN;

/// The first packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// `None`: the message is complete and needs no answer. Else the driver calls
    /// [`matched`](super::connection::Connection::matched) in the same step in which a receive matches it, or
    /// [`discard`](super::connection::Connection::discard).
    pub id: Option<ArrivalId>,
    /// The context of the message.
    pub context: u64,
    /// Rank of the sender in the communicator.
    pub lrank: u16,
    /// Tag.
    pub tag: i32,
    /// Octets of the whole message, as its sender states: nothing to allocate before they arrive.
    pub total: u64,
    /// Octets of it in this packet.
    pub len: u32,
    /// Whether its sender waits for the match.
    pub is_synchronous: bool,
    /// Whether the rest, if there is one, is sent only after the match.
    pub is_rendezvous: bool,
}

/// The meaning of a packet's user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Delivery {
    /// A message begins: its first octets.
    Arrived(Arrival),
    /// The next octets of a message.
    Continued {
        /// The message.
        arrival: ArrivalId,
        /// Their offset in the message. Octets of messages with a grant arrive in any order.
        offset: u64,
        /// Their number.
        len: u32,
        /// Whether the message is complete with these. The id of a matched message is then invalid.
        is_last: bool,
    },
}

/// Messages of one connection that have an id.
#[derive(Debug)]
pub(super) struct MessageRx {
    context_ids: RxContextIds,
    messages: ArrivalTable<Inbound>,
    /// Of these, those that no receive has matched.
    unmatched: usize,
    /// Unmatched messages that the peer may name, by message id.
    named: BTreeMap<u32, ArrivalId>,
    /// The eager message whose fragments are being received.
    eager: Option<(u32, ArrivalId)>,
}

#[derive(Clone, Copy, Debug)]
struct Inbound {
    message_id: u32,
    total: u64,
    /// Octets received.
    received: u64,
    kind: Kind,
    is_synchronous: bool,
    is_matched: bool,
    is_discarded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sent without a grant.
    Eager,
    /// Its rest is sent with a grant.
    Rendezvous,
}

impl MessageRx {
    pub(super) fn new() -> Self {
        Self {
            context_ids: RxContextIds::new(),
            messages: ArrivalTable::new(),
            unmatched: 0,
            named: BTreeMap::new(),
            eager: None,
        }
    }

    /// Messages that have ids.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.messages.len()
    }

    /// Of these, those that no receive has matched.
    #[inline]
    pub(super) const fn unmatched_len(&self) -> usize {
        self.unmatched
    }

    /// Whether all matched messages are complete.
    pub(super) const fn is_idle(&self) -> bool {
        self.messages.len() == self.unmatched
    }

    /// A message begins, in the order of the packets. `None` if no honest peer sends that.
    #[inline]
    pub(super) fn begin(&mut self, content: &Content) -> Option<Arrival> {
        let context = self.context_ids.resolve(content.context_id, content.context)?;
        let mut arrival = Arrival {
            id: None,
            context,
            lrank: content.lrank,
            tag: content.tag,
            total: u64::from(content.len),
            len: content.len,
            is_synchronous: content.is_sync,
            is_rendezvous: false,
        };
        if !matches!((content.mode, &content.block), (Mode::Short, Block::None)) {
            self.begin_with_id(content, &mut arrival)?;
        }
        Some(arrival)
    }

    fn begin_with_id(&mut self, content: &Content, arrival: &mut Arrival) -> Option<()> {
        let (message_id, is_named) = match content.block {
            Block::Request(Request { message_id, total }) => {
                arrival.total = total;
                arrival.is_rendezvous = content.mode == Mode::RequestSend;
                // Short carries a complete message, RequestSend one with a rest.
                let is_sound = match arrival.is_rendezvous {
                    // More octets would occupy memory until the match.
                    true => content.len <= RTS_DATA_LEN,
                    false => total == u64::from(content.len),
                };
                if !is_sound || self.named.contains_key(&message_id) {
                    return None;
                }
                (message_id, true)
            }
            Block::Fragment(Fragment { message_id, destination_id: 0, total, offset: 0 }) => {
                arrival.total = total;
                if self.eager.is_some()
                    || content.is_sync
                    || total <= u64::from(content.len)
                    || content.len == 0
                {
                    return None;
                }
                (message_id, false)
            }
            _ => return None,
        };
        let kind = if arrival.is_rendezvous { Kind::Rendezvous } else { Kind::Eager };
        let id = self.messages.insert(Inbound {
            message_id,
            total: arrival.total,
            received: u64::from(content.len),
            kind,
            is_synchronous: content.is_sync,
            is_matched: false,
            is_discarded: false,
        })?;
        self.unmatched += 1;
        arrival.id = Some(id);
        if is_named {
            self.named.insert(message_id, id);
        } else {
            self.eager = Some((message_id, id));
        }
        Some(())
    }

    /// The next octets of an eager message, in the order of the packets. `None` if no honest peer sends that;
    /// `Some(None)` for discarded octets.
    pub(super) fn continue_eager(&mut self, fragment: &Fragment, len: u32) -> Option<Option<Delivery>> {
        let (message_id, id) = self.eager?;
        let inbound = self.messages.get_mut(id)?;
        let is_next = inbound.received == fragment.offset && inbound.total == fragment.total && len > 0;
        if message_id != fragment.message_id || !is_next {
            return None;
        }
        Some(self.add(id, fragment.offset, len))
    }

    /// Octets of a message with a grant, in any order. `None` if there is no such message, or if they are not
    /// part of it.
    pub(super) fn accept_fragment(&mut self, fragment: &Fragment, len: u32) -> Option<Option<Delivery>> {
        let id = ArrivalId::of(fragment.destination_id.into())?;
        let inbound = self.messages.get_mut(id)?;
        let is_open = inbound.kind == Kind::Rendezvous && inbound.is_matched;
        let is_part = inbound.message_id == fragment.message_id && inbound.total == fragment.total;
        // Only the sum is checked: a peer that sends one fragment twice and omits another damages only its
        // own message.
        if !is_open || !is_part || len == 0 || u64::from(len) > inbound.total - inbound.received {
            return None;
        }
        Some(self.add(id, fragment.offset, len))
    }

    fn add(&mut self, id: ArrivalId, offset: u64, len: u32) -> Option<Delivery> {
        let inbound = self.messages.get_mut(id)?;
        inbound.received += u64::from(len);
        let is_last = inbound.received == inbound.total;
        let Inbound { kind, is_matched, is_discarded, .. } = *inbound;
        if is_last && kind == Kind::Eager {
            self.eager = None;
        }
        if is_last && is_matched {
            self.messages.remove(id);
        }
        (!is_discarded).then_some(Delivery::Continued { arrival: id, offset, len, is_last })
    }

    /// A receive has matched the message. Returns the answer, if its sender waits for one.
    pub(super) fn matched(&mut self, id: ArrivalId) -> Result<Option<Content>, NoSuchArrival> {
        let inbound =
            self.messages.get_mut(id).filter(|inbound| !inbound.is_matched).ok_or(NoSuchArrival(id))?;
        inbound.is_matched = true;
        let Inbound { message_id, total, received, kind, is_synchronous, .. } = *inbound;
        self.unmatched -= 1;
        if self.named.get(&message_id) == Some(&id) {
            self.named.remove(&message_id);
        }
        let is_whole = received == total;
        if is_whole {
            self.messages.remove(id);
        }
        if !is_synchronous && kind == Kind::Eager {
            return Ok(None);
        }
        let destination_id = if is_whole { 0 } else { id.destination_id() };
        let block = Block::Grant(Grant { message_id, destination_id, granted: total });
        Ok(Some(Content { block, ..Content::new(Mode::OkToSend) }))
    }

    /// Discards the rest of a message. Returns the answer, if it was not matched and its sender waits for
    /// one.
    pub(super) fn discard(&mut self, id: ArrivalId) -> Result<Option<Content>, NoSuchArrival> {
        let inbound =
            self.messages.get_mut(id).filter(|inbound| !inbound.is_discarded).ok_or(NoSuchArrival(id))?;
        inbound.is_discarded = true;
        if inbound.is_matched { Ok(None) } else { self.matched(id) }
    }

    /// The peer requests a cancel. Returns the answer, and the message if it is cancelled.
    pub(super) fn withdraw(&mut self, request: &Request) -> (Content, Option<ArrivalId>) {
        let taken = self.named.remove(&request.message_id);
        if let Some(id) = taken {
            self.unmatched -= 1;
            self.messages.remove(id);
        }
        let granted = if taken.is_some() { 0 } else { u64::MAX };
        let block = Block::Grant(Grant { message_id: request.message_id, destination_id: 0, granted });
        (Content { block, ..Content::new(Mode::AntiSendOk) }, taken)
    }

    pub(super) fn check(&self) {
        self.messages.check();
        let inbound = || self.messages.iter().map(|(_, inbound)| inbound);
        assert_eq!(inbound().filter(|inbound| !inbound.is_matched).count(), self.unmatched);
        assert!(self.named.len() <= self.unmatched);
        for inbound in inbound() {
            assert!(inbound.received <= inbound.total, "{inbound:?}");
            assert!(!inbound.is_matched || inbound.received < inbound.total, "{inbound:?}");
        }
    }
}
