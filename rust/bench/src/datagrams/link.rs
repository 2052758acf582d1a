//! A link of datagrams without loss: the sender keeps no more in flight than the receiver's socket has room
//! for.
//!
//! ```text
//! word 0   kind 8 | way to cut 8 | 0 16 | octets behind the header 32
//! word 1   number of the datagram, from 0
//! word 2   datagrams that the sender of this one has received
//! ```
//!
//! The receiver acks with each datagram that it sends anyway, else after half a window, which is a quarter of
//! the socket's queue. The window is half of the queue, since the system may count received datagrams up to a
//! quarter of it longer.

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
/// Octets of a datagram at most, in each of the ways to cut: as an Ethernet takes them over IPv4, with long
/// frames, and as long as they may be. Multiples of eight, so that headers are words also where many
/// datagrams are behind each other.
const LENS: [usize; 3] = [1472, 8968, 65504];
/// Octets of a GSO batch at most.
const TRAIN_LEN: usize = 65504;
/// Octets that are asked for as the socket's queue.
const QUEUE_LEN: usize = 4 << 20;
/// GSO batches, or datagrams, that are received at once.
const ROOMS: usize = 4;
/// Words of the room for each.
const ROOM_WORDS: usize = 8192;
/// Longest silence of the other rank.
const PATIENCE: Duration = Duration::from_secs(60);
/// Empty polls between two reads of the clock.
const LOOKS: u32 = 1 << 12;

/// A way to cut messages.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Octets of a datagram at most.
    len: usize,
    /// Largest number of datagrams in flight.
    window: u64,
    /// Datagrams of a GSO batch at most.
    segments: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data = 1,
    Credit = 2,
}

/// One end.
pub(super) struct Link {
    socket: UdpSocket,
    can_join: bool,
    are_joined: bool,
    cuts: [Cut; LENS.len()],
    /// Headers of the datagrams that leave together.
    headers: Vec<AtomicU64>,
    rooms: Vec<AtomicU64>,
    /// Datagrams with data that this side has sent.
    sent: u64,
    /// Number of them that the other side has confirmed.
    confirmed: u64,
    /// Datagrams with data that have come.
    received: u64,
    /// Number of them that this side has confirmed.
    told: u64,
    /// One more than the greatest number that has come.
    expected: u64,
    /// Octets of data that have come and that nobody has asked for.
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
                cut.segments = (TRAIN_LEN / cut.len).clamp(1, SEGMENTS_MAX);
            }
        }
        let words = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Ok(Link {
            socket,
            can_join: offload.joins,
            are_joined: false,
            cuts,
            headers: words(SEGMENTS_MAX * HEADER_WORDS),
            rooms: words(ROOMS * ROOM_WORDS),
            sent: 0,
            confirmed: 0,
            received: 0,
            told: 0,
            expected: 0,
            octets: 0,
            cut_seen: 0,
        })
    }

    /// Different ways to cut a message of this length: the first ones.
    pub(super) fn ways(&self, octets: usize) -> usize {
        let shorter = self.cuts.iter().filter(|cut| cut.len < octets.saturating_add(HEADER_LEN));
        (shorter.count() + 1).min(self.cuts.len())
    }

    /// Has what arrives be joined where the kernel can, or not, which is faster for single datagrams.
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

    /// Sends a message that has room for a header before it, cut in this way.
    pub(super) fn send(&mut self, message: &[AtomicU64], cut: usize) -> Result<(), RankError> {
        let Cut { len, window, .. } = self.cuts[cut];
        let words = len / 8 - HEADER_WORDS;
        let count = (message.len() - HEADER_WORDS).div_ceil(words).max(1);
        let mut at = 0;
        while at < count {
            let room = window.saturating_sub(self.sent - self.confirmed);
            if room == 0 {
                self.wait(|link| link.sent - link.confirmed < window)?;
                continue;
            }
            let some = (count - at).min(SEGMENTS_MAX).min(usize::try_from(room).unwrap_or(usize::MAX));
            match self.send_some(message, cut, at, some) {
                Ok(done) => {
                    at += done;
                    self.sent += done as u64;
                    self.told = self.received;
                }
                Err(Obstacle::Later) => _ = self.look()?,
                Err(Obstacle::NoGso) => self.cuts[cut].segments = 1,
                Err(obstacle) => return Err(failed(obstacle)),
            }
        }
        Ok(())
    }

    /// Sends a number of datagrams of a message, from one on; returns how many the system has taken.
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
            // The first one's header is before its payload.
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
        let (mut looks, mut since) = (0, None);
        while !is_so(self) {
            if self.look()? {
                (looks, since) = (0, None);
                continue;
            }
            looks += 1;
            if looks % LOOKS == 0 {
                // Where there are fewer processors than who looks, the other rank may have none.
                std::thread::yield_now();
                let since: &mut Instant = since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    let (missing, drops) = (self.expected - self.received, self.drops()?);
                    return Err(RankError::Order(format!(
                        "nothing has come for {PATIENCE:?}; {missing} datagrams before the last are missing, \
                         this socket has dropped {drops}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Takes what has arrived, and says that it has where that is due; whether there was something.
    fn look(&mut self) -> Result<bool, RankError> {
        let socket = self.socket.as_fd();
        let mut arrived = [Arrived::default(); ROOMS];
        let room = |at: usize| [Part::new(&self.rooms[at * ROOM_WORDS..][..ROOM_WORDS], 0, ROOM_WORDS * 8)];
        let result = if self.are_joined {
            let rooms: [_; ROOMS] = std::array::from_fn(room);
            receive(socket, &rooms.each_ref().map(|room| &room[..]), &mut arrived)
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
                let begin = at * ROOM_WORDS + datagram.start / 8;
                self.take(begin, datagram.len())?;
            }
        }
        if self.received - self.told >= (self.cuts[self.cut_seen].window / 2).max(1) {
            self.tell()?;
        }
        Ok(true)
    }

    /// Takes a datagram that is in the rooms, from this word on.
    fn take(&mut self, begin: usize, len: usize) -> Result<(), RankError> {
        let [head, number, came] = std::array::from_fn(|at| self.rooms[begin + at].load(Relaxed));
        let (kind, cut, octets) = (head >> 56, (head >> 48) as u8 as usize, head as u32 as usize);
        let is_known = kind == Kind::Data as u64 || kind == Kind::Credit as u64;
        if !is_known || cut >= self.cuts.len() || len != HEADER_LEN + octets || came > self.sent {
            return Err(RankError::Order(format!("a datagram of {len} octets makes no sense")));
        }
        // Datagrams may overtake each other.
        self.confirmed = self.confirmed.max(came);
        if kind == Kind::Data as u64 {
            self.received += 1;
            self.expected = self.expected.max(number.saturating_add(1));
            self.octets += octets;
            self.cut_seen = cut;
        }
        Ok(())
    }

    /// Says how many have come.
    fn tell(&mut self) -> Result<(), RankError> {
        let header = &self.headers[..HEADER_WORDS];
        self.head(header, Kind::Credit, self.cut_seen, 0, 0);
        match send(self.socket.as_fd(), &[GsoBatch::single(&[Part::new(header, 0, HEADER_LEN).into()])]) {
            Ok(_) => self.told = self.received,
            // The next look says it.
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
    pub(super) fn under_way(&self) -> u64 {
        self.sent - self.confirmed
    }
}

fn failed(obstacle: Obstacle) -> RankError {
    match obstacle {
        Obstacle::System(error) => RankError::Socket(error),
        obstacle => RankError::Order(obstacle.to_string()),
    }
}
