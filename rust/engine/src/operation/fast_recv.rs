//! The outcome of the fast path of a blocking receive.

use std::convert::Infallible;

use mpjdev_proto::envelope::Envelope;

use crate::error::DeviceError;

/// Outcome of the fast path. `P` is a receive that the engine leaves posted; the packet engine leaves none.
#[derive(Debug)]
pub enum FastRecv<P = Infallible> {
    /// A message was received.
    Done(Envelope),
    /// The message was consumed with an error, or the arguments are wrong.
    Failed(Box<DeviceError>),
    /// The spins are used up; no message has matched.
    Empty,
    /// The path is not applicable now: post a receive.
    Unavailable,
    /// Polling has ended; a receive is posted.
    Posted(P),
}

impl FastRecv {
    /// The same outcome over any engine.
    #[inline(always)]
    pub(crate) fn with_posted<P>(self) -> FastRecv<P> {
        match self {
            FastRecv::Done(envelope) => FastRecv::Done(envelope),
            FastRecv::Failed(error) => FastRecv::Failed(error),
            FastRecv::Empty => FastRecv::Empty,
            FastRecv::Unavailable => FastRecv::Unavailable,
            FastRecv::Posted(never) => match never {},
        }
    }
}

impl<P> FastRecv<P> {
    /// The same outcome over an engine that leaves no receive posted.
    pub(crate) fn without_posted(self) -> FastRecv {
        match self {
            FastRecv::Done(envelope) => FastRecv::Done(envelope),
            FastRecv::Failed(error) => FastRecv::Failed(error),
            FastRecv::Empty => FastRecv::Empty,
            FastRecv::Unavailable | FastRecv::Posted(_) => FastRecv::Unavailable,
        }
    }
}

impl<P> From<Result<Envelope, DeviceError>> for FastRecv<P> {
    fn from(taken: Result<Envelope, DeviceError>) -> Self {
        taken.map_or_else(|error| error.into(), FastRecv::Done)
    }
}

impl<P> From<DeviceError> for FastRecv<P> {
    #[cold]
    fn from(error: DeviceError) -> Self {
        FastRecv::Failed(Box::new(error))
    }
}
