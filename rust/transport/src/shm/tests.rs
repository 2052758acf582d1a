//! Tests of two ranks, one of which writes invalid words into the memory that it may write.

mod loans;
mod short;
mod slots;

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use mpjdev_buffer::{Encoding, Message, SlabSource, Type, WriteBuffer};

use super::layout::queue_at;
use super::ring::LINE;
use super::*;
use crate::{Header, Incoming, Outgoing, PacketSource, PeerState, StatusReporter, Transport};

struct Rank {
    transport: Arc<ShmTransport>,
    packet_source: ShmSource,
    pool: Arc<SegmentPool>,
}

/// Octets of a segment's slabs.
const SLABS: usize = 4 << 20;

fn ranks_and_status_page(count: usize) -> (Vec<Rank>, StatusPage) {
    let config = Config { credit: 1 << 16, ..Config::default() };
    let pools: Vec<_> = (0..count)
        .map(|rank| create(rank as u32, count, SLABS, &config, HeapPool::new(1 << 30)).expect("memory"))
        .collect();
    let status_page = StatusPage::create(count).expect("memory");
    let connect = |(rank, pool): (usize, &Arc<SegmentPool>)| {
        let files = pools.iter().map(|pool| pool.share().expect("a descriptor")).collect();
        let job = Job::open(status_page.files(), files).expect("the pages");
        let (transport, packet_source) = connect(rank as u32, &config, pool.clone(), Arc::new(job));
        Rank { transport, packet_source, pool: pool.clone() }
    };
    (pools.iter().enumerate().map(connect).collect(), status_page)
}

fn ranks(count: usize) -> Vec<Rank> {
    ranks_and_status_page(count).0
}

fn message(source: Arc<dyn SlabSource>, octets: usize) -> Message {
    let mut buffer = WriteBuffer::new(source, octets as i64, Encoding::NATIVE).expect("a capacity");
    buffer.stage(Type::Long, (octets - 8) / 8).expect("room");
    buffer.commit();
    buffer.finish().expect("memory").clone()
}

impl Rank {
    fn send(&self, dest: u32, octets: usize) -> bool {
        self.send_as(Kind::Eager, dest, octets)
    }

    fn send_as(&self, kind: Kind, dest: u32, octets: usize) -> bool {
        let header = Header { kind, ..Header::default() };
        self.transport.try_send(dest, header, Outgoing::Message(&message(self.pool.clone(), octets)))
    }

    /// Lengths of the received packets.
    fn receive(&mut self) -> Vec<usize> {
        let mut lens = Vec::new();
        self.packet_source.receive(100, &mut |_, _, body| {
            lens.push(match body {
                Incoming::Inline(_, len) => len,
                Incoming::Reference(payload) => payload.len(),
                Incoming::Nothing | Incoming::Lost(_) => 0,
            });
            Ok(())
        });
        lens
    }
}

#[test]
fn form_of_a_packet_survives_the_round_trip() {
    let mut known = Vec::new();
    for kind in [Kind::Eager, Kind::Synchronous, Kind::MatchAck] {
        for body in NOTHING..=PACKING {
            known.push(form(kind, body));
            assert_eq!(parse_form(form(kind, body)), Some((kind, body)));
        }
    }
    let unknown = (0..=ring::Form::MAX).filter(|form| !known.contains(form));
    assert_eq!(unknown.filter_map(parse_form).count(), 0);
}

#[test]
fn false_doorbells_are_ignored_and_true_ones_still_accepted() {
    let mut ranks = ranks(3);
    // All bits are set: its own, those of ranks that do not exist, and those of ranks that have sent nothing
    // yet.
    ranks[0].transport.doorbells(0, 0).store(u64::MAX, SeqCst);
    assert!(ranks[0].transport.is_ready());
    assert!(ranks[0].receive().is_empty());
    assert!(!ranks[0].transport.is_ready(), "it would never stop polling");
    for octets in [64, 5000] {
        assert!(ranks[1].send(0, octets));
        assert!(ranks[0].transport.is_ready());
        assert_eq!(ranks[0].receive(), [octets + 16]);
    }
    assert_eq!(ranks[0].transport.abort(), None);
}

#[test]
fn damaged_segment_ends_the_job_alone() {
    let mut seed = 1u64;
    for round in 0..300 {
        let mut ranks = ranks(2);
        assert!(ranks[1].send(0, 64) && ranks[1].send(0, 5000));
        if round % 2 == 0 {
            assert_eq!(ranks[0].receive(), [80, 5016]);
            assert!(ranks[1].send(0, 64) && ranks[0].send(1, 5000));
        }
        let words = ranks[1].transport.words();
        for _ in 0..1 + round {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // The targets are the tables and the queue, the values small and large numbers.
            let value = seed.rotate_left(7) >> (seed % 60);
            words[(seed >> 33) as usize % 4096].store(value, SeqCst);
        }
        for _ in 0..3 {
            // The rank neither panics, nor polls without end, nor reads memory outside its mappings.
            ranks[0].receive();
            ranks[0].send(1, 64);
            ranks[0].send(1, 5000);
            ranks[0].pool.used();
        }
        // The rank itself works as before.
        assert!(ranks[0].send(0, 64));
        assert_eq!(ranks[0].receive().first(), Some(&80));
    }
}

#[test]
fn invalid_stamp_of_a_segment_is_reported() {
    let mut ranks = ranks(2);
    assert!(ranks[1].send(0, 64));
    assert_eq!(ranks[0].receive(), [80]);
    assert!(ranks[1].send(0, 64));
    let queue = queue_at(2, 0) / 8;
    // The second record follows the two lines of the first.
    ranks[1].transport.words()[queue + 2 * LINE].store(12, SeqCst);
    assert!(ranks[0].receive().is_empty());
    let why = "the shared memory of rank 1 is damaged: the stamp of a record".to_owned();
    assert_eq!(ranks[0].transport.abort(), Some((0, why)));
    assert!(!ranks[0].transport.is_ready(), "it would never stop polling");
}

#[test]
fn cleared_doorbell_is_rung_again_by_a_parked_sender() {
    let mut ranks = ranks(3);
    assert!(ranks[1].send(0, 64));
    ranks[2].transport.doorbells(0, 0).store(0, SeqCst);
    assert!(ranks[0].receive().is_empty(), "no doorbell was rung");
    ranks[1].transport.park(Duration::from_millis(1), &mut || false);
    assert_eq!(ranks[0].receive(), [80]);
}

#[test]
fn finish_hidden_by_another_rank_is_noticed_after_a_park() {
    let mut ranks = ranks(3);
    assert!(ranks[1].send(0, 64));
    assert_eq!(ranks[0].receive(), [80]);
    let before = ranks[0].transport.epoch();
    ranks[1].transport.finish();
    ranks[2].transport.job.pages.common.words()[layout::EPOCH].store(0, SeqCst);
    assert_eq!(ranks[0].transport.epoch(), before, "it is hidden");
    ranks[0].transport.park(Duration::from_millis(1), &mut || false);
    assert_ne!(ranks[0].transport.epoch(), before);
    assert_eq!(ranks[0].transport.peer(1), PeerState::Finished);
}

#[test]
fn wake_of_a_running_progress_thread_ends_its_next_sleep() {
    let ranks = ranks(2);
    let mut futex = ranks[0].transport.progress_futex();
    assert!(!futex.sleep(Duration::from_millis(1)));
    ranks[1].transport.kick_progress_thread(0);
    assert!(futex.sleep(Duration::from_secs(30)), "at once");
    assert!(!futex.sleep(Duration::from_millis(1)), "once");
}

#[test]
fn synchronous_message_goes_by_reference_at_any_length() {
    let mut ranks = ranks(2);
    assert!(ranks[1].send_as(Kind::Synchronous, 0, 64) && ranks[1].send(0, 64));
    let mut kinds = Vec::new();
    ranks[0].packet_source.receive(9, &mut |_, header, body| {
        kinds.push((header.kind, matches!(body, Incoming::Reference(_))));
        Ok(())
    });
    assert_eq!(kinds, [(Kind::Synchronous, true), (Kind::Eager, false)]);
}

#[test]
fn short_synchronous_message_outside_the_segment_goes_inline_with_its_token() {
    let mut ranks = ranks(2);
    // The longest section of which the record has room for the token and the headers.
    for octets in [64, 1064] {
        let outside = message(HeapPool::new(1 << 20), octets);
        let header = Header { kind: Kind::Synchronous, token: 77, tag: 5, ..Header::default() };
        assert!(ranks[1].transport.try_send(0, header, Outgoing::Message(&outside)));
        let mut arrived = Vec::new();
        ranks[0].packet_source.receive(9, &mut |_, header, body| {
            let Incoming::Inline(words, len) = body else { panic!("it is outside the segment") };
            assert!((0..len / 8).all(|i| words[i].load(SeqCst) == outside.first_words()[i].load(SeqCst)));
            arrived.push((header.kind, header.token, header.tag, len));
            Ok(())
        });
        assert_eq!(arrived, [(Kind::Synchronous, 77, 5, octets + 16)]);
    }
    assert_eq!(ranks[1].transport.abort(), None);
}

#[test]
fn busy_sender_does_not_starve_other_sources() {
    let mut ranks = ranks(3);
    assert!(ranks[2].send(0, 128));
    let mut octets = Vec::new();
    for _ in 0..4 {
        assert!(ranks[1].send(0, 64));
        ranks[0].packet_source.receive(1, &mut |_, _, body| {
            let Incoming::Inline(_, len) = body else { panic!("it is small") };
            octets.push(len);
            Ok(())
        });
    }
    assert_eq!(octets, [80, 144, 80, 80]);
}

#[test]
fn packet_with_an_invalid_tag_is_damage() {
    let mut ranks = ranks(2);
    let header = Header { tag: -1, ..Header::default() };
    let letter = message(ranks[1].pool.clone(), 64);
    assert!(ranks[1].transport.try_send(0, header, Outgoing::Message(&letter)));
    assert!(ranks[0].receive().is_empty());
    let why = "the shared memory of rank 1 is damaged: the tag of a packet".to_owned();
    assert_eq!(ranks[0].transport.abort(), Some((0, why)));
}

#[test]
fn simultaneous_failures_leave_one_whole_text() {
    let texts = ["a", "b"].map(|letter| letter.repeat(layout::WHY_MAX));
    for _ in 0..300 {
        let rank = ranks(1).remove(0);
        let start = std::sync::Barrier::new(texts.len());
        std::thread::scope(|s| {
            for text in &texts {
                s.spawn(|| {
                    start.wait();
                    rank.transport.fail(text);
                    let (_, why) = rank.transport.abort().expect("it has failed");
                    assert!(texts.contains(&why), "{why}");
                });
            }
        });
    }
}

#[test]
fn first_reported_failed_peer_is_kept_in_the_segment() {
    let rank = ranks(2).remove(1);
    let file = rank.pool.share().expect("a descriptor");
    assert_eq!(reported_failed_peer(file.as_fd(), 2, 1), None);
    rank.pool.report_failed_peer(0);
    rank.pool.report_failed_peer(7);
    assert_eq!(reported_failed_peer(file.as_fd(), 2, 1), Some(0), "only the first is noted");
    assert_eq!(reported_failed_peer(file.as_fd(), 2, 0), None, "the segment of another rank");
    // A rank may write any value there.
    rank.pool.segment.words()[layout::FAILED_PEER].store(u64::MAX, SeqCst);
    assert_eq!(reported_failed_peer(file.as_fd(), 2, 1), None, "no rank has that number");
    assert!(!has_finished(file.as_fd(), 2, 1));
}
