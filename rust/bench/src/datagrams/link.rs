//! Datagram link without loss: the datagrams in flight fit the queue of the receiver's socket.
//!
//! ```text
//! word 0   kind 8 | cut 8 | 0 16 | octets after the header 32
//! word 1   number of the datagram, from 0
//! word 2   ack: data datagrams that the sender of this one has received
//! ```
//!
//! Each datagram carries an ack. Without data to send the receiver sends a pure ack after half a window. The
//! window is half of the socket's queue, since the kernel may charge received datagrams up to a quarter of
//! the queue longer.

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mpjdev_sys::datagram::offload::{self, Offload};
use mpjdev_sys::datagram::{
    Arrived, GsoBatch, Obstacle, Part, Run, SEGMENTS_MAX, options, receive, receive_one, send,
};

use super::super::rank::RankError;

/// Words of a header.
pub(super) const HEADER_WORDS: usize = 3;
const HEADER_LEN: usize = HEADER_WORDS * 8;
/// Datagram length of each cut: an Ethernet frame, a jumbo frame, and the longest datagram over IPv4. They
/// are multiples of 8, so that headers are aligned in a GRO buffer.
const LENS: [usize; 3] = [1472, 8968, 65504];
/// Limit of the octets of a GSO batch.
const GSO_BATCH_LEN: usize = 65504;
/// Requested octets of the socket's queue.
const QUEUE_LEN: usize = 4 << 20;
/// GRO buffers, or datagrams, of one receive call.
const BUFFERS: usize = 4;
/// Words of each buffer.
const BUFFER_WORDS: usize = 8192;
/// Peer timeout.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Empty polls between two reads of the clock.
const POLLS: u32 = 1 << 12;

/// A division of messages into datagrams.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Datagram length limit in octets.
    len: usize,
    /// Limit of the datagrams in flight.
    window: u64,
    /// Limit of the datagrams of a GSO batch.
    segments: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data = 1,
    Ack = 2,
}

/// One end of the link.
pub(super) struct Link {
    socket: UdpSocket,
    can_join: bool,
    are_joined: bool,
    cuts: [Cut; LENS.len()],
    /// Headers of the datagrams of one send call.
    headers: Vec<AtomicU64>,
    buffers: Vec<AtomicU64>,
    /// Data datagrams sent.
    sent: u64,
    /// Data datagrams that the peer has acked.
    acked: u64,
    /// Data datagrams received.
    received: u64,
    /// Data datagrams that this end has acked.
    ack_sent: u64,
    /// One more than the greatest number received.
    expected: u64,
    /// Octets received and not yet consumed by `receive`.
    octets: usize,
    /// Length of the other side's cuts.
    cut_seen: usize,
}

impl Link {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        let granted = options::set_buffers(socket.as_fd(), QUEUE_LEN, QUEUE_LEN)?;
        let offload = Offload::probe(false)?;
        let mut cuts = LENS.map(|len| Cut { len, window: 1, segments: 1 });
        for cut in &mut cuts {
            let capacity = granted.receive_len / offload::charge(false, cut.len)?;
            cut.window = (capacity as u64 / 2).max(1);
            if offload.cuts {
                cut.segments = (GSO_BATCH_LEN / cut.len).clamp(1, SEGMENTS_MAX);
            }
        }
        let words = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Ok(Link {
            socket,
            can_join: offload.joins,
            are_joined: false,
            cuts,
            headers: words(SEGMENTS_MAX * HEADER_WORDS),
            buffers: words(BUFFERS * BUFFER_WORDS),
            sent: 0,
            acked: 0,
            received: 0,
            ack_sent: 0,
            expected: 0,
            octets: 0,
            cut_seen: 0,
        })
    }

    /// Number of cuts that differ for a message of this length: the first ones.
    pub(super) fn cuts(&self, octets: usize) -> usize {
        let shorter = self.cuts.iter().filter(|cut| cut.len < octets.saturating_add(HEADER_LEN));
        (shorter.count() + 1).min(self.cuts.len())
    }

    /// Switches GRO, if the kernel has it. Single datagrams are faster without it.
    pub(super) fn want_gso_batches(&mut self, are_wanted: bool) -> io::Result<()> {
        if self.can_join && self.are_joined != are_wanted {
            options::set_gro(self.socket.as_fd(), are_wanted)?;
            self.are_joined = are_wanted;
        }
        Ok(())
    }

    /// Length of the other side's cuts.
    pub(super) fn cut_seen(&self) -> usize {
        self.cut_seen
    }

    /// Sends a message, which has room for a header in front, with this cut.
    pub(super) fn send(&mut self, message: &[AtomicU64], cut: usize) -> Result<(), RankError> {
        let Cut { len, window, .. } = self.cuts[cut];
        let words = len / 8 - HEADER_WORDS;
        let count = (message.len() - HEADER_WORDS).div_ceil(words).max(1);
        let mut at = 0;
        while at < count {
            let room = window.saturating_sub(self.sent - self.acked);
            if room == 0 {
                self.wait(|link| link.sent - link.acked < window)?;
                continue;
            }
            let some = (count - at).min(SEGMENTS_MAX).min(usize::try_from(room).unwrap_or(usize::MAX));
            match self.send_some(message, cut, at, some) {
                Ok(done) => {
                    at += done;
                    self.sent += done as u64;
                    self.ack_sent = self.received;
                }
                Err(Obstacle::Later) => _ = self.poll()?,
                Err(Obstacle::NoGso) => self.cuts[cut].segments = 1,
                Err(obstacle) => return Err(failed(obstacle)),
            }
        }
        Ok(())
    }

    /// Sends `count` datagrams of a message from `first` on. Returns how many the kernel took.
    fn send_some(
        &self,
        message: &[AtomicU64],
        cut: usize,
        first: usize,
        count: usize,
    ) -> Result<usize, Obstacle> {
        let Cut { len, segments, .. } = self.cuts[cut];
        let words = len / 8 - HEADER_WORDS;
        let mut runs = [Run::from(&[][..]); 2 * SEGMENTS_MAX];
        for (place, at) in (first..first + count).enumerate() {
            let begin = HEADER_WORDS + at * words;
            let payload = (message.len() - begin).min(words);
            let number = self.sent + place as u64;
            // The room of the first header is in the message.
            if at == 0 {
                self.head(&message[..HEADER_WORDS], Kind::Data, cut, payload * 8, number);
                runs[0] = Part::new(message, 0, HEADER_LEN + payload * 8).into();
                continue;
            }
            let header = place * HEADER_WORDS;
            self.head(&self.headers[header..header + HEADER_WORDS], Kind::Data, cut, payload * 8, number);
            runs[2 * place] = Part::new(&self.headers, header * 8, HEADER_LEN).into();
            runs[2 * place + 1] = Part::new(message, begin * 8, payload * 8).into();
        }
        let mut batches = [GsoBatch::single(&[]); SEGMENTS_MAX];
        let used = count.div_ceil(segments);
        for (batch, runs) in batches.iter_mut().zip(runs[..2 * count].chunks(2 * segments)) {
            // A message of one datagram is one run.
            batch.runs = if runs[1].is_empty() && runs.len() == 2 { &runs[..1] } else { runs };
            let is_many = runs.len() > 2;
            batch.segment_len = u16::try_from(len).ok().and_then(NonZeroU16::new).filter(|_| is_many);
        }
        send(self.socket.as_fd(), &batches[..used]).map(|taken| (taken * segments).min(count))
    }

    fn head(&self, header: &[AtomicU64], kind: Kind, cut: usize, len: usize, number: u64) {
        header[0].store((kind as u64) << 56 | (cut as u64) << 48 | len as u64, Relaxed);
        header[1].store(number, Relaxed);
        header[2].store(self.received, Relaxed);
    }

    /// Waits until this number of octets has arrived.
    pub(super) fn receive(&mut self, octets: usize) -> Result<(), RankError> {
        self.wait(|link| link.octets >= octets)?;
        self.octets -= octets;
        Ok(())
    }

    fn wait(&mut self, is_so: impl Fn(&Link) -> bool) -> Result<(), RankError> {
        let (mut polls, mut since) = (0, None);
        while !is_so(self) {
            if self.poll()? {
                (polls, since) = (0, None);
                continue;
            }
            polls += 1;
            if polls % POLLS == 0 {
                // Under oversubscription the other rank may have no processor.
                std::thread::yield_now();
                let since: &mut Instant = since.get_or_insert_with(Instant::now);
                if since.elapsed() > TIMEOUT {
                    let (missing, drops) = (self.expected - self.received, self.drops()?);
                    return Err(RankError::Command(format!(
                        "no datagram was received for {TIMEOUT:?}; {missing} datagrams before the last are \
                         missing, this socket has dropped {drops}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Handles received datagrams and sends a pure ack if one is due. Returns whether there was a datagram.
    fn poll(&mut self) -> Result<bool, RankError> {
        let socket = self.socket.as_fd();
        let mut arrived = [Arrived::default(); BUFFERS];
        let room =
            |at: usize| [Part::new(&self.buffers[at * BUFFER_WORDS..][..BUFFER_WORDS], 0, BUFFER_WORDS * 8)];
        let result = if self.are_joined {
            let buffers: [_; BUFFERS] = std::array::from_fn(room);
            receive(socket, &buffers.each_ref().map(|room| &room[..]), &mut arrived)
        } else {
            receive_one(socket, room(0)[0]).map(|len| {
                arrived[0] = Arrived { len, sent_len: len, segment_len: len, from: None };
                1
            })
        };
        let count = match result {
            Ok(count) => count,
            Err(Obstacle::Later) => return Ok(false),
            Err(obstacle) => return Err(failed(obstacle)),
        };
        for (at, arrived) in arrived[..count].iter().enumerate() {
            for datagram in arrived.datagrams() {
                let begin = at * BUFFER_WORDS + datagram.start / 8;
                self.take(begin, datagram.len())?;
            }
        }
        if self.received - self.ack_sent >= (self.cuts[self.cut_seen].window / 2).max(1) {
            self.send_ack()?;
        }
        Ok(true)
    }

    /// Handles a datagram that begins at this word of the buffers.
    fn take(&mut self, begin: usize, len: usize) -> Result<(), RankError> {
        let [head, number, acked] = std::array::from_fn(|at| self.buffers[begin + at].load(Relaxed));
        let (kind, cut, octets) = (head >> 56, (head >> 48) as u8 as usize, head as u32 as usize);
        let is_known = kind == Kind::Data as u64 || kind == Kind::Ack as u64;
        if !is_known || cut >= self.cuts.len() || len != HEADER_LEN + octets || acked > self.sent {
            return Err(RankError::Command(format!("a datagram of {len} octets makes no sense")));
        }
        // Datagrams may overtake each other.
        self.acked = self.acked.max(acked);
        if kind == Kind::Data as u64 {
            self.received += 1;
            self.expected = self.expected.max(number.saturating_add(1));
            self.octets += octets;
            self.cut_seen = cut;
        }
        Ok(())
    }

    /// Sends a pure ack.
    fn send_ack(&mut self) -> Result<(), RankError> {
        let header = &self.headers[..HEADER_WORDS];
        self.head(header, Kind::Ack, self.cut_seen, 0, 0);
        match send(self.socket.as_fd(), &[GsoBatch::single(&[Part::new(header, 0, HEADER_LEN).into()])]) {
            Ok(_) => self.ack_sent = self.received,
            // The next poll tries again.
            Err(Obstacle::Later) => {}
            Err(obstacle) => return Err(failed(obstacle)),
        }
        Ok(())
    }

    /// Datagrams that this socket has dropped.
    pub(super) fn drops(&self) -> io::Result<u32> {
        Ok(options::memory(self.socket.as_fd())?.drops)
    }

    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    #[cfg(test)]
    pub(super) fn in_flight(&self) -> u64 {
        self.sent - self.acked
    }
}

fn failed(obstacle: Obstacle) -> RankError {
    match obstacle {
        Obstacle::System(error) => RankError::Socket(error),
        obstacle => RankError::Command(obstacle.to_string()),
    }
}
