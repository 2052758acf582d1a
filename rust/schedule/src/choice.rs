//! Choice of the algorithm of a call.
//!
//! Each call has a table. The first row that is possible and suits the case wins, unless a variable names
//! another possible one. A case has only what all ranks know alike, but for alltoallv, whose algorithms match
//! each other. Limits follow MPICH's, measured on networks; `KIB` are octets.

use crate::error::ChoiceError;
use crate::group::Group;
use crate::operation::Operation;
use crate::placement::{Placement, Sites};

const KIB: usize = 1 << 10;
/// Octets of the longest vector that a rank publishes in a slot. The engine checks that slots have this room.
pub const LONG_SLOT: usize = 32 * KIB;

/// Call that an algorithm is chosen for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Ranks of the group.
    pub(crate) ranks: u32,
    /// Whether all of them run on one machine.
    pub(crate) is_intra_node: bool,
    /// Whether each rank publishes short vectors in slots.
    pub(crate) has_slots: bool,
    /// Whether they run in several sites.
    pub(crate) has_sites: bool,
    /// Whether sites are combined in the order of all ranks.
    pub(crate) is_in_order: bool,
    /// Octets of one vector (bcast and the reductions), of one block (gather, scatter, alltoall), of all
    /// blocks (allgather).
    pub(crate) octets: usize,
    /// Whether all blocks have the same length.
    pub(crate) is_uniform: bool,
    /// Units of the vector of a reduction.
    pub(crate) units: usize,
    /// As in [`Operation`].
    pub(crate) is_commutative: bool,
    /// As in [`Operation`].
    pub(crate) is_exact: bool,
    /// As in [`Operation`].
    pub(crate) is_divisible: bool,
}

impl Case {
    /// A call that moves elements.
    pub(crate) fn new(group: Group, octets: usize) -> Case {
        let ranks = group.size;
        Case {
            ranks,
            is_intra_node: false,
            has_slots: false,
            has_sites: false,
            is_in_order: false,
            octets,
            is_uniform: true,
            units: 0,
            is_commutative: true,
            is_exact: true,
            is_divisible: true,
        }
    }

    /// A call that combines vectors.
    pub(crate) fn of_reduction(group: Group, count: usize, operation: Operation, element_len: usize) -> Case {
        let Operation { unit, is_commutative, is_exact, is_divisible } = operation;
        let units = count / unit;
        Case { units, is_commutative, is_exact, is_divisible, ..Case::new(group, count * element_len) }
    }
}

/// Algorithms of bcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bcast {
    /// Between the leaders of the sites, then within each site.
    Hierarchical,
    /// The root sends to all.
    Linear,
    /// Down a tree.
    Binomial,
    /// Parts of the vector down a tree, then around the ring.
    ScatterRing,
}

/// Algorithms of gather and scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rooted {
    /// By way of the leader of each site.
    Hierarchical,
    /// Each rank exchanges one message with the root.
    Linear,
    /// Along a tree.
    Binomial,
}

/// Algorithms of allgather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allgather {
    /// Between the leaders of the sites, before and behind within each site.
    Hierarchical,
    /// All blocks from their ranks.
    Direct,
    /// Exchanges of all blocks at doubled distances.
    RecursiveDoubling,
    /// Blocks of the following ranks from doubled distances.
    Bruck,
    /// One block at a time around the ring.
    Ring,
}

/// Algorithms of alltoall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alltoall {
    /// All blocks to all ranks.
    Direct,
    /// Blocks in common messages, by the powers of two in their distance.
    Bruck,
    /// All sends, then all receives.
    Shifted,
    /// A send and a receive at a time.
    Pairwise,
}

/// Algorithms of reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    /// Within each site, then between their leaders.
    Hierarchical,
    /// Whole vectors to one rank.
    Direct,
    /// Parts of the vector to all ranks, then from these to one.
    DirectBlocks,
    /// Whole vectors up a tree.
    Binomial,
    /// Parts of the vector at all ranks, then up a tree.
    Rabenseifner,
}

/// Algorithms of allreduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allreduce {
    /// Within each site, between their leaders, and within each site again.
    Hierarchical,
    /// Whole vectors to all ranks, which all combine them.
    Direct,
    /// To one rank up a tree, then down the tree. Each combination is done once, so its failure reaches all.
    ReduceBcast,
    /// Parts of the vector to all ranks, then from these to all.
    DirectBlocks,
    /// Exchanges of whole vectors.
    RecursiveDoubling,
    /// Parts of the vector around the ring, twice.
    Ring,
    /// Parts of the vector at all ranks, then exchanges of them.
    Rabenseifner,
}

/// Algorithms of reduce_scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReduceScatter {
    /// Whole vectors to all ranks. Each combines its block of them in the order of a tree.
    WholeVectors,
    /// Each block to its rank, which combines them in the order of a tree.
    Direct,
    /// Exchanges of halves of the vector.
    RecursiveHalving,
    /// Each block to its rank.
    Pairwise,
    /// Reduction to rank 0, then scatter.
    ReduceScatterv,
}

type Condition = fn(&Case) -> bool;

/// Row of a table: an algorithm, its name, when it is possible, and when it suits.
struct Row<A>(A, &'static str, Condition, Condition);

const ALWAYS: Condition = |_| true;
const NEVER: Condition = |_| false;
const DIVISIBLE: Condition = |c| c.is_divisible;
/// Between ranks of one machine. Each rank sends to each other one, so there must not be too many.
const INTRA_NODE: Condition = |c| c.is_intra_node && c.ranks <= 64;
/// Vectors that each rank publishes in a slot, and of which each other one reads all octets.
const PUBLISHED: Condition = |c| c.has_slots && c.ranks as usize * c.octets <= 16 * KIB;
/// In several sites.
const SITES: Condition = |c| c.has_sites;
/// Of parts of the vectors, in any order of the ranks.
const IN_ANY_ORDER: Condition = |c| c.is_divisible && c.is_commutative;
/// Whole vectors, of which parts would be short, or may not be combined.
const IN_ONE: Condition = |c| c.ranks <= 2 || c.units < c.ranks as usize || !IN_ANY_ORDER(c);

const BCAST: [Row<Bcast>; 4] = [
    Row(Bcast::Hierarchical, "hierarchical", SITES, ALWAYS),
    Row(Bcast::Linear, "linear", ALWAYS, INTRA_NODE),
    Row(Bcast::Binomial, "binomial", ALWAYS, |c| c.octets <= 12 * KIB || c.ranks < 8),
    Row(Bcast::ScatterRing, "scatter-ring", ALWAYS, ALWAYS),
];

/// For gather and scatter. The v-calls are linear: only the root knows the lengths.
const ROOTED: [Row<Rooted>; 3] = [
    Row(Rooted::Hierarchical, "hierarchical", SITES, |c| c.octets <= 16 * KIB),
    Row(Rooted::Binomial, "binomial", ALWAYS, |c| c.octets <= 16 * KIB && !INTRA_NODE(c)),
    Row(Rooted::Linear, "linear", ALWAYS, ALWAYS),
];

const ALLGATHER: [Row<Allgather>; 5] = [
    Row(Allgather::Hierarchical, "hierarchical", SITES, ALWAYS),
    Row(Allgather::Direct, "direct", ALWAYS, INTRA_NODE),
    Row(
        Allgather::RecursiveDoubling,
        "recursive-doubling",
        |c| c.ranks.is_power_of_two(),
        |c| c.octets < 80 * KIB,
    ),
    Row(Allgather::Bruck, "bruck", ALWAYS, |c| c.octets < 80 * KIB),
    Row(Allgather::Ring, "ring", ALWAYS, ALWAYS),
];

const ALLTOALL: [Row<Alltoall>; 4] = [
    Row(
        Alltoall::Direct,
        "direct",
        |c| c.is_uniform,
        |c| c.has_slots && c.ranks as usize * c.octets <= LONG_SLOT,
    ),
    Row(Alltoall::Bruck, "bruck", |c| c.is_uniform, |c| c.octets <= 256 && c.ranks >= 8 && !INTRA_NODE(c)),
    Row(Alltoall::Shifted, "shifted", ALWAYS, |c| c.octets <= 32 * KIB || INTRA_NODE(c)),
    Row(Alltoall::Pairwise, "pairwise", ALWAYS, ALWAYS),
];

const REDUCE: [Row<Reduce>; 5] = [
    Row(Reduce::Hierarchical, "hierarchical", |c| SITES(c) && IN_ANY_ORDER(c), ALWAYS),
    Row(Reduce::Direct, "direct", DIVISIBLE, |c| INTRA_NODE(c) && (c.octets <= 8 * KIB || IN_ONE(c))),
    Row(Reduce::DirectBlocks, "direct-blocks", DIVISIBLE, INTRA_NODE),
    Row(Reduce::Binomial, "binomial", ALWAYS, |c| c.octets <= 2 * KIB || IN_ONE(c)),
    Row(Reduce::Rabenseifner, "rabenseifner", DIVISIBLE, ALWAYS),
];

/// Those that combine at several ranks do so in one order, so that results have the same bits on every
/// transport. The ring has another one, and is never chosen.
const ALLREDUCE: [Row<Allreduce>; 7] = [
    Row(
        Allreduce::Hierarchical,
        "hierarchical",
        |c| SITES(c) && c.is_divisible,
        |c| c.is_exact || c.is_in_order,
    ),
    Row(Allreduce::ReduceBcast, "reduce-bcast", ALWAYS, |c| !c.is_divisible),
    Row(Allreduce::Direct, "direct", DIVISIBLE, PUBLISHED),
    Row(Allreduce::DirectBlocks, "direct-blocks", DIVISIBLE, |c| INTRA_NODE(c) && c.octets > 8 * KIB),
    Row(Allreduce::RecursiveDoubling, "recursive-doubling", ALWAYS, |c| c.octets <= 8 * KIB || IN_ONE(c)),
    Row(Allreduce::Rabenseifner, "rabenseifner", DIVISIBLE, ALWAYS),
    Row(Allreduce::Ring, "ring", IN_ANY_ORDER, NEVER),
];

const REDUCE_SCATTER: [Row<ReduceScatter>; 5] = [
    Row(ReduceScatter::WholeVectors, "whole-vectors", DIVISIBLE, |c| c.has_slots && c.octets <= LONG_SLOT),
    Row(ReduceScatter::Direct, "direct", DIVISIBLE, |c| {
        INTRA_NODE(c) && (c.octets > 8 * KIB || c.ranks <= 4)
    }),
    Row(ReduceScatter::RecursiveHalving, "recursive-halving", IN_ANY_ORDER, |c| c.octets < 512 * KIB),
    Row(ReduceScatter::Pairwise, "pairwise", IN_ANY_ORDER, ALWAYS),
    Row(ReduceScatter::ReduceScatterv, "reduce-scatterv", ALWAYS, ALWAYS),
];

/// Algorithms that replace those of the tables where they are possible. All ranks must have the same.
///
/// - `MPJDEV_COLL_BCAST`: `hierarchical`, `linear`, `binomial`, `scatter-ring`
/// - `MPJDEV_COLL_GATHER`, `MPJDEV_COLL_SCATTER`: `hierarchical`, `binomial`, `linear`
/// - `MPJDEV_COLL_ALLGATHER`: `hierarchical`, `direct`, `recursive-doubling`, `bruck`, `ring`
/// - `MPJDEV_COLL_ALLTOALL`: `direct`, `bruck`, `shifted`, `pairwise`
/// - `MPJDEV_COLL_REDUCE`: `hierarchical`, `direct`, `direct-blocks`, `binomial`, `rabenseifner`
/// - `MPJDEV_COLL_ALLREDUCE`: `hierarchical`, `reduce-bcast`, `direct`, `direct-blocks`,
///   `recursive-doubling`, `rabenseifner`, `ring`
/// - `MPJDEV_COLL_REDUCE_SCATTER`: `whole-vectors`, `direct`, `recursive-halving`, `pairwise`,
///   `reduce-scatterv`
///
/// `ALLGATHER` is for allgatherv, too, and `ALLTOALL` for alltoallv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices<'a> {
    placement: &'a Placement,
    bcast: Option<Bcast>,
    gather: Option<Rooted>,
    scatter: Option<Rooted>,
    allgather: Option<Allgather>,
    alltoall: Option<Alltoall>,
    reduce: Option<Reduce>,
    allreduce: Option<Allreduce>,
    reduce_scatter: Option<ReduceScatter>,
}

impl Default for Choices<'_> {
    /// The algorithms of the tables, for ranks that are apart.
    fn default() -> Self {
        Choices {
            placement: &Placement::Apart,
            bcast: None,
            gather: None,
            scatter: None,
            allgather: None,
            alltoall: None,
            reduce: None,
            allreduce: None,
            reduce_scatter: None,
        }
    }
}

impl Choices<'_> {
    /// The algorithms that variables name. `value` returns the value of a variable, if it is set.
    ///
    /// # Errors
    /// A value that is no algorithm of the call.
    pub fn from_variables(value: impl Fn(&str) -> Option<String>) -> Result<Self, ChoiceError> {
        let value = &value;
        Ok(Choices {
            placement: &Placement::Apart,
            bcast: named(&BCAST, "MPJDEV_COLL_BCAST", value)?,
            gather: named(&ROOTED, "MPJDEV_COLL_GATHER", value)?,
            scatter: named(&ROOTED, "MPJDEV_COLL_SCATTER", value)?,
            allgather: named(&ALLGATHER, "MPJDEV_COLL_ALLGATHER", value)?,
            alltoall: named(&ALLTOALL, "MPJDEV_COLL_ALLTOALL", value)?,
            reduce: named(&REDUCE, "MPJDEV_COLL_REDUCE", value)?,
            allreduce: named(&ALLREDUCE, "MPJDEV_COLL_ALLREDUCE", value)?,
            reduce_scatter: named(&REDUCE_SCATTER, "MPJDEV_COLL_REDUCE_SCATTER", value)?,
        })
    }

    /// The same choices for a group in these places.
    #[must_use]
    pub fn placed(self, placement: &Placement) -> Choices<'_> {
        Choices { placement, ..self }
    }

    /// The sites of a hierarchical algorithm.
    ///
    /// # Panics
    /// There are none, so no hierarchical algorithm was possible.
    pub(crate) fn sites(&self) -> &Sites {
        self.placement.sites().expect("a hierarchical algorithm has sites")
    }

    pub(crate) fn bcast(&self, case: &Case) -> Bcast {
        self.choose(&BCAST, self.bcast, case)
    }

    pub(crate) fn gather(&self, case: &Case) -> Rooted {
        self.choose(&ROOTED, self.gather, case)
    }

    pub(crate) fn scatter(&self, case: &Case) -> Rooted {
        self.choose(&ROOTED, self.scatter, case)
    }

    pub(crate) fn allgather(&self, case: &Case) -> Allgather {
        self.choose(&ALLGATHER, self.allgather, case)
    }

    pub(crate) fn alltoall(&self, case: &Case) -> Alltoall {
        self.choose(&ALLTOALL, self.alltoall, case)
    }

    pub(crate) fn reduce(&self, case: &Case) -> Reduce {
        self.choose(&REDUCE, self.reduce, case)
    }

    pub(crate) fn allreduce(&self, case: &Case) -> Allreduce {
        self.choose(&ALLREDUCE, self.allreduce, case)
    }

    pub(crate) fn reduce_scatter(&self, case: &Case) -> ReduceScatter {
        self.choose(&REDUCE_SCATTER, self.reduce_scatter, case)
    }

    fn choose<A: Copy + PartialEq>(&self, table: &[Row<A>], wanted: Option<A>, case: &Case) -> A {
        let sites = self.placement.sites();
        let case = &Case {
            is_intra_node: matches!(self.placement, Placement::OneMachine { .. }),
            has_slots: matches!(self.placement, Placement::OneMachine { has_slots: true }),
            has_sites: sites.is_some(),
            is_in_order: sites.is_some_and(|sites| sites.is_in_order),
            ..*case
        };
        let possible = || table.iter().filter(|Row(_, _, is_possible, _)| is_possible(case));
        let row = possible().find(|Row(algorithm, ..)| wanted == Some(*algorithm));
        let row = row.or_else(|| possible().find(|Row(.., suits)| suits(case)));
        row.expect("some row is possible and suits in each case").0
    }
}

/// The algorithm that a variable names.
fn named<A: Copy>(
    table: &[Row<A>],
    variable: &'static str,
    value: &impl Fn(&str) -> Option<String>,
) -> Result<Option<A>, ChoiceError> {
    let Some(value) = value(variable) else { return Ok(None) };
    match table.iter().find(|Row(_, name, ..)| *name == value) {
        Some(Row(algorithm, ..)) => Ok(Some(*algorithm)),
        None => {
            let known = table.iter().map(|Row(_, name, ..)| *name).collect();
            Err(ChoiceError { variable, value, known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(ranks: u32, octets: usize) -> Case {
        Case { units: octets / 4, ..Case::new(Group { rank: 0, size: ranks }, octets) }
    }

    #[test]
    fn every_case_has_an_algorithm() {
        let choices = Choices::default();
        let flags = [false, true];
        for (ranks, octets) in (1..20).flat_map(|ranks| (0..24).map(move |k| (ranks, (1usize << k) - 1))) {
            for (is_uniform, (is_commutative, is_divisible)) in flags
                .into_iter()
                .flat_map(|u| flags.into_iter().flat_map(move |c| flags.map(|d| (u, (c, d)))))
            {
                let case = Case { is_uniform, is_commutative, is_divisible, ..case(ranks, octets) };
                choices.bcast(&case);
                choices.gather(&case);
                choices.scatter(&case);
                choices.allgather(&case);
                choices.alltoall(&case);
                let in_rank_order = [Reduce::Binomial, Reduce::Rabenseifner];
                assert!(in_rank_order.contains(&choices.reduce(&case)));
                assert_ne!(choices.allreduce(&case), Allreduce::Ring);
                let is_once = choices.allreduce(&case) == Allreduce::ReduceBcast;
                assert_eq!(is_once, !is_divisible, "{case:?}");
                let whole = choices.allreduce(&case) == Allreduce::RecursiveDoubling;
                assert!(whole || is_once || is_commutative, "{case:?}");
                let whole = choices.reduce_scatter(&case) == ReduceScatter::ReduceScatterv;
                assert_eq!(whole, !(is_commutative && is_divisible), "{case:?}");
            }
        }
    }

    #[test]
    fn algorithms_change_at_the_limits() {
        let choices = Choices::default();
        assert_eq!(choices.bcast(&case(8, 12 << 10)), Bcast::Binomial);
        assert_eq!(choices.bcast(&case(8, (12 << 10) + 1)), Bcast::ScatterRing);
        assert_eq!(choices.bcast(&case(7, 1 << 24)), Bcast::Binomial);
        assert_eq!(choices.gather(&case(9, 16 << 10)), Rooted::Binomial);
        assert_eq!(choices.scatter(&case(9, (16 << 10) + 1)), Rooted::Linear);
        assert_eq!(choices.allgather(&case(8, (80 << 10) - 1)), Allgather::RecursiveDoubling);
        assert_eq!(choices.allgather(&case(9, (80 << 10) - 1)), Allgather::Bruck);
        assert_eq!(choices.allgather(&case(8, 80 << 10)), Allgather::Ring);
        assert_eq!(choices.alltoall(&case(8, 256)), Alltoall::Bruck);
        assert_eq!(choices.alltoall(&case(7, 256)), Alltoall::Shifted);
        assert_eq!(choices.alltoall(&Case { is_uniform: false, ..case(8, 256) }), Alltoall::Shifted);
        assert_eq!(choices.alltoall(&case(8, 257)), Alltoall::Shifted);
        assert_eq!(choices.alltoall(&case(8, (32 << 10) + 1)), Alltoall::Pairwise);
        assert_eq!(choices.reduce(&case(8, 2 << 10)), Reduce::Binomial);
        assert_eq!(choices.reduce(&case(8, (2 << 10) + 4)), Reduce::Rabenseifner);
        assert_eq!(choices.reduce(&Case { units: 7, ..case(8, 1 << 20) }), Reduce::Binomial);
        assert_eq!(choices.allreduce(&case(8, 8 << 10)), Allreduce::RecursiveDoubling);
        assert_eq!(choices.allreduce(&case(8, (8 << 10) + 4)), Allreduce::Rabenseifner);
        assert_eq!(choices.allreduce(&case(8, 1 << 20)), Allreduce::Rabenseifner);
        assert_eq!(choices.allreduce(&case(9, 1 << 20)), Allreduce::Rabenseifner);
        assert_eq!(choices.allreduce(&case(2, 1 << 20)), Allreduce::RecursiveDoubling);
        assert_eq!(choices.reduce_scatter(&case(9, (512 << 10) - 1)), ReduceScatter::RecursiveHalving);
        assert_eq!(choices.reduce_scatter(&case(9, 512 << 10)), ReduceScatter::Pairwise);
    }

    #[test]
    fn ranks_of_one_machine_exchange_directly() {
        let choices = Choices::default().placed(&Placement::OneMachine { has_slots: false });
        assert_eq!(choices.bcast(&case(8, 1 << 20)), Bcast::Linear);
        assert_eq!(choices.gather(&case(8, 8)), Rooted::Linear);
        assert_eq!(choices.allgather(&case(8, 8)), Allgather::Direct);
        assert_eq!(choices.alltoall(&case(8, 8)), Alltoall::Shifted);
        assert_eq!(choices.alltoall(&case(8, 1 << 20)), Alltoall::Shifted);
        assert_eq!(choices.reduce(&case(8, 8 << 10)), Reduce::Direct);
        assert_eq!(choices.reduce(&case(8, (8 << 10) + 4)), Reduce::DirectBlocks);
        assert_eq!(choices.allreduce(&case(8, 8 << 10)), Allreduce::RecursiveDoubling);
        assert_eq!(choices.allreduce(&case(8, (8 << 10) + 4)), Allreduce::DirectBlocks);
        assert_eq!(choices.reduce_scatter(&case(8, 8)), ReduceScatter::RecursiveHalving);
        assert_eq!(choices.reduce_scatter(&case(8, 1 << 20)), ReduceScatter::Direct);
        assert_eq!(choices.reduce_scatter(&case(4, 8)), ReduceScatter::Direct);
        assert_eq!(choices.bcast(&case(65, 1 << 20)), Bcast::ScatterRing);
        assert_eq!(choices.allgather(&case(65, 8)), Allgather::Bruck);
    }

    #[test]
    fn ranks_with_slots_exchange_short_vectors_directly() {
        let choices = Choices::default().placed(&Placement::OneMachine { has_slots: true });
        assert_eq!(choices.allreduce(&case(8, 2 << 10)), Allreduce::Direct);
        assert_eq!(choices.allreduce(&case(8, (2 << 10) + 4)), Allreduce::RecursiveDoubling);
        assert_eq!(choices.allreduce(&case(32, 512)), Allreduce::Direct);
        assert_eq!(choices.allreduce(&case(32, 516)), Allreduce::RecursiveDoubling);
        assert_eq!(choices.allreduce(&Case { is_divisible: false, ..case(8, 8) }), Allreduce::ReduceBcast);
        assert_eq!(choices.alltoall(&case(8, 4 << 10)), Alltoall::Direct);
        assert_eq!(choices.alltoall(&case(8, (4 << 10) + 1)), Alltoall::Shifted);
        assert_eq!(choices.alltoall(&case(2, 16 << 10)), Alltoall::Direct);
        assert_eq!(choices.reduce_scatter(&case(8, 32 << 10)), ReduceScatter::WholeVectors);
        assert_eq!(choices.reduce_scatter(&case(8, (32 << 10) + 4)), ReduceScatter::Direct);
        assert_eq!(choices.alltoall(&Case { is_uniform: false, ..case(8, 8) }), Alltoall::Shifted);
    }

    #[test]
    fn ranks_of_several_sites_exchange_by_way_of_leaders() {
        let sites = |site_of: &[u32]| Placement::of_sites(site_of);
        let (in_order, others) = (sites(&[0, 0, 1, 1]), sites(&[0, 1, 1, 1]));
        let choices = Choices::default().placed(&in_order);
        assert_eq!(choices.bcast(&case(4, 8)), Bcast::Hierarchical);
        assert_eq!(choices.gather(&case(4, 16 << 10)), Rooted::Hierarchical);
        assert_eq!(choices.scatter(&case(4, (16 << 10) + 1)), Rooted::Linear);
        assert_eq!(choices.allgather(&case(4, 1 << 20)), Allgather::Hierarchical);
        assert_eq!(choices.reduce(&case(4, 8)), Reduce::Hierarchical);
        assert_eq!(choices.reduce(&Case { is_commutative: false, ..case(4, 8) }), Reduce::Binomial);
        let rounded = Case { is_exact: false, ..case(4, 8) };
        assert_eq!(choices.allreduce(&rounded), Allreduce::Hierarchical);
        assert_eq!(choices.allreduce(&Case { is_divisible: false, ..rounded }), Allreduce::ReduceBcast);
        let choices = Choices::default().placed(&others);
        assert_eq!(choices.allreduce(&rounded), Allreduce::RecursiveDoubling);
        assert_eq!(choices.allreduce(&case(4, 8)), Allreduce::Hierarchical);
    }

    #[test]
    fn variables_name_algorithms_where_these_are_possible() {
        let set = |variable: &str| (variable == "MPJDEV_COLL_ALLREDUCE").then(|| "ring".to_owned());
        let choices = Choices::from_variables(set).expect("an algorithm");
        assert_eq!(choices, Choices { allreduce: Some(Allreduce::Ring), ..Choices::default() });
        assert_eq!(choices.allreduce(&case(2, 4)), Allreduce::Ring);
        let whole = Case { is_divisible: false, ..case(2, 4) };
        assert_eq!(choices.allreduce(&whole), Allreduce::ReduceBcast);
        assert_eq!(Choices::from_variables(|_| None), Ok(Choices::default()));
    }

    #[test]
    fn unknown_algorithm_is_refused_with_those_of_the_call() {
        let set = |variable: &str| (variable == "MPJDEV_COLL_GATHER").then(|| "ring".to_owned());
        let error = Choices::from_variables(set).expect_err("not an algorithm of gather").to_string();
        assert_eq!(
            error,
            "MPJDEV_COLL_GATHER=ring: not an algorithm of this call; it has hierarchical, binomial, linear"
        );
    }
}
