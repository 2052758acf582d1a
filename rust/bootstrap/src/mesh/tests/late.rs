//! Tests of hosts that are late, absent or at a wrong address, and of the hosts that wait for them.

use super::*;

fn absence(error: MeshError) -> (u32, Absence, Vec<u32>) {
    match error {
        MeshError::Absent { host, why, others, .. } => (host, why, others),
        other => panic!("{other}"),
    }
}

/// The error of a host of a job at the first deadline at which it gives this reason.
fn at_the_deadline(number: u32, why: Absence, job: impl Fn() -> (Job, Option<OwnedFd>)) -> MeshError {
    let mut errors = SHORTS.into_iter().map(|time| {
        let (mut job, _kept) = job();
        connect(job.mesh(number, time), &mut Uninterruptible).expect_err("not all are there")
    });
    let is_it = |error: &MeshError| matches!(error, MeshError::Absent { why: said, .. } if *said == why);
    errors.find(is_it).unwrap_or_else(|| panic!("not {why:?} within {SHORTS:?}"))
}

#[test]
fn missing_host_is_named_at_the_deadline() {
    let mut job = Job::ours(4);
    let at = job.hosts[1].address;
    let error = connect(job.mesh(0, SHORTS[0]), &mut Uninterruptible).expect_err("no host connected");
    let text = error.to_string();
    assert!(text.starts_with(&format!("host 1 at {at} did not connect within 0.")), "{text}");
    assert!(
        text.contains(
            " s (--connect-timeout sets this time); its site may not have started, or a firewall is between"
        ),
        "{text}"
    );
    assert!(text.ends_with(" (also missing: host 2, 3)"), "{text}");
    assert_eq!(absence(error), (1, Absence::NotConnected, vec![2, 3]));
}

#[test]
fn error_names_eight_missing_hosts_and_counts_the_rest() {
    let mut job = Job::ours(12);
    let error = connect(job.mesh(0, Duration::ZERO), &mut Uninterruptible).expect_err("no host connected");
    assert!(error.to_string().ends_with("(also missing: host 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)"), "{error}");
}

/// The ports are those of closed listeners, at addresses where no other test listens.
#[test]
fn unreachable_host_is_named_at_the_deadline() {
    for is_ours in [true, false] {
        let error = at_the_deadline(2, Absence::Unreachable(Errno::CONNREFUSED), || {
            let mut job = Job::new(&[v4(61), v4(62), v4(63)], |_| is_ours);
            drop((job.listener(0), job.listener(1)));
            (job, None)
        });
        assert!(error.to_string().contains("could not be reached (Connection refused"), "{error}");
        assert_eq!(absence(error), (0, Absence::Unreachable(Errno::CONNREFUSED), vec![1]));
    }
}

/// The system accepts the connection for a slow host, or for another program.
#[test]
fn unresponsive_host_is_named_at_the_deadline() {
    let error = at_the_deadline(1, Absence::NoAnswer, || {
        let mut job = Job::ours(2);
        let silent = job.listener(0);
        (job, Some(silent))
    });
    assert!(error.to_string().contains("accepted the connection and did not answer"), "{error}");
    assert_eq!(absence(error), (0, Absence::NoAnswer, vec![]));
}

/// The first connections find no listener: the number of calls of the wait control proves that.
#[test]
fn late_host_is_connected_before_the_deadline() {
    let mut job = Job::new(&[v4(64), v4(65)], |_| true);
    let at = job.hosts[0].address;
    drop(job.listener(0));
    let (is_waiting, hosts) = (AtomicBool::new(false), job.hosts.clone());
    thread::scope(|scope| {
        let early = scope.spawn(|| {
            let mut asked = 0;
            connect(job.mesh(1, LONG), &mut || {
                asked += 1;
                is_waiting.store(asked > 3, SeqCst);
                true
            })
        });
        while !is_waiting.load(SeqCst) {
            thread::yield_now();
        }
        let (listener, _) = listen(at.ip(), at.port()..=at.port()).expect("the same port");
        connect(mesh(&hosts, listener, 0, LONG), &mut Uninterruptible).expect("a mesh");
        early.join().expect("no panic").expect("a mesh");
    });
}

#[test]
fn wait_control_interrupts_the_mesh() {
    let mut job = Job::ours(3);
    let mut asked = 0;
    let mut wait_control = || {
        asked += 1;
        asked < 4
    };
    let begun = Instant::now();
    let error = connect(job.mesh(1, LONG), &mut wait_control).expect_err("interrupted");
    assert!(matches!(error, MeshError::Interrupted), "{error}");
    assert_eq!(asked, 4);
    assert!(begun.elapsed() >= 3 * SLICE, "it is not asked all the time");
}

#[test]
fn bind_to_an_address_of_another_machine_fails() {
    let mut job = Job::ours(2);
    let mesh = Mesh { bind: Some(Ipv4Addr::new(192, 0, 2, 1).into()), ..job.mesh(1, LONG) };
    let error = connect(mesh, &mut Uninterruptible).expect_err("not ours");
    assert!(matches!(error, MeshError::Bind { host: 0, .. }), "{error}");
    assert!(error.to_string().contains("from 192.0.2.1: Cannot assign requested address"), "{error}");
}

/// A multicast address cannot be connected to.
#[test]
fn connect_to_a_multicast_address_fails() {
    let mut job = Job::ours(2);
    job.hosts[0].address = SocketAddr::new(Ipv4Addr::new(224, 0, 0, 1).into(), 4000);
    let mesh = Mesh { bind: None, ..job.mesh(1, LONG) };
    let error = connect(mesh, &mut Uninterruptible).expect_err("no way");
    assert!(matches!(error, MeshError::Connect { host: 0, .. }), "{error}");
    assert!(error.to_string().starts_with("cannot connect to host 0 at 224.0.0.1:4000: "), "{error}");
}

/// Without a listener the system may connect a socket to itself, when it selects the same port.
#[test]
fn self_connected_socket_is_detected() {
    let (listener, at) = listen(v4(2), 0..=0).expect("a listener");
    let other = unknown_client(v4(2), at);
    assert!(!socket::is_its_own_peer(other.as_fd()));
    drop((listener, other));
    let own = socket::open(&at).expect("a socket");
    rustix::net::bind(&own, &SocketAddr::new(v4(2), 0)).expect("an address");
    let at = SocketAddr::try_from(rustix::net::getsockname(&own).expect("an address")).expect("an address");
    match rustix::net::connect(&own, &at) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => panic!("{error}"),
    }
    let mut fds = [PollFd::new(&own, PollFlags::OUT)];
    poll(&mut fds, None).expect("connected");
    assert!(socket::is_its_own_peer(own.as_fd()));
}
