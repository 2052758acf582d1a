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
