use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::*;
use crate::waiting::Patient;

/// Both ends of a connection.
fn pair() -> [OwnedFd; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    let (other, _) = listener.accept().expect("it has come");
    [one, other].map(|stream| {
        stream.set_nonblocking(true).expect("a flag");
        stream.into()
    })
}

fn meeting(rank: u32, sockets: &[Option<OwnedFd>], after: Duration) -> Meeting<'_> {
    Meeting {
        rank,
        sockets,
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        // One of them wants checksums.
        terms: Terms {
            datagram_len_max: 8968 - 8 * rank as usize,
            is_checked: rank == 1,
            ..Terms::default()
        },
        path: Path::UNKNOWN,
        relay: None,
        deadline: Instant::now() + after,
    }
}

/// Rank 0 meets rank 1, which says this and no more.
fn met(said: &[u8]) -> Result<Job, MeetingError> {
    let [own, theirs] = pair();
    assert_eq!(rustix::io::write(&theirs, said), Ok(said.len()));
    meet(&meeting(0, &[None, Some(own)], Duration::from_millis(20)), &mut Patient)
}

fn introduction() -> Introduction {
    Introduction {
        port: 4711,
        connection: 0xabcd_e000,
        first: Sequence::of(0x7ffe),
        datagram_len_max: 1472,
        window: 9,
        max_ack_delay: 25_000_000,
        wants_checksums: true,
    }
}

#[test]
fn an_introduction_is_these_octets() {
    let octets = [
        b"mpjU".as_slice(),
        &[0, 0, 0, 1],
        &[0, 0, 0x12, 0x67],
        &[0xab, 0xcd, 0xe0, 0x00],
        &[0, 0, 0x7f, 0xfe],
        &[0, 0, 5, 0xc0],
        &[0, 0, 0, 9],
        &[0, 0, 0x61, 0xa8],
        &[0, 0, 0, 1],
    ]
    .concat();
    assert_eq!(introduction().emit()[..], octets);
    let parsed = Introduction::parse(&introduction().emit(), 0, 1).expect("sound");
    assert_eq!(parsed, introduction());
}

#[test]
fn all_ranks_know_of_each_other_what_the_other_has_said() {
    let [a, b] = pair();
    let [c, d] = pair();
    let [e, f] = pair();
    let sockets = [[None, Some(a), Some(c)], [Some(b), None, Some(e)], [Some(d), Some(f), None]];
    let after = Duration::from_secs(60);
    let jobs: Vec<Job> = std::thread::scope(|scope| {
        let begun = (0..).zip(&sockets).map(|(rank, sockets)| {
            scope.spawn(move || meet(&meeting(rank, sockets, after), &mut Patient).expect("met"))
        });
        let begun: Vec<_> = begun.collect();
        begun.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for (rank, job) in jobs.iter().enumerate() {
        assert_eq!(job.rank as usize, rank);
        assert!(job.members[rank].is_none());
        for (peer, other) in jobs.iter().enumerate().filter(|(peer, _)| *peer != rank) {
            let (to, from) = (job.members[peer].expect("met"), other.members[rank].expect("met"));
            assert_eq!(to.address, other.socket.local_addr().expect("bound"));
            assert_eq!((to.theirs, to.first_theirs), (from.ours, from.first_ours));
            assert_eq!(to.ours as usize % (1 << INDEX_BITS), peer);
            assert_eq!(to.send_window, other.receive_window);
            assert_eq!(to.datagram_len_max, 8968 - 8 * rank.max(peer), "what both take");
            assert_eq!(to.path, LOOPBACK);
            assert_eq!(to.is_checked, rank == 1 || peer == 1, "where one of both wants them");
        }
    }
    let numbers: std::collections::HashSet<u32> =
        jobs.iter().flat_map(|job| job.members.iter().flatten().map(|member| member.ours)).collect();
    assert_eq!(numbers.len(), 6, "no two connections are called alike");
}

#[test]
fn what_a_peer_cannot_say_is_named() {
    let value = |said: Introduction| match met(&said.emit()) {
        Err(MeetingError::Value { peer: 1, field, value }) => (field, value),
        other => panic!("{said:?}: {other:?}"),
    };
    let sound = introduction();
    assert!(met(&sound.emit()).is_ok());
    assert_eq!(value(Introduction { port: 0, ..sound }), ("its port", 0));
    assert_eq!(value(Introduction { connection: 7, ..sound }), ("its connection's number", 7));
    assert_eq!(value(Introduction { datagram_len_max: 3, ..sound }), ("the longest datagram", 3));
    assert_eq!(value(Introduction { window: 0, ..sound }), ("the window", 0));
    assert_eq!(value(Introduction { window: 8193, ..sound }), ("the window", 8193));
    let delay = ("the longest wait of an acknowledgment", 1_000_001);
    assert_eq!(value(Introduction { max_ack_delay: 1_000_001_000, ..sound }), delay);
    let mut octets = sound.emit();
    octets[35] = 2;
    let error = met(&octets).expect_err("no yes and no no");
    let MeetingError::Value { field, value, .. } = error else { panic!("{error}") };
    assert_eq!((field, value), ("whether packets have checksums", 2));
    let mut octets = sound.emit();
    octets[17] = 1;
    assert!(matches!(met(&octets), Err(MeetingError::Value { field: "the first sequence number", .. })));
    for at in 0..8 {
        let mut octets = sound.emit();
        octets[at] ^= 1;
        assert!(matches!(met(&octets), Err(MeetingError::Version { peer: 1, .. })), "octet {at}");
    }
}

#[test]
fn who_says_too_little_or_leaves_is_named() {
    let said = introduction().emit();
    let error = met(&said[..LEN - 1]).expect_err("not all");
    assert!(matches!(error, MeetingError::Silent { peer: 1, .. }), "{error}");
    assert_eq!(error.peer(), Some(1));
    let [own, theirs] = pair();
    drop(theirs);
    let error = meet(&meeting(0, &[None, Some(own)], Duration::from_secs(60)), &mut Patient);
    assert!(matches!(error, Err(MeetingError::Gone { peer: 1, .. })), "{error:?}");
    let [own, _theirs] = pair();
    let error = meet(&meeting(0, &[None, Some(own)], Duration::from_secs(60)), &mut || false);
    assert!(matches!(error, Err(MeetingError::Interrupted)), "{error:?}");
}

#[test]
fn a_port_that_is_taken_is_another_one_then() {
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = taken.local_addr().expect("bound");
    let socket = bind(address).expect("another one");
    assert_ne!(socket.local_addr().expect("bound").port(), address.port());
}

/// Proves that ranks tell the ports that a relay has for them, and use each other's; and that nonsense of a relay is named.
#[test]
fn with_a_relay_each_tells_the_port_that_it_has_there() {
    let desk = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let relay: Relay = format!("{},far", desk.local_addr().expect("bound")).parse().expect("a relay");
    assert!(relay.is_far);
    // A rank that meets rank 1, and what it asks the desk, which gives this answer.
    let met_by = |own: OwnedFd, answer: &'static str| {
        let desk = desk.try_clone().expect("a socket");
        let desk = std::thread::spawn(move || {
            let (mut stream, _) = desk.accept().expect("a rank");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a line");
            stream.write_all(answer.as_bytes()).expect("sent");
            line
        });
        let sockets = [None, Some(own)];
        let meeting = Meeting { relay: Some(relay), ..meeting(0, &sockets, Duration::from_secs(60)) };
        (meet(&meeting, &mut Patient), desk.join().expect("no panic"))
    };
    let [own, theirs] = pair();
    rustix::io::write(&theirs, &introduction().emit()).expect("sent");
    let (job, asked) = met_by(own, "0 4000\n");
    let job = job.expect("met");
    let port = job.socket.local_addr().expect("bound").port();
    assert_eq!(asked, format!("0 2 {port}\n"));
    let mut said = [0; LEN];
    assert_eq!(rustix::io::read(&theirs, &mut said), Ok(LEN));
    assert_eq!(Introduction::parse(&said, 1, 0).map(|said| said.port).ok(), Some(4000));
    let member = job.members[1].expect("a member");
    assert_eq!((member.address.port(), member.path), (4711, Path::UNKNOWN));
    for nonsense in ["", "0\n", "4000 0\n", "0 0\n", "0 4000 4001\n", "0 70000\n", "0 x\n"] {
        let [own, _theirs] = pair();
        let error = met_by(own, nonsense).0.expect_err("no answer");
        assert!(error.to_string().contains("the relay answers"), "{nonsense:?}: {error}");
    }
    for nonsense in ["", "far", "127.0.0.1", "127.0.0.1:x", "192.0.2.1:4000", "127.0.0.1:4000,near"] {
        assert_eq!(nonsense.parse::<Relay>(), Err(()), "{nonsense}");
    }
}
