//! Messages between two ranks of ours behind UDP sockets, in two processes: what our own transport makes of a network.
//!
//! Each end says how many packets it takes ahead, hears that of the other one, says that it is ready, and begins when it is told to:
//! a packet that comes before its receiver knows the connection would be refused.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpjdev_buffer::layout::SECTION_HEADER_LEN;
use mpjdev_buffer::{Encoding, Message, SlabSource, WriteBuffer};
use mpjdev_device::pool::HeapPool;
use mpjdev_device::transport::udp::{self, INDEX_BITS, Member, Terms, UdpWire};
use mpjdev_device::{Comm, Config, From, Mode, Patient, job};
use mpjdev_proto::datagram::modern::settings::Path;
use mpjdev_proto::datagram::sequence::Sequence;
use serde::{Deserialize, Serialize};

use super::rank::RankError;
use super::stream::Goodput;

/// Octets of a datagram: what an interface of 1500 octets takes.
pub const DATAGRAM_LEN: usize = 1472;
/// Messages of a stream that are under way.
const DEPTH: usize = 16;
/// Octets that messages may take together.
const LIMIT: u64 = 1 << 30;
/// Of messages of the stream, and of those behind its end.
const TAG: i32 = 1;
const END: i32 = 2;

/// What the two ends do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Rank 0 sends for so long.
    Stream(Duration),
    /// A message there and back, so often.
    PingPong(u64),
}

/// What an end is to do.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Its rank, 0 or 1.
    pub rank: u32,
    /// Its address.
    pub at: SocketAddr,
    /// The other end's.
    pub peer: SocketAddr,
    /// What both make the numbers of their connection of.
    pub number: u32,
    /// What is known of the way.
    pub path: Path,
    /// Octets of a message's elements.
    pub octets: u64,
    /// What is done.
    pub task: Task,
}

/// What an end tells when all is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Octets of messages that have come behind the first one, or messages that went there and back.
    pub done: u64,
    /// In how many nanoseconds.
    pub nanos: u64,
    /// Packets with a sequence number that left.
    pub sent: u64,
    /// Of them, those that left again.
    pub retransmitted: u64,
    /// Of those, how many the other end had already.
    pub spurious: u64,
    /// Timers that expired in vain.
    pub timeouts: u64,
    /// Acknowledgments without a message that left.
    pub pure_acks: u64,
    /// Cuts of the congestion window.
    pub cuts: u64,
    /// Of them, those that were taken back.
    pub undone_cuts: u64,
    /// Datagrams that the system had no room for.
    pub dropped: u64,
    /// Microseconds of the smoothed round trip.
    pub rtt_us: u64,
    /// Packets that the other end may send ahead.
    pub window: u64,
}

impl Told {
    /// What a stream has carried.
    pub fn goodput(&self) -> Goodput {
        Goodput { octets: self.done, nanos: self.nanos }
    }
}

/// Is one end: hears from `input`, tells to `output`.
///
/// # Errors
/// The system refuses, messages do not go, or whoever has started this is gone.
pub fn serve(order: &Order, input: impl BufRead, mut output: impl Write) -> Result<(), RankError> {
    let mut lines = input.lines();
    let mut next = || -> Result<String, RankError> {
        let gone = || RankError::Order("whoever has started this end is gone".into());
        Ok(lines.next().ok_or_else(gone)??)
    };
    let mut tell = |text: &str| -> io::Result<()> {
        writeln!(output, "{text}")?;
        output.flush()
    };
    let terms = Terms { datagram_len_max: DATAGRAM_LEN, path: order.path, ..Terms::default() };
    let socket = UdpSocket::bind(order.at)?;
    let window = udp::prepare(socket.as_fd(), 1, &terms)?;
    tell(&window.to_string())?;
    let line = next()?;
    let send_window = line.parse().map_err(|_| RankError::Order(format!("no window: {line}")))?;
    let mut end = End::new(order, terms, socket, window, send_window)?;
    tell("ready")?;
    next()?;
    let (done, nanos) = match (order.task, order.rank) {
        (Task::Stream(time), 0) => end.give(time)?,
        (Task::Stream(_), _) => end.take()?,
        (Task::PingPong(times), rank) => end.ping_pong(times, rank)?,
    };
    let counters = end.wire.counters(1 - order.rank).unwrap_or_default();
    let told = Told {
        done,
        nanos,
        sent: counters.sent + counters.retransmitted,
        retransmitted: counters.retransmitted,
        spurious: counters.spurious,
        timeouts: counters.timeouts,
        pure_acks: counters.pure_acks,
        cuts: counters.cuts,
        undone_cuts: counters.undone_cuts,
        dropped: end.wire.drops()?.into(),
        rtt_us: counters.smoothed_rtt / 1000,
        window: window.into(),
    };
    end.world.endpoint().finish(&mut Patient)?;
    tell(&serde_json::to_string(&told).map_err(io::Error::from)?)?;
    Ok(())
}

/// A rank with a message of its own.
struct End {
    world: Comm,
    wire: Arc<UdpWire>,
    message: Message,
    capacity: usize,
    peer: i32,
}

impl End {
    fn new(
        order: &Order,
        terms: Terms,
        socket: UdpSocket,
        receive_window: u16,
        send_window: u16,
    ) -> Result<End, RankError> {
        let (rank, peer) = (order.rank, 1 - order.rank);
        // What is in the packets that this rank gets of another one.
        let number_of = |rank: u32| order.number << INDEX_BITS | rank;
        let first = Sequence::of(order.number.into());
        let member = Member {
            address: order.peer,
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
        let job = udp::Job { rank, members, terms, socket, receive_window, lines: Vec::new() };
        let source: Arc<dyn SlabSource> = HeapPool::new(LIMIT);
        let config = Config::default().for_ranks(2).bounded();
        let (world, wire) = job::udp_rank_and_wire(job, config, &source)?;
        let count = (order.octets / 8) as usize;
        let capacity = SECTION_HEADER_LEN + 8 * count;
        let mut buffer = WriteBuffer::new(source, capacity as i64, Encoding::NATIVE)?;
        buffer.write(&vec![1.0; count])?;
        let message = buffer.finish()?.clone();
        Ok(End { world, wire, message, capacity, peer: peer as i32 })
    }

    /// Sends for so long, and then as many as the other end may still wait for.
    fn give(&mut self, time: Duration) -> Result<(u64, u64), RankError> {
        let begin = Instant::now();
        let mut pending = VecDeque::new();
        let mut behind = DEPTH;
        let mut sent = 0;
        while behind > 0 {
            let is_over = begin.elapsed() >= time;
            behind -= usize::from(is_over);
            let tag = if is_over { END } else { TAG };
            if pending.len() == DEPTH
                && let Some(id) = pending.pop_front()
            {
                self.world.wait(id, None, &mut Patient)?;
            }
            pending.extend(self.world.isend(&self.message, self.peer, tag, Mode::Standard)?);
            sent += 1;
        }
        for id in pending {
            self.world.wait(id, None, &mut Patient)?;
        }
        Ok((sent, begin.elapsed().as_nanos() as u64))
    }

    /// Receives until the end; what has come behind the first message counts.
    fn take(&mut self) -> Result<(u64, u64), RankError> {
        let from = From { source: Some(self.peer), tag: None };
        let post = |spare| self.world.irecv(from, self.capacity, spare);
        let mut pending = VecDeque::new();
        for _ in 0..DEPTH {
            pending.push_back(post(None)?);
        }
        let mut begin: Option<(Instant, u64)> = None;
        let mut latest = (Instant::now(), 0);
        while let Some(id) = pending.pop_front() {
            let done = self.world.wait(id, None, &mut Patient)?;
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
        let from = From { source: Some(self.peer), tag: Some(TAG) };
        let mut spare = None;
        for _ in 0..times {
            if rank == 0 {
                self.world.send(&self.message, self.peer, TAG, Mode::Standard, &mut Patient)?;
            }
            let (_, message) = self.world.recv(from, self.capacity, spare, &mut Patient)?;
            spare = Some(message.into_slab());
            if rank == 1 {
                self.world.send(&self.message, self.peer, TAG, Mode::Standard, &mut Patient)?;
            }
        }
        Ok((times, begin.elapsed().as_nanos() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, PipeReader, PipeWriter, pipe};
    use std::net::Ipv4Addr;

    use super::*;

    /// Two ends that hear of each other; what they tell.
    fn run(task: Task, octets: u64) -> [Told; 2] {
        // Nobody else takes ports of this address meanwhile.
        let any = || UdpSocket::bind((Ipv4Addr::new(127, 6, 5, 3), 0)).expect("a socket");
        let sockets = [any(), any()];
        let addresses = sockets.map(|socket| socket.local_addr().expect("an address"));
        let pipes: [_; 4] = std::array::from_fn(|_| pipe().expect("a pipe"));
        let [(in0, to0), (in1, to1), (from0, out0), (from1, out1)] = pipes;
        let order = |rank: u32| Order {
            rank,
            at: addresses[rank as usize],
            peer: addresses[1 - rank as usize],
            number: 77,
            path: Path::PRIVATE,
            octets,
            task,
        };
        let serve = |rank, input: PipeReader, output: PipeWriter| {
            serve(&order(rank), BufReader::new(input), output).expect("it is done");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| serve(0, in0, out0));
            scope.spawn(|| serve(1, in1, out1));
            let mut from = [from0, from1].map(|from| BufReader::new(from).lines());
            let mut next = |rank: usize| from[rank].next().expect("a line").expect("a line");
            let mut to = [to0, to1];
            let windows = [next(0), next(1)];
            for (to, window) in to.iter_mut().zip(windows.iter().rev()) {
                writeln!(to, "{window}").expect("told");
            }
            assert_eq!([next(0), next(1)], ["ready", "ready"]);
            for to in to.iter_mut().rev() {
                writeln!(to, "go").expect("told");
            }
            [0, 1].map(|rank| serde_json::from_str(&next(rank)).expect("what it tells"))
        })
    }

    #[test]
    fn what_a_stream_has_carried_is_told() {
        let [giver, taker] = run(Task::Stream(Duration::from_millis(20)), 65_536);
        assert!(giver.done >= DEPTH as u64, "{giver:?}");
        let message = 65_536 + SECTION_HEADER_LEN as u64;
        assert!(taker.done.is_multiple_of(message) && taker.done / message < giver.done, "{taker:?}");
        assert!(giver.sent * DATAGRAM_LEN as u64 > taker.done && giver.window > 1, "{giver:?}");
        assert_eq!((giver.dropped, taker.dropped), (0, 0));
    }

    #[test]
    fn what_goes_there_and_back_is_told() {
        let told = run(Task::PingPong(20), 8);
        assert!(told.iter().all(|told| told.done == 20 && told.nanos > 0 && told.sent >= 20), "{told:?}");
    }
}
