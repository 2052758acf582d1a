//! Tests of two sites of two ranks each, without matching.

use std::time::{Duration, Instant};

use mpjdev_buffer::{Encoding, Message, WriteBuffer};

use super::*;
use crate::pool::HeapPool;
use crate::tcp::Terms;
use crate::{Header, Kind, Outgoing, PacketSource, PeerState, Transport};

/// Longer than any step of these tests takes.
const LONG: Duration = Duration::from_secs(60);

struct Rank {
    transport: Arc<HybridTransport>,
    packet_source: HybridSource,
    pool: Arc<SegmentPool>,
}

/// Ranks 0 and 1 of one site, 2 and 3 of another.
fn ranks() -> Vec<Rank> {
    let config = Config::default();
    let jobs = in_process::jobs(4, 2, &config, Terms::default(), 4 << 20, &HeapPool::new(1 << 30));
    let rank = |(job, pool): (Job, Arc<SegmentPool>)| {
        let (transport, packet_source, _) = connect(job, &config, pool.clone()).expect("connections");
        Rank { transport, packet_source, pool }
    };
    jobs.expect("shared memory and connections").into_iter().map(rank).collect()
}

impl Rank {
    fn send(&self, dest: u32, kind: Kind, token: u64) {
        let mut buffer = WriteBuffer::new(self.pool.clone(), 16, Encoding::NATIVE).expect("a capacity");
        // A message that is no longer than the octets of an RTS arrives as one.
        buffer.write(&[token.cast_signed()]).expect("room");
        let message: Message = buffer.finish().expect("memory").clone();
        let header = Header { kind, tag: 1, token, ..Header::default() };
        let body = if kind == Kind::MatchAck { Outgoing::Nothing } else { Outgoing::Message(&message) };
        assert!(self.transport.try_send(dest, header, body));
    }

    /// Source, kind and token of the next packet.
    fn next(&mut self) -> (u32, Kind, u64) {
        let begun = Instant::now();
        let mut found = None;
        while found.is_none() {
            assert!(begun.elapsed() < LONG, "no packet arrives");
            self.packet_source.receive(1, &mut |source, header, _| {
                found = Some((source, header.kind, header.token));
                Ok(())
            });
        }
        found.expect("a packet has arrived")
    }

    fn await_state(&mut self, what: impl Fn(&Rank) -> bool) {
        let begun = Instant::now();
        while !what(self) {
            assert!(begun.elapsed() < LONG, "it does not notice");
            self.packet_source.receive(1, &mut |source, _, _| panic!("rank {source} has sent nothing"));
        }
    }
}

#[test]
fn ranks_keep_their_world_numbers_over_both_transports() {
    let mut ranks = ranks();
    for dest in 0..4 {
        let site = dest / 2;
        for source in 0..4 {
            let transport = &ranks[source as usize].transport;
            assert_eq!((transport.is_remote(dest), transport.is_foreign(dest)), (source / 2 != site, false));
            ranks[source as usize].send(dest, Kind::Eager, 0);
            assert_eq!(ranks[dest as usize].next(), (source, Kind::Eager, 0));
        }
    }
}

#[test]
fn match_ack_uses_the_transport_of_its_message() {
    let mut ranks = ranks();
    // Two requests at two ranks may have the same number.
    for source in [2, 1] {
        ranks[source].send(3, Kind::Synchronous, 7);
        let (from, kind, token) = ranks[3].next();
        assert_eq!((from, kind), (source as u32, Kind::Synchronous));
        ranks[3].send(from, Kind::MatchAck, token);
        assert_eq!(ranks[source].next(), (3, Kind::MatchAck, 7));
    }
}

#[test]
fn finished_rank_is_known_intra_node_and_inter_node() {
    let mut ranks = ranks();
    let epochs: Vec<u32> = ranks.iter().map(|rank| rank.transport.epoch()).collect();
    assert_eq!(epochs, [0; 4]);
    ranks[1].transport.finish();
    for rank in [0, 2] {
        ranks[rank].await_state(|rank| rank.transport.peer(1) == PeerState::Finished);
        assert_ne!(ranks[rank].transport.epoch(), 0);
        assert_eq!(ranks[rank].transport.peer(3), PeerState::Alive);
        assert_eq!(ranks[rank].transport.abort(), None);
    }
}

#[test]
fn first_failure_reaches_all_ranks_and_later_ones_none() {
    let mut ranks = ranks();
    ranks[1].transport.fail("the disk is full");
    let expected = Some((1, "the disk is full".to_owned()));
    for rank in [0, 2, 3] {
        ranks[rank].await_state(|rank| rank.transport.abort() == expected);
        ranks[rank].transport.fail("a test fails the job");
    }
    assert!(ranks.iter().all(|rank| rank.transport.abort() == expected));
    assert!(ranks.iter().all(|rank| rank.transport.peer(3) == PeerState::Alive));
}

/// A rank may find the segment of an intra-node rank damaged while its program makes no call.
#[test]
fn inter_node_ranks_learn_of_a_failure_caused_by_an_intra_node_rank() {
    let mut ranks = ranks();
    ranks[0].transport.intra.fail("the shared memory of rank 1 is damaged");
    assert!(!ranks[0].transport.is_ready());
    ranks[3].await_state(|rank| {
        rank.transport.abort().is_some_and(|(rank, why)| rank == 0 && why.contains("damaged"))
    });
}
