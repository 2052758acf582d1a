//! Pieces of a stream, each of a length that its reader names before.

/// Gathers octets into the piece that is wanted next.
///
/// Memory is taken for octets that have come, never for those that a length promises.
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

    /// Whether no octet of the next piece has come.
    pub(super) fn is_empty(&self) -> bool {
        self.piece.is_empty()
    }

    /// Takes what it wants from the front of `octets`; gives the piece once it is whole.
    pub(super) fn take(&mut self, octets: &mut &[u8]) -> Option<Vec<u8>> {
        let missing_len = self.wanted_len - self.piece.len();
        let (taken, left) = octets.split_at(missing_len.min(octets.len()));
        self.piece.extend_from_slice(taken);
        *octets = left;
        (self.piece.len() == self.wanted_len).then(|| std::mem::take(&mut self.piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that pieces come out alike however the stream is cut, and that nothing is taken beyond them.
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

    /// Proves that a promised length costs nothing.
    #[test]
    fn reader_allocates_for_received_octets_only() {
        let mut reader = Reader::new(usize::MAX);
        assert_eq!(reader.take(&mut &[1, 2, 3][..]), None);
        assert!(reader.piece.capacity() < 64);
    }
}
