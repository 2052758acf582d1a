//! Bounded queue for many producers and one consumer, whose cells are filled and emptied in place.
//!
//! Each cell has a stamp. In lap `n` (from 0) a cell is free while its stamp is `2n`, and full once it is
//! `2n + 1`; the consumer then makes it `2n + 2`, free for the next lap. A producer reserves a position by
//! advancing the tail, fills the cell and publishes it by its stamp, so a message of one producer costs one
//! transfer of the cell's line (decision 0005): the consumer polls the stamp of its next cell only.

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

/// Bounded queue. `T` is a cell's content, which is overwritten in place and never dropped before the queue.
#[derive(Debug)]
pub struct Queue<T> {
    cells: Box<[Cell<T>]>,
    tail: CachePadded<AtomicU64>,
    head: CachePadded<AtomicU64>,
}

// SAFETY: a cell's value is accessed only by the producer that has reserved its position, before it publishes
// the stamp, and by the consumer after it has seen that stamp and before it frees the cell. The stamp's
// release and acquire order the two. A queue has one `Consumer`, which is borrowed mutably.
unsafe impl<T: Send> Sync for Queue<T> {}

/// The right to take from a queue. It is unique, and taking borrows it mutably.
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

    /// As [`new`](Self::new), after `lap` laps: for tests of the stamps' wrap.
    ///
    /// # Panics
    /// When `cells` is not a power of two.
    #[doc(hidden)]
    pub fn starting_in_lap(lap: u64, cells: usize) -> (Arc<Self>, Consumer<T>) {
        assert!(cells.is_power_of_two(), "{cells} cells");
        let position = lap * cells as u64;
        let free = (lap as u32).wrapping_mul(2);
        let cell = || Cell { stamp: AtomicU32::new(free), value: UnsafeCell::new(T::default()) };
        let queue = Arc::new(Queue {
            cells: (0..cells).map(|_| cell()).collect(),
            tail: CachePadded::new(AtomicU64::new(position)),
            head: CachePadded::new(AtomicU64::new(position)),
        });
        (queue.clone(), Consumer(queue))
    }
}

impl<T> Queue<T> {
    /// Reserves a cell, lets `fill` overwrite it and publishes it. Returns false when the queue is full.
    ///
    /// `fill` must not block: the consumer waits for cells in order. It is not called when the queue is full.
    #[inline]
    pub fn push(&self, fill: impl FnOnce(&mut T)) -> bool {
        let mask = self.cells.len() as u64 - 1;
        let mut tail = self.tail.load(Relaxed);
        loop {
            let cell = &self.cells[(tail & mask) as usize];
            let free = self.free_stamp(tail);
            let stamp = cell.stamp.load(Acquire);
            if stamp == free {
                match self.tail.compare_exchange_weak(tail, tail + 1, Relaxed, Relaxed) {
                    Ok(_) => {
                        let publish = Publish { cell, stamp: free.wrapping_add(1) };
                        // SAFETY: the position is reserved and the cell free, see the type.
                        cell.value.with_mut(|v| fill(unsafe { &mut *v }));
                        drop(publish);
                        return true;
                    }
                    Err(now) => tail = now,
                }
            } else if (stamp.wrapping_sub(free) as i32) < 0 {
                return false;
            } else {
                tail = self.tail.load(Relaxed);
            }
        }
    }

    /// Whether the consumer would find a cell. Needs no right to take it.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        loop {
            let head = self.head.load(Relaxed);
            let cell = &self.cells[(head & (self.cells.len() as u64 - 1)) as usize];
            let free = self.free_stamp(head);
            let stamp = cell.stamp.load(Acquire);
            match stamp.wrapping_sub(free) as i32 {
                1 => return true,
                // The head that was read is newer than the stamp, and the next cell is not published yet.
                ..=0 => return false,
                _ => {}
            }
            // Another thread has emptied the cell, and the head that was read is older than that: the load of
            // the stamp made the newer head visible.
        }
    }

    /// The stamp of the free cell for this position: twice its lap.
    #[inline(always)]
    fn free_stamp(&self, position: u64) -> u32 {
        ((position >> self.cells.len().trailing_zeros()) as u32).wrapping_mul(2)
    }
}

impl<T> Consumer<T> {
    /// Passes the oldest published cell to `take` and frees it. `None` when the queue is empty.
    #[inline]
    pub fn pop<R>(&mut self, take: impl FnOnce(&mut T) -> R) -> Option<R> {
        let queue = &*self.0;
        let head = queue.head.load(Relaxed);
        let cell = &queue.cells[(head & (queue.cells.len() as u64 - 1)) as usize];
        let full = queue.free_stamp(head).wrapping_add(1);
        if cell.stamp.load(Acquire) != full {
            return None;
        }
        queue.head.store(head + 1, Relaxed);
        let release = Publish { cell, stamp: full.wrapping_add(1) };
        // SAFETY: the cell is published and this is the consumer, see the type.
        let result = cell.value.with_mut(|v| take(unsafe { &mut *v }));
        drop(release);
        Some(result)
    }
}

/// Stores the stamp even when the closure in between panics, so that the queue stays usable.
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
    fn full_queue_refuses_until_a_value_is_popped() {
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
