//! Groups and topologies compared with models that try everything.

use mpjdev_group::cart::Cart;
use mpjdev_group::group::{self, Comparison};
use mpjdev_group::{GroupError, PROC_NULL, TopologyError, UNDEFINED, dims, graph};

/// All lists of different members below `limit`.
fn groups(limit: i32) -> Vec<Vec<i32>> {
    let mut all = vec![Vec::new()];
    let mut begin = 0;
    for _ in 0..limit {
        let longer: Vec<Vec<i32>> = all[begin..]
            .iter()
            .flat_map(|group| (0..limit).filter(|m| !group.contains(m)).map(|m| [&group[..], &[m]].concat()))
            .collect();
        begin = all.len();
        all.extend(longer);
    }
    all
}

#[test]
fn all_pairs_of_small_groups_combine_as_lists() {
    for a in &groups(4) {
        for b in &groups(4) {
            let both: Vec<i32> = a.iter().copied().filter(|m| b.contains(m)).collect();
            let only: Vec<i32> = a.iter().copied().filter(|m| !b.contains(m)).collect();
            let new: Vec<i32> = b.iter().copied().filter(|m| !a.contains(m)).collect();
            assert_eq!(group::intersection(a, b), both);
            assert_eq!(group::difference(a, b), only);
            assert_eq!(group::union(a, b), [a.clone(), new.clone()].concat());
            let compared = match (a == b, only.is_empty() && new.is_empty()) {
                (true, _) => Comparison::Identical,
                (false, true) => Comparison::Similar,
                (false, false) => Comparison::Unequal,
            };
            assert_eq!(group::compare(a, b), compared, "{a:?} {b:?}");
            let ranks: Vec<i32> = (0..a.len() as i32).rev().chain([PROC_NULL]).collect();
            let rank_in = |m: &i32| b.iter().position(|other| other == m).map_or(UNDEFINED, |at| at as i32);
            let translated: Vec<i32> = a.iter().rev().map(rank_in).chain([PROC_NULL]).collect();
            assert_eq!(group::translate(a, &ranks, b), Ok(translated));
        }
    }
}

#[test]
fn all_choices_of_ranks_include_and_exclude() {
    let group = [7, 3, 9, 1];
    for ranks in groups(4) {
        let included: Vec<i32> = ranks.iter().map(|&rank| group[rank as usize]).collect();
        let excluded: Vec<i32> = group.iter().copied().filter(|m| !included.contains(m)).collect();
        assert_eq!(group::incl(&group, &ranks), Ok(included));
        assert_eq!(group::excl(&group, &ranks), Ok(excluded));
    }
}

#[test]
fn all_small_ranges_choose_the_ranks_of_a_loop() {
    let group: Vec<i32> = (0..8).map(|rank| 100 - rank).collect();
    for (first, last, stride) in
        (-2..10).flat_map(|f| (-2..12).flat_map(move |l| (-3..=3).map(move |s| (f, l, s))))
    {
        let range = [[first, last, stride]];
        let ranks = (0..40).map(|k| first + k * stride);
        let ranks: Vec<i32> =
            ranks.take_while(|r| if stride > 0 { *r <= last } else { *r >= last }).collect();
        let found = (group::range_incl(&group, &range), group::range_excl(&group, &range));
        if stride == 0 {
            assert_eq!(found.0, Err(GroupError::Stride { position: 0 }));
        } else if let Some(&bad) = ranks.iter().find(|rank| !(0..8).contains(*rank)) {
            let outside = GroupError::Rank { rank: bad.into(), position: 0, size: 8 };
            assert_eq!(found, (Err(outside.clone()), Err(outside)));
        } else {
            assert_eq!(found, (group::incl(&group, &ranks), group::excl(&group, &ranks)), "{range:?}");
        }
    }
}

#[test]
fn last_rank_of_a_range_need_not_be_in_the_group() {
    let group: Vec<i32> = (0..8).collect();
    assert_eq!(group::range_incl(&group, &[[5, 8, 2]]), Ok(vec![5, 7]));
    assert_eq!(group::range_incl(&group, &[[7, -1, -3], [0, 0, 5]]), Ok(vec![7, 4, 1, 0]));
}

#[test]
fn bad_ranks_of_groups_are_named() {
    let group = [4, 5, 6];
    let outside = |rank, position| GroupError::Rank { rank, position, size: 3 };
    assert_eq!(group::incl(&group, &[0, 3]), Err(outside(3, 1)));
    assert_eq!(group::excl(&group, &[-1]), Err(outside(-1, 0)));
    assert_eq!(group::incl(&group, &[1, 2, 1]), Err(GroupError::Duplicate { rank: 1, position: 2 }));
    assert_eq!(group::excl(&group, &[1, 1]), Err(GroupError::Duplicate { rank: 1, position: 1 }));
    let twice = group::range_incl(&group, &[[0, 1, 1], [1, 2, 1]]);
    assert_eq!(twice, Err(GroupError::Duplicate { rank: 1, position: 1 }));
    assert_eq!(group::translate(&group, &[0, 7], &[4]), Err(outside(7, 1)));
    assert_eq!(group::translate(&group, &[UNDEFINED], &[4]), Err(outside(-1, 0)));
}

/// Calls `each` with all factorisations.
fn every(nodes: i32, count: usize, most: i32, each: &mut impl FnMut(&[i32]), factors: &mut Vec<i32>) {
    if count == 0 {
        if nodes == 1 {
            each(factors);
        }
        return;
    }
    for factor in (1..=nodes.min(most)).filter(|d| nodes % d == 0) {
        factors.push(factor);
        every(nodes / factor, count - 1, factor, each, factors);
        factors.pop();
    }
}

/// Difference and largest factor of the best factorisation.
fn most_balanced(nodes: i32, count: usize) -> (i32, i32) {
    let mut best = (i32::MAX, i32::MAX);
    let mut each = |f: &[i32]| best = best.min((f[0] - f[f.len() - 1], f[0]));
    every(nodes, count, nodes, &mut each, &mut Vec::new());
    best
}

#[test]
fn dimensions_of_all_small_numbers_are_the_most_balanced() {
    for nodes in 1..=1000 {
        for count in 1..=4 {
            let wanted = most_balanced(nodes, count);
            let mut found = vec![0; count];
            dims::create(nodes, &mut found).expect("nothing is fixed");
            assert_eq!(found.iter().product::<i32>(), nodes);
            assert!(found.is_sorted_by(|a, b| a >= b), "{found:?}");
            assert_eq!((found[0] - found[count - 1], found[0]), wanted, "{nodes} in {count}: {found:?}");
        }
    }
}

#[test]
fn pairs_of_dimensions_are_the_best_of_all() {
    for nodes in 1001..=5000 {
        let mut found = [0, 0];
        dims::create(nodes, &mut found).expect("nothing is fixed");
        assert_eq!((found[0] - found[1], found[0]), most_balanced(nodes, 2), "{nodes}");
    }
}

#[test]
fn dimensions_of_the_largest_numbers_take_no_search_of_all() {
    for (nodes, count) in
        [(i32::MAX, 3), (1_745_944_200, 4), (1_745_944_200, 40), (1 << 30, 10), (46_337 * 46_337, 2)]
    {
        let mut found = vec![0; count];
        dims::create(nodes, &mut found).expect("nothing is fixed");
        assert_eq!(found.iter().map(|f| i64::from(*f)).product::<i64>(), i64::from(nodes));
    }
}

#[test]
fn fixed_dimensions_stay() {
    let created = |nodes, mut dims: Vec<i32>| dims::create(nodes, &mut dims).map(|()| dims);
    assert_eq!(created(6, vec![0, 0]), Ok(vec![3, 2]));
    assert_eq!(created(6, vec![2, 0]), Ok(vec![2, 3]));
    assert_eq!(created(6, vec![0, 0, 0]), Ok(vec![3, 2, 1]));
    assert_eq!(created(7, vec![0, 0]), Ok(vec![7, 1]));
    assert_eq!(created(24, vec![0, 2, 0]), Ok(vec![4, 2, 3]));
    assert_eq!(created(6, vec![2, 3]), Ok(vec![2, 3]));
    assert_eq!(created(6, vec![4, 0]), Err(TopologyError::Indivisible { nodes: 6, product: 4 }));
    assert_eq!(created(0, vec![0]), Err(TopologyError::Indivisible { nodes: 0, product: 1 }));
    assert_eq!(created(6, vec![0, -2]), Err(TopologyError::Extent { dimension: 1, extent: -2 }));
}

/// All extents of up to three dimensions with all periods.
fn carts() -> Vec<(Vec<i32>, Vec<bool>)> {
    let dims = [vec![], vec![5], vec![1], vec![3, 4], vec![2, 1], vec![2, 3, 4], vec![1, 1, 3]];
    let periods = |n: usize| (0..1 << n).map(move |bits| (0..n).map(|d| bits >> d & 1 == 1).collect());
    dims.into_iter().flat_map(|dims| periods(dims.len()).map(move |p: Vec<bool>| (dims.clone(), p))).collect()
}

/// The coordinates of all ranks, the last one varying fastest.
fn all_coordinates(dims: &[i32]) -> Vec<Vec<i32>> {
    dims.iter().fold(vec![vec![]], |all, &extent| {
        all.iter().flat_map(|before| (0..extent).map(move |c| [&before[..], &[c]].concat())).collect()
    })
}

#[test]
fn ranks_and_coordinates_of_all_small_topologies_correspond() {
    for (dims, periods) in carts() {
        let cart = Cart::new(64, &dims, &periods).expect("small");
        let all = all_coordinates(&dims);
        assert_eq!(cart.nodes() as usize, all.len());
        for (rank, coordinates) in (0..).zip(&all) {
            assert_eq!(cart.coordinates(rank), Ok(coordinates.clone()));
            assert_eq!(cart.rank(coordinates), Ok(rank));
        }
        let nodes = cart.nodes();
        for rank in [-1, nodes] {
            assert_eq!(cart.coordinates(rank), Err(TopologyError::Rank { rank, nodes }));
        }
    }
}

#[test]
fn shifts_of_all_small_topologies_move_step_by_step() {
    for (dims, periods) in carts() {
        let cart = Cart::new(64, &dims, &periods).expect("small");
        let all = all_coordinates(&dims);
        let neighbour = |coordinates: &[i32], d: usize, by: i32| {
            let mut moved = coordinates.to_vec();
            for _ in 0..by.abs() {
                moved[d] += by.signum();
                if periods[d] && moved[d] == dims[d] {
                    moved[d] = 0;
                } else if periods[d] && moved[d] < 0 {
                    moved[d] = dims[d] - 1;
                }
            }
            all.iter().position(|other| *other == moved).map_or(PROC_NULL, |rank| rank as i32)
        };
        for (rank, coordinates) in (0..).zip(&all) {
            for d in 0..dims.len() {
                for by in -9..=9 {
                    let wanted = (neighbour(coordinates, d, -by), neighbour(coordinates, d, by));
                    assert_eq!(cart.shift(rank, d as i32, by), Ok(wanted), "{dims:?} {periods:?} {by}");
                }
            }
        }
    }
}

#[test]
fn shift_by_the_largest_displacement_wraps() {
    let cart = Cart::new(8, &[7], &[true]).expect("small");
    let largest = i32::MAX % 7;
    assert_eq!(cart.shift(0, 0, i32::MAX), Ok((7 - largest, largest)));
    let smallest = i64::from(i32::MIN);
    let moved = |by: i64| by.rem_euclid(7) as i32;
    assert_eq!(cart.shift(0, 0, i32::MIN), Ok((moved(-smallest), moved(smallest))));
    let direction = |direction| Err(TopologyError::Direction { direction, dimensions: 1 });
    assert_eq!((cart.shift(0, 1, 1), cart.shift(0, -1, 1)), (direction(1), direction(-1)));
}

#[test]
fn parts_of_all_small_topologies_are_grids_of_the_rest() {
    for (dims, periods) in carts() {
        let cart = Cart::new(64, &dims, &periods).expect("small");
        for bits in 0..1 << dims.len() {
            let remains: Vec<bool> = (0..dims.len()).map(|d| bits >> d & 1 == 1).collect();
            let some = |values: &[i32], wanted: bool| -> Vec<i32> {
                values.iter().zip(&remains).filter(|(_, r)| **r == wanted).map(|(v, _)| *v).collect()
            };
            let (kept, dropped) = (some(&dims, true), some(&dims, false));
            let (kept_all, dropped_all) = (all_coordinates(&kept), all_coordinates(&dropped));
            for (rank, coordinates) in (0..).zip(&all_coordinates(&dims)) {
                let at = |all: &[Vec<i32>], own: Vec<i32>| {
                    all.iter().position(|c| *c == own).expect("a node") as i32
                };
                let color = at(&dropped_all, some(coordinates, false));
                let key = at(&kept_all, some(coordinates, true));
                assert_eq!(cart.part(rank, &remains), Ok((color, key)));
            }
        }
    }
}

#[test]
fn coordinates_wrap_in_periodic_dimensions_alone() {
    let cart = Cart::new(12, &[3, 4], &[true, false]).expect("small");
    assert_eq!((cart.rank(&[-1, 2]), cart.rank(&[7, 0])), (Ok(10), Ok(4)));
    let outside = |coordinate| Err(TopologyError::Coordinate { dimension: 1, coordinate, extent: 4 });
    assert_eq!((cart.rank(&[0, 4]), cart.rank(&[0, -1])), (outside(4), outside(-1)));
    let entries = TopologyError::Dimensions { what: "coordinates", found: 1, dimensions: 2 };
    assert_eq!(cart.rank(&[0]), Err(entries));
}

#[test]
fn bad_topologies_are_refused() {
    let refused = |size, dims: &[i32], periods: &[bool]| Cart::new(size, dims, periods).map(drop);
    assert_eq!(refused(9, &[3, 0], &[true; 2]), Err(TopologyError::Extent { dimension: 1, extent: 0 }));
    assert_eq!(refused(5, &[3, 2], &[true; 2]), Err(TopologyError::TooLarge { nodes: 6, size: 5 }));
    let many = refused(i32::MAX, &[i32::MAX; 5], &[true; 5]);
    assert!(matches!(many, Err(TopologyError::TooLarge { .. })), "{many:?}");
    let entries = TopologyError::Dimensions { what: "periods", found: 1, dimensions: 2 };
    assert_eq!(refused(9, &[3, 2], &[true]), Err(entries));
    assert_eq!(refused(1, &[], &[]), Ok(()));
}

#[test]
fn graphs_are_checked_entry_by_entry() {
    assert_eq!(graph::check(4, &[2, 3, 4, 6], &[1, 3, 0, 3, 0, 2]), Ok(4));
    assert_eq!(graph::check(9, &[], &[]), Ok(0));
    assert_eq!(graph::check(3, &[0, 0, 0], &[]), Ok(3));
    assert_eq!(graph::check(1, &[1, 1], &[0]), Err(TopologyError::TooLarge { nodes: 2, size: 1 }));
    assert_eq!(graph::check(9, &[2, 1], &[0, 0]), Err(TopologyError::Index { position: 1, value: 1 }));
    assert_eq!(graph::check(9, &[-1], &[]), Err(TopologyError::Index { position: 0, value: -1 }));
    assert_eq!(graph::check(9, &[1, 2], &[0]), Err(TopologyError::Edges { last: 2, edges: 1 }));
    for node in [-1, 2] {
        let no_node = TopologyError::Node { position: 1, node, nodes: 2 };
        assert_eq!(graph::check(9, &[1, 2], &[0, node]), Err(no_node));
    }
}
