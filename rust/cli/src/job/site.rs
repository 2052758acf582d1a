//! State machine of a site. It joins its job at the startup server when all its ranks have called `init`, and
//! reports success at the end.
//!
//! ```text
//!   Waiting --begin--> Connecting --> Joining --tables--> Running --finish--> Over
//!   for the ranks      in a thread    exchanges with      watches the         has sent FINI
//!                                     the server          server
//! ```
//!
//! Only [`finish`](Site::finish) blocks, and for a short time. The caller polls [`ready_fd`](Site::ready_fd)
//! with its other descriptors, and then calls [`advance`](Site::advance).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mpjdev_bootstrap::job::world::{World, WorldError, WorldHost, address_octets, address_of};
use mpjdev_proto::impi::marker::{self, Way};
use mpjdev_proto::impi::startup::layout::{TAG_UB_MAX, Version};
use mpjdev_proto::impi::startup::{self, Auth, ClientError, HostSettings, Settings, Tables};
use mpjdev_transport::tcp::{Member, Terms};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use thiserror::Error;

use super::member_list::WorldGrant;
use super::network::{Network, proc};
use crate::impi::auth;
use crate::impi::client::{Connection, JoinError, Joining, Link};

const RETRY_EVERY: Duration = Duration::from_millis(100);
/// Maximum attempts to join. A flooded server may close a connection before it has answered.
const JOINS_MAX: u32 = 4;
/// Maximum time to report success to the server.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// Plan of a site: its number in the job, and the startup server.
#[derive(Clone, Debug)]
pub struct SitePlan {
    /// Its number among the clients of the job.
    pub client: u32,
    /// The startup server, `host:port`.
    pub server: String,
    /// Authentication methods of the environment, if it sets any.
    pub auth: Option<Auth>,
    /// Whether the site's ranks share memory.
    pub shares_memory: bool,
    /// World rank of its first rank, if one launcher has started all sites.
    pub first: Option<u32>,
}

/// The reason why a site has not joined a job, or has lost it.
#[derive(Debug, Error)]
pub enum SiteError {
    /// The server, or the settings of another site.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A rank cannot listen.
    #[error("{0}")]
    Listen(io::Error),
    /// An address needs a key, and there is none.
    #[error(transparent)]
    Auth(#[from] auth::KeyNeeded),
    /// The tables differ from this site's announcement.
    #[error(
        "the startup server has changed the announcement of client {client}: another server may answer at \
         this address, or two sites have this number"
    )]
    Changed {
        /// This site.
        client: u32,
    },
    /// mpjdev ranks of the job use different transports.
    #[error(
        "the ranks of client {client} send {} and those of this site {}: give all sites of the job \
         --transport udp, or none",
        words(*.way), words(*.own)
    )]
    Ways {
        /// The client of those ranks.
        client: u32,
        /// The transport of those ranks.
        way: Way,
        /// The transport of this site's ranks.
        own: Way,
    },
    /// The tables do not describe a valid world.
    #[error("the startup server's tables: {0}")]
    World(#[from] WorldError),
    /// The system refuses.
    #[error("the description of the world: {0}")]
    Seal(io::Error),
    /// The site ends before it has joined.
    #[error("the site has not joined its job: not all of its ranks have called Comm.init")]
    NotJoined,
    /// The launcher of all hosts breaks the protocol.
    #[error("the launcher of all hosts: {0}")]
    Launcher(String),
    /// Not all ranks of a job of hosts will call `init`.
    #[error(
        "the job cannot start: not all ranks on {} have called Comm.init, and some of them have ended",
        hosts.join(", ")
    )]
    HostsEnded {
        /// The names of the hosts.
        hosts: Vec<String>,
    },
    /// The thread that connects has ended.
    #[error("cannot connect to the startup server: {0}")]
    Thread(io::Error),
}

fn words(way: Way) -> &'static str {
    match way {
        Way::Packets => "packets over TCP",
        Way::Datagrams => "datagrams",
    }
}

/// A job that has formed, as one site sees it.
#[derive(Debug)]
pub struct Formed {
    /// The world description for the site's ranks.
    pub grant: WorldGrant,
    /// World rank of the site's first rank.
    pub first: u32,
    /// Number of ranks in the world.
    pub size: usize,
    /// Number of them that belong to another implementation.
    pub foreign: usize,
    /// A loopback address that a site announces although other sites announce addresses of a network.
    pub loopback: Option<(u32, IpAddr)>,
}

#[derive(Debug)]
enum SiteState {
    Waiting,
    Connecting { pids: Vec<Pid>, result: Receiver<Result<Link, JoinError>>, bell: UnixStream },
    Joining(Box<Pending>),
    Running(Box<Connection>),
    Over,
}

/// The announcement of a site, kept until the tables arrive.
#[derive(Debug)]
struct Pending {
    pids: Vec<Pid>,
    joining: Joining,
    listeners: Vec<OwnedFd>,
    /// The announcement of each rank.
    announced: Vec<(Member, SocketAddr)>,
    key: Bytes,
}

/// A site of a job.
#[derive(Debug)]
pub struct Site {
    plan: SitePlan,
    network: Network,
    state: SiteState,
    /// Number of attempts to join.
    joins: u32,
}

impl Site {
    /// A site whose ranks have not called `init`.
    #[must_use]
    pub fn new(plan: SitePlan, network: Network) -> Site {
        Site { plan, network, state: SiteState::Waiting, joins: 0 }
    }

    /// Begins to join, once: all ranks have called `init`, in these processes. Does not block.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn begin(&mut self, pids: Vec<Pid>) -> Result<(), SiteError> {
        if !matches!(self.state, SiteState::Waiting) {
            return Ok(());
        }
        // The first attempt is made at once, the next ones after 0.1, 0.2 and 0.4 s.
        let pause = RETRY_EVERY * ((1 << self.joins) >> 1);
        self.joins += 1;
        let (sender, result) = channel();
        let (bell, notify) = UnixStream::pair().map_err(SiteError::Thread)?;
        let server = self.plan.server.clone();
        let connect_time = self.network.connect_time;
        let connect = move || {
            std::thread::sleep(pause);
            let _ = sender.send(connect(&server, connect_time));
            drop(notify);
        };
        std::thread::Builder::new().spawn(connect).map_err(SiteError::Thread)?;
        self.state = SiteState::Connecting { pids, result, bell };
        Ok(())
    }

    /// The descriptor to poll, and the events to poll it for.
    #[must_use]
    pub fn ready_fd(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.state {
            SiteState::Connecting { bell, .. } => Some((bell.as_fd(), PollFlags::IN)),
            SiteState::Joining(pending) => Some((pending.joining.as_fd(), pending.joining.interest())),
            SiteState::Running(connection) => Some((connection.as_fd(), PollFlags::IN)),
            SiteState::Waiting | SiteState::Over => None,
        }
    }

    fn is_ready(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.ready_fd().is_some_and(|(fd, flags)| {
            poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&now)).is_ok_and(|ready| ready > 0)
        })
    }

    /// Advances as far as possible. Returns the job once, when it has formed.
    ///
    /// # Errors
    /// The job cannot form, or is lost. The site does nothing more.
    pub fn advance(&mut self) -> Result<Option<Formed>, SiteError> {
        if self.is_ready() { self.step() } else { Ok(None) }
    }

    fn step(&mut self) -> Result<Option<Formed>, SiteError> {
        let state = std::mem::replace(&mut self.state, SiteState::Over);
        match state {
            SiteState::Connecting { pids, result, bell } => match result.try_recv() {
                Ok(link) => {
                    self.state = SiteState::Joining(Box::new(self.join(link?, &pids)?));
                    // The client sends first.
                    self.step()
                }
                Err(TryRecvError::Empty) => {
                    self.state = SiteState::Connecting { pids, result, bell };
                    Ok(None)
                }
                Err(TryRecvError::Disconnected) => {
                    Err(SiteError::Thread(io::Error::other("the thread that connects has ended")))
                }
            },
            SiteState::Joining(mut pending) => match pending.joining.advance() {
                Err(error) if self.may_join_again(&error) => {
                    self.state = SiteState::Waiting;
                    self.begin(pending.pids)?;
                    Ok(None)
                }
                Err(error) => Err(error.into()),
                Ok(Some(tables)) => {
                    let Pending { joining, listeners, announced, key, .. } = *pending;
                    let formed = self.formed(&tables, listeners, &announced, key)?;
                    self.state = SiteState::Running(Box::new(joining.into_connection()));
                    Ok(Some(formed))
                }
                Ok(None) => {
                    self.state = SiteState::Joining(pending);
                    Ok(None)
                }
            },
            SiteState::Running(mut connection) => {
                connection.watch()?;
                self.state = SiteState::Running(connection);
                Ok(None)
            }
            SiteState::Waiting | SiteState::Over => Ok(None),
        }
    }

    /// Whether the server closed the connection before it answered, and attempts are left.
    fn may_join_again(&self, error: &JoinError) -> bool {
        self.joins < JOINS_MAX
            && matches!(error, JoinError::Protocol(ClientError::Closed { stage: startup::Stage::Auth }))
    }

    /// Leaves the job, since not all ranks will call `init`. The other sites need not wait then.
    pub fn give_up(&mut self) {
        if matches!(self.state, SiteState::Connecting { .. } | SiteState::Joining(_)) {
            self.state = SiteState::Over;
        }
    }

    /// A text for the user that names what the site waits for; `None` before it begins and while the job
    /// runs.
    #[must_use]
    pub fn waits_for(&self) -> Option<&'static str> {
        match &self.state {
            SiteState::Connecting { .. } => Some("the startup server has not answered"),
            SiteState::Joining(pending) if pending.joining.has_joined() => Some("the job has not started"),
            SiteState::Joining(_) => Some("not all sites have joined"),
            SiteState::Waiting | SiteState::Running(_) | SiteState::Over => None,
        }
    }

    /// Reports success of all ranks to the server; blocks for some seconds at most.
    ///
    /// # Errors
    /// The site has joined no job, or the report cannot be sent.
    pub fn finish(self) -> Result<(), SiteError> {
        match self.state {
            SiteState::Running(connection) => Ok(connection.finish(Some(Instant::now() + FINISH_MAX))?),
            _ => Err(SiteError::NotJoined),
        }
    }

    /// Listens for all ranks and announces them.
    fn join(&self, link: Link, pids: &[Pid]) -> Result<Pending, SiteError> {
        let Terms { dialect, maxdatalen, ackmark, hiwater } = self.network.terms;
        let local = link.local_address().map_err(JoinError::Io)?;
        let listening = self
            .network
            .listen(pids.len(), self.plan.first.unwrap_or(0), local.to_canonical())
            .map_err(SiteError::Listen)?;
        let (listeners, addresses): (Vec<_>, Vec<_>) = listening.into_iter().unzip();
        let reachable = addresses.iter().map(SocketAddr::ip).find(|ip| !auth::is_loopback(*ip));
        let auth = auth::allowed(reachable.unwrap_or(local), self.plan.auth)?;
        let member = |(pid, address): (&Pid, SocketAddr)| {
            (
                Member {
                    proc: proc(dialect, *pid, self.network.way(), address.ip()),
                    host: 0,
                    is_ours: true,
                },
                address,
            )
        };
        let announced: Vec<_> = pids.iter().zip(addresses).map(member).collect();
        let host = |(member, address): &(Member, SocketAddr)| HostSettings {
            address: address_octets(address.ip()),
            port: address.port(),
            procs: vec![member.proc],
            ackmark,
            hiwater,
        };
        let settings = Settings {
            rank: self.plan.client,
            dialect,
            auth,
            versions: vec![Version::V0_0],
            hosts: announced.iter().map(host).collect(),
            datalen: maxdatalen,
            tag_ub: TAG_UB_MAX,
            coll_xsize: self.network.xsize,
            coll_maxlinear: self.network.maxlinear,
            // LAM does not pipeline either, so servers of other implementations may not support it.
            pipelines: false,
        };
        let key = auth.key.map_or_else(Bytes::new, |key| Bytes::copy_from_slice(&key.0.to_be_bytes()));
        Ok(Pending { pids: pids.to_vec(), joining: link.begin(settings)?, listeners, announced, key })
    }

    /// The world of the tables, checked against this site's announcement.
    fn formed(
        &self,
        tables: &Tables,
        listeners: Vec<OwnedFd>,
        announced: &[(Member, SocketAddr)],
        key: Bytes,
    ) -> Result<Formed, SiteError> {
        check_ways(tables, &self.network)?;
        let world = world(tables, &self.plan, &self.network, key);
        let own = world.members.get(world.base as usize..).unwrap_or_default().iter().take(announced.len());
        let is_unchanged = |(member, announced): (&Member, &(Member, SocketAddr))| {
            member.proc == announced.0.proc && world.hosts[member.host as usize].address == announced.1
        };
        if world.count as usize != announced.len() || !own.zip(announced).all(is_unchanged) {
            return Err(SiteError::Changed { client: self.plan.client });
        }
        let world = World::parse(&world.emit())?;
        let foreign = world.members.iter().filter(|member| !member.is_ours).count();
        let (first, size) = (world.base, world.members.len());
        let description = world.seal().map_err(SiteError::Seal)?;
        let grant = WorldGrant { description, listeners, shares_memory: world.shares_memory };
        Ok(Formed { grant, first, size, foreign, loopback: lone_loopback(tables) })
    }
}

/// The first loopback address in a job whose sites also announce addresses of a network. Other machines
/// cannot reach it.
fn lone_loopback(tables: &Tables) -> Option<(u32, IpAddr)> {
    let addresses = || tables.hosts.iter().map(|host| (host.client, address_of(host.address).to_canonical()));
    let mixed = addresses().any(|(_, ip)| !auth::is_loopback(ip));
    addresses().find(|(_, ip)| mixed && auth::is_loopback(*ip))
}

/// Connects to the startup server. Blocks. Retries for `connect_time` while connections are refused, since
/// the server may start later.
fn connect(server: &str, connect_time: Duration) -> Result<Link, JoinError> {
    let begun = Instant::now();
    loop {
        match Link::connect(server, None) {
            Err(JoinError::Connect { source, .. })
                if source.kind() == io::ErrorKind::ConnectionRefused && begun.elapsed() < connect_time =>
            {
                std::thread::sleep(RETRY_EVERY);
            }
            result => return result,
        }
    }
}

/// Checks that all mpjdev ranks of the job use the transport of this site.
fn check_ways(tables: &Tables, network: &Network) -> Result<(), SiteError> {
    let own = network.way();
    for proc in &tables.procs {
        if let Some(way) = marker::way(network.terms.dialect, proc.proc.pid)
            && way != own
        {
            return Err(SiteError::Ways { client: proc.client, way, own });
        }
    }
    Ok(())
}

/// The world of a job's tables, from the point of view of one site.
fn world(tables: &Tables, plan: &SitePlan, network: &Network, key: Bytes) -> World {
    let dialect = network.terms.dialect;
    let own = tables.clients[plan.client as usize].procs.clone();
    let member = |proc: &mpjdev_proto::impi::startup::JobProc| {
        let is_ours = marker::is_marked(dialect, proc.proc.pid);
        Member { proc: proc.proc, host: proc.host, is_ours }
    };
    let host = |host: &mpjdev_proto::impi::startup::JobHost| {
        let address = SocketAddr::new(address_of(host.address), host.port);
        WorldHost { address, client: host.client }
    };
    let Tables { maxdatalen, ackmark, hiwater, tag_ub, xsize, maxlinear, .. } = *tables;
    World {
        base: own.start,
        count: own.end - own.start,
        shares_memory: plan.shares_memory,
        carrier: network.carrier,
        ports: network.ports.clone(),
        terms: Terms { dialect, maxdatalen, ackmark, hiwater },
        tag_ub,
        xsize,
        maxlinear,
        connect_time: network.connect_time,
        peer_timeout: network.peer_timeout,
        key,
        hosts: tables.hosts.iter().map(host).collect(),
        members: tables.procs.iter().map(member).collect(),
    }
}

#[cfg(test)]
mod tests {
    use mpjdev_proto::impi::startup::{JobClient, JobHost, JobProc};
    use mpjdev_proto::impi::{Dialect, Proc};

    use super::*;

    const OURS: i64 = 0x6d70_6a00_0000_0000;

    /// A foreign client with one host and two processes, and two ranks of ours as client 1.
    fn tables() -> Tables {
        let address = |last| address_octets([127, 0, 0, last].into());
        let client = |hosts, procs| JobClient { versions: vec![Version::V0_0], hosts, procs };
        let host = |client, last, port, procs| JobHost {
            client,
            address: address(last),
            port,
            procs,
            ackmark: 9,
            hiwater: 9,
        };
        let proc =
            |client, host, last, pid| JobProc { proc: Proc { host_id: address(last), pid }, host, client };
        Tables {
            clients: vec![client(0..1, 0..2), client(1..3, 2..4)],
            hosts: vec![host(0, 1, 5000, 0..2), host(1, 2, 5001, 2..3), host(1, 3, 5002, 3..4)],
            procs: vec![
                proc(0, 0, 1, 70),
                proc(0, 0, 1, 71),
                proc(1, 1, 2, OURS | 72),
                proc(1, 2, 3, OURS | 73),
            ],
            maxdatalen: 1000,
            ackmark: 3,
            hiwater: 5,
            tag_ub: 40_000,
            xsize: 1024,
            maxlinear: 4,
        }
    }

    #[test]
    fn loopback_address_beside_a_network_address_is_named() {
        let mut tables = tables();
        assert_eq!(lone_loopback(&tables), None, "all are on one machine");
        tables.hosts[0].address = address_octets([192, 0, 2, 7].into());
        assert_eq!(lone_loopback(&tables), Some((1, [127, 0, 0, 2].into())));
        tables.hosts.truncate(1);
        assert_eq!(lone_loopback(&tables), None);
    }

    #[test]
    fn connect_fails_when_the_server_refuses_until_the_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        drop(listener);
        let begun = Instant::now();
        let connect_time = 3 * RETRY_EVERY;
        assert!(matches!(connect(&address, connect_time), Err(JoinError::Connect { .. })));
        assert!(begun.elapsed() >= connect_time);
    }

    fn site() -> Site {
        let server = "127.0.0.1:5000".to_owned();
        let plan = SitePlan { client: 1, server, auth: None, shares_memory: true, first: None };
        let network = Network::from_environment(Vec::new(), None, Terms::default()).expect("no variables");
        let network = Network { connect_time: Duration::from_millis(1500), ..network };
        Site::new(plan, network)
    }

    fn announced() -> Vec<(Member, SocketAddr)> {
        let of = |last, pid: u32, port| {
            let pid = Pid::from_raw(pid as i32).expect("a process");
            let address = SocketAddr::from(([127, 0, 0, last], port));
            (
                Member {
                    proc: proc(Dialect::Final, pid, Way::Packets, address.ip()),
                    host: 0,
                    is_ours: true,
                },
                address,
            )
        };
        vec![of(2, 72, 5001), of(3, 73, 5002)]
    }

    #[test]
    fn world_has_the_ranks_and_terms_of_the_tables() {
        let formed =
            site().formed(&tables(), Vec::new(), &announced(), Bytes::from_static(&[7])).expect("a job");
        assert_eq!((formed.first, formed.size, formed.foreign), (2, 4, 2));
        assert!(formed.grant.shares_memory);
        let world = World::open(formed.grant.description).expect("a world");
        assert_eq!((world.base, world.count, world.shares_memory, &world.key[..]), (2, 2, true, &[7][..]));
        let terms = Terms { dialect: Dialect::Final, maxdatalen: 1000, ackmark: 3, hiwater: 5 };
        assert_eq!((world.terms, world.tag_ub), (terms, 40_000));
        assert_eq!(world.connect_time, Duration::from_millis(1500));
        assert_eq!(
            world.members.iter().map(|m| (m.host, m.is_ours)).collect::<Vec<_>>(),
            [(0, false), (0, false), (1, true), (2, true)]
        );
        assert_eq!(world.address(2), SocketAddr::from(([127, 0, 0, 3], 5002)));
        assert_eq!(world.hosts.iter().map(|host| host.client).collect::<Vec<_>>(), [0, 1, 1]);
    }

    #[test]
    fn tables_with_changed_values_of_this_site_are_refused() {
        let refused = |change: fn(&mut Tables)| {
            let mut tables = tables();
            change(&mut tables);
            let formed = site().formed(&tables, Vec::new(), &announced(), Bytes::new());
            assert!(matches!(formed, Err(SiteError::Changed { client: 1 })));
        };
        refused(|tables| tables.procs[2].proc.pid = OURS | 1);
        refused(|tables| tables.procs[3].proc.host_id[15] = 9);
        refused(|tables| tables.hosts[1].port = 1);
        refused(|tables| tables.hosts[2].address[15] = 9);
        refused(|tables| tables.procs.swap(2, 3));
        refused(|tables| tables.clients[1].procs = 2..3);
    }

    #[test]
    fn marker_decides_which_ranks_are_foreign() {
        let mut tables = tables();
        tables.procs[0].proc.pid |= OURS;
        let formed = site().formed(&tables, Vec::new(), &announced(), Bytes::new()).expect("a job");
        assert_eq!(formed.foreign, 1);
    }

    #[test]
    fn finish_of_a_site_that_has_not_joined_fails() {
        assert!(matches!(site().finish(), Err(SiteError::NotJoined)));
    }
}
