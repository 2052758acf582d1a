//! Threads that take from a pool and give back to it.

use std::sync::Arc;

use loom::thread;

use mpjdev_buffer::{Slab, SlabError, SlabSource};
use mpjdev_transport::pool::HeapPool;

use crate::explore;

/// Asked for so many octets, the pool hands out a slab that counts [`SMALL`].
const SMALL_ROOM: usize = 64;
const SMALL: u64 = 128;
/// And so many for a larger class.
const LARGE_ROOM: usize = 200;
const LARGE: u64 = 256;

/// What holds at any time.
fn check(pool: &HeapPool, limit: u64) {
    assert!(pool.total() <= limit, "{pool:?}");
}

/// What holds when nothing is in use.
fn check_empty(pool: &HeapPool) {
    assert_eq!(pool.used(), 0, "{pool:?}");
    pool.trim();
    assert_eq!((pool.used(), pool.total()), (0, 0), "{pool:?}");
}

/// Takes a slab if there is one; who gets none is told the truth.
fn take(pool: &HeapPool, octets: usize, limit: u64) -> Option<Slab> {
    let taken = pool.take(octets);
    check(pool, limit);
    match taken {
        Ok(slab) => Some(slab),
        Err(error) => {
            assert!(matches!(error, SlabError::Limit { limit: told, .. } if told == limit), "{error}");
            None
        }
    }
}

/// Room for one slab and two threads that want it: one after the other they may both have it, never at once.
#[test]
fn a_pool_hands_out_no_more_than_its_limit() {
    explore(3, || {
        let pool = HeapPool::new(SMALL);
        let other = pool.clone();
        let thread = thread::spawn(move || take(&other, SMALL_ROOM, SMALL));
        let own = take(&pool, SMALL_ROOM, SMALL);
        let theirs = thread.join().unwrap();
        assert_eq!([&own, &theirs].into_iter().flatten().count(), 1);
        assert_eq!(pool.used(), SMALL);
        drop((own, theirs));
        check_empty(&pool);
    });
}

/// Slabs of two classes go around while a third thread frees what is kept.
#[test]
fn what_is_given_back_is_counted_once() {
    explore(2, || {
        let pool = HeapPool::new(SMALL + LARGE);
        let threads = [SMALL_ROOM, LARGE_ROOM].map(|octets| {
            let pool = pool.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    assert!(take(&pool, octets, SMALL + LARGE).is_some(), "there is room for both");
                }
            })
        });
        pool.trim();
        check(&pool, SMALL + LARGE);
        threads.into_iter().for_each(|t| t.join().unwrap());
        let all = [SMALL_ROOM, LARGE_ROOM].map(|octets| take(&pool, octets, SMALL + LARGE));
        assert_eq!(pool.used(), SMALL + LARGE, "what is used again is not kept any more");
        drop(all);
        check_empty(&pool);
    });
}

/// A kept slab of one class makes room for another class, whoever asks first.
#[test]
fn what_is_kept_makes_room_while_others_take() {
    explore(2, || {
        let pool = HeapPool::new(LARGE);
        drop(pool.take(SMALL_ROOM).expect("room"));
        let threads = [SMALL_ROOM, LARGE_ROOM].map(|octets| {
            let pool = pool.clone();
            thread::spawn(move || take(&pool, octets, LARGE).is_some())
        });
        let got = threads.map(|t| t.join().unwrap());
        assert!(got.contains(&true), "each was refused for the other one's sake");
        check_empty(&pool);
    });
}

#[test]
fn a_request_that_does_not_fit_fails_no_other_one() {
    explore(3, || {
        let pool = HeapPool::new(LARGE - 1);
        let other = pool.clone();
        let thread =
            thread::spawn(move || assert_eq!(take(&other, LARGE_ROOM, LARGE - 1).map(|s| s.len()), None));
        assert!(take(&pool, SMALL_ROOM, LARGE - 1).is_some());
        thread.join().unwrap();
        check_empty(&pool);
    });
}

/// What has arrived already may go past the limit; given back, it is freed and not kept.
#[test]
fn what_went_past_the_limit_is_not_kept() {
    explore(3, || {
        let pool = HeapPool::new(SMALL);
        let other = pool.clone();
        let thread =
            thread::spawn(move || drop(other.take_arrived(SMALL_ROOM).expect("past the limit if need be")));
        drop(pool.take_arrived(SMALL_ROOM).expect("past the limit if need be"));
        thread.join().unwrap();
        check(&pool, SMALL);
        check_empty(&pool);
    });
}

/// Two threads drop the two references to a slab, and a third one waits for its memory.
#[test]
fn the_last_reference_gives_a_slab_back_once() {
    explore(2, || {
        let pool: Arc<HeapPool> = HeapPool::new(SMALL);
        let slab = pool.take(SMALL_ROOM).expect("room");
        let droppers = [slab.clone(), slab].map(|slab| thread::spawn(move || drop(slab)));
        let _ = take(&pool, SMALL_ROOM, SMALL);
        droppers.into_iter().for_each(|d| d.join().unwrap());
        check_empty(&pool);
    });
}
