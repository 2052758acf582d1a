//! The part of a monitor's ranks in a job that other launchers or hosts belong to.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::process::Pid;

use crate::job::host_site::HostSite;
use crate::job::plan::Plan;
use crate::job::site::{Formed, Site, SiteError};

/// The way in which the job forms.
#[derive(Debug)]
pub(super) enum Formation {
    /// At a startup server.
    Server(Box<Site>),
    /// At the launcher that has started the agents of all hosts.
    Launcher(Box<HostSite>),
}

impl Formation {
    /// The way of a plan; `None` if the monitor has all ranks of the job. `exchange` is the socket of an
    /// agent.
    ///
    /// # Errors
    /// The system refuses, or a plan of a host comes without a socket.
    pub(super) fn of(plan: &Plan, exchange: Option<OwnedFd>) -> io::Result<Option<Formation>> {
        let Some(network) = plan.network.clone() else { return Ok(None) };
        if let Some(site) = plan.site.clone() {
            return Ok(Some(Formation::Server(Box::new(Site::new(site, network)))));
        }
        let Some(host) = plan.host.clone() else { return Ok(None) };
        let exchange =
            exchange.ok_or_else(|| io::Error::other("only an agent starts the monitor of a host"))?;
        Ok(Some(Formation::Launcher(Box::new(HostSite::new(host, network, exchange)?))))
    }

    /// All ranks have called `init`, in these processes.
    pub(super) fn begin(&mut self, pids: Vec<Pid>) -> Result<(), SiteError> {
        match self {
            Formation::Server(site) => site.begin(pids),
            Formation::Launcher(host) => host.begin(&pids),
        }
    }

    /// The descriptor to poll, and the events to poll it for.
    pub(super) fn ready_fd(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match self {
            Formation::Server(site) => site.ready_fd(),
            Formation::Launcher(host) => host.ready_fd().map(|fd| (fd, PollFlags::IN)),
        }
    }

    /// Advances as far as possible. Returns the job once, when it has formed.
    pub(super) fn advance(&mut self) -> Result<Option<Formed>, SiteError> {
        match self {
            Formation::Server(site) => site.advance(),
            Formation::Launcher(host) => host.advance(),
        }
    }

    /// Not all ranks will call `init`.
    pub(super) fn give_up(&mut self) {
        match self {
            Formation::Server(site) => site.give_up(),
            Formation::Launcher(host) => host.give_up(),
        }
    }

    /// A text for the user that names what the ranks wait for.
    pub(super) fn waits_for(&self) -> Option<&'static str> {
        match self {
            Formation::Server(site) => site.waits_for(),
            Formation::Launcher(host) => host.waits_for(),
        }
    }

    /// All ranks have succeeded.
    pub(super) fn finish(self) -> Result<(), SiteError> {
        match self {
            Formation::Server(site) => site.finish(),
            // The agent reports the status.
            Formation::Launcher(_) => Ok(()),
        }
    }
}
