//! The end of a connection of another implementation: a second, simple speaker of IMPI packets that shares
//! no code with the first.
//!
//! It packs the 128 octets of a header by hand, from the table of IMPI 7.1, and blocks on a plain stream. It
//! sends any packet that a test requests. By default it acknowledges and waits at hiwater, as a host must.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Packet types (IMPI 3.4).
pub(crate) const DATA: u32 = 0;
pub(crate) const DATASYNC: u32 = 1;
pub(crate) const PROTOACK: u32 = 2;
pub(crate) const SYNCACK: u32 = 3;
pub(crate) const CANCEL: u32 = 4;
pub(crate) const CANCELYES: u32 = 5;
pub(crate) const CANCELNO: u32 = 6;
pub(crate) const FINI: u32 = 7;

/// Deadline of every expected event.
const SOON: Duration = Duration::from_secs(20);

/// A process: host id and process id (IMPI 2.2).
pub(crate) type Process = ([u8; 16], i64);

/// Values that both sides have agreed on (IMPI 5.5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) maxdatalen: usize,
    pub(crate) ackmark: i64,
    pub(crate) hiwater: i64,
}

/// A header (IMPI 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: u32,
    pub(crate) len: u32,
    pub(crate) src: Process,
    pub(crate) dest: Process,
    pub(crate) srqid: u64,
    pub(crate) drqid: u64,
    pub(crate) msglen: u64,
    pub(crate) lsrank: i32,
    pub(crate) tag: i32,
    pub(crate) cid: u64,
    pub(crate) seqnum: u64,
    pub(crate) count: i64,
    pub(crate) dtype: u64,
}

impl Head {
    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.kind.to_be_bytes());
        out.extend(self.len.to_be_bytes());
        for (host_id, pid) in [self.src, self.dest] {
            out.extend(host_id);
            out.extend(pid.to_be_bytes());
        }
        for word in [self.srqid, self.drqid, self.msglen] {
            out.extend(word.to_be_bytes());
        }
        out.extend(self.lsrank.to_be_bytes());
        out.extend(self.tag.to_be_bytes());
        for word in [self.cid, self.seqnum, self.count as u64, self.dtype, 0] {
            out.extend(word.to_be_bytes());
        }
        assert_eq!(out.len(), 128);
        out
    }

    fn from_octets(octets: &[u8; 128]) -> Head {
        let four = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().expect("four octets"));
        let eight = |at: usize| u64::from_be_bytes(octets[at..at + 8].try_into().expect("eight octets"));
        let process = |at: usize| {
            let host_id: [u8; 16] = octets[at..at + 16].try_into().expect("sixteen octets");
            (host_id, eight(at + 16) as i64)
        };
        assert_eq!(eight(120), 0, "the reserved octets");
        Head {
            kind: four(0),
            len: four(4),
            src: process(8),
            dest: process(32),
            srqid: eight(56),
            drqid: eight(64),
            msglen: eight(72),
            lsrank: four(80) as i32,
            tag: four(84) as i32,
            cid: eight(88),
            seqnum: eight(96),
            count: eight(104) as i64,
            dtype: eight(112),
        }
    }

    pub(crate) fn has_data(&self) -> bool {
        self.kind == DATA || self.kind == DATASYNC
    }

    fn is_counted(&self) -> bool {
        self.kind != PROTOACK && self.kind != FINI
    }
}

/// A received message, with its first header.
#[derive(Debug)]
pub(crate) struct ReceivedMessage {
    pub(crate) head: Head,
    pub(crate) octets: Vec<u8>,
}

/// One process behind the connection, as this end counts its packets (IMPI 9).
#[derive(Clone, Debug)]
struct Local {
    process: Process,
    rank: i32,
    sent: i64,
    rcvd: i64,
}

/// The foreign end of one connection to one rank of ours.
#[derive(Debug)]
pub(crate) struct Speaker {
    stream: TcpStream,
    locals: Vec<Local>,
    /// The process of the rank at the other end.
    pub(crate) theirs: Process,
    /// Its rank in the world.
    pub(crate) their_rank: i32,
    pub(crate) limits: Limits,
    /// Whether it acknowledges by itself.
    pub(crate) acknowledges: bool,
    /// Packets that arrived while it waited for another.
    early: VecDeque<(Head, Vec<u8>)>,
    next_id: u64,
}

impl Speaker {
    /// For these processes, each with its rank in the world.
    pub(crate) fn new(
        stream: TcpStream,
        locals: &[(Process, u32)],
        (theirs, their_rank): (Process, u32),
        limits: Limits,
    ) -> Speaker {
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        stream.set_write_timeout(Some(SOON)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let local = |(process, rank): &(Process, u32)| Local {
            process: *process,
            rank: *rank as i32,
            sent: 0,
            rcvd: 0,
        };
        Speaker {
            stream,
            locals: locals.iter().map(local).collect(),
            theirs,
            their_rank: their_rank as i32,
            limits,
            acknowledges: true,
            early: VecDeque::new(),
            next_id: 1,
        }
    }

    /// A header of this type from its only, or first, process.
    pub(crate) fn head(&self, kind: u32) -> Head {
        self.head_of(0, kind)
    }

    /// A header of this type from that process.
    pub(crate) fn head_of(&self, at: usize, kind: u32) -> Head {
        let Local { process, rank, .. } = self.locals[at];
        Head { kind, src: process, dest: self.theirs, lsrank: rank, ..Head::default() }
    }

    /// An id that no message had.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Sends this packet, whether or not flow control allows it.
    pub(crate) fn put(&mut self, head: &Head, data: &[u8]) {
        if head.is_counted()
            && let Some(local) = self.locals.iter_mut().find(|local| local.process == head.src)
        {
            local.sent += 1;
        }
        let mut octets = head.octets();
        octets.extend(data);
        self.put_octets(&octets);
    }

    /// Sends these octets.
    pub(crate) fn put_octets(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).expect("the rank reads");
    }

    /// Sends octets if the peer still reads. Returns whether it did.
    pub(crate) fn try_put_octets(&mut self, octets: &[u8]) -> bool {
        self.stream.write_all(octets).is_ok()
    }

    /// Whether flow control lets another counted packet of this process leave (IMPI 9).
    pub(crate) fn may_send(&self, at: usize) -> bool {
        self.locals[at].sent < self.limits.hiwater
    }

    /// Sends this packet when flow control allows it.
    pub(crate) fn send_packet(&mut self, head: &Head, data: &[u8]) {
        let at = self.locals.iter().position(|local| local.process == head.src).expect("a process here");
        while head.is_counted() && !self.may_send(at) {
            let packet = self.read();
            if packet.0.kind != PROTOACK {
                self.early.push_back(packet);
            }
        }
        self.put(head, data);
    }

    /// Sends a short standard message on the world's context, with srqid 0 as LAM does.
    pub(crate) fn send(&mut self, tag: i32, octets: &[u8]) {
        self.send_as(0, 0, tag, octets);
    }

    /// The same from a process, on a context.
    pub(crate) fn send_as(&mut self, at: usize, cid: u64, tag: i32, octets: &[u8]) {
        assert!(octets.len() <= self.limits.maxdatalen, "a short message");
        let len = octets.len();
        let head = Head { len: len as u32, msglen: len as u64, tag, cid, ..self.head_of(at, DATA) };
        self.send_packet(&head, octets);
    }

    /// Sends the first packet of a synchronous or a long message. Returns its header.
    pub(crate) fn begin(&mut self, tag: i32, octets: &[u8]) -> Head {
        let srqid = self.new_id();
        let len = octets.len().min(self.limits.maxdatalen);
        let msglen = octets.len() as u64;
        let head = Head { len: len as u32, msglen, tag, srqid, ..self.head(DATASYNC) };
        self.send_packet(&head, &octets[..len]);
        head
    }

    /// The rest of a long message that was matched.
    pub(crate) fn end(&mut self, begun: &Head, drqid: u64, octets: &[u8]) {
        for part in octets[begun.len as usize..].chunks(self.limits.maxdatalen) {
            let head = Head { kind: DATA, len: part.len() as u32, drqid, ..*begun };
            self.send_packet(&head, part);
        }
    }

    /// Sends a message of any length as IMPI 8 prescribes. A long one is matched when this returns.
    pub(crate) fn send_any(&mut self, tag: i32, octets: &[u8]) {
        if octets.len() <= self.limits.maxdatalen {
            return self.send(tag, octets);
        }
        let begun = self.begin(tag, octets);
        let answer = self.expect(SYNCACK, begun.srqid);
        self.end(&begun, answer.drqid, octets);
    }

    /// Receives the answer of this type to this message.
    pub(crate) fn expect(&mut self, kind: u32, srqid: u64) -> Head {
        let is_it = |(head, _): &(Head, Vec<u8>)| head.kind == kind && head.srqid == srqid;
        if let Some(at) = self.early.iter().position(is_it) {
            return self.early.remove(at).expect("it is there").0;
        }
        loop {
            let packet = self.read();
            if is_it(&packet) {
                return packet.0;
            }
            if packet.0.kind != PROTOACK {
                self.early.push_back(packet);
            }
        }
    }

    /// Receives the next packet other than a ProtoAck.
    pub(crate) fn take(&mut self) -> (Head, Vec<u8>) {
        if let Some(packet) = self.early.pop_front() {
            return packet;
        }
        loop {
            let packet = self.read();
            if packet.0.kind != PROTOACK {
                return packet;
            }
        }
    }

    /// Receives the next message in full: answers it, and requests the rest of a long one.
    pub(crate) fn recv(&mut self) -> ReceivedMessage {
        let is_first = |head: &Head| head.kind == DATASYNC || u64::from(head.len) == head.msglen;
        let at = self.early.iter().position(|(head, _)| head.has_data() && is_first(head));
        let first = match at {
            Some(at) => self.early.remove(at).expect("it is there"),
            None => loop {
                let packet = self.read();
                if packet.0.has_data() && is_first(&packet.0) {
                    break packet;
                }
                if packet.0.kind != PROTOACK {
                    self.early.push_back(packet);
                }
            },
        };
        self.accept(first)
    }

    /// Posts the receive for a message whose first packet this is.
    pub(crate) fn accept(&mut self, (head, mut octets): (Head, Vec<u8>)) -> ReceivedMessage {
        if head.kind == DATASYNC {
            let drqid = 0xd00d_0000_0000_0000 | head.srqid;
            let at = self.locals.iter().position(|local| local.process == head.dest).expect("known");
            let answer = Head { srqid: head.srqid, drqid, ..self.head_of(at, SYNCACK) };
            self.send_packet(&answer, &[]);
            while octets.len() < head.msglen as usize {
                octets.extend(self.part(drqid));
            }
        }
        assert_eq!(octets.len() as u64, head.msglen, "{head:?}");
        ReceivedMessage { head, octets }
    }

    /// Receives the next part of a long message.
    fn part(&mut self, drqid: u64) -> Vec<u8> {
        let is_it = |(head, _): &(Head, Vec<u8>)| head.kind == DATA && head.drqid == drqid;
        if let Some(at) = self.early.iter().position(is_it) {
            return self.early.remove(at).expect("it is there").1;
        }
        loop {
            let packet = self.read();
            if is_it(&packet) {
                return packet.1;
            }
            if packet.0.kind != PROTOACK {
                self.early.push_back(packet);
            }
        }
    }

    /// Reads one packet, counts it, and acknowledges what is due.
    fn read(&mut self) -> (Head, Vec<u8>) {
        self.try_read().expect("a packet, not the end of the stream")
    }

    /// As [`read`](Self::read); `None` at the end of the stream.
    fn try_read(&mut self) -> Option<(Head, Vec<u8>)> {
        let mut octets = [0; 128];
        match self.stream.read_exact(&mut octets) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                return None;
            }
            Err(error) => panic!("nothing arrives: {error}"),
        }
        let head = Head::from_octets(&octets);
        let mut data = vec![0; if head.has_data() { head.len as usize } else { 0 }];
        self.stream.read_exact(&mut data).expect("the data of a packet follow it");
        if head.kind == FINI {
            return Some((head, data));
        }
        assert_eq!(head.src, self.theirs, "{head:?}");
        let Limits { ackmark, hiwater, maxdatalen } = self.limits;
        assert!(head.len as usize <= maxdatalen, "{head:?}");
        let local = self.locals.iter_mut().find(|local| local.process == head.dest);
        let local = local.unwrap_or_else(|| panic!("no such process: {head:?}"));
        if head.kind == PROTOACK {
            local.sent -= ackmark;
            assert!(local.sent >= 0, "a ProtoAck without packets");
        } else {
            local.rcvd += 1;
            assert!(local.rcvd <= hiwater, "more than hiwater packets without a ProtoAck");
        }
        if self.acknowledges {
            self.acknowledge();
        }
        Some((head, data))
    }

    /// Sends the ProtoAcks that are due.
    pub(crate) fn acknowledge(&mut self) {
        for at in 0..self.locals.len() {
            while self.locals[at].rcvd >= self.limits.ackmark {
                self.locals[at].rcvd -= self.limits.ackmark;
                self.put(&self.head_of(at, PROTOACK), &[]);
            }
        }
    }

    /// Reads the packets that have arrived, without waiting.
    pub(crate) fn read_available(&mut self) {
        while self.stream_has_something() {
            let packet = self.read();
            if packet.0.kind != PROTOACK {
                self.early.push_back(packet);
            }
        }
    }

    fn stream_has_something(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let looked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).expect("a socket");
        looked.is_ok_and(|len| len > 0)
    }

    /// Sends a request that the rank answers at once, behind all ProtoAcks that are due. It counts as one of
    /// the packets that may leave.
    pub(crate) fn ask(&mut self) {
        let question = Head { srqid: u64::MAX, ..self.head(CANCEL) };
        self.send_packet(&question, &[]);
        self.expect(CANCELNO, u64::MAX);
    }

    /// Whether the rank has sent nothing unread by the time that it answers a request.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.ask();
        self.early.is_empty()
    }

    /// Sends as long as the rank acknowledges, at most `most` times. Returns the number of sends.
    pub(crate) fn flood(&mut self, most: usize, mut send: impl FnMut(&mut Speaker, usize)) -> usize {
        let mut sent = 0;
        while self.may_send(0) && sent < most {
            while self.locals[0].sent < self.limits.hiwater - 1 && sent < most {
                send(self, sent);
                sent += 1;
            }
            self.ask();
        }
        sent
    }

    /// Sends the Fini.
    pub(crate) fn fini(&mut self) {
        // As LAM fills it (IMPI 7.2).
        let no_process = ([0; 16], -1);
        let head =
            Head { kind: FINI, len: 128, msglen: 128, src: no_process, dest: no_process, ..Head::default() };
        self.put(&Head { lsrank: -1, tag: -1, cid: 0x49 << 56, ..head }, &[]);
    }

    /// Reads to the end of the stream. Returns the packets before it without the ProtoAcks.
    pub(crate) fn drain(&mut self) -> Vec<Head> {
        let mut heads: Vec<Head> = self.early.drain(..).map(|packet| packet.0).collect();
        while let Some((head, _)) = self.try_read() {
            if head.kind != PROTOACK {
                heads.push(head);
            }
        }
        heads
    }
}
