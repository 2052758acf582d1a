//! Test of the mesh in a process without a free descriptor. It has a process of its own, since the limit
//! applies to all threads.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::thread::scope;
use std::time::{Duration, Instant};

use mpjdev_bootstrap::mesh::{self, Connected, Host, Mesh};
use mpjdev_engine::Uninterruptible;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More descriptors than the process has open.
const LIMIT: u64 = 128;

fn connect(number: u32, hosts: &[Host], listener: OwnedFd) -> Connected {
    let mesh = Mesh {
        number,
        hosts,
        listener,
        bind: None,
        key: Some(b"key"),
        job: b"job",
        wanted: &|_| true,
        deadline: Instant::now() + Duration::from_secs(20),
        peer_timeout: Duration::from_secs(20),
    };
    mesh::connect(mesh, &mut Uninterruptible).unwrap_or_else(|error| panic!("host {number}: {error}"))
}

/// The system reports a lack of descriptors even if no connection waits. Then the mesh closes no connection.
#[test]
fn connection_that_took_the_last_descriptor_is_kept() {
    let listen = || mesh::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), 0..=0).expect("a port");
    let [(zero, zero_at), (one, one_at)] = [listen(), listen()];
    let hosts = [zero_at, one_at].map(|address| Host { address, source: None, is_ours: true });
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), maximum }).expect("a lower limit");
    let mut taken: Vec<OwnedFd> = std::iter::from_fn(|| zero.try_clone().ok()).collect();
    // Host 0 accepts with this descriptor. Host 1 connects with that of its listener, which it closes first.
    drop(taken.pop().expect("a descriptor"));
    let connected = scope(|threads| {
        let hosts = &hosts;
        let other = threads.spawn(move || connect(1, hosts, one));
        [connect(0, hosts, zero), other.join().expect("no panic")]
    });
    drop(taken);
    for (number, connected) in connected.into_iter().enumerate() {
        assert_eq!(connected.sockets.iter().flatten().count(), 1, "host {number}");
        assert_eq!(connected.warnings, [], "host {number}");
    }
}
