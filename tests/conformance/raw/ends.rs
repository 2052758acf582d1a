//! Match acks, ends of ranks and reclaimed memory at the worst moments.

use super::*;
use crate::rank_harness::{ANY, from};

/// Match acks for unknown requests, also forged ones, change nothing.
#[test]
fn forged_match_ack_completes_no_request() {
    for token in [0, 1, u64::MAX, 1 << 32, 1 << 63] {
        let bench = Bench::new(2, false);
        let header = Header { kind: Kind::MatchAck, context: 0, tag: 0, token };
        assert!(bench.transports[0].try_send(0, header, Outgoing::Nothing));
        assert_eq!(bench.comm.iprobe(ANY), Ok(None));
        let id = bench.comm.irecv(ANY, 40, None).expect("irecv");
        let (whole, _) = halves(&TestMessage::plain(1, 40));
        bench.put(0, 7, &whole);
        let done = bench.comm.wait(id, Some(soon()), &mut Uninterruptible).expect("the message");
        TestMessage::plain(1, 40).check(&done.message.expect("a message"));
        bench.finish_clean();
    }
}

/// The message and the finish arrive right after the receiver's poll.
#[test]
fn message_sent_right_before_a_finish_is_received() {
    for probes in [false, true] {
        let mut bench = Bench::new(2, false);
        let transport = Arc::new(bench.transports.remove(0));
        let message = bench.message(&TestMessage::plain(1, 40));
        let late = transport.clone();
        *bench.after_receive.lock().expect("no panic") = Some(Box::new(move || {
            let header = Header { kind: Kind::Eager, context: 0, tag: 7, token: 0 };
            assert!(late.try_send(0, header, Outgoing::Message(&message)));
            late.finish();
        }));
        if probes {
            assert!(bench.comm.iprobe(from(1, 7)).expect("the message is here, or nothing is").is_some());
        }
        TestMessage::plain(1, 40).check(&bench.recv(from(1, 7), 40).expect("it was sent before the finish"));
        assert_eq!(bench.recv(from(1, 7), 40).unwrap_err(), DeviceError::PeerFinished { rank: 1 });
        drop(transport);
        bench.finish_clean();
    }
}

/// The match ack and the finish arrive right after a poll that the end of another rank caused.
#[test]
fn match_ack_sent_right_before_a_finish_completes_its_send() {
    let mut bench = Bench::new(3, false);
    let message = bench.message(&TestMessage::plain(1, 40));
    let id = bench.comm.isend(&message, 1, 7, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    let mut token = 0;
    bench.packet_sources[0].receive(1, &mut |_, header, _| {
        token = header.token;
        Ok(())
    });
    let transport = Arc::new(bench.transports.remove(0));
    let late = transport.clone();
    *bench.after_receive.lock().expect("no panic") = Some(Box::new(move || {
        let header = Header { kind: Kind::MatchAck, context: 0, tag: 0, token };
        assert!(late.try_send(0, header, Outgoing::Nothing));
        late.finish();
    }));
    bench.transports[0].finish();
    assert!(bench.comm.wait(id, Some(soon()), &mut Uninterruptible).is_ok());
    drop(transport);
    bench.finish_clean();
}

/// The destination finishes, and another thread notices it, between the check of the destination and the
/// send.
#[test]
fn send_to_a_rank_that_finishes_meanwhile_ends() {
    for physical in [false, true] {
        for (split, mode) in [(false, Mode::Synchronous), (true, Mode::Standard), (true, Mode::Synchronous)] {
            let bench = Bench::new(2, physical);
            let endpoint: Arc<OnceLock<Weak<PacketEngine>>> = Arc::default();
            endpoint.set(Arc::downgrade(bench.comm.packet_engine().expect("packets"))).expect("set once");
            let form = if split { test_message(1) } else { TestMessage::plain(1, 40) };
            let message = bench.message(&form);
            let Bench { comm, transports, packet_sources, pool, after_epoch, .. } = bench;
            let transport = Arc::new(transports);
            let late = transport.clone();
            *after_epoch.lock().expect("no panic") = Some(Box::new(move || {
                late[0].finish();
                let other_thread = endpoint.get().and_then(Weak::upgrade).expect("alive");
                other_thread.leftovers();
            }));
            if let Some(id) = comm.isend(&message, 1, 7, mode).expect("it was alive") {
                let error = comm.wait(id, Some(soon()), &mut Uninterruptible).unwrap_err();
                assert_eq!(error, DeviceError::PeerFinished { rank: 1 });
            }
            assert_eq!(comm.leftovers(), (0, 0));
            drop((comm, transport, packet_sources, message));
            assert_eq!(pool.used(), 0);
        }
    }
}

/// Rank 0 continues until it can notify every rank.
#[test]
fn damaged_request_fails_all_ranks() {
    let mut bench = Bench::new(3, false);
    let mut split = bench.comm.start_split(0, 0);
    assert!(split.advance().expect("nothing has arrived").is_none());
    let source: Arc<dyn SlabSource> = bench.pool.clone();
    for (transport, len) in bench.transports.iter().zip([3, 8]) {
        let mut buffer = mpjdev_buffer::WriteBuffer::new(source.clone(), 16, mpjdev_buffer::Encoding::NATIVE)
            .expect("a capacity");
        buffer.write(&vec![0i8; len]).expect("room");
        let header = Header { kind: Kind::Eager, context: 1, tag: 67, token: 0 };
        assert!(transport.try_send(0, header, Outgoing::Message(buffer.finish().expect("memory"))));
    }
    assert!(split.advance().is_err());
    for packet_source in &mut bench.packet_sources {
        let received = packet_source.receive(9, &mut |_, header, _| {
            assert_eq!(header.tag, 68);
            Ok(())
        });
        assert_eq!(received, 1, "a result for each rank");
    }
}

/// A match ack names a request of its receiver. It must be a send to the rank that acks.
#[test]
fn forged_match_ack_completes_no_pending_request() {
    let bench = Bench::new(3, false);
    let receive = bench.comm.irecv(ANY, 40, None).expect("irecv");
    let message = bench.message(&TestMessage::plain(2, 40));
    let send = bench.comm.isend(&message, 2, 7, Mode::Synchronous).expect("isend").expect("pending");
    drop(message);
    for token in 0..3 {
        let header = Header { kind: Kind::MatchAck, context: 0, tag: 0, token };
        assert!(bench.transports[0].try_send(0, header, Outgoing::Nothing));
    }
    assert!(bench.comm.test(send).expect("still there").is_none(), "rank 1 has answered for rank 2");
    let (whole, _) = halves(&TestMessage::plain(1, 40));
    bench.put(0, 7, &whole);
    let done = bench.comm.wait(receive, Some(soon()), &mut Uninterruptible).expect("the message");
    TestMessage::plain(1, 40).check(&done.message.expect("an answer is no message"));
}

/// Cleaners run while a rank waits for memory. They free a request of the same rank.
#[test]
fn memory_is_reclaimed_without_the_ranks_lock() {
    static RANK: Mutex<Option<Comm>> = Mutex::new(None);
    static BLOCKED: OnceLock<bool> = OnceLock::new();
    let bench = Bench::new(2, false);
    let message = bench.message(&TestMessage::plain(1, 40));
    let header = Header { kind: Kind::Eager, context: 0, tag: 7, token: 0 };
    assert!(bench.transports[0].try_send(0, header, Outgoing::Message(&message)));
    *RANK.lock().expect("no panic") = Some(bench.comm.clone());
    bench.pool.set_reclaim(|| {
        let (done, over) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let comm = RANK.lock().expect("no panic").take().expect("asked once");
            comm.leftovers();
            let _ = done.send(());
        });
        let _ = BLOCKED.set(over.recv_timeout(Duration::from_secs(20)).is_err());
    });
    bench.pool.set_limit(0);
    let _ = bench.comm.iprobe(ANY);
    assert_ne!(BLOCKED.get(), Some(&true), "another thread of this rank had to wait");
}

/// The sender has finished, so no thread empties its queue.
#[test]
fn match_acks_to_a_finished_rank_are_dropped() {
    let bench = Bench::new(2, false);
    let message = bench.message(&TestMessage::plain(1, 40));
    for token in 0..100 {
        let header = Header { kind: Kind::Synchronous, context: 0, tag: 7, token };
        while !bench.transports[0].try_send(0, header, Outgoing::Message(&message)) {
            assert!(bench.comm.iprobe(ANY).expect("iprobe").is_some());
        }
    }
    drop(message);
    bench.transports[0].finish();
    assert!(bench.comm.iprobe(ANY).expect("iprobe").is_some());
    for _ in 0..100 {
        TestMessage::plain(1, 40).check(&bench.recv(from(1, 7), 40).expect("it was sent before the finish"));
    }
    let begun = Instant::now();
    assert_eq!(bench.comm.finish(&mut Uninterruptible), Ok(()));
    assert!(begun.elapsed() < Duration::from_secs(20), "finish took {:?}", begun.elapsed());
    bench.finish_clean();
}
