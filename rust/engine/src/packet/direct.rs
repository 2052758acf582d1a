//! The short way of a blocking receive: as long as it may be patient, it takes what fits as it comes, and no request is made.

use std::cell::Cell;

use mpjdev_buffer::Message;
use mpjdev_proto::envelope::{Envelope, Selector};

use crate::error::DeviceError;
use crate::packet::endpoint::{Core, Endpoint, State};
use crate::packet::unexpected::Taker;

/// Packets for others that are taken in before the lock is let go.
const OTHERS: usize = 16;

/// How far the short way has led.
#[derive(Debug)]
pub enum Direct {
    /// To the message.
    Taken(Envelope),
    /// To what is wrong: with the message, which is gone then, or with what was asked for.
    Failed(Box<DeviceError>),
    /// To the end of polling: nothing has come.
    Nothing,
    /// Nowhere: it is not open.
    Closed,
    /// To the end of polling, with a receive that is posted.
    #[cfg(not(loom))]
    Posted(Box<crate::mpi::Receive>),
}

impl From<Result<Envelope, DeviceError>> for Direct {
    fn from(taken: Result<Envelope, DeviceError>) -> Self {
        taken.map_or_else(|error| error.into(), Direct::Taken)
    }
}

impl From<DeviceError> for Direct {
    #[cold]
    fn from(error: DeviceError) -> Self {
        Direct::Failed(Box::new(error))
    }
}

impl Endpoint {
    /// Polls for a message and puts it into its place. Unless it comes, the receive is to be posted. What is at the place before
    /// is memory that nobody else refers to; after an error it is of no use.
    #[inline(always)]
    pub fn receive_directly(
        &self,
        selector: Selector,
        capacity: usize,
        place: &mut Option<Message>,
    ) -> Direct {
        if self.config.message_oriented || self.wire.epoch() != 0 || self.crowd.is_here() {
            return Direct::Closed;
        }
        let mut taker = Taker { selector, capacity, place, taken: None, is_passed: Cell::new(false) };
        let mut pauses = self.config.spins;
        // The first time without asking whether there is something: that costs as much as taking it.
        loop {
            match self.take_next(&mut taker) {
                Direct::Nothing => {}
                other => return other,
            }
            // What comes may be for others, without end.
            loop {
                if pauses == 0 {
                    return Direct::Nothing;
                }
                pauses -= 1;
                if self.wire.is_ready() {
                    break;
                }
                std::hint::spin_loop();
            }
        }
    }

    /// Whether the message that is there is not all of it, which is for a posted receive to wait for.
    fn waits_for_more(&self, state: &State, selector: &Selector) -> bool {
        let first = || state.matcher.probe(selector);
        !self.remote.is_empty()
            && first().is_some_and(|(envelope, message)| self.is_remote(envelope.source) && !message.is_all())
    }

    /// Takes the message if it is there.
    #[inline(always)]
    fn take_next(&self, taker: &mut Taker<'_>) -> Direct {
        let mut core = self.lock();
        let Core { inbox, state } = &mut *core;
        if state.finished {
            return Direct::Closed;
        }
        self.wire.show_life();
        if !state.outbox.is_empty() {
            self.flush(state);
        }
        if state.matcher.unexpected_len() > 0 && self.waits_for_more(state, &taker.selector) {
            return Direct::Closed;
        }
        if state.matcher.unexpected_len() > 0
            && let Some((envelope, message)) = state.matcher.take(&taker.selector)
        {
            taker.take(self.take_unexpected(state, envelope, *message, 0), envelope);
        }
        for _ in 0..OTHERS {
            if let Some(taken) = taker.taken.take() {
                return taken;
            }
            let received = inbox.receive(1, &mut |source, header, body| {
                self.arrive(state, source, header, body, Some(&mut *taker))
            });
            if taker.is_passed.get() {
                return Direct::Closed;
            }
            if received == 0 {
                break;
            }
        }
        taker.taken.take().unwrap_or(Direct::Nothing)
    }
}
