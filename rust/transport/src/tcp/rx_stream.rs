//! Input of one channel: headers and small bodies through a staging buffer, large bodies directly to their
//! destination.

use std::io;
use std::os::fd::BorrowedFd;

use mpjdev_buffer::Slab;
use mpjdev_buffer::octets::{copy_in, copy_out, copy_words};
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_sys::memory::Memory;
use mpjdev_sys::stream::{self, Part};

use crate::net::copy::copy_octets;

/// Octets of the staging buffer.
const STAGE_LEN: usize = 64 << 10;
/// Largest body that is staged as a whole.
pub(super) const STAGED_MAX: usize = 4 << 10;
/// Octets per read where a header is expected. Octets of a large body that such a read returns must be
/// copied.
const READ_LEN: usize = 16 << 10;

/// Destination of the octets of a body.
#[derive(Debug)]
pub(super) enum BodyTarget {
    /// The octets stay in the staging buffer.
    Staged,
    /// The octets go to memory, from this offset on.
    Slab(Slab, usize),
    /// The octets are dropped.
    Skipped,
}

/// A body of which octets may still be missing.
#[derive(Debug)]
pub(super) struct Body<W> {
    pub(super) target: BodyTarget,
    /// Octets of the body.
    pub(super) len: usize,
    /// Octets that have been placed or skipped.
    pub(super) done: usize,
    /// Meaning of the body.
    pub(super) what: W,
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// There is nothing new.
    Nothing,
    /// Octets were read.
    Octets,
    /// The stream has ended.
    End,
}

/// Receiving direction of one channel. `W` is the meaning of a body.
#[derive(Debug)]
pub(super) struct RxStream<W> {
    staging: Memory,
    start: usize,
    end: usize,
    /// `None` where a header is expected.
    pub(super) body: Option<Body<W>>,
    /// Nothing more arrives.
    pub(super) is_over: bool,
}

impl<W> RxStream<W> {
    pub(super) fn new() -> io::Result<RxStream<W>> {
        let staging = Memory::zeroed(STAGE_LEN).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RxStream { staging, start: 0, end: 0, body: None, is_over: false })
    }

    fn staged_len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the buffer holds no part of an incomplete packet.
    pub(super) fn is_between_packets(&self) -> bool {
        self.body.is_none() && self.staged_len() == 0
    }

    /// Ends reading. An incomplete packet is dropped.
    pub(super) fn close(&mut self) {
        self.body = None;
        self.end = self.start;
        self.is_over = true;
    }

    /// Whether a header or a body can be taken.
    pub(super) fn has_something(&self) -> bool {
        match &self.body {
            None => self.staged_len() >= HEADER_LEN,
            Some(body) => match body.target {
                BodyTarget::Staged => self.staged_len() >= body.len,
                BodyTarget::Slab(..) | BodyTarget::Skipped => body.done == body.len || self.staged_len() > 0,
            },
        }
    }

    /// Reads as many octets as the socket has and the buffer can take. Any thread may poll again before the
    /// octets are taken: with a full buffer nothing is read.
    pub(super) fn poll(&mut self, socket: BorrowedFd<'_>) -> io::Result<ReadOutcome> {
        if self.is_over {
            return Ok(ReadOutcome::Nothing);
        }
        self.make_room();
        if self.end == STAGE_LEN {
            return Ok(ReadOutcome::Octets);
        }
        let staging = Part::new(self.staging.words(), self.end, READ_LEN.min(STAGE_LEN - self.end));
        let body = self.body.as_mut().filter(|body| self.start == self.end && body.done < body.len);
        let received = match body {
            Some(Body { target: BodyTarget::Slab(slab, at), len, done, .. }) => {
                let direct = Part::new(slab.words(), *at + *done, *len - *done);
                match stream::receive(socket, &[direct, staging]) {
                    Ok(received) => {
                        let placed = received.min(*len - *done);
                        *done += placed;
                        self.end += received - placed;
                        Ok(received)
                    }
                    other => other,
                }
            }
            _ => stream::receive(socket, &[staging]).inspect(|received| self.end += received),
        };
        match received {
            Ok(0) => {
                self.is_over = true;
                Ok(ReadOutcome::End)
            }
            Ok(_) => Ok(ReadOutcome::Octets),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(ReadOutcome::Nothing)
            }
            Err(error) => {
                self.is_over = true;
                Err(error)
            }
        }
    }

    /// Makes room for [`READ_LEN`] more octets.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if STAGE_LEN - self.end >= READ_LEN {
            return;
        }
        let len = self.staged_len();
        if self.start.is_multiple_of(8) {
            copy_words(self.staging.words(), self.start, self.staging.words(), 0, len);
        } else {
            let mut octets = vec![0; len];
            copy_out(self.staging.words(), self.start, &mut octets);
            copy_in(self.staging.words(), 0, &octets);
        }
        (self.start, self.end) = (0, len);
    }

    /// The next header, if it has arrived.
    pub(super) fn take_header(&mut self) -> Option<[u8; HEADER_LEN]> {
        if self.staged_len() < HEADER_LEN {
            return None;
        }
        let mut header = [0; HEADER_LEN];
        copy_out(self.staging.words(), self.start, &mut header);
        self.start += HEADER_LEN;
        Some(header)
    }

    /// Words and offset of the next staged octets.
    pub(super) fn staged(&self) -> (&[std::sync::atomic::AtomicU64], usize) {
        (self.staging.words(), self.start)
    }

    /// Moves staged octets of the body to their destination. Returns whether the body is complete. `skipped`
    /// gets dropped octets: their offset in the body, the words, the offset there, and their number.
    pub(super) fn place_staged(
        &mut self,
        mut skipped: impl FnMut(&mut W, usize, &[std::sync::atomic::AtomicU64], usize, usize),
    ) -> bool {
        let staged = self.end - self.start;
        let Some(body) = &mut self.body else { return false };
        let n = staged.min(body.len - body.done);
        match &mut body.target {
            BodyTarget::Staged => return staged >= body.len,
            BodyTarget::Slab(slab, at) => {
                copy_octets(self.staging.words(), self.start, slab.words(), *at + body.done, n);
            }
            BodyTarget::Skipped => skipped(&mut body.what, body.done, self.staging.words(), self.start, n),
        }
        body.done += n;
        self.start += n;
        body.done == body.len
    }

    /// Ends the body, which has been taken.
    pub(super) fn end_body(&mut self) -> Option<Body<W>> {
        let body = self.body.take()?;
        if matches!(body.target, BodyTarget::Staged) {
            self.start += body.len;
        }
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use super::*;

    fn connected() -> io::Result<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let sender = TcpStream::connect(listener.local_addr()?)?;
        Ok((sender, listener.accept()?.0))
    }

    /// Several threads poll and none takes: octets beyond the buffer stay in the socket.
    #[test]
    fn full_staging_buffer_is_polled_again_without_loss() {
        let (mut sender, receiver) = connected().expect("a connection");
        let octets: Vec<u8> = (0..2 * STAGE_LEN).map(|i| (i / HEADER_LEN) as u8).collect();
        let writer = std::thread::spawn(move || sender.write_all(&octets));
        let mut rx = RxStream::<()>::new().expect("memory");
        let begun = Instant::now();
        while rx.staged_len() < STAGE_LEN {
            rx.poll(receiver.as_fd()).expect("no end");
            assert!(begun.elapsed() < Duration::from_secs(30), "{} octets", rx.staged_len());
        }
        assert_eq!(rx.poll(receiver.as_fd()).expect("no end"), ReadOutcome::Octets);
        assert!(rx.has_something());
        for i in 0..2 * STAGE_LEN / HEADER_LEN {
            let header = loop {
                match rx.take_header() {
                    Some(header) => break header,
                    None => rx.poll(receiver.as_fd()).expect("no end"),
                };
                assert!(begun.elapsed() < Duration::from_secs(30), "header {i}");
            };
            assert_eq!(header, [i as u8; HEADER_LEN], "header {i}");
        }
        writer.join().expect("no panic").expect("written");
    }
}
