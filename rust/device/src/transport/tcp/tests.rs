//! Two ranks with a connection between them.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, Type, WriteBuffer};
use mpjdev_proto::impi::layout::HEADER_LEN;

use super::*;
use crate::pool::HeapPool;
use crate::transport::{Header, Inbox, Outgoing, Wire};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
/// A sleep that nothing ends.
const SHORT: Duration = Duration::from_millis(50);

fn pair() -> io::Result<[(Arc<TcpWire>, TcpInbox); 2]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    let member = |rank: u32| Member {
        proc: Proc { host_id: Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets(), pid: i64::from(rank) + 1 },
        host: rank,
        is_ours: true,
    };
    let connect = |rank: u32, sockets| {
        let job = Job { rank, members: vec![member(0), member(1)], terms: Terms::default(), sockets };
        connect(job, &Config::default(), HeapPool::new(1 << 30))
    };
    Ok([connect(0, vec![None, Some(one.into())])?, connect(1, vec![Some(other.into()), None])?])
}

fn message(octets: usize) -> Message {
    let mut buffer =
        WriteBuffer::new(HeapPool::new(1 << 30), octets as i64, Encoding::NATIVE).expect("a capacity");
    buffer.stage(Type::Byte, octets - 8).expect("room");
    buffer.commit();
    buffer.finish().expect("memory").clone()
}

/// Whether it comes to sleep for its time, as a waiting thread does between its looks, before it has tried `rounds` times.
fn falls_asleep(wire: &TcpWire, inbox: &mut TcpInbox, rounds: u32, mut before: impl FnMut()) -> bool {
    (0..rounds).any(|_| {
        before();
        inbox.receive(100, &mut |_, _, _| Ok(()));
        let begun = Instant::now();
        wire.sleep(SHORT, &mut || wire.is_ready());
        begun.elapsed() >= SHORT
    })
}

#[test]
fn who_waits_for_a_full_socket_sleeps_until_it_takes_octets() {
    let [(sender, mut answers), (receiver, mut inbox)] = pair().expect("connections");
    let message = message(100_000);
    // The systems of both sides take some more now and then.
    let fill = || while sender.try_send(1, Header::default(), Outgoing::Message(&message)) {};
    assert!(falls_asleep(&sender, &mut answers, 1000, fill), "octets wait that nobody takes");
    let left = sender.leaving().expect("the sockets are full");
    let mut read_until = |is_over: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_over() {
            assert!(begun.elapsed() < LONG, "{:?} octets have left", sender.leaving());
            receiver.look();
            inbox.receive(100, &mut |_, _, _| Ok(()));
        }
    };
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while sender.leaving() == Some(left) {
                sender.sleep(LONG, &mut || false);
                sender.look();
            }
        });
        let begun = Instant::now();
        while !sender.poller.is_watched(0) {
            assert!(begun.elapsed() < LONG, "it does not wait for room");
            std::thread::yield_now();
        }
        read_until(&|| sleeper.is_finished());
    });
    read_until(&|| {
        sender.look();
        sender.leaving().is_none()
    });
    assert!(falls_asleep(&sender, &mut answers, 3, || ()), "it is woken for room that nobody needs");
}

/// The system tells nobody of what was read, and whoever takes one packet may go then.
#[test]
fn who_leaves_packets_that_were_read_wakes_the_one_that_sleeps() {
    let [(sender, _answers), (receiver, mut inbox)] = pair().expect("connections");
    let message = message(8);
    let sent_len = 2 * (HEADER_LEN + message.first_len()) as u64;
    (0..2).for_each(|_| assert!(sender.try_send(1, Header::default(), Outgoing::Message(&message))));
    sender.look();
    let begun = Instant::now();
    while rustix::io::ioctl_fionread(&receiver.channels[0].socket).expect("a socket") < sent_len {
        assert!(begun.elapsed() < LONG, "two packets do not arrive");
    }
    assert!(receiver.look());
    receiver.watch.is_asleep.store(true, SeqCst);
    assert_eq!(inbox.receive(1, &mut |_, _, _| Ok(())), 1);
    let begun = Instant::now();
    receiver.poller.wait(LONG, &mut |channel| panic!("channel {channel} has something more"));
    assert!(begun.elapsed() < LONG, "nobody has rung");
}

/// Whoever only looks must leave the bell to the one that sleeps: the system ends a sleep only if what has woken it is still there.
#[test]
fn a_look_of_another_thread_does_not_take_the_bell_of_the_one_that_sleeps() {
    let [(_sender, _answers), (receiver, _inbox)] = pair().expect("connections");
    receiver.watch.is_asleep.store(true, SeqCst);
    receiver.ring();
    assert!(!receiver.look_at_all(), "nothing was sent");
    let begun = Instant::now();
    receiver.poller.wait(LONG, &mut |channel| panic!("channel {channel} has something"));
    assert!(begun.elapsed() < LONG, "the bell was taken");
}
