//! The packet engine as progress threads use it.

use crate::packet::engine::PacketEngine;

impl PacketEngine {
    /// Ends the progress threads of this rank and waits for their ends: a finished rank needs none. Blocks
    /// for a moment.
    pub fn end_progress_threads(&self) {
        self.progress_threads.end();
    }

    /// Whether this rank has reached the end of its finish.
    pub fn has_ended(&self) -> bool {
        self.progress_threads.have_ended()
    }
}

#[cfg(not(loom))]
impl mpjdev_transport::Progress for PacketEngine {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn drive_progress(&self) {
        PacketEngine::progress_for_other(self);
    }

    fn has_pending(&self) -> bool {
        PacketEngine::has_pending(self)
    }

    fn has_ended(&self) -> bool {
        PacketEngine::has_ended(self)
    }

    fn spawn_progress_thread(
        &self,
        name: String,
        run: Box<dyn FnOnce() + Send>,
        wake: Box<dyn Fn() + Send>,
    ) -> std::io::Result<()> {
        let handle = std::thread::Builder::new().name(name).spawn(run)?;
        self.progress_threads.add(handle, wake);
        Ok(())
    }
}
