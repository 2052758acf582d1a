//! Relay of packets between two ranks that cuts their connection at a given position.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use mpjdev_proto::context::{WORLD, control};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest time without octets.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From rank 0 to rank 1.
    Forth,
    /// From rank 1 to rank 0.
    Back,
}

impl Way {
    /// Whether it begins at this rank.
    pub(crate) fn begins_at(self, from: usize) -> bool {
        (self == Way::Forth) == (from == 0)
    }
}

/// Kind of a packet, for the choice of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A whole short message without an ack.
    Short,
    /// A message that is answered, or its beginning.
    Begun,
    /// A part of the rest of a long message.
    Rest,
    /// A match ack.
    Answer,
    /// A ProtoAck.
    Ack,
    /// Control message of our ranks.
    Aside,
    /// A Fini.
    Fini,
}

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// For both ends, as when the process in between ends.
    Closed,
    /// For the receiver of the cut direction. The other direction remains open.
    HalfClosed,
    /// For both ends. Octets that the system had not sent are lost.
    Reset,
}

/// Position at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) way: Way,
    pub(crate) step: Step,
    /// In the first packet of this kind, or a later one.
    pub(crate) nth: usize,
    /// Octets of the packet that are carried: all if it has no more.
    pub(crate) len: Place,
    pub(crate) how: How,
}

/// An offset in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Octets of the header.
    Header(usize),
    /// In the middle of the data.
    Middle,
    /// Before the last octet.
    Last,
    /// Behind the packet.
    Behind,
}

/// Packets that were carried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// Complete packets.
    pub(crate) steps: Vec<Step>,
    /// Complete messages of the program.
    pub(crate) messages: usize,
}

/// Record of a relay.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) forth: Carried,
    pub(crate) back: Carried,
    /// Whether it has reached the cut.
    pub(crate) is_cut: bool,
}

/// One direction of the relay.
struct Course {
    carried: Carried,
    here: Vec<u8>,
    leaving: Vec<u8>,
    /// Octets of the rests of long messages, by the receiver's id.
    rests: std::collections::HashMap<u64, u64>,
    /// Whether no more packets arrive or are carried.
    is_over: bool,
    /// Whether the receiver has been notified of it.
    is_closed: bool,
}

impl Course {
    fn new() -> Course {
        let (carried, here, leaving, rests) = Default::default();
        Course { carried, here, leaving, rests, is_over: false, is_closed: false }
    }

    /// The next packet, if it has arrived in full.
    fn next(&self, dialect: Dialect) -> Option<(Packet, usize)> {
        let header = self.here.first_chunk::<HEADER_LEN>()?;
        let packet = Packet::parse(header, dialect).expect("ranks of ours speak as they should");
        let len = HEADER_LEN + packet.data_len() as usize;
        (self.here.len() >= len).then_some((packet, len))
    }

    fn note(&mut self, packet: &Packet, step: Step) {
        self.carried.steps.push(step);
        let is_whole = match step {
            Step::Short | Step::Begun => u64::from(packet.len) == packet.msglen,
            Step::Rest => {
                let begun = self.rests.entry(packet.drqid).or_default();
                *begun += u64::from(packet.len);
                *begun + BEGUN_LEN == packet.msglen
            }
            _ => false,
        };
        self.carried.messages += usize::from(is_whole);
    }
}

/// Octets of a long message that leave before it is matched.
const BEGUN_LEN: u64 = mpjdev_proto::impi::message_tx::RTS_DATA_LEN as u64;

fn step_of(packet: &Packet) -> Step {
    match packet.kind {
        PacketType::Data if packet.cid == control(WORLD) => Step::Aside,
        PacketType::Data if u64::from(packet.len) < packet.msglen => Step::Rest,
        PacketType::Data => Step::Short,
        PacketType::DataSync => Step::Begun,
        PacketType::SyncAck => Step::Answer,
        PacketType::ProtoAck => Step::Ack,
        PacketType::Fini => Step::Fini,
        kind => panic!("ranks of ours say no {kind:?}"),
    }
}

impl Place {
    /// Whether a part of the packet is carried, and a part is not.
    pub(crate) fn is_inside(self) -> bool {
        !matches!(self, Place::Header(0) | Place::Behind)
    }

    /// Octets before it in a packet of this length.
    fn of(self, len: usize) -> usize {
        match self {
            Place::Header(n) => n,
            Place::Middle => HEADER_LEN + (len - HEADER_LEN) / 2,
            Place::Last => len - 1,
            Place::Behind => len,
        }
    }
}

/// Between rank 0 and rank 1.
pub(crate) struct Relay {
    dialect: Dialect,
    cut: Option<Cut>,
    /// To rank 0 and to rank 1.
    sockets: [TcpStream; 2],
    courses: [Course; 2],
    is_cut: bool,
    /// Packets in the direction of the cut are kept until there.
    holds: bool,
}

impl Relay {
    pub(crate) fn new(sockets: [TcpStream; 2], dialect: Dialect, cut: Option<Cut>) -> Relay {
        for socket in &sockets {
            socket.set_nonblocking(true).expect("a socket");
            socket.set_nodelay(true).expect("a socket");
        }
        Relay { dialect, cut, sockets, courses: [Course::new(), Course::new()], is_cut: false, holds: false }
    }

    /// Keeps the packets of the direction of the cut until the cut, so that they arrive together.
    pub(crate) fn holding(self) -> Relay {
        Relay { holds: true, ..self }
    }

    /// Whether packets from there are kept for now.
    fn is_held(&self, from: usize) -> bool {
        self.holds && !self.is_cut && self.cut.is_some_and(|cut| cut.way.begins_at(from))
    }

    /// Carries until both ends have ended, or the connection is cut for both.
    pub(crate) fn run(mut self) -> Seen {
        while !self.courses.iter().all(|course| course.is_closed) {
            self.wait();
            for from in 0..2 {
                self.read(from);
                self.carry(from);
                self.write(from);
            }
            let is_done = self.is_cut && self.courses.iter().all(|course| course.leaving.is_empty());
            match self.cut.map(|cut| cut.how) {
                Some(How::Closed) if is_done => break,
                Some(How::Reset) if is_done => {
                    for socket in &self.sockets {
                        let now = Some(Duration::ZERO);
                        rustix::net::sockopt::set_socket_linger(socket, now).expect("a socket");
                    }
                    break;
                }
                _ => {}
            }
        }
        let [forth, back] = self.courses.map(|course| course.carried);
        Seen { forth, back, is_cut: self.is_cut }
    }

    fn wait(&self) {
        let fds = [0, 1].map(|side: usize| {
            let reads = if self.courses[side].is_over { PollFlags::empty() } else { PollFlags::IN };
            let writes = if self.courses[1 - side].leaving.is_empty() || self.is_held(1 - side) {
                PollFlags::empty()
            } else {
                PollFlags::OUT
            };
            PollFd::new(&self.sockets[side], reads | writes)
        });
        let most = Timespec::try_from(IDLE_MAX).expect("seconds");
        let begun = Instant::now();
        let mut fds = fds.to_vec();
        let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&most))).expect("it waits");
        assert!(ready > 0, "nothing to carry for {:?}, cut: {}", begun.elapsed(), self.is_cut);
    }

    fn read(&mut self, from: usize) {
        let course = &mut self.courses[from];
        let mut octets = [0; 4096];
        while !course.is_over {
            match self.sockets[from].read(&mut octets) {
                Ok(0) => course.is_over = true,
                Ok(n) => course.here.extend(&octets[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                    course.is_over = true;
                }
            }
        }
    }

    /// Forwards complete packets, and the chosen part of the one that is cut.
    fn carry(&mut self, from: usize) {
        let course = &mut self.courses[from];
        while let Some((packet, len)) = course.next(self.dialect) {
            let step = step_of(&packet);
            let nth = course.carried.steps.iter().filter(|before| **before == step).count();
            let is_here = |cut: &Cut| cut.way.begins_at(from) && (cut.step, cut.nth) == (step, nth);
            let here = self.cut.filter(|cut| !self.is_cut && is_here(cut));
            let carried = here.map_or(len, |cut| cut.len.of(len));
            let is_lost = self.is_cut
                && self.cut.is_some_and(|cut| cut.way.begins_at(from) || cut.how != How::HalfClosed);
            if !is_lost {
                course.leaving.extend(&course.here[..carried]);
                if carried == len {
                    course.note(&packet, step);
                }
            }
            self.is_cut |= here.is_some();
            course.here.drain(..len);
        }
    }

    fn write(&mut self, from: usize) {
        if self.is_held(from) {
            return;
        }
        let course = &mut self.courses[from];
        while !course.leaving.is_empty() {
            match self.sockets[1 - from].write(&course.leaving) {
                Ok(n) => drop(course.leaving.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    let gone: [ErrorKind; 2] = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
                    assert!(gone.contains(&error.kind()), "{error}");
                    course.leaving.clear();
                }
            }
        }
        let is_half = self.is_cut
            && self
                .cut
                .is_some_and(|cut| cut.how == How::HalfClosed && (cut.way == Way::Forth) == (from == 0));
        if (course.is_over || is_half) && !course.is_closed {
            // An end that has closed needs no other.
            let _: io::Result<()> = self.sockets[1 - from].shutdown(Shutdown::Write);
            course.is_closed = course.is_over;
        }
    }
}
