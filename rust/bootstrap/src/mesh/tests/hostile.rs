//! Tests of connections from unauthenticated clients, and from hosts that break the protocol.

use std::net::TcpListener;

use rustix::net::sockopt::Timeout;

use super::super::handshake::{Fault, GREETING_LEN, Handshake, NUMBER_LEN, PROOF_LEN, Pair};
use super::*;

fn pair(key: &[u8]) -> Pair<'_> {
    Pair { connector: 1, acceptor: 0, key, job: JOB }
}

/// Runs one end on a stream until the handshake is complete, or `most` octets were sent.
fn run_end(stream: &TcpStream, end: &mut Handshake<'_>, mut most: usize) -> Result<(), Fault> {
    let mut stream = stream;
    while !end.is_complete() && most > 0 {
        if let Some(octet) = end.output().first() {
            stream.write_all(&[*octet]).expect("sent");
            end.sent(1);
            most -= 1;
        } else if end.number().is_some() {
            end.admit_ours(pair(KEY), [1; 16]);
        } else {
            let mut octets = vec![0; end.needed()];
            stream.read_exact(&mut octets).expect("an answer");
            end.handle_octets(&octets)?;
        }
    }
    Ok(())
}

/// Host 0 waits in a thread for host 1 during the attack on its listener. Then host 1 connects, and both
/// succeed. Returns the warnings of host 0.
fn warnings_under_attack(mut job: Job, limits: Limits, attack: impl FnOnce(SocketAddr)) -> Vec<Warning> {
    let at = job.hosts[0].address;
    let (zero, one, hosts) = (job.listener(0), job.listener(1), &job.hosts);
    thread::scope(|scope| {
        let zero = scope.spawn(|| connect_within(mesh(hosts, zero, 0, LONG), limits, &mut Uninterruptible));
        attack(at);
        connect(mesh(hosts, one, 1, LONG), &mut Uninterruptible).expect("a mesh");
        let connected = zero.join().expect("no panic").expect("a mesh");
        assert!(connected.sockets[1].is_some());
        connected.warnings
    })
}

/// In a job of four hosts, of which hosts 1 and 3 need no connection, host 1 receives these octets from an
/// unknown client, and then host 2 connects. Returns the reason of the first refusal.
fn refusal_of(is_ours: bool, from: IpAddr, said: &[u8]) -> Refusal {
    let mut job = Job::new(&[v4(2), v4(3), v4(4), v4(5)], |_| is_ours);
    let (one, two, hosts) = (job.listener(1), job.listener(2), &job.hosts);
    let client = unknown_client(from, hosts[1].address);
    (&client).write_all(said).expect("sent");
    let connected = thread::scope(|scope| {
        let meet = |number, listener| {
            let wanted = &|host| host == 3 - number;
            connect(Mesh { wanted, ..mesh(hosts, listener, number, LONG) }, &mut Uninterruptible)
        };
        let two = scope.spawn(move || meet(2, two));
        let connected = meet(1, one).expect("a mesh");
        two.join().expect("no panic").expect("a mesh");
        connected
    });
    wait_until_closed(&client);
    match refusals(&connected.warnings)[..] {
        [why] => why,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn number_of_an_unexpected_host_is_refused() {
    for is_ours in [true, false] {
        let why = |said: &[u8]| refusal_of(is_ours, v4(9), said);
        assert_eq!(why(b"\0\0\0\x01"), Refusal::NotHigher { number: 1, own: 1 });
        assert_eq!(why(b"\0\0\0\0"), Refusal::NotHigher { number: 0, own: 1 });
        assert_eq!(why(b"\0\0\0\x03"), Refusal::NotWanted { number: 3 });
        assert_eq!(why(b"\0\0\0\x04"), Refusal::OutOfRange { number: 4, hosts: 4 });
        assert_eq!(why(&[0xff; 4]), Refusal::OutOfRange { number: u32::MAX, hosts: 4 });
        assert_eq!(why(&[0; 1000]), Refusal::NotHigher { number: 0, own: 1 });
        assert_eq!(why(b"GET / HTTP/1.1\r\n\r\n"), Refusal::OutOfRange { number: 0x4745_5420, hosts: 4 });
    }
}

#[test]
fn foreign_number_from_another_address_is_refused() {
    let why = refusal_of(false, v4(9), b"\0\0\0\x02");
    assert_eq!(why, Refusal::Source { number: 2, source_address: v4(4) });
}

#[test]
fn number_of_our_host_without_a_greeting_is_refused() {
    let why = refusal_of(true, v4(4), b"\0\0\0\x02ACKNOWLEDGED? NO SUCH THING.");
    assert_eq!(why, Refusal::Fault { number: 2, fault: Fault::NoGreeting(*b"ACKNOWLE") });
}

#[test]
fn connection_that_closes_early_is_refused() {
    for (said, number) in [(0, None), (1, None), (3, None), (4, Some(1)), (5, Some(1)), (27, Some(1))] {
        let mut job = Job::ours(2);
        let (zero, one, hosts) = (job.listener(0), job.listener(1), &job.hosts);
        // One connection ends in order, the other by a reset.
        for linger in [None, Some(Duration::ZERO)] {
            let scanner = unknown_client(v4(9), hosts[0].address);
            (&scanner).write_all(&b"\0\0\0\x01mpjmesh\x010123456789abcdef"[..said]).expect("sent");
            rustix::net::sockopt::set_socket_linger(&scanner, linger).expect("an option");
        }
        let connected = thread::scope(|scope| {
            let one = scope.spawn(|| connect(mesh(hosts, one, 1, LONG), &mut Uninterruptible));
            let connected = connect(mesh(hosts, zero, 0, LONG), &mut Uninterruptible).expect("a mesh");
            one.join().expect("no panic").expect("a mesh");
            connected
        });
        // The octets of a connection that was reset at once are lost.
        let why = refusals(&connected.warnings);
        assert!(why.contains(&Refusal::Closed { number }), "{said} octets: {why:?}");
        assert!(why.iter().all(|why| matches!(why, Refusal::Closed { .. })), "{said} octets: {why:?}");
    }
}

#[test]
fn second_foreign_connection_with_the_same_number_is_refused() {
    let mut job = Job::foreign(3);
    let at = job.hosts[0].address;
    let [first, second] = [(); 2].map(|()| unknown_client(v4(3), at));
    for mut stream in [&first, &second] {
        stream.write_all(&[0, 0, 0, 1]).expect("sent");
    }
    let last = unknown_client(v4(4), at);
    (&last).write_all(&[0, 0, 0, 2]).expect("sent");
    let connected = connect(job.mesh(0, LONG), &mut Uninterruptible).expect("a mesh");
    assert_eq!(refusals(&connected.warnings), [Refusal::Taken { number: 1 }]);
    wait_until_closed(&second);
    let peer = rustix::net::getpeername(connected.sockets[1].as_ref().expect("host 1")).expect("an address");
    let first = first.local_addr().expect("an address");
    assert_eq!(peer.map(SocketAddr::try_from), Some(Ok(first)), "the first keeps its place");
}

/// The first connection has proved that it has the key.
#[test]
fn connection_is_refused_when_its_number_is_proved_already() {
    let mut job = Job::ours(3);
    let (zero, two, hosts) = (job.listener(0), job.listener(2), &job.hosts);
    thread::scope(|scope| {
        let zero = scope.spawn(|| connect(mesh(hosts, zero, 0, LONG), &mut Uninterruptible));
        let first = unknown_client(v4(3), hosts[0].address);
        run_end(&first, &mut Handshake::connect_ours(pair(KEY), [2; 16]), usize::MAX).expect("taken");
        let second = unknown_client(v4(3), hosts[0].address);
        (&second).write_all(&[0, 0, 0, 1]).expect("sent");
        wait_until_closed(&second);
        let wanted = &|host| host == 0;
        connect(Mesh { wanted, ..mesh(hosts, two, 2, LONG) }, &mut Uninterruptible).expect("a mesh");
        let connected = zero.join().expect("no panic").expect("a mesh");
        assert_eq!(refusals(&connected.warnings), [Refusal::Taken { number: 1 }]);
    });
}

/// A claim to a number does not block the host that can prove it.
#[test]
fn host_with_the_key_connects_while_others_claim_its_number() {
    let mut claims = Vec::new();
    warnings_under_attack(Job::ours(2), Limits { pending_time: LONG, ..Limits::default() }, |at| {
        claims.extend((0..10).map(|_| unknown_client(v4(3), at)));
        for claim in &claims {
            let mut end = Handshake::connect_ours(pair(b"guessed"), [2; 16]);
            run_end(claim, &mut end, NUMBER_LEN + GREETING_LEN).expect("no fault");
            let mut octets = [0; GREETING_LEN];
            let mut claim = claim;
            claim.read_exact(&mut octets).expect("its nonce");
        }
    });
    claims.iter().for_each(wait_until_closed);
}

#[test]
fn connection_that_ends_at_any_step_does_not_block_the_mesh() {
    let steps = [1, 4, 5, 12, 28, 29, 59];
    let warnings = warnings_under_attack(Job::ours(2), Limits::default(), |at| {
        for most in steps {
            let mut end = Handshake::connect_ours(pair(KEY), [2; 16]);
            run_end(&unknown_client(v4(9), at), &mut end, most).expect("no fault");
        }
    });
    let why = refusals(&warnings);
    assert!(why.contains(&Refusal::Closed { number: None }), "{why:?}");
    assert!(why.contains(&Refusal::Closed { number: Some(1) }), "{why:?}");
}

/// A listener of another program, whose accepted connections block for a limited time.
fn blocking(listener: OwnedFd) -> TcpListener {
    rustix::net::sockopt::set_socket_timeout(&listener, Timeout::Recv, Some(LONG)).expect("an option");
    let listener = TcpListener::from(listener);
    listener.set_nonblocking(false).expect("an option");
    listener
}

#[test]
fn connector_retries_a_listener_that_closes_connections() {
    let mut job = Job::ours(2);
    let (zero, one, hosts) = (job.listener(0), job.listener(1), &job.hosts);
    thread::scope(|scope| {
        let one = scope.spawn(|| connect(mesh(hosts, one, 1, LONG), &mut Uninterruptible));
        let listener = blocking(zero);
        for most in [0, 1, 8, GREETING_LEN, GREETING_LEN + 1, GREETING_LEN + PROOF_LEN - 1] {
            let (stream, _) = listener.accept().expect("a connection");
            run_end(&stream, &mut Handshake::accept(), most).expect("no fault");
        }
        listener.set_nonblocking(true).expect("an option");
        connect(mesh(hosts, listener.into(), 0, LONG), &mut Uninterruptible).expect("a mesh");
        one.join().expect("no panic").expect("a mesh");
    });
}

/// The error of host 1 when this function answers at the address of host 0.
fn error_with_listener(says: impl FnOnce(TcpStream) + Send) -> MeshError {
    let mut job = Job::ours(2);
    let (zero, one, hosts) = (job.listener(0), job.listener(1), &job.hosts);
    let listener = blocking(zero);
    thread::scope(|scope| {
        scope.spawn(|| says(listener.accept().expect("a connection").0));
        connect(mesh(hosts, one, 1, LONG), &mut Uninterruptible).expect_err("no host")
    })
}

#[test]
fn listener_without_a_greeting_fails_the_mesh() {
    let error = error_with_listener(|mut stream| {
        stream.write_all(b"220 mail.example.com ESMTP at your service\r\n").expect("sent");
        wait_until_closed(&stream);
    });
    let MeshError::WrongHost { host: 0, fault: Fault::NoGreeting(begins), .. } = error else {
        panic!("{error}")
    };
    assert_eq!(&begins, b"220 mail");
    assert!(
        error
            .to_string()
            .contains("does not belong to this job: it sent no mpjdev greeting, but [32, 32, 30"),
        "{error}"
    );
}

/// The connector does not reveal to the listener whether its key is right.
#[test]
fn listener_with_a_wrong_proof_fails_the_mesh() {
    let error = error_with_listener(|mut stream| {
        let mut end = Handshake::accept();
        run_end(&stream, &mut end, GREETING_LEN).expect("no fault");
        stream.write_all(&[1; PROOF_LEN]).expect("sent");
        wait_until_closed(&stream);
    });
    assert!(matches!(error, MeshError::WrongHost { host: 0, fault: Fault::WrongProof, .. }), "{error}");
}

/// The connector fails at once. The acceptor continues to wait for the right host.
#[test]
fn host_with_another_key_is_refused_at_once() {
    let mut job = Job::ours(2);
    let (zero, one, hosts) = (job.listener(0), job.listener(1), &job.hosts);
    let (is_over, again) = (AtomicBool::new(false), listen(v4(3), 0..=0).expect("a listener").0);
    thread::scope(|scope| {
        let mut wait_control = || !is_over.load(SeqCst);
        let zero = scope.spawn(move || connect(mesh(hosts, zero, 0, LONG), &mut wait_control));
        let wrong = Mesh { key: Some(b"mistyped"), ..mesh(hosts, one, 1, LONG) };
        let error = connect(wrong, &mut Uninterruptible).expect_err("the wrong key");
        is_over.store(!matches!(error, MeshError::WrongHost { fault: Fault::Refused, .. }), SeqCst);
        assert!(error.to_string().contains("give all sites of the job the same key"), "{error}");
        connect(mesh(hosts, again, 1, LONG), &mut Uninterruptible).expect("a mesh");
        let connected = zero.join().expect("no panic").expect("a mesh");
        let why = refusals(&connected.warnings);
        assert_eq!(why, [Refusal::Fault { number: 1, fault: Fault::WrongProof }]);
    });
}

/// Another job may have taken the port of an earlier one.
#[test]
fn host_of_another_job_with_the_same_key_is_refused_at_once() {
    let warnings = warnings_under_attack(Job::ours(2), Limits::default(), |at| {
        let mut end = Handshake::connect_ours(Pair { job: b"another", ..pair(KEY) }, [2; 16]);
        assert_eq!(run_end(&unknown_client(v4(3), at), &mut end, usize::MAX), Err(Fault::Refused));
    });
    assert_eq!(refusals(&warnings), [Refusal::Fault { number: 1, fault: Fault::WrongProof }]);
}

#[test]
fn error_of_a_missing_host_contains_its_refusal() {
    let mut job = Job::foreign(2);
    let client = unknown_client(v4(9), job.hosts[0].address);
    (&client).write_all(&[0, 0, 0, 1]).expect("sent");
    let error = connect(job.mesh(0, Duration::ZERO), &mut Uninterruptible).expect_err("no host connected");
    let because = "did not connect (a connection from 127.0.0.9 was refused: it claims to be host 1, whose connections come from \
                   127.0.0.3) within 0.0 s (--connect-timeout sets this time); its number, its key and the address";
    assert!(error.to_string().contains(because), "{error}");
    wait_until_closed(&client);
}

/// Each octet arrives within the time limit of the connection, and the handshake is never complete.
#[test]
fn slow_connection_is_refused_after_the_time_limit() {
    const TIME: Duration = Duration::from_secs(1);
    let limits = Limits { pending_time: TIME, ..Limits::default() };
    let warnings = warnings_under_attack(Job::ours(2), limits, |at| {
        let slow = unknown_client(v4(9), at);
        slow.set_read_timeout(Some(TIME / 2)).expect("an option");
        let said = b"\0\0\0\x01mpjmesh\x010123456789abcdef".iter().chain([0; PROOF_LEN - 1].iter());
        for octet in said {
            let mut stream = &slow;
            let sent = stream.write_all(&[*octet]);
            match stream.read(&mut [0; GREETING_LEN]) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && sent.is_ok() => {}
                Ok(len) if len > 0 => {}
                _ => return,
            }
        }
        panic!("the connection is still open");
    });
    // On a busy machine host 1 itself may have been slow, and tried again.
    let why = refusals(&warnings);
    assert!(!why.is_empty() && why.iter().all(|why| matches!(why, Refusal::Slow { .. })), "{why:?}");
    assert!(warnings.iter().any(|warning| warning.to_string().contains("127.0.0.9")), "{warnings:?}");
}

/// Silent connections are closed before their time limit to make room for others.
#[test]
fn flood_of_silent_connections_does_not_block_the_mesh() {
    let limits = Limits { pending_time: LONG, ..Limits::default() };
    for is_ours in [true, false] {
        let mut flood = Vec::new();
        let job = Job::new(&[v4(2), v4(3)], |_| is_ours);
        let warnings = warnings_under_attack(job, limits, |at| {
            flood.extend((0..200).map(|_| unknown_client(v4(9), at)));
            // One more connection is that of the expected host.
            flood[..200 - limits.pending_max - 1].iter().for_each(wait_until_closed);
        });
        flood.iter().for_each(wait_until_closed);
        assert!(refusals(&warnings).contains(&Refusal::Evicted { number: None }), "{warnings:?}");
    }
}

/// The flood closes neither connections from other addresses nor those with a number.
#[test]
fn flood_closes_only_its_own_connections() {
    let limits = Limits { pending_time: LONG, ..Limits::default() };
    for (from, most) in [(v4(3), 2), (v4(9), NUMBER_LEN + GREETING_LEN)] {
        let mut job = Job::ours(3);
        let (zero, two, hosts) = (job.listener(0), job.listener(2), &job.hosts);
        thread::scope(|scope| {
            let zero =
                scope.spawn(|| connect_within(mesh(hosts, zero, 0, LONG), limits, &mut Uninterruptible));
            let at = hosts[0].address;
            let (one, mut end) = (unknown_client(from, at), Handshake::connect_ours(pair(KEY), [2; 16]));
            run_end(&one, &mut end, most).expect("no fault");
            if end.output().is_empty() {
                assert_eq!(one.peek(&mut [0]).expect("its greeting"), 1);
            }
            let flood: Vec<_> = (0..200).map(|_| unknown_client(v4(9), at)).collect();
            flood[..100].iter().for_each(wait_until_closed);
            run_end(&one, &mut end, usize::MAX).expect("taken");
            let wanted = &|host| host == 0;
            connect(Mesh { wanted, ..mesh(hosts, two, 2, LONG) }, &mut Uninterruptible).expect("a mesh");
            zero.join().expect("no panic").expect("a mesh");
        });
    }
}

#[test]
fn record_of_refusals_is_bounded() {
    let mut record = error::Record::default();
    for number in 0..100 {
        for _ in 0..3 {
            record.add(v4(9), Refusal::OutOfRange { number, hosts: 2 });
        }
    }
    let warnings: Vec<_> = record.warnings().collect();
    assert_eq!(warnings.len(), error::Record::KEPT_MAX + 1);
    assert_eq!(
        warnings[7].to_string(),
        "a connection from 127.0.0.9 was refused: it claims to be host 7, but the job has 2 hosts (3 times)"
    );
    assert_eq!(warnings[16].to_string(), "252 more connections were refused");
}

#[test]
fn interrupted_mesh_closes_all_sockets() {
    let mut job = Job::new(&[v4(68), v4(69)], |_| true);
    let at = job.hosts[0].address;
    let silent = unknown_client(v4(9), at);
    let mut asked = 0;
    let mut wait_control = || {
        asked += 1;
        asked < 3
    };
    let error = connect(job.mesh(0, LONG), &mut wait_control).expect_err("interrupted");
    assert!(matches!(error, MeshError::Interrupted), "{error}");
    wait_until_closed(&silent);
    assert!(TcpStream::connect(at).is_err(), "the listener too");
}
