//! The lines of a text capture, and the marks in hex text that state sender and receiver.
//!
//! ```text
//! client0 -> server   12  41555448 00000004 00000001   # a number of octets, and the octets
//! server -> client0    8  00000000 00000000
//! client0 -> server    0                               # the end of the direction
//! [  0.000s] host 1 -> host 0  handshake, 4 bytes: 00000001
//! [  0.050s] host 1 -> host 0  DATA pk_len=0 srqid=0   # a packet; the words are not read
//!     000 type,len     00000000 00000000               # offset, names of fields, octets
//!     008 src          00000000 00000000 00000000 7f000003 | 0000000000000db9
//!     128 data         65536 bytes, first 32: 00010203 ... last 8: 1112131415161718
//! [  0.151s] host 1 -> host 0  end of stream
//! ```

use super::item::{Direction, Endpoint, Part};

/// A line of a capture.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Octets of a startup connection; no octets are its end.
    Startup { direction: Direction, len: u64, octets: Words<'a> },
    /// The number that opens a connection between hosts.
    Handshake { direction: Direction, octets: Words<'a> },
    /// A packet begins.
    Packet { direction: Direction },
    /// Octets of its header.
    Header { offset: usize, octets: Words<'a> },
    /// The first octets of its data; and the number of all, if the capture leaves some out.
    Data { len: Option<u64>, octets: Words<'a> },
    /// The end of the direction.
    End { direction: Direction },
}

/// Words of hexadecimal digits; bars between them are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words<'a>(pub(super) &'a str);

impl Words<'_> {
    /// The octets, if all words are pairs of digits.
    pub(super) fn read(self) -> Option<Vec<u8>> {
        let mut octets = Vec::new();
        for word in self.0.split_whitespace().filter(|word| *word != "|") {
            let digits = word.bytes().map(|digit| (digit as char).to_digit(16).map(|digit| digit as u8));
            let digits: Vec<u8> = digits.collect::<Option<_>>()?;
            let (pairs, []) = digits.as_chunks::<2>() else { return None };
            octets.extend(pairs.iter().map(|[high, low]| high << 4 | low));
        }
        Some(octets)
    }
}

/// The meaning of a comment in hex text for the octets behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Sender and receiver.
    pub(super) direction: Direction,
    /// Whether they are the number that opens a connection.
    pub(super) is_handshake: bool,
    /// Whether they are a header without its data.
    pub(super) has_no_data: bool,
}

/// Reads a line of a capture, if it is one.
pub(super) fn line(text: &str) -> Option<Line<'_>> {
    if text.starts_with([' ', '\t']) {
        return row(text.trim());
    }
    match text.strip_prefix('[') {
        Some(stamped) => packet_line(stamped.split_once(']')?.1.trim_start()),
        None => startup_line(text),
    }
}

/// Reads a comment of hex text, such as `# client 0 to server`, `# host 1 to host 0: DataSync; its data are
/// left out`.
pub(super) fn mark(comment: &str) -> Option<Mark> {
    let text = comment.trim_start_matches('#').trim();
    let (ends, rest) = text.split_once(':').unwrap_or((text, ""));
    let (from, to) = ends.split_once(" to ").or_else(|| ends.split_once(" -> "))?;
    // A relay replaces the server.
    let from = if from.trim() == "relay" { Endpoint::Server } else { endpoint(from)? };
    let direction = Direction { from, to: endpoint(to)? };
    direction.part()?;
    let has_no_data = rest.trim_end().ends_with("data are left out");
    Some(Mark { direction, is_handshake: rest.trim_start().starts_with("handshake"), has_no_data })
}

/// `server`, `client 0`, `client0`, `host 1`.
fn endpoint(text: &str) -> Option<Endpoint> {
    let number = |name: &str| text.trim().strip_prefix(name)?.trim_start().parse::<u32>().ok();
    match text.trim() {
        "server" => Some(Endpoint::Server),
        _ => {
            number("client").map(|n| Endpoint::Client(Some(n))).or_else(|| number("host").map(Endpoint::Host))
        }
    }
}

/// The two ends in front, and what follows them.
fn ends(text: &str) -> Option<(Direction, &str)> {
    let (from, rest) = text.split_once(" -> ")?;
    let rest = rest.trim_start();
    // "client0" or "server" is a word, "host 0" are two.
    let words = if rest.starts_with("host ") { 2 } else { 1 };
    let end = rest.match_indices(' ').nth(words - 1).map_or(rest.len(), |(at, _)| at);
    let (to, rest) = rest.split_at(end);
    Some((Direction { from: endpoint(from)?, to: endpoint(to)? }, rest.trim_start()))
}

fn startup_line(text: &str) -> Option<Line<'_>> {
    let (direction, rest) = ends(text.split('#').next().unwrap_or(""))?;
    if direction.part() != Some(Part::Startup) {
        return None;
    }
    let (len, octets) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Line::Startup { direction, len: len.trim().parse().ok()?, octets: Words(octets.trim()) })
}

fn packet_line(text: &str) -> Option<Line<'_>> {
    let (direction, rest) = ends(text)?;
    if direction.part() != Some(Part::Packets) {
        return None;
    }
    if rest == "end of stream" {
        return Some(Line::End { direction });
    }
    match rest.strip_prefix("handshake") {
        Some(handshake) => Some(Line::Handshake { direction, octets: Words(handshake.split_once(':')?.1) }),
        None => Some(Line::Packet { direction }),
    }
}

fn row(text: &str) -> Option<Line<'_>> {
    let (offset, rest) = text.split_once(' ')?;
    let offset: usize = offset.parse().ok()?;
    let (name, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
    if name != "data" {
        return Some(Line::Header { offset, octets: Words(rest) });
    }
    let Some((len, rest)) = rest.trim_start().split_once(" bytes, first ") else {
        return Some(Line::Data { len: None, octets: Words(rest) });
    };
    let (_, octets) = rest.split_once(':')?;
    let octets = octets.split_once("...").map_or(octets, |(first, _)| first);
    Some(Line::Data { len: Some(len.parse().ok()?), octets: Words(octets) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: Direction = Direction { from: Endpoint::Host(1), to: Endpoint::Host(0) };

    fn octets(words: Words<'_>) -> Vec<u8> {
        words.read().expect("hexadecimal digits")
    }

    /// Proves each form of line, as the captures have them.
    #[test]
    fn lines_of_captures_are_read() {
        let direction = Direction { from: Endpoint::Client(Some(0)), to: Endpoint::Server };
        match line("client0 -> server   12  41555448 00000004 00000001   # AUTH len=4") {
            Some(Line::Startup { direction: found, len: 12, octets: words }) if found == direction => {
                assert_eq!(octets(words), [&b"AUTH"[..], &[0, 0, 0, 4, 0, 0, 0, 1]].concat());
            }
            other => panic!("{other:?}"),
        }
        let end = line("client0 -> server    0     # (connection closed)");
        assert_eq!(end, Some(Line::Startup { direction, len: 0, octets: Words("") }));
        let handshake = line("[  0.000s] host 1 -> host 0  handshake, 4 bytes: 00000001");
        assert_eq!(handshake, Some(Line::Handshake { direction: DOWN, octets: Words(" 00000001") }));
        let packet = line("[  0.050s] host 1 -> host 0  DATA pk_len=0 srqid=0 drqid=0");
        assert_eq!(packet, Some(Line::Packet { direction: DOWN }));
        assert_eq!(line("[ 10.151s] host 1 -> host 0  end of stream"), Some(Line::End { direction: DOWN }));
        match line("    008 src          00000000 7f000003 | 0000000000000db9") {
            Some(Line::Header { offset: 8, octets: words }) => {
                assert_eq!(octets(words), [0, 0, 0, 0, 0x7f, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x0d, 0xb9]);
            }
            other => panic!("{other:?}"),
        }
        match line("    128 data         11223344 05") {
            Some(Line::Data { len: None, octets: words }) => assert_eq!(octets(words), [17, 34, 51, 68, 5]),
            other => panic!("{other:?}"),
        }
        match line("    128 data         65536 bytes, first 32: 00010203 04 ... last 8: 1112131415161718") {
            Some(Line::Data { len: Some(65536), octets: words }) => {
                assert_eq!(octets(words), [0, 1, 2, 3, 4])
            }
            other => panic!("{other:?}"),
        }
        for other in ["", "00 01 02", "0000:  00", "# client 0 to server", "client0 -> host 1 5", "[x", "[x]"]
        {
            assert_eq!(line(other), None, "{other:?}");
        }
    }

    /// Proves which comments are marks, and that others are not.
    #[test]
    fn comments_name_sender_and_receiver() {
        let marked = |direction| Some(Mark { direction, is_handshake: false, has_no_data: false });
        let client = Endpoint::Client(Some(3));
        assert_eq!(mark("# client 3 to server"), marked(Direction { from: client, to: Endpoint::Server }));
        assert_eq!(mark("# client3 -> server"), marked(Direction { from: client, to: Endpoint::Server }));
        assert_eq!(mark("# relay to client 3"), marked(Direction { from: Endpoint::Server, to: client }));
        assert_eq!(mark("#host 1 to host 0: Data"), marked(DOWN));
        let left_out = mark("# host 1 to host 0: Data; its data are left out");
        assert_eq!(left_out, Some(Mark { direction: DOWN, is_handshake: false, has_no_data: true }));
        let handshake = mark("## host 1 to host 0: handshake");
        assert_eq!(handshake, Some(Mark { direction: DOWN, is_handshake: true, has_no_data: false }));
        for other in
            ["# LAM to itself", "# host 1 to server", "# type len", "# from 1 to 2", "# client to server"]
        {
            assert_eq!(mark(other), None, "{other:?}");
        }
    }
}
