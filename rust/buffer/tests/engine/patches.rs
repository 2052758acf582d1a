//! Strided patches against nested loops.

use mpjdev_buffer::patch::{Run, check_indices, check_range, volume};
use mpjdev_buffer::{BufferError, Patch};
use proptest::prelude::*;

use crate::naive::positions;

fn walk(patch: &Patch, limit: usize) -> Vec<i64> {
    let elements = |r: Run| (0..r.count as i64).map(move |i| r.start as i64 + i * r.stride);
    patch.runs(limit).flat_map(elements).collect()
}

fn walk_blocks(patch: &Patch, limit: usize) -> Vec<i64> {
    let mut elements = Vec::new();
    for block in patch.blocks(limit) {
        assert!((1..=limit).contains(&(block.rows * block.count)), "{block:?} of at most {limit}");
        for row in 0..block.rows as i64 {
            let start = block.start as i64 + row * block.row_stride;
            elements.extend((0..block.count as i64).map(|i| start + i * block.stride));
        }
    }
    elements
}

fn dims() -> impl Strategy<Value = Vec<(i32, i32)>> {
    prop::collection::vec((0..5i32, -9..10i32), 0..7)
}

proptest! {
    #![proptest_config(crate::cases(500))]

    /// Proves that the odometer visits the elements of nested loops in their order, for any length of runs.
    #[test]
    fn runs_visit_the_elements_of_nested_loops(
        dims in dims(), spare in 0..4i64, limit in prop_oneof![1..9usize, 9..90usize]
    ) {
        let (extents, strides): (Vec<i32>, Vec<i32>) = dims.into_iter().unzip();
        let lowest = positions(0, &extents, &strides).into_iter().min().unwrap_or(0);
        let offset = spare - lowest;
        let wanted = positions(offset, &extents, &strides);
        let length = wanted.iter().max().map_or(0, |&h| h as usize + 1);
        let patch = Patch::check(offset, &extents, &strides, length).unwrap();
        prop_assert_eq!(patch.count(), wanted.len());
        prop_assert_eq!(&walk(&patch, usize::MAX), &wanted);
        prop_assert_eq!(&walk(&patch, limit), &wanted);
        prop_assert_eq!(&walk_blocks(&patch, usize::MAX), &wanted);
        prop_assert_eq!(&walk_blocks(&patch, limit), &wanted);
        prop_assert!(patch.runs(limit).all(|r| r.count >= 1 && r.count <= limit));
    }

    /// Proves that a patch is accepted exactly when all its elements are inside.
    #[test]
    fn patch_is_refused_exactly_when_an_element_is_outside(
        dims in dims(), offset in -3..60i64, length in 0..80usize
    ) {
        let (extents, strides): (Vec<i32>, Vec<i32>) = dims.into_iter().unzip();
        let elements = positions(offset, &extents, &strides);
        let inside = offset >= 0 && elements.iter().all(|&e| e >= 0 && e < length as i64);
        prop_assert_eq!(Patch::check(offset, &extents, &strides, length).is_ok(), inside);
    }

    /// Proves that index checks name the first wrong index, at any position and with any base.
    #[test]
    fn index_checks_name_the_first_index_outside(
        indices in prop::collection::vec(-4..12i32, 0..9), base in -3..4i64, length in 0..10usize
    ) {
        let wrong = indices.iter().position(|&i| !(0..length as i64).contains(&(i64::from(i) + base)));
        match (check_indices(&indices, base, length, 5), wrong) {
            (Ok(()), None) => {}
            (Err(BufferError::Index { index, position, length: l }), Some(at)) => {
                prop_assert_eq!(index, i64::from(indices[at]) + base);
                prop_assert_eq!(position, 5 + at as u64);
                prop_assert_eq!(l, length as u64);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// Proves that dimensions that continue one another become one run. Speed depends on it.
#[test]
fn dimensions_that_continue_one_another_merge() {
    let runs = |offset, extents: &[i32], strides: &[i32]| -> Vec<Run> {
        Patch::check(offset, extents, strides, 100_000).expect("inside").runs(usize::MAX).collect()
    };
    let whole = Run { start: 5, stride: 1, count: 24 };
    assert_eq!(runs(5, &[2, 3, 4], &[12, 4, 1]), [whole], "a whole block is one run");
    assert_eq!(runs(5, &[2, 1, 3, 1, 4], &[12, 77, 4, -9, 1]), [whole], "extents of 1 do not matter");
    assert_eq!(runs(5, &[24], &[1]), [whole]);
    let down = Run { start: 50, stride: -2, count: 6 };
    assert_eq!(runs(50, &[2, 3], &[-6, -2]), [down], "downwards too");
    let rows: Vec<Run> = (0..3).map(|r| Run { start: 100 * r, stride: 1, count: 20 }).collect();
    assert_eq!(runs(0, &[3, 4, 5], &[100, 5, 1]), rows, "the inner two merge, the outer one does not");
    let planes: Vec<Run> = [(0, 0), (0, 1), (1, 0), (1, 1)]
        .map(|(a, b)| Run { start: a * 40 + b * 9, stride: 2, count: 4 })
        .into();
    assert_eq!(runs(0, &[2, 2, 4], &[40, 9, 2]), planes);
    let one = runs(7, &[], &[]);
    assert_eq!((one.len(), one[0].start, one[0].count), (1, 7, 1), "rank 0 is one element");
    assert_eq!(runs(7, &[4, 0], &[1, 1]), [], "no element, no run");
}

/// Proves that six dimensions, which need an allocation, are counted like two.
#[test]
fn rank_six_without_merging_counts_like_nested_loops() {
    let (extents, strides) = ([2, 3, 2, 3, 2, 2], [1000, -150, 40, 9, 100, 3]);
    let patch = Patch::check(300, &extents, &strides, 3000).expect("inside");
    assert_eq!(walk(&patch, usize::MAX), positions(300, &extents, &strides));
    assert_eq!(walk_blocks(&patch, 5), positions(300, &extents, &strides));
}

/// Proves that extreme numbers give errors with the true numbers, not overflow.
#[test]
fn extreme_extents_strides_and_offsets_are_refused_with_numbers() {
    let check = |offset, extents: &[i32], strides: &[i32]| Patch::check(offset, extents, strides, 10);
    assert_eq!(volume(&[i32::MAX]), Ok(i32::MAX as usize));
    assert_eq!(volume(&[65536, 32768]), Err(BufferError::Volume { max: 2_147_483_647 }));
    assert_eq!(volume(&[i32::MAX; 6]), Err(BufferError::Volume { max: 2_147_483_647 }));
    assert_eq!(volume(&[i32::MAX, i32::MAX, 0]), Ok(0), "nothing times anything is nothing");
    assert_eq!(volume(&[0, -1]), Err(BufferError::Negative { what: "extent", value: -1 }));
    assert_eq!(volume(&[]), Ok(1));
    assert!(matches!(check(-1, &[0], &[1]), Err(BufferError::Negative { what: "offset", value: -1 })));
    assert!(matches!(
        check(i64::MAX, &[2], &[1]),
        Err(BufferError::Patch { highest, .. }) if highest == i128::from(i64::MAX) + 1
    ));
    assert!(matches!(
        check(3, &[i32::MAX], &[i32::MIN]),
        Err(BufferError::Patch { lowest, highest: 3, length: 10 })
            if lowest == 3 - 2_147_483_646 * 2_147_483_648
    ));
    assert!(check(i64::MAX, &[0], &[1]).is_ok(), "a patch without elements is inside anything");
    assert!(check(9, &[i32::MAX], &[0]).is_ok(), "one element, very often");
    assert!(check(10, &[], &[]).is_err(), "rank 0 is one element, here behind the end");
}

/// Proves that a range or an index with a huge base or offset is outside: the sum does not wrap.
#[test]
fn extreme_bases_and_ranges_are_outside() {
    for base in [i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1] {
        for index in [i32::MIN, -1, 0, 1, i32::MAX] {
            assert!(check_indices(&[index], base, 10, 0).is_err(), "{index} {base}");
        }
    }
    assert!(check_range("array", i64::MAX, 1, 10).is_err());
    assert!(check_range("array", 1, i64::MAX, 10).is_err());
    assert!(check_range("array", i64::MAX, i64::MAX, 10).is_err());
    assert!(check_range("array", i64::MIN, i64::MIN, 10).is_err());
    assert!(check_range("array", 10, 0, 10).is_ok());
    assert!(check_range("array", 10, 1, 10).is_err());
    assert!(check_range("array", 11, 0, 10).is_err());
    assert!(check_range("array", 0, 10, 10).is_ok());
    assert!(check_range("array", 0, 0, 0).is_ok());
}
