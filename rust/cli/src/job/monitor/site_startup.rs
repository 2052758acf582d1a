//! Formation of a job whose ranks connect to each other, with one launcher or several sites.

use std::os::unix::net::UnixStream;

use rustix::process::Signal;
use tracing::{info, warn};

use super::Monitor;
use crate::job::member_list::Extent;
use crate::job::plan::Plan;
use crate::job::site::{Formed, SiteError};

/// The status if ranks cannot reach each other.
const NOT_FORMED: u8 = 1;

/// The extent of a plan's ranks.
pub(super) fn extent(plan: &Plan) -> Extent {
    match (&plan.network, &plan.site) {
        _ if plan.host.is_some() => Extent::Site,
        (_, Some(_)) => Extent::Site,
        (Some(_), None) => Extent::Connections,
        (None, None) => Extent::Memory,
    }
}

impl Monitor {
    /// Advances the formation.
    pub(super) fn advance_formation(&mut self) {
        if self.formation.is_some() {
            return self.advance_site();
        }
        let (Some(network), Some(pids)) = (&self.plan.network, self.members.undescribed()) else { return };
        match network.describe_alone(&pids) {
            Ok(grant) => self.members.grant_world(grant),
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    /// Joins when all ranks have called `init`, and watches the server from then on.
    fn advance_site(&mut self) {
        let Some(site) = &mut self.formation else { return };
        if !self.members.may_form() {
            site.give_up();
        }
        let begun = match self.members.undescribed() {
            Some(pids) => site.begin(pids),
            None => Ok(()),
        };
        match begun.and_then(|()| site.advance()) {
            Ok(Some(formed)) => self.handle_formed(formed),
            Ok(None) => {}
            Err(error) => self.handle_site_error(&error),
        }
    }

    /// The job has formed: names the ranks by their world ranks, and grants them the world.
    fn handle_formed(&mut self, formed: Formed) {
        let Formed { grant, first, size, foreign, loopback } = formed;
        info!(target: "mpjdev::job", first, ranks = size, foreign, "site has joined its job");
        self.names.first = Some(first);
        for at in 0..self.pipes.len() {
            if let Some(rank) = self.pipes[at].rank {
                let tag = self.tag(rank);
                self.pipes[at].lines.retag(&tag);
            }
        }
        if foreign > 0 {
            self.print_line(&format!(
                "warning: {foreign} of {size} ranks belong to another implementation, which cannot prove \
                 that it has the key; only their addresses are checked"
            ));
        }
        if let Some((client, address)) = loopback {
            self.print_line(&format!(
                "warning: client {client} announces the address {address}, which no other machine reaches, \
                 and other clients announce addresses of a network; if they run on several machines, start \
                 client {client} with --address"
            ));
        }
        self.members.grant_world(grant);
    }

    /// The site has not joined its job, or has lost it.
    fn handle_site_error(&mut self, error: &SiteError) {
        let (left, noun) = (self.running_count(), self.names.noun());
        let ranks = if left == 1 { format!("the {noun}") } else { format!("{left} {noun}s") };
        let ending =
            if left == 0 || self.closing.is_some() { String::new() } else { format!("; ending {ranks}") };
        self.give_up(&format!("{error}{ending}"));
    }

    /// Ends a job that cannot form, or whose site is lost.
    pub(super) fn give_up(&mut self, why: &str) {
        warn!(target: "mpjdev::job", why, "job cannot run");
        self.print_line(why);
        self.result.handle_own(NOT_FORMED);
        self.members.give_up();
        self.close(Signal::TERM, false);
    }

    /// Reports success to the startup server, and ends the server if this monitor has started it.
    pub(super) fn leave_job(&mut self, launcher: &UnixStream, children: &UnixStream) {
        let is_good = self.result.status() == 0;
        if let Some(formation) = self.formation.take().filter(|_| is_good)
            && let Err(error) = formation.finish()
        {
            self.print_line(&error.to_string());
            self.result.handle_own(NOT_FORMED);
        }
        self.end_server(launcher, children);
    }
}
