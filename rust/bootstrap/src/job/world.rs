//! The description of a world whose ranks connect to each other. The launcher sends it to each rank before
//! the first connection.
//!
//! It is sealed memory, sent with the rank's listening socket. All ranks of a launcher receive the same. It
//! holds the key of the job, so that no environment and no command line does. All integers are big-endian:
//!
//! ```text
//! header, 84 octets    magic 8, version 4, dialect 4, base 4, count 4, flags 4,
//!                      maxdatalen 4, ackmark 4, hiwater 4, tag_ub 4, xsize 4, maxlinear 4,
//!                      connect_ms 4, key_len 4, host_count 4, member_count 4, peer_timeout_ms 4,
//!                      rate_kbit 4, datagram_len 4, first_port 2, last_port 2
//! key                  key_len octets
//! each host            address 16, port 4, client 4
//! each member          host_id 16, pid 8, host 4, is_ours 4
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use mpjdev_engine::Clients;
use mpjdev_proto::datagram::reliable::settings::DATAGRAM_LEN_MIN;
use mpjdev_proto::impi::startup::layout::{HOSTS_MAX, PROCS_MAX, TAG_UB_MAX, TAG_UB_MIN};
use mpjdev_proto::impi::{Dialect, Proc};
use mpjdev_sys::datagram::LEN_MAX as LEN_LIMIT;
use mpjdev_transport::tcp::{Member, Terms};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::mesh::Host;

/// Its first octets.
const MAGIC: [u8; 8] = *b"mpjworld";
/// The version of the layout above.
const VERSION: u32 = 4;
const HEADER_LEN: usize = 84;
const HOST_LEN: usize = 24;
const MEMBER_LEN: usize = 32;
/// Maximum sites. A startup server admits fewer (IMPI 3.5); `mpjrun --hosts` needs none.
const SITES_MAX: u32 = 4096;
/// The octets of the longest key.
pub const KEY_MAX: usize = 64;
/// The octets of the longest description.
const LEN_MAX: usize = HEADER_LEN + KEY_MAX + HOSTS_MAX as usize * HOST_LEN + PROCS_MAX as usize * MEMBER_LEN;
/// Dialects by their number.
const DIALECTS: [Dialect; 2] = [Dialect::Final, Dialect::Draft];
/// Flag: the ranks of this launcher share memory.
const SHARES_MEMORY: u32 = 1;
/// Flag: all other ranks are reached by datagrams.
const DATAGRAMS: u32 = 2;
/// Flag: datagrams have checksums of their own.
const CHECKED: u32 = 4;

/// All ranks of a job, as described to one launcher's ranks.
#[derive(Clone, PartialEq, Eq)]
pub struct World {
    /// World rank of the launcher's first rank; the others follow.
    pub base: u32,
    /// Ranks of the launcher.
    pub count: u32,
    /// Whether these share memory. Then they connect to the ranks of other launchers only.
    pub shares_memory: bool,
    /// The carrier of messages to the others.
    pub carrier: Carrier,
    /// Ports that this launcher's ranks select from; 0 to 0 for any.
    pub ports: RangeInclusive<u16>,
    /// The terms that all hosts have agreed on.
    pub terms: Terms,
    /// The largest tag of the job.
    pub tag_ub: u32,
    /// Octets from which collective operations are "long".
    pub xsize: u32,
    /// Masters up to which collective operations are linear.
    pub maxlinear: u32,
    /// The time limit for all connections.
    pub connect_time: Duration,
    /// The time without traffic or heartbeat from a peer after which it counts as failed.
    pub peer_timeout: Duration,
    /// The key that all hosts of this project prove to have; empty without one.
    pub key: Bytes,
    /// Hosts by their number in the job.
    pub hosts: Vec<WorldHost>,
    /// Ranks of the world. Those of a host are contiguous.
    pub members: Vec<Member>,
}

/// The key is never shown.
impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let World { base, count, hosts, members, .. } = self;
        write!(f, "World {{ base: {base}, count: {count}, hosts: {}, ", hosts.len())?;
        write!(f, "members: {}, .. }}", members.len())
    }
}

/// The carrier of messages to ranks that share no memory with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP connections, in the protocol of IMPI.
    Tcp,
    /// Datagrams: the connections serve for setup and for liveness.
    Udp(Datagrams),
}

/// The parameters of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// The rate of the path to other machines in kbit/s, if it has no other traffic.
    pub rate_kbit: Option<NonZeroU32>,
    /// The longest datagram in octets, even if the path carries longer ones.
    pub len_max: Option<NonZeroU32>,
    /// Whether each has a checksum of its own.
    pub are_checked: bool,
}

impl Datagrams {
    /// The range of the limit on a datagram's length, in octets.
    pub const LENS: std::ops::RangeInclusive<u32> = DATAGRAM_LEN_MIN as u32..=LEN_LIMIT as u32;
}

/// A host of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldHost {
    /// The address that it listens at.
    pub address: SocketAddr,
    /// The site that it belongs to.
    pub client: u32,
}

/// An error of a malformed description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// The length contradicts the counts, or exceeds the limit.
    #[error("the description of the world has {len} octets, {expected_len} belong to its counts")]
    Len {
        /// Octets present.
        len: usize,
        /// Octets expected.
        expected_len: usize,
    },
    /// It is another file, or that of another version of mpjdev.
    #[error(
        "the description of the world is of another version than this program: use the mpjrun of its jar"
    )]
    Version,
    /// A number is outside its limits.
    #[error("the description of the world: {field} is {value}")]
    Value {
        /// The name of the number.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// An address in the 16 octets that IMPI uses for both families (IMPI 2.1): IPv4 as an IPv4-mapped IPv6
/// address.
#[must_use]
pub fn address_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The address in IMPI's form (IMPI 2.1): IPv6, IPv4 as an IPv4-mapped address, or IPv4 behind zeros as LAM
/// writes it. The octets of ::1 are the loopback address of IPv6 and not 0.0.0.1.
#[must_use]
pub fn address_of(octets: [u8; 16]) -> IpAddr {
    let address = Ipv6Addr::from(octets);
    match octets {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if a != 0 => Ipv4Addr::new(a, b, c, d).into(),
        _ => IpAddr::V6(address).to_canonical(),
    }
}

impl World {
    /// The octets of the description.
    #[must_use]
    pub fn emit(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER_LEN + self.key.len() + self.ranks_len());
        out.put_slice(&MAGIC);
        let dialect = DIALECTS.iter().position(|dialect| *dialect == self.terms.dialect);
        let dialect = dialect.expect("a number") as u32;
        let flags = if self.shares_memory { SHARES_MEMORY } else { 0 };
        let (flags, datagrams) = match self.carrier {
            Carrier::Tcp => (flags, Datagrams::default()),
            Carrier::Udp(datagrams) if datagrams.are_checked => (flags | DATAGRAMS | CHECKED, datagrams),
            Carrier::Udp(datagrams) => (flags | DATAGRAMS, datagrams),
        };
        let number = |number: Option<NonZeroU32>| number.map_or(0, NonZeroU32::get);
        let ports = u32::from(*self.ports.start()) << 16 | u32::from(*self.ports.end());
        let limits_of_datagrams = [number(datagrams.rate_kbit), number(datagrams.len_max), ports];
        let Terms { maxdatalen, ackmark, hiwater, .. } = self.terms;
        let [connect_ms, peer_timeout_ms] = [self.connect_time, self.peer_timeout]
            .map(|time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
        let lens = [self.key.len(), self.hosts.len(), self.members.len()].map(|len| len as u32);
        let numbers = [VERSION, dialect, self.base, self.count, flags, maxdatalen, ackmark, hiwater];
        let limits = [self.tag_ub, self.xsize, self.maxlinear, connect_ms];
        let more = [lens[0], lens[1], lens[2], peer_timeout_ms];
        for number in numbers.into_iter().chain(limits).chain(more).chain(limits_of_datagrams) {
            out.put_u32(number);
        }
        debug_assert_eq!(out.len(), HEADER_LEN);
        out.put_slice(&self.key);
        self.emit_ranks(&mut out);
        out.freeze()
    }

    fn emit_ranks(&self, out: &mut BytesMut) {
        for WorldHost { address, client } in &self.hosts {
            out.put_slice(&address_octets(address.ip()));
            out.put_u32(address.port().into());
            out.put_u32(*client);
        }
        for Member { proc, host, is_ours } in &self.members {
            out.put_slice(&proc.host_id);
            out.put_i64(proc.pid);
            out.put_u32(*host);
            out.put_u32((*is_ours).into());
        }
    }

    /// Octets of all hosts and members.
    fn ranks_len(&self) -> usize {
        self.hosts.len() * HOST_LEN + self.members.len() * MEMBER_LEN
    }

    /// The identity of this job, the same at all of its hosts.
    #[must_use]
    pub fn identity(&self) -> Bytes {
        let mut octets = BytesMut::with_capacity(self.ranks_len());
        self.emit_ranks(&mut octets);
        octets.freeze()
    }

    /// Parses a description.
    ///
    /// # Errors
    /// The octets describe no world that this launcher's ranks could be in.
    pub fn parse(octets: &[u8]) -> Result<World, WorldError> {
        let len = octets.len();
        let (header, mut rest) =
            octets.split_at_checked(HEADER_LEN).ok_or(WorldError::Len { len, expected_len: HEADER_LEN })?;
        let number = numbers(header)?;
        let [_, dialect, base, count, flags, maxdatalen, ackmark, hiwater, ..] = number;
        let [_, _, _, _, _, _, _, _, tag_ub, xsize, maxlinear, connect_ms, more @ ..] = number;
        let [key_len, host_count, member_count, peer_timeout_ms, rate_kbit, datagram_len, ports] = more;
        let [first_port, last_port] = [ports >> 16, ports & 0xffff];
        within("the length of the key", key_len, 0, KEY_MAX as u32)?;
        within("the number of hosts", host_count, 1, HOSTS_MAX)?;
        within("the number of ranks", member_count, 1, PROCS_MAX)?;
        let [key_len, host_count, member_count] = [key_len, host_count, member_count].map(|n| n as usize);
        let expected_len = HEADER_LEN + key_len + host_count * HOST_LEN + member_count * MEMBER_LEN;
        if len != expected_len {
            return Err(WorldError::Len { len, expected_len });
        }
        within("dialect", dialect, 0, DIALECTS.len() as u32 - 1)?;
        within("flags", flags, 0, SHARES_MEMORY | DATAGRAMS | CHECKED)?;
        if flags & DATAGRAMS == 0 {
            // Values of datagrams in a world without them.
            within("the flag of checksums", flags & CHECKED, 0, 0)?;
            within("rate_kbit", rate_kbit, 0, 0)?;
            within("the longest datagram", datagram_len, 0, 0)?;
        }
        within("maxdatalen", maxdatalen, 1, u32::MAX)?;
        within("ackmark", ackmark, 1, hiwater)?;
        within("tag_ub", tag_ub, TAG_UB_MIN, TAG_UB_MAX)?;
        within("peer_timeout_ms", peer_timeout_ms, 1, i32::MAX as u32)?;
        if datagram_len != 0 {
            within("the longest datagram", datagram_len, *Datagrams::LENS.start(), *Datagrams::LENS.end())?;
        }
        within("the first port", first_port, last_port.min(1), last_port)?;
        let dialect = DIALECTS[dialect as usize];
        let key = rest.copy_to_bytes(key_len);
        let hosts = (0..host_count).map(|_| host(&mut rest)).collect::<Result<_, _>>()?;
        let members = (0..member_count).map(|_| member(&mut rest)).collect::<Result<_, _>>()?;
        let world = World {
            base,
            count,
            shares_memory: flags & SHARES_MEMORY != 0,
            carrier: match flags & DATAGRAMS {
                0 => Carrier::Tcp,
                _ => Carrier::Udp(Datagrams {
                    rate_kbit: NonZeroU32::new(rate_kbit),
                    len_max: NonZeroU32::new(datagram_len),
                    are_checked: flags & CHECKED != 0,
                }),
            },
            ports: first_port as u16..=last_port as u16,
            terms: Terms { dialect, maxdatalen, ackmark, hiwater },
            tag_ub,
            xsize,
            maxlinear,
            connect_time: Duration::from_millis(connect_ms.into()),
            peer_timeout: Duration::from_millis(peer_timeout_ms.into()),
            key,
            hosts,
            members,
        };
        world.check()?;
        Ok(world)
    }

    /// Checks the parts against each other.
    fn check(&self) -> Result<(), WorldError> {
        let last = self.hosts.len() as u32 - 1;
        let mut before = 0;
        for member in &self.members {
            within("the host of a rank", member.host, before, last)?;
            before = member.host;
        }
        let mut before = 0;
        for host in &self.hosts {
            within("the site of a host", host.client, before, SITES_MAX - 1)?;
            before = host.client;
        }
        let size = self.members.len() as u32;
        within("the number of the launcher's ranks", self.count, 1, size)?;
        within("the launcher's first rank", self.base, 0, size - self.count)?;
        // Each rank of this launcher is a host of its own.
        let own = &self.members[self.base as usize..][..self.count as usize];
        let at_host = |host: u32| self.members.iter().filter(|member| member.host == host).count();
        let first = own[0].host;
        for (member, host) in own.iter().zip(first..) {
            within("whether a rank of the launcher's is ours", member.is_ours.into(), 1, 1)?;
            within("the host of a rank of the launcher's", member.host, host, host)?;
        }
        let ends = [first, first + self.count - 1];
        ends.into_iter().try_for_each(|host| within("the ranks of a host", at_host(host) as u32, 1, 1))
    }

    /// Writes the description to sealed memory. Each rank receives a descriptor of it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn seal(&self) -> io::Result<OwnedFd> {
        let file = memfd_create("mpjdev-world", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(file);
        file.write_all(&self.emit())?;
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(file.into())
    }

    /// Reads a sealed description. Several processes may do so at once.
    ///
    /// # Errors
    /// It describes no world; the system refuses.
    pub fn open(file: OwnedFd) -> io::Result<World> {
        let file = File::from(file);
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if len > LEN_MAX {
            return Err(io::Error::other(WorldError::Len { len, expected_len: LEN_MAX }));
        }
        let mut octets = vec![0; len];
        file.read_exact_at(&mut octets, 0)?;
        World::parse(&octets).map_err(io::Error::other)
    }

    /// The hosts of the launcher's ranks.
    #[must_use]
    pub fn own_hosts(&self) -> std::ops::Range<u32> {
        let first = self.members[self.base as usize].host;
        first..first + self.count
    }

    /// The number of ranks that appear to run on this machine: those of the launcher, and those that listen
    /// at one of their addresses or at a loopback address.
    #[must_use]
    pub fn ranks_here(&self) -> usize {
        let own: Vec<IpAddr> = self.own_hosts().map(|host| self.address(host).ip()).collect();
        let is_local = |address: IpAddr| address.is_loopback() || own.contains(&address);
        self.members.iter().filter(|member| is_local(self.address(member.host).ip())).count()
    }

    /// The clients of all ranks, for the barriers of a rank with foreign ones. `None` without foreign ranks,
    /// or if the tags of such a barrier are not defined, as in the draft's dialect.
    #[must_use]
    pub fn clients(&self, rank: u32) -> Option<Clients> {
        if self.members.iter().all(|member| member.is_ours) || self.terms.dialect == Dialect::Draft {
            return None;
        }
        Some(Clients::new(rank, &self.sites(), self.maxlinear))
    }

    /// The site of each rank.
    #[must_use]
    pub fn sites(&self) -> Vec<u32> {
        self.members.iter().map(|member| self.hosts[member.host as usize].client).collect()
    }

    /// The address that a host listens at.
    #[must_use]
    pub fn address(&self, host: u32) -> SocketAddr {
        self.hosts[host as usize].address
    }

    /// The hosts in the form that the mesh takes.
    #[must_use]
    pub fn mesh_hosts(&self) -> Vec<Host> {
        // A host without processes counts as foreign.
        let mut is_ours = vec![None; self.hosts.len()];
        for member in &self.members {
            let of_all = &mut is_ours[member.host as usize];
            *of_all = Some(of_all.unwrap_or(true) && member.is_ours);
        }
        let hosts = self.hosts.iter().zip(is_ours);
        let of = |(host, is_ours): (&WorldHost, Option<bool>)| {
            let address = host.address;
            Host { address, source: Some(address.ip()), is_ours: is_ours.unwrap_or(false) }
        };
        hosts.map(of).collect()
    }
}

/// The numbers of a header, from the version on.
fn numbers(mut header: &[u8]) -> Result<[u32; 19], WorldError> {
    let magic = header.get_u64().to_be_bytes();
    let numbers = std::array::from_fn(|_| header.get_u32());
    if magic != MAGIC || numbers[0] != VERSION {
        return Err(WorldError::Version);
    }
    Ok(numbers)
}

fn within(field: &'static str, value: u32, min: u32, max: u32) -> Result<(), WorldError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(WorldError::Value { field, value: value.into() }) }
}

fn host(octets: &mut &[u8]) -> Result<WorldHost, WorldError> {
    let (ip, port, client) = (octets.get_u128().to_be_bytes(), octets.get_u32(), octets.get_u32());
    within("the port of a host", port, 0, u16::MAX.into())?;
    Ok(WorldHost { address: SocketAddr::new(address_of(ip), port as u16), client })
}

fn member(octets: &mut &[u8]) -> Result<Member, WorldError> {
    let proc = Proc { host_id: octets.get_u128().to_be_bytes(), pid: octets.get_i64() };
    let (host, is_ours) = (octets.get_u32(), octets.get_u32());
    within("whether a rank is ours", is_ours, 0, 1)?;
    Ok(Member { proc, host, is_ours: is_ours == 1 })
}

#[cfg(test)]
mod tests;
