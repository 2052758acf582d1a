//! A bounded queue for many producers and one consumer, whose cells are filled and emptied in place.
//!
//! Each cell has a stamp: the number of laps in which it has been filled. A producer reserves a position by advancing the
//! tail, fills the cell and publishes it by its stamp; the consumer polls the stamp of its next cell only and never writes
//! to a cell. So a message of one producer costs one transfer of the cell's line. That cells are free again the consumer
//! says for a quarter of the queue at a time, by the head: producers read that line seldom.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, UnsafeCell};

#[derive(Debug)]
#[repr(C, align(64))]
struct Cell<T> {
    stamp: AtomicU32,
    value: UnsafeCell<T>,
}

/// The queue. `T` is a cell's content, which is overwritten in place and never dropped before the queue.
#[derive(Debug)]
pub struct Queue<T> {
    cells: Box<[Cell<T>]>,
    /// Positions reserved so far.
    tail: CachePadded<AtomicU64>,
    /// Positions whose cells are free again: told now and then.
    head: CachePadded<AtomicU64>,
    /// Positions taken so far: the consumer's, and read by the threads beside it.
    next: CachePadded<AtomicU64>,
}

// SAFETY: a cell's value is touched only by the producer that has reserved its position, before it publishes the
// stamp, and by the consumer after it has seen that stamp and before it tells by the head that the cell is free. Release
// and acquire of stamp and head order the two. A queue has one `Consumer`, which is borrowed mutably.
unsafe impl<T: Send> Sync for Queue<T> {}

/// The right to take from a queue: there is one, and taking needs it mutably.
#[derive(Debug)]
pub struct Consumer<T>(Arc<Queue<T>>);

impl<T: Default> Queue<T> {
    /// An empty queue of `cells` cells, a power of two, and the right to take from it.
    ///
    /// # Panics
    /// When `cells` is not a power of two.
    pub fn new(cells: usize) -> (Arc<Self>, Consumer<T>) {
        Self::starting_in_lap(0, cells)
    }

    /// As if `lap` laps were over: for tests of the stamps' wrap.
    ///
    /// # Panics
    /// When `cells` is not a power of two.
    #[doc(hidden)]
    pub fn starting_in_lap(lap: u64, cells: usize) -> (Arc<Self>, Consumer<T>) {
        assert!(cells.is_power_of_two(), "{cells} cells");
        let position = lap * cells as u64;
        let cell = || Cell { stamp: AtomicU32::new(lap as u32), value: UnsafeCell::new(T::default()) };
        let queue = Arc::new(Queue {
            cells: (0..cells).map(|_| cell()).collect(),
            tail: CachePadded::new(AtomicU64::new(position)),
            head: CachePadded::new(AtomicU64::new(position)),
            next: CachePadded::new(AtomicU64::new(position)),
        });
        (queue.clone(), Consumer(queue))
    }
}

impl<T> Queue<T> {
    /// Reserves a cell, lets `fill` overwrite it and publishes it; false when the queue is full.
    ///
    /// `fill` must not block: the consumer waits for cells in order. It is not called when the queue is full.
    #[inline]
    pub fn push(&self, fill: impl FnOnce(&mut T)) -> bool {
        let cells = self.cells.len() as i64;
        let mut tail = self.tail.load(Relaxed);
        loop {
            // The tail that was read may be older than the head, never the other way round.
            if tail.wrapping_sub(self.head.load(Acquire)) as i64 >= cells {
                return false;
            }
            match self.tail.compare_exchange_weak(tail, tail + 1, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => tail = now,
            }
        }
        let cell = self.cell(tail);
        let publish = Publish { cell, stamp: self.stamp(tail) };
        // SAFETY: the position is reserved and the cell free, see the type.
        cell.value.with_mut(|v| fill(unsafe { &mut *v }));
        drop(publish);
        true
    }

    /// Whether the consumer would find something, without any right to take it. May say so once too often while
    /// another thread takes, never once too seldom.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        let next = self.next.load(Relaxed);
        self.cell(next).stamp.load(Acquire).wrapping_sub(self.stamp(next)) as i32 >= 0
    }

    #[inline(always)]
    fn cell(&self, position: u64) -> &Cell<T> {
        &self.cells[(position & (self.cells.len() as u64 - 1)) as usize]
    }

    /// The stamp of the cell of this position once it is filled: the laps by then.
    #[inline(always)]
    fn stamp(&self, position: u64) -> u32 {
        ((position >> self.cells.len().trailing_zeros()) as u32).wrapping_add(1)
    }
}

impl<T> Consumer<T> {
    /// Lets `take` look at the oldest published cell and frees it; none when nothing is there.
    #[inline]
    pub fn pop<R>(&mut self, take: impl FnOnce(&mut T) -> R) -> Option<R> {
        let queue = &*self.0;
        let next = queue.next.load(Relaxed);
        let cell = queue.cell(next);
        if cell.stamp.load(Acquire) != queue.stamp(next) {
            return None;
        }
        let free = Free { queue, next: next + 1 };
        // SAFETY: the cell is published and this is the consumer, see the type.
        let result = cell.value.with_mut(|v| take(unsafe { &mut *v }));
        drop(free);
        Some(result)
    }
}

/// Moves past a cell even when the closure panics, so that the queue goes on.
struct Free<'a, T> {
    queue: &'a Queue<T>,
    next: u64,
}

impl<T> Drop for Free<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let Free { queue, next } = self;
        queue.next.store(*next, Relaxed);
        if *next - queue.head.load(Relaxed) >= (queue.cells.len() as u64 / 4).max(1) {
            queue.head.store(*next, Release);
        }
    }
}

/// Stores the stamp even when the closure in between panics, so that the queue goes on.
struct Publish<'a, T> {
    cell: &'a Cell<T>,
    stamp: u32,
}

impl<T> Drop for Publish<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cell.stamp.store(self.stamp, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_and_takes_again_after_one_is_gone() {
        let (queue, mut right) = Queue::<u32>::new(2);
        assert!(!queue.is_ready());
        assert!(queue.push(|v| *v = 1) && queue.push(|v| *v = 2));
        assert!(!queue.push(|_| panic!("must not be called")));
        assert!(queue.is_ready());
        assert_eq!(right.pop(|v| *v), Some(1));
        assert!(queue.push(|v| *v = 3));
        assert_eq!(right.pop(|v| *v), Some(2));
        assert_eq!(right.pop(|v| *v), Some(3));
        assert_eq!(right.pop(|v| *v), None);
    }

    #[test]
    fn each_producers_values_arrive_once_and_in_order() {
        const N: u64 = 20_000;
        let (queue, mut right) = Queue::<(u64, u64)>::new(8);
        std::thread::scope(|s| {
            for producer in 0..3 {
                let queue = &queue;
                s.spawn(move || {
                    for i in 0..N {
                        while !queue.push(|v| *v = (producer, i)) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0; 3];
            while next.iter().sum::<u64>() < 3 * N {
                match right.pop(|v| *v) {
                    Some((producer, i)) => {
                        assert_eq!(i, next[producer as usize]);
                        next[producer as usize] += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}
