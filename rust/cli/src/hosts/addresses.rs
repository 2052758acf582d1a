//! The address that the ranks of a host listen at and announce: that of the route to the other hosts.
//!
//! Names in `/etc/hosts` that mean loopback, bridges of containers and several interfaces are why neither the
//! host's name nor its first interface decides.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use thiserror::Error;

use super::hello::{Hello, Interface};

/// Beginnings of the names of interfaces that belong to containers and virtual machines.
const VIRTUAL: [&str; 8] = ["docker", "br-", "veth", "virbr", "cni", "flannel", "podman", "lxc"];

/// The user's choice matches no interface.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no interface for {asked}; there are {found}")]
pub struct NoInterface {
    /// The value of the option.
    pub asked: String,
    /// The interfaces of the host.
    pub found: String,
}

/// The interfaces of this machine that others may reach.
#[must_use]
pub fn interfaces() -> Vec<Interface> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let is_link_local = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let usable = all.into_iter().filter(|one| !one.is_loopback());
    let usable = usable.map(|one| Interface { address: one.ip(), name: one.name });
    usable.filter(|one| !is_link_local(&one.address)).collect()
}

/// A list of interfaces, as messages show it.
#[must_use]
pub fn shown(interfaces: &[Interface]) -> String {
    let words: Vec<String> =
        interfaces.iter().map(|Interface { name, address }| format!("{name} ({address})")).collect();
    if words.is_empty() { "none but loopback".to_owned() } else { words.join(", ") }
}

/// The addresses of a host that other hosts can use, as far as the launcher can know.
#[must_use]
pub fn known(hello: &Hello) -> Option<IpAddr> {
    let own = |address: &IpAddr| hello.interfaces.iter().any(|one| one.address == *address);
    // An address that is not the host's own is that of a router with address translation.
    hello.reached_at.map(|address| address.to_canonical()).filter(own)
}

/// Whether all hosts are one machine with one network.
#[must_use]
pub fn are_one_machine(hellos: &[&Hello]) -> bool {
    hellos.windows(2).all(|two| two[0].machine == two[1].machine)
}

/// The user's choice: interfaces of this name or in this network, or one of these addresses.
///
/// # Errors
/// The host has none.
pub fn chosen<'a>(
    interfaces: &'a [Interface],
    interface: Option<&str>,
    addresses: &[IpAddr],
) -> Result<Vec<&'a Interface>, NoInterface> {
    let is_chosen = |one: &&Interface| {
        let is_named = interface.is_none_or(|asked| one.name == asked || is_within(one.address, asked));
        is_named && (addresses.is_empty() || addresses.contains(&one.address))
    };
    let found: Vec<&Interface> = interfaces.iter().filter(is_chosen).collect();
    if found.is_empty() && (interface.is_some() || !addresses.is_empty()) {
        let addresses = addresses.iter().map(IpAddr::to_string);
        let asked = interface.map(str::to_owned).into_iter().chain(addresses).collect::<Vec<_>>().join(", ");
        return Err(NoInterface { asked, found: shown(interfaces) });
    }
    Ok(found)
}

/// The address for the ranks of this host. `route` is the source address of packets to a peer.
pub fn announced(
    interfaces: &[Interface],
    interface: Option<&str>,
    addresses: &[IpAddr],
    reached_at: Option<IpAddr>,
    peers: &[IpAddr],
    route: impl Fn(IpAddr) -> Option<IpAddr>,
) -> Result<IpAddr, NoInterface> {
    let chosen = chosen(interfaces, interface, addresses)?;
    let is_chosen = |address: &IpAddr| chosen.iter().any(|one| one.address == *address);
    if let Some(source) = peers.iter().filter_map(|peer| route(*peer)).find(is_chosen) {
        return Ok(source);
    }
    let is_real = |one: &&&Interface| !VIRTUAL.iter().any(|begin| one.name.starts_with(begin));
    let first = chosen.iter().find(is_real).or(chosen.first()).map(|one| one.address);
    Ok(reached_at.filter(is_chosen).or(first).unwrap_or(Ipv4Addr::LOCALHOST.into()))
}

/// The source address of packets to a peer. No packet is sent.
#[must_use]
pub fn source(peer: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if peer.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    // Any port: a connected datagram socket has a route and no traffic.
    socket.connect(SocketAddr::new(peer, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip().to_canonical())
}

/// Whether an address is in a network such as 10.1.0.0/16.
fn is_within(address: IpAddr, network: &str) -> bool {
    let Some((base, bits)) = network.split_once('/') else { return false };
    let (Ok(base), Ok(bits)) = (base.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    match (address, base) {
        (IpAddr::V4(address), IpAddr::V4(base)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            address.to_bits() & mask == base.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(base)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            address.to_bits() & mask == base.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    fn host() -> Vec<Interface> {
        let all =
            [("docker0", "172.17.0.1"), ("eth0", "10.0.0.5"), ("ib0", "10.9.0.5"), ("eth0", "2001:db8::5")];
        all.map(|(name, address)| Interface { name: name.into(), address: ip(address) }).to_vec()
    }

    #[test]
    fn route_to_the_peers_decides() {
        let of = |peers: &[IpAddr], route: fn(IpAddr) -> Option<IpAddr>| {
            announced(&host(), None, &[], Some(ip("10.0.0.5")), peers, route)
        };
        assert_eq!(of(&[ip("10.9.0.7")], |_| Some(ip("10.9.0.5"))), Ok(ip("10.9.0.5")));
        assert_eq!(of(&[ip("192.0.2.1")], |_| None), Ok(ip("10.0.0.5")), "no route: where ssh came in");
        assert_eq!(
            of(&[ip("127.0.1.1")], |_| Some(ip("127.0.0.1"))),
            Ok(ip("10.0.0.5")),
            "a name that is loopback"
        );
    }

    #[test]
    fn container_bridges_are_the_last_choice() {
        let none = |_: IpAddr| None;
        assert_eq!(announced(&host(), None, &[], None, &[], none), Ok(ip("10.0.0.5")));
        let (docker, nothing) = (&host()[..1], &[][..]);
        assert_eq!(announced(docker, None, &[], None, &[], none), Ok(ip("172.17.0.1")));
        assert_eq!(announced(nothing, None, &[], None, &[], none), Ok(ip("127.0.0.1")));
    }

    #[test]
    fn user_chooses_by_name_network_or_address() {
        let of = |interface: Option<&str>, addresses: &[IpAddr]| {
            announced(&host(), interface, addresses, None, &[ip("10.0.0.9")], |_| Some(ip("10.0.0.5")))
        };
        assert_eq!(of(Some("ib0"), &[]), Ok(ip("10.9.0.5")));
        assert_eq!(of(Some("10.9.0.0/16"), &[]), Ok(ip("10.9.0.5")));
        assert_eq!(of(Some("2001:db8::/32"), &[]), Ok(ip("2001:db8::5")));
        assert_eq!(of(None, &[ip("10.0.0.6"), ip("10.9.0.5")]), Ok(ip("10.9.0.5")));
        let error = of(Some("eth7"), &[]).expect_err("no eth7").to_string();
        assert!(
            error.starts_with("no interface for eth7; there are docker0 (172.17.0.1), eth0 (10.0.0.5)"),
            "{error}"
        );
        assert!(of(Some("10.9.0.0/33"), &[]).is_err());
        assert_eq!(of(Some("0.0.0.0/0"), &[]), Ok(ip("10.0.0.5")));
    }

    #[test]
    fn address_of_a_translating_router_is_not_known() {
        let hello = |at: &str| Hello { interfaces: host(), reached_at: Some(ip(at)), ..Hello::default() };
        assert_eq!(known(&hello("10.9.0.5")), Some(ip("10.9.0.5")));
        assert_eq!(known(&hello("::ffff:10.9.0.5")), Some(ip("10.9.0.5")));
        assert_eq!(known(&hello("203.0.113.9")), None);
        assert_eq!(known(&hello("127.0.0.1")), None);
    }
}
