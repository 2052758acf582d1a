//! Exchanges in two levels: within each site, and between one rank of each site, its leader.
//!
//! Each element crosses to a site once.

use crate::blocks::Blocks;
use crate::group::Group;
use crate::placement::Sites;
use crate::schedule::Schedule;
use crate::step::Run;
use crate::tree::Node;
use crate::tree_order::combine_all;

/// A rank in the hierarchy.
pub(crate) struct Level<'a> {
    group: Group,
    sites: &'a Sites,
    root: u32,
    /// The own site.
    site: u32,
}

impl<'a> Level<'a> {
    /// The level of the group's rank. The root is the leader of its site.
    pub(crate) fn new(group: Group, sites: &'a Sites, root: u32) -> Level<'a> {
        Level { group, sites, root, site: sites.of(group.rank) }
    }

    fn leader(&self) -> u32 {
        self.sites.leader(self.site, self.root)
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.leader() == self.group.rank
    }

    /// The other ranks of the own site.
    fn neighbours(&self) -> impl Iterator<Item = u32> {
        self.sites.ranks(self.site).filter(|rank| *rank != self.group.rank)
    }

    /// The own site among all sites.
    fn group_of_sites(&self) -> Group {
        Group { rank: self.site, size: self.sites.len() }
    }

    /// Adds steps between the sites, which leaders take.
    pub(crate) fn between_sites(&self, schedule: &mut Schedule, add: impl FnOnce(&mut Schedule, Group)) {
        let first = schedule.steps.len();
        add(schedule, self.group_of_sites());
        schedule.rename(first, |site| self.sites.leader(site, self.root));
    }

    /// Sends the elements of the root to all ranks.
    pub(crate) fn pass_down(&self, schedule: &mut Schedule, vector: Run) {
        if self.is_leader() {
            let root_site = self.sites.of(self.root);
            let is_alone = self.neighbours().next().is_none();
            self.between_sites(schedule, |schedule, group| {
                Node::new(group, root_site).pass_down(schedule, is_alone, |_| vector);
            });
        }
        self.pass_to_site(schedule, vector);
    }

    /// Sends elements of the leader to the other ranks of its site.
    pub(crate) fn pass_to_site(&self, schedule: &mut Schedule, vector: Run) {
        if !self.is_leader() {
            return schedule.store(self.leader(), vector);
        }
        let ranks = self.sites.ranks(self.site);
        if ranks.len() > 1 {
            schedule.send_to_ranks(ranks, vector);
        }
    }

    /// Combines the vectors of the site at its leader, in the tree order. Returns the result's place there.
    pub(crate) fn combine_site(&self, schedule: &mut Schedule, vector: Run) -> Run {
        if !self.is_leader() {
            schedule.send(self.leader(), vector);
            return vector;
        }
        let ranks = self.sites.ranks(self.site);
        let group = Group { rank: self.group.rank - ranks.start, size: ranks.len() as u32 };
        let first = schedule.steps.len();
        let result = combine_all(schedule, group, vector);
        schedule.rename(first, |rank| ranks.start + rank);
        result
    }

    /// Combines the results of all sites at the root.
    pub(crate) fn combine_sites(&self, schedule: &mut Schedule, vector: Run) {
        let root_site = self.sites.of(self.root);
        self.between_sites(schedule, |schedule, group| {
            Node::new(group, root_site).combine_up(schedule, vector);
        });
    }

    /// Collects the blocks of all ranks at the root.
    pub(crate) fn gather(&self, schedule: &mut Schedule, blocks: &Blocks) {
        let of_site = |site| blocks.runs(self.sites.ranks(site));
        if !self.is_leader() {
            return schedule.send(self.leader(), blocks.run(self.group.rank));
        }
        for source in self.neighbours() {
            schedule.receive(source, blocks.run(source));
        }
        if self.group.rank != self.root {
            return schedule.send(self.root, of_site(self.site));
        }
        for site in (0..self.sites.len()).filter(|site| *site != self.site) {
            schedule.receive(self.sites.leader(site, self.root), of_site(site));
        }
    }

    /// Sends the block of each rank from the root.
    pub(crate) fn scatter(&self, schedule: &mut Schedule, blocks: &Blocks) {
        let of_site = |site| blocks.runs(self.sites.ranks(site));
        if !self.is_leader() {
            return schedule.store(self.leader(), blocks.run(self.group.rank));
        }
        if self.group.rank != self.root {
            schedule.receive(self.root, of_site(self.site));
        } else {
            for site in (0..self.sites.len()).filter(|site| *site != self.site) {
                schedule.send(self.sites.leader(site, self.root), of_site(site));
            }
        }
        self.neighbours().for_each(|dest| schedule.send(dest, blocks.run(dest)));
    }

    /// Collects the blocks of all ranks at all ranks.
    pub(crate) fn gather_at_all(&self, schedule: &mut Schedule, blocks: &Blocks) {
        let all = blocks.runs(0..self.group.size);
        if !self.is_leader() {
            schedule.send(self.leader(), blocks.run(self.group.rank));
            return schedule.receive(self.leader(), all);
        }
        for source in self.neighbours() {
            schedule.receive(source, blocks.run(source));
        }
        let own = blocks.runs(self.sites.ranks(self.site));
        self.between_sites(schedule, |schedule, group| {
            group.others().for_each(|site| schedule.send(site, own));
            for site in group.others() {
                schedule.receive(site, blocks.runs(self.sites.ranks(site)));
            }
        });
        self.pass_to_site(schedule, all);
    }
}
