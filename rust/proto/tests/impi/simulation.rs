//! Many runs of hosts that exchange messages: each message arrives once, in order, intact, and all complete.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::pair::{Arrival, Event, Settings};

use crate::world::{Inbound, MESSAGES, Message, Reading, World, content};

/// Steps in which the driver also cancels, holds and loses.
const WILD_STEPS: usize = 4_000;
/// Steps after which an unfinished run counts as stalled.
const STEPS_MAX: usize = 400_000;

impl World {
    /// Moves some octets from the wire to the host `other`.
    pub(crate) fn deliver(&mut self, host: usize, other: usize) {
        let count = 1 + self.random.below(300);
        let Some(wire) = self.wires.get_mut(&(host, other)) else { return };
        let octets: Vec<u8> = wire.octets.drain(..count.min(wire.octets.len())).collect();
        self.link(other, host).input.extend(octets);
        while self.read(other, host) {}
    }

    pub(crate) fn deliver_all(&mut self, host: usize, other: usize) {
        while self.wires.get(&(host, other)).is_some_and(|wire| !wire.octets.is_empty()) {
            self.deliver(host, other);
        }
    }

    /// Reads a header or some data; false if more octets are needed.
    fn read(&mut self, host: usize, from: usize) -> bool {
        let dialect = self.dialect;
        let link = self.link(host, from);
        let (Reading::First { missing, .. } | Reading::Rest { missing, .. } | Reading::Nowhere { missing }) =
            &mut link.reading
        else {
            if link.input.len() < HEADER_LEN {
                return false;
            }
            let header: Vec<u8> = link.input.drain(..HEADER_LEN).collect();
            let header = header.try_into().expect("128 octets");
            let packet = Packet::parse(&header, dialect).expect("a packet");
            self.handle(host, from, &packet);
            return true;
        };
        let count = link.input.len().min(*missing);
        let octets: Vec<u8> = link.input.drain(..count).collect();
        *missing -= count;
        let is_complete = *missing == 0;
        match &mut link.reading {
            Reading::First { inbound, .. } => inbound.octets.extend(octets),
            Reading::Rest { id, .. } => link.long.get_mut(id).expect("matched").octets.extend(octets),
            Reading::Header | Reading::Nowhere { .. } => {}
        }
        if is_complete {
            match std::mem::replace(&mut link.reading, Reading::Header) {
                Reading::First { inbound, .. } => self.arrived(host, inbound),
                Reading::Rest { id, last: true, .. } => {
                    let inbound = link.long.remove(&id).expect("matched");
                    self.completed(inbound);
                }
                _ => {}
            }
        }
        is_complete
    }

    fn handle(&mut self, host: usize, from: usize, packet: &Packet) {
        let link = self.link(host, from);
        link.ending.handle_packet(packet.kind).expect("nothing follows a Fini");
        if matches!(packet.kind, PacketType::CancelYes | PacketType::CancelNo) {
            return self.cancel_answered(host, from, packet);
        }
        let event = link.pair.handle_packet(packet).expect("an honest peer");
        let missing = packet.data_len() as usize;
        self.link(host, from).reading = match event {
            Event::Arrived(arrival) => {
                let message = self.begins(host, from, &arrival);
                let inbound = Inbound { message, id: arrival.id, octets: Vec::new() };
                Reading::First { inbound, missing }
            }
            Event::Continued { arrival, offset, len, last } => {
                let inbound = &self.link(host, from).long[&arrival];
                assert_eq!((inbound.octets.len() as u64, missing), (offset, len as usize));
                Reading::Rest { id: arrival, missing, last }
            }
            Event::Nothing => Reading::Nowhere { missing },
            other => {
                assert_eq!(missing, 0);
                self.answered(host, from, other);
                Reading::Header
            }
        };
    }

    /// The number of a message that begins; checks the event against the send.
    fn begins(&mut self, host: usize, from: usize, arrival: &Arrival) -> usize {
        let wire = self.wires.get_mut(&(from, host)).expect("it was sent from there");
        let number = wire.begins.pop_front().expect("a message begins");
        let send = *self.messages[number].send();
        let lsrank = if self.dialect == Dialect::Draft { 0 } else { send.lsrank };
        let Arrival { cid, tag, msglen, .. } = *arrival;
        assert_eq!((cid, arrival.lsrank, tag, msglen), (send.cid, lsrank, send.tag, send.msglen));
        number
    }

    /// A first packet is complete: now its message can be matched.
    fn arrived(&mut self, host: usize, inbound: Inbound) {
        let envelope = self.messages[inbound.message].envelope();
        let matcher = &mut self.hosts[host].matcher;
        match matcher.match_arrival(&envelope) {
            Some(_) => self.matched(host, inbound),
            None => matcher.add_unexpected(envelope, inbound),
        }
    }

    fn completed(&mut self, inbound: Inbound) {
        let message = &mut self.messages[inbound.message];
        assert!(!message.received && inbound.octets.len() as u64 == message.send().msglen, "{message:?}");
        message.received = true;
        for (at, octet) in inbound.octets.iter().enumerate() {
            assert_eq!(*octet, content(inbound.message, at), "octet {at} of message {}", inbound.message);
        }
    }

    /// Checks an answer of the peer against its state.
    fn answered(&mut self, host: usize, from: usize, event: Event) {
        let number = |world: &World, token: u64| {
            *world.hosts[host].tokens.get(&token).unwrap_or_else(|| panic!("{event:?}: not in use"))
        };
        match event {
            Event::Matched { token } => {
                let number = number(self, token);
                let message = &mut self.messages[number];
                assert!(message.matched && !message.acked && !message.withdrawn, "{message:?}");
                message.acked = true;
                self.release(number);
            }
            Event::Withdraw { arrival } => {
                let messages = &self.messages;
                let is_it =
                    |inbound: &Inbound| inbound.id == Some(arrival) && messages[inbound.message].from == from;
                let gone = self.hosts[host].matcher.remove_unexpected(|_, inbound| is_it(inbound));
                assert_eq!(gone.len(), 1, "{event:?}");
                let message = &mut self.messages[gone[0].1.message];
                assert!(message.asked && !message.matched && !message.withdrawn, "{message:?}");
                message.withdrawn = true;
            }
            Event::Fini => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Counts of the events of a run, for a test to see that each event occurs.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    received: usize,
    cancelled: usize,
    cancelled_long: usize,
    refused: usize,
    discarded: usize,
    lost: usize,
}

fn run(seed: u64, loses: bool) -> Counts {
    let mut world = World::new(seed);
    for step in 0..STEPS_MAX {
        if step == WILD_STEPS {
            for host in 0..world.hosts.len() {
                for link in world.hosts[host].links.values_mut() {
                    link.pair.hold_acks(false);
                }
            }
        }
        world.step(step < WILD_STEPS, loses && step < WILD_STEPS);
        if step > WILD_STEPS && world.is_over() {
            break;
        }
    }
    let standing: Vec<&Message> =
        world.messages.iter().filter(|m| !(m.received || m.cancelled || m.lost)).collect();
    assert!(world.is_over(), "these make no progress: {standing:#?}");
    world.end();
    let maxdatalen = world.settings().maxdatalen;
    let cancelled_long = world.messages.iter().filter(|m| m.cancelled && m.is_long(maxdatalen)).count();
    let count = |picks: fn(&Message) -> bool| world.messages.iter().filter(|m| picks(m)).count();
    Counts {
        received: count(|m| m.received),
        cancelled: count(|m| m.cancelled),
        cancelled_long,
        refused: count(|m| m.answered && !m.cancelled),
        discarded: count(|m| m.discarded),
        lost: count(|m| m.lost),
    }
}

/// Runs of a test, each with a seed of its own.
fn runs() -> u64 {
    if std::env::var_os("MPJDEV_SOAK").is_some() { 20_000 } else { 150 }
}

/// Runs all seeds; a failure prints its own.
fn run_all(seeds: std::ops::Range<u64>, loses: bool) -> Counts {
    let mut sum = Counts::default();
    for seed in seeds {
        let counts = std::panic::catch_unwind(|| run(seed, loses)).unwrap_or_else(|panic| {
            eprintln!("the seed is {seed}");
            std::panic::resume_unwind(panic)
        });
        sum.received += counts.received;
        sum.cancelled += counts.cancelled;
        sum.cancelled_long += counts.cancelled_long;
        sum.refused += counts.refused;
        sum.discarded += counts.discarded;
        sum.lost += counts.lost;
    }
    sum
}

/// Proves, over random delays, marks, lengths and cancels, that each message is received once, intact, in
/// order, and only if it was not cancelled; that synchronous sends complete after their match; and that all
/// complete and all channels close.
#[test]
fn each_message_is_received_once_and_all_complete() {
    let counts = run_all(0..runs(), false);
    let Counts { received, cancelled, cancelled_long, refused, discarded, lost } = counts;
    assert_eq!((received + cancelled, lost), (runs() as usize * MESSAGES, 0), "{counts:?}");
    assert!(cancelled > 100 && cancelled_long > 100 && refused > 100 && discarded > 100, "{counts:?}");
}

/// Proves that both ends of a lost channel report all that was pending on it, and that the other channels
/// continue.
#[test]
fn lost_channel_is_reported_at_both_ends_and_the_others_continue() {
    let counts = run_all(1_000_000..1_000_000 + runs(), true);
    assert!(counts.lost > 100 && counts.received > 1000, "{counts:?}");
}

/// Proves that the runs include both dialects, marks of 1 and 1, and packets of one octet.
#[test]
fn simulated_runs_include_the_extremes() {
    let settings: Vec<Settings> = (0..150).map(|seed| World::new(seed).settings()).collect();
    for dialect in [Dialect::Draft, Dialect::Final] {
        let of_it = settings.iter().filter(|s| s.dialect == dialect);
        assert!(of_it.clone().any(|s| (s.ackmark, s.hiwater) == (1, 1)));
        assert!(of_it.clone().any(|s| s.maxdatalen == 1));
    }
}
