//! The receive side of messages that the peer may still name, or that are incomplete (IMPI 8.3, 8.6).

use std::collections::BTreeMap;

pub use super::arrival::ArrivalId;
use super::arrival::ArrivalTable;
use super::event::{Control, Event};
use super::packet::{Packet, PacketType};
use super::pair_error::{NoSuchArrival, ProtocolError};

#[derive(Debug)]
pub(super) struct MessageRx {
    messages: ArrivalTable<Inbound>,
    /// Of them, those that no receive has matched.
    buffered: usize,
    /// Of them, those that are matched and not drained.
    wanted: usize,
    /// The latest message with each srqid, if it is unmatched. A sender reuses an id only when its request
    /// has ended, so a cancel request never means an earlier message (IMPI 8.6, rule 4).
    latest: BTreeMap<u64, ArrivalId>,
}

#[derive(Clone, Copy, Debug)]
struct Inbound {
    srqid: u64,
    msglen: u64,
    /// Octets received.
    received: u64,
    is_synchronous: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No receive has matched it.
    Buffered,
    /// Long and matched. Its SyncAck waits for the flow, so the peer cannot know its drqid.
    Matched { drained: bool },
    /// Long, and its SyncAck is sent.
    Open { drained: bool },
}

impl MessageRx {
    pub(super) fn new() -> Self {
        Self { messages: ArrivalTable::new(), buffered: 0, wanted: 0, latest: BTreeMap::new() }
    }

    /// Messages that no receive has matched.
    pub(super) fn buffered_len(&self) -> usize {
        self.buffered
    }

    /// Long messages whose rest is drained.
    pub(super) fn drained_len(&self) -> usize {
        self.messages.len() - self.buffered - self.wanted
    }

    /// Whether all matched messages are complete.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.len() == self.buffered
    }

    /// Stores a message that has begun.
    pub(super) fn insert(&mut self, packet: &Packet) -> ArrivalId {
        let inbound = Inbound {
            srqid: packet.srqid,
            msglen: packet.msglen,
            received: u64::from(packet.len),
            is_synchronous: packet.kind == PacketType::DataSync,
            phase: Phase::Buffered,
        };
        let id = self.messages.insert(inbound).expect("2^32 messages do not fit memory");
        self.buffered += 1;
        self.latest.insert(packet.srqid, id);
        id
    }

    pub(super) fn is_buffered(&mut self, id: ArrivalId) -> bool {
        self.messages.get_mut(id).is_some_and(|inbound| inbound.phase == Phase::Buffered)
    }

    /// A receive has matched it; the answer, if its sender waits for one.
    pub(super) fn matched(&mut self, id: ArrivalId) -> Result<Option<Control>, NoSuchArrival> {
        let inbound = self.messages.get_mut(id).ok_or(NoSuchArrival(id))?;
        if inbound.phase != Phase::Buffered {
            return Err(NoSuchArrival(id));
        }
        let Inbound { srqid, is_synchronous, .. } = *inbound;
        let is_long = inbound.received < inbound.msglen;
        if is_long {
            inbound.phase = Phase::Matched { drained: false };
            self.wanted += 1;
        } else {
            self.messages.remove(id);
        }
        self.buffered -= 1;
        if self.latest.get(&srqid) == Some(&id) {
            self.latest.remove(&srqid);
        }
        // The drqid of a short message means nothing; LAM sends 0 (IMPI 8.2).
        let drqid = if is_long { id.drqid() } else { 0 };
        Ok(is_synchronous.then_some(Control { kind: PacketType::SyncAck, srqid, drqid }))
    }

    /// Drains the rest of a matched long message; false if there is none.
    pub(super) fn drain(&mut self, id: ArrivalId) -> bool {
        match self.messages.get_mut(id).map(|inbound| &mut inbound.phase) {
            Some(Phase::Matched { drained } | Phase::Open { drained }) if !*drained => *drained = true,
            _ => return false,
        }
        self.wanted -= 1;
        true
    }

    /// The SyncAck of a long message is sent: its rest may follow.
    pub(super) fn syncack_left(&mut self, drqid: u64) {
        let inbound = ArrivalId::of(drqid).and_then(|id| self.messages.get_mut(id));
        if let Some(inbound) = inbound
            && let Phase::Matched { drained } = inbound.phase
        {
            inbound.phase = Phase::Open { drained };
        }
    }

    /// A later part of a long message; its len is at most maxdatalen. A part that is not full is accepted,
    /// since it does no harm (LAM warns of them, IMPI 8.3).
    pub(super) fn handle_continuation(&mut self, packet: &Packet) -> Result<Event, ProtocolError> {
        let Packet { drqid, len, .. } = *packet;
        let id = ArrivalId::of(drqid).ok_or(ProtocolError::Drqid { drqid })?;
        let inbound = self.messages.get_mut(id).ok_or(ProtocolError::Drqid { drqid })?;
        let Phase::Open { drained } = inbound.phase else { return Err(ProtocolError::Drqid { drqid }) };
        let Inbound { msglen, received, .. } = *inbound;
        if packet.msglen != msglen {
            return Err(ProtocolError::Msglen { found: packet.msglen, expected: msglen });
        }
        if len == 0 {
            return Err(ProtocolError::Empty { drqid });
        }
        if u64::from(len) > msglen - received {
            return Err(ProtocolError::Sum { received, len, msglen });
        }
        inbound.received += u64::from(len);
        let last = inbound.received == msglen;
        if last {
            self.messages.remove(id);
            self.wanted -= usize::from(!drained);
        }
        if drained {
            return Ok(Event::Nothing);
        }
        Ok(Event::Continued { arrival: id, offset: received, len, last })
    }

    /// Removes the message that a cancel request with this srqid means, if it is unmatched.
    pub(super) fn withdraw(&mut self, srqid: u64) -> Option<ArrivalId> {
        let id = self.latest.remove(&srqid)?;
        self.buffered -= 1;
        self.messages.remove(id);
        Some(id)
    }

    /// Removes all; returns the matched messages that the driver waits for, and the unmatched ones, both
    /// ascending.
    pub(super) fn take_all(&mut self) -> (Vec<ArrivalId>, Vec<ArrivalId>) {
        let (mut receives, mut unmatched) = (Vec::new(), Vec::new());
        for (id, inbound) in self.messages.iter() {
            match inbound.phase {
                Phase::Buffered => unmatched.push(id),
                Phase::Matched { drained: false } | Phase::Open { drained: false } => receives.push(id),
                Phase::Matched { drained: true } | Phase::Open { drained: true } => {}
            }
        }
        receives.sort_unstable();
        unmatched.sort_unstable();
        self.messages.clear();
        self.latest.clear();
        (self.buffered, self.wanted) = (0, 0);
        (receives, unmatched)
    }

    pub(super) fn syncacks_queued(&self) -> usize {
        let is_matched = |inbound: &Inbound| matches!(inbound.phase, Phase::Matched { .. });
        self.messages.iter().filter(|(_, inbound)| is_matched(inbound)).count()
    }

    pub(super) fn check_invariants(&self) {
        self.messages.check();
        let (mut buffered, mut latest, mut drained) = (0, 0, 0);
        for (id, inbound) in self.messages.iter() {
            assert!(inbound.received <= inbound.msglen, "{inbound:?}");
            let is_partial = inbound.received < inbound.msglen;
            match inbound.phase {
                Phase::Buffered => {
                    buffered += 1;
                    latest += usize::from(self.latest.get(&inbound.srqid) == Some(&id));
                }
                Phase::Matched { drained: is_drained } | Phase::Open { drained: is_drained } => {
                    assert!(is_partial && inbound.is_synchronous, "{inbound:?}");
                    drained += usize::from(is_drained);
                }
            }
        }
        assert_eq!((buffered, drained), (self.buffered, self.drained_len()));
        assert_eq!(latest, self.latest.len());
    }
}
