//! The receive that an operation waits for.

use crate::comm::Comm;
use crate::request::RequestId;

/// A posted receive. One of an operation that has failed must not stay posted: it would take later messages.
pub(super) struct Posted<'a> {
    pub(super) comm: &'a Comm,
    pub(super) id: RequestId,
    pub(super) is_done: bool,
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = self.comm.cancel(self.id);
            self.comm.detach(self.id);
        }
    }
}
