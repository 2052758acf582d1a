//! Frames between a launcher and its agents: the octets on the standard input and output of a remote shell.
//!
//! ```text
//!    0      1                5
//!   +------+----------------+--- - - -
//!   | kind | len     u32 BE | len octets
//!   +------+----------------+--- - - -
//! ```
//!
//! Before its first frame an agent writes a [`ShellLine`]. Output of a login shell may precede it.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::hello::{Hello, Setup, StagedFile, Start};

/// Octets of the header.
pub const HEADER_LEN: usize = 5;
/// Maximum octets of a body: the addresses of all ranks of a large job.
pub const BODY_MAX: usize = 8 << 20;
/// Maximum octets of a body of [`Frame::Data`].
pub const DATA_MAX: usize = 32 << 10;

/// A stream of octets of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard input of rank 0, to the agent.
    Input,
    /// Standard output of the host's ranks, to the launcher.
    Output,
    /// Their standard error, to the launcher.
    Error,
    /// The staged file that was named last, to the agent.
    File,
    /// The profiles of the host's ranks, one on each line, to the launcher.
    Profiles,
}

impl Stream {
    /// Number of streams.
    pub const COUNT: usize = 5;
    const ALL: [Stream; Stream::COUNT] =
        [Stream::Input, Stream::Output, Stream::Error, Stream::File, Stream::Profiles];

    /// Its number, also an index.
    #[must_use]
    pub const fn number(self) -> usize {
        self as usize
    }
}

/// A message between launcher and agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The host's share of the job, to the agent. It checks the host and answers with a Hello.
    Setup(Setup),
    /// A staged file follows as data of [`Stream::File`], to the agent.
    File(StagedFile),
    /// The findings of the agent, to the launcher.
    Hello(Hello),
    /// All hosts are ready: start the ranks, to the agent.
    Start(Start),
    /// A line of the exchange between the host's monitor and the launcher, in both directions.
    Exchange(Bytes),
    /// Send this signal to the ranks, to the agent.
    Signal(u8),
    /// Kill the ranks, to the agent.
    Kill,
    /// A line that reports a failed rank, to the launcher.
    Failure(Bytes),
    /// The host's ranks have ended with this status, to the launcher. Last frame of an agent.
    End(u8),
    /// Octets of a stream.
    Data(Stream, Bytes),
    /// The stream ends, or its reader has closed it.
    Closed(Stream),
    /// The receiver of a stream takes this many further octets.
    Credit(Stream, u32),
    /// The sender lives.
    Heartbeat,
}

/// The reason why octets are no frame.
#[derive(Debug, Error)]
pub enum FrameError {
    /// There is no such kind.
    #[error("a frame has the unknown kind {0}")]
    Kind(u8),
    /// The body is longer than any.
    #[error("a frame of kind {kind} has {len} octets, at most {max} are allowed")]
    Len {
        /// The kind.
        kind: u8,
        /// Octets of the body.
        len: usize,
        /// Their maximum.
        max: usize,
    },
    /// The body is malformed.
    #[error("a frame of kind {kind} is malformed: {why}")]
    Body {
        /// The kind.
        kind: u8,
        /// The reason.
        why: String,
    },
}

mod kind {
    pub(super) const SETUP: u8 = 1;
    pub(super) const FILE: u8 = 2;
    pub(super) const HELLO: u8 = 3;
    pub(super) const START: u8 = 4;
    pub(super) const EXCHANGE: u8 = 5;
    pub(super) const SIGNAL: u8 = 6;
    pub(super) const KILL: u8 = 7;
    pub(super) const FAILURE: u8 = 8;
    pub(super) const END: u8 = 9;
    pub(super) const DATA: u8 = 10;
    pub(super) const CLOSED: u8 = 11;
    pub(super) const CREDIT: u8 = 12;
    pub(super) const HEARTBEAT: u8 = 13;
}

impl Frame {
    /// Appends the octets of this frame.
    pub fn emit(&self, out: &mut BytesMut) {
        let json = |body: serde_json::Result<Vec<u8>>| Bytes::from(body.expect("plain data"));
        let octet = |octet: u8| Bytes::copy_from_slice(&[octet]);
        let (kind, body) = match self {
            Frame::Setup(setup) => (kind::SETUP, json(serde_json::to_vec(setup))),
            Frame::File(file) => (kind::FILE, json(serde_json::to_vec(file))),
            Frame::Hello(hello) => (kind::HELLO, json(serde_json::to_vec(hello))),
            Frame::Start(start) => (kind::START, json(serde_json::to_vec(start))),
            Frame::Exchange(line) => (kind::EXCHANGE, line.clone()),
            Frame::Signal(number) => (kind::SIGNAL, octet(*number)),
            Frame::Kill => (kind::KILL, Bytes::new()),
            Frame::Failure(line) => (kind::FAILURE, line.clone()),
            Frame::End(status) => (kind::END, octet(*status)),
            Frame::Data(stream, octets) => {
                out.put_u8(kind::DATA);
                out.put_u32(1 + octets.len() as u32);
                out.put_u8(*stream as u8);
                out.extend_from_slice(octets);
                return;
            }
            Frame::Closed(stream) => (kind::CLOSED, octet(*stream as u8)),
            Frame::Credit(stream, octets) => {
                let [a, b, c, d] = octets.to_be_bytes();
                (kind::CREDIT, Bytes::copy_from_slice(&[*stream as u8, a, b, c, d]))
            }
            Frame::Heartbeat => (kind::HEARTBEAT, Bytes::new()),
        };
        out.put_u8(kind);
        out.put_u32(body.len() as u32);
        out.extend_from_slice(&body);
    }

    /// Takes the first frame from `octets`; `None` if it is not complete.
    ///
    /// # Errors
    /// The octets begin with no frame.
    pub fn take(octets: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some((header, _)) = octets.split_at_checked(HEADER_LEN) else { return Ok(None) };
        let (kind, len) =
            (header[0], u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize);
        let max = match kind {
            kind::SETUP..=kind::EXCHANGE | kind::FAILURE => BODY_MAX,
            kind::DATA => 1 + DATA_MAX,
            kind::SIGNAL | kind::END | kind::CLOSED => 1,
            kind::CREDIT => 5,
            kind::KILL | kind::HEARTBEAT => 0,
            _ => return Err(FrameError::Kind(kind)),
        };
        if len > max {
            return Err(FrameError::Len { kind, len, max });
        }
        if octets.len() < HEADER_LEN + len {
            return Ok(None);
        }
        octets.advance(HEADER_LEN);
        parse(kind, octets.split_to(len).freeze()).map(Some)
    }
}

fn parse(kind: u8, mut body: Bytes) -> Result<Frame, FrameError> {
    let malformed = |why: &str| FrameError::Body { kind, why: why.to_owned() };
    let octet = |body: &Bytes| body.first().copied().ok_or_else(|| malformed("it is empty"));
    let stream = |body: &Bytes| {
        let number = octet(body)?;
        Stream::ALL.get(usize::from(number)).copied().ok_or_else(|| malformed("there is no such stream"))
    };
    Ok(match kind {
        kind::SETUP => Frame::Setup(json(kind, &body)?),
        kind::FILE => Frame::File(json(kind, &body)?),
        kind::HELLO => Frame::Hello(json(kind, &body)?),
        kind::START => Frame::Start(json(kind, &body)?),
        kind::EXCHANGE => Frame::Exchange(body),
        kind::SIGNAL => Frame::Signal(octet(&body)?),
        kind::KILL => Frame::Kill,
        kind::FAILURE => Frame::Failure(body),
        kind::END => Frame::End(octet(&body)?),
        kind::DATA => {
            let stream = stream(&body)?;
            body.advance(1);
            Frame::Data(stream, body)
        }
        kind::CLOSED => Frame::Closed(stream(&body)?),
        kind::CREDIT => {
            let stream = stream(&body)?;
            body.advance(1);
            Frame::Credit(stream, body.try_get_u32().map_err(|_| malformed("it has no number"))?)
        }
        _ => Frame::Heartbeat,
    })
}

fn json<T: DeserializeOwned>(kind: u8, body: &Bytes) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|error| FrameError::Body { kind, why: error.to_string() })
}

/// First word of the lines of a remote shell that are meant for the launcher.
const MARK: &str = "mpjdev-agent:";

/// A line of a remote shell for the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellLine {
    /// The agent runs; frames follow.
    Agent {
        /// Version of mpjdev.
        version: String,
    },
    /// The shell waits for the octets of the agent's program.
    Stage {
        /// The architecture of the host, as uname(1) prints it.
        machine: String,
    },
    /// The host has no agent at this path.
    Missing {
        /// The path.
        path: String,
    },
}

impl ShellLine {
    /// The line, with its line feed.
    #[must_use]
    pub fn emit(&self) -> String {
        match self {
            ShellLine::Agent { version } => format!("{MARK} version {version}\n"),
            ShellLine::Stage { machine } => format!("{MARK} stage {machine}\n"),
            ShellLine::Missing { path } => format!("{MARK} missing {path}\n"),
        }
    }

    /// Parses a line; `None` for other output of the shell.
    #[must_use]
    pub fn parse(line: &str) -> Option<ShellLine> {
        let (word, value) = line.trim_end().strip_prefix(MARK)?.trim_start().split_once(' ')?;
        let value = value.to_owned();
        match word {
            "version" => Some(ShellLine::Agent { version: value }),
            "stage" => Some(ShellLine::Stage { machine: value }),
            "missing" => Some(ShellLine::Missing { path: value }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Setup(Setup {
                words: vec!["-n".into(), "2".into()],
                host: "b".into(),
                ..Setup::default()
            }),
            Frame::File(StagedFile { path: "lib/x.jar".into(), mode: 0o644, len: 3 }),
            Frame::Hello(Hello { faults: vec!["no java".into()], ..Hello::default() }),
            Frame::Start(Start {
                peers: vec![[10, 0, 0, 1].into(), "2001:db8::1".parse().expect("v6")],
                is_one_machine: true,
            }),
            Frame::Exchange(Bytes::from_static(b"{}")),
            Frame::Signal(15),
            Frame::Kill,
            Frame::Failure(Bytes::from_static(b"1 - exited 3 text")),
            Frame::End(137),
            Frame::Data(Stream::Error, Bytes::from(vec![7; DATA_MAX])),
            Frame::Data(Stream::Input, Bytes::new()),
            Frame::Data(Stream::Profiles, Bytes::from_static(b"{}\n")),
            Frame::Closed(Stream::Output),
            Frame::Credit(Stream::File, u32::MAX),
            Frame::Heartbeat,
        ]
    }

    #[test]
    fn frames_survive_the_round_trip_in_pieces_of_any_length() {
        let mut all = BytesMut::new();
        frames().iter().for_each(|frame| frame.emit(&mut all));
        for piece in [1, 2, 7, all.len()] {
            let (mut octets, mut taken) = (BytesMut::new(), Vec::new());
            for piece in all.chunks(piece) {
                octets.extend_from_slice(piece);
                while let Some(frame) = Frame::take(&mut octets).expect("frames") {
                    taken.push(frame);
                }
            }
            assert!(octets.is_empty() && taken == frames(), "pieces of {piece}");
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        let taken = |octets: &[u8]| Frame::take(&mut BytesMut::from(octets));
        assert!(matches!(taken(&[0, 0, 0, 0, 0]), Err(FrameError::Kind(0))));
        assert!(matches!(taken(&[99, 0, 0, 0, 0]), Err(FrameError::Kind(99))));
        // The length is checked before the body has arrived.
        assert!(matches!(taken(&[kind::DATA, 0xff, 0, 0, 0]), Err(FrameError::Len { .. })));
        assert!(matches!(taken(&[kind::KILL, 0, 0, 0, 1]), Err(FrameError::Len { max: 0, .. })));
        for octets in [
            &[kind::SIGNAL, 0, 0, 0, 0][..],
            &[kind::DATA, 0, 0, 0, 0],
            &[kind::DATA, 0, 0, 0, 1, 5],
            &[kind::CREDIT, 0, 0, 0, 2, 0, 1],
            &[kind::SETUP, 0, 0, 0, 2, b'[', b']'],
        ] {
            assert!(matches!(taken(octets), Err(FrameError::Body { .. })), "{octets:?}");
        }
    }

    #[test]
    fn lines_of_a_shell_are_parsed_and_other_output_is_not() {
        let lines = [
            ShellLine::Agent { version: "0.1.0".into() },
            ShellLine::Stage { machine: "x86_64".into() },
            ShellLine::Missing { path: "/opt/my tools/mpjdev".into() },
        ];
        for line in lines {
            assert_eq!(ShellLine::parse(&line.emit()), Some(line));
        }
        for other in ["", "Welcome to b", "mpjdev-agent:", "mpjdev-agent: other x", "mpjdev"] {
            assert_eq!(ShellLine::parse(other), None);
        }
    }
}
