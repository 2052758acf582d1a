//! One end of the connection between launcher and agent: frames over a pair of non-blocking descriptors.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use rustix::io::Errno;
use thiserror::Error;

use super::frame::{DATA_MAX, Frame, FrameError, Stream};
use super::window::{Liveness, ReceiveCredit, SendCredit};

/// Octets of one read.
const PIECE: usize = 64 << 10;
/// Maximum octets of a line of text before the first frame.
const LINE_MAX: usize = 64 << 10;
/// Reads before the caller handles other events.
const READS_MAX: usize = 16;

/// The reason why a connection has ended.
#[derive(Debug, Error)]
pub enum ChannelError {
    /// The other end has closed it.
    #[error("the connection has ended")]
    Ended,
    /// The system reports an error.
    #[error("the connection is broken: {0}")]
    Io(io::Error),
    /// The octets are no frames.
    #[error("the other end breaks the protocol: {0}")]
    Frame(#[from] FrameError),
    /// The text before the first frame has no line feed.
    #[error("a line of more than {LINE_MAX} octets")]
    Line,
    /// A stream has more octets than it may.
    #[error("the other end breaks the protocol: {0:?} has more octets than its credit")]
    Credit(Stream),
    /// Nothing has arrived for too long.
    #[error("no frame and no heartbeat for {0:?}")]
    Silence(Duration),
}

/// One end of a connection.
#[derive(Debug)]
pub struct Channel {
    incoming: BytesMut,
    outgoing: BytesMut,
    send: SendCredit,
    receive: ReceiveCredit,
    liveness: Option<Liveness>,
    begun: Instant,
}

impl Channel {
    /// A new connection without heartbeats.
    #[must_use]
    pub fn new() -> Channel {
        Channel {
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            send: SendCredit::default(),
            receive: ReceiveCredit::default(),
            liveness: None,
            begun: Instant::now(),
        }
    }

    /// Begins to send heartbeats, and to expect a frame within this time.
    pub fn begin_heartbeats(&mut self, silence: Duration) {
        self.liveness = Some(Liveness::new(silence, self.begun.elapsed()));
    }

    /// Sends a frame as soon as possible.
    pub fn send(&mut self, frame: &Frame) {
        frame.emit(&mut self.outgoing);
    }

    /// Sends octets that are no frame.
    pub fn send_raw(&mut self, octets: &[u8]) {
        self.outgoing.extend_from_slice(octets);
    }

    /// Octets of the stream that may be sent now, at most those of one frame.
    #[must_use]
    pub fn room(&self, stream: Stream) -> usize {
        self.send.left(stream).min(DATA_MAX)
    }

    /// Sends octets of a stream, at most [`room`](Self::room).
    pub fn send_data(&mut self, stream: Stream, octets: Bytes) {
        self.send.spend(stream, octets.len());
        self.send(&Frame::Data(stream, octets));
    }

    /// Octets of a stream that has arrived were consumed.
    pub fn consume(&mut self, stream: Stream, octets: usize) {
        self.receive.consume(stream, octets);
        if let Some(credit) = self.receive.grant(stream) {
            self.send(&Frame::Credit(stream, credit));
        }
    }

    /// Whether octets wait to be written.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Writes what the descriptor takes. An error of the other end appears when reading.
    pub fn write(&mut self, to: impl AsFd) {
        while !self.outgoing.is_empty() {
            match rustix::io::write(&to, &self.outgoing) {
                Ok(n) => self.outgoing.advance(n),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.outgoing.clear(),
            }
        }
    }

    /// Reads what has arrived.
    ///
    /// # Errors
    /// The connection has ended. The frames before stay, for [`next_frame`](Self::next_frame).
    pub fn read(&mut self, from: &OwnedFd) -> Result<(), ChannelError> {
        let mut piece = vec![0; PIECE];
        for _ in 0..READS_MAX {
            match rustix::io::read(from, &mut piece[..]) {
                Ok(0) => return Err(ChannelError::Ended),
                Ok(n) => {
                    self.incoming.extend_from_slice(&piece[..n]);
                    let now = self.begun.elapsed();
                    self.liveness.iter_mut().for_each(|liveness| liveness.handle_octets(now));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(ChannelError::Io(error.into())),
            }
        }
        Ok(())
    }

    /// The next frame that has arrived. Handles credit and heartbeats itself.
    ///
    /// # Errors
    /// The other end breaks the protocol.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ChannelError> {
        loop {
            match Frame::take(&mut self.incoming)? {
                Some(Frame::Heartbeat) => {}
                Some(Frame::Credit(stream, octets)) => self.send.handle_credit(stream, octets),
                Some(Frame::Data(stream, octets)) => {
                    if !self.receive.handle_data(stream, octets.len()) {
                        return Err(ChannelError::Credit(stream));
                    }
                    return Ok(Some(Frame::Data(stream, octets)));
                }
                other => return Ok(other),
            }
        }
    }

    /// The next line of text that has arrived, without its line feed. Text precedes the first frame.
    ///
    /// # Errors
    /// The line is longer than any of a shell.
    pub fn next_line(&mut self) -> Result<Option<String>, ChannelError> {
        let Some(end) = self.incoming.iter().position(|octet| *octet == b'\n') else {
            return if self.incoming.len() > LINE_MAX { Err(ChannelError::Line) } else { Ok(None) };
        };
        let line = self.incoming.split_to(end + 1);
        Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
    }

    /// Sends a heartbeat if it is time.
    ///
    /// # Errors
    /// The other end is silent for too long.
    pub fn keep_time(&mut self) -> Result<(), ChannelError> {
        let now = self.begun.elapsed();
        let Some(liveness) = &mut self.liveness else { return Ok(()) };
        if liveness.is_lost(now) {
            return Err(ChannelError::Silence(liveness.silence()));
        }
        if liveness.takes_heartbeat(now) {
            self.send(&Frame::Heartbeat);
        }
        Ok(())
    }

    /// The time at which [`keep_time`](Self::keep_time) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.liveness.map(|liveness| self.begun + liveness.next())
    }
}

impl Default for Channel {
    fn default() -> Channel {
        Channel::new()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, OwnedFd) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        theirs.set_nonblocking(true).expect("a socket");
        (ours, theirs.into())
    }

    #[test]
    fn text_of_a_shell_precedes_frames() {
        let (mut ours, theirs) = pair();
        let mut octets = BytesMut::from(&b"Welcome\nmpjdev-agent: version 1\n"[..]);
        Frame::Signal(2).emit(&mut octets);
        ours.write_all(&octets).expect("room");
        let mut channel = Channel::new();
        channel.read(&theirs).expect("open");
        assert_eq!(channel.next_line().expect("short").as_deref(), Some("Welcome"));
        let line = channel.next_line().expect("short");
        assert_eq!(line.as_deref(), Some("mpjdev-agent: version 1"));
        assert_eq!(channel.next_frame().expect("a frame"), Some(Frame::Signal(2)));
        assert!(channel.next_frame().expect("none").is_none());
        drop(ours);
        assert!(matches!(channel.read(&theirs), Err(ChannelError::Ended)));
    }

    #[test]
    fn stream_beyond_its_credit_is_refused() {
        let (mut ours, theirs) = pair();
        let mut channel = Channel::new();
        let mut octets = BytesMut::new();
        Frame::Data(Stream::Output, Bytes::from(vec![0; DATA_MAX])).emit(&mut octets);
        let refused = (0..9).find_map(|_| {
            ours.write_all(&octets).expect("room");
            channel.read(&theirs).expect("open");
            channel.next_frame().err()
        });
        assert!(matches!(refused, Some(ChannelError::Credit(Stream::Output))), "{refused:?}");
    }

    #[test]
    fn silence_ends_a_connection_with_heartbeats() {
        let mut channel = Channel::new();
        channel.keep_time().expect("no heartbeats yet");
        assert_eq!(channel.next_deadline(), None);
        channel.begin_heartbeats(Duration::ZERO);
        assert!(matches!(channel.keep_time(), Err(ChannelError::Silence(_))));
    }
}
