//! The lines of a text capture, and the marks in hex text that say who speaks.
//!
//! ```text
//! client0 -> server   12  41555448 00000004 00000001   # said to the server, so many octets
//! server -> client0    8  00000000 00000000
//! client0 -> server    0                               # nothing more
//! [  0.000s] host 1 -> host 0  handshake, 4 bytes: 00000001
//! [  0.050s] host 1 -> host 0  DATA pk_len=0 srqid=0   # a packet, whose header and data follow; the words are not read
//!     000 type,len     00000000 00000000               # offset, names of fields, octets
//!     008 src          00000000 00000000 00000000 7f000003 | 0000000000000db9
//!     128 data         65536 bytes, first 32: 00010203 ... last 8: 1112131415161718
//! [  0.151s] host 1 -> host 0  end of stream
//! ```

use super::item::{Party, Way};

/// A line of a capture.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Octets of a startup connection; none is its end.
    Said { way: Way, len: u64, octets: Words<'a> },
    /// What the host says that opens a connection.
    Handshake { way: Way, octets: Words<'a> },
    /// A packet begins.
    Packet { way: Way },
    /// Octets of its header.
    Header { offset: usize, octets: Words<'a> },
    /// Octets of its data, and how many it has: more than these where the capture leaves some out.
    Data { len: Option<u64>, octets: Words<'a> },
    /// The host says nothing more.
    End { way: Way },
}

/// Words of hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words<'a>(pub(super) &'a str);

impl Words<'_> {
    /// Their octets, if they are such; bars are skipped.
    pub(super) fn read(self, octets: &mut Vec<u8>) -> Option<()> {
        let digits = self.0.split_whitespace().filter(|word| *word != "|");
        for word in digits {
            if !word.len().is_multiple_of(2) || !word.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            let pairs = (0..word.len()).step_by(2).map(|at| u8::from_str_radix(&word[at..at + 2], 16));
            octets.extend(pairs.flatten());
        }
        Some(())
    }
}

/// What a comment in hex text says of the octets behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Who speaks to whom.
    pub(super) way: Way,
    /// The number of a host that opens a connection.
    pub(super) is_handshake: bool,
    /// A header without the data that it announces.
    pub(super) has_no_data: bool,
}

/// Reads a line of a capture, if it is one.
pub(super) fn line(text: &str) -> Option<Line<'_>> {
    if text.starts_with([' ', '\t']) {
        return row(text.trim());
    }
    match text.strip_prefix('[') {
        Some(stamped) => packet_line(stamped.split_once(']')?.1.trim_start()),
        None => said(text),
    }
}

/// Reads a comment of hex text: `# client 0 to server`, `# host 1 to host 0: DataSync; its data are left out`.
pub(super) fn mark(comment: &str) -> Option<Mark> {
    let text = comment.trim_start_matches('#').trim();
    let (ends, rest) = text.split_once(':').unwrap_or((text, ""));
    let (from, to) = ends.split_once(" to ").or_else(|| ends.split_once(" -> "))?;
    // A relay speaks in the server's place.
    let from = if from.trim() == "relay" { Party::Server } else { party(from)? };
    let way = Way { from, to: party(to)? };
    way.part()?;
    let has_no_data = rest.trim_end().ends_with("data are left out");
    Some(Mark { way, is_handshake: rest.trim_start().starts_with("handshake"), has_no_data })
}

/// `server`, `client 0`, `client0`, `host 1`.
fn party(text: &str) -> Option<Party> {
    let number = |name: &str| text.trim().strip_prefix(name)?.trim_start().parse::<u32>().ok();
    match text.trim() {
        "server" => Some(Party::Server),
        _ => number("client").map(|n| Party::Client(Some(n))).or_else(|| number("host").map(Party::Host)),
    }
}

/// The two ends in front, and what follows them.
fn ends(text: &str) -> Option<(Way, &str)> {
    let (from, rest) = text.split_once(" -> ")?;
    let rest = rest.trim_start();
    // "client0" or "server" is a word, "host 0" are two.
    let words = if rest.starts_with("host ") { 2 } else { 1 };
    let end = rest.match_indices(' ').nth(words - 1).map_or(rest.len(), |(at, _)| at);
    let (to, rest) = rest.split_at(end);
    Some((Way { from: party(from)?, to: party(to)? }, rest.trim_start()))
}

fn said(text: &str) -> Option<Line<'_>> {
    let (way, rest) = ends(text.split('#').next().unwrap_or(""))?;
    if !matches!((way.from, way.to), (Party::Server, Party::Client(_)) | (Party::Client(_), Party::Server)) {
        return None;
    }
    let (len, octets) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Line::Said { way, len: len.trim().parse().ok()?, octets: Words(octets.trim()) })
}

fn packet_line(text: &str) -> Option<Line<'_>> {
    let (way, rest) = ends(text)?;
    if !matches!((way.from, way.to), (Party::Host(_), Party::Host(_))) {
        return None;
    }
    if rest == "end of stream" {
        return Some(Line::End { way });
    }
    match rest.strip_prefix("handshake") {
        Some(handshake) => Some(Line::Handshake { way, octets: Words(handshake.split_once(':')?.1) }),
        None => Some(Line::Packet { way }),
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

    const DOWN: Way = Way { from: Party::Host(1), to: Party::Host(0) };

    fn octets(words: Words<'_>) -> Vec<u8> {
        let mut octets = Vec::new();
        words.read(&mut octets).expect("hexadecimal digits");
        octets
    }

    /// Proves each form of line, as the captures have them.
    #[test]
    fn lines_of_captures_are_read() {
        let way = Way { from: Party::Client(Some(0)), to: Party::Server };
        match line("client0 -> server   12  41555448 00000004 00000001   # AUTH len=4") {
            Some(Line::Said { way: found, len: 12, octets: words }) if found == way => {
                assert_eq!(octets(words), [&b"AUTH"[..], &[0, 0, 0, 4, 0, 0, 0, 1]].concat());
            }
            other => panic!("{other:?}"),
        }
        let end = line("client0 -> server    0     # (connection closed)");
        assert_eq!(end, Some(Line::Said { way, len: 0, octets: Words("") }));
        let handshake = line("[  0.000s] host 1 -> host 0  handshake, 4 bytes: 00000001");
        assert_eq!(handshake, Some(Line::Handshake { way: DOWN, octets: Words(" 00000001") }));
        let packet = line("[  0.050s] host 1 -> host 0  DATA pk_len=0 srqid=0 drqid=0");
        assert_eq!(packet, Some(Line::Packet { way: DOWN }));
        assert_eq!(line("[ 10.151s] host 1 -> host 0  end of stream"), Some(Line::End { way: DOWN }));
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
    fn comments_may_say_who_speaks() {
        let marked = |way| Some(Mark { way, is_handshake: false, has_no_data: false });
        let client = Party::Client(Some(3));
        assert_eq!(mark("# client 3 to server"), marked(Way { from: client, to: Party::Server }));
        assert_eq!(mark("# client3 -> server"), marked(Way { from: client, to: Party::Server }));
        assert_eq!(mark("# relay to client 3"), marked(Way { from: Party::Server, to: client }));
        assert_eq!(mark("#host 1 to host 0: Data"), marked(DOWN));
        let left_out = mark("# host 1 to host 0: Data; its data are left out");
        assert_eq!(left_out, Some(Mark { way: DOWN, is_handshake: false, has_no_data: true }));
        let handshake = mark("## host 1 to host 0: handshake");
        assert_eq!(handshake, Some(Mark { way: DOWN, is_handshake: true, has_no_data: false }));
        for other in
            ["# LAM to itself", "# host 1 to server", "# type len", "# from 1 to 2", "# client to server"]
        {
            assert_eq!(mark(other), None, "{other:?}");
        }
    }
}
