//! Views: sections that Java accesses in place, as direct buffers.
//!
//! A view is an address in Java's hands. A table keeps the memory behind it until Java finds the direct
//! buffer unreachable. So a view that is used too late reads or changes some octets of message memory, never
//! unmapped memory.

use mpjdev_buffer::{BufferError, Encoding, Octets};

use crate::array::Array;
use crate::boundary::{DirectView, Env};
use crate::buffer::{STAGED, primitive, reading, writing};
use crate::error::Failure;
use crate::handle::{self, Hold};

/// Indices of the results beside the return value: the view's handle, and the byte order of its elements.
const VIEW: usize = 0;
const ORDER: usize = 1;

fn count_of(count: i32) -> Result<usize, Failure> {
    usize::try_from(count)
        .map_err(|_| BufferError::Negative { what: "count", value: i64::from(count) }.into())
}

/// Writes one section of `count` elements that Java fills in place.
pub(crate) fn write(
    env: &mut Env,
    handle: i64,
    element: i32,
    count: i32,
    out: Array,
    flags: i32,
) -> Result<DirectView, Failure> {
    let (element, count) = (primitive(element)?, count_of(count)?);
    writing(handle, flags, |w| {
        let (slab, at) = w.stage_view(element, count)?;
        let hold = Hold::Written { _slab: slab.clone() };
        let view = show(env, slab.octets(at, count * element.size()), w.encoding(), hold, &out)?;
        if flags & STAGED == 0 {
            w.commit();
        }
        Ok(view)
    })
}

/// Reads one section of `count` elements, which Java accesses in place.
pub(crate) fn read(
    env: &mut Env,
    handle: i64,
    element: i32,
    count: i32,
    out: Array,
    flags: i32,
) -> Result<DirectView, Failure> {
    let (element, count) = (primitive(element)?, count_of(count)?);
    reading(handle, flags, |r| {
        r.stage(element, count)?;
        let Some(message) = r.message() else { unreachable!("staged") };
        let hold = match message.first_slab().memory().hold() {
            Some(memory) => Hold::Read { _memory: memory },
            None => Hold::Message { _slab: message.first_slab().clone() },
        };
        let encoding = message.encoding();
        let view = show(env, r.stage(element, count)?, encoding, hold, &out)?;
        if flags & STAGED == 0 {
            r.commit();
        }
        Ok(view)
    })
}

/// Makes the direct buffer of the octets that `hold` keeps.
fn show(
    env: &mut Env,
    place: Octets<'_>,
    encoding: Encoding,
    hold: Hold,
    out: &Array,
) -> Result<DirectView, Failure> {
    let handle = handle::keep_view(hold)?;
    out.put_long(env, VIEW, handle);
    out.put_long(env, ORDER, i64::from(encoding.code()));
    env.direct_view(&place).inspect_err(|_| handle::free_view(handle))
}

/// Releases a view that Java has lost; a second call is no error.
pub(crate) fn free(_: &mut Env, view: i64) -> Result<(), Failure> {
    handle::free_view(view);
    Ok(())
}
