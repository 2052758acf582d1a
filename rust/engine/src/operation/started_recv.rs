//! A receive that was started.

use crate::request::RequestId;

/// A receive that was started. `S` describes a received message.
#[derive(Debug)]
pub enum StartedRecv<S> {
    /// The message had arrived, and is received.
    Received(S),
    /// The receive is posted, or has failed: its wait returns the outcome.
    Posted(RequestId),
}
