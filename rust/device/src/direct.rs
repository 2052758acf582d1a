//! The short way of a blocking receive: when nothing else is under way, the next packet goes straight to it, and no request
//! is made.

use std::sync::atomic::Ordering;

use mpjdev_buffer::Message;
use mpjdev_proto::envelope::Envelope;

use crate::endpoint::{Core, Endpoint, ReceiveArgs, State};
use crate::error::DeviceError;
use crate::transport::Kind;
use crate::unexpected::{Charge, arrived_whole};

/// How far the short way has led.
pub(crate) enum Direct {
    /// To the message.
    Taken(Result<(Envelope, Message), DeviceError>),
    /// To the end of polling: nothing has come.
    Nothing,
    /// Nowhere: it is not open, or what came is something else, and was taken in.
    Closed,
}

impl State {
    /// Whether no message has come that a new receive could take, no receive is posted that could take one before it, and
    /// nothing waits to be sent.
    #[inline]
    fn is_idle(&self) -> bool {
        !self.finished
            && self.halves.is_empty()
            && self.outbox.is_empty()
            && self.matcher.posted_len() == 0
            && self.matcher.unexpected_len() == 0
    }
}

impl Endpoint {
    /// Polls for the next packet and takes it as this receive's message. Unless it does, the receive is to be posted.
    #[inline(always)]
    pub(crate) fn receive_directly(&self, args: &mut ReceiveArgs) -> Direct {
        let crowded = self.crowded.load(Ordering::Relaxed) > 0;
        if self.config.message_oriented || self.wire.epoch() != 0 || crowded {
            return Direct::Closed;
        }
        let mut pauses = self.config.spins;
        // The first time without asking whether there is something: that costs as much as taking it.
        loop {
            match self.take_first(args) {
                Direct::Nothing => {}
                other => return other,
            }
            while !self.wire.is_ready() {
                if pauses == 0 {
                    return Direct::Nothing;
                }
                pauses -= 1;
                std::hint::spin_loop();
            }
        }
    }

    #[inline(always)]
    fn take_first(&self, args: &mut ReceiveArgs) -> Direct {
        let mut core = self.lock();
        let Core { inbox, state } = &mut *core;
        if !state.is_idle() {
            return Direct::Closed;
        }
        self.wire.show_life();
        let mut taken = Direct::Closed;
        let received = inbox.receive(1, &mut |source, header, body| {
            let envelope = Envelope { context: header.context, source, tag: header.tag };
            if header.kind != Kind::Eager || !args.selector.matches(&envelope) {
                return self.arrive(state, source, header, body);
            }
            let charge = Charge::of(&body, None);
            state.accounts[source as usize].enter(&charge, self.config.credit)?;
            let payload = self.keep(body, args.spare.take());
            self.matched(state, source, &charge);
            let message = arrived_whole(payload, args.capacity, &envelope);
            taken = Direct::Taken(message.map(|message| (envelope, message)));
            Ok(())
        });
        if received == 0 { Direct::Nothing } else { taken }
    }
}
