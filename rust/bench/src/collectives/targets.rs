//! Targets of collective calls: rows of the report and their limits.

use crate::calls::Call;
use crate::figures::Limit;
use crate::report::size;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Octets of a double.
const DOUBLE: u64 = 8;

/// Value of a row that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Time of Java divided by that of the better C.
    ByC,
    /// Time of MPJ Express divided by that of Java.
    OfMpjExpress,
    /// Nanoseconds of Java beyond those of C.
    BeyondC,
    /// Time of a user function divided by that of the predefined operation, both in Java.
    ByPredefined,
    /// Octets of Java heap that a rank allocates for a call.
    Garbage,
}

/// Row of the report.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Measured call.
    pub call: Call,
    /// Octets of a rank, or of a pair.
    pub octets: u64,
    /// Value that has a limit.
    pub value: Value,
    /// Numbers of ranks that are measured by default.
    pub ranks: &'static [u32],
    /// Upper limits of the value for numbers of ranks. Other numbers have none. The limit of
    /// [`Value::OfMpjExpress`] is a lower one, and the same for all numbers.
    pub most: &'static [(u32, f64)],
}

impl Target {
    /// Name in reports, without the number of ranks, with the unit of a value that is no ratio.
    pub fn title(&self) -> String {
        let unit = match self.value {
            Value::BeyondC => ", ns beyond C",
            Value::Garbage => ", B",
            Value::ByC | Value::OfMpjExpress | Value::ByPredefined => "",
        };
        self.name() + unit
    }

    fn name(&self) -> String {
        let doubles = || match self.octets / DOUBLE {
            1 => "1 double".to_owned(),
            count => format!("{count} doubles"),
        };
        match self.call {
            Call::Barrier => self.call.title().to_owned(),
            Call::Bcast => format!("{} of {}", self.call.title(), size(self.octets)),
            Call::AllreduceUser => format!("Allreduce of {} by a user function", doubles()),
            Call::Allreduce | Call::AllreduceGarbage => format!("{} of {}", self.call.title(), doubles()),
            Call::Alltoall => format!("{} of {} a pair", self.call.title(), size(self.octets)),
            Call::Reduce
            | Call::ReduceScatter
            | Call::Scan
            | Call::Allgather
            | Call::Gather
            | Call::Scatter => format!("{} of {} a rank", self.call.title(), size(self.octets)),
        }
    }

    /// The limit with this number of ranks.
    pub fn limit(&self, ranks: u32) -> Limit {
        if self.value == Value::OfMpjExpress {
            return Limit::Least(OF_MPJ_EXPRESS);
        }
        let most = self.most.iter().find(|(number, _)| *number == ranks);
        most.map_or(Limit::None, |(_, most)| Limit::Most(*most))
    }
}

const fn target(call: Call, octets: u64, ranks: &'static [u32], most: &'static [(u32, f64)]) -> Target {
    Target { call, octets, value: Value::ByC, ranks, most }
}

/// Least time of MPJ Express in times of Java.
pub const OF_MPJ_EXPRESS: f64 = 10.0;

const fn of_mpj_express(call: Call, octets: u64, ranks: &'static [u32]) -> Target {
    Target { call, octets, value: Value::OfMpjExpress, ranks, most: &[] }
}

const TWO_EIGHT: &[u32] = &[2, 8];
const FOUR_EIGHT: &[u32] = &[4, 8];

/// Calls with one limit for all numbers of ranks.
const fn block(call: Call, octets: u64) -> Target {
    target(call, octets, TWO_EIGHT, &[(2, 1.1), (4, 1.1), (8, 1.1)])
}

/// Rows of ranks over a transport of mpjdev.
pub const OVER_OURS: &[Target] = &[
    target(Call::Barrier, 0, TWO_EIGHT, &[(2, 1.0), (8, 1.2)]),
    target(Call::Bcast, 8, TWO_EIGHT, &[(2, 1.0), (8, 1.0)]),
    target(Call::Bcast, 64 * KIB, TWO_EIGHT, &[(2, 0.8), (8, 0.8)]),
    target(Call::Bcast, MIB, TWO_EIGHT, &[(2, 0.7), (8, 0.7)]),
    target(Call::Bcast, 16 * MIB, TWO_EIGHT, &[(2, 0.7), (8, 0.7)]),
    target(Call::Allreduce, DOUBLE, TWO_EIGHT, &[(2, 1.1), (8, 1.1)]),
    target(Call::Allreduce, 128 * DOUBLE, TWO_EIGHT, &[(2, 1.0), (8, 1.0)]),
    target(Call::Allreduce, 8192 * DOUBLE, TWO_EIGHT, &[(2, 0.8), (8, 0.8)]),
    target(Call::Allreduce, MIB * DOUBLE, TWO_EIGHT, &[(2, 0.7), (8, 0.7)]),
    target(Call::Alltoall, 8, FOUR_EIGHT, &[(4, 1.2), (8, 1.2)]),
    target(Call::Alltoall, 4 * KIB, FOUR_EIGHT, &[(4, 0.9), (8, 0.9)]),
    target(Call::Alltoall, 256 * KIB, FOUR_EIGHT, &[(4, 0.8), (8, 0.8)]),
    block(Call::Allgather, KIB),
    block(Call::Allgather, 256 * KIB),
    block(Call::Gather, KIB),
    block(Call::Gather, 256 * KIB),
    block(Call::Scatter, KIB),
    block(Call::Scatter, 256 * KIB),
    block(Call::ReduceScatter, KIB),
    block(Call::ReduceScatter, 256 * KIB),
    block(Call::Scan, KIB),
    block(Call::Scan, 256 * KIB),
    target(Call::Reduce, KIB, TWO_EIGHT, &[]),
    target(Call::Reduce, 256 * KIB, TWO_EIGHT, &[]),
    Target {
        call: Call::AllreduceUser,
        octets: 1000 * DOUBLE,
        value: Value::ByPredefined,
        ranks: &[2],
        most: &[(2, 2.0), (4, 2.0), (8, 2.0)],
    },
    Target {
        call: Call::AllreduceGarbage,
        octets: DOUBLE,
        value: Value::Garbage,
        ranks: &[2],
        most: &[(2, 0.0), (4, 0.0), (8, 0.0)],
    },
];

/// Rows of ranks over a C MPI.
pub const OVER_MPI: &[Target] = &[
    Target { call: Call::Allreduce, octets: DOUBLE, value: Value::BeyondC, ranks: &[2], most: &[(2, 300.0)] },
    target(Call::Bcast, MIB, &[2], &[(2, 1.5)]),
];

/// Rows of ranks over a transport of mpjdev beside MPJ Express.
pub const BESIDE_MPJ_EXPRESS: &[Target] = &[
    of_mpj_express(Call::Barrier, 0, TWO_EIGHT),
    of_mpj_express(Call::Bcast, 8, TWO_EIGHT),
    of_mpj_express(Call::Bcast, MIB, TWO_EIGHT),
    of_mpj_express(Call::Allreduce, DOUBLE, TWO_EIGHT),
    of_mpj_express(Call::Allreduce, 128 * DOUBLE, TWO_EIGHT),
    of_mpj_express(Call::Allreduce, 8192 * DOUBLE, TWO_EIGHT),
    of_mpj_express(Call::Alltoall, 8, FOUR_EIGHT),
    of_mpj_express(Call::Alltoall, 4 * KIB, FOUR_EIGHT),
    of_mpj_express(Call::Allgather, KIB, TWO_EIGHT),
    of_mpj_express(Call::Allgather, 256 * KIB, TWO_EIGHT),
    of_mpj_express(Call::Gather, KIB, TWO_EIGHT),
    of_mpj_express(Call::Gather, 256 * KIB, TWO_EIGHT),
    of_mpj_express(Call::Scatter, KIB, TWO_EIGHT),
    of_mpj_express(Call::Scatter, 256 * KIB, TWO_EIGHT),
    of_mpj_express(Call::ReduceScatter, KIB, TWO_EIGHT),
    of_mpj_express(Call::ReduceScatter, 256 * KIB, TWO_EIGHT),
    of_mpj_express(Call::Scan, KIB, TWO_EIGHT),
    of_mpj_express(Call::Scan, 256 * KIB, TWO_EIGHT),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_has_the_call_and_its_size() {
        let titles: Vec<String> = OVER_OURS.iter().chain(OVER_MPI).map(Target::title).collect();
        for expected in [
            "Barrier",
            "Bcast of 64 KiB",
            "Allreduce of 1 double",
            "Allreduce of 1 double, ns beyond C",
            "Allreduce of 1048576 doubles",
            "Alltoall of 4 KiB a pair",
            "Reduce_scatter of 1 KiB a rank",
            "Allreduce of 1000 doubles by a user function",
            "garbage of Allreduce of 1 double, B",
        ] {
            assert!(titles.iter().any(|title| title == expected), "{expected}: {titles:?}");
        }
    }

    #[test]
    fn limit_depends_on_the_number_of_ranks() {
        let barrier = &OVER_OURS[0];
        assert_eq!([2, 8].map(|ranks| barrier.limit(ranks)), [Limit::Most(1.0), Limit::Most(1.2)]);
        assert_eq!(barrier.limit(4), Limit::None);
        let beside = &BESIDE_MPJ_EXPRESS[0];
        assert_eq!([2, 3].map(|ranks| beside.limit(ranks)), [Limit::Least(10.0); 2]);
    }

    #[test]
    fn rows_have_whole_doubles_and_one_name_each() {
        for rows in [OVER_OURS, OVER_MPI, BESIDE_MPJ_EXPRESS] {
            let mut titles: Vec<String> = rows.iter().map(Target::title).collect();
            titles.sort_unstable();
            titles.dedup();
            assert_eq!(titles.len(), rows.len());
            assert!(rows.iter().all(|row| row.octets.is_multiple_of(DOUBLE) && !row.ranks.is_empty()));
        }
    }
}
