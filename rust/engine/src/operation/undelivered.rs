//! Undelivered messages, as the finish of a rank reports them.

use crate::error::DeviceError;

/// Undelivered messages without a thread that waits for their requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undelivered {
    count: usize,
    /// Destination, tag and logical length of the first one.
    first: Option<(u32, i32, usize)>,
}

impl Undelivered {
    pub(crate) fn add(&mut self, message: (u32, i32, usize)) {
        self.count += 1;
        self.first.get_or_insert(message);
    }

    /// The error of these messages; `Ok` when there are none.
    pub(crate) fn reported(&self) -> Result<(), DeviceError> {
        match self.first {
            None => Ok(()),
            Some((rank, tag, len)) => Err(DeviceError::Undelivered { count: self.count, rank, tag, len }),
        }
    }

    pub(crate) fn add_all(&mut self, messages: Option<(u32, i32, usize)>) {
        messages.into_iter().for_each(|message| self.add(message));
    }
}
