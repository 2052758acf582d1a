//! Tests of slabs on loan to a rank that finishes, or ends.

use super::*;
use crate::Payload;

impl Rank {
    /// Payloads of the received packets.
    fn receive_slabs(&mut self) -> Vec<Payload> {
        let mut slabs = Vec::new();
        self.packet_source.receive(usize::MAX, &mut |_, _, body| {
            let Incoming::Reference(payload) = body else { panic!("it goes by reference") };
            slabs.push(payload);
            Ok(())
        });
        slabs
    }
}

#[test]
fn slabs_on_loan_to_a_dead_rank_are_reclaimed() {
    let (mut ranks, status_page) = ranks_and_status_page(2);
    assert!((0..5).all(|_| ranks[0].send(1, 5000)));
    assert_eq!(ranks[1].receive().len(), 5);
    assert!((0..5).all(|_| ranks[0].send(1, 5000)));
    assert!(ranks[0].pool.used() >= 5 * 5000);
    status_page.record_death(1, Death::Killed(9));
    assert_eq!(
        ranks[0].transport.peer(1),
        PeerState::Failed("its process was killed by signal 9".to_owned())
    );
    assert_eq!(ranks[0].pool.used(), 0);
}

/// The return ring of a dead rank is not read again: its counts no longer agree with the loans.
#[test]
fn packets_to_a_dead_rank_are_harmless_after_its_loans_were_reclaimed() {
    let (mut ranks, status_page) = ranks_and_status_page(2);
    assert!((0..100).all(|_| ranks[0].send(1, 1100)));
    assert_eq!(ranks[1].receive_slabs().len(), 100);
    status_page.record_death(1, Death::Killed(9));
    assert_eq!(ranks[0].pool.used(), 0, "all loans are ended");
    // These sends had passed their checks before the death was seen.
    assert!((0..80).all(|_| ranks[0].send(1, 1100)));
    assert_eq!(ranks[0].transport.abort(), None);
    assert_eq!(ranks[0].pool.used(), 0, "as those that follow");
}

#[test]
fn slabs_on_loan_to_a_finished_rank_are_reclaimed_when_its_process_ends() {
    let (mut ranks, status_page) = ranks_and_status_page(2);
    assert!((0..5).all(|_| ranks[0].send(1, 5000)));
    let held = ranks[1].receive_slabs();
    assert!((0..5).all(|_| ranks[0].send(1, 5000)));
    ranks[1].transport.finish();
    let used = ranks[0].pool.used();
    assert!(used >= 10 * 5000, "{used} octets: it may still read them");
    status_page.note_end(1);
    assert_eq!(ranks[0].pool.used(), 0);
    assert_eq!(ranks[0].transport.peer(1), PeerState::Finished, "it has not failed");
    assert_eq!(ranks[0].transport.abort(), None);
    drop(held);
}

#[test]
fn slabs_in_unread_packets_are_reclaimed_when_the_receiver_releases_its_memory() {
    let mut ranks = ranks(3);
    assert!(ranks[0].send(1, 5000));
    let held = ranks[1].receive_slabs();
    // Rank 1 no longer polls the queue of rank 0, and never polled that of rank 2.
    assert!((0..5).all(|_| ranks[0].send(1, 5000) && ranks[2].send(1, 5000)));
    let ended = ranks.remove(1);
    ended.transport.finish();
    drop(ended);
    assert_eq!(ranks[1].pool.used(), 0, "nothing of rank 2 is held");
    let used = ranks[0].pool.used();
    assert!(used >= 6 * 5000, "{used} octets: one slab is held, and its rank reports a release of all only");
    drop(held);
    assert_eq!(ranks[0].pool.used(), 0);
}

#[test]
fn slabs_of_a_rank_that_released_its_memory_stay_readable() {
    let mut ranks = ranks(2);
    assert!((0..5).all(|_| ranks[0].send(1, 5000)));
    let held = ranks[1].receive_slabs();
    let slab = |payload: &Payload| payload.clone().into_physical().expect("it is all here").0;
    let before: Vec<u64> = held.iter().map(|payload| slab(payload).words()[1].load(SeqCst)).collect();
    let pool = ranks[0].pool.clone();
    let ended = ranks.remove(0);
    ended.transport.finish();
    drop(ended);
    // A holder of the pool gets no memory from it that another rank still reads.
    let fresh: Vec<_> = std::iter::from_fn(|| pool.own(5000)).collect();
    fresh.iter().for_each(|slab| slab.words().iter().for_each(|word| word.store(u64::MAX, SeqCst)));
    let after: Vec<u64> = held.iter().map(|payload| slab(payload).words()[1].load(SeqCst)).collect();
    assert_eq!(before, after);
}
