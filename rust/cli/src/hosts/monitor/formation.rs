//! Formation of a job on several hosts: the launcher gives each host the addresses of all ranks.

use std::time::Instant;

use bytes::Bytes;
use rustix::process::Signal;
use tracing::{debug, info, warn};

use super::{Monitor, NAMED, NOT_FORMED};
use crate::hosts::frame::Frame;
use crate::job::host_site::{ToHost, ToLauncher};
use crate::job::network::random;

/// Octets of the key that the ranks prove to each other.
const KEY_LEN: usize = 32;

impl Monitor {
    /// A line of a host that joins, or that cannot.
    pub(super) fn handle_exchange(&mut self, at: usize, line: &Bytes) {
        match serde_json::from_slice(line) {
            Ok(ToLauncher::Announce(list))
                if list.len() == self.plan.shares[at].ranks.len() && !self.has_formed =>
            {
                let host = &self.hosts[at].name;
                debug!(target: "mpjdev::job", host, "ranks of a host wait for the others");
                self.first_announced = self.first_announced.or_else(|| Some(Instant::now()));
                self.announced[at] = Some(list);
                if self.has_left.contains(&true) {
                    self.refuse(at);
                }
                self.form_if_complete();
            }
            Ok(ToLauncher::Leave) => {
                self.has_left[at] = true;
                let waiting: Vec<usize> =
                    (0..self.hosts.len()).filter(|at| self.announced[*at].is_some()).collect();
                if !self.has_formed {
                    waiting.into_iter().filter(|other| *other != at).for_each(|other| self.refuse(other));
                }
            }
            _ => {
                let host = &self.hosts[at].name;
                warn!(target: "mpjdev::job", host, "a host sends a line that is not expected");
            }
        }
    }

    /// Refuses the waiting ranks of this host: others have ended.
    fn refuse(&mut self, at: usize) {
        let left = self.hosts.iter().zip(&self.has_left).filter(|(_, left)| **left);
        let names = left.map(|(host, _)| host.name.clone()).take(NAMED).collect();
        self.exchange(at, &ToHost::Ended(names));
    }

    fn form_if_complete(&mut self) {
        let Some(hosts) = self.announced.iter().cloned().collect::<Option<Vec<_>>>() else { return };
        self.has_formed = true;
        self.first_announced = None;
        let key = match random::<KEY_LEN>() {
            Ok(key) => key.to_vec(),
            Err(error) => {
                self.print_line(&format!("the system has no random octets: {error}"));
                self.result.handle_own(NOT_FORMED);
                return self.close(Signal::TERM, false);
            }
        };
        info!(target: "mpjdev::job", ranks = self.plan.ranks(), "all hosts have joined");
        if self.plan.is_verbose {
            let listens: Vec<String> = hosts
                .iter()
                .zip(&self.hosts)
                .filter_map(|(ranks, host)| Some(format!("{} at {}", host.name, ranks.first()?.address.ip())))
                .collect();
            self.print_line(&format!("ranks listen on {}", listens.join(", ")));
        }
        for at in 0..self.hosts.len() {
            let line = ToHost::World { host: at as u32, hosts: hosts.clone(), key: key.clone() };
            self.exchange(at, &line);
        }
    }

    fn exchange(&mut self, at: usize, line: &ToHost) {
        let octets = serde_json::to_vec(line).expect("plain data");
        self.hosts[at].send(&Frame::Exchange(octets.into()));
    }
}
