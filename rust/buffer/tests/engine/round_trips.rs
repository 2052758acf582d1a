//! Random sections, written and read in each form, against the naive encoder.

use std::ops::Range;

use mpjdev_buffer::capacity::section_capacity;
use mpjdev_buffer::{BufferError, Patch, ReadBuffer, Type, WriteBuffer};
use proptest::prelude::*;

use crate::ledger::Ledger;
use crate::naive::{Message, Naive, mix, octets_of, positions};

/// Form in which a section is written or read. The two may differ.
#[derive(Clone, Copy, Debug)]
enum Way {
    Whole,
    Indexed,
    Strided,
}

/// One section of a random message.
#[derive(Clone, Debug)]
struct Plan {
    element: Type,
    extents: Vec<i32>,
    write: Way,
    read: Way,
    write_strides: Vec<i32>,
    read_strides: Vec<i32>,
    base: i64,
    seed: u64,
}

impl Plan {
    fn count(&self) -> usize {
        self.extents.iter().product::<i32>() as usize
    }
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Whole), Just(Way::Indexed), Just(Way::Strided)]
}

fn plans(sections: Range<usize>) -> impl Strategy<Value = Vec<Plan>> {
    let element = (0..9usize).prop_map(|k| Type::ALL[k]);
    let strides = || prop::collection::vec(-7..8i32, 6);
    let rank = prop_oneof![Just(0..1i32), Just(1..30), Just(1..9), Just(1..5), Just(0..4)];
    let extents = rank
        .prop_flat_map(|extent| prop::collection::vec(extent, 0..7))
        .prop_filter("at most 800 elements", |e| e.iter().map(|&n| i64::from(n)).product::<i64>() <= 800);
    let plan = (element, extents, ways(), ways(), strides(), strides(), -5..6i64, any::<u64>()).prop_map(
        |(element, extents, write, read, write_strides, read_strides, base, seed)| Plan {
            element,
            extents,
            write,
            read,
            write_strides,
            read_strides,
            base,
            seed,
        },
    );
    prop::collection::vec(plan, sections)
}

macro_rules! per_type {
    ($plan:expr, $objects:expr, $function:ident($($argument:expr),*)) => {
        match $plan.element {
            Type::Byte => $function::<i8>($($argument),*),
            Type::Char => $function::<u16>($($argument),*),
            Type::Short => $function::<i16>($($argument),*),
            Type::Boolean => $function::<bool>($($argument),*),
            Type::Int => $function::<i32>($($argument),*),
            Type::Long => $function::<i64>($($argument),*),
            Type::Float => $function::<f32>($($argument),*),
            Type::Double => $function::<f64>($($argument),*),
            Type::Object => $objects,
        }
    };
}

/// The elements of a section, and their array with the index of each one.
fn source<T: Naive>(plan: &Plan) -> (Vec<T>, i64, Vec<i64>) {
    let count = plan.count() as u64;
    let (offset, places) = match plan.write {
        Way::Whole => (0, (0..count as i64).collect()),
        Way::Indexed => (0, (0..count).map(|k| (mix(plan.seed ^ k) % (count + 3)) as i64).collect()),
        Way::Strided => strided(&plan.extents, &plan.write_strides),
    };
    let length = places.iter().max().map_or(0, |&h| h as u64 + 1);
    ((0..length).map(|k| T::sample(plan.seed.wrapping_add(k))).collect(), offset, places)
}

/// Offset and element numbers of a patch moved so that it starts at 0.
fn strided(extents: &[i32], strides: &[i32]) -> (i64, Vec<i64>) {
    let strides = &strides[..extents.len()];
    let offset = -positions(0, extents, strides).into_iter().min().unwrap_or(0);
    (offset, positions(offset, extents, strides))
}

fn values<T: Naive>(plan: &Plan) -> Vec<T> {
    let (array, _, places) = source::<T>(plan);
    places.iter().map(|&p| array[p as usize]).collect()
}

fn expect<T: Naive>(plan: &Plan, message: &mut Message) {
    message.section(&values::<T>(plan));
}

fn indices(places: &[i64], base: i64) -> Vec<i32> {
    places.iter().map(|&p| (p - base) as i32).collect()
}

fn write<T: Naive>(plan: &Plan, buffer: &mut WriteBuffer) -> Result<(), BufferError> {
    let (array, offset, places) = source::<T>(plan);
    match plan.write {
        Way::Whole => buffer.write(&array),
        Way::Indexed => buffer.gather(&array, plan.base, &indices(&places, plan.base)),
        Way::Strided => {
            let strides = &plan.write_strides[..plan.extents.len()];
            let patch = Patch::check(offset, &plan.extents, strides, array.len()).expect("inside");
            buffer.str_gather(&array, &patch)
        }
    }
}

fn read<T: Naive>(plan: &Plan, buffer: &mut ReadBuffer) {
    let wanted = values::<T>(plan);
    let places: Vec<i64> = match plan.read {
        Way::Whole => (0..wanted.len() as i64).collect(),
        Way::Indexed => (0..wanted.len() as u64).map(|k| (mix(plan.seed ^ k) % 900) as i64).collect(),
        Way::Strided => strided(&plan.extents, &plan.read_strides).1,
    };
    let length = places.iter().max().map_or(0, |&h| h as usize + 1);
    let mut dest: Vec<T> = (0..length as u64).map(|k| T::sample(!plan.seed ^ k)).collect();
    let mut naive = dest.clone();
    for (&place, &value) in places.iter().zip(&wanted) {
        naive[place as usize] = value;
    }
    match plan.read {
        Way::Whole => buffer.read(&mut dest).expect("it is there"),
        Way::Indexed => buffer.scatter(&mut dest, plan.base, &indices(&places, plan.base)).expect("inside"),
        Way::Strided => {
            let (offset, _) = strided(&plan.extents, &plan.read_strides);
            let strides = &plan.read_strides[..plan.extents.len()];
            let patch = Patch::check(offset, &plan.extents, strides, dest.len()).expect("inside");
            buffer.str_scatter(&mut dest, &patch).expect("it is there");
        }
    }
    let patterns = |array: &[T]| -> Vec<Vec<u8>> { array.iter().map(|v| v.pattern()).collect() };
    assert_eq!(patterns(&dest), patterns(&naive), "the rest of the destination is as it was");
}

fn objects(plan: &Plan, buffer: &mut WriteBuffer) -> Result<(), BufferError> {
    buffer.stage(Type::Object, plan.count())?;
    buffer.commit();
    Ok(())
}

fn whole(plans: &[Plan], big: bool, secondary: Vec<u8>) -> Message {
    let mut message = Message::new(big);
    for plan in plans {
        let count = plan.count() as u32;
        per_type!(plan, message.header(8, count), expect(plan, &mut message));
    }
    message.secondary = secondary;
    message
}

fn put_secondary(buffer: &mut WriteBuffer, octets: &[u8]) {
    for chunk in octets.chunks(7) {
        buffer.stage_secondary(chunk.len()).expect("memory").put_octets(chunk);
        buffer.grow_secondary(chunk.len());
    }
}

proptest! {
    #![proptest_config(crate::cases(400))]

    /// Proves that every form of write gives the octets of the format, with the capacity of the formula and
    /// with more.
    #[test]
    fn engine_writes_the_octets_of_the_naive_encoder(
        plans in plans(0..6), big: bool, secondary in prop::collection::vec(any::<u8>(), 0..40), spare in 0..60usize
    ) {
        let wanted = whole(&plans, big, secondary);
        let need: u64 = plans.iter().map(|p| section_capacity(p.element, p.count() as u32)).sum();
        prop_assert_eq!(need, wanted.primary.len() as u64);
        let capacity = need as usize + spare;
        let mut buffer = WriteBuffer::new(Ledger::new(), capacity as i64, wanted.order()).unwrap();
        for plan in &plans {
            per_type!(plan, objects(plan, &mut buffer), write(plan, &mut buffer)).unwrap();
        }
        put_secondary(&mut buffer, &wanted.secondary);
        prop_assert_eq!(buffer.section_count(), plans.len());
        let (p, s) = (wanted.primary.len(), wanted.secondary.len());
        let message = buffer.finish().unwrap();
        prop_assert_eq!(octets_of(message), wanted.octets());
        prop_assert_eq!(message.is_split(), s > 0 && p + s >= capacity.next_multiple_of(8));
        prop_assert_eq!(message.first_len(), if message.is_split() { 16 + p } else { 16 + p + s });
    }

    /// Proves that with 8 octets less than the formula the last section is refused, and nothing changes.
    #[test]
    fn one_unit_less_refuses_the_last_section_and_changes_nothing(plans in plans(1..6), big: bool) {
        let need: u64 = plans.iter().map(|p| section_capacity(p.element, p.count() as u32)).sum();
        let before = whole(&plans[..plans.len() - 1], big, Vec::new());
        let mut buffer = WriteBuffer::new(Ledger::new(), need as i64 - 8, before.order()).unwrap();
        for (k, plan) in plans.iter().enumerate() {
            let result = per_type!(plan, objects(plan, &mut buffer), write(plan, &mut buffer));
            let overflow = matches!(result, Err(BufferError::Overflow { capacity, .. }) if capacity == need - 8);
            prop_assert_eq!(overflow, k + 1 == plans.len(), "{:?}", result);
        }
        prop_assert_eq!(octets_of(buffer.finish().unwrap()), before.octets());
    }

    /// Proves that the reader returns the elements of the naive encoder, in each form and byte order, twice.
    #[test]
    fn engine_reads_the_octets_of_the_naive_encoder(
        plans in plans(0..6), big: bool, secondary in prop::collection::vec(any::<u8>(), 0..40)
    ) {
        let message = whole(&plans, big, secondary);
        let mut buffer = ReadBuffer::new(Ledger::new(), message.primary.len() as i64).unwrap();
        buffer.load(&message.octets()).unwrap();
        prop_assert_eq!(buffer.section_count(), Ok(plans.len()));
        for _ in 0..2 {
            for plan in &plans {
                let skip = |buffer: &mut ReadBuffer| {
                    buffer.stage(Type::Object, plan.count()).map(|_| ()).unwrap();
                    buffer.commit();
                };
                per_type!(plan, skip(&mut buffer), read(plan, &mut buffer));
            }
            prop_assert_eq!(buffer.sections_read(), plans.len());
            prop_assert_eq!(buffer.peek(), Ok(None));
            buffer.reset();
        }
    }

    /// Proves that a logical message can be copied out in pieces of any size, from any offset.
    #[test]
    fn octets_of_a_message_are_copied_in_any_pieces(
        plans in plans(0..6), secondary in prop::collection::vec(any::<u8>(), 0..20), spare in 0..30i64, step in 1..30usize
    ) {
        let wanted = whole(&plans, true, secondary);
        let capacity = wanted.primary.len() as i64 + spare;
        let mut buffer = WriteBuffer::new(Ledger::new(), capacity, wanted.order()).unwrap();
        for plan in &plans {
            per_type!(plan, objects(plan, &mut buffer), write(plan, &mut buffer)).unwrap();
        }
        put_secondary(&mut buffer, &wanted.secondary);
        let message = buffer.finish().unwrap();
        let (octets, mut at) = (wanted.octets(), 0);
        while at < octets.len() {
            let mut piece = vec![0xcc; step];
            let n = message.copy_logical(at, &mut piece);
            prop_assert_eq!(n, step.min(octets.len() - at));
            prop_assert_eq!(&piece[..n], &octets[at..at + n]);
            at += n;
        }
        prop_assert_eq!(message.copy_logical(at, &mut [0; 4]), 0);
        prop_assert_eq!(message.copy_logical(at + 100, &mut [0; 4]), 0);
    }
}
