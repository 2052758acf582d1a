//! Two ends of the protocol of 1997 with their networks, programs and drivers. All random choices come from
//! one seed.

use std::collections::BTreeMap;

use mpjdev_proto::datagram::header::{Header, Mode, Numbers};
use mpjdev_sim::{Impairment, Network, Random};
use mpjdev_unet::{Event, Outcome, Settings, Transmit, UnetConnection};

/// The limit of a finish.
pub(crate) const FINISH_NS: u64 = 5_000_000_000;
/// Most octets of a packet here.
const PACKET_MAX: usize = 64;

/// When an end sends its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
    /// At most this number of nanoseconds after the message before.
    Within(u64),
    /// When it has received as many as it has sent.
    First,
    /// When it has received more than it has sent.
    Second,
}

/// The behaviour of an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The number of messages that it sends.
    pub(crate) messages: u64,
    pub(crate) sends: Sends,
    /// The longest time that it computes without polling.
    pub(crate) computes_ns: u64,
}

pub(crate) struct End {
    pub(crate) machine: UnetConnection<u64>,
    pub(crate) program: Program,
    /// Messages that may be retransmitted, by token.
    kept: BTreeMap<u64, Vec<u8>>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) resent: u64,
    pub(crate) pure_acks: u64,
    next_send_ns: u64,
    busy_until_ns: u64,
    finishes: bool,
    /// Whether the end has exited and answers no packet.
    pub(crate) outcome: Option<Outcome>,
}

pub(crate) struct World {
    pub(crate) now_ns: u64,
    random: Random,
    pub(crate) ends: [End; 2],
    /// By the end that sends.
    pub(crate) wires: [Network<Vec<u8>>; 2],
}

/// The user data of a message.
fn content(end: usize, number: u64) -> Vec<u8> {
    (0..number * 7 % 41).map(|at| (number * 37 + at * 11 + end as u64) as u8).collect()
}

fn header(end: usize, number: u64, numbers: Numbers, len: usize) -> Header {
    let context_id = (number % 65_536) as u16;
    Header {
        numbers,
        mode: Mode::Short,
        context_id,
        lrank: end as u16,
        tag: -(number as i32),
        len: len as u32,
    }
}

impl World {
    pub(crate) fn new(
        seed: u64,
        settings: Settings,
        programs: [Program; 2],
        impairments: [Impairment; 2],
    ) -> Self {
        let mut random = Random::new(seed);
        let wires = impairments.map(|impairment| Network::new(impairment, random.bits()));
        let ends = programs.map(|program| End {
            machine: UnetConnection::new(settings).expect("good settings"),
            program,
            kept: BTreeMap::new(),
            sent: 0,
            received: 0,
            resent: 0,
            pure_acks: 0,
            next_send_ns: 0,
            busy_until_ns: 0,
            finishes: false,
            outcome: None,
        });
        Self { now_ns: 0, random, ends, wires }
    }

    /// Runs until both have received everything; panics after `steps_max` steps.
    pub(crate) fn run(&mut self, steps_max: usize) {
        self.run_until(steps_max, |world| (0..2).all(|end| world.has_all(end)));
    }

    /// Runs until the condition holds.
    pub(crate) fn run_until(&mut self, steps_max: usize, is_over: impl Fn(&Self) -> bool) {
        for _ in 0..steps_max {
            if is_over(self) {
                return;
            }
            assert!(self.step(), "nothing will ever happen again: {self:?}");
        }
        panic!("not over after {steps_max} steps: {self:?}");
    }

    /// Finishes both ends, as programs do after a barrier, and runs until both are complete.
    pub(crate) fn finish(&mut self) -> [Outcome; 2] {
        for end in &mut self.ends {
            end.finishes = true;
        }
        for end in 0..2 {
            self.ends[end].machine.finish(self.now_ns, self.now_ns + FINISH_NS);
            self.transmit(end);
        }
        self.run_until(1_000_000, |world| world.ends.iter().all(|end| end.outcome.is_some()));
        self.ends.each_ref().map(|end| end.outcome.expect("it is over"))
    }

    /// Whether this end has received all messages.
    pub(crate) fn has_all(&self, end: usize) -> bool {
        self.ends[end].received == self.ends[1 - end].program.messages
    }

    /// Runs the end with the earliest event; false if there is none.
    fn step(&mut self) -> bool {
        let times = [0, 1].map(|end| self.next_ns(end));
        let end = usize::from(times[1] < times[0]);
        if times[end] == u64::MAX {
            return false;
        }
        self.now_ns = self.now_ns.max(times[end]);
        self.act(end);
        true
    }

    /// The time of the end's next event.
    fn next_ns(&self, end: usize) -> u64 {
        let here = &self.ends[end];
        if here.outcome.is_some() {
            return u64::MAX;
        }
        let arrival = self.wires[1 - end].next_time_ns();
        let send = here.wants_to_send().then_some(here.next_send_ns);
        let times = [arrival, send, here.machine.next_timeout_ns()];
        // A finish that completes at once has no event.
        let now = here.machine.outcome().map(|_| self.now_ns);
        let next = times.into_iter().flatten().chain(now).min();
        next.map_or(u64::MAX, |time_ns| time_ns.max(here.busy_until_ns))
    }

    /// Polls once, as a call of 1997 did.
    fn act(&mut self, end: usize) {
        let now_ns = self.now_ns;
        while let Some(packet) = self.wires[1 - end].poll_deliver(now_ns) {
            self.receive(end, &packet);
        }
        self.ends[end].machine.handle_timeout(now_ns);
        self.transmit(end);
        let here = &mut self.ends[end];
        if here.wants_to_send() && here.next_send_ns <= now_ns {
            self.send(end);
        }
        let here = &mut self.ends[end];
        here.machine.check_invariants();
        here.outcome = here.machine.outcome();
        if here.program.computes_ns > 0 && !here.finishes && self.random.up_to(99) == 0 {
            here.busy_until_ns = now_ns + self.random.up_to(here.program.computes_ns);
        }
    }

    fn send(&mut self, end: usize) {
        let here = &mut self.ends[end];
        let number = here.sent;
        let numbers = here.machine.send(self.now_ns, number).expect("room");
        let data = content(end, number);
        here.sent += 1;
        if let Sends::Within(ns) = here.program.sends {
            here.next_send_ns = self.now_ns + self.random.up_to(ns);
        }
        self.write(end, &header(end, number, numbers, data.len()), &data);
        self.ends[end].kept.insert(number, data);
    }

    /// Sends the queued packets and drops the released messages.
    fn transmit(&mut self, end: usize) {
        while let Some(transmit) = self.ends[end].machine.poll_transmit() {
            match transmit {
                Transmit::Again { token, numbers } => {
                    self.ends[end].resent += 1;
                    let data = self.ends[end].kept[&token].clone();
                    self.write(end, &header(end, token, numbers, data.len()), &data);
                }
                Transmit::Ack { numbers } => {
                    self.ends[end].pure_acks += 1;
                    self.write(end, &Header { numbers, ..Header::default() }, &[]);
                }
            }
        }
        while let Some(token) = self.ends[end].machine.poll_released() {
            let received = self.ends[1 - end].received;
            assert!(token < received, "message {token} is acknowledged, but only {received} have arrived");
            let kept = self.ends[end].kept.pop_first().map(|(token, _)| token);
            assert_eq!(kept, Some(token), "given back in the order of the sends");
        }
    }

    fn write(&mut self, end: usize, header: &Header, data: &[u8]) {
        let mut octets = [0; PACKET_MAX];
        let len = mpjdev_unet::emit(header, data, &mut octets).expect("a packet");
        self.wires[end].send(self.now_ns, len, octets[..len].to_vec());
    }

    /// A packet was received: its message must be the next one, and intact.
    fn receive(&mut self, end: usize, packet: &[u8]) {
        let (found, data) = mpjdev_unet::parse(packet).expect("a packet");
        let here = &mut self.ends[end];
        let event = here.machine.handle_packet(self.now_ns, found.numbers).expect("an honest peer");
        if event == Event::Deliver {
            let number = here.received;
            let numbers = found.numbers;
            assert_eq!(
                (found, data),
                (header(1 - end, number, numbers, data.len()), &content(1 - end, number)[..])
            );
            here.received += 1;
        }
        self.transmit(end);
    }
}

impl End {
    fn wants_to_send(&self) -> bool {
        let is_time = match self.program.sends {
            Sends::Within(_) => true,
            Sends::First => self.received == self.sent,
            Sends::Second => self.received > self.sent,
        };
        self.sent < self.program.messages && is_time && self.machine.can_send()
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {} ns", self.now_ns)?;
        for (end, wire) in self.ends.iter().zip(&self.wires) {
            let End { sent, received, resent, pure_acks, .. } = end;
            write!(
                f,
                "\n  {sent} sent, {received} received, {resent} resent, {pure_acks} pure acks, {wire:?}"
            )?;
        }
        Ok(())
    }
}
