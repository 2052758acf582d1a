//! Packing units in byte arrays: the bodies of the native methods that append a section and take one.

use mpjdev_buffer::layout::{ALIGNMENT, MESSAGE_OVERHEAD, SECTION_HEADER_LEN, padding};
use mpjdev_buffer::patch::check_range;
use mpjdev_buffer::{
    BufferError, Damage, Encoding, PrimaryHeader, SecondaryHeader, SectionHeader, Type, UnitHeader,
    sole_section,
};

use crate::array::Array;
use crate::boundary::Env;
use crate::buffer;
use crate::comm::Answer;
use crate::error::{Fault, reserved};
use crate::handle;

use super::typed::place;

/// Octets of the length of a stream of objects.
const STREAM_LEN: usize = 4;

/// The place of a section of `len` octets.
fn room(unit: &Array, position: i32, len: usize) -> Answer<usize> {
    let at = aligned(unit, position)?;
    let available = unit.len().saturating_sub(at);
    if len > available {
        let (needed, available, capacity) = (len as u64, available as u64, unit.len() as u64);
        return Err(BufferError::Overflow { needed, available, capacity }.into());
    }
    Ok(at)
}

/// The octet at which the section of a position begins.
fn aligned(unit: &Array, position: i32) -> Answer<usize> {
    check_range("packed octets", i64::from(position), 0, unit.len())?;
    Ok((position as usize).next_multiple_of(ALIGNMENT))
}

/// Checks that `len` octets from `at` on are there.
fn check_len(unit: &Array, at: usize, len: usize) -> Answer<()> {
    let available = unit.len().saturating_sub(at);
    if len > available {
        let (needed, available) = (len as u64, available as u64);
        return Err(Damage::SectionLen { needed, available }.at(at).into());
    }
    Ok(())
}

/// The header of the section at `at`.
fn header(env: &mut Env, unit: &Array, at: usize) -> Answer<UnitHeader> {
    check_len(unit, at, SECTION_HEADER_LEN)?;
    let mut octets = [0; SECTION_HEADER_LEN];
    unit.get_octets(env, at, &mut octets);
    Ok(UnitHeader::parse(octets).map_err(|damage| damage.at(at))?)
}

/// Appends a section of items. Returns the position behind it.
pub(crate) fn pack(
    env: &mut Env,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
    unit: Array,
    position: i32,
) -> Answer<i32> {
    let items = place(datatype, &array, off, count)?;
    let part = items.part(&array);
    let section = part.section();
    let len = sole_section::primary_len(section)?;
    let at = room(&unit, position, len)?;
    handle::with_memory(|memory| {
        let message = memory.outgoing(MESSAGE_OVERHEAD + len)?;
        let written = message.write_sole_section(section, |place| part.put(env, place));
        let packed = written.and_then(|()| unit.copy_in(env, at, len, message.unit_section(), false));
        memory.release_long();
        packed
    })?;
    Ok((at + len) as i32)
}

/// Stores the elements of a section in the first elements of items. Returns the position behind it.
pub(crate) fn unpack(
    env: &mut Env,
    unit: Array,
    position: i32,
    datatype: i64,
    array: Array,
    off: i32,
    count: i32,
) -> Answer<i32> {
    let items = place(datatype, &array, off, count)?;
    let part = items.part(&array);
    let at = aligned(&unit, position)?;
    let UnitHeader { section, encoding } = header(env, &unit, at)?;
    if section.element != array.element() || section.count > part.count {
        let (position, found, room) = (at as u64, section.count as u64, part.count as u64);
        let (element, wanted) = (section.element, array.element());
        return Err(BufferError::UnitSection { position, found, element, room, wanted }.into());
    }
    let len = SECTION_HEADER_LEN + section.padded_len();
    check_len(&unit, at, len)?;
    handle::with_memory(|memory| {
        let message = memory.outgoing(MESSAGE_OVERHEAD + len)?;
        let written = message.write_sole_section(section, |place| {
            unit.copy_out(env, at + SECTION_HEADER_LEN, section.data_len(), place, false)
        });
        let stored = written.and_then(|()| {
            let (count, place) = message.sole_section(section.element, section.count)?;
            part.store(env, count, place, encoding != Encoding::NATIVE)
        });
        memory.release_long();
        stored
    })?;
    Ok((at + len) as i32)
}

/// Type code << 32 | count of the section of a position. Its elements are there, unless they are objects.
pub(crate) fn section(env: &mut Env, unit: Array, position: i32) -> Answer<i64> {
    let at = aligned(&unit, position)?;
    let UnitHeader { section, .. } = header(env, &unit, at)?;
    if section.element != Type::Object {
        check_len(&unit, at, SECTION_HEADER_LEN + section.padded_len())?;
    }
    Ok(i64::from(section.element.code()) << 32 | section.count as i64)
}

/// Octets of a section of objects with a stream of this length.
fn objects_len(stream: usize) -> usize {
    let len = SECTION_HEADER_LEN + STREAM_LEN + stream;
    len + padding(len)
}

/// Appends the objects of a buffer for writing. Returns the position behind them.
pub(crate) fn pack_objects(env: &mut Env, handle: i64, unit: Array, position: i32) -> Answer<i32> {
    buffer::with_message(handle, 0, |message| {
        let objects = message.and_then(|message| Some((message, message.first_section()?)));
        let Some((message, section)) = objects.filter(|(_, section)| section.element == Type::Object) else {
            return Err(Fault::Unusable { what: "buffer", why: "it has no objects" }.into());
        };
        let stream = message.secondary_len();
        let len = objects_len(stream);
        let at = room(&unit, position, len)?;
        let encoding = message.encoding();
        let mut lead = [0; SECTION_HEADER_LEN + STREAM_LEN];
        lead[..SECTION_HEADER_LEN].copy_from_slice(&UnitHeader { section, encoding }.emit());
        encoding.put_u32(&mut lead[SECTION_HEADER_LEN..], stream as u32);
        unit.put_octets(env, at, &lead);
        let end = at + lead.len() + stream;
        if stream > 0 {
            unit.copy_in(env, at + lead.len(), stream, message.secondary_octets(0, stream), false)?;
        }
        unit.put_octets(env, end, &[0; ALIGNMENT][..at + len - end]);
        Ok((at + len) as i32)
    })
}

/// Loads a section of objects into a buffer for reading. Returns the position behind it.
pub(crate) fn unpack_objects(env: &mut Env, unit: Array, position: i32, handle: i64) -> Answer<i32> {
    let at = aligned(&unit, position)?;
    let UnitHeader { section, encoding } = header(env, &unit, at)?;
    let SectionHeader { element, count } = section;
    if element != Type::Object {
        let (position, found) = (at as u64, count as u64);
        return Err(
            BufferError::UnitSection { position, found, element, room: found, wanted: Type::Object }.into()
        );
    }
    check_len(&unit, at, objects_len(0))?;
    let mut stream = [0; STREAM_LEN];
    unit.get_octets(env, at + SECTION_HEADER_LEN, &mut stream);
    let stream = encoding.get_u32(&stream) as usize;
    let len = objects_len(stream);
    check_len(&unit, at, len)?;
    let primary = PrimaryHeader { encoding, primary_len: SECTION_HEADER_LEN };
    let secondary = SecondaryHeader { secondary_len: stream, pair: 0 };
    let headers = [primary.emit(), section.emit(encoding), secondary.emit(encoding)].concat();
    let mut message: Vec<u8> = reserved(headers.len() + stream)?;
    message.extend(&headers);
    message.resize(headers.len() + stream, 0);
    unit.get_octets(env, at + SECTION_HEADER_LEN + STREAM_LEN, &mut message[headers.len()..]);
    buffer::reading(handle, 0, |reader| Ok(reader.load(&message)?))?;
    Ok((at + len) as i32)
}
