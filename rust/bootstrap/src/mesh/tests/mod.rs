//! Tests of the mesh: hosts in threads, on addresses of this machine, and clients that are no hosts.

mod handshake;
mod honest;
mod hostile;
mod late;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use mpjdev_transport::wait::Uninterruptible;

use super::*;

/// A deadline that no test reaches.
const LONG: Duration = Duration::from_secs(60);
/// Deadlines of the tests that wait for one, in turn: a slow machine that misses the first one meets the
/// last.
const SHORTS: [Duration; 3] = [Duration::from_millis(150), Duration::from_secs(3), Duration::from_secs(20)];

const KEY: &[u8] = b"a key of the tests";
const JOB: &[u8] = b"a job of the tests";

/// 127.0.0.x.
fn v4(x: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, x).into()
}

/// The only loopback address of IPv6.
fn v6() -> IpAddr {
    Ipv6Addr::LOCALHOST.into()
}

/// Whether this machine has no addresses of IPv6, which is printed: such a test is skipped.
fn lacks_v6() -> bool {
    let lacks = listen(v6(), 0..=0).err();
    if let Some(error) = &lacks {
        eprintln!("skipped: {error}");
    }
    lacks.is_some()
}

/// The hosts of a job, with the listeners that were not taken yet.
struct Job {
    hosts: Vec<Host>,
    listeners: Vec<Option<OwnedFd>>,
}

impl Job {
    /// Hosts that listen at these addresses, and connect from them.
    fn new(addresses: &[IpAddr], is_ours: impl Fn(usize) -> bool) -> Job {
        let made = addresses.iter().map(|address| listen(*address, 0..=0).expect("a listener"));
        let (listeners, at): (Vec<_>, Vec<_>) = made.map(|(listener, at)| (Some(listener), at)).unzip();
        let host = |(i, address): (usize, SocketAddr)| Host {
            address,
            source: Some(address.ip()),
            is_ours: is_ours(i),
        };
        Job { hosts: at.into_iter().enumerate().map(host).collect(), listeners }
    }

    /// Hosts at 127.0.0.2 and the following addresses, all of this project.
    fn ours(count: u8) -> Job {
        Job::new(&(2..2 + count).map(v4).collect::<Vec<_>>(), |_| true)
    }

    /// Hosts that are all foreign to each other.
    fn foreign(count: u8) -> Job {
        Job::new(&(2..2 + count).map(v4).collect::<Vec<_>>(), |_| false)
    }

    /// The arguments of a host that connects to all others.
    fn mesh(&mut self, number: u32, time: Duration) -> Mesh<'_> {
        let listener = self.listeners[number as usize].take().expect("its listener");
        mesh(&self.hosts, listener, number, time)
    }

    fn listener(&mut self, number: usize) -> OwnedFd {
        self.listeners[number].take().expect("its listener")
    }
}

fn mesh(hosts: &[Host], listener: OwnedFd, number: u32, time: Duration) -> Mesh<'_> {
    Mesh {
        number,
        hosts,
        listener,
        bind: Some(hosts[number as usize].address.ip()),
        key: Some(KEY),
        job: JOB,
        wanted: &|_| true,
        deadline: Instant::now() + time,
        peer_timeout: Duration::from_secs(20),
    }
}

/// A connection of an unknown client from an address to a host; its reads time out.
fn unknown_client(from: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = socket::open(&to).expect("a socket");
    rustix::io::ioctl_fionbio(&socket, false).expect("a socket that blocks");
    rustix::net::bind(&socket, &SocketAddr::new(from, 0)).expect("an address");
    rustix::net::connect(&socket, &to).expect("a connection");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LONG)).expect("an option");
    stream
}

/// Waits until the other end has closed this connection; drops its octets.
fn wait_until_closed(mut stream: &TcpStream) {
    let mut octets = [0; 100];
    loop {
        match stream.read(&mut octets) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(error) => panic!("not closed: {error}"),
        }
    }
}

fn refusals(warnings: &[Warning]) -> Vec<Refusal> {
    let refused = warnings.iter().filter_map(|warning| match warning {
        Warning::Refused(refused) => Some(refused.why),
        _ => None,
    });
    refused.collect()
}
