//! Two ends, a network in each direction, and a clock that advances to the next event. Packets are real
//! octets.

use std::collections::{BTreeMap, HashMap, VecDeque};

use mpjdev_proto::completion::Completion;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition, Event};
use mpjdev_proto::datagram::reliable::content::Body;
use mpjdev_proto::datagram::reliable::error::Failure;
use mpjdev_proto::datagram::reliable::message_rx::{Arrival, ArrivalId, Delivery};
use mpjdev_proto::datagram::reliable::message_tx::{Cancel, Send};
use mpjdev_proto::datagram::reliable::resets::Resets;
use mpjdev_proto::datagram::reliable::settings::Settings;
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, Nanos, SECOND};
use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_sim::{Impairment, Network, Random};

/// The behaviour of a program with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Sends all its messages, with at most this number unreleased.
    Stream {
        /// Messages.
        pending_max: usize,
    },
    /// Sends a message after each received one; the first end begins.
    PingPong,
}

/// Messages of one end, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) count: u64,
    /// The messages by their numbers.
    pub(crate) message: fn(u64) -> Send,
}

/// One end of the connection, and its program.
pub(crate) struct End {
    pub(crate) connection: Connection,
    pub(crate) program: Program,
    pub(crate) plan: Plan,
    /// Messages handed over so far.
    pub(crate) sent: u64,
    pub(crate) released: u64,
    pub(crate) matched: u64,
    pub(crate) cancelled: u64,
    pub(crate) refused: u64,
    /// Messages of the other end that have begun, and those that are complete.
    pub(crate) begun: u64,
    pub(crate) complete: u64,
    pub(crate) withdrawn: u64,
    kept: HashMap<u16, Vec<u8>>,
    inbound: BTreeMap<ArrivalId, Inbound>,
    unmatched: VecDeque<ArrivalId>,
    /// A receive matches in one of this number of passes; 0 is at once.
    pub(crate) dawdles: u64,
    /// A message is cancelled in one of this number of passes; 0 is never.
    pub(crate) cancels: u64,
    /// Most octets of each message that a pass packs, after the message was sent; 0: it is packed before.
    pub(crate) packs: u64,
    packed: BTreeMap<u64, u64>,
    pub(crate) inbox: VecDeque<Vec<u8>>,
    /// The end does not poll before.
    pub(crate) asleep_until: Nanos,
    pub(crate) events: Vec<Event>,
    pub(crate) failure: Option<Failure>,
    pub(crate) closed: bool,
    pub(crate) peer_finished: bool,
    pub(crate) latest_complete: Nanos,
    pub(crate) octets: u64,
    resets: Resets<()>,
    /// Messages that may be sent in a ping-pong.
    pub(crate) answers: u64,
    /// Most octets of a datagram.
    pub(crate) longest: usize,
}

struct Inbound {
    number: u64,
    octets: Vec<u8>,
    come: Vec<bool>,
    is_matched: bool,
}

pub(crate) struct World {
    pub(crate) now: Nanos,
    pub(crate) ends: [End; 2],
    /// From the end of this index to the other.
    pub(crate) networks: [Network<Vec<u8>>; 2],
    /// Steps between two checks of all invariants; 0 is never.
    pub(crate) check_every: u64,
    steps: u64,
    random: Random,
}

/// Messages of some octets, without ids.
pub(crate) fn short(number: u64) -> Send {
    Send { tag: number as i32, len: 8 + number % 24, token: number + 1, ..Send::default() }
}

/// A world of two equal ends.
pub(crate) fn world(seed: u64, settings: Settings, impairment: &str) -> World {
    let mut random = Random::new(seed);
    let [a, b] = [random.bits(), random.bits()];
    let [first_a, first_b] = [random.bits(), random.bits()].map(FullSequence::of);
    let settings_a = Settings { ours: a, theirs: b, first_ours: first_a, first_theirs: first_b, ..settings };
    let settings_b = Settings { ours: b, theirs: a, first_ours: first_b, first_theirs: first_a, ..settings };
    let impairment: Impairment = impairment.parse().expect("an impairment");
    World {
        now: START,
        ends: [settings_a, settings_b].map(End::new),
        networks: [1, 2].map(|k| Network::new(impairment, seed.wrapping_mul(1000) + k)),
        check_every: 1,
        steps: 0,
        random,
    }
}

/// Not 0, so that no code relies on that.
pub(crate) const START: Nanos = 1000 * SECOND;

impl End {
    fn new(settings: Settings) -> Self {
        Self {
            connection: Connection::new(settings, START).expect("settings"),
            program: Program::Stream { pending_max: 1000 },
            plan: Plan { count: 0, message: short },
            sent: 0,
            released: 0,
            matched: 0,
            cancelled: 0,
            refused: 0,
            begun: 0,
            complete: 0,
            withdrawn: 0,
            kept: HashMap::new(),
            inbound: BTreeMap::new(),
            unmatched: VecDeque::new(),
            dawdles: 0,
            cancels: 0,
            packs: 0,
            packed: BTreeMap::new(),
            inbox: VecDeque::new(),
            asleep_until: 0,
            events: Vec::new(),
            failure: None,
            closed: false,
            peer_finished: false,
            latest_complete: 0,
            octets: 0,
            resets: Resets::new(),
            answers: 0,
            longest: settings.datagram_len_max,
        }
    }

    pub(crate) fn streams(&mut self, count: u64) {
        self.plan.count = count;
    }
}

impl World {
    /// Runs until the condition holds, which it must within `limit`.
    #[track_caller]
    pub(crate) fn run_until(&mut self, limit: Nanos, holds: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !holds(self) {
            let next = self.next_time();
            assert!(
                next.is_some_and(|next| next <= end),
                "makes no progress at {next:?} of {end}: {:#?} {:#?}",
                self.ends[0].connection,
                self.ends[1].connection
            );
            self.advance(next.expect("above"));
        }
    }

    /// Runs for that long.
    pub(crate) fn run_for(&mut self, time: Nanos) {
        let end = self.now + time;
        while let Some(next) = self.next_time().filter(|next| *next <= end) {
            self.advance(next);
        }
        self.now = end;
    }

    /// Runs until both ends have all messages of the other, and all are released.
    #[track_caller]
    pub(crate) fn run_to_completion(&mut self, limit: Nanos) {
        self.run_until(limit, |world| {
            let [a, b] = &world.ends;
            a.is_through(b) && b.is_through(a)
        });
    }

    /// The time of the next event.
    pub(crate) fn next_time(&self) -> Option<Nanos> {
        (0..2)
            .filter_map(|k| {
                let end = &self.ends[k];
                let arrival = self.networks[1 - k].next_time_ns();
                let wakes = (!end.inbox.is_empty() || end.wants_to_send()).then_some(self.now);
                let timeout = end.connection.next_timeout();
                let matches = (!end.unmatched.is_empty()).then_some(self.now + SOON);
                let packs = (end.packs > 0 && end.connection.has_queued()).then_some(self.now + SOON);
                let next = [wakes, timeout, arrival, matches, packs].into_iter().flatten().min()?;
                Some(next.max(end.asleep_until).max(self.now))
            })
            .min()
    }

    pub(crate) fn advance(&mut self, now: Nanos) {
        assert!(now >= self.now);
        self.now = now;
        self.steps += 1;
        for k in 0..2 {
            while let Some(octets) = self.networks[1 - k].poll_deliver(now) {
                self.ends[k].inbox.push_back(octets);
            }
            if self.ends[k].asleep_until <= now {
                self.pass(k);
            }
        }
        if self.check_every > 0 && self.steps.is_multiple_of(self.check_every) {
            self.ends[0].connection.check();
            self.ends[1].connection.check();
        }
        assert!(self.steps < STEPS_MAX, "{STEPS_MAX} steps have made no progress");
    }

    /// One pass of an end's driver.
    fn pass(&mut self, k: usize) {
        let now = self.now;
        let end = &mut self.ends[k];
        while let Some(octets) = end.inbox.pop_front() {
            end.receive(now, &octets, &mut self.networks[k]);
        }
        end.connection.handle_drained(now);
        if end.connection.next_timeout().is_some_and(|at| at <= now) {
            end.connection.handle_timeout(now);
        }
        end.take_events();
        end.run_program(now, &mut self.random);
        end.take_events();
        end.pack(&mut self.random);
        while let Some((packet, body)) = end.poll_transmit(now) {
            let octets = end.octets_of(&packet, body);
            self.networks[k].send(now, octets.len() + UDP_OVERHEAD, octets);
        }
        end.take_events();
    }
}

/// Octets of IP and UDP in front of a datagram.
const UDP_OVERHEAD: usize = 28;
const STEPS_MAX: u64 = 200_000_000;

/// An octet of a message.
fn octet(number: u64, offset: u64) -> u8 {
    (number.wrapping_mul(37) + offset * 11 + (offset >> 8)) as u8
}

impl End {
    /// Whether its messages are sent, released and complete at the other end.
    pub(crate) fn is_through(&self, other: &Self) -> bool {
        self.sent == self.plan.count
            && self.connection.is_flushed()
            && other.complete + self.cancelled == self.plan.count
            && other.inbound.is_empty()
    }

    fn wants_to_send(&self) -> bool {
        !self.connection.is_over()
            && match self.program {
                Program::Stream { pending_max } => {
                    self.sent < self.plan.count && self.sent - self.released < pending_max as u64
                }
                Program::PingPong => self.sent < self.answers && self.sent < self.plan.count,
            }
    }

    fn receive(&mut self, now: Nanos, octets: &[u8], network: &mut Network<Vec<u8>>) {
        let (packet, data) = Packet::parse(octets).expect("a packet of ours");
        let is_known = packet.extension.connection == self.connection.settings().ours;
        let closing_reset = self.connection.closing_reset().filter(|_| is_known);
        if (self.connection.is_over() || !is_known)
            && let Some(answer) = self.resets.answer(now, (), &packet, closing_reset)
        {
            network.send(now, 52, self.octets_of(&answer, None));
        }
        match self.connection.handle_datagram(now, &packet) {
            Disposition::Deliver(delivery) => self.deliver(now, delivery, data),
            Disposition::Buffer { slot } => {
                assert!(slot < self.connection.settings().receive_window);
                let before = self.kept.insert(slot, data.to_vec());
                assert!(before.is_none(), "slot {slot} is in use");
            }
            Disposition::Drop => {}
        }
        while let Some((slot, delivery)) = self.connection.poll_buffered(now) {
            let data = self.kept.remove(&slot).expect("it is kept");
            self.deliver(now, delivery, &data);
        }
        self.take_events();
    }

    fn deliver(&mut self, now: Nanos, delivery: Delivery, data: &[u8]) {
        self.octets += data.len() as u64;
        match delivery {
            Delivery::Arrived(arrival) => self.arrived(now, &arrival, data),
            Delivery::Continued { arrival, offset, len, is_last } => {
                assert_eq!(len as usize, data.len());
                let inbound = self.inbound.get_mut(&arrival).expect("it has begun");
                inbound.put(offset, data);
                assert_eq!(is_last, inbound.is_whole());
                if is_last && inbound.is_matched {
                    self.inbound.remove(&arrival);
                    self.completed(now);
                }
            }
        }
    }

    fn arrived(&mut self, now: Nanos, arrival: &Arrival, data: &[u8]) {
        let number = arrival.tag as u32 as u64;
        // Messages that were cancelled before they were sent do not arrive.
        assert!(number >= self.begun, "{number} arrives behind {}", self.begun);
        self.begun = number + 1;
        let mut inbound = Inbound {
            number,
            octets: vec![0; arrival.total as usize],
            come: vec![false; arrival.total as usize],
            is_matched: false,
        };
        assert_eq!(arrival.len as usize, data.len());
        inbound.put(0, data);
        match arrival.id {
            None => {
                assert!(inbound.is_whole() && !arrival.is_synchronous);
                self.completed(now);
            }
            Some(id) => {
                assert!(self.inbound.insert(id, inbound).is_none());
                self.unmatched.push_back(id);
            }
        }
    }

    fn completed(&mut self, now: Nanos) {
        self.complete += 1;
        self.answers += 1;
        self.latest_complete = now;
    }

    /// A receive matches a message.
    fn match_one(&mut self, now: Nanos, id: ArrivalId) {
        self.connection.matched(id).expect("it waits to be matched");
        let inbound = self.inbound.get_mut(&id).expect("it has begun");
        inbound.is_matched = true;
        if inbound.is_whole() {
            self.inbound.remove(&id);
            self.completed(now);
        }
        assert!(self.connection.matched(id).is_err(), "it is matched once");
    }

    fn take_events(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Released { .. } => self.released += 1,
                Event::Matched { .. } => self.matched += 1,
                Event::Cancelled { .. } => self.cancelled += 1,
                Event::NotCancelled { .. } => self.refused += 1,
                Event::Withdraw { arrival } => {
                    let inbound = self.inbound.remove(&arrival).expect("it has begun");
                    assert!(!inbound.is_matched);
                    self.unmatched.retain(|id| *id != arrival);
                    self.withdrawn += 1;
                }
                Event::PeerFinished => self.peer_finished = true,
                Event::Closed => self.closed = true,
                Event::Failed(failure) => self.failure = Some(failure),
            }
            if !matches!(event, Event::Released { .. }) {
                self.events.push(event);
            }
        }
    }

    fn run_program(&mut self, now: Nanos, random: &mut Random) {
        while let Some(id) = self.unmatched.front().copied() {
            if self.dawdles > 0 && random.up_to(self.dawdles - 1) > 0 {
                break;
            }
            self.unmatched.pop_front();
            self.match_one(now, id);
        }
        while self.wants_to_send() {
            let send = (self.plan.message)(self.sent);
            self.connection.send(send).expect("there is room");
            self.sent += 1;
        }
        if self.cancels > 0 && self.sent > 0 && random.up_to(self.cancels - 1) == 0 {
            let token = self.sent - random.up_to(self.sent.min(32) - 1);
            if self.connection.cancel(token) == Cancel::Done {
                self.cancelled += 1;
                self.released += 1;
            }
        }
    }

    /// Packs a part of each message.
    fn pack(&mut self, random: &mut Random) {
        if self.packs > 0 {
            for token in self.connection.pending() {
                *self.packed.entry(token).or_default() += random.up_to(self.packs);
            }
        }
    }

    fn poll_transmit(&mut self, now: Nanos) -> Option<(Packet, Option<Body>)> {
        let packed = |token: u64| self.packed.get(&token).copied().unwrap_or_default();
        let is_there =
            |body: &Body| self.packs == 0 || body.offset + u64::from(body.len) <= packed(body.token);
        let transmit = self.connection.poll_transmit_if(now, is_there)?;
        Some((transmit.packet, transmit.body))
    }

    /// A whole datagram.
    fn octets_of(&self, packet: &Packet, body: Option<Body>) -> Vec<u8> {
        let data: Vec<u8> = match body {
            Some(Body { token, offset, len }) => {
                (offset..offset + u64::from(len)).map(|at| octet(token - 1, at)).collect()
            }
            None => Vec::new(),
        };
        let mut octets = vec![0; packet.head_len() + data.len() + packet.trailer_len()];
        let len = packet.emit(&data, &mut octets).expect("a packet");
        assert!(len == octets.len() && len <= self.longest, "{len}");
        octets
    }
}

impl Inbound {
    fn put(&mut self, offset: u64, data: &[u8]) {
        for (at, found) in (offset..).zip(data) {
            let place = at as usize;
            assert!(!self.come[place], "octet {at} of message {} arrives twice", self.number);
            assert_eq!(*found, octet(self.number, at), "octet {at} of message {}", self.number);
            self.come[place] = true;
            self.octets[place] = *found;
        }
    }

    fn is_whole(&self) -> bool {
        self.come.iter().all(|come| *come)
    }
}

/// Repetitions of a test: `soak` times as many with MPJDEV_SOAK.
pub(crate) fn scaled(count: u64, soak: u64) -> u64 {
    if std::env::var_os("MPJDEV_SOAK").is_some() { count * soak } else { count }
}

/// Runs all seeds; a failure prints its own.
pub(crate) fn for_seeds(seeds: std::ops::Range<u64>, run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in seeds {
        std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|panic| {
            eprintln!("the seed is {seed}");
            std::panic::resume_unwind(panic)
        });
    }
}

/// A mix of standard, synchronous and rendezvous messages.
pub(crate) fn mixed(number: u64) -> Send {
    let plain =
        Send { tag: number as i32, token: number + 1, context: (number % 5) << 33, ..Send::default() };
    match number % 11 {
        0 => Send { len: 0, ..plain },
        1 => Send { len: 20, completion: Completion::Synchronous, ..plain },
        2 => Send { len: 5000, ..plain },
        3 => Send { len: 40_000, ..plain },
        4 => Send { len: 30, completion: Completion::Synchronous, ..plain },
        5 => Send { len: 100, rendezvous: true, ..plain },
        6 => Send { len: 3000, completion: Completion::Synchronous, ..plain },
        7 => Send { len: 0, completion: Completion::Synchronous, ..plain },
        8 => Send { len: 2000, completion: Completion::Synchronous, ..plain },
        9 => Send { len: 5, rendezvous: true, ..plain },
        _ => Send { len: 1100 + number % 100, ..plain },
    }
}

/// Time between two passes of the program.
const SOON: Nanos = 20 * MICROSECOND;

/// The longest run in virtual time.
pub(crate) const END_LIMIT: Nanos = 10_000 * SECOND;
