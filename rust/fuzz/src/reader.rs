//! Target of a read buffer under any sequence of calls.

use mpjdev_buffer::{BufferError, Element, Patch, ReadBuffer, Type};

use crate::counting_source::CountingSource;

/// Elements of the destination arrays.
const ARRAY: usize = 24;

/// Runs calls on a read buffer with a message.
///
/// The first octet is the number of octets that are calls; the rest is the message. Invariants: memory is
/// limited by the input. A failed call changes neither position nor destination. Every section is read once,
/// in order, and a damaged section is never skipped.
pub fn reader(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let (calls, octets) = rest.split_at(rest.len().min(count.into()));
    let source = CountingSource::new();
    let mut buffer = ReadBuffer::new(source.clone(), 1 << 30).expect("a capacity");
    let loaded = buffer.load(octets);
    source.check(octets.len());
    if loaded.is_err() {
        assert!(buffer.message().is_none());
    }
    let sections = buffer.section_count();
    for &call in calls {
        let before = State::of(&buffer);
        let done = step(&mut buffer, call);
        let after = State::of(&buffer);
        assert_eq!(buffer.section_count(), sections, "reading does not change the message");
        if let Ok(n) = sections {
            assert!(after.sections_read <= n, "{} sections read of {n}", after.sections_read);
            assert!(after.next.is_ok(), "all sections are sound");
        }
        if done.is_err() {
            assert_eq!(before, after, "a failed call moved something");
        }
    }
}

#[derive(Debug, PartialEq)]
struct State {
    next: Result<Option<mpjdev_buffer::SectionHeader>, BufferError>,
    sections_read: usize,
}

impl State {
    fn of(buffer: &ReadBuffer) -> State {
        State { next: buffer.peek(), sections_read: buffer.sections_read() }
    }
}

/// Runs one call: the low four bits are the call, the high four the type or the number of elements.
fn step(buffer: &mut ReadBuffer, call: u8) -> Result<(), BufferError> {
    let n = usize::from(call >> 4);
    let next = buffer.peek().ok().flatten();
    match call & 15 {
        0 => typed(buffer, Type::ALL[n % 9], n),
        1 => next.map_or(Ok(()), |h| typed(buffer, h.element, h.count)),
        2 => next.map_or(Ok(()), |h| typed(buffer, h.element, h.count + 1)),
        3 => next.map_or(Ok(()), |h| typed(buffer, Type::ALL[n % 9], h.count)),
        4 => scatter::<i32>(buffer, n),
        5 => scatter::<i8>(buffer, n),
        6 => strided::<f64>(buffer, n),
        7 => strided::<bool>(buffer, n),
        // Stages without a commit.
        8..=13 => next.map_or(Ok(()), |h| buffer.stage(h.element, h.count).map(|_| ())),
        14 if n == 0 => {
            buffer.reset();
            Ok(())
        }
        _ => {
            let before = State::of(buffer);
            let result = buffer.stage(Type::ALL[n % 9], usize::MAX).map(|_| ());
            assert_eq!(before, State::of(buffer));
            result
        }
    }
}

fn typed(buffer: &mut ReadBuffer, element: Type, count: usize) -> Result<(), BufferError> {
    match element {
        Type::Byte => read::<i8>(buffer, count),
        Type::Char => read::<u16>(buffer, count),
        Type::Short => read::<i16>(buffer, count),
        Type::Boolean => read::<bool>(buffer, count),
        Type::Int => read::<i32>(buffer, count),
        Type::Long => read::<i64>(buffer, count),
        Type::Float => read::<f32>(buffer, count),
        Type::Double => read::<f64>(buffer, count),
        Type::Object => {
            assert_eq!(buffer.stage(Type::Object, count)?.len(), 0);
            buffer.commit();
            Ok(())
        }
    }
}

fn read<T: Element>(buffer: &mut ReadBuffer, count: usize) -> Result<(), BufferError> {
    // The stage checks the count before the vector is allocated.
    let place = buffer.stage(T::TYPE, count)?;
    assert_eq!(place.len(), count * T::TYPE.size());
    let mut dest = vec![T::default(); count];
    buffer.read(&mut dest)
}

fn untouched<T: Element>(array: &[T]) {
    let encoding = mpjdev_buffer::Encoding::Big;
    assert!(array.iter().all(|v| v.to_octets(encoding) == T::default().to_octets(encoding)));
}

fn scatter<T: Element>(buffer: &mut ReadBuffer, n: usize) -> Result<(), BufferError> {
    let mut dest = [T::default(); ARRAY];
    let indices: Vec<i32> = (0..n as i32).map(|k| k * 5 - 3).collect();
    let result = buffer.scatter(&mut dest, 3, &indices);
    if result.is_err() {
        untouched(&dest);
    }
    result
}

fn strided<T: Element>(buffer: &mut ReadBuffer, n: usize) -> Result<(), BufferError> {
    let mut dest = [T::default(); ARRAY];
    let n = n as i32;
    let result = Patch::check(11, &[n % 4, n / 4], &[-3, 2], ARRAY)
        .and_then(|patch| buffer.str_scatter(&mut dest, &patch));
    if result.is_err() {
        untouched(&dest);
    }
    result
}
