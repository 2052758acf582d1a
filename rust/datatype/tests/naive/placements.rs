//! Bounds and placements of random trees. A failure prints its seed.

use mpjdev_datatype::{Datatype, DatatypeError, Items, Placement};

use crate::model::Model;
use crate::trees::{INT, Trees};

/// Trees that are compared, fifty times as many with MPJDEV_SOAK.
fn trees() -> u64 {
    if std::env::var_os("MPJDEV_SOAK").is_some() { 1_000_000 } else { 20_000 }
}

/// The first `n` elements of a placement; of items in both ways.
pub(crate) fn positions(placement: &Placement, n: usize) -> Vec<i64> {
    match placement {
        Placement::Run { off, count } => (*off..off + n.min(*count)).map(|at| at as i64).collect(),
        Placement::Patch(patch) => {
            let runs = patch.blocks(7).first(n).flat_map(|b| (0..b.rows).map(move |row| b.row(row)));
            runs.flat_map(|run| (0..run.count as i64).map(move |k| run.start as i64 + k * run.stride))
                .collect()
        }
        Placement::Items(items) => {
            let by_runs: Vec<i64> = items.runs(n).flatten().map(|at| at as i64).collect();
            assert_eq!(by_index(items, n), by_runs, "indices differ from runs");
            by_runs
        }
    }
}

fn by_index(items: &Items, n: usize) -> Vec<i64> {
    let chunks = items.chunks(n);
    chunks.flat_map(|chunk| chunk.indices.iter().map(move |&i| chunk.base + i64::from(i))).collect()
}

fn compare_bounds(datatype: &Datatype, model: &Model) {
    let found = (datatype.size() as i64, i64::from(datatype.lb()), i64::from(datatype.ub()));
    assert_eq!(found, (model.elements(0, 1).len() as i64, model.lb(), model.ub()));
    assert_eq!(i64::from(datatype.extent()), model.ub() - model.lb());
    if datatype.size() > 0 {
        assert_eq!(datatype.base(), Some(INT));
    }
}

/// Places items so that they fit, mostly, and compares all elements and some shorter messages.
fn compare_placement(trees: &mut Trees, datatype: &Datatype, model: &Model) {
    let count = trees.number(0, 4);
    let wanted = model.elements(0, count);
    let low = wanted.iter().min().copied().unwrap_or(0);
    let high = wanted.iter().max().copied().unwrap_or(0);
    let offset = trees.number(-1, 3) - low;
    let length = (offset + high + trees.number(0, 3)).max(0);
    let wanted = model.elements(offset, count);
    let is_inside = wanted.iter().all(|at| (0..length).contains(at));
    match datatype.place(offset, count as i32, length as usize) {
        Ok(placement) => {
            assert!(is_inside, "elements outside are refused");
            assert_eq!(placement.count(), wanted.len());
            let all = wanted.len() as i64;
            let some: Vec<i64> =
                if all <= 40 { (0..=all).collect() } else { vec![trees.number(0, all), all - 1, all] };
            for n in some {
                assert_eq!(positions(&placement, n as usize), wanted[..n as usize], "the first {n}");
            }
        }
        Err(DatatypeError::Range { first, last, length: len }) => {
            assert!(!is_inside, "elements inside are accepted");
            let bounds = (low + offset, high + offset, length);
            assert_eq!((first as i64, last as i64, len as i64), bounds);
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn random_trees_equal_the_model() {
    for seed in 0..trees() {
        let result = std::panic::catch_unwind(|| {
            let mut trees = Trees::new(seed);
            let depth = trees.number(1, 5);
            let (datatype, model) = trees.tree(depth);
            compare_bounds(&datatype, &model);
            for _ in 0..3 {
                compare_placement(&mut trees, &datatype, &model);
            }
        });
        assert!(result.is_ok(), "tree of seed {seed}");
    }
}
