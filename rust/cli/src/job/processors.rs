//! Processors that ranks are bound to.

use rustix::thread::{CpuSet, sched_getaffinity};

/// The processor of this index among those that this process may use; begins again after the last one.
pub fn one(index: u32) -> Option<CpuSet> {
    let allowed = sched_getaffinity(None).ok()?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let mut one = CpuSet::new();
    one.set(*processors.get(index as usize % processors.len().max(1))?);
    Some(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_gives_one_allowed_processor_in_turn() {
        let allowed = sched_getaffinity(None).expect("processors");
        let sets: Vec<CpuSet> = (0..allowed.count()).map(|index| one(index).expect("a processor")).collect();
        let cpus = |set: &CpuSet| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect::<Vec<_>>();
        assert_eq!(sets.iter().flat_map(cpus).collect::<Vec<_>>(), cpus(&allowed));
        assert_eq!(one(allowed.count()).as_ref().map(cpus), sets.first().map(cpus));
    }
}
