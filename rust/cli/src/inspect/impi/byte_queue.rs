//! The octets of one direction that are not dissected yet, and their locations.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::item::Location;

/// A queue of octets that knows the offset of each one in the recording.
#[derive(Debug, Default)]
pub(super) struct ByteQueue {
    octets: BytesMut,
    /// The pieces of `octets`: octets left of each, and the offset of the first of them.
    pieces: VecDeque<(usize, Location)>,
    /// The location behind the last octet.
    end: Location,
}

impl ByteQueue {
    pub(super) fn push(&mut self, location: Location, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        match self.pieces.back_mut() {
            // Adjacent pieces become one, so a long stream in short rows costs its octets alone.
            Some((len, first)) if first.plus(*len) == location => *len += octets.len(),
            _ => self.pieces.push_back((octets.len(), location)),
        }
        self.end = location.plus(octets.len());
        self.octets.extend_from_slice(octets);
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }

    /// The location of the first octet.
    pub(super) fn location(&self) -> Location {
        self.pieces.front().map_or(self.end, |(_, location)| *location)
    }

    /// The location behind the last octet.
    pub(super) fn end(&self) -> Location {
        self.end
    }

    /// Removes the first `len` octets, at most all.
    pub(super) fn take(&mut self, len: usize) -> Bytes {
        let len = len.min(self.octets.len());
        let mut left = len;
        while let Some((piece_len, location)) = self.pieces.front_mut() {
            if left < *piece_len {
                *piece_len -= left;
                *location = location.plus(left);
                break;
            }
            left -= *piece_len;
            self.pieces.pop_front();
        }
        self.octets.copy_to_bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64, line: u64) -> Location {
        Location { offset, line: Some(line) }
    }

    /// Proves that each octet keeps the location of its piece, for any number of octets taken at once.
    #[test]
    fn octets_keep_their_places() {
        let mut queue = ByteQueue::default();
        queue.push(at(100, 1), &[1, 2, 3, 4]);
        queue.push(at(200, 7), &[5, 6]);
        assert_eq!((queue.location(), queue.end()), (at(100, 1), at(202, 7)));
        assert_eq!(queue.octets(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(queue.take(3), [1, 2, 3][..]);
        assert_eq!((queue.location(), queue.len()), (at(103, 1), 3));
        queue.push(at(300, 9), &[7]);
        assert_eq!((queue.location(), queue.octets()), (at(103, 1), &[4, 5, 6, 7][..]));
        queue.take(1);
        assert_eq!(queue.location(), at(200, 7));
        queue.take(2);
        assert_eq!(queue.location(), at(300, 9));
        assert_eq!(queue.take(5), [7][..]);
        assert_eq!((queue.location(), queue.end(), queue.len()), (at(301, 9), at(301, 9), 0));
        queue.push(at(400, 12), &[8]);
        assert_eq!((queue.location(), queue.octets()), (at(400, 12), &[8][..]));
    }

    /// Proves that adjacent pieces cost no more than their octets.
    #[test]
    fn adjacent_pieces_become_one() {
        let mut queue = ByteQueue::default();
        for offset in 0..1000 {
            queue.push(Location { offset, line: None }, &[0]);
        }
        assert_eq!((queue.pieces.len(), queue.len()), (1, 1000));
    }
}
