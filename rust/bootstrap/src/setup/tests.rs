use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};

use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_transport::wait::Uninterruptible;

use super::*;

/// Both ends of a connection.
fn pair() -> [OwnedFd; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    let (other, _) = listener.accept().expect("it has connected");
    [one, other].map(|stream| {
        stream.set_nonblocking(true).expect("a flag");
        stream.into()
    })
}

fn setup_of(rank: u32, sockets: &[Option<OwnedFd>], after: Duration) -> Setup<'_> {
    Setup {
        rank,
        sockets,
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        ports: &(0..=0),
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

/// A deadline that no test reaches.
const LONG: Duration = Duration::from_secs(60);

/// The result of rank 0 with a rank 1 that sends these octets and no more.
fn met(said: &[u8]) -> Result<Job, SetupError> {
    met_within(said, LONG)
}

fn met_within(said: &[u8], time: Duration) -> Result<Job, SetupError> {
    let [own, theirs] = pair();
    assert_eq!(rustix::io::write(&theirs, said), Ok(said.len()));
    wait_for_octets(&own, said.len());
    run(&setup_of(0, &[None, Some(own)], time), &mut Uninterruptible)
}

/// Waits until this many octets can be read: loopback need not deliver them before the write returns.
fn wait_for_octets(socket: &OwnedFd, len: usize) {
    let mut octets = vec![0; len];
    let deadline = Instant::now() + LONG;
    while recv(socket, &mut octets, RecvFlags::PEEK).map_or(0, |(count, _)| count) < len {
        assert!(Instant::now() < deadline, "{len} octets have not arrived");
        std::thread::yield_now();
    }
}

/// The behaviour of rank 1: it sends datagrams from this socket, and these words on the connection.
#[derive(Clone, Copy)]
struct Peer<'a> {
    socket: &'a UdpSocket,
    datagrams: &'a [&'a [u8]],
    /// Octets of its probe, if it sends one.
    probe_len: Option<usize>,
    words: &'a [u8],
}

impl Peer<'_> {
    /// [`met`] with a peer that sends this Hello and behaves so. Its connection stays open until the end.
    fn met(&self, said: Hello, after: Duration) -> Result<Job, SetupError> {
        let [own, theirs] = pair();
        rustix::io::write(&theirs, &said.emit()).expect("sent");
        std::thread::scope(|scope| {
            let theirs = &theirs;
            scope.spawn(move || {
                let hello = hello_on(theirs);
                self.play(theirs, hello, hello.port);
            });
            run(&setup_of(0, &[None, Some(own)], after), &mut Uninterruptible)
        })
    }

    /// Answers the Hello of rank 0 on this connection, by datagrams to this port.
    fn play(&self, theirs: &OwnedFd, hello: Hello, port: u16) {
        let to = (Ipv4Addr::LOCALHOST, port);
        if let Some(len) = self.probe_len {
            self.socket.send_to(&probe::emit(hello.connection, len), to).expect("sent");
        }
        for datagram in self.datagrams {
            self.socket.send_to(datagram, to).expect("sent");
        }
        rustix::io::write(theirs, self.words).expect("said");
    }
}

/// The Hello of a rank on this connection.
fn hello_on(theirs: &OwnedFd) -> Hello {
    let mut octets = [0; LEN];
    poll(&mut [PollFd::new(theirs, PollFlags::IN)], None).expect("a Hello");
    assert_eq!(rustix::io::read(theirs, &mut octets), Ok(LEN));
    Hello::parse(&octets, 0).expect("sound")
}

/// A socket of rank 1, and its Hello.
fn peer_socket() -> (UdpSocket, Hello) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = socket.local_addr().expect("bound").port();
    (socket, Hello { port, ..hello() })
}

#[test]
fn answered_probes_make_a_job_and_keep_early_packets() {
    let (socket, said) = peer_socket();
    let peer = Peer {
        socket: &socket,
        datagrams: &[b"one", b"another"],
        probe_len: Some(probe::LEN),
        words: b"0er",
    };
    let job = peer.met(said, LONG).expect("met");
    let from = socket.local_addr().expect("bound");
    assert_eq!(job.members[1].expect("a member").address, from);
    // The other datagrams stay in the socket.
    let kept: Vec<&[u8]> = job.early.iter().map(|(_, octets)| &octets[..]).collect();
    assert!([&b"one"[..], b"another"].starts_with(&kept), "{kept:?}");
    assert!(job.early.iter().all(|(source, _)| *source == from));
}

#[test]
fn datagrams_that_do_not_arrive_are_named_with_both_addresses() {
    let (socket, said) = peer_socket();
    let from = socket.local_addr().expect("bound");
    let peer = Peer { socket: &socket, datagrams: &[], probe_len: None, words: b"0e" };
    // No datagram of the peer arrives, and it ends its probes.
    let error = peer.met(said, LONG).expect_err("no datagram has arrived");
    let SetupError::NoDatagrams { peer: 1, from: named, to, .. } = error else { panic!("{error}") };
    assert_eq!((named, to.ip()), (from, IpAddr::from(Ipv4Addr::LOCALHOST)));
    let text = error.to_string();
    assert!(text.contains("firewall") && text.contains(&from.to_string()), "{text}");
    assert!(text.contains(&to.to_string()), "{text}");
    // The peer reports no datagram of this rank.
    let unheard = Peer { probe_len: Some(probe::LEN), words: b"e", ..peer };
    let error = unheard.met(said, Duration::from_secs(2)).expect_err("no report");
    assert!(matches!(error, SetupError::NoDatagrams { peer: 1, to, .. } if to == from), "{error}");
    for words in [&b"00"[..], b"x", b"h", b"d", b"1", b"ee", b"r", b"0r"] {
        let error = Peer { probe_len: Some(probe::LEN), words, ..peer }
            .met(said, LONG)
            .expect_err("an undefined word");
        assert!(matches!(error, SetupError::Word { peer: 1, .. }), "{error}");
    }
}

/// The peer treats this rank as one of another machine. Its longer probes are lost.
#[test]
fn datagram_length_is_the_longest_that_arrives_in_both_directions() {
    let (socket, said) = peer_socket();
    let from = socket.local_addr().expect("bound");
    let said = Hello { wants_proof: true, ..said };
    let met =
        |len| Peer { socket: &socket, datagrams: &[], probe_len: Some(len), words: b"0er" }.met(said, LONG);
    for (len, expected) in [(1472, 1472), (1400, 1368), (1368, 1368), (1200, 1200)] {
        let job = met(len).expect("met");
        assert_eq!(job.members[1].expect("a member").datagram_len_max, expected, "{len}");
    }
    let error = met(1199).expect_err("any path takes more");
    assert!(
        matches!(error, SetupError::Length { peer: 1, from: named, len: 1200, .. } if named == from),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("--datagram-len") && text.contains(&from.to_string()), "{text}");
    // The Hello limits the length.
    let said = Hello { datagram_len_max: 800, ..said };
    let peer = |len| Peer { socket: &socket, datagrams: &[], probe_len: Some(len), words: b"0er" };
    assert_eq!(peer(800).met(said, LONG).expect("met").members[1].expect("a member").datagram_len_max, 800);
    let error = peer(probe::LEN).met(said, LONG).expect_err("shorter than the Hello's limit");
    assert!(matches!(error, SetupError::Length { peer: 1, len: 800, .. }), "{error}");
}

/// Datagrams that have arrived in both directions are not reported as lost at the deadline.
#[test]
fn unfinished_echo_is_reported_as_unfinished_setup() {
    let [own, _theirs] = pair();
    let sockets = [None, Some(own)];
    let connection = sockets[1].as_ref().expect("a connection");
    let own = OwnParameters { port: 4711, window: 9, begun: Instant::now() };
    let mut other = send_hello(&setup_of(0, &sockets, LONG), own, 1, connection).expect("sent");
    assert!(matches!(other.deadline_error(4711), SetupError::NoHello { peer: 1, .. }));
    let (socket, said) = peer_socket();
    let to = socket.local_addr().expect("bound");
    (other.octets, other.len) = (said.emit(), LEN);
    let now = Instant::now();
    other.advance(&socket, 4711, now, true).expect("room");
    assert!(
        matches!(other.deadline_error(4711), SetupError::NoDatagrams { peer: 1, to: named, .. } if named == to)
    );
    assert!(other.echo.handle_word(echo::LONGEST, now));
    assert!(
        matches!(other.deadline_error(4711), SetupError::NoDatagrams { peer: 1, from, .. } if from == to)
    );
    other.echo.handle_probe(to, probe::LEN);
    assert!(matches!(other.deadline_error(4711), SetupError::Unfinished { peer: 1, .. }));
    assert_eq!(other.deadline_error(4711).peer(), Some(1));
}

/// A rank that runs only after the deadline reads the words that had arrived before it.
#[test]
fn words_that_arrived_before_the_deadline_are_read_after_it() {
    let (socket, said) = peer_socket();
    let from = socket.local_addr().expect("bound");
    let words = [&said.emit()[..], b"0"].concat();
    let error = met_within(&words, Duration::ZERO).expect_err("no probe arrives");
    // This rank's datagrams do arrive.
    assert!(
        matches!(error, SetupError::NoDatagrams { peer: 1, from: named, .. } if named == from),
        "{error}"
    );
}

/// Rank 2 has completed the setup with rank 0 and not with rank 1. Rank 0 must not send packets yet: rank 1
/// would not ack them, and would count as failed.
#[test]
fn ranks_leave_the_setup_when_all_have_completed_it() {
    let [a, b] = pair();
    let [c, d] = pair();
    let [e, f] = pair();
    let sockets = [[None, Some(a), Some(c)], [Some(b), None, Some(e)]];
    let (socket, said) = peer_socket();
    for theirs in [&d, &f] {
        assert_eq!(rustix::io::write(theirs, &said.emit()), Ok(LEN));
    }
    let peer = Peer { socket: &socket, datagrams: &[], probe_len: Some(probe::LEN), words: b"0er" };
    std::thread::scope(|scope| {
        let [zero, one] = [0, 1].map(|rank: u32| {
            let sockets = &sockets[rank as usize];
            scope.spawn(move || run(&setup_of(rank, sockets, LONG), &mut Uninterruptible))
        });
        let [by_zero, by_one] = [&d, &f].map(hello_on);
        peer.play(&d, by_zero, by_zero.port);
        let mut words = [0; 3];
        wait_for_octets(&d, words.len());
        assert_eq!(recv(&d, &mut words, RecvFlags::empty()).expect("words").0, words.len());
        assert_eq!(words[2], echo::READY, "{words:?}: rank 0 has completed its part");
        assert!(!zero.is_finished(), "rank 1 has not");
        peer.play(&f, by_one, by_one.port);
        for rank in [zero, one] {
            rank.join().expect("no panic").expect("the setup is complete");
        }
    });
}

#[test]
fn errors_at_the_deadline_name_the_time_and_the_option() {
    let said = hello().emit();
    let error = met_within(&said[..LEN - 1], Duration::from_millis(200)).expect_err("not all");
    let SetupError::NoHello { after, .. } = error else { panic!("{error}") };
    assert!(after >= Duration::from_millis(200), "{after:?}");
    let seconds = format!("within {:.1} s", after.as_secs_f64());
    let text = error.to_string();
    assert!(text.contains(&seconds) && text.contains("--connect-timeout"), "{text}");
    let error = met_within(&said, Duration::from_millis(200)).expect_err("no datagram");
    let SetupError::NoDatagrams { after, is_deadline: true, .. } = error else { panic!("{error}") };
    let seconds = format!("within {:.1} s", after.as_secs_f64());
    let text = error.to_string();
    assert!(text.contains(&seconds) && text.contains("--connect-timeout"), "{text}");
    let (peer, address) = (1, Ipv4Addr::LOCALHOST.into());
    let text = SetupError::Unfinished { peer, address, after: Duration::from_secs(30) }.to_string();
    assert!(text.contains("within 30.0 s") && text.contains("--connect-timeout"), "{text}");
}

fn hello() -> Hello {
    Hello {
        port: 4711,
        connection: 0x1234_5678_abcd_ef01,
        first: FullSequence::of(0x7654_3210),
        datagram_len_max: 1472,
        window: 9,
        max_ack_delay: 25_000_000,
        wants_checksums: true,
        wants_proof: false,
    }
}

#[test]
fn hello_has_the_recorded_octets() {
    let octets = [
        b"mpjU".as_slice(),
        &[0, 0, 0, 7],
        &[0, 0, 0x12, 0x67],
        &[0x12, 0x34, 0x56, 0x78],
        &[0xab, 0xcd, 0xef, 0x01],
        &[0x76, 0x54, 0x32, 0x10],
        &[0, 0, 5, 0xc0],
        &[0, 0, 0, 9],
        &[0, 0, 0x61, 0xa8],
        &[0, 0, 0, 1],
        &[0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(hello().emit()[..], octets);
    let parsed = Hello::parse(&hello().emit(), 1).expect("sound");
    assert_eq!(parsed, hello());
}

#[test]
fn all_ranks_have_the_values_that_their_peers_sent() {
    let [a, b] = pair();
    let [c, d] = pair();
    let [e, f] = pair();
    let sockets = [[None, Some(a), Some(c)], [Some(b), None, Some(e)], [Some(d), Some(f), None]];
    let after = Duration::from_secs(60);
    let jobs: Vec<Job> = std::thread::scope(|scope| {
        let begun = (0..).zip(&sockets).map(|(rank, sockets)| {
            scope.spawn(move || run(&setup_of(rank, sockets, after), &mut Uninterruptible).expect("met"))
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
            assert_eq!(to.send_window, other.receive_window);
            assert_eq!(to.datagram_len_max, 8968 - 8 * rank.max(peer), "the shorter limit");
            assert_eq!(to.path, LOOPBACK);
            assert_eq!(to.is_checked, rank == 1 || peer == 1, "if one rank wants them");
        }
    }
    let numbers: std::collections::HashSet<u64> =
        jobs.iter().flat_map(|job| job.members.iter().flatten().map(|member| member.ours)).collect();
    assert_eq!(numbers.len(), 6, "ids are unique");
}

#[test]
fn invalid_hello_is_refused_with_the_field() {
    let value = |said: Hello| match met(&said.emit()) {
        Err(SetupError::Value { peer: 1, field, value }) => (field, value),
        other => panic!("{said:?}: {other:?}"),
    };
    let sound = hello();
    let unheard = met_within(&sound.emit(), Duration::from_secs(2));
    assert!(matches!(unheard, Err(SetupError::NoDatagrams { peer: 1, .. })));
    assert_eq!(value(Hello { port: 0, ..sound }), ("the UDP port", 0));
    assert_eq!(value(Hello { datagram_len_max: 3, ..sound }), ("the maximum length of datagrams", 3));
    assert_eq!(value(Hello { window: 0, ..sound }), ("the window", 0));
    assert_eq!(value(Hello { window: 8193, ..sound }), ("the window", 8193));
    let delay = ("the maximum delay of an acknowledgment in microseconds", 1_000_001);
    assert_eq!(value(Hello { max_ack_delay: 1_000_001_000, ..sound }), delay);
    let mut octets = sound.emit();
    octets[39] = 2;
    let error = met(&octets).expect_err("neither 0 nor 1");
    let SetupError::Value { field, value, .. } = error else { panic!("{error}") };
    assert_eq!((field, value), ("the flag for checksums", 2));
    octets[39..].copy_from_slice(&[1, 0, 0, 0, 2]);
    let field = "the flag for a proof of lengths";
    assert!(matches!(met(&octets), Err(SetupError::Value { field: named, value: 2, .. }) if named == field));
    let mut octets = sound.emit();
    octets[20] = 0x80;
    assert!(matches!(met(&octets), Err(SetupError::Value { field: "the first sequence number", .. })));
    for at in 0..8 {
        let mut octets = sound.emit();
        octets[at] ^= 1;
        assert!(matches!(met(&octets), Err(SetupError::Version { peer: 1, .. })), "octet {at}");
    }
}

#[test]
fn short_hello_and_closed_peer_are_reported() {
    let said = hello().emit();
    let error = met_within(&said[..LEN - 1], Duration::from_millis(20)).expect_err("not all");
    assert!(matches!(error, SetupError::NoHello { peer: 1, .. }), "{error}");
    assert_eq!(error.peer(), Some(1));
    let [own, theirs] = pair();
    drop(theirs);
    let error = run(&setup_of(0, &[None, Some(own)], Duration::from_secs(60)), &mut Uninterruptible);
    assert!(matches!(error, Err(SetupError::Closed { peer: 1, .. })), "{error:?}");
    let [own, _theirs] = pair();
    let error = run(&setup_of(0, &[None, Some(own)], Duration::from_secs(60)), &mut || false);
    assert!(matches!(error, Err(SetupError::Interrupted)), "{error:?}");
}

/// Segment lengths with and without timestamps, on Ethernet, behind a router that lowers them, and below the
/// minimum of any path.
#[test]
fn datagrams_are_no_longer_than_the_segments_of_the_connection() {
    for (segment_len, expected) in [(1480, 1472), (1320, 1312), (1260, 1248), (1208, 1200), (556, 1200)] {
        assert_eq!(len_beside(segment_len), expected, "{segment_len}");
    }
    assert_eq!(len_beside(usize::MAX), usize::MAX / 8 * 8 - 8);
}

/// A relay that has one port, and reports the port of the rank that asks.
#[derive(Debug)]
struct OnePort {
    port: u16,
    asked: Sender<(u32, usize, u16)>,
}

impl PortRelay for OnePort {
    fn ports(&self, rank: u32, ranks: usize, port: u16, _: Instant) -> io::Result<Vec<u16>> {
        self.asked.send((rank, ranks, port)).map_err(io::Error::other)?;
        Ok(vec![0, self.port])
    }

    fn is_inter_node(&self) -> bool {
        true
    }
}

#[test]
fn hello_has_the_port_at_the_relay() {
    let (asked, requests) = channel();
    let relay = OnePort { port: 4000, asked };
    let [own, theirs] = pair();
    let (socket, said) = peer_socket();
    rustix::io::write(&theirs, &said.emit()).expect("sent");
    let peer = Peer { socket: &socket, datagrams: &[], probe_len: Some(1472), words: b"0er" };
    let (job, (hello, request)) = std::thread::scope(|scope| {
        let (peer, theirs) = (&peer, &theirs);
        let peer = scope.spawn(move || {
            let (hello, request) = (hello_on(theirs), requests.recv().expect("a request to the relay"));
            peer.play(theirs, hello, request.2);
            (hello, request)
        });
        let sockets = [None, Some(own)];
        let setup = Setup { relay: Some(&relay), ..setup_of(0, &sockets, LONG) };
        (run(&setup, &mut Uninterruptible), peer.join().expect("no panic"))
    });
    let job = job.expect("the setup is complete");
    let port = job.socket.local_addr().expect("bound").port();
    assert_eq!((request, hello.port), ((0, 2, port), 4000));
    let member = job.members[1].expect("a member");
    assert_eq!((member.address.port(), member.path), (said.port, Path::UNKNOWN));
}

#[test]
fn failed_request_to_the_relay_fails_the_setup() {
    let relay = OnePort { port: 4000, asked: channel().0 };
    let [own, _theirs] = pair();
    let sockets = [None, Some(own)];
    let setup = Setup { relay: Some(&relay), ..setup_of(0, &sockets, LONG) };
    let error = run(&setup, &mut Uninterruptible).expect_err("the relay has failed");
    assert!(error.to_string().starts_with("the relay of datagrams: "), "{error}");
}
