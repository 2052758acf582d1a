//! Division of a rank's output into lines, which are forwarded whole.

use bytes::{BufMut, Bytes, BytesMut};

/// The longest line that is kept until its end has arrived. A longer one is forwarded in pieces.
pub const LINE_MAX: usize = 64 << 10;

/// The octets of one stream of one rank.
///
/// [`handle_octets`](Self::handle_octets) returns the lines that are complete, each with its tag.
/// [`handle_end`](Self::handle_end) returns the rest when the stream is closed.
#[derive(Debug)]
pub struct Lines {
    tag: Bytes,
    /// The beginning of a line whose end has not arrived.
    partial: BytesMut,
    /// The last line was forwarded without its end.
    is_open: bool,
}

impl Lines {
    /// A stream whose lines begin with `tag`.
    pub fn new(tag: &str) -> Lines {
        Lines { tag: Bytes::copy_from_slice(tag.as_bytes()), partial: BytesMut::new(), is_open: false }
    }

    /// Changes the tag of the lines that follow.
    pub fn retag(&mut self, tag: &str) {
        self.tag = Bytes::copy_from_slice(tag.as_bytes());
    }

    /// Takes octets of the stream and returns what can be forwarded now.
    pub fn handle_octets(&mut self, octets: &[u8]) -> Bytes {
        let mut out = BytesMut::new();
        for part in octets.split_inclusive(|octet| *octet == b'\n') {
            self.partial.extend_from_slice(part);
            if part.ends_with(b"\n") || self.partial.len() >= LINE_MAX {
                self.forward(&mut out);
            }
        }
        out.freeze()
    }

    /// Returns the rest at the end of the stream, with a line feed behind it.
    pub fn handle_end(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        if !self.partial.is_empty() {
            self.forward(&mut out);
        }
        if self.is_open {
            out.put_u8(b'\n');
            self.is_open = false;
        }
        out.freeze()
    }

    fn forward(&mut self, out: &mut BytesMut) {
        if !self.is_open {
            out.extend_from_slice(&self.tag);
        }
        out.extend_from_slice(&self.partial);
        self.partial.clear();
        self.is_open = !out.ends_with(b"\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(octets: impl Into<Vec<u8>>) -> String {
        String::from_utf8(octets.into()).unwrap()
    }

    #[test]
    fn lines_are_forwarded_when_they_are_whole() {
        let mut lines = Lines::new("");
        assert_eq!(text(lines.handle_octets(b"one\ntw")), "one\n");
        assert_eq!(text(lines.handle_octets(b"o\n\nth")), "two\n\n");
        assert_eq!(text(lines.handle_end()), "th\n");
        assert_eq!(text(lines.handle_end()), "");
    }

    #[test]
    fn every_line_gets_its_tag_once() {
        let mut lines = Lines::new("[1] ");
        assert_eq!(text(lines.handle_octets(b"a\nb\nc")), "[1] a\n[1] b\n");
        assert_eq!(text(lines.handle_end()), "[1] c\n");
    }

    #[test]
    fn new_tag_applies_to_later_lines() {
        let mut lines = Lines::new("[0.1] ");
        assert_eq!(text(lines.handle_octets(b"a\nb")), "[0.1] a\n");
        lines.retag("[3] ");
        assert_eq!(text(lines.handle_octets(b"\n")), "[3] b\n");
    }

    #[test]
    fn long_line_without_an_end_is_forwarded_in_pieces() {
        let mut lines = Lines::new("> ");
        let mut all = Vec::new();
        for _ in 0..100 {
            all.extend(lines.handle_octets(&[b'x'; 1000]));
            assert!(lines.partial.len() < LINE_MAX + 1000);
        }
        all.extend(lines.handle_octets(b"\nnext\n"));
        all.extend(lines.handle_end());
        assert_eq!(text(all), format!("> {}\n> next\n", "x".repeat(100_000)));
    }
}
