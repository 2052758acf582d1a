//! Receiving side of a rank: it passes on the packets that were read.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use mpjdev_buffer::octets::copy_out;
use mpjdev_proto::impi::fini::EndOfStream;

use super::body_action::BodyAction;
use super::channel::Channel;
use super::channel_state::{Fault, HostState};
use super::rx_stream::{BodyTarget, RxStream};
use super::transport::TcpTransport;
use super::tx_stream::PeerSession;
use crate::net::copy::copy_octets;
use crate::net::peer_fault::PeerFault;
use crate::net::transport::NetTransport;
use crate::{Header, Incoming, Kind, PacketHandler, PacketSource, Payload};

/// Receiving side of one rank.
#[derive(Debug)]
pub struct TcpSource {
    transport: Arc<TcpTransport>,
    /// The channel that is next in turn.
    next: usize,
    inline_max: usize,
}

impl TcpSource {
    pub(super) fn new(transport: Arc<TcpTransport>, inline_max: usize) -> TcpSource {
        TcpSource { transport, next: 0, inline_max }
    }

    /// Passes on the packets of a channel. Returns their number.
    fn receive_from(&self, channel: &Channel, most: usize, each: &mut PacketHandler<'_>) -> usize {
        channel.is_ready.store(false, SeqCst);
        self.transport.ready_count.fetch_sub(1, SeqCst);
        let mut rx = channel.rx();
        let mut n = 0;
        while n < most {
            match self.next_packet(channel, &mut rx, each) {
                Ok(true) => n += 1,
                Ok(false) => break,
                Err(why) => {
                    rx.close();
                    drop(rx);
                    self.transport.close(
                        channel,
                        &mut channel.tx(),
                        &format!("it violates the protocol: {why}"),
                    );
                    return n;
                }
            }
        }
        if n == most && rx.has_something() {
            self.transport.note_ready(channel);
        } else if rx.is_over && channel.host.load(Relaxed) == HostState::Open {
            let is_between_packets = rx.is_between_packets();
            rx.close();
            drop(rx);
            let mut tx = channel.tx();
            match tx.ending.handle_end_of_stream() {
                EndOfStream::Died => {}
                // A thread that still waits for a packet from there learns that the rank has finished, as far
                // as this can be known.
                EndOfStream::Orderly | EndOfStream::Unknown
                    if is_between_packets
                        && tx.fault == Fault::None
                        && !tx.sessions.iter().any(PeerSession::has_long_in_flight) =>
                {
                    self.transport.note_finished(channel, &mut tx);
                    return n;
                }
                EndOfStream::Orderly | EndOfStream::Unknown => {}
            }
            let why = tx.fault.text().unwrap_or("its connection has ended before it had finished").to_owned();
            self.transport.close(channel, &mut tx, &why);
        }
        n
    }

    /// Takes the next packet, if it has arrived.
    fn next_packet(
        &self,
        channel: &Channel,
        rx: &mut RxStream<BodyAction>,
        each: &mut PacketHandler<'_>,
    ) -> Result<bool, PeerFault> {
        if rx.body.is_none() {
            let Some(header) = rx.take_header() else { return Ok(false) };
            rx.body = Some(self.transport.handle(channel, &header)?);
        }
        let capture_headers = |what: &mut BodyAction, at: usize, words: &[_], from: usize, n: usize| {
            if let BodyAction::Rest { rank, token, offset, .. } = what {
                let mut tx = channel.tx();
                let session = tx.session_of(*rank);
                if let Some(arriving) = tx.sessions[session].arrivals.get_mut(token) {
                    let octet = |i: usize| {
                        let mut octet = [0];
                        copy_out(words, from + i, &mut octet);
                        octet[0]
                    };
                    arriving.capture_headers(*offset + at, octet, n);
                }
            }
        };
        if !rx.place_staged(capture_headers) {
            return Ok(false);
        }
        self.take(channel, rx, each)?;
        rx.end_body();
        Ok(true)
    }

    /// Performs the action of a body that has arrived.
    fn take(
        &self,
        channel: &Channel,
        rx: &mut RxStream<BodyAction>,
        each: &mut PacketHandler<'_>,
    ) -> Result<(), PeerFault> {
        let (words, at) = rx.staged();
        let Some(body) = &rx.body else { return Ok(()) };
        let len = body.len;
        match body.what {
            BodyAction::Nothing => Ok(()),
            BodyAction::Packet(rank, header) => {
                let incoming = match &body.target {
                    BodyTarget::Skipped => Incoming::Nothing,
                    BodyTarget::Slab(slab, _) => Incoming::Reference(Payload::Physical(slab.clone(), len)),
                    BodyTarget::Staged if at.is_multiple_of(8) => Incoming::Inline(&words[at / 8..], len),
                    BodyTarget::Staged => {
                        let slab = self.transport.net.source.take_arrived(len)?;
                        copy_octets(words, at, slab.words(), 0, len);
                        Incoming::Reference(Payload::Physical(slab, len))
                    }
                };
                Ok(each(rank, header, incoming)?)
            }
            BodyAction::FirstPart { rank, header, msglen } => {
                let mut begun = Payload::Partial { len: msglen, here: len, start: None };
                if let BodyTarget::Slab(slab, _) = &body.target {
                    let mut tx = channel.tx();
                    let session = tx.session_of(rank);
                    if let Some(arriving) = tx.sessions[session].arrivals.get_mut(&header.token) {
                        begun = arriving.begin(slab.clone(), len);
                    }
                }
                Ok(each(rank, header, Incoming::Reference(begun))?)
            }
            BodyAction::Rest { rank, token, offset, last: false } => {
                let tx = channel.tx();
                let arriving = tx.sessions[tx.session_of(rank)].arrivals.get(&token);
                let part = arriving.and_then(|arriving| arriving.note_arrived(offset + len));
                drop(tx);
                let Some(part) = part else { return Ok(()) };
                let header = Header { kind: Kind::RendezvousPart, token, ..Header::default() };
                Ok(each(rank, header, Incoming::Reference(part))?)
            }
            BodyAction::Rest { rank, token, .. } => {
                let mut tx = channel.tx();
                let session = tx.session_of(rank);
                let Some(arriving) = tx.sessions[session].arrivals.remove(&token) else { return Ok(()) };
                drop(tx);
                let header = Header { kind: Kind::RendezvousData, token, ..Header::default() };
                Ok(each(rank, header, arriving.into_whole())?)
            }
            BodyAction::Control { rank, tag } => {
                let mut octets = vec![0; len];
                copy_out(words, at, &mut octets);
                self.transport.handle_control(rank, tag, &octets)
            }
            BodyAction::Fini => {
                self.transport.note_finished(channel, &mut channel.tx());
                Ok(())
            }
        }
    }
}

impl PacketSource for TcpSource {
    fn receive(&mut self, most: usize, each: &mut PacketHandler<'_>) -> usize {
        self.transport.net.has_room.store(false, Relaxed);
        let mut n = self.transport.net.loopback.receive(self.transport.net.rank, self.inline_max, most, each);
        if n == 0 {
            self.transport.poll();
        }
        let channels = self.transport.channels.len();
        for i in 0..channels {
            if n >= most || self.transport.ready_count.load(Relaxed) == 0 {
                break;
            }
            let at = (self.next + i) % channels;
            if self.transport.channels[at].is_ready.load(Relaxed) {
                n += self.receive_from(&self.transport.channels[at], most - n, each);
                self.next = (at + 1) % channels;
            }
        }
        // Answers and acknowledgements for all packets taken leave together.
        self.transport.write_waiting();
        if self.transport.ready_count.load(SeqCst) > 0 {
            // The kernel does not report data that was read but not taken, and the thread that takes it may
            // leave now.
            self.transport.net.wake();
        }
        n
    }
}
