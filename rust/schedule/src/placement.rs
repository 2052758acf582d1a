//! Places of a group's ranks: on one machine, in several sites, or apart.

use std::ops::Range;

use crate::fold::Fold;
use crate::group::Group;
use crate::tree::Node;

/// Places of the ranks of a group, which all of them know alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Messages between any two ranks cost about the same.
    Apart,
    /// All ranks share memory.
    OneMachine {
        /// Whether each rank has slots in which it publishes a short vector to all others at once.
        has_slots: bool,
    },
    /// Messages within a site cost less than those between sites.
    Sites(Sites),
}

impl Placement {
    /// The placement of ranks that do not all share memory, by the number of the site of each rank. They
    /// count as apart if each site has one rank, or if the ranks of a site do not follow each other.
    #[must_use]
    pub fn of_sites(site_of: &[u32]) -> Placement {
        let bounds: Vec<u32> = (0..site_of.len())
            .filter(|&rank| rank == 0 || site_of[rank] != site_of[rank - 1])
            .chain([site_of.len()])
            .map(|rank| rank as u32)
            .collect();
        let mut sites: Vec<u32> =
            bounds[..bounds.len() - 1].iter().map(|first| site_of[*first as usize]).collect();
        sites.sort_unstable();
        sites.dedup();
        let is_contiguous = sites.len() + 1 == bounds.len();
        if !is_contiguous || sites.len() < 2 || sites.len() == site_of.len() {
            return Placement::Apart;
        }
        let is_in_order = is_in_order(&bounds);
        Placement::Sites(Sites { bounds, is_in_order })
    }

    pub(crate) fn sites(&self) -> Option<&Sites> {
        match self {
            Placement::Sites(sites) => Some(sites),
            Placement::Apart | Placement::OneMachine { .. } => None,
        }
    }
}

/// At least two sites, whose ranks follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// The first rank of each site, and the number of all ranks.
    bounds: Vec<u32>,
    /// Whether a combination of each site by itself, and then of the sites, is the one of all ranks.
    pub(crate) is_in_order: bool,
}

impl Sites {
    /// Number of sites.
    pub(crate) fn len(&self) -> u32 {
        self.bounds.len() as u32 - 1
    }

    /// The ranks of a site.
    pub(crate) fn ranks(&self, site: u32) -> Range<u32> {
        self.bounds[site as usize]..self.bounds[site as usize + 1]
    }

    /// The site of a rank.
    pub(crate) fn of(&self, rank: u32) -> u32 {
        self.bounds.partition_point(|first| *first <= rank) as u32 - 1
    }

    /// The rank of a site that exchanges messages with other sites: the root in its own site.
    pub(crate) fn leader(&self, site: u32, root: u32) -> u32 {
        let ranks = self.ranks(site);
        if ranks.contains(&root) { root } else { ranks.start }
    }
}

/// Whether the ranges of ranks that are combined site by site are those of the tree order of all ranks.
fn is_in_order(bounds: &[u32]) -> bool {
    let size = bounds[bounds.len() - 1];
    let mut hierarchical = Vec::new();
    for site in bounds.windows(2) {
        combined(site[1] - site[0], &mut |part| {
            hierarchical.push((site[0] + part.start, site[0] + part.end));
        });
    }
    combined(bounds.len() as u32 - 1, &mut |sites| {
        hierarchical.push((bounds[sites.start as usize], bounds[sites.end as usize]));
    });
    let mut flat = Vec::new();
    combined(size, &mut |part| flat.push((part.start, part.end)));
    hierarchical.sort_unstable();
    flat.sort_unstable();
    hierarchical == flat
}

/// Calls `each` with the ranges that the tree order combines: the pairs of the fold, and then neighbours.
fn combined(size: u32, each: &mut impl FnMut(Range<u32>)) {
    let fold = Fold::new(Node::new(Group { rank: 0, size }, 0));
    for pair in 0..size - fold.size {
        each(2 * pair..2 * pair + 2);
    }
    let mut width = 2;
    while width <= fold.size {
        for first in (0..fold.size).step_by(width as usize) {
            each(fold.in_tree(first)..fold.in_tree(first + width));
        }
        width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(lens: &[u32]) -> Placement {
        let of: Vec<u32> = (0..).zip(lens).flat_map(|(site, len)| vec![site * 3; *len as usize]).collect();
        Placement::of_sites(&of)
    }

    fn is_in_order(lens: &[u32]) -> bool {
        sites(lens).sites().expect("sites").is_in_order
    }

    #[test]
    fn ranks_of_a_site_follow_each_other() {
        assert_eq!(Placement::of_sites(&[0, 0, 1, 0]), Placement::Apart);
        assert_eq!(Placement::of_sites(&[0, 0, 0]), Placement::Apart);
        assert_eq!(Placement::of_sites(&[2, 1, 0]), Placement::Apart);
        assert_eq!(Placement::of_sites(&[0]), Placement::Apart);
        let placement = sites(&[2, 1, 4]);
        let sites = placement.sites().expect("sites");
        assert_eq!((sites.len(), sites.ranks(1), sites.ranks(2)), (3, 2..3, 3..7));
        assert_eq!([0, 1, 2, 3, 6].map(|rank| sites.of(rank)), [0, 0, 1, 2, 2]);
        assert_eq!([sites.leader(0, 5), sites.leader(2, 5), sites.leader(2, 2)], [0, 5, 3]);
    }

    /// `((0 1) (2 3)) (4 5)` is the order of six ranks.
    #[test]
    fn sites_are_in_order_if_they_are_operands_of_the_tree() {
        assert!(is_in_order(&[2, 2]) && is_in_order(&[4, 4]) && is_in_order(&[2, 2, 2, 2]));
        assert!(is_in_order(&[2, 2, 2]) && is_in_order(&[4, 2]));
        assert!(!is_in_order(&[2, 4]) && !is_in_order(&[3, 3]) && !is_in_order(&[1, 3]));
        assert!(!is_in_order(&[1, 5]) && !is_in_order(&[5, 3]));
    }
}
