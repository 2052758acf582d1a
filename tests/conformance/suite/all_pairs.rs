//! Exchange of every rank of a job with every other one at once.
//!
//! Sizes and forms change from message to message.

use mpjdev_engine::collective::Outcome;
use mpjdev_engine::{Mode, Uninterruptible};

use crate::rank_harness::{ANY, RankHarness, amount, from, run};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{Ability, TransportFixture, for_every_fixture};

for_every_fixture![
    eight_ranks_exchange_with_all_others_at_once_under_threads_and_wildcards,
    eight_ranks_send_large_messages_to_all_others_before_any_receive,
];

const RANKS: u32 = 8;
/// Octets of primary payload in turn: 0, within a queue entry and past it, at the eager limit of TCP, and
/// past a packet.
const SIZES: [usize; 8] = [0, 8, 1024, 4064, 5000, (256 << 10) - 16, 256 << 10, 300_000];
/// The same for packets of 16 octets.
const SMALL_SIZES: [usize; 8] = [0, 8, 16, 24, 40, 104, 200, 600];

/// Message number `i` of a thread to another rank. A third of the messages are split, and a third have an
/// appended secondary payload.
fn test_message(
    fixture: &TransportFixture,
    thread: usize,
    (source, dest): (u32, u32),
    i: usize,
) -> TestMessage {
    let sizes = if fixture.lack(Ability::Bulk).is_some() { SMALL_SIZES } else { SIZES };
    let seed = (thread as u64) << 48 | u64::from(source) << 40 | u64::from(dest) << 32 | i as u64;
    let at = thread + i + (source * 3 + dest) as usize;
    let (primary, other) = (sizes[at % sizes.len()], sizes[at * 5 % 6]);
    match at / 3 % 3 {
        1 => TestMessage::split(seed, primary, other + 1),
        2 => TestMessage::appended(seed, primary, other),
        _ => TestMessage::plain(seed, primary),
    }
}

fn mode(i: usize) -> Mode {
    if i % 3 == 1 { Mode::Synchronous } else { Mode::Standard }
}

/// Capacity for each message.
const ROOM: usize = 700_000;

/// Four threads of each rank: one posts all receives before it sends, one receives its tag from any source,
/// one probes first, and one receives any message of a communicator of its own.
fn eight_ranks_exchange_with_all_others_at_once_under_threads_and_wildcards(fixture: &TransportFixture) {
    // All messages of the longer run fit into the memory of the job twice: at their senders and at their
    // receivers.
    let count = amount(8, 80);
    run(fixture, RANKS as usize, |harness| {
        let Ok(Outcome::Created(Some(own))) = harness.comm.start_dup().finish(&mut Uninterruptible) else {
            panic!("dup")
        };
        let own = harness.on(own);
        harness.threads(4, |thread| match thread {
            3 => Exchange { fixture, harness: &own, thread, count }.play(),
            _ => Exchange { fixture, harness, thread, count }.play(),
        });
    });
}

/// Exchange of one thread of a rank.
struct Exchange<'a> {
    fixture: &'a TransportFixture,
    harness: &'a RankHarness,
    thread: usize,
    count: usize,
}

impl Exchange<'_> {
    fn others(&self) -> impl Iterator<Item = u32> {
        let own = self.harness.rank();
        // Each rank begins with a different one.
        (1..RANKS).map(move |k| (own + k) % RANKS)
    }

    fn sent_by(&self, source: u32, i: usize) -> TestMessage {
        test_message(self.fixture, self.thread, (source, self.harness.rank()), i)
    }

    fn tag(&self, i: usize) -> i32 {
        if self.thread == 3 { (i % 4) as i32 } else { self.thread as i32 }
    }

    fn play(&self) {
        let posted = match self.thread {
            0 => (0..self.count).flat_map(|i| self.others().map(move |peer| (i, peer))).collect(),
            _ => Vec::new(),
        };
        let posted: Vec<_> = posted
            .into_iter()
            .map(|(i, peer)| {
                let test_message = self.sent_by(peer, i);
                (self.harness.post(from(peer, self.tag(i)), test_message.needs()), test_message)
            })
            .collect();
        let mut sends = Vec::new();
        for i in 0..self.count {
            for peer in self.others() {
                let test_message = test_message(self.fixture, self.thread, (self.harness.rank(), peer), i);
                sends.push(self.harness.isend(mode(i), &test_message, peer, self.tag(i)));
            }
        }
        if posted.is_empty() {
            self.receive_unposted();
        }
        for (id, test_message) in posted {
            self.harness.wait_message(id, &test_message);
        }
        self.harness.wait_all(sends);
    }

    /// Receives all messages, in any order of senders. Those of one sender keep their order.
    fn receive_unposted(&self) {
        let mut next = [0; RANKS as usize];
        for _ in 0..self.count * (RANKS as usize - 1) {
            let any = if self.thread == 3 { ANY } else { from(None, self.tag(0)) };
            let any = match self.thread {
                2 => from(self.harness.probe(any).source, any.tag),
                _ => any,
            };
            let (status, message) = self.harness.recv(any, ROOM);
            let i = &mut next[status.source as usize];
            assert_eq!(status.tag, self.tag(*i), "message {i} of rank {}", status.source);
            self.sent_by(status.source, *i).check(&message);
            *i += 1;
        }
    }
}

/// No rank receives until all have started to send to all. Messages past the credit wait at their sender.
fn eight_ranks_send_large_messages_to_all_others_before_any_receive(fixture: &TransportFixture) {
    let octets = if fixture.lack(Ability::Bulk).is_some() { 600 } else { 1 << 20 };
    run(fixture, RANKS as usize, |harness| {
        let own = harness.rank();
        let test_message =
            |source: u32, dest: u32| TestMessage::split(u64::from(source * RANKS + dest), octets, octets);
        let others = || (1..RANKS).map(|k| (own + k) % RANKS);
        let sends: Vec<_> =
            others().map(|peer| harness.isend(Mode::Standard, &test_message(own, peer), peer, 1)).collect();
        harness.post_note(&format!("rank {own} sends"));
        (0..RANKS).for_each(|rank| harness.wait_for_note(&format!("rank {rank} sends")));
        for _ in others() {
            let source = harness.probe(from(None, 1)).source;
            harness.expect(from(source, 1), &test_message(source, own));
        }
        harness.wait_all(sends);
    });
}
