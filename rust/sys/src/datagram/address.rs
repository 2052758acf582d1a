//! Addresses in the system's form.

use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Destination of datagrams in the system's form, converted once for many datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Address(Form);

#[derive(Clone, Copy, Debug)]
enum Form {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address(match address {
            SocketAddr::V4(v4) => Form::V4(libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => Form::V6(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            }),
        })
    }
}

impl Address {
    /// Pointer to the address, and its octets.
    #[inline]
    pub(super) fn raw(&self) -> (*const libc::c_void, libc::socklen_t) {
        match &self.0 {
            Form::V4(v4) => ((&raw const *v4).cast(), size_of::<libc::sockaddr_in>() as libc::socklen_t),
            Form::V6(v6) => ((&raw const *v6).cast(), size_of::<libc::sockaddr_in6>() as libc::socklen_t),
        }
    }
}

/// Space for the address that the system writes.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Source {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    octets: [u8; size_of::<libc::sockaddr_in6>()],
}

impl Source {
    pub(super) const EMPTY: Source = Source { octets: [0; size_of::<libc::sockaddr_in6>()] };

    /// The address that the system has written; `None` if it is no internet address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        // SAFETY: all octets were zero before the system wrote some of them, and the fields that are read are
        // integers and arrays of them, which are valid for any octets.
        unsafe {
            match libc::c_int::from(self.family) {
                libc::AF_INET => {
                    let ip = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    Some(SocketAddrV4::new(ip, u16::from_be(self.v4.sin_port)).into())
                }
                libc::AF_INET6 => {
                    let (ip, port) =
                        (Ipv6Addr::from(self.v6.sin6_addr.s6_addr), u16::from_be(self.v6.sin6_port));
                    // The flow belongs to the packet, not to the peer: two of its datagrams have one address.
                    Some(SocketAddrV6::new(ip, port, 0, self.v6.sin6_scope_id).into())
                }
                _ => None,
            }
        }
    }
}
