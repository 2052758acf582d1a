//! Random choices of simulations: the same for the same seed.

use mpjdev_sim as network;

/// The generator of the simulated network.
pub(crate) struct Random(network::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(network::Random::new(seed))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.up_to(bound as u64 - 1) as usize
    }
}
