//! Interface of a rank to the progress threads that drive it.

use std::io;
use std::sync::Weak;

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

/// Whether a progress thread continues: as long as the rank exists and has not finished.
pub(crate) fn is_running(rank: &Weak<dyn Progress>) -> bool {
    rank.upgrade().is_some_and(|rank| !rank.has_ended())
}
