//! Buffers: the bodies of the native methods that write, read and inspect them.
#![allow(clippy::too_many_arguments, reason = "a body has the arguments of its Java method")]

use mpjdev_buffer::patch::{Patch, check_range};
use mpjdev_buffer::{BufferError, Encoding, Message, Octets, ReadBuffer, Type, WriteBuffer};

use crate::array::{Array, Direct, Indexes, IntArray, Picked};
use crate::boundary::Env;
use crate::error::{Failure, Fault, reserved, zeroed};
use crate::handle::{self, Kind};

/// Flag of a call: empty the buffer first (Java's `clear()`).
pub(crate) const CLEAR: i32 = 1;
/// Flag of a call: return to the first section first (Java's `reset()`).
pub(crate) const RESET: i32 = 2;

/// Flag of a call: the byte order of a direct buffer is not this machine's.
pub(crate) const SWAPPED: i32 = 4;

/// Flag of a view: its section is prepared, and neither added to the message nor skipped.
pub(crate) const STAGED: i32 = 8;

/// The constants that Java has as well.
pub(crate) const CONSTANTS: [(&str, i64); 5] = [
    ("CLEAR", CLEAR as i64),
    ("RESET", RESET as i64),
    ("SWAPPED", SWAPPED as i64),
    ("STAGED", STAGED as i64),
    ("MAX_CAPACITY", mpjdev_buffer::layout::CAPACITY_MAX as i64),
];

/// Dimensions whose extents and strides need no allocation.
const FEW_DIMS: usize = 8;

type Done<T = ()> = Result<T, Failure>;

/// Uses a buffer for writing.
#[inline(always)]
pub(crate) fn writing<R>(handle: i64, flags: i32, f: impl FnOnce(&mut WriteBuffer) -> Done<R>) -> Done<R> {
    handle::with_buffer(handle, |buffer| match buffer {
        Kind::Write(w) => {
            if flags & CLEAR != 0 {
                handle::clear(w);
            }
            f(w)
        }
        Kind::Read(_) => Err(wrong("buffer", "it is for reading")),
    })
}

/// Uses a buffer for reading.
#[inline(always)]
pub(crate) fn reading<R>(handle: i64, flags: i32, f: impl FnOnce(&mut ReadBuffer) -> Done<R>) -> Done<R> {
    handle::with_buffer(handle, |buffer| match buffer {
        Kind::Read(r) => {
            if flags & RESET != 0 {
                r.reset();
            }
            f(r)
        }
        Kind::Write(_) => Err(wrong("buffer", "it is for writing")),
    })
}

#[cold]
fn wrong(what: &'static str, why: &'static str) -> Failure {
    Fault::WrongKind { what, why }.into()
}

pub(crate) fn new_writer(_: &mut Env, capacity: i32, order: i32) -> Done<i64> {
    let order = if order == i32::from(Encoding::Big.code()) { Encoding::Big } else { Encoding::Little };
    let writer = WriteBuffer::new(handle::source(), i64::from(capacity), order)?;
    handle::keep(Kind::Write(writer))
}

pub(crate) fn new_reader(_: &mut Env, capacity: i32) -> Done<i64> {
    handle::keep(Kind::Read(ReadBuffer::new(handle::source(), i64::from(capacity))?))
}

pub(crate) fn close(_: &mut Env, handle: i64) -> Done {
    handle::close(handle);
    Ok(())
}

#[inline(always)]
pub(crate) fn write(env: &mut Env, handle: i64, array: Array, off: i32, count: i32, flags: i32) -> Done {
    check_range("source", i64::from(off), i64::from(count), array.len())?;
    write_run(env, handle, &array, off as usize, count as usize, flags)
}

/// As [`write()`], of elements in the bounce buffer.
#[inline(always)]
pub(crate) fn write_bounced(env: &mut Env, handle: i64, elements: Array, flags: i32) -> Done {
    write_run(env, handle, &elements, 0, elements.len(), flags)
}

#[inline(always)]
fn write_run(env: &mut Env, handle: i64, array: &Array, off: usize, count: usize, flags: i32) -> Done {
    writing(handle, flags, |w| {
        w.section(array.element(), count, |place, encoding| {
            array.copy_out(env, off, count, place, encoding != Encoding::NATIVE)
        })
    })
}

#[inline(always)]
pub(crate) fn read(env: &mut Env, handle: i64, array: Array, off: i32, count: i32, flags: i32) -> Done {
    check_range("destination", i64::from(off), i64::from(count), array.len())?;
    read_run(env, handle, &array, off as usize, count as usize, flags)
}

/// As [`read()`], to the bounce buffer.
#[inline(always)]
pub(crate) fn read_bounced(env: &mut Env, handle: i64, elements: Array, flags: i32) -> Done {
    read_run(env, handle, &elements, 0, elements.len(), flags)
}

#[inline(always)]
fn read_run(env: &mut Env, handle: i64, array: &Array, off: usize, count: usize, flags: i32) -> Done {
    reading(handle, flags, |r| {
        r.section(array.element(), count, |place, encoding| {
            array.copy_in(env, off, count, place, encoding != Encoding::NATIVE)
        })
    })
}

/// The address of a direct buffer.
pub(crate) fn address(_: &mut Env, buffer: Direct) -> Result<i64, Failure> {
    Ok(buffer.address())
}

#[inline(always)]
pub(crate) fn gather(
    env: &mut Env,
    handle: i64,
    array: Array,
    base: i32,
    count: i32,
    offs: i32,
    indexes: IntArray,
    flags: i32,
) -> Done {
    check_range("index array", i64::from(offs), i64::from(count), indexes.len())?;
    writing(handle, flags, |w| {
        w.section(array.element(), count as usize, |place, encoding| {
            array.gather(
                env,
                Picked { base: i64::from(base), indexes: Indexes::Array(&indexes), offs: offs as usize },
                place,
                encoding != Encoding::NATIVE,
            )
        })
    })
}

#[inline(always)]
pub(crate) fn scatter(
    env: &mut Env,
    handle: i64,
    array: Array,
    base: i32,
    count: i32,
    offs: i32,
    indexes: IntArray,
    flags: i32,
) -> Done {
    check_range("index array", i64::from(offs), i64::from(count), indexes.len())?;
    reading(handle, flags, |r| {
        r.section(array.element(), count as usize, |place, encoding| {
            array.scatter(
                env,
                Picked { base: i64::from(base), indexes: Indexes::Array(&indexes), offs: offs as usize },
                place,
                encoding != Encoding::NATIVE,
            )
        })
    })
}

#[inline(always)]
pub(crate) fn str_gather(
    env: &mut Env,
    handle: i64,
    array: Array,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    flags: i32,
) -> Done {
    let patch = patch(env, array.len(), off, rank, exts, strs, &indexes)?;
    writing(handle, flags, |w| {
        w.section(array.element(), patch.count(), |place, encoding| {
            array.str_gather(env, &patch, place, encoding != Encoding::NATIVE)
        })
    })
}

#[inline(always)]
pub(crate) fn str_scatter(
    env: &mut Env,
    handle: i64,
    array: Array,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    flags: i32,
) -> Done {
    let patch = patch(env, array.len(), off, rank, exts, strs, &indexes)?;
    reading(handle, flags, |r| {
        r.section(array.element(), patch.count(), |place, encoding| {
            array.str_scatter(env, &patch, place, encoding != Encoding::NATIVE)
        })
    })
}

/// Copies extents and strides out of the index array and checks the resulting patch. The checked values are
/// the used ones, whatever another thread does to the array.
#[inline(always)]
pub(crate) fn patch(
    env: &mut Env,
    length: usize,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: &IntArray,
) -> Done<Patch> {
    check_range("extents", i64::from(exts), i64::from(rank), indexes.len())?;
    check_range("strides", i64::from(strs), i64::from(rank), indexes.len())?;
    if off < 0 {
        // This is an element number like any other, so it is outside the array and no bad argument of its own
        // kind.
        return Err(BufferError::ArrayBounds {
            what: "strided patch",
            offset: i64::from(off),
            count: 1,
            length: length as u64,
        }
        .into());
    }
    let (rank, exts, strs) = (rank as usize, exts as usize, strs as usize);
    let mut few = [0; 2 * FEW_DIMS];
    let mut many;
    let dims = if rank <= FEW_DIMS {
        &mut few[..2 * rank]
    } else {
        many = zeroed(2 * rank)?;
        &mut many[..]
    };
    let (extents, strides) = dims.split_at_mut(rank);
    indexes.get(env, exts, extents);
    indexes.get(env, strs, strides);
    Ok(Patch::check(i64::from(off), extents, strides, length)?)
}

/// Writes octets of a direct buffer, from `address + off` on, as one section of `count` elements.
pub(crate) fn write_direct(
    _: &mut Env,
    handle: i64,
    direct: Direct,
    off: i64,
    element: i32,
    count: i32,
    flags: i32,
) -> Done {
    let (element, _) = direct_range(&direct, off, element, count)?;
    writing(handle, flags, |w| {
        w.section(element, count as usize, |place, encoding| {
            check_apart(&direct, &place)?;
            let swapped = (encoding != Encoding::NATIVE) != (flags & SWAPPED != 0);
            direct.copy_out(off as usize, element, count as usize, place, swapped);
            Ok(())
        })
    })
}

/// Reads one section of `count` elements into the octets of a direct buffer from `address + off` on.
pub(crate) fn read_direct(
    _: &mut Env,
    handle: i64,
    direct: Direct,
    off: i64,
    element: i32,
    count: i32,
    flags: i32,
) -> Done {
    let (element, _) = direct_range(&direct, off, element, count)?;
    reading(handle, flags, |r| {
        r.section(element, count as usize, |place, encoding| {
            check_apart(&direct, &place)?;
            let swapped = (encoding != Encoding::NATIVE) != (flags & SWAPPED != 0);
            direct.copy_in(off as usize, element, count as usize, place, swapped);
            Ok(())
        })
    })
}

fn check_apart(direct: &Direct, place: &Octets<'_>) -> Done {
    if direct.meets(place) {
        return Err(Fault::Unusable { what: "buffer", why: "it is a view of the same message" }.into());
    }
    Ok(())
}

fn direct_range(direct: &Direct, off: i64, element: i32, count: i32) -> Done<(Type, usize)> {
    let element = primitive(element)?;
    if count < 0 {
        return Err(BufferError::Negative { what: "count", value: i64::from(count) }.into());
    }
    let len = count as usize * element.size();
    check_range("direct buffer, in octets", off, len as i64, direct.len())?;
    Ok((element, len))
}

pub(crate) fn primitive(element: i32) -> Done<Type> {
    match u8::try_from(element).ok().and_then(Type::from_code) {
        Some(element) if element != Type::Object => Ok(element),
        _ => Err(Fault::Unusable { what: "type", why: "it is not primitive" }.into()),
    }
}

/// Writes the header of an object section; the objects are in the secondary payload.
pub(crate) fn write_objects(_: &mut Env, handle: i64, count: i32, flags: i32) -> Done {
    if count < 0 {
        return Err(BufferError::Negative { what: "count", value: i64::from(count) }.into());
    }
    writing(handle, flags, |w| {
        w.stage(Type::Object, count as usize)?;
        w.commit();
        Ok(())
    })
}

/// Checks that the next section is one of `count` objects.
pub(crate) fn check_objects(_: &mut Env, handle: i64, count: i32, flags: i32) -> Done {
    if count < 0 {
        return Err(BufferError::Negative { what: "count", value: i64::from(count) }.into());
    }
    reading(handle, flags, |r| Ok(r.stage(Type::Object, count as usize).map(drop)?))
}

/// Skips a section of `count` objects; the objects are read from the secondary payload.
pub(crate) fn read_objects(env: &mut Env, handle: i64, count: i32, flags: i32) -> Done {
    check_objects(env, handle, count, flags)?;
    reading(handle, 0, |r| {
        r.commit();
        Ok(())
    })
}

/// Checks that an object section fits. Returns the length of the secondary payload, for a later truncation.
pub(crate) fn begin_objects(_: &mut Env, handle: i64, flags: i32) -> Done<i64> {
    writing(handle, flags, |w| {
        if !w.takes_objects() {
            return Err(BufferError::ForeignStream.into());
        }
        w.stage(Type::Object, 0)?;
        Ok(w.secondary_len() as i64)
    })
}

/// Appends octets of the serialisation stream to the secondary payload.
pub(crate) fn append_secondary(env: &mut Env, handle: i64, array: Array, off: i32, count: i32) -> Done {
    check_range("stream chunk", i64::from(off), i64::from(count), array.len())?;
    writing(handle, 0, |w| {
        let place = w.stage_secondary(count as usize)?;
        array.copy_out(env, off as usize, count as usize, place, false)?;
        w.grow_secondary(count as usize);
        Ok(())
    })
}

/// Removes the octets that a failed object write has appended.
pub(crate) fn truncate_secondary(_: &mut Env, handle: i64, len: i64) -> Done {
    writing(handle, 0, |w| {
        w.truncate_secondary(usize::try_from(len).unwrap_or(0));
        Ok(())
    })
}

/// Copies octets of the secondary payload from `at` on; returns their number, 0 at its end.
pub(crate) fn read_secondary(
    env: &mut Env,
    handle: i64,
    at: i64,
    array: Array,
    off: i32,
    count: i32,
) -> Done<i32> {
    check_range("stream chunk", i64::from(off), i64::from(count), array.len())?;
    reading(handle, 0, |r| {
        let Some(message) = r.message() else { return Ok(0) };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let n = (count as usize).min(message.secondary_len().saturating_sub(at));
        if n > 0 {
            array.copy_in(env, off as usize, n, message.secondary_octets(at, n), false)?;
        }
        Ok(n as i32)
    })
}

/// Octets of the secondary payload.
pub(crate) fn secondary_len(_: &mut Env, handle: i64, flags: i32) -> Done<i64> {
    look(handle, flags, |m| m.map_or(0, Message::secondary_len) as i64)
}

/// Octets of the logical message, 16 + p + s.
pub(crate) fn logical_len(_: &mut Env, handle: i64, flags: i32) -> Done<i64> {
    look(handle, flags, |m| m.map_or(0, Message::logical_len) as i64)
}

/// Copies the logical message into a byte array of its length.
pub(crate) fn copy_logical(env: &mut Env, handle: i64, array: Array, flags: i32) -> Done {
    with_message(handle, flags, |message| {
        let Some(message) = message else { return Ok(()) };
        let mut chunk = [0; 8192];
        let mut at = 0;
        while at < array.len() {
            let room = chunk.len().min(array.len() - at);
            let n = message.copy_logical(at, &mut chunk[..room]);
            if n == 0 {
                break;
            }
            array.put_octets(env, at, &chunk[..n]);
            at += n;
        }
        Ok(())
    })
}

/// Loads a copy of the octets of a logical message.
pub(crate) fn load(env: &mut Env, handle: i64, array: Array) -> Done {
    let mut octets = Vec::new();
    let asked = array.len() as u64;
    octets.try_reserve_exact(array.len()).map_err(|_| mpjdev_buffer::SlabError::System { asked })?;
    octets.resize(array.len(), 0);
    array.get_octets(env, 0, &mut octets);
    reading(handle, 0, |r| Ok(r.load(&octets)?))
}

/// Type code << 32 | count of the next section; -1 after the last one.
pub(crate) fn peek(_: &mut Env, handle: i64, flags: i32) -> Done<i64> {
    reading(handle, flags, |r| {
        Ok(match r.peek()? {
            Some(header) => i64::from(header.element.code()) << 32 | header.count as i64,
            None => -1,
        })
    })
}

/// Type code << 32 | count of the first section, whatever the reading position; -1 when there is none.
pub(crate) fn first_section(_: &mut Env, handle: i64) -> Done<i64> {
    look(handle, 0, |message| match message.and_then(Message::first_section) {
        Some(header) => i64::from(header.element.code()) << 32 | header.count as i64,
        None => -1,
    })
}

/// Whether the message is one of a packing unit in bytes.
pub(crate) fn is_unit(_: &mut Env, handle: i64) -> Done<bool> {
    look(handle, 0, |message| message.is_some_and(Message::is_unit))
}

/// Counts the elements of a strided patch of an array outside native memory.
pub(crate) fn patch_count(
    env: &mut Env,
    length: i32,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
) -> Done<i32> {
    Ok(patch(env, length as usize, off, rank, exts, strs, &indexes)?.count() as i32)
}

/// Lists the elements of a strided patch, as many as there is room for.
pub(crate) fn patch_elements(
    env: &mut Env,
    length: i32,
    off: i32,
    rank: i32,
    exts: i32,
    strs: i32,
    indexes: IntArray,
    elements: IntArray,
) -> Done {
    let patch = patch(env, length as usize, off, rank, exts, strs, &indexes)?;
    // All elements are listed, although there may be room for fewer: a run is listed whole.
    let mut numbers: Vec<i32> = reserved(patch.count())?;
    for run in patch.runs(usize::MAX) {
        numbers.extend((0..run.count as i64).map(|i| (run.start as i64 + run.stride * i) as i32));
    }
    numbers.truncate(elements.len());
    elements.put(env, &numbers);
    Ok(())
}

/// Number of sections: of the whole message when reading, of those written when writing.
pub(crate) fn section_count(_: &mut Env, handle: i64, flags: i32) -> Done<i32> {
    handle::with_buffer(handle, |buffer| match buffer {
        Kind::Write(_) if flags & CLEAR != 0 => Ok(0),
        Kind::Write(w) => Ok(w.section_count() as i32),
        Kind::Read(r) => Ok(r.section_count()? as i32),
    })
}

/// Octets of primary payload that fit.
pub(crate) fn capacity(_: &mut Env, handle: i64) -> Done<i32> {
    handle::with_buffer(handle, |buffer| {
        Ok(match buffer {
            Kind::Write(w) => w.capacity() as i32,
            Kind::Read(r) => r.capacity() as i32,
        })
    })
}

pub(crate) fn ensure_capacity(_: &mut Env, handle: i64, capacity: i32) -> Done {
    handle::with_buffer(handle, |buffer| {
        match buffer {
            Kind::Write(w) => {
                w.ensure_capacity(i64::from(capacity))?;
                handle::clear(w);
            }
            Kind::Read(r) => r.ensure_capacity(i64::from(capacity))?,
        }
        Ok(())
    })
}

pub(crate) fn restore_capacity(_: &mut Env, handle: i64) -> Done {
    handle::with_buffer(handle, |buffer| {
        match buffer {
            Kind::Write(w) => {
                w.restore_capacity();
                handle::clear(w);
            }
            Kind::Read(r) => r.restore_capacity(),
        }
        Ok(())
    })
}

/// Octets of capacity that one section takes.
pub(crate) fn section_capacity(_: &mut Env, element: i32, count: i32) -> Done<i64> {
    let Some(element) = u8::try_from(element).ok().and_then(Type::from_code) else {
        return Err(wrong("section", "no such type"));
    };
    match u32::try_from(count) {
        Ok(count) => Ok(mpjdev_buffer::capacity::section_capacity(element, count) as i64),
        Err(_) => Err(BufferError::Negative { what: "count", value: i64::from(count) }.into()),
    }
}

/// Uses the finished message of a buffer of either kind; `None` in an empty one for reading.
pub(crate) fn with_message<R>(
    handle: i64,
    flags: i32,
    f: impl FnOnce(Option<&Message>) -> Done<R>,
) -> Done<R> {
    handle::with_buffer(handle, |buffer| match buffer {
        Kind::Write(w) => {
            if flags & CLEAR != 0 {
                handle::clear(w);
            }
            f(Some(w.finish()?))
        }
        Kind::Read(r) => {
            if flags & RESET != 0 {
                r.reset();
            }
            f(r.message())
        }
    })
}

fn look<R>(handle: i64, flags: i32, f: impl FnOnce(Option<&Message>) -> R) -> Done<R> {
    with_message(handle, flags, |m| Ok(f(m)))
}
