//! Datagrams through real sockets of the loopback interface.
#![cfg(not(loom))]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mpjdev_sys::datagram::offload::{Offload, charge};
use mpjdev_sys::datagram::options::{
    Buffers, buffers, memory, never_fragment, path_mtu, set_buffers, set_gro,
};
use mpjdev_sys::datagram::{
    Address, Arrived, BATCH_MAX, GsoBatch, LEN_MAX, Obstacle, Part, Run, SEGMENTS_MAX, receive, receive_from,
    receive_one, send,
};

/// Deadline of every step.
const PATIENCE: Duration = Duration::from_secs(20);

fn words(octets: usize) -> Vec<AtomicU64> {
    (0..octets.div_ceil(8)).map(|_| AtomicU64::new(0)).collect()
}

fn octets(words: &[AtomicU64], len: usize) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).take(len).collect()
}

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket")
}

fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("an address")
}

/// Two that are connected to each other.
fn pair() -> (UdpSocket, UdpSocket) {
    let (one, other) = (socket(), socket());
    one.connect(address(&other)).expect("connected");
    other.connect(address(&one)).expect("connected");
    (one, other)
}

/// Repeats a call until it meets no temporary obstacle.
#[track_caller]
fn patiently<T>(mut act: impl FnMut() -> Result<T, Obstacle>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match act() {
            Ok(done) => return done,
            Err(Obstacle::Later) if Instant::now() < deadline => std::thread::yield_now(),
            Err(obstacle) => panic!("{obstacle:?}"),
        }
    }
}

/// Waits until something is so.
#[track_caller]
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// Whether octets are lost because the room was too small.
fn is_truncated(arrived: &Arrived) -> bool {
    arrived.sent_len > arrived.len
}

/// Contents of the next slot.
#[track_caller]
fn next(socket: &UdpSocket, room_len: usize) -> (Arrived, Vec<u8>) {
    let memory = words(room_len);
    let mut arrived = [Arrived::default()];
    let room = [Part::new(&memory, 0, room_len)];
    patiently(|| receive(socket.as_fd(), &[&room], &mut arrived));
    (arrived[0], octets(&memory, arrived[0].len))
}

fn offload() -> Offload {
    let offload = Offload::probe(false).expect("a trial");
    if !(offload.cuts && offload.joins) {
        eprintln!("NOT TESTED IN FULL: this kernel has only a part of GSO and GRO: {offload:?}");
    }
    offload
}

#[test]
fn scattered_octets_are_sent_as_one_datagram_and_received_in_parts() {
    let (ours, theirs) = pair();
    let payload = words(16);
    payload[0].store(u64::from_ne_bytes(*b"abcdefgh"), Relaxed);
    payload[1].store(u64::from_ne_bytes(*b"ijklmnop"), Relaxed);
    let runs = [Run::from(&b"head:"[..]), Part::new(&payload, 3, 10).into(), Run::from(&b""[..])];
    assert_eq!(send(ours.as_fd(), &[GsoBatch::single(&runs)]).expect("sent"), 1);
    let (head, tail) = (words(8), words(16));
    let room = [Part::new(&head, 1, 5), Part::new(&tail, 2, 14)];
    let mut arrived = [Arrived::default()];
    patiently(|| receive(theirs.as_fd(), &[&room], &mut arrived));
    let expected = Arrived { len: 15, sent_len: 15, segment_len: 15, from: Some(address(&ours)) };
    assert_eq!(arrived[0], expected);
    assert_eq!(octets(&head, 8), b"\0head:\0\0");
    assert_eq!(octets(&tail, 16), b"\0\0defghijklm\0\0\0\0");
}

#[test]
fn one_call_sends_to_several_sockets_and_each_names_the_sender() {
    let (ours, one, other) = (socket(), socket(), socket());
    let (to_one, to_other) = (Address::from(address(&one)), Address::from(address(&other)));
    let texts: Vec<String> = (0..BATCH_MAX).map(|number| format!("datagram {number}")).collect();
    let runs: Vec<[Run<'_>; 1]> = texts.iter().map(|text| [Run::from(text.as_bytes())]).collect();
    let batches: Vec<GsoBatch<'_>> = (0..)
        .zip(&runs)
        .map(|(at, runs)| GsoBatch {
            to: Some(if at % 2 == 0 { &to_one } else { &to_other }),
            runs,
            segment_len: None,
        })
        .collect();
    let mut sent = 0;
    while sent < batches.len() {
        sent += patiently(|| send(ours.as_fd(), &batches[sent..]));
    }
    for (socket, first) in [(one, 0), (other, 1)] {
        let memory: Vec<_> = (0..BATCH_MAX).map(|_| words(24)).collect();
        let parts: Vec<[Part<'_>; 1]> = memory.iter().map(|memory| [Part::new(memory, 0, 24)]).collect();
        let rooms: Vec<&[Part<'_>]> = parts.iter().map(|parts| &parts[..]).collect();
        let mut arrived = [Arrived::default(); BATCH_MAX];
        let mut count = 0;
        while count < BATCH_MAX / 2 {
            count += patiently(|| receive(socket.as_fd(), &rooms[count..], &mut arrived[count..]));
        }
        assert_eq!(count, BATCH_MAX / 2);
        for (at, arrived) in arrived[..count].iter().enumerate() {
            assert_eq!(octets(&memory[at], arrived.len), texts[first + 2 * at].as_bytes());
            assert_eq!((arrived.from, is_truncated(arrived)), (Some(address(&ours)), false));
        }
    }
}

#[test]
fn ipv6_addresses_are_sent_to_and_received() {
    let any = || UdpSocket::bind((Ipv6Addr::LOCALHOST, 0));
    let (Ok(ours), Ok(theirs)) = (any(), any()) else {
        eprintln!("NOT TESTED: this machine has no ::1");
        return;
    };
    let to = Address::from(address(&theirs));
    let runs = [Run::from(&b"six"[..])];
    patiently(|| send(ours.as_fd(), &[GsoBatch { to: Some(&to), runs: &runs, segment_len: None }]));
    let (arrived, text) = next(&theirs, 64);
    assert_eq!((arrived.from, &text[..]), (Some(address(&ours)), &b"six"[..]));
    never_fragment(ours.as_fd()).expect("an option");
    ours.connect(address(&theirs)).expect("connected");
    assert!(path_mtu(ours.as_fd()).expect("a number") >= 1280);
    assert!(charge(true, 100).expect("a trial") > 100);
    assert_eq!(Offload::probe(true).expect("a trial"), offload());
}

#[test]
fn receive_from_an_empty_socket_is_later_and_an_empty_datagram_arrives() {
    let (ours, theirs) = pair();
    let memory = words(64);
    let room = Part::new(&memory, 0, 64);
    let mut arrived = [Arrived::default(); 2];
    assert!(matches!(receive_one(theirs.as_fd(), room), Err(Obstacle::Later)));
    assert!(matches!(receive(theirs.as_fd(), &[&[room]], &mut arrived), Err(Obstacle::Later)));
    assert!(matches!(receive(theirs.as_fd(), &[&[room], &[room]], &mut arrived), Err(Obstacle::Later)));
    send(ours.as_fd(), &[GsoBatch::single(&[])]).expect("sent");
    let (arrived, text) = next(&theirs, 64);
    assert_eq!((arrived.len, arrived.segment_len, text.len()), (0, 0, 0));
    assert!(arrived.datagrams().eq(std::iter::once(0..0)));
}

#[test]
fn datagram_longer_than_its_buffer_is_truncated_with_its_length() {
    let (ours, theirs) = pair();
    let memory = words(64);
    let runs = [Run::from(&b"0123456789"[..])];
    for _ in 0..4 {
        send(ours.as_fd(), &[GsoBatch::single(&runs)]).expect("sent");
    }
    let arrived = patiently(|| receive_from(theirs.as_fd(), Part::new(&memory, 0, 4)));
    assert_eq!((arrived.len, arrived.sent_len, arrived.from), (4, 10, Some(address(&ours))));
    assert_eq!(patiently(|| receive_one(theirs.as_fd(), Part::new(&memory, 8, 4))), 10);
    assert_eq!(octets(&memory, 16), b"0123\0\0\0\x000123\0\0\0\0");
    let (arrived, text) = next(&theirs, 4);
    assert_eq!((arrived.len, arrived.sent_len, &text[..]), (4, 10, &b"0123"[..]));
    assert!(is_truncated(&arrived));
    assert_eq!(arrived.datagrams().count(), 0, "none is there as a whole");
    let (arrived, _) = next(&theirs, 10);
    assert!(!is_truncated(&arrived));
}

/// Sends a GSO batch of `count` segments of 100 octets, the last of which has 7, each filled with its number.
fn send_gso_batch(socket: &UdpSocket, segments: usize) -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = (0..segments).map(|number| vec![number as u8; 100]).collect();
    if let Some(last) = texts.last_mut() {
        last.truncate(7);
    }
    let runs: Vec<Run<'_>> =
        texts.iter().flat_map(|text| [Run::from(&text[..3]), Run::from(&text[3..])]).collect();
    let batch = GsoBatch { to: None, runs: &runs, segment_len: NonZeroU16::new(100) };
    patiently(|| send(socket.as_fd(), &[batch]));
    texts
}

/// The first `count` datagrams that arrive, and the number of slots that they have taken.
fn collect(socket: &UdpSocket, count: usize) -> (Vec<Vec<u8>>, usize) {
    let (mut texts, mut rooms) = (Vec::new(), 0);
    while texts.len() < count {
        let (arrived, text) = next(socket, 1 << 16);
        assert!(!is_truncated(&arrived));
        texts.extend(arrived.datagrams().map(|datagram| text[datagram].to_vec()));
        rooms += 1;
    }
    (texts, rooms)
}

#[test]
fn gso_batch_arrives_as_its_datagrams() {
    let offload = offload();
    if !offload.cuts {
        return;
    }
    let (ours, theirs) = pair();
    let sent = send_gso_batch(&ours, SEGMENTS_MAX);
    let (arrived, rooms) = collect(&theirs, SEGMENTS_MAX);
    assert_eq!((arrived, rooms), (sent, SEGMENTS_MAX), "a socket that does not ask gets single ones");
    if !offload.joins {
        return;
    }
    set_gro(theirs.as_fd(), true).expect("an option");
    let sent = send_gso_batch(&ours, SEGMENTS_MAX);
    let (arrived, rooms) = collect(&theirs, SEGMENTS_MAX);
    assert_eq!(arrived, sent);
    assert!(rooms < SEGMENTS_MAX, "nothing was joined");
    set_gro(theirs.as_fd(), false).expect("an option");
    let sent = send_gso_batch(&ours, 3);
    assert_eq!(collect(&theirs, 3), (sent, 3));
}

#[test]
fn gso_batches_and_single_datagrams_are_sent_in_one_call() {
    if !offload().cuts {
        return;
    }
    let (ours, theirs) = pair();
    let (long, short) = ([5; 250], [6; 30]);
    let (long, short) = ([Run::from(&long[..])], [Run::from(&short[..])]);
    let batches = [
        GsoBatch { to: None, runs: &long, segment_len: NonZeroU16::new(100) },
        GsoBatch::single(&short),
        GsoBatch { to: None, runs: &short, segment_len: NonZeroU16::new(30) },
    ];
    assert_eq!(patiently(|| send(ours.as_fd(), &batches)), 3);
    let lens: Vec<usize> = collect(&theirs, 5).0.iter().map(Vec::len).collect();
    assert_eq!(lens, [100, 100, 50, 30, 30]);
}

#[test]
fn joined_datagrams_longer_than_their_buffer_keep_the_whole_ones() {
    let offload = offload();
    if !(offload.cuts && offload.joins) {
        return;
    }
    let (ours, theirs) = pair();
    set_gro(theirs.as_fd(), true).expect("an option");
    send_gso_batch(&ours, 5);
    let (arrived, _) = next(&theirs, 250);
    assert_eq!((arrived.len, arrived.sent_len, arrived.segment_len), (250, 407, 100));
    assert!(arrived.datagrams().eq([0..100, 100..200]));
}

#[test]
#[should_panic(expected = "65 datagrams in a GSO batch")]
fn gso_batch_of_too_many_datagrams_panics() {
    let (ours, _theirs) = pair();
    let octets = [0; SEGMENTS_MAX * 10 + 1];
    let runs = [Run::from(&octets[..])];
    let _ = send(ours.as_fd(), &[GsoBatch { to: None, runs: &runs, segment_len: NonZeroU16::new(10) }]);
}

#[test]
fn datagram_longer_than_the_path_mtu_is_refused_with_the_limit() {
    let (ours, theirs) = pair();
    never_fragment(ours.as_fd()).expect("an option");
    set_buffers(ours.as_fd(), 1 << 20, 1 << 20).expect("buffers");
    set_buffers(theirs.as_fd(), 1 << 20, 1 << 20).expect("buffers");
    let octets = vec![3; LEN_MAX + 1];
    let too_long = [Run::from(&octets[..])];
    assert!(matches!(send(ours.as_fd(), &[GsoBatch::single(&too_long)]), Err(Obstacle::TooLong)));
    let mtu = path_mtu(ours.as_fd()).expect("a number");
    let len = LEN_MAX.min(mtu - 28);
    let longest = [Run::from(&octets[..len])];
    patiently(|| send(ours.as_fd(), &[GsoBatch::single(&longest)]));
    assert_eq!(next(&theirs, 1 << 16).1, octets[..len]);
    if mtu - 28 < LEN_MAX {
        let too_long = [Run::from(&octets[..len + 1])];
        assert!(matches!(send(ours.as_fd(), &[GsoBatch::single(&too_long)]), Err(Obstacle::TooLong)));
    }
}

#[test]
fn closed_port_is_reported_once_and_the_socket_stays_usable() {
    // No other process takes ports of this address meanwhile.
    let theirs = UdpSocket::bind((Ipv4Addr::new(127, 4, 3, 2), 0)).expect("a socket");
    let (ours, port) = (socket(), address(&theirs));
    ours.connect(port).expect("connected");
    drop(theirs);
    let runs = [Run::from(&b"datagram"[..])];
    send(ours.as_fd(), &[GsoBatch::single(&runs)]).expect("sent");
    let memory = words(64);
    let room = Part::new(&memory, 0, 64);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match receive_one(ours.as_fd(), room) {
            Err(Obstacle::Refused) => break,
            Err(Obstacle::Later) => assert!(Instant::now() < deadline, "no answer"),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(receive_one(ours.as_fd(), room), Err(Obstacle::Later)), "it is reported once");
    // The answer to the next one may come to a send as well, which then sends nothing.
    send(ours.as_fd(), &[GsoBatch::single(&runs)]).expect("sent");
    wait("no answer", || matches!(send(ours.as_fd(), &[GsoBatch::single(&runs)]), Err(Obstacle::Refused)));
    let theirs = UdpSocket::bind(port).expect("the port is free again");
    patiently(|| match send(ours.as_fd(), &[GsoBatch::single(&runs)]) {
        Err(Obstacle::Refused) => Err(Obstacle::Later),
        other => other,
    });
    assert_eq!(next(&theirs, 64).1, b"datagram");
    // An unconnected socket ignores the answer to another socket.
    let (free, nobody) = (socket(), socket());
    let to = Address::from(address(&nobody));
    drop(nobody);
    for _ in 0..10 {
        let batch = GsoBatch { to: Some(&to), runs: &runs, segment_len: None };
        assert_eq!(patiently(|| send(free.as_fd(), &[batch])), 1);
        assert!(matches!(receive_one(free.as_fd(), room), Err(Obstacle::Later)));
    }
}

#[test]
fn octets_past_the_buffer_are_dropped_and_counted() {
    let (ours, theirs) = pair();
    let granted = buffers(theirs.as_fd()).expect("numbers");
    for len in [16, 512, 1472, 8192] {
        let before = memory(theirs.as_fd()).expect("numbers").drops;
        let charge = charge(false, len).expect("a trial");
        assert!(charge >= len, "{charge} for {len}");
        let sent = 2 * granted.receive_len / charge;
        let octets = vec![1; len];
        for _ in 0..sent {
            patiently(|| send(ours.as_fd(), &[GsoBatch::single(&[Run::from(&octets[..])])]));
        }
        let memory_now = || memory(theirs.as_fd()).expect("numbers");
        let drops_now = || memory_now().drops.wrapping_sub(before) as usize;
        wait("datagrams arrive", || memory_now().receive_len / charge + drops_now() == sent);
        let held = words(len);
        let mut arrived = 0;
        while let Ok(received) = receive_one(theirs.as_fd(), Part::new(&held, 0, len)) {
            assert_eq!(received, len);
            arrived += 1;
        }
        assert_eq!(arrived + drops_now(), sent, "{len} octets");
        let fitting = granted.receive_len / charge;
        assert!(
            (fitting..=fitting + 1).contains(&arrived),
            "{arrived} of {len} octets, {fitting} should fit"
        );
    }
}

#[test]
fn granted_buffer_sizes_are_returned() {
    let (ours, _theirs) = pair();
    let small = set_buffers(ours.as_fd(), 20_000, 30_000).expect("buffers");
    assert_eq!(small, Buffers { receive_len: 40_000, send_len: 60_000 });
    assert_eq!(buffers(ours.as_fd()).expect("numbers"), small);
    let much = set_buffers(ours.as_fd(), 1 << 30, 1 << 30).expect("buffers");
    let max = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).expect("a limit");
        text.trim().parse::<usize>().expect("a number")
    };
    let limits =
        Buffers { receive_len: 2 * max("rmem_max").min(1 << 30), send_len: 2 * max("wmem_max").min(1 << 30) };
    assert_eq!(much, limits);
    assert!(set_buffers(ours.as_fd(), usize::MAX, 1).is_err(), "that is no int");
    assert_eq!(buffers(ours.as_fd()).expect("numbers"), much, "and changes nothing");
}

#[test]
fn full_socket_refuses_until_later() {
    // What goes through the loopback interface never waits at its sender, so this is another kind of datagram
    // socket.
    let (ours, theirs) = UnixDatagram::pair().expect("sockets");
    let octets = [2; 1000];
    let runs = [Run::from(&octets[..])];
    let batches = [GsoBatch::single(&runs); BATCH_MAX];
    let mut taken = 0;
    let full = loop {
        match send(ours.as_fd(), &batches) {
            Ok(count) => taken += count,
            Err(obstacle) => break obstacle,
        }
        assert!(taken < 1 << 20, "it takes everything");
    };
    assert!(matches!(full, Obstacle::Later), "{full:?}");
    let memory = words(1000);
    let (room, mut arrived) = ([Part::new(&memory, 0, 1000)], [Arrived::default()]);
    for _ in 0..taken {
        assert_eq!(receive(theirs.as_fd(), &[&room], &mut arrived).expect("what was taken"), 1);
    }
    assert_eq!(arrived[0].from, None, "that is no address of the internet");
    assert!(matches!(receive(theirs.as_fd(), &[&room], &mut arrived), Err(Obstacle::Later)));
}
