//! Network settings of a job: listening addresses and ports, and what the ranks agree on.

use std::env;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use mpjdev_bootstrap::job::world::{Carrier, Datagrams, World, WorldHost, address_octets};
use mpjdev_bootstrap::mesh;
use mpjdev_proto::impi::marker::{self, Way};
use mpjdev_proto::impi::startup::layout::{MAXLINEAR_DEFAULT, TAG_UB_MAX, XSIZE_DEFAULT};
use mpjdev_proto::impi::{Dialect, Proc};
use mpjdev_transport::tcp::{Member, Terms};
use rustix::process::Pid;
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

use super::member_list::WorldGrant;

/// Time for the ranks to connect to each other when they know all addresses, unless the user sets another.
pub const CONNECT_TIME: Duration = Duration::from_secs(30);
/// Bounds of that time: the unit of the world description, and one day.
const CONNECT_MIN: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The peer timeout, unless the user sets another.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(60);
/// Octets of the key that the ranks of one launcher prove to each other.
const KEY_LEN: usize = 32;

/// The variable with the maximum octets of user data in a packet (IMPI 5.5).
pub const DATALEN: &str = "IMPI_C_DATALEN";
/// Minimum of that: our control messages hold numbers of 8 octets, each in one packet.
const DATALEN_MIN: u32 = 8;
/// The variable with the number of packets that one ProtoAck acknowledges.
pub const ACKMARK: &str = "IMPI_H_ACKMARK";
/// The variable with the maximum number of unacknowledged packets.
pub const HIWATER: &str = "IMPI_H_HIWATER";
/// The variable with the octets from which collective operations are "long".
pub const XSIZE: &str = "IMPI_COLL_XSIZE";
/// The variable with the number of masters up to which collective operations are linear.
pub const MAXLINEAR: &str = "IMPI_COLL_MAXLINEAR";
/// The variable with the ports that ranks listen at.
pub const PORT_RANGE: &str = "IMPI_PORT_RANGE";

/// The reason why the text of a setting is not valid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ValueError {
    /// It is no range of ports.
    #[error("not a range of ports FIRST:LAST, from 1 to 65535")]
    Ports,
    /// It is no time to connect.
    #[error("not a number of seconds from 0.001 to 86400")]
    ConnectTime,
    /// It is no peer timeout.
    #[error("not a number of seconds from 1 to 86400")]
    PeerTimeout,
    /// It is no rate of a link.
    #[error("not a rate such as 100mbit or 2.5gbit, from 1kbit to 4tbit")]
    Rate,
    /// It is no length of a datagram.
    #[error("not a number of octets from {min} to {max}")]
    DatagramLen {
        /// The shortest datagram in octets.
        min: u32,
        /// The longest datagram in octets.
        max: u32,
    },
    /// It is no address.
    #[error("not an address in numbers")]
    Address,
    /// It is an unspecified or a multicast address.
    #[error("not an address that others can connect to")]
    NotConnectable,
    /// It has a zone, or needs one.
    #[error(
        "not an address that others can connect to: zones, which link-local addresses need, cannot be \
         announced"
    )]
    Zone,
}

/// The reason why a variable of the environment is not valid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum VariableError {
    /// It is no number within the limits.
    #[error("{name} is {text:?}, it must be a number from {min} to {max}")]
    Number {
        /// The name of the variable.
        name: &'static str,
        /// Its value.
        text: OsString,
        /// The least number.
        min: u32,
        /// The largest number.
        max: u32,
    },
    /// It is no range of ports.
    #[error("{PORT_RANGE}: {0}")]
    Ports(ValueError),
    /// The maximum number of unacknowledged packets is less than that of packets in one acknowledgment.
    #[error("{HIWATER} is {hiwater}, it must not be less than {ACKMARK}, {ackmark}")]
    Marks {
        /// The maximum number of unacknowledged packets.
        hiwater: u32,
        /// The number of packets that one ProtoAck acknowledges.
        ackmark: u32,
    },
}

/// Network settings of the user. The variables have the names and meanings of other implementations (IMPI
/// 12).
#[derive(Clone, Debug)]
pub struct Network {
    /// Addresses that ranks listen at, in turn. Without one the launcher or the startup server decides.
    pub addresses: Vec<IpAddr>,
    /// Ports to choose from; 0 to 0 for any port.
    pub ports: RangeInclusive<u16>,
    /// The carrier of messages.
    pub carrier: Carrier,
    /// The terms that a site announces.
    pub terms: Terms,
    /// The peer timeout: time without a packet or acknowledgement on a connection after which the rank there
    /// has failed.
    pub peer_timeout: Duration,
    /// Octets from which collective operations are "long"; `None` is the default.
    pub xsize: Option<u32>,
    /// Masters up to which collective operations are linear; `None` is the default.
    pub maxlinear: Option<u32>,
    /// Maximum time to make all connections.
    pub connect_time: Duration,
}

impl Network {
    /// Settings of the command line and of this process's environment; the command line wins. These terms
    /// hold where the environment sets none. The time to connect is [`CONNECT_TIME`].
    ///
    /// # Errors
    /// A variable does not hold a valid number.
    pub fn from_environment(
        addresses: Vec<IpAddr>,
        ports: Option<RangeInclusive<u16>>,
        terms: Terms,
    ) -> Result<Network, VariableError> {
        Network::from_variables(addresses, ports, terms, |name| env::var_os(name))
    }

    fn from_variables(
        addresses: Vec<IpAddr>,
        ports: Option<RangeInclusive<u16>>,
        default: Terms,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Network, VariableError> {
        let number = |name: &'static str, min: u32, max: u32| {
            let Some(text) = variable(name) else { return Ok(None) };
            let number = text.to_str().and_then(|text| text.trim().parse().ok());
            match number.filter(|number| (min..=max).contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(VariableError::Number { name, text, min, max }),
            }
        };
        let range = |text: OsString| self::ports(&text.to_string_lossy()).map_err(VariableError::Ports);
        let ports = ports.map(Ok).or_else(|| variable(PORT_RANGE).map(range)).unwrap_or(Ok(0..=0))?;
        let maxdatalen = number(DATALEN, DATALEN_MIN, u32::MAX)?.unwrap_or(default.maxdatalen);
        let (ackmark, hiwater) = (number(ACKMARK, 1, u32::MAX)?, number(HIWATER, 1, u32::MAX)?);
        // The default of one adapts to the other.
        let (ackmark, hiwater) = match (ackmark, hiwater) {
            (None, None) => (default.ackmark, default.hiwater),
            (Some(ackmark), None) => (ackmark, default.hiwater.max(ackmark)),
            (None, Some(hiwater)) => (default.ackmark.min(hiwater), hiwater),
            (Some(ackmark), Some(hiwater)) => (ackmark, hiwater),
        };
        if ackmark > hiwater {
            return Err(VariableError::Marks { hiwater, ackmark });
        }
        let terms = Terms { dialect: default.dialect, maxdatalen, ackmark, hiwater };
        let (xsize, maxlinear) = (number(XSIZE, 0, TAG_UB_MAX)?, number(MAXLINEAR, 0, TAG_UB_MAX)?);
        let (connect_time, peer_timeout) = (CONNECT_TIME, PEER_TIMEOUT);
        Ok(Network {
            addresses,
            ports,
            carrier: Carrier::Tcp,
            terms,
            peer_timeout,
            xsize,
            maxlinear,
            connect_time,
        })
    }

    /// A listening socket with its address for each rank, from this world rank on. `address` is the address
    /// if the user names none.
    ///
    /// # Errors
    /// An address does not belong to this machine, or no port is free.
    pub fn listen(
        &self,
        ranks: usize,
        first: u32,
        address: IpAddr,
    ) -> io::Result<Vec<(OwnedFd, SocketAddr)>> {
        let own = if self.addresses.is_empty() { &[address][..] } else { &self.addresses };
        let addresses = own.iter().cycle().skip(first as usize % own.len()).take(ranks);
        addresses.map(|address| mesh::listen(*address, self.ports.clone())).collect()
    }

    /// The transport of the ranks between processes. It is the same in the whole job.
    #[must_use]
    pub const fn way(&self) -> Way {
        match self.carrier {
            Carrier::Tcp => Way::Packets,
            Carrier::Udp(_) => Way::Datagrams,
        }
    }

    /// The world description for the ranks of a job of one launcher that share no memory.
    ///
    /// # Errors
    /// As for [`listen`](Self::listen), or the system refuses.
    pub fn describe_alone(&self, pids: &[Pid]) -> io::Result<WorldGrant> {
        let (listeners, addresses): (Vec<_>, Vec<_>) =
            self.listen(pids.len(), 0, Ipv4Addr::LOCALHOST.into())?.into_iter().unzip();
        let member = |(pid, address, host): (&Pid, &SocketAddr, u32)| {
            let proc = proc(self.terms.dialect, *pid, self.way(), address.ip());
            Member { proc, host, is_ours: true }
        };
        let pids_at = pids.iter().zip(&addresses).zip(0..);
        let world = World {
            base: 0,
            count: pids.len() as u32,
            shares_memory: false,
            carrier: self.carrier,
            ports: self.ports.clone(),
            terms: self.terms,
            tag_ub: TAG_UB_MAX,
            xsize: self.xsize.unwrap_or(XSIZE_DEFAULT),
            maxlinear: self.maxlinear.unwrap_or(MAXLINEAR_DEFAULT),
            connect_time: self.connect_time,
            peer_timeout: self.peer_timeout,
            key: Bytes::copy_from_slice(&random::<KEY_LEN>()?),
            members: pids_at.map(|((pid, address), host)| member((pid, address, host))).collect(),
            hosts: addresses.iter().map(|address| WorldHost { address: *address, client: 0 }).collect(),
        };
        Ok(WorldGrant { description: world.seal()?, listeners, shares_memory: false })
    }
}

/// The announcement of a process of ours (IMPI 2.2).
#[must_use]
pub fn proc(dialect: Dialect, pid: Pid, way: Way, address: IpAddr) -> Proc {
    let pid = pid.as_raw_nonzero().get().unsigned_abs();
    Proc { host_id: address_octets(address), pid: marker::marked(dialect, pid, way) }
}

/// Random octets of the system.
///
/// # Errors
/// The system refuses.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut octets = [0; N];
    let mut len = 0;
    while len < N {
        len += rustix::io::retry_on_intr(|| getrandom(&mut octets[len..], GetRandomFlags::empty()))?;
    }
    Ok(octets)
}

/// Parses a range of ports, `FIRST:LAST`.
///
/// # Errors
/// The text is no range of ports.
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, ValueError> {
    let range = text.split_once(':').and_then(|(first, last)| {
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (1 <= first && first <= last).then_some(first..=last)
    });
    range.ok_or(ValueError::Ports)
}

/// Parses the seconds for making all connections.
///
/// # Errors
/// The text is no number from 0.001 to a day.
pub fn connect_time(text: &str) -> Result<Duration, ValueError> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.filter(|time| (CONNECT_MIN..=DAY).contains(time));
    time.ok_or(ValueError::ConnectTime)
}

/// Parses the rate of a link into kilobits per second, in the notation of `tc`: 100mbit, 2.5gbit, 800kbit.
///
/// # Errors
/// The text is no rate from 1 kbit to 4 Tbit.
pub fn rate(text: &str) -> Result<NonZeroU32, ValueError> {
    let units = [("kbit", 1.0), ("mbit", 1e3), ("gbit", 1e6), ("tbit", 1e9)];
    let lower = text.trim().to_ascii_lowercase();
    let number = units.iter().find_map(|(unit, kbit)| Some((lower.strip_suffix(unit)?, kbit)));
    let kbit = number.and_then(|(number, kbit)| Some(number.parse::<f64>().ok()? * kbit));
    let kbit = kbit.filter(|kbit| (1.0..=4e9).contains(kbit)).map(|kbit| kbit.round() as u32);
    kbit.and_then(NonZeroU32::new).ok_or(ValueError::Rate)
}

/// Parses the maximum octets of a datagram.
///
/// # Errors
/// The text is no number, or no datagram can have that length.
pub fn datagram_len(text: &str) -> Result<NonZeroU32, ValueError> {
    let len = text.parse().ok().filter(|len| Datagrams::LENS.contains(len)).and_then(NonZeroU32::new);
    let (min, max) = (*Datagrams::LENS.start(), *Datagrams::LENS.end());
    len.ok_or(ValueError::DatagramLen { min, max })
}

/// Parses the seconds of the peer timeout.
///
/// # Errors
/// The text is no number from 1 (the system counts whole seconds) to a day.
pub fn peer_timeout(text: &str) -> Result<Duration, ValueError> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.filter(|time| (Duration::from_secs(1)..=DAY).contains(time));
    time.ok_or(ValueError::PeerTimeout)
}

/// Parses an address that ranks can listen at and announce. The unspecified address is not one, and neither
/// is a link-local one of IPv6: it needs a zone, which an announcement has no room for.
///
/// # Errors
/// The text is no such address.
pub fn address(text: &str) -> Result<IpAddr, ValueError> {
    let without_zone = text.trim().split('%').next().unwrap_or_default();
    let address: IpAddr = without_zone.parse().map_err(|_| ValueError::Address)?;
    match address {
        _ if text.contains('%') => Err(ValueError::Zone),
        IpAddr::V6(address) if address.is_unicast_link_local() => Err(ValueError::Zone),
        _ if address.is_unspecified() || address.is_multicast() => Err(ValueError::NotConnectable),
        _ => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(variables: &[(&str, &str)]) -> Result<[Option<u32>; 5], VariableError> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        let network = Network::from_variables(Vec::new(), None, Terms::default(), variable)?;
        let Terms { maxdatalen, ackmark, hiwater, .. } = network.terms;
        Ok([Some(maxdatalen), Some(ackmark), Some(hiwater), network.xsize, network.maxlinear])
    }

    #[test]
    fn terms_from_the_environment_have_consistent_marks() {
        let Terms { maxdatalen, ackmark, hiwater, .. } = Terms::default();
        assert_eq!(terms(&[]), Ok([Some(maxdatalen), Some(ackmark), Some(hiwater), None, None]));
        let all = [(DATALEN, "16"), (ACKMARK, "1"), (HIWATER, "2"), (XSIZE, "0"), (MAXLINEAR, "7")];
        assert_eq!(terms(&all), Ok([Some(16), Some(1), Some(2), Some(0), Some(7)]));
        let marks = |set: &[(&str, &str)]| terms(set).map(|all| [all[1], all[2]]);
        assert_eq!(marks(&[(ACKMARK, "100000")]), Ok([Some(100_000), Some(100_000)]));
        assert_eq!(marks(&[(HIWATER, "1")]), Ok([Some(1), Some(1)]));
    }

    #[test]
    fn invalid_limits_are_refused_with_the_variable() {
        let wrong = [(DATALEN, "0"), (ACKMARK, "x"), (HIWATER, "-1"), (XSIZE, "2147483648"), (MAXLINEAR, "")];
        for (name, value) in wrong {
            let why = terms(&[(name, value)]).expect_err(name).to_string();
            assert!(why.starts_with(&format!("{name} is {value:?}, it must be a number from ")), "{why}");
        }
        let why = terms(&[(ACKMARK, "3"), (HIWATER, "2")]).expect_err("too low");
        assert_eq!(why.to_string(), "IMPI_H_HIWATER is 2, it must not be less than IMPI_H_ACKMARK, 3");
    }

    #[test]
    fn unusable_ports_and_addresses_are_refused() {
        assert_eq!([ports("5000:5010"), ports("1:65535")], [Ok(5000..=5010), Ok(1..=65535)]);
        for text in ["", "5000", "5010:5000", "0:5", "1:65536", "a:b", "5000:"] {
            assert!(ports(text).is_err(), "{text}");
        }
        assert_eq!(address("127.0.0.2"), Ok(IpAddr::from([127, 0, 0, 2])));
        assert!(address("::1").is_ok());
        for (text, why) in [
            ("0.0.0.0", ValueError::NotConnectable),
            ("::", ValueError::NotConnectable),
            ("224.0.0.1", ValueError::NotConnectable),
            ("localhost", ValueError::Address),
            ("", ValueError::Address),
            ("%eth0", ValueError::Address),
            ("fe80::1%eth0", ValueError::Zone),
            ("2001:db8::1%2", ValueError::Zone),
            ("fe80::1", ValueError::Zone),
        ] {
            assert_eq!(address(text), Err(why), "{text}");
        }
    }

    #[test]
    fn connect_time_out_of_range_is_refused() {
        let ms = |text| connect_time(text).map(|time| time.as_millis());
        assert_eq!(
            [ms("30"), ms("0.5"), ms("0.001"), ms("86400")],
            [Ok(30_000), Ok(500), Ok(1), Ok(86_400_000)]
        );
        for text in ["", "x", "0", "-1", "0.0001", "86401", "1e300", "inf", "NaN", "30s", "1,5"] {
            assert_eq!(connect_time(text), Err(ValueError::ConnectTime), "{text}");
        }
    }

    #[test]
    fn ranks_listen_at_the_addresses_in_turn() {
        let addresses = ["127.0.0.2", "127.0.0.3"].map(|text| address(text).expect("an address"));
        let network = Network::from_variables(addresses.to_vec(), None, Terms::default(), |_| None);
        let network = network.expect("no variables");
        let found = network.listen(3, 0, Ipv4Addr::LOCALHOST.into()).expect("loopback addresses");
        let found: Vec<IpAddr> = found.iter().map(|(_, address)| address.ip()).collect();
        assert_eq!(found, [addresses[0], addresses[1], addresses[0]]);
        let third = network.listen(1, 3, Ipv4Addr::LOCALHOST.into()).expect("a loopback address");
        assert_eq!(third[0].1.ip(), addresses[1]);
    }

    #[test]
    fn rate_out_of_range_is_refused() {
        let kbit = |text| rate(text).map(NonZeroU32::get);
        assert_eq!([kbit("100mbit"), kbit("2.5Gbit")], [Ok(100_000), Ok(2_500_000)]);
        assert_eq!([kbit("1kbit"), kbit("4tbit")], [Ok(1), Ok(4_000_000_000)]);
        for text in ["", "100", "mbit", "0kbit", "0.4kbit", "-1mbit", "5tbit", "NaNmbit", "infgbit", "1 mb"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn datagram_length_out_of_range_is_refused() {
        let octets = |text| datagram_len(text).map(NonZeroU32::get);
        assert_eq!([octets("84"), octets("1200"), octets("65507")], [Ok(84), Ok(1200), Ok(65_507)]);
        for text in ["", "83", "65508", "-1", "1e3", "x"] {
            let error = octets(text).expect_err(text).to_string();
            assert_eq!(error, "not a number of octets from 84 to 65507", "{text}");
        }
    }

    #[test]
    fn peer_timeout_out_of_range_is_refused() {
        let ms = |text| peer_timeout(text).map(|time| time.as_millis());
        assert_eq!([ms("1"), ms("1.5"), ms("86400")], [Ok(1000), Ok(1500), Ok(86_400_000)]);
        for text in ["0.9", "0", "-1", "86401", "x", ""] {
            assert!(peer_timeout(text).is_err(), "{text}");
        }
    }

    #[test]
    fn world_has_terms_addresses_and_a_random_key() {
        let variable =
            |name: &str| [(ACKMARK, "3"), (DATALEN, "99")].iter().find(|v| v.0 == name).map(|v| v.1.into());
        let network = Network::from_variables(Vec::new(), None, Terms::default(), variable).expect("sound");
        let pids: Vec<Pid> = [77, 78].into_iter().filter_map(Pid::from_raw).collect();
        let worlds = [(); 2].map(|()| {
            let grant = network.describe_alone(&pids).expect("two ports");
            (World::open(grant.description).expect("a world"), grant.listeners)
        });
        for (world, listeners) in &worlds {
            assert_eq!((world.base, world.count, world.shares_memory), (0, 2, false));
            assert_eq!((world.terms.maxdatalen, world.terms.ackmark), (99, 3));
            let pids: Vec<i64> = world.members.iter().map(|member| member.proc.pid).collect();
            assert_eq!(pids, [77, 78].map(|pid| marker::marked(Dialect::Final, pid, Way::Packets)));
            for (host, listener) in world.hosts.iter().zip(listeners) {
                let at = rustix::net::getsockname(listener).expect("bound");
                assert_eq!(SocketAddr::try_from(at).ok(), Some(host.address));
            }
        }
        assert_ne!(worlds[0].0.key, worlds[1].0.key);
        assert_eq!(worlds[0].0.key.len(), KEY_LEN);
    }
}
