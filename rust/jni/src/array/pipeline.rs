//! Copies of long runs whose octets the other rank reads or writes meanwhile.

use mpjdev_buffer::{Octets, Packer};

use super::access::Access;
use super::{Array, CRITICAL_MAX, copy_fixed, fix};
use crate::boundary::Env;
use crate::error::Failure;

/// Octets after which the sender publishes its position, and for which the receiver waits at least. A line
/// that crosses between the processors costs little beside their copy.
const PART: usize = 16 * 1024;

impl Array {
    /// Copies `count` elements from `off` on to the place of the elements in a message that was sent before,
    /// `lead` octets from its start, and publishes them part by part. Calls `sent` while the array is not
    /// held, after each [`CRITICAL_MAX`] octets but the last.
    ///
    /// # Errors
    /// The JVM has no memory to hold the array: the receiver gets an error too.
    ///
    /// # Panics
    /// The elements are not inside the array or the range is too small; callers have checked both.
    #[allow(clippy::too_many_arguments, reason = "two ranges, and what happens between the parts")]
    pub(crate) fn pack(
        &self,
        env: &mut Env,
        off: usize,
        count: usize,
        place: Octets<'_>,
        lead: usize,
        packer: Packer,
        sent: &mut impl FnMut(),
    ) -> Result<(), Failure> {
        let size = self.element().size();
        assert!(off + count <= self.len() && count * size <= place.len());
        let (to, fix) = (place.as_ptr(), fix(self.element(), false, false));
        let (step, piece) = (PART / size, CRITICAL_MAX / size);
        for begin in (0..count).step_by(piece) {
            if begin > 0 {
                sent();
            }
            self.in_pieces(env, piece.min(count - begin), Access::Read, |array, done, n| {
                for at in (begin + done..begin + done + n).step_by(step) {
                    let part = step.min(begin + done + n - at);
                    // SAFETY: `array` holds the elements from off + at on, as many as the part has, and the
                    // range has room for them.
                    unsafe { copy_fixed(array.add((off + at) * size), to.add(at * size), size, part, fix) }
                    packer.publish(lead + (at + part) * size);
                }
            })?;
        }
        packer.finish();
        Ok(())
    }

    /// Copies `count` elements from a range of a message to `off` and following, while its sender packs it.
    /// `there` waits until that many elements are there, and returns the number that is there.
    ///
    /// # Errors
    /// Those of `there`: the elements before are in the array. The JVM has no memory to hold the array.
    ///
    /// # Panics
    /// As for [`pack`](Self::pack).
    pub(crate) fn unpack(
        &self,
        env: &mut Env,
        off: usize,
        count: usize,
        place: Octets<'_>,
        mut there: impl FnMut(&mut Env, usize) -> Result<usize, Failure>,
    ) -> Result<(), Failure> {
        let size = self.element().size();
        assert!(off + count <= self.len() && count * size <= place.len());
        let (from, fix) = (place.as_ptr().cast_const(), fix(self.element(), false, true));
        let mut done = 0;
        while done < count {
            let wanted = (done + PART / size).min(count);
            let ready = there(env, wanted)?.clamp(wanted, count);
            self.in_pieces(env, ready - done, Access::Write, |array, before, n| {
                let at = done + before;
                // SAFETY: `array` has room for the elements from off + at on, and the range holds n of them.
                unsafe { copy_fixed(from.add(at * size), array.add((off + at) * size), size, n, fix) }
            })?;
            done = ready;
        }
        Ok(())
    }
}
