//! Tests of a hostile peer whose datagrams have valid ids and numbers.

use mpjdev_proto::context::{WORLD, control};
use mpjdev_proto::datagram::extension::Fragment;
use mpjdev_proto::datagram::header::Mode as PacketMode;

use super::*;

/// The longest datagram in octets.
const DATAGRAM_LEN: usize = 1472;

/// The ranks of a job, after rank 0 was sent this first packet of rank 1, with `len` octets of user data.
fn sent(len: usize, fill: impl FnOnce(&mut Packet)) -> Vec<Rank> {
    let ranks = ranks(3, Terms { datagram_len_max: DATAGRAM_LEN, ..Terms::default() }, ProgressThread::Runs);
    let settings = ranks[0].transport.settings(1).expect("a peer");
    let mut packet =
        Packet { header: Fixed { len: len as u32, tag: 1, ..Fixed::default() }, ..Packet::default() };
    packet.number(Some(settings.first_theirs), None);
    packet.extension.connection = settings.ours;
    fill(&mut packet);
    let mut octets = vec![0; HEAD_LEN_MAX + len];
    let len = packet.emit(&vec![0; len], &mut octets).expect("a packet");
    let to = ranks[0].transport.udp_socket().local_addr().expect("an address");
    ranks[1].transport.udp_socket().send_to(&octets[..len], to).expect("sent");
    ranks
}

/// The reason why rank 0 disconnects rank 1.
fn why(len: usize, fill: impl FnOnce(&mut Packet)) -> String {
    let ranks = sent(len, fill);
    match ranks[0].receive(1).expect_err("no message") {
        DeviceError::PeerFailed { rank: 1, why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn peer_that_violates_the_protocol_is_disconnected() {
    let begins = |why: String, begin: &str| {
        assert!(why.starts_with(&format!("it violates the protocol: {begin}")), "{why}");
    };
    begins(why(16, |packet| packet.header.tag = -1), "a message with a reserved tag or context: tag -1");
    let total = 1 << 30;
    let long = |packet: &mut Packet| {
        packet.header.mode = PacketMode::Long;
        packet.extension.fragment = Some(Fragment { message_id: 1, destination_id: 0, total, offset: 0 });
    };
    begins(why(1000, long), "an eager message of 1073741824 octets, more than allowed");
    let extra = |tag| {
        move |packet: &mut Packet| {
            (packet.header.tag, packet.header.context_id) = (tag, 1);
            packet.extension.context = Some(control(WORLD));
        }
    };
    begins(why(7, extra(1)), "an unknown control message of 7 octets with tag 1");
    begins(why(8, extra(9)), "an unknown control message of 8 octets with tag 9");
}

/// The memory for a peer is bounded by the number of its datagrams, so each is no longer than agreed.
#[test]
fn datagram_above_the_agreed_length_is_dropped() {
    let ranks = sent(DATAGRAM_LEN, |_| {});
    let deadline = Instant::now() + Duration::from_secs(20);
    while ranks[0].counted().malformed == 0 {
        assert!(Instant::now() < deadline, "{:?}", ranks[0].counted());
        std::thread::yield_now();
    }
    assert_eq!(ranks[0].counted().packets_received, 0);
}

/// A GSO batch of different lengths is divided at the right places.
#[test]
fn datagrams_of_all_lengths_arrive_unchanged() {
    const COUNT: usize = 400;
    let ranks = ranks(2, Terms::default(), ProgressThread::Runs);
    let counts = |k: usize| [40, 1, 300, 300, 7, 1000][k * 7 / 3 % 6];
    scope(|threads| {
        threads.spawn(|| (0..COUNT).for_each(|k| ranks[0].send(&message(counts(k), k as f64), 1)));
        for k in 0..COUNT {
            let received = ranks[1].receive(0).expect("a message");
            assert_eq!(octets(&received), octets(&message(counts(k), k as f64)), "message {k}");
        }
    });
    let counted = ranks[1].counted();
    assert_eq!((counted.malformed, counted.unknown, counted.violations), (0, 0, 0), "{counted:?}");
}
