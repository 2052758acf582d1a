//! Progress threads: their interface to the rank that they drive, and their start and end.
//!
//! A progress thread repeats a turn: it parks until there is work, and drives the rank. A transport hands in
//! the turn, and the wake that ends its sleep.

use std::io;
use std::sync::{Arc, Weak};

/// A rank that progress threads drive while its program computes.
pub trait Progress: Send + Sync + 'static {
    /// Its number in the world.
    fn rank(&self) -> u32;

    /// Drives the rank once, unless its own threads do.
    fn drive_progress(&self);

    /// Whether requests are incomplete, or packets wait; also while a thread of the program drives the rank.
    fn has_pending(&self) -> bool;

    /// Whether the rank has reached the end of its finish.
    fn has_ended(&self) -> bool;

    /// Starts a progress thread of the rank. It ends when the rank is dropped or, woken by `wake`, [has
    /// ended](Self::has_ended).
    ///
    /// # Errors
    /// The system has no thread left.
    fn spawn_progress_thread(
        &self,
        name: String,
        run: Box<dyn FnOnce() + Send>,
        wake: Box<dyn Fn() + Send>,
    ) -> io::Result<()>;
}

/// A rank that a progress thread drives. The thread does not keep the rank alive.
pub(crate) struct WeakRank(Weak<dyn Progress>);

impl WeakRank {
    /// Whether a progress thread continues: as long as the rank exists and has not finished.
    pub(crate) fn is_running(&self) -> bool {
        self.0.upgrade().is_some_and(|rank| !rank.has_ended())
    }

    /// Drives the rank once, if it still exists.
    pub(crate) fn drive(&self) {
        if let Some(rank) = self.0.upgrade() {
            rank.drive_progress();
        }
    }

    /// Whether the rank still exists and has incomplete requests or waiting packets.
    pub(crate) fn has_pending(&self) -> bool {
        self.0.upgrade().is_some_and(|rank| rank.has_pending())
    }
}

/// Starts a progress thread of a rank, named after the transport. The thread repeats `turn`. It ends when the
/// rank is dropped, or has finished and `wake` has ended the sleep of the turn.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn start(
    transport: &str,
    rank: &Arc<impl Progress>,
    mut turn: impl FnMut(&WeakRank) + Send + 'static,
    wake: impl Fn() + Send + 'static,
) -> io::Result<()> {
    let name = format!("mpjdev-{transport}-{}", rank.rank());
    let weak: Weak<dyn Progress> = Arc::downgrade(rank) as _;
    let driven = WeakRank(weak);
    let run = move || {
        while driven.is_running() {
            turn(&driven);
        }
    };
    rank.spawn_progress_thread(name, Box::new(run), Box::new(wake))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(60);

    type Thread = (String, JoinHandle<()>, Box<dyn Fn() + Send>);

    /// A rank that reports each time it is driven.
    struct Rank {
        driven: Mutex<Sender<()>>,
        has_ended: AtomicBool,
        thread: Arc<Mutex<Option<Thread>>>,
    }

    impl Progress for Rank {
        fn rank(&self) -> u32 {
            7
        }

        fn drive_progress(&self) {
            self.driven.lock().expect("no panic").send(()).expect("a test");
        }

        fn has_pending(&self) -> bool {
            true
        }

        fn has_ended(&self) -> bool {
            self.has_ended.load(SeqCst)
        }

        fn spawn_progress_thread(
            &self,
            name: String,
            run: Box<dyn FnOnce() + Send>,
            wake: Box<dyn Fn() + Send>,
        ) -> io::Result<()> {
            *self.thread.lock().expect("no panic") = Some((name, std::thread::spawn(run), wake));
            Ok(())
        }
    }

    /// A rank with a progress thread that drives it once for each wake. `end` ends the rank and returns what
    /// remains of it; the thread ends while that is there.
    fn ends_after<R>(end: fn(Arc<Rank>) -> R) {
        let (driven, is_driven) = channel();
        let thread = Arc::default();
        let rank = Rank {
            driven: Mutex::new(driven),
            has_ended: AtomicBool::new(false),
            thread: Arc::clone(&thread),
        };
        let rank = Arc::new(rank);
        let (waker, wakes): (Sender<()>, Receiver<()>) = channel();
        let turn = move |rank: &WeakRank| {
            wakes.recv_timeout(LONG).expect("a wake");
            rank.drive();
        };
        start("test", &rank, turn, move || waker.send(()).unwrap_or(())).expect("a thread");
        let (name, thread, wake) = thread.lock().expect("no panic").take().expect("it is started");
        assert_eq!(name, "mpjdev-test-7");
        for _ in 0..2 {
            wake();
            is_driven.recv_timeout(LONG).expect("it drives the rank");
        }
        let remains = end(rank);
        wake();
        thread.join().expect("it ends");
        drop(remains);
    }

    #[test]
    fn thread_ends_when_its_rank_has_finished_and_wakes_it() {
        ends_after(|rank| {
            rank.has_ended.store(true, SeqCst);
            rank
        });
    }

    #[test]
    fn thread_ends_when_its_rank_is_dropped() {
        ends_after(drop);
    }
}
