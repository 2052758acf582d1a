//! A job of ranks of ours and of foreign ranks, which the test plays.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, SlabSource, WriteBuffer};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Clients, Comm, Config, DeviceError, Done, RecvFrom, RequestId};
use mpjdev_proto::impi::{Dialect, Proc};
use mpjdev_transport::tcp::{self, Member, Terms};

use crate::speaker::{Limits, Process, Speaker};

/// Deadline of every expected event.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Ranks of one client in the job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    /// Ranks of ours, each a host.
    Ours(usize),
    /// Hosts, with their numbers of processes.
    Foreign(&'static [usize]),
    /// Ranks that count as ours, each a host, and that the test plays.
    Posing(usize),
}

/// A job.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) pool: Arc<HeapPool>,
    /// Our ranks, by their number in the world.
    pub(crate) ranks: BTreeMap<u32, Comm>,
    /// The test's ends of connections, by host and by the rank of ours at the other end.
    pub(crate) speakers: BTreeMap<(u32, u32), Speaker>,
}

/// Clients up to which barriers are linear, as everywhere (IMPI 13).
pub(crate) const MAXLINEAR: u32 = 4;

/// The limits of most tests, small enough to be reached.
pub(crate) const TERMS: Terms = Terms { dialect: Dialect::Final, maxdatalen: 256, ackmark: 4, hiwater: 8 };

/// Rank 0 of ours and the speaker for rank 1.
pub(crate) fn pair(terms: Terms, config: Config) -> (Site, Speaker) {
    let mut site = Site::new(&[Client::Ours(1), Client::Foreign(&[1])], terms, config);
    let speaker = site.speakers.remove(&(1, 0)).expect("connected");
    (site, speaker)
}

/// The same with the usual limits.
pub(crate) fn usual_pair() -> (Site, Speaker) {
    pair(TERMS, Config::default())
}

impl Site {
    /// Connects all ranks of these clients.
    pub(crate) fn new(clients: &[Client], terms: Terms, config: Config) -> Site {
        Site::with_maxlinear(clients, MAXLINEAR, terms, config)
    }

    /// The same in a job whose barriers are linear for this number of clients.
    pub(crate) fn with_maxlinear(clients: &[Client], maxlinear: u32, terms: Terms, config: Config) -> Site {
        let (mut members, mut of_client, mut runs_here) = (Vec::new(), Vec::new(), Vec::new());
        let mut host = 0;
        for (client, kind) in (0..).zip(clients) {
            let hosts = match kind {
                Client::Ours(ranks) | Client::Posing(ranks) => vec![1; *ranks],
                Client::Foreign(hosts) => hosts.to_vec(),
            };
            for processes in hosts {
                for _ in 0..processes {
                    let pid = members.len() as i64 + 4711;
                    let host_id = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
                    let is_ours = !matches!(kind, Client::Foreign(_));
                    members.push(Member { proc: Proc { host_id, pid }, host, is_ours });
                    of_client.push(client);
                    runs_here.push(matches!(kind, Client::Ours(_)));
                }
                host += 1;
            }
        }
        let pool = HeapPool::new(1 << 30);
        let mut site = Site { pool, ranks: BTreeMap::new(), speakers: BTreeMap::new() };
        let mut sockets = site.connect(&members, &runs_here, terms);
        let config = config.bounded();
        let has_foreign = members.iter().any(|member| !member.is_ours) && terms.dialect == Dialect::Final;
        for rank in (0..members.len() as u32).filter(|rank| runs_here[*rank as usize]) {
            let host = members[rank as usize].host;
            let sockets = (0..=members[members.len() - 1].host).map(|peer| sockets.remove(&(host, peer)));
            let (members, site_of) = (members.clone(), of_client.clone());
            let job = tcp::Job { rank, members, site_of, terms, sockets: sockets.collect() };
            let clients = has_foreign.then(|| Clients::new(rank, &of_client, maxlinear));
            let comm = mpjdev_bootstrap::job::tcp_rank(job, clients, config.clone(), &site.source(), None);
            site.ranks.insert(rank, comm.expect("a rank"));
        }
        site
    }

    /// A connection for each pair of hosts with at least one of ours; those of ours by host and other host.
    fn connect(
        &mut self,
        members: &[Member],
        runs_here: &[bool],
        terms: Terms,
    ) -> BTreeMap<(u32, u32), OwnedFd> {
        let limits = Limits {
            maxdatalen: terms.maxdatalen as usize,
            ackmark: terms.ackmark.into(),
            hiwater: terms.hiwater.into(),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let mut sockets = BTreeMap::new();
        for (rank, ours) in (0..).zip(members).filter(|(rank, _)| runs_here[*rank as usize]) {
            let mut done = vec![ours.host];
            for (member, is_here) in members.iter().zip(runs_here) {
                if done.contains(&member.host) || (*is_here && member.host < ours.host) {
                    continue;
                }
                done.push(member.host);
                let there = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
                let (here, _) = listener.accept().expect("a connection");
                here.set_nodelay(true).expect("no delay");
                there.set_nodelay(true).expect("no delay");
                sockets.insert((ours.host, member.host), here.into());
                if *is_here {
                    sockets.insert((member.host, ours.host), there.into());
                    continue;
                }
                let process = |proc: Proc| -> Process { (proc.host_id, proc.pid) };
                let at = |(_, other): &(u32, &Member)| other.host == member.host;
                let locals: Vec<(Process, u32)> =
                    (0..).zip(members).filter(at).map(|(rank, m)| (process(m.proc), rank)).collect();
                let speaker = Speaker::new(there, &locals, (process(ours.proc), rank), limits);
                self.speakers.insert((member.host, rank), speaker);
            }
        }
        sockets
    }

    pub(crate) fn source(&self) -> Arc<dyn SlabSource> {
        self.pool.clone()
    }

    /// The first, or only, rank of ours.
    pub(crate) fn comm(&self) -> &Comm {
        self.ranks.values().next().expect("a rank of ours")
    }

    /// Drives progress until the condition holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Comm) -> bool) {
        until(self.comm(), what, &mut holds);
    }

    /// Receives a message, with a deadline.
    pub(crate) fn recv(&self, from: RecvFrom, capacity: usize) -> Result<Done, DeviceError> {
        let id = self.comm().irecv(from, capacity, None)?;
        self.wait(id)
    }

    /// Waits for a request, with a deadline.
    pub(crate) fn wait(&self, id: RequestId) -> Result<Done, DeviceError> {
        self.comm().wait(id, Some(soon()), &mut mpjdev_engine::Uninterruptible)
    }

    /// A message of a section of bytes and a secondary payload. With a secondary payload it is split.
    pub(crate) fn message(&self, encoding: Encoding, primary: &[i8], secondary: &[u8]) -> Message {
        let room = 8 + primary.len().next_multiple_of(8);
        let mut buffer = WriteBuffer::new(self.source(), room as i64, encoding).expect("a capacity");
        buffer.write(primary).expect("room");
        if !secondary.is_empty() {
            buffer.stage_secondary(secondary.len()).expect("memory").put_octets(secondary);
            buffer.grow_secondary(secondary.len());
        }
        buffer.finish().expect("memory").clone()
    }

    /// Checks that no message is left.
    #[track_caller]
    pub(crate) fn check_clean(&self) {
        for comm in self.ranks.values() {
            assert_eq!(comm.leftovers(), (0, 0), "messages and requests");
        }
        assert_eq!(self.pool.used(), 0, "octets in use");
    }
}

/// Drives progress until the condition holds.
#[track_caller]
pub(crate) fn until(comm: &Comm, what: &str, holds: &mut dyn FnMut(&Comm) -> bool) {
    let deadline = soon();
    loop {
        let _ = comm.iprobe(RecvFrom { source: None, tag: Some(32_000) });
        if holds(comm) {
            return;
        }
        assert!(Instant::now() < deadline, "not within {SOON:?}: {what}");
        std::thread::yield_now();
    }
}

/// The wait control of a thread that blocks for an expected event.
pub(crate) fn for_a_while() -> impl FnMut() -> bool {
    let deadline = soon();
    move || Instant::now() < deadline
}

pub(crate) fn soon() -> Instant {
    Instant::now() + SOON
}

pub(crate) const ANY: RecvFrom = RecvFrom { source: None, tag: None };

pub(crate) fn from(source: impl Into<Option<i32>>, tag: impl Into<Option<i32>>) -> RecvFrom {
    RecvFrom { source: source.into(), tag: tag.into() }
}

/// The octets of a message with one section of bytes and a secondary payload, which may be cut off as a
/// second part. Written by hand from the description of the format.
pub(crate) fn octets(encoding: Encoding, primary: &[i8], secondary: &[u8]) -> Vec<u8> {
    let four = |n: usize| match encoding {
        Encoding::Big => (n as u32).to_be_bytes(),
        Encoding::Little => (n as u32).to_le_bytes(),
    };
    let padded = primary.len().next_multiple_of(8);
    let mut out = vec![u8::from(encoding == Encoding::Little), 0, 0, 0];
    out.extend(four(8 + padded));
    out.extend([0, 0, 0, 0]);
    out.extend(four(primary.len()));
    out.extend(primary.iter().map(|byte| *byte as u8));
    out.resize(out.len() + padded - primary.len(), 0);
    out.extend([0; 4]);
    out.extend(four(secondary.len()));
    out.extend(secondary);
    out
}

/// Both physical messages of a split one.
pub(crate) fn halves(encoding: Encoding, primary: &[i8], secondary: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut first = octets(encoding, primary, secondary);
    let second = first.split_off(first.len() - secondary.len());
    (first, second)
}

/// Octets of primary and secondary payload, and the bytes of the first section.
pub(crate) fn content(site: &Site, message: Message) -> (Vec<i8>, Vec<u8>) {
    let mut secondary = vec![0; message.secondary_len()];
    message.copy_secondary(0, &mut secondary);
    let mut buffer =
        mpjdev_buffer::ReadBuffer::new(site.source(), message.capacity() as i64).expect("a capacity");
    buffer.adopt(message);
    let count = buffer.peek().expect("a section").map_or(0, |header| header.count);
    let mut bytes = vec![0i8; count];
    buffer.read(&mut bytes).expect("bytes");
    (bytes, secondary)
}
