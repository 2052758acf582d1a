//! State machine of the ranks of one host, in a job that `mpjrun --hosts` has started. The launcher gives
//! each host the addresses of all ranks. There is no startup server.
//!
//! ```text
//!   Waiting ---begin---> Announced ---world---> Formed
//!   for the ranks        waits for the others
//! ```
//!
//! Nothing blocks. The socket leads to the agent, which forwards each line to the launcher and back.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use bytes::{Bytes, BytesMut};
use mpjdev_bootstrap::job::world::{World, WorldHost};
use mpjdev_proto::impi::startup::layout::{MAXLINEAR_DEFAULT, TAG_UB_MAX, XSIZE_DEFAULT};
use mpjdev_transport::tcp::Member;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::member_list::WorldGrant;
use super::network::{Network, proc};
use super::site::{Formed, SiteError};

/// Maximum octets of a line: the addresses of all ranks.
const LINE_MAX: usize = 8 << 20;

/// The host of some ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name, as the user wrote it.
    pub name: String,
    /// World rank of its first rank.
    pub first: u32,
    /// Number of ranks of the job.
    pub size: u32,
    /// Whether its ranks share memory.
    pub shares_memory: bool,
}

/// The process of a rank, and the address that it listens at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankAddress {
    /// The id of the process.
    pub pid: u32,
    /// The address.
    pub address: SocketAddr,
}

/// A line from a host to the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToLauncher {
    /// All ranks of the host have called `init`.
    Announce(Vec<RankAddress>),
    /// Some rank of the host has ended without calling `init`.
    Leave,
}

/// A line from the launcher to a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHost {
    /// The ranks of all hosts, by host.
    World {
        /// The host that the line goes to.
        host: u32,
        /// The ranks of each host.
        hosts: Vec<Vec<RankAddress>>,
        /// The key of the job.
        key: Vec<u8>,
    },
    /// The job cannot form: ranks of these hosts have ended.
    Ended(Vec<String>),
}

#[derive(Debug)]
enum State {
    Waiting,
    Announced { listeners: Vec<OwnedFd>, own: Vec<RankAddress> },
    Formed,
    Over,
}

/// The ranks of one host.
#[derive(Debug)]
pub struct HostSite {
    plan: HostPlan,
    network: Network,
    socket: UnixStream,
    octets: BytesMut,
    state: State,
}

impl HostSite {
    /// A host whose ranks have not called `init`. `socket` leads to the agent.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(plan: HostPlan, network: Network, socket: OwnedFd) -> io::Result<HostSite> {
        let socket = UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(HostSite { plan, network, socket, octets: BytesMut::new(), state: State::Waiting })
    }

    /// Listens for all ranks and announces them, once: all have called `init`, in these processes.
    ///
    /// # Errors
    /// A rank cannot listen.
    pub fn begin(&mut self, pids: &[Pid]) -> Result<(), SiteError> {
        if !matches!(self.state, State::Waiting) {
            return Ok(());
        }
        let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
        let listening =
            self.network.listen(pids.len(), self.plan.first, loopback).map_err(SiteError::Listen)?;
        let (listeners, addresses): (Vec<_>, Vec<_>) = listening.into_iter().unzip();
        let rank = |(pid, address): (&Pid, SocketAddr)| RankAddress {
            pid: pid.as_raw_nonzero().get().unsigned_abs(),
            address,
        };
        let own: Vec<_> = pids.iter().zip(addresses).map(rank).collect();
        self.send(&ToLauncher::Announce(own.clone()))?;
        self.state = State::Announced { listeners, own };
        Ok(())
    }

    /// The descriptor to poll for reading.
    #[must_use]
    pub fn ready_fd(&self) -> Option<BorrowedFd<'_>> {
        matches!(self.state, State::Waiting | State::Announced { .. }).then(|| self.socket.as_fd())
    }

    /// Reads what the launcher has sent. Returns the job once, when it has formed.
    ///
    /// # Errors
    /// The job cannot form. The host does nothing more.
    pub fn advance(&mut self) -> Result<Option<Formed>, SiteError> {
        if self.ready_fd().is_none() {
            return Ok(None);
        }
        let mut piece = [0; 64 << 10];
        loop {
            match self.socket.read(&mut piece) {
                // The agent has ended, which the monitor sees at its other socket.
                Ok(0) => self.state = State::Over,
                Ok(n) if self.octets.len() + n <= LINE_MAX => {
                    self.octets.extend_from_slice(&piece[..n]);
                    continue;
                }
                Ok(_) => return Err(SiteError::Launcher("a line is too long".to_owned())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {}
            }
            break;
        }
        let Some(end) = self.octets.iter().position(|octet| *octet == b'\n') else { return Ok(None) };
        let line = self.octets.split_to(end + 1);
        let malformed = |error: serde_json::Error| SiteError::Launcher(error.to_string());
        match (
            serde_json::from_slice(&line).map_err(malformed)?,
            std::mem::replace(&mut self.state, State::Over),
        ) {
            (ToHost::World { host, hosts, key }, State::Announced { listeners, own }) => {
                let formed = self.formed(host, &hosts, &own, listeners, key)?;
                self.state = State::Formed;
                Ok(Some(formed))
            }
            (ToHost::Ended(hosts), State::Announced { .. } | State::Waiting) => {
                Err(SiteError::HostsEnded { hosts })
            }
            _ => Err(SiteError::Launcher("a line has arrived too early".to_owned())),
        }
    }

    /// Leaves the job, since not all ranks will call `init`. The other hosts need not wait then.
    pub fn give_up(&mut self) {
        if matches!(self.state, State::Waiting | State::Announced { .. }) {
            self.state = State::Over;
            // Without an agent the job ends anyway.
            let _ = self.send(&ToLauncher::Leave);
        }
    }

    /// A text for the user that names what the host waits for.
    #[must_use]
    pub fn waits_for(&self) -> Option<&'static str> {
        matches!(self.state, State::Announced { .. })
            .then_some("not all ranks of the other hosts have called init")
    }

    /// Sends a line. The socket has room for the few lines of a job.
    fn send(&mut self, line: &ToLauncher) -> Result<(), SiteError> {
        let failed = |error: io::Error| SiteError::Launcher(error.to_string());
        let mut text = serde_json::to_vec(line).expect("plain data");
        text.push(b'\n');
        self.socket.set_nonblocking(false).map_err(failed)?;
        self.socket.write_all(&text).map_err(failed)?;
        self.socket.set_nonblocking(true).map_err(failed)
    }

    fn formed(
        &self,
        host: u32,
        hosts: &[Vec<RankAddress>],
        own: &[RankAddress],
        listeners: Vec<OwnedFd>,
        key: Vec<u8>,
    ) -> Result<Formed, SiteError> {
        let before: usize = hosts.iter().take(host as usize).map(Vec::len).sum();
        if hosts.get(host as usize).map(Vec::as_slice) != Some(own) || before != self.plan.first as usize {
            return Err(SiteError::Launcher("the ranks of this host have changed".to_owned()));
        }
        let world = world(&self.plan, &self.network, own.len() as u32, hosts, key.into());
        let world = World::parse(&world.emit())?;
        let (first, size) = (world.base, world.members.len());
        let description = world.seal().map_err(SiteError::Seal)?;
        let grant = WorldGrant { description, listeners, shares_memory: world.shares_memory };
        Ok(Formed { grant, first, size, foreign: 0, loopback: None })
    }
}

/// The world of all hosts, from the point of view of one.
fn world(plan: &HostPlan, network: &Network, count: u32, hosts: &[Vec<RankAddress>], key: Bytes) -> World {
    let dialect = network.terms.dialect;
    let member = |(rank, at): (&RankAddress, u32)| {
        let pid = Pid::from_raw(rank.pid as i32).unwrap_or(Pid::INIT);
        Member { proc: proc(dialect, pid, network.way(), rank.address.ip()), host: at, is_ours: true }
    };
    let site = |(ranks, client): (&Vec<RankAddress>, u32)| {
        ranks.iter().map(|rank| WorldHost { address: rank.address, client }).collect::<Vec<_>>()
    };
    World {
        base: plan.first,
        count,
        shares_memory: plan.shares_memory,
        carrier: network.carrier,
        ports: network.ports.clone(),
        terms: network.terms,
        tag_ub: TAG_UB_MAX,
        xsize: network.xsize.unwrap_or(XSIZE_DEFAULT),
        maxlinear: network.maxlinear.unwrap_or(MAXLINEAR_DEFAULT),
        connect_time: network.connect_time,
        peer_timeout: network.peer_timeout,
        key,
        hosts: hosts.iter().zip(0..).flat_map(site).collect(),
        members: hosts.iter().flatten().zip(0..).map(member).collect(),
    }
}

#[cfg(test)]
mod tests {
    use mpjdev_transport::tcp::Terms;

    use super::*;

    /// The host of ranks 2 and 3 of a job of five, and the other end of its socket.
    fn host() -> (HostSite, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let plan = HostPlan { name: "b".into(), first: 2, size: 5, shares_memory: true };
        let network = Network::from_environment(Vec::new(), None, Terms::default()).expect("no variables");
        (HostSite::new(plan, network, ours.into()).expect("a socket"), theirs)
    }

    fn begun() -> (HostSite, UnixStream, Vec<RankAddress>) {
        let (mut host, mut theirs) = host();
        host.begin(&[Pid::INIT, Pid::INIT]).expect("it listens");
        let mut line = [0; 4096];
        let len = theirs.read(&mut line).expect("a line");
        let Ok(ToLauncher::Announce(own)) = serde_json::from_slice(&line[..len]) else {
            panic!("no announcement")
        };
        (host, theirs, own)
    }

    fn say(theirs: &mut UnixStream, line: &ToHost) {
        let mut text = serde_json::to_vec(line).expect("plain data");
        text.push(b'\n');
        theirs.write_all(&text).expect("room");
    }

    fn rank(port: u16) -> RankAddress {
        RankAddress { pid: 7, address: SocketAddr::from(([10, 0, 0, 1], port)) }
    }

    #[test]
    fn world_has_the_ranks_of_all_hosts_in_order() {
        let (mut host, mut theirs, own) = begun();
        assert!(host.advance().expect("nothing yet").is_none());
        let hosts = vec![vec![rank(1), rank(2)], own.clone(), vec![rank(3)]];
        say(&mut theirs, &ToHost::World { host: 1, hosts, key: vec![9; 32] });
        let formed = host.advance().expect("a world").expect("complete");
        assert_eq!((formed.first, formed.size, formed.foreign), (2, 5, 0));
        let world = World::open(formed.grant.description).expect("a world");
        assert_eq!(
            (world.base, world.count, world.shares_memory, &world.key[..]),
            (2, 2, true, &[9; 32][..])
        );
        assert_eq!(world.hosts.iter().map(|host| host.client).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        assert_eq!((world.address(0), world.address(2)), (rank(1).address, own[0].address));
        assert!(host.ready_fd().is_none(), "nothing more is read");
    }

    #[test]
    fn world_that_changes_this_host_is_refused() {
        for hosts in
            [vec![vec![rank(1), rank(2)], vec![rank(3), rank(4)]], vec![vec![rank(1), rank(2)]], Vec::new()]
        {
            let (mut host, mut theirs, _) = begun();
            say(&mut theirs, &ToHost::World { host: 1, hosts, key: Vec::new() });
            assert!(matches!(host.advance(), Err(SiteError::Launcher(_))));
        }
        let (mut host, mut theirs, own) = begun();
        say(&mut theirs, &ToHost::World { host: 0, hosts: vec![own], key: Vec::new() });
        assert!(matches!(host.advance(), Err(SiteError::Launcher(_))), "its first rank is 2");
        let (mut host, mut theirs, _) = begun();
        theirs.write_all(b"{}\n").expect("room");
        assert!(matches!(host.advance(), Err(SiteError::Launcher(_))));
    }

    #[test]
    fn ended_hosts_are_named() {
        let (mut host, mut theirs, _) = begun();
        say(&mut theirs, &ToHost::Ended(vec!["c".into()]));
        let error = host.advance().expect_err("the job cannot form").to_string();
        assert!(error.contains("c"), "{error}");
    }

    #[test]
    fn host_whose_ranks_end_leaves_once() {
        let (mut host, mut theirs) = host();
        host.give_up();
        host.give_up();
        let mut line = [0; 64];
        let len = theirs.read(&mut line).expect("a line");
        assert_eq!(&line[..len], b"\"Leave\"\n");
    }
}
