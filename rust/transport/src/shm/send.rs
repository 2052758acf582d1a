//! Sending of packets: records in the queue to a destination, and the slabs they refer to.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use mpjdev_buffer::Slab;
use mpjdev_buffer::octets::copy_words;
use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};

use super::layout::{QUEUE_LINES, queue_at};
use super::loans::{Part, SlabLoans};
use super::peer::Peer;
use super::pool::place;
use super::ring::{Head, LINE, Producer};
use super::send_queue::{SendQueue, Unsent};
use super::transport::ShmTransport;
use super::{BY_REFERENCE, HEADED, IN_TWO, INLINE, NOTHING, PACKING, form};
use crate::config::{CREDIT_OVERHEAD, TOKEN_LEN};
use crate::{Header, Kind, Outgoing, Payload, ShortSend, fits_with_token, goes_inline};

/// The body of a packet.
enum QueuedPacket<'a> {
    Nothing,
    Inline(&'a [AtomicU64], usize),
    /// A slab on loan, with the headers if it is a whole message.
    OnLoan(Part<'a>, Option<[[u8; 8]; 3]>),
    InTwo(Part<'a>, Part<'a>),
}

impl ShmTransport {
    pub(super) fn lock_send_queue(&self, dest: u32) -> Result<MutexGuard<'_, SendQueue>, Unsent> {
        let place = &self.send_queues[dest as usize];
        if place.get().is_none() {
            let (at, len) = (queue_at(self.job.ranks(), dest), self.queue_lines * LINE * 8);
            let no_memory = |error| Unsent::Queue { rank: self.job.base + dest, error };
            self.pool.claim(at, len).map_err(no_memory)?;
            self.about(dest, QUEUE_LINES).store(self.queue_lines as u64, Release);
        }
        let send_queue = place.get_or_init(|| {
            let producer = Producer::new(self.queue_lines);
            Mutex::new(LockRank::SendSide, SendQueue { producer, loans: SlabLoans::default(), prepaid: 0 })
        });
        Ok(send_queue.lock())
    }

    /// The queue to a rank.
    fn queue_to(&self, dest: u32) -> &[AtomicU64] {
        &self.words()[queue_at(self.job.ranks(), dest) / 8..][..self.queue_lines * LINE]
    }

    /// Whether the queue to a rank has records that the rank has not consumed.
    pub(super) fn has_unread(&self, dest: u32) -> bool {
        let (Some(send_queue), Some(peer)) =
            (self.send_queues[dest as usize].get(), self.peers[dest as usize].get())
        else {
            return false;
        };
        send_queue.try_lock().is_some_and(|send_queue| send_queue.producer.position() != peer.consumed())
    }

    /// The body of a packet, with its slabs located; `None` if one of them is outside this rank's segment and
    /// the message does not fit a record.
    fn queued_packet<'a>(&self, kind: Kind, body: Outgoing<'a>) -> Option<QueuedPacket<'a>> {
        Some(match body {
            Outgoing::Nothing => QueuedPacket::Nothing,
            Outgoing::Message(message) | Outgoing::Payload(Payload::Logical(message)) => {
                if kind == Kind::Eager && goes_inline(message, self.inline_max) {
                    return Some(QueuedPacket::Inline(message.first_words(), message.first_len()));
                }
                let Some(first) = self.part(message.first_slab(), message.first_len()) else {
                    let fits = fits_with_token(message, self.inline_max);
                    return fits.then(|| QueuedPacket::Inline(message.first_words(), message.first_len()));
                };
                match message.second_slab() {
                    Some(slab) => QueuedPacket::InTwo(first, self.part(slab, message.secondary_len())?),
                    None => QueuedPacket::OnLoan(first, Some(message.header_words())),
                }
            }
            Outgoing::Payload(Payload::Physical(slab, len) | Payload::WithHeaders(slab, len, _)) => {
                QueuedPacket::OnLoan(self.part(slab, *len)?, None)
            }
            Outgoing::Payload(Payload::Split(first, second)) => {
                QueuedPacket::InTwo(self.part(&first.0, first.1)?, self.part(&second.0, second.1)?)
            }
            Outgoing::Payload(Payload::Partial { .. } | Payload::Truncated { .. }) => {
                unreachable!("a received payload is sent only when it is whole")
            }
        })
    }

    fn part<'a>(&self, slab: &'a Slab, len: usize) -> Option<Part<'a>> {
        Some(Part { slab, chunk: place(slab, &self.pool)?, len })
    }

    /// Sends a short message to a rank that was sent to before. The queue's lock guards its credit too: an
    /// atomic update of its own would take as long as the lock.
    #[inline]
    pub(super) fn send_short(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        words: &[AtomicU64],
        len: usize,
    ) -> ShortSend {
        let (Some(peer), Some(send_queue)) =
            (self.peers[dest as usize].get(), self.send_queues[dest as usize].get())
        else {
            return ShortSend::Unavailable;
        };
        self.push_short(peer, send_queue.lock(), (dest, context, tag), words, len)
    }

    #[inline(always)]
    fn push_short(
        &self,
        peer: &Peer,
        mut send_queue: MutexGuard<'_, SendQueue>,
        (dest, context, tag): (u32, u64, i32),
        words: &[AtomicU64],
        len: usize,
    ) -> ShortSend {
        let Some(prepaid) = send_queue.prepaid.checked_sub(len as u64 + CREDIT_OVERHEAD) else {
            return ShortSend::Unpaid;
        };
        let head = Head { form: form(Kind::Eager, INLINE), tag, context, len };
        let consumed = || peer.consumed();
        let ring = self.queue_to(dest);
        let sent = send_queue.producer.push(ring, head, consumed, |to| copy_words(words, 0, to, 0, len));
        if sent != Ok(true) {
            return ShortSend::Unavailable;
        }
        send_queue.prepaid = prepaid;
        self.note_room(dest);
        drop(send_queue);
        self.notify(dest);
        ShortSend::Sent
    }

    /// Sends a copy of a message that would be a loan otherwise. Its record takes the room of many that refer
    /// to slabs. A function of its own leaves [`send_short`](Self::send_short) small.
    #[inline(never)]
    pub(super) fn send_copy(
        &self,
        dest: u32,
        context: u64,
        tag: i32,
        words: &[AtomicU64],
        len: usize,
    ) -> ShortSend {
        let (Some(peer), Some(send_queue)) =
            (self.peers[dest as usize].get(), self.send_queues[dest as usize].get())
        else {
            return ShortSend::Unavailable;
        };
        let send_queue = send_queue.lock();
        if !send_queue.producer.leaves_half(self.queue_to(dest), len, || peer.consumed()) {
            return ShortSend::Unavailable;
        }
        self.push_short(peer, send_queue, (dest, context, tag), words, len)
    }

    /// Adds charged octets for short messages.
    #[cold]
    pub(super) fn prepay_short(&self, dest: u32, octets: u64) {
        if let Some(send_queue) = self.send_queues[dest as usize].get() {
            send_queue.lock().prepaid += octets;
        }
    }

    /// Puts a packet into the queue. Returns false when there is no room.
    pub(super) fn send_to(&self, dest: u32, header: Header, body: Outgoing<'_>) -> Result<bool, Unsent> {
        let peer = self.peer_of(dest)?;
        let Some(packet) = self.queued_packet(header.kind, body) else { return Err(Unsent::Outside) };
        let mut send_queue = self.lock_send_queue(dest)?;
        let SendQueue { producer, loans, .. } = &mut *send_queue;
        let ring = self.queue_to(dest);
        let consumed = || peer.consumed();
        let token = (header.kind != Kind::Eager).then_some(header.token);
        let token_len = token.map_or(0, |_| TOKEN_LEN);
        let head = |body, len| Head {
            form: form(header.kind, body),
            tag: header.tag,
            context: header.context,
            len: token_len + len,
        };
        let put_token = |words: &[AtomicU64]| {
            if let Some(token) = token {
                words[0].store(token, Relaxed);
            }
        };
        let sent = match packet {
            QueuedPacket::Nothing => producer.push(ring, head(NOTHING, 0), consumed, put_token)?,
            QueuedPacket::Inline(words, len) => producer.push(ring, head(INLINE, len), consumed, |to| {
                put_token(to);
                copy_words(words, 0, &to[token_len / 8..], 0, len);
            })?,
            QueuedPacket::OnLoan(part, headers) => {
                loans.make_room(peer)?;
                let slot = loans.loan(&part);
                let (body, len) = match headers {
                    Some(_) if part.slab.is_packing() => (PACKING, 40),
                    Some(_) => (HEADED, 40),
                    None => (BY_REFERENCE, 16),
                };
                let sent = producer.push(ring, head(body, len), consumed, |to| {
                    put_token(to);
                    let to = &to[token_len / 8..];
                    part.put(slot, to);
                    for (to, header) in to[2..].iter().zip(headers.iter().flatten()) {
                        to.store(u64::from_ne_bytes(*header), Relaxed);
                    }
                });
                loans.cancel_unless_sent(&sent, slot);
                sent?
            }
            QueuedPacket::InTwo(first, second) => {
                loans.make_room(peer)?;
                let slots = (loans.loan(&first), loans.loan(&second));
                let sent = producer.push(ring, head(IN_TWO, 32), consumed, |to| {
                    put_token(to);
                    first.put(slots.0, &to[token_len / 8..]);
                    second.put(slots.1, &to[token_len / 8 + 2..]);
                });
                loans.cancel_unless_sent(&sent, slots.0);
                loans.cancel_unless_sent(&sent, slots.1);
                sent?
            }
        };
        if sent {
            self.note_room(dest);
        } else {
            self.ask_for_room(dest, producer.consumed());
        }
        Ok(sent)
    }
}
