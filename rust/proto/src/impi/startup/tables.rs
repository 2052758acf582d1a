//! The tables of the job, which every client computes from the replies (IMPI 1, 5.5).

use std::fmt;
use std::ops::Range;

use byteorder::{BigEndian, ByteOrder};
use thiserror::Error;

use super::layout::{
    CLIENTS_MAX, DATALEN_DEFAULT, HOSTS_MAX, Label, MAXLINEAR_DEFAULT, PROCS_MAX, TAG_UB_MAX, TAG_UB_MIN,
    Version, XSIZE_DEFAULT,
};
use crate::impi::{Dialect, Proc};

/// All clients, hosts and processes of a job, and the values that all agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Clients by their rank.
    pub clients: Vec<JobClient>,
    /// Hosts by their global number: those of client 0, then those of client 1, and so on.
    pub hosts: Vec<JobHost>,
    /// Processes by their rank in MPI_COMM_WORLD: those of host 0, then those of host 1, and so on.
    pub procs: Vec<JobProc>,
    /// Most octets of user data in a packet: the least of all clients.
    pub maxdatalen: u32,
    /// Packets after which each host acknowledges: the least of all hosts, in the draft too, which leaves the
    /// scope of a mark open (IMPI 15).
    pub ackmark: u32,
    /// Packets that may be in flight without an acknowledgement: the least of all hosts; never less than
    /// ackmark.
    pub hiwater: u32,
    /// The largest tag: the least of all clients.
    pub tag_ub: u32,
    /// Octets from which collective operations are "long".
    pub xsize: u32,
    /// Masters up to which collective operations are linear.
    pub maxlinear: u32,
}

/// One client of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobClient {
    /// Its versions of IMPI, ascending from 0.0.
    pub versions: Vec<Version>,
    /// Its hosts.
    pub hosts: Range<u32>,
    /// Its processes.
    pub procs: Range<u32>,
}

/// One host of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHost {
    /// Rank of its client.
    pub client: u32,
    /// Its address, in the form of IPv6 (IMPI 2.1).
    pub address: [u8; 16],
    /// Its port.
    pub port: u16,
    /// Its processes.
    pub procs: Range<u32>,
    /// Its own ackmark.
    pub ackmark: u32,
    /// Its own hiwater.
    pub hiwater: u32,
}

/// One process of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProc {
    /// Its name in packets.
    pub proc: Proc,
    /// Global number of its host.
    pub host: u32,
    /// Rank of its client.
    pub client: u32,
}

/// Replies that contradict each other or the specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// The mask has bits beyond the number of clients.
    #[error("{label}: client_mask {mask:#x} names more than the {size} clients")]
    Mask {
        /// The reply.
        label: Label,
        /// Its mask.
        mask: u32,
        /// Clients of the job.
        size: u32,
    },
    /// A client has omitted a label that has no default.
    #[error("client {client} has not sent {label}")]
    Missing {
        /// The label.
        label: Label,
        /// The client.
        client: u32,
    },
    /// The length of the data contradicts the counts.
    #[error("{label}: {actual_len} octets of data, the clients of mask {mask:#x} have {expected_len}")]
    Len {
        /// The reply.
        label: Label,
        /// Its mask.
        mask: u32,
        /// Octets of its data.
        actual_len: usize,
        /// Octets that it must have.
        expected_len: usize,
    },
    /// The versions cannot be assigned to clients.
    #[error("C_VERSION: version {version} does not follow {before:?}, each client's must ascend from 0.0")]
    Version {
        /// The version.
        version: Version,
        /// The version before it, if there is one.
        before: Option<Version>,
    },
    /// There are more lists of versions than clients, or fewer.
    #[error("C_VERSION: {lists} lists of versions for mask {mask:#x}")]
    VersionLists {
        /// The lists that begin with 0.0.
        lists: usize,
        /// The mask.
        mask: u32,
    },
    /// A value is not within its limits.
    #[error("client {client}: {label} is {value}")]
    Value {
        /// The label.
        label: Label,
        /// The client.
        client: u32,
        /// The value.
        value: i64,
    },
    /// The job exceeds a limit.
    #[error("{label}: {total} in all, at most {max} are taken")]
    TooMany {
        /// The label that was counted.
        label: Label,
        /// Their number.
        total: u64,
        /// The limit.
        max: u32,
    },
    /// A client's hosts have more or fewer processes than the client.
    #[error("client {client}: its hosts have {on_hosts} processes, C_NPROCS is {nprocs}")]
    Sum {
        /// The client.
        client: u32,
        /// The sum of H_NPROCS.
        on_hosts: u64,
        /// C_NPROCS.
        nprocs: u32,
    },
    /// The ackmark of a host, or of the job, exceeds the hiwater.
    #[error("host {host} of the job: ackmark {ackmark} and hiwater {hiwater}, which must not be less")]
    Marks {
        /// Global number of the host.
        host: u32,
        /// The ackmark.
        ackmark: u32,
        /// The hiwater.
        hiwater: u32,
    },
    /// A value that must be the same at all clients differs.
    #[error("{label} must be the same everywhere: {}", each(values))]
    Disagreement {
        /// C_COLL_XSIZE or C_COLL_MAXLINEAR.
        label: Label,
        /// The values by client, -1 replaced.
        values: Vec<u32>,
    },
    /// Two processes have the same host id and process id.
    #[error(
        "ranks {first} and {second} have the same host id and the same process id {pid}: processes in \
         containers that share an address need process ids of one namespace, or an --address each"
    )]
    SameProc {
        /// The lower rank.
        first: u32,
        /// The higher rank.
        second: u32,
        /// Their process id.
        pid: i64,
    },
}

impl Tables {
    /// The version of IMPI between the hosts of two clients: the highest that both have; 0.0 at least.
    ///
    /// # Panics
    /// Without such clients.
    #[must_use]
    pub fn version(&self, a: u32, b: u32) -> Version {
        let (a, b) = (&self.clients[a as usize].versions, &self.clients[b as usize].versions);
        a.iter().rev().find(|version| b.contains(version)).copied().unwrap_or_default()
    }
}

/// Tables that grow with each reply.
#[derive(Debug)]
pub(super) struct Gathering {
    dialect: Dialect,
    tables: Tables,
    /// C_NHOSTS and C_NPROCS by client; 0 for a client that has not announced it.
    nhosts: Vec<u32>,
    nprocs: Vec<u32>,
    /// H_ACKMARK and H_HIWATER by host.
    ackmarks: Vec<u32>,
    hiwaters: Vec<u32>,
}

/// One COLL reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply<'a> {
    pub(super) label: Label,
    pub(super) mask: u32,
    pub(super) data: &'a [u8],
}

impl Gathering {
    pub(super) fn new(dialect: Dialect, size: u32) -> Gathering {
        let client = JobClient { versions: vec![Version::V0_0], hosts: 0..0, procs: 0..0 };
        let tables = Tables {
            clients: vec![client; size as usize],
            hosts: Vec::new(),
            procs: Vec::new(),
            maxdatalen: u32::MAX,
            ackmark: u32::MAX,
            hiwater: u32::MAX,
            tag_ub: TAG_UB_MAX,
            xsize: XSIZE_DEFAULT,
            maxlinear: MAXLINEAR_DEFAULT,
        };
        let none = vec![0; size as usize];
        Gathering {
            dialect,
            tables,
            nhosts: none.clone(),
            nprocs: none,
            ackmarks: Vec::new(),
            hiwaters: Vec::new(),
        }
    }

    /// Applies a reply. The labels of [`Label::ALL`] must be in order, each once.
    pub(super) fn handle_reply(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        let size = self.tables.clients.len() as u32;
        if u64::from(reply.mask) >> size != 0 {
            return Err(TableError::Mask { label: reply.label, mask: reply.mask, size });
        }
        match reply.label {
            Label::C_VERSION => self.versions(reply),
            Label::C_NHOSTS => {
                self.nhosts = reply.counts(size, HOSTS_MAX)?;
                number(&self.nhosts, self.tables.clients.iter_mut().map(|client| &mut client.hosts));
                Ok(())
            }
            Label::C_NPROCS => {
                self.nprocs = reply.counts(size, PROCS_MAX)?;
                number(&self.nprocs, self.tables.clients.iter_mut().map(|client| &mut client.procs));
                Ok(())
            }
            Label::C_DATALEN => self.datalens(reply),
            Label::C_TAGUB => self.tag_ubs(reply),
            Label::C_COLL_XSIZE => {
                self.tables.xsize = reply.agreed(size, XSIZE_DEFAULT)?;
                Ok(())
            }
            Label::C_COLL_MAXLINEAR => {
                self.tables.maxlinear = reply.agreed(size, MAXLINEAR_DEFAULT)?;
                Ok(())
            }
            Label::H_IPV6 => self.addresses(reply),
            Label::H_PORT => self.ports(reply),
            Label::H_NPROCS => self.host_procs(reply),
            Label::H_ACKMARK => {
                self.ackmarks = self.marks(reply)?;
                Ok(())
            }
            Label::H_HIWATER => {
                self.hiwaters = self.marks(reply)?;
                Ok(())
            }
            Label::P_IPV6 => self.host_ids(reply),
            Label::P_PID => self.pids(reply),
            _ => Ok(()),
        }
    }

    /// The complete tables, after the last label.
    pub(super) fn finish(mut self) -> Result<Tables, TableError> {
        let tables = &mut self.tables;
        let least = |marks: &[u32]| marks.iter().copied().min().unwrap_or(1);
        tables.ackmark = least(&self.ackmarks);
        tables.hiwater = least(&self.hiwaters);
        let marks = self.ackmarks.iter().zip(&self.hiwaters);
        for (number, (host, (&ackmark, &hiwater))) in (0..).zip(tables.hosts.iter_mut().zip(marks)) {
            (host.ackmark, host.hiwater) = (ackmark, hiwater);
            if ackmark > hiwater {
                return Err(TableError::Marks { host: number, ackmark, hiwater });
            }
        }
        self.different()?;
        Ok(self.tables)
    }

    /// Reads the lists of versions, each of which begins with 0.0.
    fn versions(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        let (versions, rest) = reply.data.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(reply.len_error(versions.len() * 8));
        }
        let mut lists: Vec<Vec<Version>> = Vec::new();
        for version in versions.iter().map(|octets| Version::parse(*octets)) {
            let before = lists.last().and_then(|list| list.last()).copied();
            match lists.last_mut() {
                _ if version == Version::V0_0 => lists.push(vec![version]),
                Some(list) if before < Some(version) => list.push(version),
                _ => return Err(TableError::Version { version, before }),
            }
            if lists.len() > self.tables.clients.len() {
                break;
            }
        }
        if lists.len() != reply.mask.count_ones() as usize {
            return Err(TableError::VersionLists { lists: lists.len(), mask: reply.mask });
        }
        for (client, list) in reply.clients().zip(lists) {
            self.tables.clients[client as usize].versions = list;
        }
        Ok(())
    }

    fn datalens(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        let values = reply.uint4s()?;
        for &(client, value) in &values {
            if value == 0 {
                return Err(reply.value_error(client, 0));
            }
        }
        let least = values.iter().map(|(_, value)| *value).min().unwrap_or(DATALEN_DEFAULT);
        let are_complete = values.len() == self.tables.clients.len();
        self.tables.maxdatalen = if are_complete { least } else { least.min(DATALEN_DEFAULT) };
        Ok(())
    }

    fn tag_ubs(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        for (client, value) in reply.uint4s()? {
            if !(TAG_UB_MIN..=TAG_UB_MAX).contains(&value) {
                return Err(reply.value_error(client, i64::from(value as i32)));
            }
            self.tables.tag_ub = self.tables.tag_ub.min(value);
        }
        Ok(())
    }

    fn addresses(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        reply.needs(&self.nhosts)?;
        for (client, address) in reply.elements::<16>(&self.nhosts)? {
            let host = JobHost { client, address, port: 0, procs: 0..0, ackmark: 0, hiwater: 0 };
            self.tables.hosts.push(host);
        }
        Ok(())
    }

    fn ports(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        reply.needs(&self.nhosts)?;
        let ports = reply.elements::<4>(&self.nhosts)?;
        for (host, (_, octets)) in self.tables.hosts.iter_mut().zip(ports) {
            host.port = BigEndian::read_u32(&octets) as u16;
        }
        Ok(())
    }

    fn host_procs(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        reply.needs(&self.nhosts)?;
        let counts = reply.elements::<4>(&self.nhosts)?;
        let counts: Vec<u32> = counts.iter().map(|(_, octets)| BigEndian::read_u32(octets)).collect();
        for (client, &nprocs) in (0..).zip(&self.nprocs) {
            let JobClient { hosts, .. } = &self.tables.clients[client as usize];
            let on_hosts = counts[hosts.start as usize..hosts.end as usize].iter().copied();
            let on_hosts: u64 = on_hosts.map(u64::from).sum();
            if on_hosts != u64::from(nprocs) {
                return Err(TableError::Sum { client, on_hosts, nprocs });
            }
        }
        number(&counts, self.tables.hosts.iter_mut().map(|host| &mut host.procs));
        Ok(())
    }

    /// A mark has no default: a client without one sends no ProtoAck (MetaMPICH), and its peers would wait
    /// for one forever after hiwater packets.
    fn marks(&self, reply: Reply<'_>) -> Result<Vec<u32>, TableError> {
        reply.needs(&self.nhosts)?;
        let marks = reply.elements::<4>(&self.nhosts)?;
        let checked = marks.into_iter().map(|(client, octets)| match BigEndian::read_u32(&octets) {
            0 => Err(reply.value_error(client, 0)),
            mark => Ok(mark),
        });
        checked.collect()
    }

    fn host_ids(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        reply.needs(&self.nprocs)?;
        for (client, host_id) in reply.elements::<16>(&self.nprocs)? {
            self.tables.procs.push(JobProc { proc: Proc { host_id, pid: 0 }, host: 0, client });
        }
        for (number, host) in (0..).zip(&self.tables.hosts) {
            let procs = &mut self.tables.procs[host.procs.start as usize..host.procs.end as usize];
            procs.iter_mut().for_each(|proc| proc.host = number);
        }
        Ok(())
    }

    fn pids(&mut self, reply: Reply<'_>) -> Result<(), TableError> {
        reply.needs(&self.nprocs)?;
        let procs = self.tables.procs.iter_mut();
        match self.dialect {
            Dialect::Final => {
                let pids = reply.elements::<8>(&self.nprocs)?;
                procs.zip(pids).for_each(|(proc, (_, pid))| proc.proc.pid = BigEndian::read_i64(&pid));
            }
            Dialect::Draft => {
                let pids = reply.elements::<4>(&self.nprocs)?;
                procs.zip(pids).for_each(|(proc, (_, pid))| proc.proc.pid = BigEndian::read_u32(&pid).into());
            }
        }
        Ok(())
    }

    /// No two processes are the same.
    fn different(&self) -> Result<(), TableError> {
        let mut sorted: Vec<(Proc, u32)> = self.tables.procs.iter().map(|p| p.proc).zip(0..).collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|two| two[0].0 == two[1].0) {
            Some(two) => Err(TableError::SameProc { first: two[0].1, second: two[1].1, pid: two[0].0.pid }),
            None => Ok(()),
        }
    }
}

impl Reply<'_> {
    /// The clients of the mask, ascending.
    fn clients(self) -> impl Iterator<Item = u32> {
        (0..u32::BITS).filter(move |client| self.mask & 1 << client != 0)
    }

    /// Its elements, each with its client; `counts` states the exact number of each client.
    fn elements<const N: usize>(self, counts: &[u32]) -> Result<Vec<(u32, [u8; N])>, TableError> {
        let count = |client: u32| counts[client as usize] as usize;
        let expected_len = self.clients().map(|client| count(client) * N).sum();
        let (elements, rest) = self.data.as_chunks::<N>();
        if elements.len() * N != expected_len || !rest.is_empty() {
            return Err(self.len_error(expected_len));
        }
        let clients = self.clients().flat_map(|client| std::iter::repeat_n(client, count(client)));
        Ok(clients.zip(elements.iter().copied()).collect())
    }

    /// One number for each client of the mask.
    fn uint4s(self) -> Result<Vec<(u32, u32)>, TableError> {
        Ok(self
            .elements::<4>(&[1; CLIENTS_MAX as usize])?
            .into_iter()
            .map(|(client, octets)| (client, BigEndian::read_u32(&octets)))
            .collect())
    }

    /// A number of at least 1 for each client; 0 for those that have not announced it.
    fn counts(self, size: u32, max: u32) -> Result<Vec<u32>, TableError> {
        let mut counts = vec![0; size as usize];
        for (client, value) in self.uint4s()? {
            if value == 0 {
                return Err(self.value_error(client, 0));
            }
            counts[client as usize] = value;
        }
        let total = counts.iter().copied().map(u64::from).sum();
        if total > u64::from(max) {
            return Err(TableError::TooMany { label: self.label, total, max });
        }
        Ok(counts)
    }

    /// A value on which all clients agree; -1 or a missing label is the default.
    fn agreed(self, size: u32, default: u32) -> Result<u32, TableError> {
        let mut values = vec![default; size as usize];
        for (client, value) in self.uint4s()? {
            values[client as usize] = match value as i32 {
                -1 => default,
                value => u32::try_from(value).map_err(|_| self.value_error(client, value.into()))?,
            };
        }
        match values.iter().all(|value| *value == values[0]) {
            true => Ok(values[0]),
            false => Err(TableError::Disagreement { label: self.label, values }),
        }
    }

    /// Checks that each client with a count above 0 has sent the label.
    fn needs(self, counts: &[u32]) -> Result<(), TableError> {
        let missing = (0..).zip(counts).find(|(client, count)| **count > 0 && self.mask & 1 << client == 0);
        match missing {
            Some((client, _)) => Err(TableError::Missing { label: self.label, client }),
            None => Ok(()),
        }
    }

    fn len_error(self, expected_len: usize) -> TableError {
        let Reply { label, mask, data } = self;
        TableError::Len { label, mask, actual_len: data.len(), expected_len }
    }

    fn value_error(self, client: u32, value: i64) -> TableError {
        TableError::Value { label: self.label, client, value }
    }
}

/// Assigns consecutive ranges of the lengths in `counts`, whose sum was checked.
fn number<'a>(counts: &[u32], ranges: impl Iterator<Item = &'a mut Range<u32>>) {
    let mut next = 0;
    for (count, range) in counts.iter().zip(ranges) {
        *range = next..next + count;
        next += count;
    }
}

/// "client 0 has 4, client 1 has 5".
fn each(values: &[u32]) -> impl fmt::Display {
    let each: Vec<String> =
        values.iter().enumerate().map(|(client, value)| format!("client {client} has {value}")).collect();
    each.join(", ")
}
