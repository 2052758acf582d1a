//! Octets that wait until enough of them have come.

use std::collections::VecDeque;

use super::item::Place;

/// The octets of a stream that nothing has been made of yet, and where they stand in the recording.
#[derive(Debug, Default)]
pub(super) struct Held {
    octets: Vec<u8>,
    /// Octets at the front of `octets` that are taken already.
    taken: usize,
    /// Pieces that these came in: index in `octets`, and the place of that octet.
    pieces: VecDeque<(usize, Place)>,
}

impl Held {
    pub(super) fn push(&mut self, place: Place, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        self.forget_taken();
        let next = (self.octets.len(), place);
        // A stream of raw octets is one long piece.
        let goes_on = self.pieces.back().is_some_and(|(at, place)| place.plus(next.0 - at) == next.1);
        if !goes_on {
            self.pieces.push_back(next);
        }
        self.octets.extend_from_slice(octets);
    }

    fn forget_taken(&mut self) {
        self.octets.drain(..self.taken);
        if self.octets.is_empty() {
            self.pieces.clear();
        }
        for (at, place) in &mut self.pieces {
            // The first may have begun before what is left of it.
            *place = place.plus(self.taken.saturating_sub(*at));
            *at = at.saturating_sub(self.taken);
        }
        self.taken = 0;
    }

    /// What there is.
    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[self.taken..]
    }

    pub(super) fn len(&self) -> usize {
        self.octets.len() - self.taken
    }

    /// Where the first of these stands, or would.
    pub(super) fn place(&self) -> Place {
        let (at, place) = self.pieces.front().copied().unwrap_or_default();
        place.plus(self.taken - at.min(self.taken))
    }

    /// Where the end stands.
    pub(super) fn end(&self) -> Place {
        let (at, place) = self.pieces.back().copied().unwrap_or_default();
        place.plus(self.octets.len() - at)
    }

    /// Takes so many from the front, at most all there are.
    pub(super) fn take(&mut self, len: usize) {
        self.taken += len.min(self.len());
        while self.pieces.get(1).is_some_and(|(next, _)| *next <= self.taken) {
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64, line: u64) -> Place {
        Place { offset, line: Some(line) }
    }

    /// Proves that each octet keeps the place of the piece it came in, wherever it is taken.
    #[test]
    fn octets_know_where_they_stood() {
        let mut held = Held::default();
        held.push(at(100, 1), &[1, 2, 3, 4]);
        held.push(at(200, 7), &[5, 6]);
        assert_eq!(
            (held.place(), held.end(), held.octets()),
            (at(100, 1), at(202, 7), &[1, 2, 3, 4, 5, 6][..])
        );
        held.take(3);
        assert_eq!((held.place(), held.len()), (at(103, 1), 3));
        held.push(at(300, 9), &[7]);
        assert_eq!((held.place(), held.octets()), (at(103, 1), &[4, 5, 6, 7][..]));
        held.take(1);
        assert_eq!(held.place(), at(200, 7));
        held.take(2);
        assert_eq!(held.place(), at(300, 9));
        held.take(5);
        assert_eq!((held.place(), held.end(), held.len()), (at(301, 9), at(301, 9), 0));
        held.push(at(400, 12), &[8]);
        assert_eq!((held.place(), held.octets()), (at(400, 12), &[8][..]));
    }

    /// Proves that pieces that follow each other cost nothing but their octets.
    #[test]
    fn pieces_of_one_stream_become_one() {
        let mut held = Held::default();
        for k in 0..1000 {
            held.push(Place { offset: k, line: None }, &[0]);
        }
        assert_eq!((held.pieces.len(), held.len()), (1, 1000));
    }
}
