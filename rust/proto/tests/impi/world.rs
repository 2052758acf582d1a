//! Hosts of one process each, with wires between every two of them, programs and drivers. All random choices
//! come from one seed.
//!
//! The machine requests no cancel, but other implementations do. Here the driver of a sender acts as one: it
//! writes a Cancel in place of an empty message that the machine has counted, and hands the machine another
//! counted packet in place of the answer. Such a sender sends no rest of a cancelled long message: in place
//! of each packet of it the driver writes a Cancel that names no message.

use std::collections::{BTreeMap, VecDeque};

use mpjdev_proto::completion::Completion;
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::impi::fini::FiniState;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::message_rx::ArrivalId;
use mpjdev_proto::impi::message_tx::{Body, Send};
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Abandoned, Arrival, Event, Pair, Settings};
use mpjdev_proto::impi::pair_error::SendError;
use mpjdev_proto::impi::{Dialect, Proc};
use mpjdev_proto::matching::{Matcher, PostId, Posted};

pub(crate) use crate::random::Random;

/// Messages of a run.
pub(crate) const MESSAGES: usize = 60;

/// The state of a message at both ends.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) to: usize,
    send: Send,
    /// Whether its srqid is sent even if it is short and standard.
    cancellable: bool,
    /// Its first packet was sent.
    left: bool,
    /// `send` was called.
    begun: bool,
    handed_over: bool,
    /// The sender knows of the match.
    pub(crate) acked: bool,
    /// A Cancel was sent.
    pub(crate) asked: bool,
    /// The Cancel was answered.
    pub(crate) answered: bool,
    /// Cancels in place of its rest that were not answered.
    replaced: usize,
    forgotten: bool,
    pub(crate) cancelled: bool,
    pub(crate) withdrawn: bool,
    pub(crate) matched: bool,
    pub(crate) discarded: bool,
    pub(crate) received: bool,
    pub(crate) lost: bool,
}

/// A message as its receiver knows it.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) message: usize,
    pub(crate) id: Option<ArrivalId>,
    pub(crate) octets: Vec<u8>,
}

/// One end of a channel.
pub(crate) struct Link {
    pub(crate) pair: Pair,
    pub(crate) ending: FiniState,
    pub(crate) lost: bool,
    /// Received octets that are not read yet.
    pub(crate) input: VecDeque<u8>,
    pub(crate) reading: Reading,
    /// Long messages that are matched.
    pub(crate) long: BTreeMap<ArrivalId, Inbound>,
}

/// Destination of the octets behind a header.
#[derive(Debug)]
pub(crate) enum Reading {
    Header,
    First { inbound: Inbound, missing: usize },
    Rest { id: ArrivalId, missing: usize, last: bool },
    Nowhere { missing: usize },
}

pub(crate) struct Host {
    pub(crate) links: BTreeMap<usize, Link>,
    pub(crate) matcher: Matcher<(), Inbound>,
    posted: Vec<(Selector, PostId)>,
    to_send: VecDeque<usize>,
    to_post: Vec<Selector>,
    /// Messages by the tokens that are in use.
    pub(crate) tokens: BTreeMap<u64, usize>,
}

/// Octets in flight, and the messages that begin in them.
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) octets: VecDeque<u8>,
    pub(crate) begins: VecDeque<usize>,
}

pub(crate) struct World {
    pub(crate) dialect: Dialect,
    pub(crate) random: Random,
    pub(crate) hosts: Vec<Host>,
    pub(crate) wires: BTreeMap<(usize, usize), Wire>,
    pub(crate) messages: Vec<Message>,
}

/// Octet of a message, by its number and its offset.
pub(crate) fn content(message: usize, offset: usize) -> u8 {
    (message * 37 + offset * 11 + 5) as u8
}

fn process(rank: usize) -> Proc {
    Proc { host_id: [rank as u8; 16], pid: -(rank as i64) }
}

impl World {
    /// Hosts, marks and programs, all from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let size = 2 + random.below(3);
        let dialect = if random.below(3) == 0 { Dialect::Draft } else { Dialect::Final };
        let ackmark = 1 + random.below(4) as u32;
        let hiwater = ackmark + random.below(4) as u32;
        let maxdatalen = [1, 7, 16][random.below(3)];
        let link = |ours: usize, theirs: usize| {
            let sends_max = 6;
            // All messages of a peer may be discarded and incomplete.
            let arrivals_max = sends_max.max(4 * hiwater as usize);
            let (ours, theirs) = (process(ours), process(theirs));
            let pair = Pair::new(Settings {
                dialect,
                ours,
                theirs,
                maxdatalen,
                ackmark,
                hiwater,
                sends_max,
                arrivals_max,
            });
            let (pair, ending) = (pair.expect("good settings"), FiniState::new(dialect));
            let (input, long) = (VecDeque::new(), BTreeMap::new());
            Link { pair, ending, lost: false, input, reading: Reading::Header, long }
        };
        let host = |rank: usize| Host {
            links: (0..size).filter(|other| *other != rank).map(|other| (other, link(rank, other))).collect(),
            matcher: Matcher::new(),
            posted: Vec::new(),
            to_send: VecDeque::new(),
            to_post: Vec::new(),
            tokens: BTreeMap::new(),
        };
        let hosts = (0..size).map(host).collect();
        let mut world = Self { dialect, random, hosts, wires: BTreeMap::new(), messages: Vec::new() };
        for _ in 0..MESSAGES {
            world.plan(maxdatalen as usize);
        }
        world
    }

    /// Adds a message and a receive for it. All receives of a context have the same wildcards, so each
    /// message has one whatever the matches: 0 exact, 1 any tag, 2 any source and any tag.
    fn plan(&mut self, m: usize) {
        let random = &mut self.random;
        let from = random.below(self.hosts.len());
        let to = (from + 1 + random.below(self.hosts.len() - 1)) % self.hosts.len();
        let msglen = [0, 1, m - 1, m, m + 1, 2 * m, 3 * m + 2][random.below(7)] as u64;
        let completion = if random.below(3) == 0 { Completion::Synchronous } else { Completion::Standard };
        let (cid, tag) = (random.below(3) as u64, random.below(3) as i32 - 1);
        let cancellable = random.below(3) == 0;
        let rendezvous = !cancellable && random.below(4) == 0;
        let send = Send { cid, lsrank: from as i32, tag, msglen, completion, rendezvous, token: 0 };
        let selector = selector(from, &send);
        self.hosts[from].to_send.push_back(self.messages.len());
        let receives = &mut self.hosts[to].to_post;
        receives.insert(self.random.below(receives.len() + 1), selector);
        self.messages.push(Message { from, to, send, cancellable, ..Message::default() });
    }

    pub(crate) fn link(&mut self, host: usize, other: usize) -> &mut Link {
        self.hosts[host].links.get_mut(&other).expect("all are linked")
    }

    /// One random step. While `wild` the driver also cancels and holds ProtoAcks; with `loses` channels are
    /// lost as well.
    pub(crate) fn step(&mut self, wild: bool, loses: bool) {
        let host = self.random.below(self.hosts.len());
        let other = (host + 1 + self.random.below(self.hosts.len() - 1)) % self.hosts.len();
        match self.random.below(20) {
            0..2 => self.begin(host),
            2..4 => self.post(host),
            4..9 => self.transmit(host, other),
            9..16 => self.deliver(host, other),
            16 => self.forget(host),
            17 if wild => self.cancel(host),
            18 if wild => {
                let hold = self.random.below(3) == 0;
                self.link(host, other).pair.hold_acks(hold);
            }
            19 if loses && self.random.below(400) == 0 => self.lose(host, other),
            _ => {}
        }
        self.check(host, other);
    }

    /// Checks the invariants of both ends and of the wire.
    fn check(&self, host: usize, other: usize) {
        let (ours, theirs) = (&self.hosts[host].links[&other], &self.hosts[other].links[&host]);
        ours.pair.check_invariants();
        theirs.pair.check_invariants();
        assert!(ours.lost || ours.pair.flow().rcvd() <= theirs.pair.flow().sent());
        assert!(ours.lost || theirs.pair.flow().rcvd() <= ours.pair.flow().sent());
    }

    /// Begins the next message of the host's program.
    fn begin(&mut self, host: usize) {
        let Some(&number) = self.hosts[host].to_send.front() else { return };
        let to = self.messages[number].to;
        if self.messages[number].lost {
            self.hosts[host].to_send.pop_front();
            return;
        }
        // Tokens are used again as soon as they may be.
        let token = (1..).find(|token| !self.hosts[host].tokens.contains_key(token)).expect("one is free");
        let send = Send { token, ..self.messages[number].send };
        let is_eager = self.messages[number].is_eager(self.settings().maxdatalen);
        if (is_eager || self.random.below(2) == 0)
            && let Some(packet) = self.link(host, to).pair.try_send_now(&send)
        {
            let packet = Packet { srqid: if is_eager { token } else { 0 }, ..packet };
            let body = Body { token, offset: 0, len: packet.len, last: true };
            self.begun(host, number, send);
            self.write(host, to, &packet, Some(body));
            return;
        }
        if is_eager {
            return;
        }
        match self.link(host, to).pair.send(send) {
            Ok(()) => self.begun(host, number, send),
            Err(SendError::Full { sends_max: 6 }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn begun(&mut self, host: usize, number: usize, send: Send) {
        self.messages[number].begun = true;
        self.messages[number].send = send;
        self.hosts[host].to_send.pop_front();
        self.hosts[host].tokens.insert(send.token, number);
    }

    fn transmit(&mut self, host: usize, other: usize) {
        if self.link(host, other).lost {
            return;
        }
        let wants = self.link(host, other).pair.wants_to_send();
        let transmit = self.link(host, other).pair.poll_transmit();
        assert_eq!(wants, transmit.is_some());
        let Some(transmit) = transmit else { return };
        match transmit.body {
            Some(body) if self.messages[self.hosts[host].tokens[&body.token]].cancelled => {
                self.replace_rest(host, other, &transmit.packet, &body);
            }
            body => self.write(host, other, &transmit.packet, body),
        }
    }

    /// Writes a Cancel that names no message in place of a packet of a cancelled long message.
    fn replace_rest(&mut self, host: usize, other: usize, rest: &Packet, body: &Body) {
        let number = self.hosts[host].tokens[&body.token];
        let message = &mut self.messages[number];
        message.replaced += 1;
        message.handed_over = body.last;
        let srqid = u64::MAX - number as u64;
        let cancel = Packet { srqid, ..Packet::new(PacketType::Cancel, rest.src, rest.dest) };
        self.write(host, other, &cancel, None);
    }

    pub(crate) fn write(&mut self, host: usize, other: usize, packet: &Packet, body: Option<Body>) {
        let mut header = [0; HEADER_LEN];
        packet.emit(self.dialect, &mut header);
        let wire = self.wires.entry((host, other)).or_default();
        wire.octets.extend(header);
        let Some(body) = body else { return };
        let number = self.hosts[host].tokens[&body.token];
        let offset = body.offset as usize;
        wire.octets.extend((offset..offset + body.len as usize).map(|at| content(number, at)));
        let message = &mut self.messages[number];
        assert!(!message.cancelled && !message.handed_over, "{message:?}");
        if body.offset == 0 {
            assert!(!message.left, "{message:?}");
            message.left = true;
            wire.begins.push_back(number);
        } else {
            assert!(message.acked, "{message:?}");
        }
        message.handed_over = body.last;
        self.release(number);
    }

    /// Releases the token if neither end can name the message.
    pub(crate) fn release(&mut self, number: usize) {
        let (message, m) = (&self.messages[number], self.settings().maxdatalen);
        if message.is_pending(m) || (message.is_eager(m) && !message.cancelled && !message.forgotten) {
            return;
        }
        if self.hosts[message.from].tokens.get(&message.send.token) == Some(&number) {
            self.hosts[message.from].tokens.remove(&message.send.token);
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        *self.hosts[0].links[&1].pair.settings()
    }

    /// A message whose token is in use.
    fn in_use(&mut self, host: usize) -> Option<(u64, usize)> {
        let tokens = &self.hosts[host].tokens;
        let place = self.random.below(tokens.len().max(1));
        tokens.iter().nth(place).map(|(token, number)| (*token, *number))
    }

    fn forget(&mut self, host: usize) {
        let Some((_, number)) = self.in_use(host) else { return };
        let (message, m) = (&self.messages[number], self.settings().maxdatalen);
        if message.is_eager(m) && message.left && !message.is_pending(m) {
            self.forgotten(number);
        }
    }

    pub(crate) fn forgotten(&mut self, number: usize) {
        self.messages[number].forgotten = true;
        self.release(number);
    }

    /// Requests the cancel of a message whose match is not known, as another implementation does.
    fn cancel(&mut self, host: usize) {
        let m = self.settings().maxdatalen;
        let is_open = |message: &Message| {
            let has_left = message.handed_over || (message.left && message.is_long(m));
            has_left && !message.asked && (message.is_eager(m) || !message.acked)
        };
        let open = self.hosts[host].tokens.iter().filter(|(_, number)| is_open(&self.messages[**number]));
        let open: Vec<(u64, usize)> = open.map(|(token, number)| (*token, *number)).collect();
        let Some(&(token, number)) = open.get(self.random.below(open.len().max(1))) else { return };
        let to = self.messages[number].to;
        let Some(counted) = self.link(host, to).pair.try_send_now(&Send::default()) else { return };
        let cancel = Packet { srqid: token, ..Packet::new(PacketType::Cancel, counted.src, counted.dest) };
        self.messages[number].asked = true;
        self.write(host, to, &cancel, None);
    }

    /// The answer to a cancel. A cancelled synchronous or long message leaves the machine by a SyncAck.
    pub(crate) fn cancel_answered(&mut self, host: usize, from: usize, answer: &Packet) {
        let (is_cancelled, m) = (answer.kind == PacketType::CancelYes, self.settings().maxdatalen);
        let replaced = (u64::MAX - answer.srqid) as usize;
        if replaced < self.messages.len() {
            assert!(!is_cancelled && self.messages[replaced].replaced > 0, "{answer:?}");
            self.messages[replaced].replaced -= 1;
            self.hand_over(host, from, &Packet::new(PacketType::Data, answer.src, answer.dest));
            return self.release(replaced);
        }
        let number = self.hosts[host].tokens[&answer.srqid];
        let message = &mut self.messages[number];
        assert!(message.asked && !message.answered && !message.cancelled, "{message:?}");
        assert_eq!((message.withdrawn, message.matched), (is_cancelled, !is_cancelled), "{message:?}");
        message.answered = true;
        let is_eager = message.is_eager(m);
        let kind = if is_cancelled && !is_eager { PacketType::SyncAck } else { PacketType::Data };
        let srqid = if kind == PacketType::SyncAck { answer.srqid } else { 0 };
        self.hand_over(host, from, &Packet { srqid, ..Packet::new(kind, answer.src, answer.dest) });
        match (is_cancelled, is_eager) {
            (true, _) => self.cancelled(number),
            (false, true) => self.forgotten(number),
            (false, false) => self.release(number),
        }
    }

    /// Hands the machine a SyncAck, or an empty message that no program receives.
    fn hand_over(&mut self, host: usize, from: usize, counted: &Packet) {
        let event = self.link(host, from).pair.handle_packet(counted).expect("it is counted");
        match event {
            Event::Matched { token } => assert_eq!(token, counted.srqid),
            event => assert!(matches!(event, Event::Arrived(Arrival { id: None, .. })), "{event:?}"),
        }
    }

    /// Removes the receive of this message.
    pub(crate) fn cancelled(&mut self, number: usize) {
        let message = &mut self.messages[number];
        message.cancelled = true;
        let selector = selector(message.from, &message.send);
        let host = &mut self.hosts[message.to];
        if let Some(place) = host.to_post.iter().position(|planned| *planned == selector) {
            host.to_post.remove(place);
        } else {
            let place = host
                .posted
                .iter()
                .position(|(posted, id)| *posted == selector && host.matcher.withdraw(*id).is_some());
            host.posted.remove(place.expect("a receive is left"));
        }
        self.release(number);
    }

    fn post(&mut self, host: usize) {
        let Some(selector) = self.hosts[host].to_post.pop() else { return };
        match self.hosts[host].matcher.post(selector, ()) {
            Posted::Matched { message, .. } => self.matched(host, message),
            Posted::Waiting(id) => self.hosts[host].posted.push((selector, id)),
        }
    }

    /// Reports a match to the machine, or discards the message.
    pub(crate) fn matched(&mut self, host: usize, inbound: Inbound) {
        let number = inbound.message;
        self.in_order(number);
        let message = &mut self.messages[number];
        assert!(!message.matched && !message.withdrawn && !message.cancelled, "{message:?}");
        message.matched = true;
        message.discarded = self.random.below(8) == 0 && inbound.id.is_some();
        let (from, discarded, msglen) = (message.from, message.discarded, message.send.msglen as usize);
        let is_whole = inbound.octets.len() == msglen;
        message.received = is_whole || discarded;
        let whole = (0..inbound.octets.len()).map(|at| content(number, at));
        assert!(inbound.octets.iter().copied().eq(whole), "message {number} is damaged");
        if let Some(id) = inbound.id {
            let link = self.link(host, from);
            let said = if discarded { link.pair.discard(id) } else { link.pair.matched(id) };
            said.expect("it waits");
            if !is_whole && !discarded {
                link.long.insert(id, inbound);
            }
        }
    }

    /// Checks that messages of the same receives are matched in the order of sending.
    fn in_order(&self, number: usize) {
        let later = &self.messages[number];
        for earlier in &self.messages[..number] {
            let alike =
                (earlier.from, earlier.to, earlier.send.cid) == (later.from, later.to, later.send.cid);
            if alike && (later.send.cid > 0 || earlier.send.tag == later.send.tag) {
                let gone = earlier.matched || earlier.withdrawn || earlier.cancelled;
                assert!(gone, "{later:?} overtakes {earlier:?}");
            }
        }
    }

    /// Loses a channel: each end must know all that was pending on it.
    fn lose(&mut self, host: usize, other: usize) {
        for (one, two) in [(host, other), (other, host)] {
            let m = self.settings().maxdatalen;
            let is_ours = |message: &&Message| (message.from, message.to) == (one, two);
            let pending = self.messages.iter().filter(is_ours).filter(|message| message.is_incomplete(m));
            let mut sends: Vec<u64> = pending.map(|message| message.send.token).collect();
            sends.sort_unstable();
            let messages = &self.messages;
            let is_theirs = |inbound: &Inbound| messages[inbound.message].from == two;
            let gone = self.hosts[one].matcher.remove_unexpected(|_, inbound| is_theirs(inbound));
            let mut unmatched: Vec<ArrivalId> = gone.iter().filter_map(|(_, inbound)| inbound.id).collect();
            let link = self.link(one, two);
            if let Reading::First { inbound: Inbound { id: Some(id), .. }, .. } = &link.reading {
                unmatched.push(*id);
            }
            unmatched.sort_unstable();
            // For the machine a part is complete with its header.
            if let Reading::Rest { id, last: true, .. } = &link.reading {
                link.long.remove(id);
            }
            let receives = std::mem::take(&mut link.long).into_keys().collect();
            if !link.lost {
                assert_eq!(link.pair.abandon(), Abandoned { sends, receives, unmatched });
            }
            link.lost = true;
            link.reading = Reading::Header;
            link.input.clear();
            self.wires.remove(&(one, two));
            for message in self.messages.iter_mut().filter(|m| (m.from, m.to) == (one, two)) {
                message.lost |= !message.received || message.is_pending(m);
            }
            let messages = &self.messages;
            self.hosts[one].tokens.retain(|_, number| messages[*number].to != two);
        }
    }

    /// Whether all messages are complete, cancelled or lost.
    pub(crate) fn is_over(&self) -> bool {
        let m = self.settings().maxdatalen;
        self.messages.iter().all(|message| {
            message.lost || ((message.received || message.cancelled) && !message.is_pending(m))
        })
    }

    /// Sends Fini on every remaining channel, and delivers all octets in flight.
    pub(crate) fn end(&mut self) {
        let ends: Vec<(usize, usize)> = (0..self.hosts.len())
            .flat_map(|host| {
                self.hosts[host].links.iter().map(move |(other, link)| (host, *other, link.lost))
            })
            .filter(|(.., lost)| !lost)
            .map(|(host, other, _)| (host, other))
            .collect();
        for (host, other) in &ends {
            // Drained rests and ProtoAcks.
            while self.link(*host, *other).pair.wants_to_send() {
                self.transmit(*host, *other);
            }
            self.deliver_all(*host, *other);
        }
        for (host, other) in &ends {
            let link = self.link(*host, *other);
            link.pair.finish();
            link.ending.finish();
            if let Some(fini) = link.ending.poll_transmit() {
                assert_eq!(fini.kind, PacketType::Fini);
                self.write(*host, *other, &fini, None);
            }
            self.deliver_all(*host, *other);
        }
        for (host, other) in ends {
            let link = self.link(host, other);
            assert!(link.pair.is_done(), "host {host} to host {other}");
        }
    }
}

impl Message {
    pub(crate) fn is_long(&self, m: u32) -> bool {
        self.send.msglen > u64::from(m)
    }

    /// Whether it is short and standard and can be cancelled.
    pub(crate) fn is_eager(&self, m: u32) -> bool {
        self.cancellable && self.send.completion == Completion::Standard && !self.is_long(m)
    }

    /// Whether its sender waits for something.
    pub(crate) fn is_pending(&self, m: u32) -> bool {
        self.is_incomplete(m) || (self.asked && !self.answered) || self.replaced > 0
    }

    /// Whether the machine waits for something.
    fn is_incomplete(&self, m: u32) -> bool {
        let is_waited_for = self.is_long(m) || self.send.completion == Completion::Synchronous;
        self.begun && (!self.handed_over || (is_waited_for && !self.acked && !self.cancelled))
    }

    pub(crate) fn envelope(&self) -> Envelope {
        Envelope { context: self.send.cid, source: self.from as u32, tag: self.send.tag }
    }

    pub(crate) fn send(&self) -> &Send {
        &self.send
    }
}

fn selector(from: usize, send: &Send) -> Selector {
    Selector {
        context: send.cid,
        source: (send.cid < 2).then_some(from as u32),
        tag: (send.cid < 1).then_some(send.tag),
    }
}
