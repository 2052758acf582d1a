//! The transports that the suite runs over, each with a way to make a job of `n` ranks.
//!
//! A new transport needs a fixture here and a line in [`for_every_fixture`].

use std::sync::Arc;

use mpjdev_bootstrap::job;
use mpjdev_buffer::SlabSource;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config};
use mpjdev_proto::datagram::reliable::rtt::Timing;
use mpjdev_proto::datagram::reliable::settings::Path;
use mpjdev_proto::datagram::reliable::time::MILLISECOND;
use mpjdev_proto::impi::Dialect;
use mpjdev_sim::{Chance, Impairment, Reorder};
use mpjdev_transport::tcp::Terms;
use mpjdev_transport::udp;

use crate::rank_harness::{amount, soaks};

/// A transport with its limits, and a way to make a job over it.
#[derive(Debug)]
pub(crate) struct TransportFixture {
    /// Name in reports.
    pub(crate) name: &'static str,
    /// Limits, which a test may change.
    pub(crate) config: fn() -> Config,
    /// Makes the world communicators of a job, in the order of their ranks.
    pub(crate) connect: fn(usize, Config, &Arc<HeapPool>) -> Vec<Comm>,
    /// Abilities that it lacks, with the reasons. Tests that need them say that they are skipped.
    pub(crate) lacks: &'static [(Ability, &'static str)],
}

/// Ability that some transports lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ability {
    /// A received message is the sender's memory, not a copy.
    SharesMemory,
    /// Megabytes arrive within seconds.
    Bulk,
    /// A poll finds every message that was sent before it.
    Prompt,
    /// A message that has arrived holds no memory of its sender.
    LetsGo,
}

/// Ranks as threads, limits for real work.
pub(crate) static LOCAL: TransportFixture =
    TransportFixture { name: "local", config: Config::default, connect: local, lacks: &[] };

/// Ranks as threads, every limit bites.
pub(crate) static LOCAL_TINY: TransportFixture =
    TransportFixture { name: "local, tiny limits", config: tiny_limits, connect: local, lacks: &[] };

/// Ranks as threads that exchange physical messages.
pub(crate) static PHYSICAL: TransportFixture = TransportFixture {
    name: "local, physical messages",
    config: || Config { message_oriented: true, ..Config::default() },
    connect: local,
    lacks: &[],
};

/// Ranks as threads that exchange physical messages, every limit bites.
pub(crate) static PHYSICAL_TINY: TransportFixture = TransportFixture {
    name: "local, physical messages, tiny limits",
    config: || Config { message_oriented: true, ..tiny_limits() },
    connect: local,
    lacks: &[],
};

fn local(ranks: usize, config: Config, pool: &Arc<HeapPool>) -> Vec<Comm> {
    let source: Arc<dyn SlabSource> = pool.clone();
    job::local(ranks, config, &source)
}

/// Octets of a segment: more than any test needs. Only used pages take memory.
const SEGMENT: usize = 2 << 30;

pub(crate) fn shm(ranks: usize, config: Config, private: &Arc<HeapPool>) -> Vec<Comm> {
    mpjdev_testing::shm(ranks, config, SEGMENT, private)
}

const ELSEWHERE: &[(Ability, &str)] =
    &[(Ability::SharesMemory, "the sender's memory is mapped at another address")];

/// Ranks over shared memory.
pub(crate) static SHM: TransportFixture =
    TransportFixture { name: "shared memory", config: Config::default, connect: shm, lacks: ELSEWHERE };

/// Ranks over shared memory, every limit bites.
pub(crate) static SHM_TINY: TransportFixture = TransportFixture {
    name: "shared memory, tiny limits",
    config: tiny_limits,
    connect: shm,
    lacks: ELSEWHERE,
};

/// Ranks behind TCP connections.
pub(crate) static TCP: TransportFixture = TransportFixture {
    name: "TCP",
    config: Config::default,
    connect: |ranks, config, pool| tcp(ranks, config, Terms::default(), pool),
    lacks: COPIED,
};

/// Ranks behind TCP connections, in the draft's dialect, every limit bites.
pub(crate) static TCP_TINY: TransportFixture = TransportFixture {
    name: "TCP, draft, tiny limits",
    config: tiny_limits,
    connect: |ranks, config, pool| {
        let terms = Terms { dialect: Dialect::Draft, maxdatalen: 16, ackmark: 1, hiwater: 1 };
        tcp(ranks, config, terms, pool)
    },
    lacks: &[COPIED[0], (Ability::Bulk, "every 16 octets wait for the acks of those before")],
};

/// Ranks behind UDP sockets.
pub(crate) static UDP: TransportFixture = TransportFixture {
    name: "UDP",
    config: Config::default,
    connect: |ranks, config, pool| udp(jobs(ranks, udp::Terms::default()), config, pool),
    lacks: &[COPIED[0], KEPT],
};

/// Ranks behind UDP sockets, every limit bites: a datagram has little room past its blocks, and three are in
/// flight at most.
pub(crate) static UDP_TINY: TransportFixture = TransportFixture {
    name: "UDP, tiny limits",
    config: tiny_limits,
    connect: |ranks, config, pool| udp(jobs(ranks, tiny()), config, pool),
    lacks: &[COPIED[0], KEPT, (Ability::Bulk, "every 64 octets wait for the acks of those before")],
};

/// Ranks behind UDP sockets, and a network between them that loses, duplicates and reorders.
pub(crate) static UDP_LOSSY: TransportFixture = TransportFixture {
    name: "UDP, lossy",
    config: Config::default,
    connect: |ranks, config, pool| udp(lossy(ranks), config, pool),
    lacks: &[
        COPIED[0],
        KEPT,
        (Ability::Bulk, "lost packets are retransmitted"),
        (Ability::Prompt, "lost packets arrive after a retransmission"),
    ],
};

const KEPT: (Ability, &str) = (Ability::LetsGo, "the sender keeps its octets until they are acknowledged");

pub(crate) fn tiny() -> udp::Terms {
    let path = Path { window: 3, window_max: 3, ..Path::PRIVATE };
    udp::Terms { datagram_len_max: 112, window_max: 3, sends_max: 2, path, ..udp::Terms::default() }
}

pub(crate) fn lossy(ranks: usize) -> Vec<udp::Job> {
    let impairment = Impairment {
        loss: Chance::percent(2),
        duplication: Chance::percent(2),
        reorder: Some(Reorder { distance: 4, chance: Chance::percent(5) }),
        ..Impairment::NONE
    };
    // A short initial timeout detects losses early.
    let timing = Timing { initial: 20 * MILLISECOND, ..Timing::POLLING };
    let path = Path { timing, ..Path::PRIVATE };
    let mut jobs = jobs(ranks, udp::Terms { path, ..udp::Terms::default() });
    mpjdev_testing::impair(&mut jobs, impairment, 20_261_122);
    jobs
}

pub(crate) fn jobs(ranks: usize, terms: udp::Terms) -> Vec<udp::Job> {
    mpjdev_testing::udp_jobs(ranks, terms).expect("sockets")
}

pub(crate) fn udp(jobs: Vec<udp::Job>, config: Config, pool: &Arc<HeapPool>) -> Vec<Comm> {
    let source: Arc<dyn SlabSource> = pool.clone();
    mpjdev_testing::udp(jobs, config, &source).expect("sockets")
}

const COPIED: &[(Ability, &str)] = &[(Ability::SharesMemory, "messages are copied")];

pub(crate) fn tcp(ranks: usize, config: Config, terms: Terms, pool: &Arc<HeapPool>) -> Vec<Comm> {
    let source: Arc<dyn SlabSource> = pool.clone();
    mpjdev_testing::tcp(ranks, config, terms, &source).expect("connections")
}

/// Sites of two ranks, which share memory; the others are behind TCP connections.
pub(crate) static SITES: TransportFixture = TransportFixture {
    name: "sites",
    config: Config::default,
    connect: |ranks, config, pool| sites(ranks, per_site(ranks, 2), config, Terms::default(), pool),
    lacks: APART,
};

/// Sites of three ranks, every limit bites.
pub(crate) static SITES_TINY: TransportFixture = TransportFixture {
    name: "sites, tiny limits",
    config: tiny_limits,
    connect: |ranks, config, pool| {
        let terms = Terms { maxdatalen: 16, ackmark: 1, hiwater: 1, ..Terms::default() };
        sites(ranks, per_site(ranks, 3), config, terms, pool)
    },
    lacks: &[APART[0], TCP_TINY.lacks[1]],
};

const APART: &[(Ability, &str)] =
    &[(Ability::SharesMemory, "the sender's memory is mapped at another address, or messages are copied")];

/// Limits so small that every queue is full, every credit used up and every tag taken twice.
pub(crate) fn tiny_limits() -> Config {
    Config { queue_cells: 2, inline_max: 16, credit: 1, tag_ub: 32_767, ..Config::default() }
}

/// Ranks of a site, so that several ranks are on several sites.
fn per_site(ranks: usize, most: usize) -> usize {
    most.min(ranks.div_ceil(2))
}

fn sites(ranks: usize, per_site: usize, config: Config, terms: Terms, pool: &Arc<HeapPool>) -> Vec<Comm> {
    mpjdev_testing::sites(ranks, per_site, config, terms, SEGMENT, pool)
        .expect("shared memory and connections")
}

/// Tests that are shorter over fixtures without [`Ability::Bulk`], unless the long tests are asked for.
const SHORTENED: [&str; 7] = [
    "random_traffic_arrives_once_in_order_and_whole",
    "a_message_and_a_finish_right_behind_it_lose_nothing",
    "no_wake_up_is_lost_when_every_wait_sleeps_at_once",
    "a_cancel_that_races_with_the_arrival_loses_no_message",
    "credit_comes_back_when_messages_are_received",
    "more_split_messages_than_there_are_tags_keep_their_halves",
    "split_messages_past_the_pairing_numbers_are_refused_until_some_are_received",
];

impl TransportFixture {
    /// The reason why it lacks an ability, or `None`.
    pub(crate) fn lack(&self, ability: Ability) -> Option<&'static str> {
        self.lacks.iter().find(|(lacking, _)| *lacking == ability).map(|(_, why)| *why)
    }

    /// Whether a test may be as long as is asked for. Otherwise prints that it is skipped, and why.
    pub(crate) fn has_time(&self, test: &str) -> bool {
        let lack = self.lack(Ability::Bulk).filter(|_| soaks() && !SHORTENED.contains(&test));
        if let Some(why) = lack {
            println!("SKIPPED {test} in {}: {why}; the short form is part of the ordinary tests", self.name);
        }
        lack.is_none()
    }

    /// A number that is larger when the long tests are asked for. A fixture without [`Ability::Bulk`] takes
    /// `check` then and a quarter of it otherwise, in the tests of [`SHORTENED`].
    pub(crate) fn amount(&self, check: usize, soak: usize) -> usize {
        match (self.lack(Ability::Bulk).is_some(), soaks()) {
            (false, _) => amount(check, soak),
            (true, true) => check,
            (true, false) => check.div_ceil(4),
        }
    }

    /// Lowers the largest tag, and with it the number of messages that exhaust the pairing numbers, for slow
    /// fixtures. The long tests have the largest tag of MPI.
    pub(crate) fn limit_tags(&self, config: &mut Config) {
        if self.lack(Ability::Bulk).is_some() && !soaks() {
            config.tag_ub = 999;
        }
    }

    /// Octets of a long message, limited for slow fixtures.
    pub(crate) fn octets(&self, wanted: usize) -> usize {
        if self.lack(Ability::Bulk).is_some() { wanted.min(20 << 10) } else { wanted }
    }

    /// Whether the fixture has an ability. Otherwise prints that the test is skipped, and why.
    pub(crate) fn can(&self, ability: Ability, test: &str) -> bool {
        match self.lack(ability) {
            Some(why) => {
                println!("SKIPPED {test} in {}: {why}", self.name);
                false
            }
            None => true,
        }
    }
}

/// Makes one test of each function for every fixture.
macro_rules! for_every_fixture {
    ($($test:ident),+ $(,)?) => {
        for_every_fixture! { @ local LOCAL $($test)+ }
        for_every_fixture! { @ local_tiny LOCAL_TINY $($test)+ }
        for_every_fixture! { @ physical PHYSICAL $($test)+ }
        for_every_fixture! { @ physical_tiny PHYSICAL_TINY $($test)+ }
        for_every_fixture! { @ shm SHM $($test)+ }
        for_every_fixture! { @ shm_tiny SHM_TINY $($test)+ }
        for_every_fixture! { @ tcp TCP $($test)+ }
        for_every_fixture! { @ tcp_tiny TCP_TINY $($test)+ }
        for_every_fixture! { @ sites SITES $($test)+ }
        for_every_fixture! { @ sites_tiny SITES_TINY $($test)+ }
        for_every_fixture! { @ udp UDP $($test)+ }
        for_every_fixture! { @ udp_tiny UDP_TINY $($test)+ }
        for_every_fixture! { @ udp_lossy UDP_LOSSY $($test)+ }

        /// For fixtures that run all of them at once.
        pub(super) const TESTS: &[(&str, fn(&$crate::transport_fixtures::TransportFixture))] =
            &[$((stringify!($test), $test)),+];
    };
    (@ $module:ident $fixture:ident $($test:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    if $crate::transport_fixtures::$fixture.has_time(stringify!($test)) {
                        super::$test(&$crate::transport_fixtures::$fixture);
                    }
                }
            )+
        }
    };
}
pub(crate) use for_every_fixture;
