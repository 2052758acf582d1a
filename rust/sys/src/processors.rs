//! The processor that a thread runs on, and its move to another one.

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processor that the calling thread runs on.
#[inline]
pub fn current() -> u32 {
    sched_getcpu() as u32
}

/// Moves the calling thread to another one of its processors; false if it has no other. Afterwards it may use
/// the same processors as before.
pub fn leave() -> bool {
    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let mut others = allowed;
    others.unset(sched_getcpu());
    if others.count() == 0 || sched_setaffinity(None, &others).is_err() {
        return false;
    }
    // It fails only if none of these processors is left. The system has chosen others then.
    let _ = sched_setaffinity(None, &allowed);
    true
}

#[cfg(test)]
mod tests {
    use rustix::thread::CpuSet;

    use super::*;

    /// Runs `what` in a thread of its own, whose binding ends with it.
    fn in_thread<R: Send>(what: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| scope.spawn(what).join().expect("no panic"))
    }

    #[test]
    fn thread_that_has_left_may_use_the_same_processors() {
        let allowed = sched_getaffinity(None).expect("processors");
        let (left, after) = in_thread(|| (leave(), sched_getaffinity(None).expect("processors")));
        assert_eq!((left, after), (allowed.count() > 1, allowed));
    }

    #[test]
    fn thread_with_one_processor_stays() {
        let bound = in_thread(|| {
            let mut one = CpuSet::new();
            one.set(current() as usize);
            sched_setaffinity(None, &one).expect("a processor of its own");
            (leave(), sched_getaffinity(None).expect("processors") == one)
        });
        assert_eq!(bound, (false, true));
    }
}
