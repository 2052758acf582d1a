//! Several connections that share a link or a socket (5.7; 5.12, 8): goodput, fairness, and no overflow
//! except in the link's queue.

use std::collections::VecDeque;

use mpjdev_proto::datagram::layout::FIXED_LEN;
use mpjdev_proto::datagram::packet::Packet;
use mpjdev_proto::datagram::reliable::congestion::Algorithm;
use mpjdev_proto::datagram::reliable::connection::{Connection, Disposition};
use mpjdev_proto::datagram::reliable::message_tx::Send;
use mpjdev_proto::datagram::reliable::rtt::Timing;
use mpjdev_proto::datagram::reliable::settings::{Path, Settings};
use mpjdev_proto::datagram::reliable::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use mpjdev_proto::datagram::reliable::windows::{capacity, charge, share};
use mpjdev_sim::{Network, Random};

/// Octets of a datagram.
const DATAGRAM_LEN: usize = 1472;
/// Octets of its IP and UDP headers.
const OVERHEAD: usize = 28;
/// Octets of a message that fills one.
const MESSAGE_LEN: u64 = (DATAGRAM_LEN - FIXED_LEN) as u64;

/// Senders that always have messages, receivers behind one link, and the link back.
struct Flows {
    now: Nanos,
    senders: Vec<Connection>,
    receivers: Vec<Connection>,
    there: Network<(usize, Packet)>,
    back: Network<(usize, Packet)>,
    /// Packets in the common socket of all receivers.
    socket: VecDeque<(usize, Packet)>,
    socket_capacity: usize,
    overflows: u64,
    asleep_until: Nanos,
    tokens: Vec<u64>,
    /// Octets of received messages.
    octets: Vec<u64>,
}

impl Flows {
    fn new(paths: &[Path], settings: Settings, impairment: &str, seed: u64) -> Self {
        let connection = |path: &Path| {
            let settings = Settings { path: *path, peer_max_ack_delay: path.max_ack_delay, ..settings };
            Connection::new(settings, 0).expect("settings")
        };
        let impairment = impairment.parse().expect("an impairment");
        Self {
            now: 0,
            senders: paths.iter().map(connection).collect(),
            receivers: paths.iter().map(connection).collect(),
            there: Network::new(impairment, seed),
            back: Network::new(impairment, seed + 1),
            socket: VecDeque::new(),
            socket_capacity: usize::MAX,
            overflows: 0,
            asleep_until: 0,
            tokens: vec![0; paths.len()],
            octets: vec![0; paths.len()],
        }
    }

    fn run_until(&mut self, end: Nanos) {
        while self.now < end {
            self.step();
            let asleep_until = self.asleep_until;
            let receivers = self.receivers.iter().filter_map(Connection::next_timeout);
            let timeouts = receivers.map(|at| at.max(asleep_until));
            let timeouts = timeouts.chain(self.senders.iter().filter_map(Connection::next_timeout));
            let arrivals = [self.there.next_time_ns(), self.back.next_time_ns()];
            let sleeps = (!self.socket.is_empty()).then_some(self.asleep_until);
            let next = timeouts.chain(arrivals.into_iter().flatten()).chain(sleeps).min();
            self.now = next.unwrap_or(end).max(self.now + 1);
        }
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(arrived) = self.there.poll_deliver(now) {
            if self.socket.len() < self.socket_capacity {
                self.socket.push_back(arrived);
            } else {
                self.overflows += 1;
            }
        }
        if self.asleep_until <= now {
            self.receive();
        }
        while let Some((k, packet)) = self.back.poll_deliver(now) {
            let _ = self.senders[k].handle_datagram(now, &packet);
        }
        for (k, sender) in self.senders.iter_mut().enumerate() {
            while sender.poll_event().is_some() {}
            if sender.next_timeout().is_some_and(|at| at <= now) {
                sender.handle_timeout(now);
            }
            while self.tokens[k] < sender.counters().sent + 50 {
                self.tokens[k] += 1;
                let send = Send { len: MESSAGE_LEN, token: self.tokens[k], ..Send::default() };
                sender.send(send).expect("there is room");
            }
            transmit(now, k, sender, &mut self.there);
        }
    }

    fn receive(&mut self) {
        let now = self.now;
        while let Some((k, packet)) = self.socket.pop_front() {
            let receiver = &mut self.receivers[k];
            if let Disposition::Deliver(_) = receiver.handle_datagram(now, &packet) {
                self.octets[k] += MESSAGE_LEN;
            }
            while receiver.poll_buffered(now).is_some() {
                self.octets[k] += MESSAGE_LEN;
            }
        }
        for (k, receiver) in self.receivers.iter_mut().enumerate() {
            receiver.handle_drained(now);
            if receiver.next_timeout().is_some_and(|at| at <= now) {
                receiver.handle_timeout(now);
            }
            transmit(now, k, receiver, &mut self.back);
        }
    }

    /// Octets per second of each connection between two points in time.
    fn goodputs(&mut self, begin: Nanos, end: Nanos) -> Vec<f64> {
        self.run_until(begin);
        let before = self.octets.clone();
        self.run_until(end);
        let seconds = (end - begin) as f64 / SECOND as f64;
        self.octets.iter().zip(before).map(|(after, before)| (after - before) as f64 / seconds).collect()
    }
}

fn transmit(now: Nanos, k: usize, connection: &mut Connection, network: &mut Network<(usize, Packet)>) {
    while let Some(transmit) = connection.poll_transmit(now) {
        let len = transmit.packet.head_len() + transmit.packet.header.len as usize;
        assert!(len <= DATAGRAM_LEN);
        network.send(now, len + OVERHEAD, (k, transmit.packet));
    }
}

/// Jain's index: 1 if all are equal, 1/n if one has everything.
fn fairness(goodputs: &[f64]) -> f64 {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    sum * sum / (goodputs.len() as f64 * squares)
}

fn settings() -> Settings {
    Settings {
        datagram_len_max: DATAGRAM_LEN,
        receive_window: 1024,
        send_window: 1024,
        first_rtt: Some(10 * MILLISECOND),
        ..Settings::new(Path::UNKNOWN)
    }
}

fn path(algorithm: Algorithm) -> Path {
    Path { algorithm, ..Path::UNKNOWN }
}

/// 100 Mbit/s in octets of messages, without headers.
const LINK: f64 = 12.5e6 * MESSAGE_LEN as f64 / 1500.0;

/// Proves that a stream fills an idle link whose queue holds one round trip.
#[test]
fn stream_fills_its_link() {
    for algorithm in [Algorithm::Cubic, Algorithm::NewReno] {
        let mut flows = Flows::new(&[path(algorithm)], settings(), "delay=5ms,rate=100mbit,queue=100", 1);
        let goodput = flows.goodputs(2 * SECOND, 6 * SECOND)[0];
        assert!(goodput > 0.9 * LINK, "{algorithm:?}: {goodput} of {LINK} octets per second");
    }
}

/// Proves that slow start ends when the queue of the path grows, and does not lose a whole window (RFC 9406),
/// which would be more than acks can report. Until then the window doubles each round trip.
#[test]
fn slow_start_ends_before_the_queue_is_full_for_long() {
    for (impairment, round_trip, dropped_max) in
        [("delay=5ms,rate=100mbit", 10, 100), ("delay=20ms,rate=100mbit", 40, 150)]
    {
        let settings = Settings { first_rtt: Some(round_trip * MILLISECOND), ..settings() };
        let mut flows = Flows::new(&[path(Algorithm::Cubic)], settings, impairment, 1);
        // 10, 20, 40, 80 and 160 packets.
        flows.run_until(6 * round_trip * MILLISECOND);
        assert!(flows.octets[0] > 160 * MESSAGE_LEN, "{impairment}: {:?}", flows.octets);
        flows.run_until(2 * SECOND);
        let dropped = flows.there.counts().dropped;
        assert!(dropped <= dropped_max, "{impairment}: {dropped}");
    }
}

/// Proves that at 1 % loss the goodput is what the rule of Reno and CUBIC gives (Mathis: 1.22 windows divided
/// by the root of the loss, in a round trip; RFC 9438, 5.2): the cost of retransmissions is small compared to
/// the cuts.
#[test]
fn throughput_under_loss_is_bounded_by_its_cuts() {
    for algorithm in [Algorithm::Cubic, Algorithm::NewReno] {
        let impairment = "delay=5ms,rate=100mbit,loss=1%";
        let mut flows = Flows::new(&[path(algorithm)], settings(), impairment, 2);
        let goodput = flows.goodputs(SECOND, 31 * SECOND)[0];
        let expected = 1.22 / 0.01_f64.sqrt() * MESSAGE_LEN as f64 * 100.0;
        let ratio = goodput / expected;
        assert!(
            (0.85..1.4).contains(&ratio),
            "{algorithm:?}: {goodput} octets per second, {ratio} of {expected}"
        );
        let counters = flows.senders[0].counters();
        assert!(counters.timeouts <= 5, "{counters:?}");
        assert!(counters.spurious * 20 <= counters.retransmitted, "{counters:?}");
    }
}

/// Proves that one loss in a full window is repaired within two round trips without the timer, also if the
/// window is several times longer than acks can report (5.12, 10).
#[test]
fn single_loss_in_a_long_window_is_repaired_in_two_round_trips() {
    for window in [40, 85, 250] {
        let path = Path { window_max: window, ..Path::UNKNOWN };
        let mut flows = Flows::new(&[path], settings(), "delay=5ms,rate=100mbit", 8);
        flows.run_until(2 * SECOND);
        let round_trip = flows.senders[0].counters().smoothed_rtt;
        let next = flows.there.counts().sent;
        flows.there.set_filter(move |number, _| number == next);
        while flows.there.counts().lost == 0 {
            flows.run_until(flows.now + 1);
        }
        let (begin, left) = (flows.now, flows.senders[0].counters().sent * MESSAGE_LEN);
        while flows.octets[0] < left {
            flows.run_until(flows.now + 1);
        }
        let late = flows.now - begin;
        assert!(late <= 2 * round_trip, "window {window}: {late} ns, a round trip has {round_trip}");
        flows.run_until(flows.now + 2 * round_trip);
        let counters = flows.senders[0].counters();
        assert_eq!((counters.retransmitted, counters.timeouts, counters.cuts), (1, 0, 1), "window {window}");
    }
}

/// Proves that connections share a link fairly, with and without random losses, also with the other
/// algorithm.
#[test]
fn streams_share_a_link_fairly() {
    use Algorithm::{Cubic, NewReno};
    for algorithms in [[Cubic; 4], [NewReno; 4], [Cubic, NewReno, Cubic, NewReno]] {
        for impairment in ["delay=5ms,rate=30mbit,queue=30", "delay=5ms,rate=30mbit,loss=1%"] {
            let mut flows = Flows::new(&algorithms.map(path), settings(), impairment, 3);
            let goodputs = flows.goodputs(3 * SECOND, 13 * SECOND);
            let fairness = fairness(&goodputs);
            assert!(fairness >= 0.9, "{algorithms:?}, {impairment}: {fairness}, {goodputs:?}");
        }
    }
}

/// Proves that a private link of a declared rate is filled at once and never overflows, since packets are
/// paced at that rate.
#[test]
fn declared_rate_fills_its_link_without_loss() {
    let path = Path { rate: Some(12_000_000), window: 256, ..Path::PRIVATE };
    let mut flows = Flows::new(&[path], settings(), "delay=1ms,rate=100mbit,queue=20", 4);
    let goodput = flows.goodputs(100 * MILLISECOND, SECOND)[0];
    assert!(goodput > 0.9 * LINK, "{goodput} of {LINK} octets per second");
    assert_eq!((flows.there.counts().dropped, flows.senders[0].counters().retransmitted), (0, 0));
}

/// Proves that the declared rate is reached despite losses, which are no congestion on a link without other
/// traffic.
#[test]
fn declared_rate_is_reached_under_loss() {
    for (impairment, least) in [
        ("delay=5ms,rate=100mbit,loss=0.1%", 0.9),
        ("delay=5ms,rate=100mbit,loss=1%", 0.8),
        ("delay=500us,rate=100mbit,loss=1%", 0.8),
        ("delay=5ms,rate=30mbit,loss=1%", 0.8),
    ] {
        let rate = if impairment.contains("30mbit") { 30_000_000 / 8 } else { 100_000_000 / 8 };
        let path = Path { rate: Some(rate), ..Path::PRIVATE };
        let mut flows = Flows::new(&[path], Settings { first_rtt: None, ..settings() }, impairment, 6);
        let goodput = flows.goodputs(SECOND, 6 * SECOND)[0];
        let share = goodput / (rate as f64 * MESSAGE_LEN as f64 / 1500.0);
        assert!(share > least, "{impairment}: {share}, {:?}", flows.senders[0].counters());
    }
}

/// Proves that a declared link of 1 Gbit/s and 10 ms stays filled under loss: acks cover the whole window, so
/// a loss delays no other packet. A window of 2048 packets is 2.2 round trips.
#[test]
fn sack_reaches_to_the_end_of_the_window() {
    let rate = 1_000_000_000 / 8;
    for (window, loss, least) in
        [(2048, "0%", 0.95), (2048, "0.1%", 0.9), (2048, "1%", 0.8), (2048, "3%", 0.5), (1024, "1%", 0.5)]
    {
        let path = Path { rate: Some(rate), window_max: window, ..Path::PRIVATE };
        let window = window as u16;
        let settings =
            Settings { first_rtt: None, receive_window: window, send_window: window, ..settings() };
        let impairment = format!("delay=5ms,rate=1gbit,loss={loss}");
        let mut flows = Flows::new(&[path], settings, &impairment, 6);
        let share =
            flows.goodputs(SECOND / 2, SECOND * 3 / 2)[0] / (rate as f64 * MESSAGE_LEN as f64 / 1500.0);
        let (sender, acks) = (flows.senders[0].counters(), flows.receivers[0].counters().pure_acks);
        println!("window {window}, loss {loss}: {share:.3} of the link, {acks} acks, {sender:?}");
        assert!(share > least, "window {window}, loss {loss}: {share}, {acks} acks, {sender:?}");
    }
}

/// Proves that a one-way stream requests four acks in a window and gets no more, although its packets arrive
/// one by one, and that there is no retransmission (5.12, 5).
#[test]
fn stream_is_acked_four_times_in_a_window() {
    for (path, impairment) in [
        (Path { window_max: 128, ..Path::UNKNOWN }, "delay=5ms,rate=100mbit"),
        (Path { window_max: 64, ..Path::UNKNOWN }, "delay=5ms,rate=10mbit"),
        (Path { window: 24, window_max: 24, ..Path::PRIVATE }, "delay=500us,rate=100mbit"),
    ] {
        let mut flows = Flows::new(&[path], settings(), impairment, 7);
        flows.run_until(5 * SECOND);
        let (sender, receiver) = (flows.senders[0].counters(), flows.receivers[0].counters());
        assert_eq!((sender.retransmitted, sender.timeouts), (0, 0), "{impairment}: {sender:?}");
        let windows = sender.sent / u64::from(path.window_max);
        assert!(
            receiver.pure_acks <= 5 * windows,
            "{impairment}: {} in {windows} windows",
            receiver.pure_acks
        );
    }
}

/// Proves that the default socket buffer never overflows, for any number of concurrent senders, while its
/// owner does not poll for almost the PTO: all windows together are half of its capacity (5.12, 8).
#[test]
fn senders_that_share_a_socket_never_overflow_it() {
    let capacity = capacity(212_992, charge(DATAGRAM_LEN));
    for count in [1, 2, 8, 23, 46] {
        let window = share(capacity, count).expect("there is room for all of them");
        let settings = Settings { receive_window: window, send_window: window, ..settings() };
        let paths = vec![Path { timing: Timing::SHARED, ..Path::PRIVATE }; count];
        let mut flows = Flows::new(&paths, Settings { first_rtt: None, ..settings }, "delay=10us", 5);
        flows.socket_capacity = capacity;
        let mut random = Random::new(5);
        for _ in 0..20 {
            // Computes for up to 20 ms, then polls.
            flows.asleep_until = flows.now + random.up_to(20 * MILLISECOND);
            flows.run_until(flows.asleep_until + 200 * MICROSECOND);
        }
        assert_eq!(flows.overflows, 0, "{count} senders, a window of {window} each, {capacity} datagrams");
        assert!(flows.octets.iter().all(|octets| *octets > 0), "{count} senders: {:?}", flows.octets);
    }
}
