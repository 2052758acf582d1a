//! Driver of the U-Net protocol of 1997 over a UDP socket, for comparison.
//!
//! As in programs of 1997, the thread that sends or receives polls the socket and the clock, without a
//! progress thread. It polls for a while, and then sleeps until a packet arrives or the timer is due.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mpjdev_proto::datagram::header::{Header, Mode, Numbers};
use mpjdev_proto::datagram::layout::HEADER_LEN;
use mpjdev_sys::datagram::options;
use mpjdev_unet::{Event, Settings, Transmit, UnetConnection};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ends::{DATAGRAM_LEN, END, EndConfig, EndReport, ParentPipe, TAG, Task};
use super::rank::RankError;

/// Requested octets of the socket's buffers.
const QUEUE_LEN: usize = 4 << 20;
/// Time that an end polls before it sleeps.
const POLLS: Duration = Duration::from_millis(1);
/// Longest sleep.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// Peer timeout.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Peer timeout of an end that finishes, and the time for which it acks retransmissions after it has received
/// all messages.
const FINISH: Duration = Duration::from_secs(3);
const ANSWERS: Duration = Duration::from_millis(500);

/// Executes the task of an end and returns its report.
pub(super) fn run<I: BufRead, O: Write>(
    config: &EndConfig,
    eager_acks: bool,
    parent: &mut ParentPipe<I, O>,
) -> Result<EndReport, RankError> {
    let len = usize::try_from(config.octets).unwrap_or(usize::MAX);
    if len > DATAGRAM_LEN - HEADER_LEN {
        return Err(RankError::Command(format!("messages of {len} octets fit no datagram")));
    }
    let socket = UdpSocket::bind(config.at)?;
    options::set_buffers(socket.as_fd(), QUEUE_LEN, QUEUE_LEN)?;
    socket.set_nonblocking(true)?;
    let settings = Settings { eager_acks, ..Settings::default() };
    parent.exchange(settings.window)?;
    socket.connect(config.peer)?;
    let mut end = End::new(socket, settings, len)?;
    parent.ready()?;
    let (done, nanos) = match (config.task, config.rank) {
        (Task::Stream(time), 0) => end.send_stream(time)?,
        (Task::Stream(_), _) => end.receive_stream()?,
        (Task::PingPong(times), rank) => end.ping_pong(times, rank)?,
    };
    let report = EndReport {
        done,
        nanos,
        sent: end.sent,
        retransmitted: end.retransmitted,
        timeouts: end.retransmitted,
        pure_acks: end.pure_acks,
        window: settings.window.into(),
        ..EndReport::default()
    };
    end.finish()?;
    Ok(EndReport { dropped: options::memory(end.socket.as_fd())?.drops.into(), ..report })
}

/// One end: the state machine, its socket, and the messages received.
struct End {
    socket: UdpSocket,
    machine: UnetConnection<i32>,
    data: Vec<u8>,
    octets: Vec<u8>,
    begin: Instant,
    received_at: Instant,
    /// Tags of received messages.
    inbox: VecDeque<i32>,
    sent: u64,
    retransmitted: u64,
    pure_acks: u64,
}

impl End {
    fn new(socket: UdpSocket, settings: Settings, len: usize) -> Result<End, RankError> {
        let machine = UnetConnection::new(settings).map_err(|error| RankError::Command(error.to_string()))?;
        let now = Instant::now();
        Ok(End {
            socket,
            machine,
            data: vec![1; len],
            octets: vec![0; DATAGRAM_LEN],
            begin: now,
            received_at: now,
            inbox: VecDeque::new(),
            sent: 0,
            retransmitted: 0,
            pure_acks: 0,
        })
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Sends a message as soon as the window allows it.
    fn send(&mut self, tag: i32) -> Result<(), RankError> {
        while !self.machine.can_send() {
            self.step()?;
        }
        let now_ns = self.now_ns();
        let numbers =
            self.machine.send(now_ns, tag).map_err(|error| RankError::Command(error.to_string()))?;
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

    /// Polls socket and clock until a packet was received or the timer has expired.
    fn step(&mut self) -> Result<(), RankError> {
        let begin = Instant::now();
        loop {
            let has_received = self.read()?;
            let is_due = self.machine.next_timeout_ns().is_some_and(|at_ns| at_ns <= self.now_ns());
            self.machine.handle_timeout(self.now_ns());
            self.transmit()?;
            if has_received || is_due {
                return Ok(());
            }
            if self.received_at.elapsed() > TIMEOUT {
                return Err(RankError::Command(
                    "the other end has sent no packet before the peer timeout".into(),
                ));
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

    /// Handles all received packets. Returns whether there was one.
    fn read(&mut self) -> Result<bool, RankError> {
        let mut has_received = false;
        loop {
            let len = match self.socket.recv(&mut self.octets) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_received),
                // An ICMP error of an earlier datagram.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(has_received),
                Err(error) => return Err(error.into()),
            };
            // A datagram that is not a packet is ignored.
            let Ok((header, _)) = mpjdev_unet::parse(&self.octets[..len]) else { continue };
            let now_ns = self.now_ns();
            if let Ok(event) = self.machine.handle_packet(now_ns, header.numbers) {
                (has_received, self.received_at) = (true, Instant::now());
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
                    self.retransmitted += 1;
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
        let len = mpjdev_unet::emit(&header, data, &mut octets);
        let len = len.map_err(|error| RankError::Command(error.to_string()))?;
        // A datagram that the socket refuses is lost, like one on the path.
        let _ = self.socket.send(&octets[..len]);
        Ok(())
    }

    /// Sends for `time`, and then the END message.
    fn send_stream(&mut self, time: Duration) -> Result<(u64, u64), RankError> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.send(TAG)?;
        }
        self.send(END)?;
        Ok((self.sent, begin.elapsed().as_nanos() as u64))
    }

    /// Receives until the END message. Octets and time count from the first message on.
    fn receive_stream(&mut self) -> Result<(u64, u64), RankError> {
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

    /// Continues until all messages are acked or the peer has probably ended, and acks retransmissions for a
    /// while: each timeout retransmits one message, and the last ack may be lost.
    fn finish(&mut self) -> Result<(), RankError> {
        let (now_ns, begin) = (self.now_ns(), Instant::now());
        self.machine.finish(now_ns, now_ns + TIMEOUT.as_nanos() as u64);
        while (self.machine.outcome().is_none() && self.received_at.elapsed() < FINISH)
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
