use std::collections::VecDeque;
use std::net::Ipv4Addr;

use mpjdev_sim::{Impairment, Network};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);
/// The length for wanted Ethernet frames.
const ETHERNET: usize = 1472;

fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// An echo of connection 7 that sends to connection 8, and its first actions.
fn begun(len: Option<usize>, start: Instant) -> (Echo, Turn) {
    let mut echo = Echo::new(7);
    echo.begin(address(8), 8, lens(len));
    let turn = echo.poll(start, true);
    (echo, turn)
}

fn turn(probes: &[usize], words: &[u8]) -> Turn {
    Turn { probes: probes.to_vec(), words: words.to_vec() }
}

#[test]
fn lengths_descend_from_the_wanted_to_the_shortest() {
    assert_eq!(lens(None), [12]);
    assert_eq!(lens(Some(8968)), [8968, 1472, 1368, 1200, 12]);
    assert_eq!(lens(Some(ETHERNET)), [1472, 1368, 1200, 12]);
    assert_eq!(lens(Some(1300)), [1300, 1200, 12]);
    assert_eq!(lens(Some(1200)), [1200, 12]);
    assert_eq!(lens(Some(76)), [76, 12]);
    assert!(lens(Some(65504)).len() <= 10, "a digit names each");
}

/// The path to the peer has become narrower while the reply was in flight.
#[test]
fn report_counts_when_a_later_probe_of_its_length_was_refused() {
    let start = Instant::now();
    let (mut echo, first) = begun(Some(ETHERNET), start);
    assert_eq!(first, turn(&[ETHERNET], b""));
    let again = echo.next_time().expect("another round");
    assert_eq!(echo.poll(again, true), turn(&[ETHERNET, 1368, 1200, 12], b""));
    echo.refuse(ETHERNET);
    assert!(echo.handle_word(LONGEST, again));
    let (mut echo, _) = begun(Some(ETHERNET), start);
    echo.refuse(ETHERNET);
    assert!(!echo.handle_word(LONGEST, again), "no probe was sent");
}

/// Probing ends after a number of rounds and a time, whichever is later.
#[test]
fn probes_end_when_answered_or_after_time_and_count() {
    let start = Instant::now();
    let mut echo = Echo::new(7);
    assert_eq!(echo.poll(start, true), Turn::default(), "no target");
    assert!(echo.next_time().is_none());
    let (mut echo, first) = begun(None, start);
    assert_eq!(first, turn(&[12], b""));
    let mut now = start + ECHO_TIME;
    for _ in 1..ROUNDS_MIN {
        assert!(echo.poll(now, true) == turn(&[12], b"") && echo.is_unanswered());
        now = echo.next_time().expect("another one");
    }
    assert_eq!(echo.poll(now, true), turn(&[], b"e"));
    assert_eq!(echo.poll(now + ECHO_TIME, true), Turn::default());
    assert!(echo.next_time().is_none() && !echo.is_done());
    let (mut receiver, _) = begun(None, start);
    assert!(receiver.handle_word(LONGEST, start));
    receiver.handle_probe(address(8), probe::LEN);
    assert_eq!(receiver.poll(start, true), turn(&[], b"0e"));
    assert!(!receiver.is_done() && receiver.handle_word(ENDED, start) && receiver.is_done());
    assert_eq!(receiver.proved(), Some([12, 12]));
}

/// The report of the longest probe ends the echo at once.
#[test]
fn longest_probe_is_sent_first_and_its_report_ends_the_echo() {
    let start = Instant::now();
    let (mut echo, first) = begun(Some(ETHERNET), start);
    assert_eq!(first, turn(&[1472], b""));
    assert!(echo.handle_word(LONGEST, start));
    echo.handle_probe(address(8), ETHERNET);
    assert_eq!(echo.poll(start, false), turn(&[], b"0e"));
    assert!(echo.handle_word(ENDED, start) && echo.is_done());
    assert_eq!(echo.proved(), Some([1472, 1472]));
    // Late reports have no effect.
    echo.handle_probe(address(9), probe::LEN);
    assert!(echo.poll(start, true) == Turn::default() && echo.source() == Some(address(8)));
}

/// Neither a single loss nor a delayed rank shortens datagrams: a length is lost after several rounds.
#[test]
fn longer_probes_are_repeated_after_a_shorter_one_arrived() {
    let start = Instant::now();
    let (mut echo, _) = begun(Some(ETHERNET), start);
    assert_eq!(echo.poll(start + PAUSES[0], true), turn(&[1472, 1368, 1200, 12], b""));
    // The report of 1200 octets or more.
    assert!(echo.handle_word(b'2', start));
    let mut now = start + 100 * ECHO_TIME;
    for _ in 0..LONGER_ROUNDS {
        assert_eq!(echo.poll(now, true), turn(&[1472, 1368], b""));
        assert_eq!(echo.poll(now, true), Turn::default(), "a round is no busy loop");
        now = echo.next_time().expect("another one");
    }
    assert_eq!(echo.poll(now, true), turn(&[], b"e"));
    assert!(echo.next_time().is_none());
    assert!(
        echo.handle_word(DONE, now) && echo.handle_word(ENDED, now) && !echo.is_done(),
        "it has received nothing"
    );
    echo.handle_probe(address(8), 1368);
    assert_eq!(echo.poll(now, true), turn(&[], b"1d"));
    assert!(echo.is_done());
    assert_eq!(echo.proved(), Some([1200, 1368]));
}

/// The pauses start again at the minimum with the first report, and double.
#[test]
fn longer_probes_back_off_exponentially() {
    let start = Instant::now();
    let (mut echo, _) = begun(Some(1200), start);
    let reported_at = start + ECHO_TIME;
    let _ = echo.poll(reported_at, true);
    assert!(echo.handle_word(b'1', reported_at));
    let mut left_at = Vec::new();
    let ended_at = loop {
        let now = echo.next_time().expect("another one");
        let turn = echo.poll(now, true);
        if !turn.words.is_empty() {
            break now;
        }
        assert_eq!(turn.probes, [1200]);
        left_at.push((now - reported_at).as_millis());
    };
    assert_eq!(left_at, [20, 40, 80, 160, 320, 640, 1280, 1920]);
    assert_eq!((ended_at - reported_at).as_millis(), 2560, "the last probe has time to be answered");
}

/// A length that the system refuses is not waited for.
#[test]
fn refused_lengths_are_not_repeated() {
    let start = Instant::now();
    let (mut echo, first) = begun(Some(8968), start);
    assert_eq!(first.probes, [8968]);
    echo.refuse(8968);
    assert!(!echo.handle_word(b'0', start), "it has not left");
    let now = start + PAUSES[0];
    assert_eq!(echo.poll(now, true).probes, [1472, 1368, 1200, 12]);
    echo.refuse(1000);
    assert!(echo.handle_word(b'1', now));
    assert_eq!(echo.poll(now, true), turn(&[], b"e"));
}

#[test]
fn impossible_words_are_refused() {
    let now = Instant::now();
    let mut silent = Echo::new(7);
    assert!(!silent.handle_word(LONGEST, now), "no probe has left");
    let (mut echo, _) = begun(Some(ETHERNET), now);
    for word in [b'1', b'2', b'3', b'4', b'9', DONE, b'h', b'x', 0, 255] {
        assert!(!echo.handle_word(word, now), "{word}: such a probe has not left");
    }
    assert_eq!(echo.poll(now + PAUSES[0], true).probes.len(), 4);
    assert!(!echo.handle_word(b'4', now) && !echo.handle_word(DONE, now));
    assert!(echo.handle_word(b'2', now) && !echo.handle_word(b'2', now) && !echo.handle_word(b'3', now));
    assert!(!echo.handle_word(DONE, now), "probes leave still");
    assert!(echo.handle_word(b'1', now) && echo.handle_word(b'0', now) && !echo.handle_word(b'0', now));
    assert_eq!(echo.poll(now, true).words, b"e");
    assert!(!echo.handle_word(DONE, now), "the longest one has arrived");
    assert!(echo.handle_word(ENDED, now) && !echo.handle_word(ENDED, now));
}

/// A delayed rank reads the last word before the probes in its socket.
#[test]
fn probes_in_the_socket_are_reported_after_the_last_word() {
    let now = Instant::now();
    let (mut echo, _) = begun(Some(ETHERNET), now);
    echo.handle_probe(address(8), probe::LEN);
    assert_eq!(echo.poll(now, true).words, b"3");
    assert!(echo.handle_word(ENDED, now));
    assert_eq!(echo.poll(now, false).words, b"", "there may be more");
    echo.handle_probe(address(8), ETHERNET);
    assert_eq!(echo.poll(now, true).words, b"0");
    assert_eq!(echo.poll(now, true).words, b"");
}

/// "r" is the last word of a peer, after its reports.
#[test]
fn ready_is_accepted_once_and_only_after_all_reports() {
    let now = Instant::now();
    let (mut echo, _) = begun(Some(ETHERNET), now);
    assert!(!echo.handle_word(READY, now) && echo.handle_word(ENDED, now) && !echo.handle_word(READY, now));
    assert!(echo.handle_word(LONGEST, now) && !echo.is_peer_ready());
    assert!(echo.handle_word(READY, now) && echo.is_peer_ready() && !echo.is_done());
    for word in [READY, ENDED, DONE, LONGEST] {
        assert!(!echo.handle_word(word, now), "{word}");
    }
}

/// Waits until a datagram is in the socket: loopback need not deliver it before the send returns.
fn wait_for_datagram(socket: &UdpSocket) {
    let most = Timespec { tv_sec: 60, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&most));
    assert_eq!(ready, Ok(1), "a datagram arrives");
}

/// The datagrams beyond the limit may contain the awaited probe.
#[test]
fn drain_stops_at_its_limit() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let to = socket.local_addr().expect("bound");
    socket.set_nonblocking(true).expect("a socket");
    let mut room = [0; probe::LEN];
    assert!(drain(&socket, &mut room, |_, _| unreachable!("nothing has arrived")));
    let mut taken = 0;
    // Each handled datagram sends another one.
    socket.send_to(&[1], to).expect("room");
    wait_for_datagram(&socket);
    let is_all = drain(&socket, &mut room, |from, _| {
        taken += 1;
        socket.send_to(&[1], from).expect("room");
        wait_for_datagram(&socket);
    });
    assert!(!is_all && taken == EARLY_MAX);
}

/// The last probe may arrive after the word that no more are sent.
#[test]
fn missing_probes_are_an_error_after_the_grace() {
    let start = Instant::now();
    let mut echo = Echo::new(7);
    assert!(!echo.has_received_nothing(start + 100 * ECHO_TIME) && echo.handle_word(ENDED, start));
    assert!(!echo.has_received_nothing(start + GRACE / 2) && echo.has_received_nothing(start + GRACE));
    assert_eq!(echo.next_time(), Some(start + GRACE));
    echo.handle_probe(address(8), probe::LEN);
    assert!(!echo.has_received_nothing(start + 100 * ECHO_TIME));
}

/// Both ranks of a pair, the network between their sockets, and their connection.
struct World {
    start: Instant,
    now: u64,
    echoes: [Echo; 2],
    /// From the echo with this index to the other one.
    networks: [Network<Vec<u8>>; 2],
    /// Words in flight, and their times of arrival.
    words: [VecDeque<(u64, u8)>; 2],
    /// The delay of a word.
    delay: u64,
    /// The time until which each rank is inactive.
    asleep_until: [u64; 2],
    words_said: usize,
    probes_sent: usize,
}

impl World {
    /// Both want datagrams of `len` octets. Those longer than `longest` are dropped, in each direction.
    fn new(seed: u64, impairment: &str, len: usize, longest: [usize; 2]) -> World {
        let impairment: Impairment = impairment.parse().expect("an impairment");
        let delay = impairment.delay_ns;
        let echo = |ours: u64, theirs: u64| {
            let mut echo = Echo::new(ours);
            echo.begin(address(theirs as u16), theirs, lens(Some(len)));
            echo
        };
        let network = |k: u64, longest: usize| {
            let mut network = Network::new(impairment, 2 * seed + k);
            network.set_filter(move |_, octets: &Vec<u8>| octets.len() > longest);
            network
        };
        World {
            start: Instant::now(),
            now: 0,
            echoes: [echo(1, 2), echo(2, 1)],
            networks: [network(0, longest[0]), network(1, longest[1])],
            words: [VecDeque::new(), VecDeque::new()],
            delay,
            asleep_until: [0; 2],
            words_said: 0,
            probes_sent: 0,
        }
    }

    fn step(&mut self) {
        let now = self.start + Duration::from_nanos(self.now);
        for k in [0, 1] {
            if self.asleep_until[k] > self.now {
                continue;
            }
            let echo = &mut self.echoes[k];
            while let Some(octets) = self.networks[1 - k].poll_deliver(self.now) {
                assert_eq!(probe::connection_of(&octets), Some(echo.ours()));
                echo.handle_probe(address(2 - k as u16), octets.len());
            }
            assert!(!echo.has_received_nothing(now), "a probe has arrived");
            let turn = echo.poll(now, true);
            for len in turn.probes {
                let (_, theirs) = echo.to().expect("begun");
                self.networks[k].send(self.now, len, probe::emit(theirs, len));
                self.probes_sent += 1;
            }
            for word in turn.words {
                self.words[k].push_back((self.now + self.delay, word));
                self.words_said += 1;
            }
            while self.words[1 - k].front().is_some_and(|(at, _)| *at <= self.now) {
                let (_, word) = self.words[1 - k].pop_front().expect("one");
                assert!(!echo.is_done(), "no word follows the end");
                assert!(echo.handle_word(word, now), "{word}");
            }
        }
    }

    /// The proved lengths, and the time in nanoseconds.
    fn run(mut self) -> ([usize; 2], u64) {
        while !self.echoes.iter().all(Echo::is_done) {
            self.step();
            self.now += MILLISECOND.as_nanos() as u64;
            assert!(self.now < 60_000_000_000, "{:?}", self.echoes);
        }
        assert!(self.words.iter().all(VecDeque::is_empty), "words are left on the connection");
        // A reply has one octet, and there are fewer replies than probes.
        assert!(self.words_said <= self.probes_sent + 4, "{} {}", self.words_said, self.probes_sent);
        let [one, other] = self.echoes.each_ref().map(|echo| echo.proved().expect("done"));
        assert_eq!([one[0], one[1]], [other[1], other[0]], "both know the same");
        (one, self.now)
    }
}

/// With loss, duplicates and reordering the echo ends, and with the longest length.
#[test]
fn random_loss_does_not_shorten_datagrams() {
    for impairment in
        ["", "delay=100ms", "delay=1ms,loss=20%,dup=20%,reorder=3", "delay=40ms,jitter=80ms,loss=10%"]
    {
        for seed in 0..200 {
            let (proved, _) = World::new(seed, impairment, ETHERNET, [usize::MAX; 2]).run();
            assert_eq!(proved, [ETHERNET; 2], "{impairment}, {seed}");
        }
    }
}

/// A queue that is limited in octets, and full of other traffic for 1.5 s, drops long datagrams and passes
/// short ones.
#[test]
fn temporarily_full_queue_does_not_shorten_datagrams() {
    const FULL_UNTIL: u64 = 1_500_000_000;
    for delay in ["delay=1ms", "delay=100ms"] {
        let mut world = World::new(0, delay, ETHERNET, [usize::MAX; 2]);
        world.networks.iter_mut().for_each(|n| n.set_filter(|_, octets: &Vec<u8>| octets.len() > probe::LEN));
        while world.now < FULL_UNTIL {
            world.step();
            world.now += MILLISECOND.as_nanos() as u64;
        }
        world.networks.iter_mut().for_each(|network| network.set_filter(|_, _| false));
        assert_eq!(world.run().0, [ETHERNET; 2], "{delay}");
    }
}

/// The echo finds the longest length of each direction within seconds, also with loss.
#[test]
fn probes_prove_the_longest_datagram_of_each_path() {
    let cases = [
        (1472, [1372, 1372], [1368, 1368]),
        (1472, [1472, 1279], [1472, 1200]),
        (8968, [1472, 9000], [1472, 8968]),
        (1472, [1199, 1472], [12, 1472]),
    ];
    for impairment in ["delay=1ms", "delay=100ms", "delay=1ms,loss=10%,dup=10%,reorder=3"] {
        for seed in 0..50 {
            for (len, longest, expected) in cases {
                let (proved, time) = World::new(seed, impairment, len, longest).run();
                assert_eq!(proved, expected, "{impairment}, {seed}");
                let limit = ECHO_TIME.as_nanos() as u64;
                assert!(time < limit, "{impairment}, {seed}: {time} ns");
            }
        }
    }
}

/// A rank that is suspended during the echo finds the length of the path.
#[test]
fn delayed_ranks_do_not_shorten_datagrams() {
    for at in 0..60 {
        for k in [0, 1] {
            let mut world = World::new(at, "delay=5ms,loss=30%", ETHERNET, [usize::MAX; 2]);
            for _ in 0..at {
                world.step();
                world.now += MILLISECOND.as_nanos() as u64;
            }
            world.asleep_until[k] = world.now + 10_000_000_000;
            assert_eq!(world.run().0, [ETHERNET; 2], "{at} ms, {k}");
        }
    }
}

/// A path without loss costs the round trip, and nothing more.
#[test]
fn echo_without_loss_takes_one_round() {
    let (_, time) = World::new(0, "delay=100ms", ETHERNET, [usize::MAX; 2]).run();
    // The round trip: a probe, the word about it, and the word that no more are sent.
    assert!((300_000_000..310_000_000).contains(&time), "{time} ns");
}
