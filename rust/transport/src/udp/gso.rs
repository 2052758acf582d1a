//! Datagrams of one peer that leave together, as many as possible with one system call.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::os::fd::BorrowedFd;

use mpjdev_proto::datagram::layout::{HEAD_LEN_MAX, TRAILER_LEN};
use mpjdev_proto::datagram::packet::{Packet, checksum};
use mpjdev_proto::datagram::reliable::content::Body;
use mpjdev_proto::datagram::reliable::time::Nanos;
use mpjdev_sys::datagram::{self, Address, GsoBatch, LEN_MAX, Obstacle, Run, SEGMENTS_MAX};

use super::SimulatedNetwork;
use super::retransmit_buffer::Store;

/// Most datagrams that are collected.
const DATAGRAMS_MAX: usize = SEGMENTS_MAX;
/// Octets of a datagram that is copied to be one run, for which there is a faster system call.
const JOINED_MAX: usize = 256;
/// Most unsuccessful calls for one collection. A call fails when the network reports errors of earlier
/// datagrams.
const FAILED_CALLS_MAX: u32 = 8;

/// A datagram that has not left.
#[derive(Debug)]
struct Piece {
    head: [u8; HEAD_LEN_MAX],
    head_len: usize,
    body: Option<Body>,
    /// All octets of a datagram that ends with a checksum: the summed octets must be the sent ones.
    whole: Option<Vec<u8>>,
}

impl Piece {
    fn body_len(&self) -> usize {
        self.body.map_or(0, |body| body.len as usize)
    }

    fn len(&self) -> usize {
        self.whole.as_ref().map_or(self.head_len + self.body_len(), Vec::len)
    }

    /// All octets of the datagram.
    #[cold]
    fn octets(&self, store: &Store) -> Vec<u8> {
        let len = self.head_len + self.body_len();
        let mut octets = Vec::with_capacity(len + TRAILER_LEN);
        octets.resize(len, 0);
        octets[..self.head_len].copy_from_slice(&self.head[..self.head_len]);
        if let Some(body) = self.body {
            store.read(body.token, body.offset as usize, &mut octets[self.head_len..]);
        }
        octets
    }
}

/// Datagrams to one peer, in order.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// `None` if the socket has only this peer and is connected to it.
    address: Option<Address>,
    pieces: Vec<Piece>,
    /// Whether the kernel cuts GSO batches, and whether it did at first.
    cuts: bool,
    cut: bool,
    /// Longest datagram in octets that the path carries unfragmented, as far as known.
    path_len: usize,
    /// The next datagram is longer than that.
    is_too_long: bool,
    /// The system fragments such datagrams.
    fragments: bool,
    /// For tests: a simulated network before the socket.
    network: Option<Box<dyn SimulatedNetwork>>,
    left: Left,
}

/// Counts of sent data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Octets of datagrams.
    pub(super) octets: u64,
    /// Octets of user data in them.
    pub(super) data: u64,
    /// Octets of user data that were copied for a checksum.
    pub(super) copied: u64,
    /// System calls.
    pub(super) calls: u64,
}

impl Outgoing {
    pub(super) fn new(
        address: Option<SocketAddr>,
        cuts: bool,
        network: Option<Box<dyn SimulatedNetwork>>,
    ) -> Outgoing {
        let pieces = Vec::with_capacity(DATAGRAMS_MAX);
        let address = address.map(Address::from);
        Outgoing {
            address,
            pieces,
            cuts,
            cut: cuts,
            path_len: usize::MAX,
            is_too_long: false,
            fragments: false,
            network,
            left: Left::default(),
        }
    }

    /// Whether the next datagram is longer than the path carries.
    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// Sets the longest datagram that the path carries.
    pub(super) fn shorten(&mut self, len: usize) {
        self.path_len = len;
        // A kernel may have refused a GSO batch only because of its length.
        self.cuts = self.cut;
    }

    /// As [`flush`](Self::flush), while the system fragments datagrams that the path does not carry whole.
    pub(super) fn flush_in_fragments(&mut self, now: Nanos, socket: BorrowedFd<'_>, store: &Store) {
        self.fragments = true;
        self.flush(now, socket, store);
        self.fragments = false;
    }

    pub(super) fn left(&self) -> Left {
        self.left
    }

    /// Whether the socket has not taken everything.
    pub(super) fn is_blocked(&self) -> bool {
        !self.pieces.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.pieces.len() == DATAGRAMS_MAX
    }

    /// Time of the next event of the simulated network.
    pub(super) fn next_time(&self) -> Option<Nanos> {
        self.network.as_ref()?.next_time()
    }

    /// Adds a packet, and the location of its user data.
    pub(super) fn push(&mut self, packet: &Packet, body: Option<Body>, store: &Store) {
        let mut piece = Piece { head: [0; HEAD_LEN_MAX], head_len: 0, body, whole: None };
        match packet.emit_head(&mut piece.head) {
            Ok(head_len) => piece.head_len = head_len,
            // Every packet of the state machine can be encoded.
            Err(error) => return debug_assert!(false, "{error}"),
        }
        if packet.extension.checked {
            let mut octets = piece.octets(store);
            octets.extend(checksum([&octets[..]]).to_be_bytes());
            piece.whole = Some(octets);
            self.left.copied += piece.body_len() as u64;
        }
        self.left.octets += piece.len() as u64;
        self.left.data += piece.body_len() as u64;
        self.pieces.push(piece);
    }

    /// Drops the rest of a message whose octets are no longer needed: its unsent datagrams are
    /// retransmissions, and their octets have arrived.
    pub(super) fn forget(&mut self, token: u64) {
        if !self.pieces.is_empty() {
            self.pieces.retain(|piece| piece.body.is_none_or(|body| body.token != token));
        }
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Sends as many datagrams as the socket takes. A datagram that the network refuses is lost, as on the
    /// path.
    pub(super) fn flush(&mut self, now: Nanos, socket: BorrowedFd<'_>, store: &Store) {
        if self.network.is_some() {
            return self.play(now, socket, store);
        }
        let mut failed_calls = 0;
        self.is_too_long = false;
        while !self.pieces.is_empty() {
            self.left.calls += 1;
            match self.send(socket, store) {
                Ok(count) => drop(self.pieces.drain(..count)),
                Err((_, Obstacle::Later)) => return,
                Err((_, Obstacle::NoGso)) => self.cuts = false,
                // An earlier datagram may have been too long, and a router has reported it.
                Err((_, Obstacle::TooLong)) if self.fragments && failed_calls < FAILED_CALLS_MAX => {
                    failed_calls += 1
                }
                Err((_, Obstacle::TooLong)) => {
                    self.is_too_long = true;
                    return;
                }
                Err((_, Obstacle::Refused)) if failed_calls < FAILED_CALLS_MAX => failed_calls += 1,
                Err((count, _)) => drop(self.pieces.drain(..count)),
            }
        }
    }

    /// Sends some datagrams in one call. Returns the number that the system has taken, or the number of the
    /// first batch that it has refused, and the reason.
    fn send(&self, socket: BorrowedFd<'_>, store: &Store) -> Result<usize, (usize, Obstacle)> {
        // Preparing a GSO batch costs as much as a system call, and mostly a single datagram leaves.
        match &self.pieces[..] {
            [piece] if piece.len() <= JOINED_MAX => self.send_joined(piece, socket, store),
            [_] => self.send_up_to::<1, 2>(socket, store),
            _ => self.send_up_to::<DATAGRAMS_MAX, { 2 * DATAGRAMS_MAX }>(socket, store),
        }
    }

    /// Sends a short datagram.
    fn send_joined(
        &self,
        piece: &Piece,
        socket: BorrowedFd<'_>,
        store: &Store,
    ) -> Result<usize, (usize, Obstacle)> {
        let mut octets = [0; JOINED_MAX];
        let octets = &mut octets[..piece.len()];
        match (&piece.whole, piece.body) {
            (Some(whole), _) => octets.copy_from_slice(whole),
            (None, body) => {
                let (head, rest) = octets.split_at_mut(piece.head_len);
                head.copy_from_slice(&piece.head[..piece.head_len]);
                if let Some(body) = body {
                    store.read(body.token, body.offset as usize, rest);
                }
            }
        }
        let runs = [Run::from(&octets[..])];
        let batch = GsoBatch { to: self.address.as_ref(), runs: &runs, segment_len: None };
        datagram::send(socket, &[batch]).map_err(|obstacle| (1, obstacle))
    }

    /// Sends at most `N` datagrams, in `RUNS` runs of octets.
    fn send_up_to<const N: usize, const RUNS: usize>(
        &self,
        socket: BorrowedFd<'_>,
        store: &Store,
    ) -> Result<usize, (usize, Obstacle)> {
        let mut runs = [Run::from(&[][..]); RUNS];
        for (piece, pair) in self.pieces.iter().zip(runs.chunks_exact_mut(2)) {
            if let Some(whole) = &piece.whole {
                pair[0] = Run::from(&whole[..]);
                continue;
            }
            pair[0] = Run::from(&piece.head[..piece.head_len]);
            if let Some(body) = piece.body {
                pair[1] = Run::from(store.part(body.token, body.offset as usize, body.len as usize));
            }
        }
        let mut batches = [GsoBatch { to: self.address.as_ref(), runs: &[], segment_len: None }; N];
        let mut counts = [0; N];
        let (mut at, mut n) = (0, 0);
        while at < self.pieces.len() {
            let count = self.batch_len(at);
            let len = NonZeroU16::new(self.pieces[at].len() as u16);
            batches[n].runs = &runs[2 * at..2 * (at + count)];
            batches[n].segment_len = len.filter(|_| count > 1);
            counts[n] = count;
            (at, n) = (at + count, n + 1);
        }
        match datagram::send(socket, &batches[..n]) {
            Ok(taken) => Ok(counts[..taken].iter().sum()),
            Err(obstacle) => Err((counts[0], obstacle)),
        }
    }

    /// Number of datagrams from `at` on that form a GSO batch. All have one length; only the last may be
    /// shorter.
    fn batch_len(&self, at: usize) -> usize {
        let segment_len = self.pieces[at].len();
        if !self.cuts || self.fragments || segment_len > self.path_len {
            return 1;
        }
        let mut total = segment_len;
        let mut count = 1;
        for piece in &self.pieces[at + 1..] {
            total += piece.len();
            if piece.len() > segment_len || total > LEN_MAX {
                break;
            }
            count += 1;
            if piece.len() < segment_len {
                break;
            }
        }
        count
    }

    /// Passes the datagrams to the simulated network, and its output to the socket.
    #[cold]
    fn play(&mut self, now: Nanos, socket: BorrowedFd<'_>, store: &Store) {
        let Some(network) = &mut self.network else { return };
        for mut piece in self.pieces.drain(..) {
            let octets = piece.whole.take().unwrap_or_else(|| piece.octets(store));
            network.send(now, octets);
        }
        while let Some(octets) = network.poll_deliver(now) {
            let batch =
                GsoBatch { to: self.address.as_ref(), runs: &[Run::from(&octets[..])], segment_len: None };
            // A datagram that the socket does not take is lost, as others are in this network.
            let _ = datagram::send(socket, &[batch]);
            self.left.calls += 1;
        }
    }
}
