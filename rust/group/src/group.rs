//! Groups: combination, choice and comparison of lists of members.

use crate::error::GroupError;
use crate::{PROC_NULL, UNDEFINED};

/// The members of one group in ascending order, each with its rank.
struct Ranks(Vec<(i32, usize)>);

impl Ranks {
    fn of(group: &[i32]) -> Ranks {
        let mut ranks: Vec<(i32, usize)> = (0..).zip(group).map(|(rank, &member)| (member, rank)).collect();
        ranks.sort_unstable();
        Ranks(ranks)
    }

    fn get(&self, member: i32) -> Option<usize> {
        let found = self.0.binary_search_by_key(&member, |&(member, _)| member);
        found.ok().map(|at| self.0[at].1)
    }
}

/// The members of `a` in their order, then those of `b` that `a` does not have.
pub fn union(a: &[i32], b: &[i32]) -> Vec<i32> {
    let of_b = difference(b, a);
    a.iter().copied().chain(of_b).collect()
}

/// The members of `a` that `b` has too.
pub fn intersection(a: &[i32], b: &[i32]) -> Vec<i32> {
    let ranks = Ranks::of(b);
    a.iter().copied().filter(|&member| ranks.get(member).is_some()).collect()
}

/// The members of `a` that `b` does not have.
pub fn difference(a: &[i32], b: &[i32]) -> Vec<i32> {
    let ranks = Ranks::of(b);
    a.iter().copied().filter(|&member| ranks.get(member).is_none()).collect()
}

/// The members with these ranks, in the order of the ranks.
///
/// # Errors
/// A rank outside the group or named twice.
pub fn incl(group: &[i32], ranks: &[i32]) -> Result<Vec<i32>, GroupError> {
    let mut chosen = Chosen::new(group.len());
    let ranks = ranks.iter().enumerate();
    ranks.map(|(position, &rank)| Ok(group[chosen.choose(i64::from(rank), position)?])).collect()
}

/// The members with other ranks than these, in the order of the group.
///
/// # Errors
/// As for [`incl`].
pub fn excl(group: &[i32], ranks: &[i32]) -> Result<Vec<i32>, GroupError> {
    let mut chosen = Chosen::new(group.len());
    for (position, &rank) in ranks.iter().enumerate() {
        chosen.choose(i64::from(rank), position)?;
    }
    Ok(chosen.others(group))
}

/// A range of ranks: the first, the last, the stride. The last rank need not be hit, nor be in the group.
pub type Triplet = [i32; 3];

/// The members whose ranks are in the ranges, in the order of the ranges.
///
/// # Errors
/// A stride of 0; a rank outside the group or in two ranges.
pub fn range_incl(group: &[i32], ranges: &[Triplet]) -> Result<Vec<i32>, GroupError> {
    let mut members = Vec::new();
    choose_ranges(group.len(), ranges, |rank| members.push(group[rank]))?;
    Ok(members)
}

/// The members whose ranks are in no range, in the order of the group.
///
/// # Errors
/// As for [`range_incl`].
pub fn range_excl(group: &[i32], ranges: &[Triplet]) -> Result<Vec<i32>, GroupError> {
    Ok(choose_ranges(group.len(), ranges, |_| ())?.others(group))
}

fn choose_ranges(size: usize, ranges: &[Triplet], mut each: impl FnMut(usize)) -> Result<Chosen, GroupError> {
    let mut chosen = Chosen::new(size);
    for (position, range) in ranges.iter().enumerate() {
        let [first, last, stride] = range.map(i64::from);
        if stride == 0 {
            return Err(GroupError::Stride { position });
        }
        // A rank outside the group ends the loop, so it is short.
        let mut rank = first;
        while if stride > 0 { rank <= last } else { rank >= last } {
            each(chosen.choose(rank, position)?);
            rank += stride;
        }
    }
    Ok(chosen)
}

/// Ranks of a group that were chosen.
struct Chosen(Vec<bool>);

impl Chosen {
    fn new(size: usize) -> Chosen {
        Chosen(vec![false; size])
    }

    fn choose(&mut self, rank: i64, position: usize) -> Result<usize, GroupError> {
        let size = self.0.len();
        let at = usize::try_from(rank).ok().filter(|&at| at < size);
        let at = at.ok_or(GroupError::Rank { rank, position, size })?;
        if std::mem::replace(&mut self.0[at], true) {
            return Err(GroupError::Duplicate { rank, position });
        }
        Ok(at)
    }

    fn others(&self, group: &[i32]) -> Vec<i32> {
        group.iter().zip(&self.0).filter(|(_, chosen)| !**chosen).map(|(&member, _)| member).collect()
    }
}

/// The ranks in `b` of the members with these ranks in `a`: [`UNDEFINED`] for those that `b` does not have,
/// [`PROC_NULL`] for [`PROC_NULL`].
///
/// # Errors
/// A rank outside `a`.
pub fn translate(a: &[i32], ranks: &[i32], b: &[i32]) -> Result<Vec<i32>, GroupError> {
    let of_b = Ranks::of(b);
    let translate = |(position, &rank): (usize, &i32)| {
        if rank == PROC_NULL {
            return Ok(PROC_NULL);
        }
        let member = usize::try_from(rank).ok().and_then(|at| a.get(at));
        let member = member.ok_or(GroupError::Rank { rank: rank.into(), position, size: a.len() })?;
        Ok(of_b.get(*member).map_or(UNDEFINED, |rank| rank as i32))
    };
    ranks.iter().enumerate().map(translate).collect()
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same members in the same order.
    Identical,
    /// The same members in another order.
    Similar,
    /// Different members.
    Unequal,
}

/// Compares two groups.
pub fn compare(a: &[i32], b: &[i32]) -> Comparison {
    if a == b {
        return Comparison::Identical;
    }
    if a.len() == b.len() && difference(a, b).is_empty() { Comparison::Similar } else { Comparison::Unequal }
}
