//! Threads that take from a pool and give back to it.

use std::sync::Arc;

use loom::thread;

use mpjdev_buffer::{Slab, SlabError, SlabSource};
use mpjdev_transport::pool::HeapPool;

use crate::explore::explore;

/// Octets of a request that a slab of [`SMALL`] octets serves.
const SMALL_ROOM: usize = 64;
const SMALL: u64 = 128;
/// Octets of a request that a slab of [`LARGE`] octets serves.
const LARGE_ROOM: usize = 200;
const LARGE: u64 = 256;

/// Checks the invariant of a pool in use.
fn check(pool: &HeapPool, limit: u64) {
    assert!(pool.total() <= limit, "{pool:?}");
}

/// Checks that a pool without slabs in use is empty after a trim.
fn check_empty(pool: &HeapPool) {
    assert_eq!(pool.used(), 0, "{pool:?}");
    pool.trim();
    assert_eq!((pool.used(), pool.total()), (0, 0), "{pool:?}");
}

/// Takes a slab if there is one. A refusal must state the limit of the pool.
fn take(pool: &HeapPool, octets: usize, limit: u64) -> Option<Slab> {
    let taken = pool.take(octets);
    check(pool, limit);
    match taken {
        Ok(slab) => Some(slab),
        Err(error) => {
            assert!(
                matches!(error, SlabError::Limit { limit: reported, .. } if reported == limit),
                "{error}"
            );
            None
        }
    }
}

/// Two threads take from a pool with memory for one slab: they may hold it one after the other, never at
/// once.
#[test]
fn pool_hands_out_at_most_its_limit() {
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

/// Two threads take and return slabs of two classes while a third one frees the kept slabs.
#[test]
fn returned_slabs_are_counted_once() {
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

/// The pool frees a kept slab of one class for a request of another class, in any order of requests.
#[test]
fn kept_slab_is_freed_for_another_class() {
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
fn request_above_the_limit_fails_alone() {
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

/// Slabs for received messages may exceed the limit. A returned slab beyond it is freed and not kept.
#[test]
fn slabs_beyond_the_limit_are_not_kept() {
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
fn last_reference_returns_a_slab_once() {
    explore(2, || {
        let pool: Arc<HeapPool> = HeapPool::new(SMALL);
        let slab = pool.take(SMALL_ROOM).expect("room");
        let droppers = [slab.clone(), slab].map(|slab| thread::spawn(move || drop(slab)));
        let _ = take(&pool, SMALL_ROOM, SMALL);
        droppers.into_iter().for_each(|d| d.join().unwrap());
        check_empty(&pool);
    });
}
