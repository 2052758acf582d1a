//! Calls with their inputs, the results that loops over all ranks give, and operations on elements.

use mpjdev_schedule::{Choices, Group, Operation, Placement, Schedule};
use mpjdev_sim::{Random, RankBlocks, UNSET, run_schedules};

/// Modulus of all arithmetic.
const PRIME: u64 = (1 << 31) - 1;
/// Octets of an element of the simulation.
pub(crate) const ELEMENT_LEN: usize = 8;

/// A call with the algorithms to try, in the order of [`Call::algorithms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
}

impl Call {
    /// Calls that move elements.
    pub(crate) const MOVES: [Call; 9] = [
        Call::Bcast,
        Call::Gather,
        Call::Gatherv,
        Call::Scatter,
        Call::Scatterv,
        Call::Allgather,
        Call::Allgatherv,
        Call::Alltoall,
        Call::Alltoallv,
    ];
    /// Calls that combine them.
    pub(crate) const REDUCTIONS: [Call; 4] = [Call::Reduce, Call::Allreduce, Call::ReduceScatter, Call::Scan];

    /// The variable that names an algorithm, and all of them.
    fn algorithms(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Call::Bcast => ("MPJDEV_COLL_BCAST", &["hierarchical", "binomial", "scatter-ring", "linear"]),
            Call::Gather | Call::Gatherv => ("MPJDEV_COLL_GATHER", &["hierarchical", "binomial", "linear"]),
            Call::Scatter | Call::Scatterv => {
                ("MPJDEV_COLL_SCATTER", &["hierarchical", "binomial", "linear"])
            }
            Call::Allgather | Call::Allgatherv => {
                ("MPJDEV_COLL_ALLGATHER", &["hierarchical", "direct", "recursive-doubling", "bruck", "ring"])
            }
            Call::Alltoall | Call::Alltoallv => {
                ("MPJDEV_COLL_ALLTOALL", &["direct", "bruck", "shifted", "pairwise"])
            }
            Call::Reduce => (
                "MPJDEV_COLL_REDUCE",
                &["hierarchical", "direct", "direct-blocks", "binomial", "rabenseifner"],
            ),
            Call::Allreduce => (
                "MPJDEV_COLL_ALLREDUCE",
                &[
                    "hierarchical",
                    "reduce-bcast",
                    "direct",
                    "direct-blocks",
                    "recursive-doubling",
                    "ring",
                    "rabenseifner",
                ],
            ),
            Call::ReduceScatter => (
                "MPJDEV_COLL_REDUCE_SCATTER",
                &["whole-vectors", "direct", "recursive-halving", "pairwise", "reduce-scatterv"],
            ),
            Call::Scan => ("", &[]),
        }
    }

    pub(crate) fn has_root(self) -> bool {
        let rooted = [Call::Bcast, Call::Gather, Call::Gatherv, Call::Scatter, Call::Scatterv, Call::Reduce];
        rooted.contains(&self)
    }

    /// The choices of the table for ranks in all places, and those of each algorithm.
    pub(crate) fn choices(self) -> Vec<(Choices<'static>, Places)> {
        let (variable, algorithms) = self.algorithms();
        let named = algorithms.iter().map(|algorithm| {
            let value = |name: &str| (name == variable).then(|| (*algorithm).to_owned());
            let places = if *algorithm == "hierarchical" { Places::Sites } else { Places::Apart };
            (Choices::from_variables(value).expect("an algorithm of the call"), places)
        });
        let places = [Places::Apart, Places::OneMachine, Places::WithSlots, Places::Sites];
        places.map(|places| (Choices::default(), places)).into_iter().chain(named).collect()
    }
}

/// Places of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    Apart,
    OneMachine,
    /// On one machine, and each rank has slots.
    WithSlots,
    /// Sites of random lengths.
    Sites,
}

impl Places {
    pub(crate) fn placement(self, size: u32, random: &mut Random) -> Placement {
        match self {
            Places::Apart => Placement::Apart,
            Places::OneMachine => Placement::OneMachine { has_slots: false },
            Places::WithSlots => Placement::OneMachine { has_slots: true },
            Places::Sites => {
                let most = random.up_to(5);
                let mut site = 0;
                let sites = (0..size).map(|_| {
                    site += u32::from(random.up_to(most) == 0);
                    site
                });
                Placement::of_sites(&sites.collect::<Vec<_>>())
            }
        }
    }
}

/// An operation on elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    /// Sum.
    Sum,
    /// Composition of affine maps, each in one element. Not commutative.
    Packed,
    /// Composition of affine maps, each in two elements. Not commutative.
    Pairs,
}

impl Sort {
    pub(crate) const ALL: [Sort; 3] = [Sort::Sum, Sort::Packed, Sort::Pairs];

    pub(crate) fn operation(self, is_divisible: bool) -> Operation {
        let unit = if matches!(self, Sort::Pairs) { 2 } else { 1 };
        Operation { unit, is_commutative: matches!(self, Sort::Sum), is_exact: true, is_divisible }
    }

    /// An element from any number.
    fn element(self, bits: u64) -> u64 {
        match self {
            Sort::Sum => bits % PRIME,
            // No factor is 0, so that every operand changes the result.
            Sort::Packed => (1 + (bits >> 32) % (PRIME - 1)) << 32 | ((bits & 0xffff_ffff) % PRIME),
            Sort::Pairs => 1 + bits % (PRIME - 1),
        }
    }

    /// Combines operands into the second one.
    pub(crate) fn combine(self, from: &[u64], into: &mut [u64], is_lower: bool) {
        assert_eq!(from.len(), into.len());
        let maps = |from, into| if is_lower { compose(from, into) } else { compose(into, from) };
        match self {
            Sort::Sum => into.iter_mut().zip(from).for_each(|(into, from)| *into = (*into + from) % PRIME),
            Sort::Packed => {
                for (into, from) in into.iter_mut().zip(from) {
                    let [a, b] = maps([from >> 32, from & 0xffff_ffff], [*into >> 32, *into & 0xffff_ffff]);
                    *into = a << 32 | b;
                }
            }
            Sort::Pairs => {
                assert!(into.len().is_multiple_of(2), "a pair is divided");
                for (into, from) in into.chunks_exact_mut(2).zip(from.chunks_exact(2)) {
                    into.copy_from_slice(&maps([from[0], from[1]], [into[0], into[1]]));
                }
            }
        }
    }
}

/// `left` after `right`, as factor and constant.
fn compose(left: [u64; 2], right: [u64; 2]) -> [u64; 2] {
    [left[0] * right[0] % PRIME, (left[0] * right[1] + left[1]) % PRIME]
}

/// One call of all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) call: Call,
    pub(crate) size: u32,
    pub(crate) root: u32,
    /// Units of a vector, or elements of a block. Blocks of v-calls have up to as many.
    pub(crate) count: usize,
    pub(crate) sort: Sort,
    pub(crate) is_divisible: bool,
    pub(crate) choices: Choices<'static>,
    pub(crate) places: Places,
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn new(call: Call, size: u32, root: u32, count: usize) -> Case {
        let (choices, places) = (Choices::default(), Places::Apart);
        Case { call, size, root, count, sort: Sort::Sum, is_divisible: true, choices, places, seed: 1 }
    }

    /// Runs the call and compares the output of all ranks.
    pub(crate) fn check(&self) {
        let mut random = Random::new(self.seed);
        let counts = self.counts(&mut random);
        let inputs: Vec<RankBlocks> =
            (0..self.size).map(|rank| self.input(rank, &counts, &mut random)).collect();
        let placement = self.places.placement(self.size, &mut random);
        let choices = self.choices.placed(&placement);
        let schedules: Vec<Schedule> =
            (0..self.size).map(|rank| self.schedule(rank, &counts, &choices)).collect();
        let combine = |from: &[u64], into: &mut [u64], is_lower| self.sort.combine(from, into, is_lower);
        let outputs = run_schedules(&schedules, &inputs, &combine, &mut random);
        for (rank, output) in (0..).zip(outputs) {
            assert!(output == self.expected(rank, &inputs, &counts), "output of rank {rank}: {self:?}");
        }
    }

    /// Elements of the block from each rank to each rank. Other calls use one row, or one entry.
    fn counts(&self, random: &mut Random) -> Vec<Vec<usize>> {
        let size = self.size as usize;
        let is_equal = !matches!(
            self.call,
            Call::Gatherv | Call::Scatterv | Call::Allgatherv | Call::Alltoallv | Call::ReduceScatter
        );
        let unit = if Call::REDUCTIONS.contains(&self.call) { self.sort.operation(true).unit } else { 1 };
        let count = self.count;
        let mut count = || unit * if is_equal { count } else { random.up_to(count as u64) as usize };
        (0..size).map(|_| (0..size).map(|_| count()).collect()).collect()
    }

    fn schedule(&self, rank: u32, counts: &[Vec<usize>], choices: &Choices<'_>) -> Schedule {
        let group = Group { rank, size: self.size };
        let (own, root) = (rank as usize, self.root);
        let count = counts[0][0];
        let operation = self.sort.operation(self.is_divisible);
        let at_root = |counts: &Vec<usize>| if rank == root { counts.clone() } else { vec![] };
        match self.call {
            Call::Bcast => mpjdev_schedule::bcast(group, root, count, ELEMENT_LEN, choices),
            Call::Gather => mpjdev_schedule::gather(group, root, count, ELEMENT_LEN, choices),
            Call::Gatherv => mpjdev_schedule::gatherv(group, root, counts[0][own], &at_root(&counts[0])),
            Call::Scatter => mpjdev_schedule::scatter(group, root, count, ELEMENT_LEN, choices),
            Call::Scatterv => mpjdev_schedule::scatterv(group, root, counts[0][own], &at_root(&counts[0])),
            Call::Allgather => mpjdev_schedule::allgather(group, count, ELEMENT_LEN, choices),
            Call::Allgatherv => mpjdev_schedule::allgatherv(group, &counts[0], ELEMENT_LEN, choices),
            Call::Alltoall => mpjdev_schedule::alltoall(group, count, ELEMENT_LEN, choices),
            Call::Alltoallv => {
                let received: Vec<usize> = counts.iter().map(|row| row[own]).collect();
                mpjdev_schedule::alltoallv(group, &counts[own], &received, ELEMENT_LEN, choices)
            }
            Call::Reduce => mpjdev_schedule::reduce(group, root, count, operation, ELEMENT_LEN, choices),
            Call::Allreduce => mpjdev_schedule::allreduce(group, count, operation, ELEMENT_LEN, choices),
            Call::ReduceScatter => {
                mpjdev_schedule::reduce_scatter(group, &counts[0], operation, ELEMENT_LEN, choices)
            }
            Call::Scan => mpjdev_schedule::scan(group, count),
        }
    }

    fn input(&self, rank: u32, counts: &[Vec<usize>], random: &mut Random) -> RankBlocks {
        let own = rank as usize;
        let is_root = rank == self.root;
        let lens = match self.call {
            Call::Bcast if is_root => vec![counts[0][0]],
            Call::Scatter | Call::Scatterv if is_root => counts[0].clone(),
            Call::Bcast | Call::Scatter | Call::Scatterv => vec![],
            Call::Gather | Call::Gatherv | Call::Allgather | Call::Allgatherv => vec![counts[0][own]],
            Call::Alltoall | Call::Alltoallv => counts[own].clone(),
            Call::Reduce | Call::Allreduce | Call::Scan => vec![counts[0][0]],
            Call::ReduceScatter => vec![counts[0].iter().sum()],
        };
        let mut block = |len| (0..len).map(|_| self.sort.element(random.bits())).collect();
        lens.into_iter().map(&mut block).collect()
    }

    fn expected(&self, rank: u32, inputs: &[RankBlocks], counts: &[Vec<usize>]) -> RankBlocks {
        let (own, root) = (rank as usize, self.root as usize);
        let is_root = rank == self.root;
        let gathered = || inputs.iter().map(|input| input[0].clone()).collect();
        match self.call {
            Call::Bcast if is_root => vec![],
            Call::Bcast => inputs[root].clone(),
            Call::Gather | Call::Gatherv if !is_root => vec![],
            Call::Gather | Call::Gatherv | Call::Allgather | Call::Allgatherv => gathered(),
            Call::Scatter | Call::Scatterv => vec![inputs[root][own].clone()],
            Call::Alltoall | Call::Alltoallv => inputs.iter().map(|input| input[own].clone()).collect(),
            Call::Reduce if !is_root => vec![],
            Call::Reduce | Call::Allreduce => vec![self.combined(inputs)],
            Call::ReduceScatter => {
                let start: usize = counts[0][..own].iter().sum();
                vec![self.combined(inputs)[start..start + counts[0][own]].to_vec()]
            }
            Call::Scan => vec![self.combined(&inputs[..=own])],
        }
    }

    /// The vectors of these ranks, combined in their order.
    fn combined(&self, inputs: &[RankBlocks]) -> Vec<u64> {
        let mut combined = inputs[0][0].clone();
        for input in &inputs[1..] {
            self.sort.combine(&input[0], &mut combined, false);
        }
        assert!(!combined.contains(&UNSET));
        combined
    }
}
