//! Reductions with the kernels of the predefined operations: the same bits at all ranks.

use mpjdev_reduction::{Element, Operator};
use mpjdev_schedule::{Choices, Group, Operation, Placement};
use mpjdev_sim::{Random, RankBlocks, run_schedules};

use crate::model::{Call, ELEMENT_LEN, Places};

/// Combines elements of 8 octets each.
fn combine(operator: Operator, element: Element, from: &[u64], into: &mut [u64], is_lower: bool) {
    let [from, mut octets] =
        [from, into].map(|words| words.iter().flat_map(|word| word.to_ne_bytes()).collect());
    let from: Vec<u8> = from;
    mpjdev_reduction::combine(operator, element, &from, &mut octets, is_lower);
    for (into, octets) in into.iter_mut().zip(octets.as_chunks().0) {
        *into = u64::from_ne_bytes(*octets);
    }
}

/// Numbers whose sums depend on their order, zeros of both signs, infinities, and NaNs with payloads.
fn double(random: &mut Random) -> u64 {
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-300];
    match random.up_to(19) {
        kind @ 0..6 => special[kind as usize].to_bits(),
        6 => 0x7ff8_0000_0000_0000 | random.up_to(1 << 40) | random.up_to(1) << 63,
        _ => (random.bits() as i64 as f64 / (1u64 << random.up_to(60)) as f64).to_bits(),
    }
}

/// Results on different transports have the same bits if all algorithms combine in one order.
#[test]
fn algorithms_that_the_table_chooses_combine_in_one_order() {
    let operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };
    let mix = |from: &[u64], into: &mut [u64], is_lower: bool| {
        for (from, into) in from.iter().zip(into) {
            let (left, right) = if is_lower { (*from, *into) } else { (*into, *from) };
            *into = (left.wrapping_mul(3) ^ right.wrapping_mul(5).rotate_left(7)) >> 1;
        }
    };
    let named = |name: &'static str| {
        Choices::from_variables(|variable| (variable == "MPJDEV_COLL_ALLREDUCE").then(|| name.to_owned()))
    };
    let names = ["recursive-doubling", "rabenseifner", "direct-blocks"];
    for (size, count) in (1..=33).flat_map(|size| [1, 7, 70].map(|count| (size, count))) {
        let inputs: Vec<RankBlocks> = (0..u64::from(size)).map(|rank| vec![vec![rank + 1; count]]).collect();
        let mut first = None;
        let mut random = Random::new(u64::from(size));
        // Sites in order, and others, for which the table chooses another algorithm.
        let sites: Vec<Placement> = (0..8).map(|_| Places::Sites.placement(size, &mut random)).collect();
        let hierarchical = sites.iter().map(|sites| ("the table", Choices::default().placed(sites)));
        let named = names.map(|name| (name, named(name).expect("an algorithm")));
        for (name, choices) in named.into_iter().chain(hierarchical) {
            let schedule = |rank| {
                mpjdev_schedule::allreduce(Group { rank, size }, count, operation, ELEMENT_LEN, &choices)
            };
            let schedules: Vec<_> = (0..size).map(schedule).collect();
            for output in run_schedules(&schedules, &inputs, &mix, &mut Random::new(1)) {
                let first = first.get_or_insert_with(|| output.clone());
                assert_eq!(output, *first, "{name} of {size} ranks");
            }
        }
    }
}

#[test]
fn all_ranks_get_the_same_bits() {
    let mut random = Random::new(7);
    for (size, operator) in (2..=17).flat_map(|size| Operator::ALL.map(|operator| (size, operator))) {
        let elements = [Element::Long, Element::Double].into_iter();
        for element in elements.filter(|element| operator.check(*element).is_ok()) {
            let unit = operator.unit();
            let operation = Operation { unit, is_commutative: true, is_exact: false, is_divisible: true };
            let count = unit * (1 + random.up_to(40) as usize);
            let word = |random: &mut Random| match element {
                Element::Double => double(random),
                // Ties are likely.
                _ => random.up_to(3),
            };
            let vector = |random: &mut Random| (0..count).map(|_| word(random)).collect();
            let inputs: Vec<RankBlocks> = (0..size).map(|_| vec![vector(&mut random)]).collect();
            for (choices, places) in Call::Allreduce.choices() {
                let placement = places.placement(size, &mut random);
                let choices = choices.placed(&placement);
                let schedules: Vec<_> = (0..size)
                    .map(|rank| {
                        let group = Group { rank, size };
                        mpjdev_schedule::allreduce(group, count, operation, ELEMENT_LEN, &choices)
                    })
                    .collect();
                let combine = |from: &[u64], into: &mut [u64], is_lower| {
                    combine(operator, element, from, into, is_lower);
                };
                let outputs = run_schedules(&schedules, &inputs, &combine, &mut random);
                for (rank, output) in outputs.iter().enumerate() {
                    assert_eq!(output, &outputs[0], "{operator} of {element} at rank {rank} of {size}");
                }
            }
        }
    }
}
