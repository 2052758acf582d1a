//! Random traffic, checked against what must come of it: each message once, in order, whole.
//!
//! A plan is drawn from a seed before the job runs. Each rank sends its messages and posts its receives in a
//! random order, in random modes and forms. A receive never asks for more than the plan has for it, so that
//! every run ends.

use std::collections::VecDeque;

use mpjdev_engine::{Mode, RecvFrom, RequestId};

use crate::rank_harness::{RankHarness, from, run, soaks};
use crate::test_message::TestMessage;
use crate::transport_fixtures::{TransportFixture, for_every_fixture};

for_every_fixture![random_traffic_arrives_once_in_order_and_whole];

/// Runs this seed only: `MPJDEV_SEED=17 cargo test ... random_traffic`.
const SEED_VARIABLE: &str = "MPJDEV_SEED";
/// Receives that a rank has posted at most.
const OUTSTANDING: usize = 12;
/// More than any message needs.
const CAPACITY: usize = 200_000;

/// A small generator of its own (splitmix64), so that the sequence of a seed never changes.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A message of the plan.
#[derive(Clone, Copy, Debug)]
struct Planned {
    dest: u32,
    tag: i32,
    test_message: TestMessage,
    mode: Mode,
}

fn plan(random: &mut Random, ranks: usize, count: usize) -> Vec<Vec<Planned>> {
    let mut test_message = |seed| {
        let sizes = [0, 8, 16, 64, 1000, 1008, 1016, 5000, 70_000];
        let many = if random.chance(20) { sizes.len() } else { 6 };
        let primary = sizes[random.below(many)];
        let most = if random.chance(10) { 50_000 } else { 500 };
        let secondary = 1 + random.below(most);
        let form = match random.below(4) {
            0 => TestMessage::appended(seed, primary, secondary),
            1 => TestMessage::split(seed, primary, secondary),
            _ => TestMessage::plain(seed, primary),
        };
        let mode = if random.chance(30) { Mode::Synchronous } else { Mode::Standard };
        Planned { dest: random.below(ranks) as u32, tag: random.below(4) as i32, test_message: form, mode }
    };
    (0..ranks).map(|rank| (0..count).map(|i| test_message((rank << 32 | i) as u64)).collect()).collect()
}

/// Messages that one rank still has to receive, by source, in order.
#[derive(Debug)]
struct Expected(Vec<VecDeque<Planned>>);

impl Expected {
    fn of(plan: &[Vec<Planned>], rank: u32) -> Self {
        Expected(plan.iter().map(|all| all.iter().copied().filter(|m| m.dest == rank).collect()).collect())
    }

    fn len(&self) -> usize {
        self.0.iter().map(VecDeque::len).sum()
    }

    /// Takes what a receive from this source, that asked for this tag, must have got.
    fn take(&mut self, source: u32, tag: Option<i32>) -> Planned {
        let messages = &mut self.0[source as usize];
        let at =
            messages.iter().position(|m| tag.is_none_or(|t| t == m.tag)).expect("such a message was planned");
        messages.remove(at).expect("just found")
    }
}

/// One rank's part.
struct Player<'a> {
    harness: &'a RankHarness,
    random: Random,
    sends: VecDeque<Planned>,
    pending: Vec<RequestId>,
    expected: Expected,
    /// Receives in the order they were posted in.
    posted: VecDeque<(RequestId, RecvFrom)>,
}

impl Player<'_> {
    fn play(mut self) {
        while !self.sends.is_empty() || self.expected.len() > 0 || !self.pending.is_empty() {
            match self.random.below(10) {
                0..4 => self.send(),
                4..6 => self.receive_unknown(),
                6..9 => self.post(),
                _ => self.settle_sends(),
            }
            if self.sends.is_empty() || self.posted.len() > OUTSTANDING {
                self.collect();
            }
        }
    }

    fn send(&mut self) {
        if let Some(Planned { dest, tag, test_message, mode }) = self.sends.pop_front() {
            self.pending.extend(self.harness.isend(mode, &test_message, dest, tag));
        }
    }

    fn settle_sends(&mut self) {
        self.pending.retain(|id| self.harness.comm.test(*id).expect("test").is_none());
    }

    /// Posts receives of one kind and collects them before it posts others: then a receive's turn decides
    /// which message it gets, and the order can be checked exactly.
    fn post(&mut self) {
        if !self.posted.is_empty() {
            return self.collect();
        }
        if self.expected.len() == 0 {
            return;
        }
        let sources = self.expected.0.len();
        let Some(source) = (0..sources).find(|s| !self.expected.0[*s].is_empty()) else { return };
        let source = (0..sources)
            .map(|_| self.random.below(sources))
            .find(|s| !self.expected.0[*s].is_empty())
            .unwrap_or(source);
        let messages = &self.expected.0[source];
        let tag = messages[self.random.below(messages.len())].tag;
        let asked = match self.random.below(4) {
            0 => from(None, None),
            1 => from(source as u32, None),
            2 => from(None, tag),
            _ => from(source as u32, tag),
        };
        let fits =
            self.expected.0.iter().enumerate().flat_map(|(s, all)| all.iter().map(move |m| (s, m.tag)));
        let fits = fits.filter(|(s, t)| {
            asked.source.is_none_or(|a| a == *s as i32) && asked.tag.is_none_or(|a| a == *t)
        });
        let most = fits.count().min(1 + self.random.below(OUTSTANDING));
        for _ in 0..most {
            self.posted.push_back((self.harness.post(asked, CAPACITY), asked));
        }
    }

    /// Waits for all posted receives, in the order they were posted in.
    fn collect(&mut self) {
        // Everything that others may wait for goes out first, else two ranks could wait for each other's
        // messages.
        while !self.sends.is_empty() {
            self.send();
        }
        while let Some((id, asked)) = self.posted.pop_front() {
            let done = self.harness.wait(id);
            let status = done.status.expect("a status");
            let planned = self.expected.take(status.source, asked.tag);
            assert_eq!((status.tag, status.size), (planned.tag, planned.test_message.needs()));
            planned.test_message.check(&done.message.expect("a message"));
        }
    }

    /// Probes, and receives the message that is there with the capacity that it needs.
    fn receive_unknown(&mut self) {
        if !self.posted.is_empty() {
            return;
        }
        let asked = if self.random.chance(50) { from(None, None) } else { from(None, 1) };
        let Some(status) = self.harness.comm.iprobe(asked).expect("iprobe") else { return };
        let planned = self.expected.take(status.source, asked.tag);
        assert_eq!((status.tag, status.size), (planned.tag, planned.test_message.needs()));
        self.harness.expect(from(status.source, status.tag), &planned.test_message);
    }
}

fn run_seed(fixture: &TransportFixture, seed: u64) {
    let mut random = Random(seed);
    let ranks = 3 + random.below(3);
    let plan = plan(&mut random, ranks, if soaks() { 400 } else { 60 });
    run(fixture, ranks, |harness| {
        let rank = harness.rank();
        Player {
            harness,
            random: Random(seed ^ u64::from(rank + 1) << 48),
            sends: plan[rank as usize].iter().copied().collect(),
            pending: Vec::new(),
            expected: Expected::of(&plan, rank),
            posted: VecDeque::new(),
        }
        .play();
    });
}

fn random_traffic_arrives_once_in_order_and_whole(fixture: &TransportFixture) {
    let given = std::env::var(SEED_VARIABLE).ok().map(|seed| seed.parse().expect("a number"));
    let seeds = given.map_or(1..1 + fixture.amount(12, 400) as u64, |seed| seed..seed + 1);
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run_seed(fixture, seed));
        if let Err(panic) = outcome {
            eprintln!("random traffic in {} failed with {SEED_VARIABLE}={seed}", fixture.name);
            std::panic::resume_unwind(panic);
        }
    }
}
