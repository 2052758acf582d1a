//! The number of processors that the ranks of this machine share.

use rustix::process::{Pid, getppid};
use rustix::thread::sched_getaffinity;

/// Processors that the ranks of this machine share. A launcher may bind each rank to some of them, but leaves
/// its own daemon unbound, which is this process's parent. Without a launcher: the processors that this
/// process may use.
pub(super) fn shared() -> usize {
    let allowed = |process: Option<Pid>| sched_getaffinity(process).map_or(0, |set| set.count() as usize);
    let launcher = getppid().map_or(0, |parent| allowed(Some(parent)));
    match launcher > allowed(None) {
        true => launcher,
        // This function also takes a quota of processor time into account.
        false => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_setaffinity};

    #[test]
    fn rank_bound_to_one_processor_counts_those_of_its_launcher() {
        let allowed = sched_getaffinity(None).unwrap();
        // The binding of the test's own thread alone.
        let bound = move || {
            let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            (std::thread::available_parallelism().unwrap().get(), shared())
        };
        let (own, shared) = std::thread::spawn(bound).join().unwrap();
        let launcher = sched_getaffinity(getppid()).unwrap().count() as usize;
        assert_eq!((own, shared), (1, launcher.max(1)));
    }
}
