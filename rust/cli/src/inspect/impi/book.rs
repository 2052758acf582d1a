//! What packets mean for the messages and the flow between two processes, as far as a listener can know.
//!
//! A listener hears both ends, or only one: of what the end that it does not hear has said, nothing is held against
//! the other. It hears packets in an order in which they may have been sent, so what holds for both ends holds for it.

use std::collections::{BTreeMap, VecDeque};

use mpjdev_proto::context::{CONTROL_BIT, SHADOW_BIT};
use mpjdev_proto::impi::layout::{TAG_REDUCE, WORLD_CID, collective_cid, collective_operation};
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::sending::ANNOUNCED_LEN;
use mpjdev_proto::impi::startup::Tables;
use mpjdev_proto::impi::{Dialect, Proc};

use super::item::{Value, count};

/// What the sides have agreed on, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Most octets of user data in a packet.
    pub maxdatalen: Option<u32>,
    /// Packets that one ProtoAck stands for.
    pub ackmark: Option<u32>,
    /// Most packets without a ProtoAck.
    pub hiwater: Option<u32>,
    /// Largest tag.
    pub tag_ub: Option<u32>,
}

impl Agreed {
    /// What is not known of it is taken from the tables.
    pub(super) fn complete(&mut self, tables: &Tables) {
        self.maxdatalen.get_or_insert(tables.maxdatalen);
        self.ackmark.get_or_insert(tables.ackmark);
        self.hiwater.get_or_insert(tables.hiwater);
        self.tag_ub.get_or_insert(tables.tag_ub);
    }
}

/// Pairs of processes that are followed.
const PAIRS_MAX: usize = 1 << 14;
/// Messages whose ids are kept.
const MESSAGES_MAX: usize = 1 << 16;

/// All messages that may still be named.
#[derive(Debug)]
pub(super) struct Book {
    dialect: Dialect,
    pub(super) agreed: Agreed,
    /// Each process's rank in MPI_COMM_WORLD, when start-up was heard.
    ranks: Option<BTreeMap<Proc, u32>>,
    /// By source and destination.
    flows: BTreeMap<(Proc, Proc), Flow>,
    messages: BTreeMap<Key, Sent>,
    /// The keys in the order in which they came, each with its message's number.
    order: VecDeque<(Key, u64)>,
    /// The srqids of long messages by the drqids that name their rest.
    rests: BTreeMap<Key, u64>,
    /// Whether something was forgotten, so that not to know an id says nothing.
    has_forgotten: bool,
}

/// Number of a flow, and an id.
type Key = (u32, u64);

/// Packets from one process to another.
#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u32,
    /// Counted packets that no ProtoAck has answered.
    open: u64,
}

/// A message with an id.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Of its first packet.
    number: u64,
    phase: Phase,
    msglen: u64,
    received: u64,
    drqid: Option<u64>,
    is_cancel_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Short and standard.
    Eager,
    /// A SyncAck must come.
    Unmatched,
    /// Long, its rest is on its way.
    Rest,
    /// Nothing more comes.
    Done,
    /// Taken back.
    Cancelled,
}

/// What a packet means.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) meaning: String,
    pub(super) warnings: Vec<String>,
}

impl Verdict {
    fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }
}

impl Book {
    pub(super) fn new(dialect: Dialect, agreed: Agreed) -> Book {
        Book {
            dialect,
            agreed,
            ranks: None,
            flows: BTreeMap::new(),
            messages: BTreeMap::new(),
            order: VecDeque::new(),
            rests: BTreeMap::new(),
            has_forgotten: false,
        }
    }

    /// Start-up was heard.
    pub(super) fn learn(&mut self, tables: &Tables) {
        self.agreed.complete(tables);
        self.ranks = Some(tables.procs.iter().map(|proc| proc.proc).zip(0..).collect());
    }

    /// Takes in a packet and says what it means. `hears_both`: whatever the destination has said before was heard too.
    pub(super) fn handle(&mut self, number: u64, packet: &Packet, hears_both: bool) -> Verdict {
        let mut verdict = Verdict::default();
        if packet.kind == PacketType::Fini {
            verdict.meaning = "its host says nothing more".to_owned();
            return verdict;
        }
        self.check_ends(packet, &mut verdict);
        let back = self.flow(packet.dest, packet.src, false).map(|flow| flow.number);
        // What is not heard leaves no trace.
        let heard = hears_both || back.is_some();
        if packet.kind.is_counted() {
            self.count(packet, heard, &mut verdict);
        }
        let there = self.flow(packet.src, packet.dest, true).map(|flow| flow.number);
        match (packet.kind, there) {
            (PacketType::ProtoAck, _) => self.handle_protoack(packet, heard, &mut verdict),
            (PacketType::Data | PacketType::DataSync, Some(there)) => {
                self.handle_data(number, there, packet, heard, &mut verdict);
            }
            (PacketType::Cancel, Some(there)) => self.handle_cancel(there, packet, &mut verdict),
            (PacketType::SyncAck, _) => self.handle_syncack(back, packet, heard, &mut verdict),
            (PacketType::CancelYes | PacketType::CancelNo, _) => {
                self.handle_answer(back, packet, heard, &mut verdict);
            }
            _ => {}
        }
        verdict
    }

    /// The flow from one process to another; begun, if that is asked for and there is room.
    fn flow(&mut self, src: Proc, dest: Proc, begins: bool) -> Option<&mut Flow> {
        let number = self.flows.len() as u32;
        if begins && !self.flows.contains_key(&(src, dest)) {
            if self.flows.len() >= PAIRS_MAX {
                self.has_forgotten = true;
                return None;
            }
            self.flows.insert((src, dest), Flow { number, open: 0 });
        }
        self.flows.get_mut(&(src, dest))
    }

    fn check_ends(&self, packet: &Packet, verdict: &mut Verdict) {
        let Some(ranks) = &self.ranks else { return };
        for (end, proc) in [("src", packet.src), ("dest", packet.dest)] {
            if !ranks.contains_key(&proc) {
                verdict.warn(format!("{end} {} is no process of the job", Value::Proc(proc)));
            }
        }
        let Some(rank) = ranks.get(&packet.src) else { return };
        let is_world = packet.cid == WORLD_CID || packet.cid == collective_cid(WORLD_CID);
        let lsrank = packet.lsrank;
        if self.dialect == Dialect::Final
            && packet.kind.has_data()
            && is_world
            && i64::from(lsrank) != i64::from(*rank)
        {
            verdict.warn(format!("lsrank is {lsrank}, but src has rank {rank} in MPI_COMM_WORLD"));
        }
    }

    fn count(&mut self, packet: &Packet, heard: bool, verdict: &mut Verdict) {
        let hiwater = self.agreed.hiwater;
        let Some(flow) = self.flow(packet.src, packet.dest, true) else { return };
        flow.open += 1;
        if let Some(hiwater) = hiwater.filter(|hiwater| heard && flow.open > u64::from(*hiwater)) {
            verdict.warn(format!("{} without a ProtoAck, hiwater is {hiwater}", count(flow.open, "packet")));
        }
    }

    fn handle_protoack(&mut self, packet: &Packet, heard: bool, verdict: &mut Verdict) {
        let ackmark = self.agreed.ackmark;
        verdict.meaning = match ackmark {
            Some(ackmark) => format!("acknowledges {}", count(ackmark.into(), "packet")),
            None => "acknowledges ackmark packets".to_owned(),
        };
        // An ackmark is 1 at least.
        let least = u64::from(ackmark.unwrap_or(1));
        let knows_all = heard && !self.has_forgotten;
        let open = self.flow(packet.dest, packet.src, false).map_or(0, |flow| flow.open);
        if open < least && knows_all {
            verdict.warn(format!("ProtoAck for {}, {open} not acknowledged", count(least, "packet")));
        }
        if let Some(flow) = self.flow(packet.dest, packet.src, false) {
            flow.open = flow.open.saturating_sub(least);
        }
    }

    fn handle_data(&mut self, number: u64, there: u32, packet: &Packet, heard: bool, verdict: &mut Verdict) {
        let (len, msglen) = (u64::from(packet.len), packet.msglen);
        self.check_fields(packet, verdict);
        if packet.kind == PacketType::Data && len < msglen {
            return self.handle_rest(there, packet, heard, verdict);
        }
        let is_long = len < msglen;
        verdict.meaning = match (packet.kind, is_long) {
            (_, true) if packet.len == ANNOUNCED_LEN => {
                format!("announces a message of {}", count(msglen, "octet"))
            }
            (_, true) => format!("first packet of a long message of {}", count(msglen, "octet")),
            (PacketType::DataSync, _) => format!("short synchronous message of {}", count(msglen, "octet")),
            _ if msglen == 0 => "empty message".to_owned(),
            _ => format!("short message of {}", count(msglen, "octet")),
        };
        if let Some(what) = subject(packet, self.dialect) {
            verdict.meaning = format!("{what}: {}", verdict.meaning);
        }
        let is_synchronous = packet.kind == PacketType::DataSync;
        if !is_synchronous && packet.srqid == 0 {
            return;
        }
        let key = (there, packet.srqid);
        if let Some(open) = self.messages.get(&key).filter(|m| heard && m.phase == Phase::Unmatched) {
            verdict.warn(format!("srqid {} is still that of packet {}", packet.srqid, open.number));
        }
        let phase = if is_synchronous { Phase::Unmatched } else { Phase::Eager };
        self.keep(key, Sent { number, phase, msglen, received: len, drqid: None, is_cancel_open: false });
    }

    fn check_fields(&self, packet: &Packet, verdict: &mut Verdict) {
        let (len, msglen) = (packet.len, packet.msglen);
        if let Some(maxdatalen) = self.agreed.maxdatalen.filter(|maxdatalen| len > *maxdatalen) {
            verdict.warn(format!("len {len} is above maxdatalen, {maxdatalen}"));
        }
        if u64::from(len) > msglen {
            verdict.warn(format!("len {len} is above msglen, {msglen}"));
        }
        if self.dialect == Dialect::Draft {
            return;
        }
        if packet.tag < 0 {
            verdict.warn(format!("tag {} is negative", packet.tag));
        }
        if packet.lsrank < 0 {
            verdict.warn(format!("lsrank {} is negative", packet.lsrank));
        }
        let tag = i64::from(packet.tag);
        if let Some(tag_ub) = self.agreed.tag_ub.filter(|tag_ub| tag > i64::from(*tag_ub)) {
            verdict.warn(format!("tag {tag} is above the largest of the job, {tag_ub}"));
        }
    }

    fn keep(&mut self, key: Key, sent: Sent) {
        if let Some(before) = self.messages.insert(key, sent)
            && let Some(drqid) = before.drqid
        {
            self.rests.remove(&(key.0, drqid));
        }
        self.order.push_back((key, sent.number));
        while self.order.len() > MESSAGES_MAX {
            let Some((oldest, number)) = self.order.pop_front() else { break };
            if self.messages.get(&oldest).is_some_and(|sent| sent.number == number) {
                self.has_forgotten = true;
                let drqid = self.messages.remove(&oldest).and_then(|sent| sent.drqid);
                drqid.and_then(|drqid| self.rests.remove(&(oldest.0, drqid)));
            }
        }
    }

    /// A part of a long message that is not its first.
    fn handle_rest(&mut self, there: u32, packet: &Packet, heard: bool, verdict: &mut Verdict) {
        let Packet { srqid, drqid, msglen, .. } = *packet;
        let len = u64::from(packet.len);
        let named = self.rests.get(&(there, drqid)).copied();
        let key = (there, named.unwrap_or(srqid));
        let is_rest = |sent: &&mut Sent| matches!(sent.phase, Phase::Unmatched | Phase::Rest);
        // Where the SyncAck was not heard the drqid is not known, and the srqid has to do.
        let found = self.messages.get_mut(&key).filter(is_rest);
        let Some(sent) = found.filter(|sent| sent.received < sent.msglen && (named.is_some() || !heard))
        else {
            verdict.meaning =
                format!("{} of a long message of {}", count(len, "octet"), count(msglen, "octet"));
            if !self.has_forgotten {
                verdict.warn(format!("drqid {drqid} names no message that goes on"));
            }
            return;
        };
        let from = sent.received;
        let last = from.saturating_add(len).saturating_sub(1);
        verdict.meaning = format!("octets {from} to {last} of the message of packet {}", sent.number);
        if msglen != sent.msglen {
            verdict.warn(format!("msglen is {msglen}, that of its message is {}", sent.msglen));
        }
        if len == 0 {
            verdict.meaning = format!("nothing of the message of packet {}", sent.number);
            verdict.warn("len is 0 in the middle of a message");
        }
        if len > sent.msglen - from {
            verdict
                .warn(format!("{from} octets and len {len} are above the message's msglen, {}", sent.msglen));
        }
        sent.received = from.saturating_add(len).min(sent.msglen);
        sent.phase = Phase::Rest;
        if sent.received == sent.msglen {
            verdict.meaning.push_str(", which is complete");
            sent.phase = Phase::Done;
            self.rests.remove(&(there, drqid));
        }
    }

    fn handle_syncack(&mut self, back: Option<u32>, packet: &Packet, heard: bool, verdict: &mut Verdict) {
        let Packet { srqid, drqid, .. } = *packet;
        verdict.meaning = format!("matched: srqid {srqid}");
        let Some(sent) = back.and_then(|back| self.messages.get_mut(&(back, srqid))) else {
            if heard && !self.has_forgotten {
                verdict.warn(format!("no message with srqid {srqid} waits for a SyncAck"));
            }
            return;
        };
        match sent.phase {
            Phase::Unmatched if sent.received < sent.msglen => {
                verdict.meaning = format!(
                    "matched: the message of packet {}; its rest is to name drqid {drqid}",
                    sent.number
                );
                sent.phase = Phase::Rest;
                sent.drqid = Some(drqid);
                let rest = (back.unwrap_or(0), drqid);
                if let Some(other) = self.rests.insert(rest, srqid) {
                    verdict.warn(format!("drqid {drqid} is still that of srqid {other}"));
                }
            }
            Phase::Unmatched => {
                verdict.meaning = format!("matched: the synchronous message of packet {}", sent.number);
                sent.phase = Phase::Done;
            }
            Phase::Eager => {
                verdict.warn(format!("the message of packet {} waits for no SyncAck", sent.number))
            }
            Phase::Rest | Phase::Done => {
                verdict.warn(format!("the message of packet {} has its SyncAck already", sent.number));
            }
            Phase::Cancelled => {
                verdict.warn(format!("the message of packet {} was taken back", sent.number));
            }
        }
    }

    fn handle_cancel(&mut self, there: u32, packet: &Packet, verdict: &mut Verdict) {
        let srqid = packet.srqid;
        verdict.meaning = format!("asks for its message back: srqid {srqid}");
        match self.messages.get_mut(&(there, srqid)) {
            Some(sent) => {
                verdict.meaning = format!("asks for the message of packet {} back", sent.number);
                if sent.is_cancel_open || sent.phase == Phase::Cancelled {
                    verdict.warn("a second time");
                }
                sent.is_cancel_open = true;
            }
            None if !self.has_forgotten => verdict.warn(format!("no message had the srqid {srqid}")),
            None => {}
        }
    }

    fn handle_answer(&mut self, back: Option<u32>, packet: &Packet, heard: bool, verdict: &mut Verdict) {
        let (kind, srqid) = (packet.kind, packet.srqid);
        let is_yes = kind == PacketType::CancelYes;
        verdict.meaning = format!("{}: srqid {srqid}", if is_yes { "given back" } else { "not given back" });
        let found = back.and_then(|back| self.messages.get_mut(&(back, srqid)));
        let Some(sent) = found.filter(|sent| sent.is_cancel_open) else {
            if heard && !self.has_forgotten {
                verdict.warn(format!("no message with srqid {srqid} waits for a {kind:?}"));
            }
            return;
        };
        sent.is_cancel_open = false;
        if !is_yes {
            // LAM refuses whether or not it was matched.
            verdict.meaning = format!("the message of packet {} is not given back", sent.number);
            return;
        }
        let is_matched = matches!(sent.phase, Phase::Rest | Phase::Done);
        verdict.meaning = format!("the message of packet {} is given back", sent.number);
        if is_matched {
            verdict.warn("it was matched before");
        }
        sent.phase = Phase::Cancelled;
    }

    /// Messages that wait for a SyncAck, long ones that are not complete, and cancel requests without an answer.
    pub(super) fn open(&self) -> [u64; 3] {
        let count = |is: fn(&Sent) -> bool| self.messages.values().filter(|sent| is(sent)).count() as u64;
        [
            count(|sent| sent.phase == Phase::Unmatched),
            count(|sent| sent.phase == Phase::Rest),
            count(|sent| sent.is_cancel_open),
        ]
    }
}

/// What a message belongs to, if its ids say so.
fn subject(packet: &Packet, dialect: Dialect) -> Option<&'static str> {
    let Packet { cid, tag, .. } = *packet;
    match dialect {
        Dialect::Draft => (tag < 0).then_some("collective"),
        Dialect::Final if cid & CONTROL_BIT != 0 && cid & SHADOW_BIT == 0 => Some("between ranks of mpjdev"),
        Dialect::Final if cid & SHADOW_BIT != 0 => Some("second half of an mpjdev message"),
        Dialect::Final if cid % 2 == 1 => Some(collective_operation(tag).unwrap_or("collective")),
        Dialect::Final => (tag == TAG_REDUCE).then_some("perhaps reduce, which LAM sends on this cid"),
    }
}
