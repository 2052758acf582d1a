//! The protocol of 1997 over a UDP socket: a driver for its machine, for comparison.
//!
//! It is driven as a program of 1997 drove it: the thread that sends or receives polls socket and clock, and
//! no other does. It polls for a while, and then sleeps until a packet arrives or the timer is due.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mpjdev_proto::datagram::header::{Header, Mode, Numbers};
use mpjdev_proto::datagram::layout::HEADER_LEN;
use mpjdev_proto::datagram::packet::{emit_unet, parse_unet};
use mpjdev_proto::datagram::unet::{Event, Settings, Transmit, UnetConnection};
use mpjdev_sys::datagram::options;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ends::{DATAGRAM_LEN, END, Line, Order, TAG, Task, Told};
use super::rank::RankError;

/// Octets that the system is asked for, for what waits to be received.
const QUEUE_LEN: usize = 4 << 20;
/// Time that an end polls before it sleeps.
const POLLS: Duration = Duration::from_millis(1);
/// Longest sleep.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Longest silence of the peer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Silence after which an end that finishes takes the other one for ended, and time for which it answers
/// when it has received everything itself.
const FINISH: Duration = Duration::from_secs(3);
const ANSWERS: Duration = Duration::from_millis(500);

/// Does what is ordered; gives what is to be told.
pub(super) fn run<I: BufRead, O: Write>(
    order: &Order,
    eager_acks: bool,
    line: &mut Line<I, O>,
) -> Result<Told, RankError> {
    let len = usize::try_from(order.octets).unwrap_or(usize::MAX);
    if len > DATAGRAM_LEN - HEADER_LEN {
        return Err(RankError::Order(format!("messages of {len} octets fit no datagram")));
    }
    let socket = UdpSocket::bind(order.at)?;
    options::set_buffers(socket.as_fd(), QUEUE_LEN, QUEUE_LEN)?;
    socket.set_nonblocking(true)?;
    let settings = Settings { eager_acks, ..Settings::default() };
    line.exchange(settings.window)?;
    socket.connect(order.peer)?;
    let mut end = End::new(socket, settings, len)?;
    line.ready()?;
    let (done, nanos) = match (order.task, order.rank) {
        (Task::Stream(time), 0) => end.give(time)?,
        (Task::Stream(_), _) => end.take()?,
        (Task::PingPong(times), rank) => end.ping_pong(times, rank)?,
    };
    let told = Told {
        done,
        nanos,
        sent: end.sent,
        retransmitted: end.again,
        timeouts: end.again,
        pure_acks: end.pure_acks,
        window: settings.window.into(),
        ..Told::default()
    };
    end.finish()?;
    Ok(Told { dropped: options::memory(end.socket.as_fd())?.drops.into(), ..told })
}

/// One end: the machine, its socket, and what a program does with messages.
struct End {
    socket: UdpSocket,
    machine: UnetConnection<i32>,
    data: Vec<u8>,
    octets: Vec<u8>,
    begin: Instant,
    heard_at: Instant,
    /// Tags of messages that have come.
    inbox: VecDeque<i32>,
    sent: u64,
    again: u64,
    pure_acks: u64,
}

impl End {
    fn new(socket: UdpSocket, settings: Settings, len: usize) -> Result<End, RankError> {
        let machine = UnetConnection::new(settings).map_err(|error| RankError::Order(error.to_string()))?;
        let now = Instant::now();
        Ok(End {
            socket,
            machine,
            data: vec![1; len],
            octets: vec![0; DATAGRAM_LEN],
            begin: now,
            heard_at: now,
            inbox: VecDeque::new(),
            sent: 0,
            again: 0,
            pure_acks: 0,
        })
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Sends a message, as soon as there is room.
    fn send(&mut self, tag: i32) -> Result<(), RankError> {
        while !self.machine.can_send() {
            self.step()?;
        }
        let now_ns = self.now_ns();
        let numbers = self.machine.send(now_ns, tag).map_err(|error| RankError::Order(error.to_string()))?;
        self.sent += 1;
        self.write(numbers, Some(tag))
    }

    /// The tag of the next message.
    fn recv(&mut self) -> Result<i32, RankError> {
        loop {
            if let Some(tag) = self.inbox.pop_front() {
                return Ok(tag);
            }
            self.step()?;
        }
    }

    /// Looks at socket and clock until something has happened.
    fn step(&mut self) -> Result<(), RankError> {
        let begin = Instant::now();
        loop {
            let has_come = self.read()?;
            let is_due = self.machine.next_timeout_ns().is_some_and(|at_ns| at_ns <= self.now_ns());
            self.machine.handle_timeout(self.now_ns());
            self.transmit()?;
            if has_come || is_due {
                return Ok(());
            }
            if self.heard_at.elapsed() > PATIENCE {
                return Err(RankError::Order("nothing is heard of the other end".into()));
            }
            if begin.elapsed() < POLLS { std::thread::yield_now() } else { self.sleep()? }
        }
    }

    fn sleep(&self) -> io::Result<()> {
        let now_ns = self.now_ns();
        let due = self.machine.next_timeout_ns();
        let due = due.map_or(SLEEP_MAX, |at_ns| Duration::from_nanos(at_ns.saturating_sub(now_ns)));
        let timeout = Timespec::try_from(due.min(SLEEP_MAX)).unwrap_or_default();
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what has come; whether anything has.
    fn read(&mut self) -> Result<bool, RankError> {
        let mut has_come = false;
        loop {
            let len = match self.socket.recv(&mut self.octets) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_come),
                // What the network says of an earlier datagram.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(has_come),
                Err(error) => return Err(error.into()),
            };
            // What is no packet of the other end is none of ours.
            let Ok((header, _)) = parse_unet(&self.octets[..len]) else { continue };
            let now_ns = self.now_ns();
            if let Ok(event) = self.machine.handle_packet(now_ns, header.numbers) {
                (has_come, self.heard_at) = (true, Instant::now());
                if event == Event::Deliver {
                    self.inbox.push_back(header.tag);
                }
            }
            self.transmit()?;
        }
    }

    fn transmit(&mut self) -> Result<(), RankError> {
        while let Some(transmit) = self.machine.poll_transmit() {
            match transmit {
                Transmit::Again { token, numbers } => {
                    self.again += 1;
                    self.write(numbers, Some(token))?;
                }
                Transmit::Ack { numbers } => {
                    self.pure_acks += 1;
                    self.write(numbers, None)?;
                }
            }
        }
        while self.machine.poll_released().is_some() {}
        Ok(())
    }

    fn write(&self, numbers: Numbers, tag: Option<i32>) -> Result<(), RankError> {
        let data = if tag.is_some() { &self.data[..] } else { &[] };
        let tag = tag.unwrap_or(0);
        let header =
            Header { numbers, mode: Mode::Short, context_id: 0, lrank: 0, tag, len: data.len() as u32 };
        let mut octets = [0; DATAGRAM_LEN];
        let len = emit_unet(&header, data, &mut octets);
        let len = len.map_err(|error| RankError::Order(error.to_string()))?;
        // What the socket does not take is lost, as on any other part of the way.
        let _ = self.socket.send(&octets[..len]);
        Ok(())
    }

    /// Sends for so long, and then the end.
    fn give(&mut self, time: Duration) -> Result<(u64, u64), RankError> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.send(TAG)?;
        }
        self.send(END)?;
        Ok((self.sent, begin.elapsed().as_nanos() as u64))
    }

    /// Receives until the end; what has come behind the first message counts.
    fn take(&mut self) -> Result<(u64, u64), RankError> {
        let (mut count, mut begin, mut latest) = (0, None, Instant::now());
        while self.recv()? != END {
            latest = Instant::now();
            begin.get_or_insert(latest);
            count += 1;
        }
        let begin = begin.unwrap_or(latest);
        let behind = u64::saturating_sub(count, 1);
        Ok((behind * self.data.len() as u64, (latest - begin).as_nanos() as u64))
    }

    fn ping_pong(&mut self, times: u64, rank: u32) -> Result<(u64, u64), RankError> {
        let begin = Instant::now();
        for _ in 0..times {
            if rank == 0 {
                self.send(TAG)?;
            }
            self.recv()?;
            if rank == 1 {
                self.send(TAG)?;
            }
        }
        Ok((times, begin.elapsed().as_nanos() as u64))
    }

    /// Continues until all messages have arrived or the other end has ended, as far as that can be known, and
    /// answers for a while: lost messages are retransmitted one for each timeout, and the last acknowledgment
    /// may be lost.
    fn finish(&mut self) -> Result<(), RankError> {
        let (now_ns, begin) = (self.now_ns(), Instant::now());
        self.machine.finish(now_ns, now_ns + PATIENCE.as_nanos() as u64);
        while (self.machine.outcome().is_none() && self.heard_at.elapsed() < FINISH)
            || begin.elapsed() < ANSWERS
        {
            self.read()?;
            self.machine.handle_timeout(self.now_ns());
            self.transmit()?;
            self.sleep()?;
        }
        Ok(())
    }
}
