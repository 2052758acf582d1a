//! Receives that are matched and whose messages have arrived in part: the second half or the rest is still to
//! arrive.

use mpjdev_buffer::layout::MESSAGE_OVERHEAD;
use mpjdev_buffer::{Slab, SlabError};
use mpjdev_proto::envelope::{Envelope, Selector};
use mpjdev_proto::send_policy::check_second;
use mpjdev_transport::Payload;

use crate::error::DeviceError;
use crate::operation::{lengths, physical, received};
use crate::request::{Completed, RequestId};

/// A receive that has its first half.
#[derive(Debug)]
pub(crate) struct AwaitedSecond {
    /// The envelope of the second half.
    second: Envelope,
    second_len: usize,
    request: RequestId,
    /// The first half, or the error of the receive once the second half is consumed.
    first: Result<(Slab, usize), DeviceError>,
    first_envelope: Envelope,
    capacity: usize,
}

impl AwaitedSecond {
    /// A receive whose second half has this envelope and this length.
    pub(crate) fn new(
        (second, second_len): (Envelope, usize),
        request: RequestId,
        first: Result<(Slab, usize), DeviceError>,
        first_envelope: Envelope,
        capacity: usize,
    ) -> Self {
        AwaitedSecond { second, second_len, request, first, first_envelope, capacity }
    }

    /// The envelope of the second half.
    pub(crate) fn second(&self) -> &Envelope {
        &self.second
    }

    /// Octets of the second half.
    pub(crate) fn wanted(&self) -> u64 {
        self.second_len as u64
    }

    pub(crate) fn request(&self) -> RequestId {
        self.request
    }

    /// The request and the envelope that it still waits for.
    pub(crate) fn waits_for(&self) -> (RequestId, Selector) {
        (self.request, Selector::from(self.second))
    }

    /// The outcome of the receive when the second half has arrived in full.
    pub(crate) fn join(
        self,
        second: Result<Payload, SlabError>,
    ) -> (RequestId, Result<Completed, DeviceError>) {
        let AwaitedSecond { second_len, request, first, first_envelope, capacity, .. } = self;
        let outcome = first.and_then(|(slab, len)| {
            let second = second?;
            check_second(second_len, second.len()).map_err(|e| lengths(e, &first_envelope))?;
            debug_assert!(len >= MESSAGE_OVERHEAD);
            physical(slab, len, second.into_physical(), capacity, &first_envelope)
        });
        (request, outcome.map(|message| received(first_envelope, message)))
    }
}

/// A matched message whose rest is still to arrive.
#[derive(Debug)]
pub(crate) struct PendingRendezvous {
    source: u32,
    /// The token of its first packet.
    token: u64,
    completion: Completion,
}

/// The receive that takes the message.
#[derive(Debug)]
pub(crate) enum Completion {
    /// A receive that takes it as its only or its first physical message.
    Receive(RequestId, Envelope),
    /// A receive that takes it as its second half.
    SecondHalf(Box<AwaitedSecond>),
}

impl Completion {
    /// The envelope of a message that is matched as a whole or as the first half.
    pub(crate) fn first(&self) -> Option<&Envelope> {
        match self {
            Completion::Receive(_, envelope) => Some(envelope),
            Completion::SecondHalf(_) => None,
        }
    }
}

impl PendingRendezvous {
    /// A message of `source` whose first packet has this token.
    pub(crate) fn new(source: u32, token: u64, completion: Completion) -> Self {
        PendingRendezvous { source, token, completion }
    }

    /// Whether this is the message of `source` with this token.
    pub(crate) fn is_of(&self, source: u32, token: u64) -> bool {
        (self.source, self.token) == (source, token)
    }

    pub(crate) fn completion(&self) -> &Completion {
        &self.completion
    }

    /// The receive that takes the message as its only or its first physical one.
    pub(crate) fn receive(&mut self) -> Option<(&mut RequestId, Envelope)> {
        match &mut self.completion {
            Completion::Receive(request, envelope) => Some((request, *envelope)),
            Completion::SecondHalf(_) => None,
        }
    }

    pub(crate) fn into_completion(self) -> Completion {
        self.completion
    }

    pub(crate) fn request(&self) -> RequestId {
        match &self.completion {
            Completion::Receive(request, _) => *request,
            Completion::SecondHalf(half) => half.request(),
        }
    }

    /// The request and the envelope that it still waits for.
    pub(crate) fn waits_for(&self) -> (RequestId, Selector) {
        match &self.completion {
            Completion::Receive(request, envelope) => (*request, Selector::from(*envelope)),
            Completion::SecondHalf(half) => half.waits_for(),
        }
    }
}
