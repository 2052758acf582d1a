//! The socket of a rank's datagrams: its address and its port.

use std::io;
use std::iter::once;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;

use rustix::net::sockopt::set_ipv6_v6only;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// A socket that receives the datagrams of peers at `here`, the rank's own addresses on its connections. If
/// these are of both families, it serves all addresses of the machine.
pub(super) fn open(
    address: SocketAddr,
    ports: &RangeInclusive<u16>,
    here: &[IpAddr],
) -> io::Result<UdpSocket> {
    let is_same_family = |ip: &IpAddr| ip.is_ipv4() == address.is_ipv4();
    let ip = match here {
        _ if here.iter().all(is_same_family) => address.ip(),
        [first, rest @ ..] if rest.iter().all(|ip| ip == first) => *first,
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    bind(SocketAddr::new(ip, address.port()), ports)
}

/// An address in the form that this socket sends to: IPv4-mapped if the socket is of IPv6.
pub(super) fn address_for(socket: &UdpSocket, ip: IpAddr) -> io::Result<IpAddr> {
    Ok(match ip {
        IpAddr::V4(ip) if socket.local_addr()?.is_ipv6() => ip.to_ipv6_mapped().into(),
        ip => ip,
    })
}

fn socket_at(address: SocketAddr) -> io::Result<UdpSocket> {
    if address.ip() != IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        return UdpSocket::bind(address);
    }
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    set_ipv6_v6only(&socket, false)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket.into())
}

/// A socket at this address. If the port is taken, it has another port of the range; 0 to 0 are any. Each
/// peer learns the port.
fn bind(address: SocketAddr, ports: &RangeInclusive<u16>) -> io::Result<UdpSocket> {
    let others = ports.clone().filter(|port| *port != address.port());
    for port in once(address.port()).chain(others) {
        match socket_at(SocketAddr::new(address.ip(), port)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
    let [first, last] = [ports.start(), ports.end()];
    let text = format!(
        "none of the ports {first} to {last} of {} is free for UDP; --ports gives other ones",
        address.ip()
    );
    Err(io::Error::new(io::ErrorKind::AddrInUse, text))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Consecutive ports, and a socket at the first one.
    fn taken_port_and_next(count: u16) -> (UdpSocket, RangeInclusive<u16>) {
        for first in 21_000..30_000 {
            let sockets: Option<Vec<UdpSocket>> = (first..first + count)
                .map(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok())
                .collect();
            if let Some(mut sockets) = sockets {
                return (sockets.swap_remove(0), first..=first + count - 1);
            }
        }
        panic!("no {count} ports behind each other are free");
    }

    #[test]
    fn socket_takes_another_port_of_the_range_or_names_it() {
        let (taken, ports) = taken_port_and_next(2);
        let address = taken.local_addr().expect("bound");
        let other = bind(address, &ports).expect("the next port");
        assert_eq!(other.local_addr().expect("bound").port(), *ports.end());
        let text = bind(address, &ports).expect_err("both are taken").to_string();
        let named =
            format!("none of the ports {} to {} of 127.0.0.1 is free for UDP", ports.start(), ports.end());
        assert!(text.starts_with(&named), "{text}");
    }

    #[test]
    fn socket_takes_any_port_without_a_range() {
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = taken.local_addr().expect("bound");
        let socket = bind(address, &(0..=0)).expect("another port");
        assert_ne!(socket.local_addr().expect("bound").port(), address.port());
    }
}
