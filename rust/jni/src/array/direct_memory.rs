//! Copies between a direct `java.nio.Buffer` and message memory.

use mpjdev_buffer::{Octets, Type};

use crate::boundary::{Argument, Env, RawDirect};
use crate::error::{Failure, Fault};

use super::conversion::{copy_fixed, fix};

/// The memory of a direct `java.nio.Buffer`.
#[derive(Debug)]
pub(crate) struct Direct {
    start: *mut u8,
    len: usize,
}

impl Argument<RawDirect> for Direct {
    /// Fails for null, and for a buffer that is not direct.
    unsafe fn from_raw(env: &mut Env, RawDirect(raw): RawDirect) -> Result<Direct, Failure> {
        if raw.is_null() {
            return Err(Fault::Null { name: "direct buffer" }.into());
        }
        // SAFETY: the environment is this thread's, `raw` is a buffer.
        let (start, elements) = unsafe {
            let functions = &(**env.raw()).v1_4;
            (
                (functions.GetDirectBufferAddress)(env.raw(), raw),
                (functions.GetDirectBufferCapacity)(env.raw(), raw),
            )
        };
        if start.is_null() || elements < 0 {
            return Err(Fault::Unusable { what: "buffer", why: "it is not direct" }.into());
        }
        Ok(Direct { start: start.cast(), len: elements as usize })
    }
}

impl Direct {
    /// Address of the first octet.
    pub(crate) fn address(&self) -> i64 {
        self.start.expose_provenance() as i64
    }

    /// Number of octets: `Native` passes byte buffers only.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer and a range of message memory overlap: the buffer is a view that is used too late.
    pub(crate) fn meets(&self, place: &Octets<'_>) -> bool {
        let (ours, theirs) = (self.start.addr(), place.as_ptr().addr());
        ours < theirs + place.len() && theirs < ours + self.len
    }

    /// Copies `count` elements from octet `off` on to `place`.
    ///
    /// # Panics
    /// They are not inside the buffer or the range, or both overlap; callers have checked it.
    pub(crate) fn copy_out(&self, off: usize, element: Type, count: usize, place: Octets<'_>, swapped: bool) {
        let size = element.size();
        assert!(off + count * size <= self.len && count * size <= place.len() && !self.meets(&place));
        // SAFETY: both runs are good for the elements, and do not overlap.
        unsafe { copy_fixed(self.start.add(off), place.as_ptr(), size, count, fix(element, swapped, false)) }
    }

    /// Copies `count` elements from `place` to octet `off` and following.
    ///
    /// # Panics
    /// As for [`copy_out`](Self::copy_out).
    pub(crate) fn copy_in(&self, off: usize, element: Type, count: usize, place: Octets<'_>, swapped: bool) {
        let size = element.size();
        assert!(off + count * size <= self.len && count * size <= place.len() && !self.meets(&place));
        // SAFETY: as in copy_out.
        unsafe { copy_fixed(place.as_ptr(), self.start.add(off), size, count, fix(element, swapped, true)) }
    }
}
