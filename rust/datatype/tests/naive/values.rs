//! Bounds that other implementations document, shapes, limits and errors.

use mpjdev_buffer::Type;
use mpjdev_datatype::{Base, Datatype, DatatypeError, Placement, Unit};

use crate::placements::positions;
use crate::trees::INT;

fn int() -> Datatype {
    Datatype::basic(INT)
}

fn bounds(datatype: &Datatype) -> (i32, i32, i32) {
    (datatype.lb(), datatype.ub(), datatype.extent())
}

fn structure(members: &[(i32, i32, Datatype)]) -> Result<Datatype, DatatypeError> {
    let blocks: Vec<i32> = members.iter().map(|m| m.0).collect();
    let displacements: Vec<i32> = members.iter().map(|m| m.1).collect();
    let types: Vec<Datatype> = members.iter().map(|m| m.2.clone()).collect();
    Datatype::structure(&blocks, &displacements, &types)
}

#[test]
fn marks_override_bounds() {
    let four = int().contiguous(4).expect("small");
    let upper = Datatype::upper_mark;
    let with_upper = structure(&[(1, 0, four.clone()), (1, 97, upper())]).expect("ints");
    assert_eq!(bounds(&with_upper), (0, 97, 97));
    let without = structure(&[(1, 65, four.clone()), (1, 97, int())]).expect("ints");
    assert_eq!(bounds(&without), (65, 98, 33));
    let both = structure(&[(2, 2, four), (1, -3, Datatype::lower_mark()), (1, 86, upper())]).expect("ints");
    assert_eq!((bounds(&both), both.size()), ((-3, 86, 89), 8));
    let repeated = both.contiguous(3).expect("small");
    assert_eq!(bounds(&repeated), (-3, 86 + 2 * 89, 3 * 89));
    let of_marks = structure(&[(1, -3, Datatype::lower_mark()), (1, 4, upper())]).expect("no elements");
    assert_eq!((bounds(&of_marks), of_marks.size(), of_marks.base()), ((-3, 4, 7), 0, None));
}

#[test]
fn outermost_of_several_marks_counts() {
    let marks = [(1, 5, Datatype::lower_mark()), (1, -2, Datatype::lower_mark()), (1, 0, int())];
    let uppers = [(1, 30, Datatype::upper_mark()), (1, 9, Datatype::upper_mark())];
    let all: Vec<_> = marks.into_iter().chain(uppers).collect();
    assert_eq!(bounds(&structure(&all).expect("ints")), (-2, 30, 32));
}

#[test]
fn empty_types_have_no_bounds() {
    let empty = int().contiguous(0).expect("small");
    assert_eq!((bounds(&empty), empty.size(), empty.base()), ((0, 0, 0), 0, Some(INT)));
    let no_members = structure(&[]).expect("nothing");
    assert_eq!((bounds(&no_members), no_members.base()), ((0, 0, 0), None));
    let with_empty = structure(&[(0, 50, int()), (3, 90, empty), (1, 7, int())]).expect("ints");
    assert_eq!(bounds(&with_empty), (7, 8, 1));
}

#[test]
fn items_without_elements_need_no_array() {
    let empty = int().contiguous(0).expect("small");
    for placed in [empty.place(-5, 9, 0), int().place(77, 0, 0)] {
        assert!(matches!(placed, Ok(Placement::Run { off: 0, count: 0 })), "{placed:?}");
    }
}

/// The first elements of a placement, and the name of its form.
fn shape(datatype: &Datatype, offset: i64, count: i32) -> (&'static str, Vec<i64>) {
    let placement = datatype.place(offset, count, 1 << 20).expect("inside");
    let name = match &placement {
        Placement::Run { .. } => "run",
        Placement::Patch(_) => "patch",
        Placement::Items(items) if items.has_short_runs() => "indices",
        Placement::Items(_) => "runs",
    };
    (name, positions(&placement, 6))
}

#[test]
fn shapes_are_as_simple_as_the_elements() {
    let run = int().vector(4, 2, 2, Unit::Extent).expect("small").contiguous(3).expect("small");
    assert_eq!(shape(&run, 5, 2), ("run", vec![5, 6, 7, 8, 9, 10]));
    let column = int().vector(3, 1, 10, Unit::Element).expect("small");
    assert_eq!(shape(&column, 1, 2), ("patch", vec![1, 11, 21, 22, 32, 42]));
    let regular = int().indexed(&[2, 2, 0, 2], &[9, 5, 77, 1], Unit::Extent).expect("small");
    assert_eq!(shape(&regular, 0, 1), ("patch", vec![9, 10, 5, 6, 1, 2]));
    let single = int().indexed(&[2, 1], &[4, 6], Unit::Extent).expect("small");
    assert_eq!(shape(&single, 0, 1), ("run", vec![4, 5, 6]));
    let short = int().indexed(&[1, 2], &[4, 0], Unit::Extent).expect("small");
    assert_eq!(shape(&short, 0, 2), ("indices", vec![4, 0, 1, 9, 5, 6]));
    let long = int().indexed(&[17, 16], &[40, 0], Unit::Extent).expect("small");
    assert_eq!(shape(&long, 0, 1), ("runs", vec![40, 41, 42, 43, 44, 45]));
}

#[test]
fn nest_of_five_dimensions_is_a_list() {
    let mut nest = int();
    for level in 1..=4 {
        nest = nest.vector(2, 1, 3 * level + 1, Unit::Extent).expect("small");
    }
    assert_eq!(shape(&nest, 0, 1).0, "patch");
    // One dimension more for the items of a message.
    assert_eq!(shape(&nest, 0, 2).0, "patch");
    let list = nest.vector(2, 1, 5, Unit::Extent).expect("small");
    assert_eq!(shape(&list, 0, 1).0, "indices");
}

#[test]
fn many_short_items_make_chunks_with_a_base_each() {
    let pair = int().indexed(&[1, 1, 1], &[0, 2, 1], Unit::Extent).expect("small");
    let placement = pair.place(7, 5000, 20_000).expect("inside");
    let wanted: Vec<i64> = (0..5000).flat_map(|k| [0, 2, 1].map(|at| 7 + 3 * k + at)).collect();
    assert_eq!(positions(&placement, usize::MAX), wanted);
    assert_eq!(positions(&placement, 14_999), wanted[..14_999]);
    let Placement::Items(items) = &placement else { panic!("{placement:?}") };
    assert_eq!(items.chunks(15_000).count(), 4);
}

#[test]
fn overlapping_elements_keep_their_order() {
    let overlapping = int().vector(3, 3, 2, Unit::Element).expect("small");
    assert_eq!(shape(&overlapping, 0, 1), ("patch", vec![0, 1, 2, 2, 3, 4]));
    let backwards = int().vector(3, 1, -1, Unit::Element).expect("small");
    assert_eq!((bounds(&backwards), shape(&backwards, 4, 1)), ((-2, 1, 3), ("patch", vec![4, 3, 2])));
}

#[test]
fn negative_arguments_are_refused_by_name() {
    let negative = |what| Err(DatatypeError::Negative { what, value: -1 });
    assert_eq!(int().contiguous(-1).map(drop), negative("count"));
    assert_eq!(int().vector(-1, 1, 1, Unit::Extent).map(drop), negative("count"));
    assert_eq!(int().vector(1, -1, 1, Unit::Extent).map(drop), negative("block length"));
    assert_eq!(int().indexed(&[1, -1], &[0, 0], Unit::Extent).map(drop), negative("block length"));
    assert_eq!(structure(&[(-1, 0, int())]).map(drop), negative("block length"));
    assert_eq!(int().place(0, -1, 9).map(drop), negative("count"));
}

#[test]
fn arrays_of_different_lengths_are_refused() {
    let lengths = |blocks, displacements, types| DatatypeError::Lengths { blocks, displacements, types };
    assert_eq!(int().indexed(&[1], &[0, 1], Unit::Extent).map(drop), Err(lengths(1, 2, 1)));
    let refused = Datatype::structure(&[1, 1], &[0, 1], &[int()]);
    assert_eq!(refused.map(drop), Err(lengths(2, 2, 1)));
}

#[test]
fn blocks_of_different_base_types_are_refused() {
    let double = Datatype::basic(Base::Element(Type::Double));
    let mixed = structure(&[(0, 0, double.clone()), (1, 0, int()), (1, 9, double.clone())]);
    let (wanted, found) = (INT, Base::Element(Type::Double));
    let mismatch = DatatypeError::BaseMismatch { block: 2, wanted, found };
    assert_eq!(mismatch.to_string(), "block 2 has elements of type double, the blocks before it of type int");
    assert_eq!(mixed.map(drop), Err(mismatch));
    let one = structure(&[(0, 0, int()), (1, 0, double.clone())]).expect("doubles");
    assert_eq!(one.base(), double.base());
}

#[test]
fn numbers_beyond_32_bits_are_refused() {
    let overflow = |what, value| Err(DatatypeError::Overflow { what, value });
    let large = int().contiguous(i32::MAX).expect("it fits");
    assert_eq!((large.size(), large.extent()), (i32::MAX as usize, i32::MAX));
    assert_eq!(large.contiguous(2).map(drop), overflow("size", 2 * i128::from(i32::MAX)));
    let apart = |stride| int().vector(2, 1, stride, Unit::Element);
    assert_eq!(apart(i32::MAX).map(drop), overflow("upper bound", 1 << 31));
    assert_eq!(bounds(&apart(i32::MAX - 1).expect("it fits")), (0, i32::MAX, i32::MAX));
    let low = int().indexed(&[1, 1], &[i32::MIN, 0], Unit::Extent);
    assert_eq!(low.map(drop), overflow("extent", 1 + (1i128 << 31)));
    let far = large.vector(i32::MAX, 1, i32::MAX, Unit::Extent);
    assert!(matches!(far, Err(DatatypeError::Overflow { what: "size", .. })), "{far:?}");
    let hidden = structure(&[(1, 0, large), (1, 0, Datatype::upper_mark())]).expect("no extent");
    let far = hidden.vector(2, 1, 5, Unit::Element);
    assert!(matches!(far, Err(DatatypeError::Overflow { what: "size", .. })), "{far:?}");
}

#[test]
fn elements_beyond_32_bits_behind_marks_are_refused() {
    let upper = structure(&[(1, 0, int()), (1, i32::MAX, Datatype::upper_mark())]).expect("an int");
    let marks = [(1, 0, upper), (1, 0, Datatype::lower_mark()), (1, 1, Datatype::upper_mark())];
    let narrow = structure(&marks[1..]).expect("no elements");
    let wide = marks[0].2.vector(3, 1, i32::MAX, Unit::Element);
    assert!(matches!(wide, Err(DatatypeError::Overflow { .. })), "{wide:?}");
    assert_eq!(bounds(&narrow), (0, 1, 1));
}

#[test]
fn lists_beyond_the_limit_are_refused() {
    let two = int().indexed(&[1, 2], &[4, 0], Unit::Extent).expect("small");
    let most = two.contiguous(1 << 21).expect("as many runs as allowed");
    assert_eq!(most.size(), 3 << 21);
    let refused = two.contiguous((1 << 21) + 1);
    assert_eq!(refused.map(drop), Err(DatatypeError::TooComplex { max: 1 << 22 }));
}

#[test]
fn more_elements_than_a_section_has_are_refused() {
    let million = int().contiguous(1 << 20).expect("small");
    let too_many = DatatypeError::TooMany { count: 1 << 11, size: 1 << 20, max: i32::MAX as usize };
    assert_eq!(million.place(0, 1 << 11, usize::MAX >> 1).map(drop), Err(too_many));
}

#[test]
fn elements_outside_the_array_are_refused_with_their_range() {
    let column = int().vector(3, 1, -4, Unit::Element).expect("small");
    let range = |first, last| Err(DatatypeError::Range { first, last, length: 20 });
    assert_eq!(column.place(7, 1, 20).map(drop), range(-1, 7));
    assert_eq!(column.place(20, 1, 20).map(drop), range(12, 20));
    assert!(column.place(8, 1, 20).is_ok() && column.place(19, 1, 20).is_ok());
    assert_eq!(int().place(i64::MAX, 1, 20).map(drop), range(i128::from(i64::MAX), i128::from(i64::MAX)));
    assert_eq!(int().place(i64::MIN, 1, 20).map(drop), range(i128::from(i64::MIN), i128::from(i64::MIN)));
}
