//! The progress threads of a rank.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use mpjdev_sys::sync::{LockRank, Mutex};

/// The progress threads of a rank, which drive its progress while its program computes.
#[derive(Debug)]
pub(crate) struct ProgressThreads {
    threads: Mutex<Vec<Thread>>,
    /// The rank has finished: its progress threads end.
    has_ended: AtomicBool,
}

struct Thread {
    handle: JoinHandle<()>,
    wake: Box<dyn Fn() + Send>,
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.thread().fmt(f)
    }
}

impl Default for ProgressThreads {
    fn default() -> Self {
        ProgressThreads { threads: Mutex::new(LockRank::Leaf, Vec::new()), has_ended: AtomicBool::new(false) }
    }
}

impl ProgressThreads {
    /// Adds a thread, which `wake` wakes.
    #[cfg(not(loom))]
    pub(crate) fn add(&self, handle: JoinHandle<()>, wake: Box<dyn Fn() + Send>) {
        self.threads.lock().push(Thread { handle, wake });
    }

    /// Ends the threads and waits for their ends. Blocks for a moment.
    pub(crate) fn end(&self) {
        self.note_ended();
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.iter().for_each(|thread| (thread.wake)());
        for thread in threads {
            // A thread that has panicked has ended as well.
            let _ = thread.handle.join();
        }
    }

    /// Records that the rank has finished.
    pub(crate) fn note_ended(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Whether the rank has finished.
    pub(crate) fn have_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }
}
