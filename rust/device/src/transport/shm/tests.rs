//! Two ranks, of which one writes nonsense into the memory that it may write.

use super::*;
use crate::transport::{Inbox, Incoming};
use mpjdev_buffer::{Encoding, PlainSource, Type, WriteBuffer};

struct Rank {
    wire: Arc<ShmWire>,
    inbox: ShmInbox,
    pool: Arc<SegmentPool>,
}

fn ranks(count: usize) -> Vec<Rank> {
    let private: Arc<dyn SlabSource> = Arc::new(PlainSource);
    let pools: Vec<_> = (0..count)
        .map(|rank| create(rank as u32, count, 4 << 20, private.clone()).expect("memory"))
        .collect();
    let (_, common) = create_common(count).expect("memory");
    let connect = |(rank, pool): (usize, &Arc<SegmentPool>)| {
        let files = pools.iter().map(|pool| pool.share().expect("a descriptor")).collect();
        let job = Job { common: open_common(&common, count).expect("a page"), files };
        let (wire, inbox) = connect(rank as u32, &Config::default(), pool.clone(), Arc::new(job));
        Rank { wire, inbox, pool: pool.clone() }
    };
    pools.iter().enumerate().map(connect).collect()
}

impl Rank {
    fn send(&self, dest: u32, octets: usize) -> bool {
        let source: Arc<dyn SlabSource> = self.pool.clone();
        let mut buffer = WriteBuffer::new(source, octets as i64, Encoding::NATIVE).expect("a capacity");
        buffer.stage(Type::Long, (octets - 8) / 8).expect("room");
        buffer.commit();
        let message = buffer.finish().expect("memory").clone();
        self.wire.try_send(dest, Header::default(), Outgoing::Message(&message))
    }

    /// Octets of the packets that have come.
    fn receive(&mut self) -> Vec<usize> {
        let mut lens = Vec::new();
        self.inbox.receive(100, &mut |_, _, body| {
            lens.push(match body {
                Incoming::Inline(_, len) => len,
                Incoming::Reference(payload) => payload.len(),
                Incoming::Nothing => 0,
            });
        });
        lens
    }
}

#[test]
fn doorbells_that_mean_nothing_neither_end_nor_deafen_a_rank() {
    let mut ranks = ranks(3);
    let bell = ranks[0].wire.bell(0) + DOORBELLS;
    // All of them: its own, those of ranks that are not there, and those of ranks that have sent nothing yet.
    ranks[0].wire.job.common.words()[bell].store(u64::MAX, SeqCst);
    assert!(ranks[0].wire.is_ready());
    assert_eq!(ranks[0].receive(), []);
    assert!(!ranks[0].wire.is_ready(), "it would look for ever");
    for octets in [64, 5000] {
        assert!(ranks[1].send(0, octets));
        assert!(ranks[0].wire.is_ready());
        assert_eq!(ranks[0].receive(), [octets + 16]);
    }
    assert_eq!(ranks[0].wire.abort(), None);
}

#[test]
fn a_rank_that_scribbles_over_its_own_segment_ends_the_job_and_nothing_else() {
    let mut seed = 1u64;
    for round in 0..300 {
        let mut ranks = ranks(2);
        assert!(ranks[1].send(0, 64) && ranks[1].send(0, 5000));
        if round % 2 == 0 {
            assert_eq!(ranks[0].receive(), [80, 5016]);
            assert!(ranks[1].send(0, 64) && ranks[0].send(1, 5000));
        }
        let words = ranks[1].wire.words();
        for _ in 0..1 + round {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // The tables and the queue, and small and large numbers.
            let value = seed.rotate_left(7) >> (seed % 60);
            words[(seed >> 33) as usize % 4096].store(value, SeqCst);
        }
        for _ in 0..3 {
            // Whatever comes of it: no panic, no endless look, no memory beyond what is there.
            ranks[0].receive();
            ranks[0].send(1, 64);
            ranks[0].send(1, 5000);
            ranks[0].pool.used();
        }
        // And it is itself as before.
        assert!(ranks[0].send(0, 64));
        assert_eq!(ranks[0].receive().first(), Some(&80));
    }
}

#[test]
fn a_stamp_that_is_none_is_named() {
    let mut ranks = ranks(2);
    assert!(ranks[1].send(0, 64));
    assert_eq!(ranks[0].receive(), [80]);
    assert!(ranks[1].send(0, 64));
    let queue = ranks[1].wire.about(0, QUEUE).load(SeqCst) as usize / 8;
    // The second record follows the two lines of the first.
    ranks[1].wire.words()[queue + 2 * LINE].store(12, SeqCst);
    assert_eq!(ranks[0].receive(), []);
    let why = "the shared memory of rank 1 is damaged: the stamp of a record".to_owned();
    assert_eq!(ranks[0].wire.abort(), Some((0, why)));
    assert!(!ranks[0].wire.is_ready(), "it would look for ever");
}
