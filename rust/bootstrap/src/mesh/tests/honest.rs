//! Tests of hosts that follow the protocol.

use super::*;

/// Connects all hosts, each in a thread, for the pairs that `wanted` selects; returns the results.
fn connect_all(mut job: Job, wanted: impl Fn(u32, u32) -> bool + Sync) -> Vec<Connected> {
    let listeners: Vec<_> = (0..job.hosts.len()).map(|i| job.listener(i)).collect();
    let (hosts, wanted) = (&job.hosts, &wanted);
    thread::scope(|scope| {
        let join = |(number, listener): (u32, OwnedFd)| {
            scope.spawn(move || {
                let wanted = |other| wanted(number, other);
                let mesh = Mesh { wanted: &wanted, ..mesh(hosts, listener, number, LONG) };
                connect(mesh, &mut Uninterruptible).unwrap_or_else(|error| panic!("host {number}: {error}"))
            })
        };
        let threads: Vec<_> = (0..).zip(listeners).map(join).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Checks that two hosts have a connection where one is wanted, with the same two ends, and that octets pass
/// on it.
fn check(all: Vec<Connected>, wanted: impl Fn(u32, u32) -> bool) {
    let streams: Vec<Vec<Option<TcpStream>>> = all
        .into_iter()
        .map(|connected| connected.sockets.into_iter().map(|socket| socket.map(TcpStream::from)).collect())
        .collect();
    for (i, row) in streams.iter().enumerate() {
        assert_eq!(row.len(), streams.len());
        for (j, stream) in row.iter().enumerate() {
            let is_wanted = i != j && wanted(i as u32, j as u32);
            assert_eq!(stream.is_some(), is_wanted, "host {i} with host {j}");
            let Some(stream) = stream else { continue };
            assert!(stream.nodelay().expect("an option"));
            stream.set_nonblocking(false).expect("an option");
            let mut stream: &TcpStream = stream;
            stream.write_all(&[i as u8, j as u8]).expect("sent");
        }
    }
    for (i, row) in streams.iter().enumerate() {
        for (j, stream) in row.iter().enumerate() {
            let Some(mut stream) = stream.as_ref() else { continue };
            let other = streams[j][i].as_ref().expect("the other end");
            let [there, here] = [stream.peer_addr(), other.local_addr()].map(|at| at.expect("an address"));
            assert_eq!((there.ip().to_canonical(), there.port()), (here.ip().to_canonical(), here.port()));
            let mut octets = [0; 2];
            stream.read_exact(&mut octets).expect("what was sent");
            assert_eq!(octets, [j as u8, i as u8], "the first octets are those of packets");
        }
    }
}

fn all(_: u32, _: u32) -> bool {
    true
}

#[test]
fn two_hosts_of_ours_are_connected_without_a_warning() {
    let connected = connect_all(Job::ours(2), all);
    assert!(connected.iter().all(|connected| connected.warnings.is_empty()), "{connected:?}");
    check(connected, all);
}

#[test]
fn two_foreign_hosts_are_connected_with_a_warning() {
    let connected = connect_all(Job::foreign(2), all);
    let by_address = |host, address| vec![Warning::ByAddress { host, address }];
    assert_eq!(connected[0].warnings, by_address(1, v4(3)));
    assert_eq!(connected[1].warnings, by_address(0, v4(2)));
    assert_eq!(
        connected[0].warnings[0].to_string(),
        "host 1 is foreign, and is identified by its address 127.0.0.3 alone"
    );
    check(connected, all);
}

#[test]
fn all_pairs_of_eight_hosts_are_connected() {
    check(connect_all(Job::ours(8), all), all);
}

/// Hosts 0 to 3 are of one site and need no connections between them, and so are hosts 4 to 15.
#[test]
fn only_wanted_pairs_of_hosts_are_connected() {
    let across = |a: u32, b: u32| (a < 4) != (b < 4);
    check(connect_all(Job::ours(16), across), across);
}

/// Hosts are distinguished by their numbers, not by their addresses.
#[test]
fn hosts_at_one_address_are_connected() {
    check(connect_all(Job::new(&[v4(1); 5], |_| true), all), all);
    check(connect_all(Job::new(&[v4(1); 5], |_| false), all), all);
}

#[test]
fn hosts_at_ipv6_addresses_are_connected() {
    if lacks_v6() {
        return;
    }
    check(connect_all(Job::new(&[v6(); 4], |_| true), all), all);
    check(connect_all(Job::new(&[v6(); 4], |_| false), all), all);
}

#[test]
fn hosts_at_ipv4_and_ipv6_addresses_are_connected() {
    if lacks_v6() {
        return;
    }
    let mut job = Job::new(&[v4(2), v6(), v4(3), v6()], |_| false);
    // The source address of a connection to the other family's address is not known.
    job.hosts.iter_mut().for_each(|host| host.source = None);
    let connected = connect_all(job, all);
    assert!(connected[0].warnings.contains(&Warning::Unchecked { host: 1, from: v4(1) }));
    check(connected, all);
}

/// A listener for both families reports IPv4 addresses in the form of IPv6.
#[test]
fn ipv4_mapped_source_address_is_accepted() {
    if lacks_v6() {
        return;
    }
    let mut job = Job::foreign(2);
    let (listener, at) = listen(Ipv6Addr::UNSPECIFIED.into(), 0..=0).expect("a listener");
    job.hosts[0].address.set_port(at.port());
    job.listeners[0] = Some(listener);
    job.hosts[1].source = Some(Ipv4Addr::new(127, 0, 0, 3).to_ipv6_mapped().into());
    check(connect_all(job, all), all);
}

#[test]
fn single_host_connects_at_once() {
    let mut job = Job::ours(1);
    let connected = connect(job.mesh(0, LONG), &mut Uninterruptible).expect("a mesh");
    assert!(connected.sockets.iter().all(Option::is_none) && connected.warnings.is_empty());
}

#[test]
fn listener_is_closed_when_all_hosts_are_connected() {
    let mut job = Job::new(&[v4(66), v4(67)], |_| true);
    let address = job.hosts[0].address;
    let mesh = Mesh { wanted: &|_| false, ..job.mesh(0, LONG) };
    connect(mesh, &mut Uninterruptible).expect("a mesh");
    let error = TcpStream::connect(address).expect_err("no listener");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

/// IMPI allows packets directly behind the number.
#[test]
fn packets_behind_the_number_stay_in_the_socket() {
    let mut job = Job::foreign(2);
    let mut one = unknown_client(v4(3), job.hosts[0].address);
    one.write_all(b"\0\0\0\x01packets").expect("sent");
    let connected = connect(job.mesh(0, LONG), &mut Uninterruptible).expect("a mesh");
    drop(one);
    let mut rest = String::new();
    let mut stream = TcpStream::from(connected.sockets.into_iter().nth(1).flatten().expect("host 1"));
    stream.set_nonblocking(false).expect("an option");
    stream.read_to_string(&mut rest).expect("all of it");
    assert_eq!(rest, "packets");
}

#[test]
fn connections_have_the_options_that_find_dead_peers() {
    use rustix::net::sockopt;
    let mut job = Job::foreign(3);
    let (lower, higher) = (job.listener(0), unknown_client(v4(4), job.hosts[1].address));
    (&higher).write_all(&[0, 0, 0, 2]).expect("sent");
    let connected = connect(job.mesh(1, LONG), &mut Uninterruptible).expect("a mesh");
    for socket in connected.sockets.iter().flatten() {
        assert!(sockopt::tcp_nodelay(socket).expect("an option"));
        assert!(sockopt::socket_keepalive(socket).expect("an option"));
        assert_eq!(sockopt::tcp_keepidle(socket).expect("an option"), Duration::from_secs(4));
        assert_eq!(sockopt::tcp_keepintvl(socket).expect("an option"), Duration::from_secs(2));
        assert_eq!(sockopt::tcp_keepcnt(socket).expect("an option"), 3);
        assert_eq!(sockopt::tcp_user_timeout(socket).expect("an option"), 20_000);
        let flags = rustix::fs::fcntl_getfl(socket).expect("flags");
        assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
        let flags = rustix::io::fcntl_getfd(socket).expect("flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    assert_eq!(connected.sockets.iter().flatten().count(), 2);
    drop(lower);
}

#[test]
fn listen_takes_the_ports_of_a_range_in_order() {
    // Two adjacent ports that were free a moment ago.
    let (first, second, port) = (0..100)
        .find_map(|_| {
            let (first, at) = listen(v4(77), 0..=0).ok()?;
            let next = at.port().checked_add(1)?;
            drop(first);
            let (first, _) = listen(v4(77), at.port()..=next).ok().filter(|(_, found)| *found == at)?;
            let (second, found) = listen(v4(77), at.port()..=next).ok()?;
            (found.port() == next).then_some((first, second, at.port()))
        })
        .expect("two ports");
    let error = listen(v4(77), port..=port + 1).expect_err("none is left");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let ports = format!("127.0.0.77: none of the ports {port} to {} is free", port + 1);
    assert!(error.to_string().contains(&ports), "{error}");
    drop(second);
    let (_, found) = listen(v4(77), port..=port + 1).expect("the second");
    assert_eq!(found.port(), port + 1);
    drop(first);
}

#[test]
fn listen_at_an_address_of_another_machine_fails() {
    // An address that is reserved for documentation (RFC 5737).
    let error = listen(Ipv4Addr::new(192, 0, 2, 1).into(), 0..=0).expect_err("not ours");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable);
    assert!(error.to_string().starts_with("cannot listen at 192.0.2.1"), "{error}");
}

/// A port that is bound before the connection is reserved for all destinations.
#[test]
fn bind_takes_no_port_before_the_connection() {
    let socket = socket::open(&SocketAddr::new(v4(2), 0)).expect("a socket");
    socket::bind_to(socket.as_fd(), v4(2)).expect("an address of this machine");
    let name = rustix::net::getsockname(&socket).expect("a name");
    assert_eq!(SocketAddr::try_from(name).expect("an address"), SocketAddr::new(v4(2), 0));
}

#[test]
fn error_tells_lack_of_ports_from_a_wrong_address() {
    let address = SocketAddr::new(v4(3), 7);
    let bind = |errno: Errno| MeshError::Bind { host: 1, address, bind: v4(2), error: errno.into() };
    let connect = |errno: Errno| MeshError::Connect { host: 1, address, error: errno.into() };
    for error in [bind(Errno::ADDRINUSE), connect(Errno::ADDRNOTAVAIL)] {
        assert!(error.to_string().contains("net.ipv4.ip_local_port_range"), "{error}");
    }
    assert!(bind(Errno::ADDRNOTAVAIL).to_string().ends_with("this must be an address of this machine"));
    assert!(connect(Errno::NETUNREACH).to_string().ends_with("must be one that this machine can reach"));
}

/// The machine's default does not matter.
#[test]
fn connections_within_the_machine_are_not_paced() {
    for connected in connect_all(Job::ours(2), all) {
        for socket in connected.sockets.iter().flatten() {
            let control = rustix::net::sockopt::tcp_congestion(socket).expect("a name");
            assert_eq!(control, socket::WITHIN_MACHINE);
        }
    }
}
