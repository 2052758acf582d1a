//! Messages of arrays: sends of memory that the caller packs and needs again, before or while it is packed.

use std::sync::atomic::AtomicU64;

use mpjdev_buffer::Message;
use mpjdev_transport::ShortTaker;
use mpjdev_transport::wait::WaitControl;

use crate::comm::{Comm, RecvFrom};
use crate::engine::Engine;
use crate::error::DeviceError;
use crate::operation::{Mode, SentAhead};
use crate::request::RequestId;

impl Comm {
    /// As [`isend`](Self::isend), for a message whose memory the caller needs again: a copy is sent where a
    /// loan is slower.
    ///
    /// # Errors
    /// As for [`isend`](Self::isend).
    #[inline(always)]
    pub fn isend_by_copy(
        &self,
        message: &Message,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Option<RequestId>, DeviceError> {
        if self.engine.try_send_copy(&self.send_args(message, dest, tag, mode)?) {
            return Ok(None);
        }
        // A second caller of the engine's function would keep it from being inlined into `isend`.
        self.isend(message, dest, tag, mode)
    }

    /// Sends a short message of `len` octets in standard mode, if it can leave at once; `pack` returns its
    /// words. Returns false if it cannot, and nothing has happened.
    ///
    /// # Errors
    /// A bad rank or tag.
    #[inline(always)]
    pub fn try_send_words<'w>(
        &self,
        len: usize,
        dest: i32,
        tag: i32,
        pack: impl FnOnce() -> &'w [AtomicU64],
    ) -> Result<bool, DeviceError> {
        let world = self.member(dest)?;
        self.check_tag(tag)?;
        Ok(self.engine.try_send_words(world, self.context, tag, len, pack))
    }

    /// Spins for a short message from a given source with a given tag. `take` gets its words, which the
    /// sender can still change, and its number of octets; it returns whether it takes the message. Returns
    /// false if no message was taken: [`try_recv_polling`] receives it with the spins that are left.
    ///
    /// # Errors
    /// A bad rank or tag.
    ///
    /// [`try_recv_polling`]: Self::try_recv_polling
    #[inline(always)]
    pub fn try_recv_words(
        &self,
        from: RecvFrom,
        spins: &mut u32,
        take: &mut ShortTaker<'_>,
    ) -> Result<bool, DeviceError> {
        Ok(self.engine.try_recv_words(self.selection(from)?, spins, take))
    }

    /// Sends a message of which only the headers are written, if it can leave before it is packed. The caller
    /// puts the elements into it then, and publishes them; it calls [`send_packed`](Self::send_packed) after
    /// each part, and once at the end. `None` if not: nothing has happened, and [`isend`](Self::isend) sends
    /// the message once it is packed.
    ///
    /// # Errors
    /// A bad rank or tag; too many messages to the rank are unmatched.
    pub fn send_ahead(
        &self,
        message: &Message,
        dest: i32,
        tag: i32,
        mode: Mode,
    ) -> Result<Option<SentAhead>, DeviceError> {
        self.engine.send_ahead(self.send_args(message, dest, tag, mode)?)
    }

    /// Sends the octets that the calling thread has packed of a message to this rank. Does not block.
    pub fn send_packed(&self, dest: i32) {
        if let Ok(dest) = self.member(dest) {
            self.engine.send_packed(dest);
        }
    }

    /// Waits until at least `octets` octets of a message from this source may be read; returns their number.
    /// Blocks. When all may be read, the message is like any other.
    ///
    /// # Errors
    /// The source has failed or finished before it had packed the message; interrupted, and the octets have
    /// not arrived within a second.
    pub fn await_packed(
        &self,
        source: u32,
        message: &mut Message,
        octets: usize,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        self.engine.await_packed(self.member(source as i32)?, message, octets, wait_control)
    }
}
