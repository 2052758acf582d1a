//! One end of a measurement of the UDP transport: a rank with one peer in another process.

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_bootstrap::job;
use mpjdev_buffer::layout::SECTION_HEADER_LEN;
use mpjdev_buffer::{Encoding, Message, SlabSource, WriteBuffer};
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, RecvFrom, Uninterruptible};
use mpjdev_proto::datagram::reliable::settings::Path;
use mpjdev_proto::datagram::sequence::FullSequence;
use mpjdev_transport::udp::{self, Member, Terms, UdpTransport};

use super::ends::{DATAGRAM_LEN, END, EndConfig, EndReport, ParentPipe, TAG, Task};
use super::rank::RankError;

/// Octets of a stream's messages in flight, and the limits of their number.
const AHEAD_LEN: usize = 1 << 20;
const DEPTH: [usize; 2] = [16, 1024];
/// Credit of the sender. It is small, since unmatched messages prolong the stream beyond its time.
const CREDIT: u64 = 4 << 20;
/// Limit of the memory of all messages, in octets.
const LIMIT: u64 = 1 << 30;

/// Executes the task of an end and returns its report.
pub(super) fn run<I: BufRead, O: Write>(
    config: &EndConfig,
    path: Path,
    parent: &mut ParentPipe<I, O>,
) -> Result<EndReport, RankError> {
    let terms = Terms { datagram_len_max: DATAGRAM_LEN, path, ..Terms::default() };
    let socket = UdpSocket::bind(config.at)?;
    let window = udp::prepare(socket.as_fd(), 1, &terms)?;
    let send_window = parent.exchange(window)?;
    let mut end = End::new(config, terms, socket, window, send_window)?;
    parent.ready()?;
    let (done, nanos) = match (config.task, config.rank) {
        (Task::Stream(time), 0) => end.send_stream(time)?,
        (Task::Stream(_), _) => end.receive_stream()?,
        (Task::PingPong(times), rank) => end.ping_pong(times, rank)?,
    };
    end.world.finish(&mut Uninterruptible)?;
    let counters = end.wire.counters(1 - config.rank).unwrap_or_default();
    Ok(EndReport {
        done,
        nanos,
        sent: counters.sent,
        retransmitted: counters.retransmitted,
        spurious: counters.spurious,
        timeouts: counters.timeouts,
        pure_acks: counters.pure_acks,
        cuts: counters.cuts,
        undone_cuts: counters.undone_cuts,
        dropped: end.wire.drops()?.into(),
        rtt_us: counters.smoothed_rtt / 1000,
        window: window.into(),
    })
}

/// A rank and the message that it sends.
struct End {
    world: Comm,
    wire: Arc<UdpTransport>,
    message: Message,
    capacity: usize,
    peer: i32,
    /// Messages in flight.
    depth: usize,
}

impl End {
    fn new(
        config: &EndConfig,
        terms: Terms,
        socket: UdpSocket,
        receive_window: u16,
        send_window: u16,
    ) -> Result<End, RankError> {
        let (rank, peer) = (config.rank, 1 - config.rank);
        // Connection number in the packets that a rank receives.
        let number_of = |rank: u32| u64::from(config.number) << 1 | u64::from(rank);
        let first = FullSequence::of(config.number.into());
        let member = Member {
            address: config.peer,
            theirs: number_of(rank),
            ours: number_of(peer),
            first_theirs: first,
            first_ours: first,
            send_window,
            datagram_len_max: terms.datagram_len_max,
            is_checked: terms.is_checked,
            max_ack_delay: terms.path.max_ack_delay,
            path: terms.path,
        };
        let mut members = vec![Some(member); 2];
        members[rank as usize] = None;
        let job = udp::Job {
            rank,
            members,
            site_of: Vec::new(),
            terms,
            socket,
            receive_window,
            early: Vec::new(),
            liveness: Vec::new(),
            networks: Vec::new(),
        };
        let source: Arc<dyn SlabSource> = HeapPool::new(LIMIT);
        // Packets arrive less than a millisecond apart. A rank that yields so long would keep the relay from
        // its processor.
        let engine = Config { credit: CREDIT, yields: 0, ..Config::default() }.for_ranks(2).bounded();
        let (world, wire) = job::udp_rank(job, engine, &source, None)?;
        let count = (config.octets / 8) as usize;
        let capacity = SECTION_HEADER_LEN + 8 * count;
        let mut buffer = WriteBuffer::new(source, capacity as i64, Encoding::NATIVE)?;
        buffer.write(&vec![1.0; count])?;
        let message = buffer.finish()?.clone();
        let depth = (AHEAD_LEN / capacity).clamp(DEPTH[0], DEPTH[1]);
        Ok(End { world, wire, message, capacity, peer: peer as i32, depth })
    }

    /// Sends for `time`, and then one END message for each receive that the peer may have posted.
    fn send_stream(&mut self, time: Duration) -> Result<(u64, u64), RankError> {
        let begin = Instant::now();
        let mut pending = VecDeque::new();
        let mut behind = self.depth;
        let mut sent = 0;
        while behind > 0 {
            let is_over = begin.elapsed() >= time;
            behind -= usize::from(is_over);
            let tag = if is_over { END } else { TAG };
            if pending.len() == self.depth
                && let Some(id) = pending.pop_front()
            {
                self.world.wait(id, None, &mut Uninterruptible)?;
            }
            pending.extend(self.world.isend(&self.message, self.peer, tag, Mode::Standard)?);
            sent += 1;
        }
        for id in pending {
            self.world.wait(id, None, &mut Uninterruptible)?;
        }
        Ok((sent, begin.elapsed().as_nanos() as u64))
    }

    /// Receives until the end of the stream. Octets and time count from the first message on.
    fn receive_stream(&mut self) -> Result<(u64, u64), RankError> {
        let from = RecvFrom { source: Some(self.peer), tag: None };
        let post = |spare| self.world.irecv(from, self.capacity, spare);
        let mut pending = VecDeque::new();
        for _ in 0..self.depth {
            pending.push_back(post(None)?);
        }
        let mut begin: Option<(Instant, u64)> = None;
        let mut latest = (Instant::now(), 0);
        while let Some(id) = pending.pop_front() {
            let done = self.world.wait(id, None, &mut Uninterruptible)?;
            let is_last = done.status.as_ref().is_some_and(|status| status.tag == END);
            if is_last {
                continue;
            }
            latest = (Instant::now(), latest.1 + self.capacity as u64);
            begin.get_or_insert(latest);
            pending.push_back(post(done.message.map(Message::into_slab))?);
        }
        let begin = begin.unwrap_or(latest);
        Ok((latest.1 - begin.1, (latest.0 - begin.0).as_nanos() as u64))
    }

    fn ping_pong(&mut self, times: u64, rank: u32) -> Result<(u64, u64), RankError> {
        let begin = Instant::now();
        let from = RecvFrom { source: Some(self.peer), tag: Some(TAG) };
        let mut spare = None;
        for _ in 0..times {
            if rank == 0 {
                self.world.send(&self.message, self.peer, TAG, Mode::Standard, &mut Uninterruptible)?;
            }
            let (_, message) = self.world.recv(from, self.capacity, spare, &mut Uninterruptible)?;
            spare = Some(message.into_slab());
            if rank == 1 {
                self.world.send(&self.message, self.peer, TAG, Mode::Standard, &mut Uninterruptible)?;
            }
        }
        Ok((times, begin.elapsed().as_nanos() as u64))
    }
}
