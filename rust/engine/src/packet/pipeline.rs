//! Messages that leave before they are packed.
//!
//! The receiver unpacks the first octets while the sender packs the next. The message goes by reference. A
//! counter beside its memory states how many octets are packed.

use std::time::Duration;

use mpjdev_buffer::Message;
use mpjdev_transport::wait::{Backoff, Step, Uninterruptible, WaitControl, deadline_after};
use mpjdev_transport::{Header, Kind, Outgoing, Payload, goes_inline};

use crate::error::DeviceError;
use crate::operation::{Mode, SentAhead};
use crate::packet::engine::{Core, PacketEngine};
use crate::packet::posted_recv::SECOND_HALF_TIMEOUT;
use crate::packet::send::send;
use crate::request::RequestId;

/// The sleep between two polls of the counter. The sender copies; it wakes no thread.
pub(crate) const NAP: Duration = Duration::from_micros(50);

impl PacketEngine {
    /// Sends a message of which only the headers are written, if it can leave at once by reference, or if a
    /// remote rank gets its octets as they are packed. The caller packs it then. `None` if not: nothing has
    /// happened.
    ///
    /// # Errors
    /// Too many messages to the rank are unmatched.
    pub(crate) fn send_ahead(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<SentAhead>, DeviceError> {
        if self.transport.epoch() != 0 || self.end_flags.has_begun() {
            return Ok(None);
        }
        if self.is_remote(dest) {
            return self.send_ahead_remote(dest, context, tag, message, mode);
        }
        if self.is_physical(dest)
            || goes_inline(message, self.config.inline_max)
            || !self.can_send_by_reference(message)
        {
            return Ok(None);
        }
        match mode {
            Mode::Standard => Ok(self.send_ahead_by_reference(dest, context, tag, message)),
            Mode::Synchronous => self.send_ahead_synchronous(dest, context, tag, message),
        }
    }

    /// Sends the RTS of a long message that is not packed.
    fn send_ahead_remote(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
        mode: Mode,
    ) -> Result<Option<SentAhead>, DeviceError> {
        if message.first_len() < self.transport.ahead_from(dest) {
            return Ok(None);
        }
        let Some((ahead, packer)) = message.begin_packing() else { return Ok(None) };
        let request = self.start_remote(dest, context, tag, &ahead, mode)?;
        Ok(Some(SentAhead { packer, request, by_reference: false }))
    }

    /// Sends the octets that a thread has packed since its last call, to a remote rank.
    pub(crate) fn send_packed(&self, dest: u32) {
        if self.is_remote(dest) {
            // The message may be matched by now.
            self.progress(&mut self.lock());
            self.transport.send_packed(dest);
        }
    }

    fn send_ahead_by_reference(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
    ) -> Option<SentAhead> {
        if self.queued_count.get() != 0 || !self.take_credit(dest, self.charge_of(message)) {
            return None;
        }
        let Some((ahead, packer)) = message.begin_packing() else {
            self.uncharge(dest, message);
            return None;
        };
        let header = Header { kind: Kind::Eager, context, tag, token: 0 };
        if self.transport.try_send(dest, header, Outgoing::Message(&ahead)) {
            return Some(SentAhead { packer, request: None, by_reference: true });
        }
        // No receiver has the message, so an end before all is packed harms none.
        packer.finish();
        self.uncharge(dest, message);
        let core = self.lock();
        if core.state.outbox.is_empty_to(dest) {
            self.transport.cancel_room_request(dest);
        }
        None
    }

    /// Sends a message that is complete when it is matched. The loan lasts until then, in the queue or at the
    /// receiver.
    fn send_ahead_synchronous(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        message: &Message,
    ) -> Result<Option<SentAhead>, DeviceError> {
        let mut core = self.lock();
        self.check_unmatched(&mut core, dest, context, 1)?;
        let Some((ahead, packer)) = message.begin_packing() else { return Ok(None) };
        let work = send(dest, tag, Some(message.logical_len()), 0, Mode::Synchronous);
        let header = Header { kind: Kind::Synchronous, context, tag, token: 0 };
        let request = self.queue_locked(&mut core, dest, header, Payload::Logical(ahead), work);
        Ok(Some(SentAhead { packer, request, by_reference: true }))
    }

    /// Waits until a received message has at least `octets` octets; returns their number. From the last one
    /// on the message is like any other.
    ///
    /// # Errors
    /// The source has ended; interrupted, and the octets have not arrived within a second.
    pub(crate) fn await_packed(
        &self,
        source: u32,
        message: &mut Message,
        octets: usize,
        wait_control: &mut dyn WaitControl,
    ) -> Result<usize, DeviceError> {
        let is_arriving = message.is_packing() && self.is_remote(source);
        let mut backoff = Backoff::new(&self.config);
        if !is_arriving {
            // The sender writes the counter in memory that this thread reads without the lock.
            backoff.adapt_to(&self.oversubscription);
            if let Some(packed) = self.spin_packed(message, octets, &mut backoff) {
                return Ok(packed);
            }
        }
        let mut packed = |core: &mut Core| {
            let packed = self.packed_octets(source, message, octets)?;
            if packed.is_none() && !is_arriving {
                core.state.requests.note_packing();
            }
            Ok(packed)
        };
        match self.block(&[], None, backoff, wait_control, &mut packed) {
            Err(DeviceError::Interrupted) => {
                let end = deadline_after(SECOND_HALF_TIMEOUT);
                let backoff = Backoff::after_pauses(&self.config);
                match self.block(&[], end, backoff, &mut Uninterruptible, packed) {
                    Err(DeviceError::TimedOut { .. }) => Err(DeviceError::Interrupted),
                    other => other,
                }
            }
            other => other,
        }
    }

    /// Spins and yields as [`await_packed`](Self::await_packed), without driving progress; `None` when the
    /// thread must sleep. It reads only the counter: the caller checks the source afterwards.
    fn spin_packed(&self, message: &mut Message, octets: usize, backoff: &mut Backoff) -> Option<usize> {
        loop {
            if message.is_packed() {
                return Some(message.first_len());
            }
            match message.packed_len() {
                None => return None,
                Some(packed) if packed >= octets => return Some(packed),
                Some(_) => {}
            }
            match backoff.step() {
                Step::Pause => std::hint::spin_loop(),
                Step::Yield => backoff.yield_now(&self.oversubscription),
                Step::Sleep => return None,
            }
        }
    }

    /// The number of octets that a message has, if it is at least `octets`.
    fn packed_octets(
        &self,
        source: u32,
        message: &mut Message,
        octets: usize,
    ) -> Result<Option<usize>, DeviceError> {
        if message.is_packed() {
            return Ok(Some(message.first_len()));
        }
        match message.packed_len() {
            None => Err(self.source_error(source).unwrap_or_else(|| DeviceError::unpacked(source))),
            Some(packed) if packed >= octets => Ok(Some(packed)),
            Some(_) => self.check_packing(source, message).map(|()| None),
        }
    }

    /// Checks that a message is packed, or that its source may still pack it.
    fn check_packing(&self, source: u32, message: &mut Message) -> Result<(), DeviceError> {
        if self.transport.epoch() == 0 {
            return Ok(());
        }
        // The source may have packed the last octets just before its end.
        match self.source_error(source) {
            Some(error) if !message.is_packed() => Err(error),
            _ => Ok(()),
        }
    }

    /// The error of a source that sends nothing more, or of the job.
    fn source_error(&self, source: u32) -> Option<DeviceError> {
        let abort = self.transport.abort().map(|(rank, why)| DeviceError::PeerFailed { rank, why });
        abort.or_else(|| self.peer_error(source))
    }

    /// Fails those receives with these ids whose source has ended before it had packed the message.
    pub(crate) fn fail_unpacked(&self, core: &mut Core, ids: &[RequestId]) {
        let requests = &mut core.state.requests;
        for id in ids {
            let error = requests.packing_source(*id).and_then(|source| self.source_error(source));
            if let Some(error) = error {
                requests.fail_unpacked(*id, error);
            }
        }
    }
}
