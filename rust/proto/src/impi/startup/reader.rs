//! Pieces of a stream, each of a length that is set before.

use bytes::Bytes;

/// Collects octets into pieces.
///
/// Memory is allocated for received octets, never for announced ones.
#[derive(Debug)]
pub(super) struct Reader {
    piece: Vec<u8>,
    wanted_len: usize,
}

impl Reader {
    /// Wants `wanted_len` octets first.
    pub(super) fn new(wanted_len: usize) -> Reader {
        Reader { piece: Vec::new(), wanted_len }
    }

    /// Wants `len` octets next; the caller checks the limit.
    pub(super) fn want(&mut self, len: usize) {
        self.wanted_len = len;
    }

    /// Whether no octet of the next piece was received.
    pub(super) fn is_empty(&self) -> bool {
        self.piece.is_empty()
    }

    /// Takes octets from the front of `octets`; returns the piece once it is complete.
    pub(super) fn take(&mut self, octets: &mut &[u8]) -> Option<Bytes> {
        let missing_len = self.wanted_len - self.piece.len();
        let (taken, left) = octets.split_at(missing_len.min(octets.len()));
        self.piece.extend_from_slice(taken);
        *octets = left;
        (self.piece.len() == self.wanted_len).then(|| {
            let mut piece = std::mem::take(&mut self.piece);
            // Pieces are counted by their octets, and some are kept for long.
            piece.shrink_to_fit();
            piece.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the pieces do not depend on how the stream is cut, and that no octet beyond them is taken.
    #[test]
    fn stream_cut_anywhere_gives_the_same_pieces() {
        let stream: Vec<u8> = (0..30).collect();
        for cut in 1..=stream.len() {
            let mut reader = Reader::new(8);
            let mut pieces = Vec::new();
            for mut part in stream.chunks(cut) {
                while let Some(piece) = reader.take(&mut part) {
                    reader.want(if piece.len() == 8 {
                        0
                    } else if piece.is_empty() {
                        5
                    } else {
                        8
                    });
                    pieces.push(piece);
                }
                assert!(part.is_empty());
            }
            let wanted = [&stream[..8], &[], &stream[8..13], &stream[13..21], &[], &stream[21..26]];
            assert_eq!(pieces, wanted, "cut every {cut}");
            assert_eq!(reader.piece, stream[26..]);
        }
    }

    /// Proves that an announced length allocates nothing.
    #[test]
    fn reader_allocates_for_received_octets_only() {
        let mut reader = Reader::new(usize::MAX);
        assert_eq!(reader.take(&mut &[1, 2, 3][..]), None);
        assert!(reader.piece.capacity() < 64);
    }
    #[test]
    fn piece_has_no_more_memory_than_octets() {
        let mut reader = Reader::new(33);
        assert_eq!(reader.take(&mut &[0; 32][..]), None);
        let piece = reader.take(&mut &[0][..]).expect("all octets");
        assert_eq!(Vec::from(piece).capacity(), 33);
    }
}
