//! Tests of two ranks with a connection between them.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, Type, WriteBuffer};
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::message_tx::Send;
use mpjdev_proto::impi::packet::{Packet, PacketType};

use super::channel_state::Backlog;
use super::*;
use crate::pool::HeapPool;
use crate::{Header, Kind, Outgoing, PacketSource, PeerState, Transport, Unacked};

/// Longer than any step of these tests takes.
const LONG: Duration = Duration::from_secs(60);

fn pair() -> io::Result<[(Arc<TcpTransport>, TcpSource); 2]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    pair_over(Terms::default(), one.into(), other.into())
}

fn member(rank: u32) -> Member {
    Member {
        proc: Proc { host_id: Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), pid: i64::from(rank) + 1 },
        host: rank,
        is_ours: true,
    }
}

fn pair_over(terms: Terms, one: OwnedFd, other: OwnedFd) -> io::Result<[(Arc<TcpTransport>, TcpSource); 2]> {
    let connect = |rank: u32, sockets| {
        let job = Job { rank, members: vec![member(0), member(1)], site_of: Vec::new(), terms, sockets };
        connect(job, &Config::default(), HeapPool::new(1 << 30))
    };
    Ok([connect(0, vec![None, Some(one)])?, connect(1, vec![Some(other), None])?])
}

fn message(octets: usize) -> Message {
    let mut buffer =
        WriteBuffer::new(HeapPool::new(1 << 30), octets as i64, Encoding::NATIVE).expect("a capacity");
    buffer.stage(Type::Byte, octets - 8).expect("room");
    buffer.commit();
    buffer.finish().expect("memory").clone()
}

/// A message whose packet has this many octets after its header.
fn message_of(first_len: usize) -> Message {
    let beside = message(64).first_len() - 64;
    let message = message(first_len - beside);
    assert_eq!(message.first_len(), first_len);
    message
}

/// Whether a thread that goes to sleep now is woken at once.
fn is_woken(transport: &TcpTransport) -> bool {
    let mut is_woken = false;
    transport.watch_room(&transport.net.poller, true);
    transport.net.poller.poll(&mut |_| is_woken = true);
    transport.watch_room(&transport.net.poller, false);
    is_woken
}

/// The test uses a Unix socket. A full TCP socket may take octets later, although its other end reads
/// nothing.
#[test]
fn sleeper_is_woken_for_room_only_when_octets_wait_for_it() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let [(sender, mut answers), (receiver, mut packet_source)] =
        pair_over(Terms::default(), one.into(), other.into()).expect("connections");
    let message = message(100_000);
    while sender.try_send(1, Header::default(), Outgoing::Message(&message)) {}
    let left = sender.tx_pending().expect("the socket is full");
    assert!(!is_woken(&sender), "the receiver takes no octets");
    let mut read_until = |is_over: &mut dyn FnMut() -> bool| {
        let begun = Instant::now();
        while !is_over() {
            assert!(begun.elapsed() < LONG, "{:?} octets have left", sender.tx_pending());
            receiver.poll();
            packet_source.receive(100, &mut |_, _, _| Ok(()));
        }
    };
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while sender.tx_pending() == Some(left) {
                sender.park(LONG, &mut || false);
                sender.poll();
            }
        });
        let begun = Instant::now();
        while !sender.net.poller.is_watched(0) {
            assert!(begun.elapsed() < LONG, "it does not wait for room");
            std::thread::yield_now();
        }
        read_until(&mut || sleeper.is_finished());
    });
    read_until(&mut || {
        answers.receive(100, &mut |_, _, _| Ok(()));
        sender.tx_pending().is_none()
    });
    assert!(!is_woken(&sender), "no send waits for the room");
}

/// The system does not report octets that were read, and the thread that takes one packet may leave then.
#[test]
fn receive_that_leaves_packets_wakes_the_sleeper() {
    let [(sender, _answers), (receiver, mut packet_source)] = pair().expect("connections");
    let message = message(8);
    let sent_len = 2 * (HEADER_LEN + message.first_len()) as u64;
    (0..2).for_each(|_| assert!(sender.try_send(1, Header::default(), Outgoing::Message(&message))));
    sender.poll();
    let begun = Instant::now();
    while rustix::io::ioctl_fionread(&receiver.channels[0].socket).expect("a socket") < sent_len {
        assert!(begun.elapsed() < LONG, "two packets do not arrive");
    }
    assert!(receiver.poll());
    receiver.net.progress.is_asleep.store(true, SeqCst);
    assert_eq!(packet_source.receive(1, &mut |_, _, _| Ok(())), 1);
    let begun = Instant::now();
    receiver.net.poller.wait(LONG, &mut |channel| panic!("channel {channel} has something more"));
    assert!(begun.elapsed() < LONG, "no wake-up arrived");
}

/// A thread that only polls must leave the eventfd to the sleeping thread: the system ends a sleep only while
/// the eventfd is still readable.
#[test]
fn poll_of_another_thread_keeps_the_wake_up_of_the_sleeper() {
    let [(_sender, _answers), (receiver, _inbox)] = pair().expect("connections");
    receiver.net.progress.is_asleep.store(true, SeqCst);
    receiver.wake();
    assert!(!receiver.poll_channels(), "nothing was sent");
    let begun = Instant::now();
    receiver.net.poller.wait(LONG, &mut |channel| panic!("channel {channel} has something"));
    assert!(begun.elapsed() < LONG, "the bell was taken");
}

/// The staging buffer has room for less than a header when the rank finishes.
#[test]
fn fini_waits_for_room_behind_a_full_stage() {
    const STAGED: usize = 31;
    let (one, other) = UnixStream::pair().expect("sockets");
    let [(sender, _answers), (receiver, mut packet_source)] =
        pair_over(Terms::default(), one.into(), other.into()).expect("connections");
    let most = message_of(3960);
    let send = |message: &Message| {
        assert!(sender.try_send(1, Header::default(), Outgoing::Message(message)));
        // A sent packet does not wait for others to leave with it.
        sender.poll();
    };
    while sender.tx_pending().is_none() {
        send(&most);
    }
    (1..STAGED).for_each(|_| send(&most));
    send(&message_of(4096));
    std::thread::scope(|scope| {
        scope.spawn(|| sender.finish());
        let begun = Instant::now();
        while receiver.peer(0) != PeerState::Finished {
            assert!(begun.elapsed() < LONG, "the end does not arrive");
            receiver.poll();
            packet_source.receive(100, &mut |_, _, _| Ok(()));
        }
    });
}

/// The flow is closed when the rank finishes, and opens only then.
#[test]
fn fini_follows_an_answer_that_waits_for_flow_control() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let terms = Terms { ackmark: 1, hiwater: 1, ..Terms::default() };
    let [(ended, mut requests), (peer, mut packet_source)] =
        pair_over(terms, one.into(), other.into()).expect("connections");
    let message = message(8);
    let synchronous = Header { kind: Kind::Synchronous, token: 1, ..Header::default() };
    assert!(peer.try_send(0, synchronous, Outgoing::Message(&message)));
    let begun = Instant::now();
    let mut token = None;
    while token.is_none() {
        assert!(begun.elapsed() < LONG, "the message does not arrive");
        peer.poll();
        requests.receive(100, &mut |_, header, _| {
            token = Some(header.token);
            Ok(())
        });
    }
    assert!(ended.try_send(1, Header::default(), Outgoing::Message(&message)), "the flow is open");
    let matched = Header { kind: Kind::MatchAck, token: token.expect("a number"), ..Header::default() };
    assert!(ended.try_send(1, matched, Outgoing::Nothing));
    let channel = &ended.channels[0];
    assert!(channel.tx().has_queued(), "the answer waits");
    // A finish makes these calls.
    ended.send_fini();
    let mut answers = 0;
    while peer.peer(0) != PeerState::Finished {
        assert!(begun.elapsed() < LONG, "the end does not arrive");
        peer.poll();
        packet_source.receive(100, &mut |_, header, _| {
            answers += u32::from(header.kind == Kind::MatchAck);
            Ok(())
        });
        requests.receive(100, &mut |_, _, _| Ok(()));
        ended.has_left(channel);
    }
    assert_eq!(answers, 1);
}

/// The progress thread has handled a packet while the rank finishes, and has not written the answer yet.
#[test]
fn stream_ends_behind_an_answer_that_was_put_and_not_written() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let terms = Terms { dialect: Dialect::Draft, maxdatalen: 4096, ackmark: 1, hiwater: 1 };
    let [(ended, _answers), (peer, mut packet_source)] =
        pair_over(terms, one.into(), other.into()).expect("connections");
    let channel = &ended.channels[0];
    let mut packet = Packet::new(PacketType::Data, member(1).proc, member(0).proc);
    packet.seqnum = 1;
    let mut header = [0; HEADER_LEN];
    packet.emit(Dialect::Draft, &mut header);
    // The peer has sent it, as far as its own machine knows.
    let sent = peer.channels[0].tx().sessions[0].pair.try_send_now(&Send::default());
    assert!(sent.is_some());
    assert!(ended.handle(channel, &header).is_ok());
    assert!(ended.tx_pending().is_some(), "the answer waits");
    ended.end_stream(channel);
    let begun = Instant::now();
    while peer.peer(0) != PeerState::Finished {
        assert!(begun.elapsed() < LONG, "the end does not arrive");
        peer.poll();
        packet_source.receive(100, &mut |_, _, _| Ok(()));
    }
}

#[test]
fn abort_reason_is_cut_when_packets_are_short() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let terms = Terms { maxdatalen: 16, ..Terms::default() };
    let [(failed, _answers), (other, mut packet_source)] =
        pair_over(terms, one.into(), other.into()).expect("connections");
    failed.fail("the file system is full");
    let begun = Instant::now();
    while other.abort().is_none() {
        assert!(begun.elapsed() < LONG, "the failure does not arrive");
        other.poll();
        packet_source.receive(100, &mut |_, _, _| Ok(()));
    }
    assert_eq!(other.abort(), Some((0, "the file system ".to_owned())));
}

/// The kernel's limit would end a connection whose peer computes for longer than the peer timeout.
#[test]
fn peer_that_does_not_read_stays_alive() {
    use rustix::net::sockopt::tcp_user_timeout;
    let limit = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let one = TcpStream::connect(listener.local_addr()?)?;
        let (other, _) = listener.accept()?;
        rustix::net::sockopt::set_tcp_user_timeout(&one, LONG.as_millis() as u32)?;
        pair_over(Terms::default(), one.into(), other.into())
    };
    let [(sender, mut answers), (receiver, mut packet_source)] = limit().expect("connections");
    let channel = &sender.channels[0];
    let limit = || Duration::from_millis(tcp_user_timeout(&channel.socket).expect("an option").into());
    let message = message(100_000);
    let mut wait_for = |most: Duration, act: &mut dyn FnMut()| {
        let begun = Instant::now();
        while limit() != most {
            assert!(begun.elapsed() < LONG, "the limit is {:?}", limit());
            act();
            answers.receive(100, &mut |_, _, _| Ok(()));
            sender.check_channel(channel, begun);
        }
    };
    // The other end's system takes more octets for some time.
    wait_for(Duration::ZERO, &mut || {
        while sender.try_send(1, Header::default(), Outgoing::Message(&message)) {}
    });
    wait_for(LONG, &mut || {
        receiver.poll();
        packet_source.receive(100, &mut |_, _, _| Ok(()));
    });
    assert_eq!(sender.peer(1), PeerState::Alive);
}

/// The peer reads nothing, and its system takes no more than its buffer holds. The rest is reported
/// with its rank.
#[test]
fn finish_returns_octets_that_the_peer_system_has_not_acked() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let [(sender, _answers), (_receiver, _inbox)] =
        pair_over(Terms::default(), one.into(), other.into()).expect("connections");
    let message = message(100_000);
    while sender.try_send(1, Header::default(), Outgoing::Message(&message)) {}
    let unacked = sender.finish();
    assert!(matches!(unacked[..], [Unacked { rank: 1, octets: 1.., .. }]), "{unacked:?}");
}

#[test]
fn finish_returns_octets_to_an_unreachable_machine() {
    use rustix::io::Errno;
    let unacked_after = |error: Errno| {
        let (one, other) = UnixStream::pair().expect("sockets");
        let [(sender, _answers), (_receiver, _inbox)] =
            pair_over(Terms::default(), one.into(), other.into()).expect("connections");
        let message = message(100_000);
        while sender.try_send(1, Header::default(), Outgoing::Message(&message)) {}
        let channel = &sender.channels[0];
        let given = channel.tx().given();
        sender.stop_sending(channel, &mut channel.tx(), &error.into());
        assert_eq!(channel.tx().given(), given);
        assert_eq!(channel.backlog.load(SeqCst), Backlog::Empty, "no octets wait for room");
        sender.finish()
    };
    let unacked = unacked_after(Errno::TIMEDOUT);
    assert!(matches!(unacked[..], [Unacked { rank: 1, octets: 100_000.., .. }]), "{unacked:?}");
    assert_eq!(unacked_after(Errno::CONNRESET), [], "its process has ended, and its machine reports it");
}

/// A host that violates the protocol after its end, and whose machine is then unreachable: it takes nothing
/// more, and it has not failed.
#[test]
fn finished_peer_stays_finished_when_its_channel_is_closed() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let mut wire = other.try_clone().expect("a socket");
    let [(sender, mut answers), _peer] =
        pair_over(Terms::default(), one.into(), other.into()).expect("connections");
    let message = message(100_000);
    while sender.try_send(1, Header::default(), Outgoing::Message(&message)) {}
    let channel = &sender.channels[0];
    sender.note_fault(&mut channel.tx(), &rustix::io::Errno::TIMEDOUT.into());
    let fini = Packet::new(PacketType::Fini, Proc::default(), Proc::default());
    let data = Packet::new(PacketType::Data, member(1).proc, member(0).proc);
    for packet in [fini, data] {
        let mut header = [0; HEADER_LEN];
        packet.emit(Dialect::Final, &mut header);
        wire.write_all(&header).expect("the socket is empty");
    }
    let begun = Instant::now();
    while channel.tx().is_open() {
        assert!(begun.elapsed() < LONG, "the violation closes the channel");
        sender.poll();
        answers.receive(100, &mut |_, _, _| Ok(()));
    }
    assert_eq!(sender.peer(1), PeerState::Finished);
    assert_eq!(sender.tx_pending(), None);
    assert_eq!(sender.finish(), []);
}

#[test]
fn finish_returns_nothing_when_all_octets_are_acked() {
    let [(sender, _answers), (_receiver, _inbox)] = pair().expect("connections");
    assert!(sender.try_send(1, Header::default(), Outgoing::Message(&message(8))));
    assert_eq!(sender.finish(), []);
}
