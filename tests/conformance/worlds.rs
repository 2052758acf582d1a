//! The worlds that the suite runs in: ways to make a job of `n` ranks. A transport joins by one more of them here and one
//! more line in [`in_every_world`].

use std::sync::Arc;

use mpjdev_buffer::SlabSource;
use mpjdev_device::pool::HeapPool;
use mpjdev_device::{Comm, Config, job};

/// A way to make a job.
#[derive(Debug)]
pub(crate) struct World {
    /// How reports call it.
    pub(crate) name: &'static str,
    /// Its limits, before a test changes some.
    pub(crate) config: fn() -> Config,
    /// Makes the world communicators of a job, in the order of their ranks.
    pub(crate) connect: fn(usize, Config, &Arc<HeapPool>) -> Vec<Comm>,
    /// What it cannot do, and why: tests that need it are skipped aloud.
    pub(crate) lacks: &'static [(Ability, &'static str)],
}

/// What not every transport can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ability {
    /// A received message is the sender's memory, not a copy of it.
    SharesMemory,
}

/// Ranks as threads, limits for real work.
pub(crate) static LOCAL: World = World { name: "local", config: Config::default, connect: local, lacks: &[] };

/// Ranks as threads, every limit bites.
pub(crate) static LOCAL_TINY: World =
    World { name: "local, tiny limits", config: Config::tiny, connect: local, lacks: &[] };

/// Ranks as threads that exchange physical messages.
pub(crate) static PHYSICAL: World = World {
    name: "local, physical messages",
    config: || Config { message_oriented: true, ..Config::default() },
    connect: local,
    lacks: &[],
};

/// Ranks as threads that exchange physical messages, every limit bites.
pub(crate) static PHYSICAL_TINY: World = World {
    name: "local, physical messages, tiny limits",
    config: || Config { message_oriented: true, ..Config::tiny() },
    connect: local,
    lacks: &[],
};

fn local(ranks: usize, config: Config, pool: &Arc<HeapPool>) -> Vec<Comm> {
    let source: Arc<dyn SlabSource> = pool.clone();
    job::local(ranks, config, &source)
}

/// Octets of a segment: more than any test needs, and taken only as far as it is used.
const SEGMENT: usize = 2 << 30;

pub(crate) fn shm(ranks: usize, config: Config, private: &Arc<HeapPool>) -> Vec<Comm> {
    job::shm(ranks, config, SEGMENT, private).expect("shared memory")
}

const ELSEWHERE: &[(Ability, &str)] =
    &[(Ability::SharesMemory, "the sender's memory is mapped at another address")];

/// Ranks over shared memory.
pub(crate) static SHM: World =
    World { name: "shared memory", config: Config::default, connect: shm, lacks: ELSEWHERE };

/// Ranks over shared memory, every limit bites.
pub(crate) static SHM_TINY: World =
    World { name: "shared memory, tiny limits", config: Config::tiny, connect: shm, lacks: ELSEWHERE };

impl World {
    /// Whether the world can do this; says aloud that a test is skipped, and why, when it cannot.
    pub(crate) fn can(&self, ability: Ability, test: &str) -> bool {
        match self.lacks.iter().find(|(lacking, _)| *lacking == ability) {
            Some((_, why)) => {
                println!("SKIPPED {test} in {}: {why}", self.name);
                false
            }
            None => true,
        }
    }
}

/// Makes a test of each function, which takes a world, for every world.
macro_rules! in_every_world {
    ($($test:ident),+ $(,)?) => {
        in_every_world! { @ local LOCAL $($test)+ }
        in_every_world! { @ local_tiny LOCAL_TINY $($test)+ }
        in_every_world! { @ physical PHYSICAL $($test)+ }
        in_every_world! { @ physical_tiny PHYSICAL_TINY $($test)+ }
        in_every_world! { @ shm SHM $($test)+ }
        in_every_world! { @ shm_tiny SHM_TINY $($test)+ }
    };
    (@ $module:ident $world:ident $($test:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::$test(&$crate::worlds::$world);
                }
            )+
        }
    };
}
pub(crate) use in_every_world;
