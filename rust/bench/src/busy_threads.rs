//! Busy threads beside the ranks, for measurements under oversubscription.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that compute until this is dropped or the process ends.
#[derive(Debug)]
pub struct BusyThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyThreads {
    /// Starts this number of threads.
    pub fn start(count: u32) -> BusyThreads {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let stop = stop.clone();
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        };
        let threads = (0..count).map(start).collect();
        BusyThreads { stop, threads }
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_threads_end_when_they_are_dropped() {
        let threads = BusyThreads::start(2);
        let stop = Arc::downgrade(&threads.stop);
        assert_eq!(threads.threads.len(), 2);
        drop(threads);
        assert_eq!(stop.strong_count(), 0, "a thread has not ended");
    }
}
