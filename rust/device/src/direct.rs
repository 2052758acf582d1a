//! The short way of a blocking receive: as long as it may be patient, it takes what fits as it comes, and no request is made.

use mpjdev_buffer::Message;
use mpjdev_proto::envelope::Envelope;

use crate::endpoint::{Core, Endpoint, ReceiveArgs};
use crate::error::DeviceError;
use crate::unexpected::{Taker, arrived_whole};

/// Packets for others that are taken in before the lock is let go.
const OTHERS: usize = 16;

/// How far the short way has led.
pub(crate) enum Direct {
    /// To the message.
    Taken(Result<(Envelope, Message), DeviceError>),
    /// To the end of polling: nothing has come.
    Nothing,
    /// Nowhere: it is not open.
    Closed,
}

impl Endpoint {
    /// Polls for this receive's message. Unless it comes, the receive is to be posted.
    #[inline(always)]
    pub(crate) fn receive_directly(&self, args: &mut ReceiveArgs) -> Direct {
        if self.config.message_oriented || self.wire.epoch() != 0 || self.crowd.is_here() {
            return Direct::Closed;
        }
        let mut pauses = self.config.spins;
        // The first time without asking whether there is something: that costs as much as taking it.
        loop {
            match self.take_next(args) {
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

    /// Takes this receive's message if it is there.
    #[inline(always)]
    fn take_next(&self, args: &mut ReceiveArgs) -> Direct {
        let mut core = self.lock();
        let Core { inbox, state } = &mut *core;
        if state.finished {
            return Direct::Closed;
        }
        self.wire.show_life();
        if !state.outbox.is_empty() {
            self.flush(state);
        }
        if state.matcher.unexpected_len() > 0
            && let Some((envelope, message)) = state.matcher.take(&args.selector)
        {
            let payload = self.take_unexpected(state, envelope, *message);
            let message = arrived_whole(payload, args.capacity, &envelope);
            return Direct::Taken(message.map(|message| (envelope, message)));
        }
        let mut taker = Taker { args, taken: None };
        for _ in 0..OTHERS {
            let received = inbox.receive(1, &mut |source, header, body| {
                self.arrive(state, source, header, body, Some(&mut taker))
            });
            match taker.taken {
                Some(taken) => return Direct::Taken(taken),
                None if received == 0 => break,
                None => {}
            }
        }
        Direct::Nothing
    }
}
