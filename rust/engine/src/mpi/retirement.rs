//! Freed communicators: their messages are dropped, and the library's communicators are freed once no more
//! can arrive.
//!
//! A library gives the context id of a freed communicator to a new one, which would receive later messages of
//! the old one. So each member sends two markers to every member, also to itself. Markers are empty messages,
//! and no other message is empty.
//!
//! - "Retired" travels among the collective messages, where no receive takes any tag. A member sends it when
//!   the last reference is dropped: it sends and receives no more.
//! - "Last" travels among the program's messages, where a wildcard receive might match it. A member sends it
//!   only to members that have retired.
//!
//! Messages of one sender do not overtake each other. So a communicator with both markers of all members is
//! empty, and is freed.
//!
//! A member that finishes without freeing a communicator sends no marker. The library's communicators are
//! then kept until the next session, or until the process ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mpjdev_buffer::octets::copy_out;
use mpjdev_proto::collective::RETIRED_TAG;
use mpjdev_proto::context::collective;
use mpjdev_proto::envelope::Envelope;
use mpjdev_proto::rts::{RTS_LEN, Rts};
use mpjdev_proto::send_policy::HEADERS_LEN;
use mpjdev_sys::mpi::{self, Matched, Mpi, Operation};

use super::channel::Channel;
use super::memory::{Octets, words};
use super::probed_messages::{Physical, ProbedForm, ProbedMessage};
use super::rendezvous::RendezvousRecv;
use super::{Rank, kept_comms};

/// Messages that one visit takes from a communicator: a flood does not occupy the thread.
const TAKEN: usize = 256;
/// Communicators that are visited per call of progress.
pub(super) const VISITS: usize = 4;

/// Memory that the library uses for a marker or a dropped message.
type Words = Vec<AtomicU64>;

/// A freed communicator, as its group leaves it.
#[derive(Debug)]
pub(super) struct Freed {
    pub(super) context: u64,
    pub(super) members: Arc<[u32]>,
    pub(super) comms: [mpi::Comm; 2],
    /// Messages that were spilled from the library.
    pub(super) spilled: Vec<ProbedMessage>,
    /// The last reference was dropped: no receive is posted any more, and nothing will be sent.
    pub(super) is_last: bool,
}

/// Communicators that were freed since the last visit.
#[derive(Debug, Default)]
pub(super) struct Queue {
    freed: Vec<Freed>,
    /// This rank has finished: communicators that are freed now are kept for the next session.
    is_over: bool,
}

/// A freed communicator that the library still has.
#[derive(Debug)]
struct Retiring {
    context: u64,
    members: Arc<[u32]>,
    comms: [mpi::Comm; 2],
    is_last: bool,
    /// Members that were sent "retired".
    markers_sent: u32,
    /// Members that have retired and were not sent "last".
    due: Vec<u32>,
    /// Markers that have not arrived.
    awaited: usize,
    sends: Vec<Operation<Words>>,
    drops: Drops,
}

/// All retiring communicators, in the order of their visits.
#[derive(Debug, Default)]
pub(super) struct Retirings(VecDeque<Retiring>);

/// A message that is received to be dropped.
#[derive(Debug)]
enum Dropped {
    /// There was no memory for its octets: the next visit tries again.
    Unstarted(Option<Matched>, Envelope, usize),
    /// The message, or its RTS.
    Arriving(Operation<Words>, Envelope),
    Rendezvous(Box<RendezvousRecv>, i32),
    /// A spilled message.
    Spilled(Operation<Octets>),
}

/// The messages of a communicator that are received to be dropped.
#[derive(Debug, Default)]
struct Drops {
    messages: Vec<Dropped>,
    /// A message waits for memory.
    lacks_memory: bool,
}

impl Drops {
    /// Whether another message may be taken from the library. Without memory the messages stay there: their
    /// number is not bounded here.
    fn may_take(&mut self) -> bool {
        !self.lacks_memory && self.messages.try_reserve(1).is_ok()
    }

    fn push(&mut self, message: Dropped) {
        self.lacks_memory |= message.lacks_memory();
        self.messages.push(message);
    }

    /// Makes progress with `advance`, which returns true for a message that is released.
    fn advance(&mut self, mut advance: impl FnMut(&mut Dropped) -> bool) {
        self.messages.retain_mut(|message| !advance(message));
        self.lacks_memory = self.messages.iter().any(Dropped::lacks_memory);
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Dropped {
    fn lacks_memory(&self) -> bool {
        matches!(self, Dropped::Unstarted(..))
    }

    /// Starts to receive the message if that has not happened and there is memory; true when the library
    /// refuses, which ends it.
    fn begin(&mut self, mpi: &'static Mpi) -> bool {
        let Dropped::Unstarted(matched, envelope, len) = self else { return false };
        let Some(memory) = words(*len) else { return false };
        let Some(matched) = matched.take() else { return true };
        match Operation::receive_matched(mpi, Box::new(memory), *len, matched) {
            Ok(operation) => *self = Dropped::Arriving(operation, *envelope),
            Err(_) => return true,
        }
        false
    }

    /// Makes progress; true when the message and its memory are released.
    fn advance(&mut self, rank: &Rank) -> bool {
        loop {
            match self {
                Dropped::Unstarted(..) => {
                    let is_over = self.begin(rank.mpi);
                    if is_over || matches!(self, Dropped::Unstarted(..)) {
                        return is_over;
                    }
                }
                Dropped::Rendezvous(parts, tag) => return !matches!(parts.advance(rank, *tag), Ok(None)),
                Dropped::Spilled(operation) => return !matches!(operation.test(), Ok(None)),
                Dropped::Arriving(operation, envelope) => {
                    let seen = match operation.test() {
                        Ok(None) => return false,
                        Ok(Some(mpi::Outcome::Done(seen))) => seen,
                        Ok(Some(mpi::Outcome::Cancelled)) | Err(_) => return true,
                    };
                    if seen.len != RTS_LEN {
                        return true;
                    }
                    let mut octets = [0; RTS_LEN];
                    copy_out(operation.owner().as_ref(), 0, &mut octets);
                    let Ok(rts) = Rts::parse(&octets) else { return true };
                    *self = Dropped::rendezvous(rank, *envelope, &rts);
                }
            }
        }
    }

    fn rendezvous(rank: &Rank, envelope: Envelope, rts: &Rts) -> Dropped {
        rank.note_dropped(&envelope, rts.first_len as usize, rts.second_len as usize);
        let tag = rank.rendezvous_tag(rts.number);
        Dropped::Rendezvous(Box::new(RendezvousRecv::new(rank, envelope, rts, 0, None)), tag)
    }
}

impl Retiring {
    fn new(context: u64, members: Arc<[u32]>, comms: [mpi::Comm; 2]) -> Retiring {
        let awaited = 2 * members.len();
        let (due, sends, drops) = (Vec::new(), Vec::new(), Drops::default());
        Retiring { context, members, comms, is_last: false, markers_sent: 0, due, awaited, sends, drops }
    }

    /// Makes progress; true when nothing can arrive any more.
    fn advance(&mut self, rank: &Rank) -> bool {
        if self.is_last {
            // A send that the library refuses is tried again at the next visit.
            while self.markers_sent < self.members.len() as u32
                && self.send(rank.mpi, self.markers_sent, Channel::Collective)
            {
                self.markers_sent += 1;
            }
            self.drain(rank, Channel::Collective);
        }
        while let Some(member) = self.due.last().copied()
            && self.send(rank.mpi, member, Channel::Program)
        {
            self.due.pop();
        }
        self.drain(rank, Channel::Program);
        self.sends.retain_mut(|send| matches!(send.test(), Ok(None)));
        self.drops.advance(|message| message.advance(rank));
        let are_all_sent =
            self.markers_sent == self.members.len() as u32 && self.due.is_empty() && self.sends.is_empty();
        self.is_last && self.awaited == 0 && are_all_sent && self.drops.is_empty()
    }

    /// Sends the marker of a channel to a member; true if the library has accepted it.
    fn send(&mut self, mpi: &'static Mpi, dest: u32, channel: Channel) -> bool {
        let comm = self.comms[channel as usize];
        let to = mpi::To { dest, tag: RETIRED_TAG, comm, mode: mpi::Mode::Standard };
        Operation::send(mpi, Words::new(), 0, to).map(|send| self.sends.push(send)).is_ok()
    }

    /// Takes the messages that have arrived and are not matched by a receive.
    fn drain(&mut self, rank: &Rank, channel: Channel) {
        let any = mpi::RecvFrom { source: None, tag: None };
        for _ in 0..TAKEN {
            if !self.drops.may_take() {
                return;
            }
            let taken = rank.mpi.improbe(any, self.comms[channel as usize]);
            let Ok(Some((matched, mpi::Envelope { source, tag, len }))) = taken else { return };
            if len > 0 {
                rank.note_received(self.members[source as usize]);
            } else {
                self.awaited = self.awaited.saturating_sub(1);
                if channel == Channel::Collective {
                    self.due.push(source);
                }
            }
            let envelope = self.envelope(channel, source, tag);
            self.take(rank, matched, envelope, len);
        }
    }

    /// The envelope of a message. A message of a collective operation is internal and is not reported.
    fn envelope(&self, channel: Channel, source: u32, tag: i32) -> Envelope {
        let context = match channel {
            Channel::Program => self.context,
            Channel::Collective => collective(self.context),
        };
        Envelope { context, source: self.members[source as usize], tag }
    }

    fn take(&mut self, rank: &Rank, matched: Matched, envelope: Envelope, len: usize) {
        // An RTS is counted when it has arrived, and a marker never.
        if len > 0 && len != RTS_LEN {
            rank.note_dropped(&envelope, len, 0);
        }
        let mut dropped = Dropped::Unstarted(Some(matched), envelope, len);
        if !dropped.begin(rank.mpi) {
            self.drops.push(dropped);
        }
    }

    /// Drops the spilled messages.
    fn take_spilled(&mut self, rank: &Rank, spilled: Vec<ProbedMessage>) {
        for ProbedMessage { source, tag, len, what } in spilled {
            let envelope = self.envelope(Channel::Program, source, tag);
            match what {
                ProbedForm::Physical(Physical::Matched(matched)) => self.take(rank, matched, envelope, len),
                ProbedForm::Physical(Physical::Here(_)) => rank.note_dropped(&envelope, len, 0),
                ProbedForm::Physical(Physical::Arriving(operation)) => {
                    rank.note_dropped(&envelope, len, 0);
                    self.drops.push(Dropped::Spilled(operation));
                }
                ProbedForm::Rts(rts) => {
                    self.drops.push(Dropped::rendezvous(rank, envelope, &rts));
                }
            }
        }
    }
}

impl Retirings {
    fn take_in(&mut self, rank: &Rank, freed: Vec<Freed>) {
        for Freed { context, members, comms, spilled, is_last } in freed {
            let known = self.0.iter().position(|retiring| retiring.context == context);
            let at = known.unwrap_or_else(|| {
                self.0.push_back(Retiring::new(context, members, comms));
                self.0.len() - 1
            });
            let retiring = &mut self.0[at];
            retiring.is_last |= is_last;
            retiring.take_spilled(rank, spilled);
        }
    }
}

impl Rank {
    /// Queues a communicator that was freed or has lost its last reference. Does not call the library: any
    /// lock may be held.
    pub(super) fn retire(&self, freed: Freed) {
        let mut queue = self.freed.lock();
        if !queue.is_over {
            queue.freed.push(freed);
            self.has_freed.store(true, Ordering::Release);
        } else if freed.is_last {
            kept_comms::keep(freed.comms);
        }
    }

    /// Counts a message that a freed communicator drops, by the octets of its physical messages.
    fn note_dropped(&self, envelope: &Envelope, first_len: usize, second_len: usize) {
        let len = first_len.saturating_sub(HEADERS_LEN) + second_len;
        self.state().unreceived.add(envelope, len);
    }

    /// Visits some freed communicators, different ones each time. Does not block.
    pub(super) fn visit_freed(&self, visits: usize) {
        if !self.has_freed.load(Ordering::Acquire) {
            return;
        }
        let Some(mut retirings) = self.retirings.try_lock() else { return };
        let freed = std::mem::take(&mut self.freed.lock().freed);
        retirings.take_in(self, freed);
        for _ in 0..visits.min(retirings.0.len()) {
            let Some(mut retiring) = retirings.0.pop_front() else { break };
            if retiring.advance(self) {
                // This call is collective, but normally local (MPI 4.1, 7.4.3). A communicator that cannot be
                // freed is left: no operation depends on it.
                let _ = retiring.comms.map(|comm| self.mpi.free(comm));
            } else {
                retirings.0.push_back(retiring);
            }
        }
        let queue = self.freed.lock();
        self.has_freed.store(!(queue.freed.is_empty() && retirings.0.is_empty()), Ordering::Release);
    }

    /// Keeps the remaining communicators for the next session: this rank has finished.
    pub(super) fn end_freed(&self) {
        self.visit_freed(usize::MAX);
        let mut retirings = self.retirings.lock();
        let mut queue = self.freed.lock();
        queue.is_over = true;
        let freed = std::mem::take(&mut queue.freed);
        drop(queue);
        retirings.take_in(self, freed);
        let (last, held): (VecDeque<_>, _) = retirings.0.drain(..).partition(|retiring| retiring.is_last);
        drop(held);
        last.into_iter().for_each(|retiring| kept_comms::keep(retiring.comms));
    }
}

/// Drops unreceived messages where no more can arrive, before a communicator of an earlier session is freed.
pub(super) fn empty(mpi: &'static Mpi, comm: mpi::Comm) {
    let any = mpi::RecvFrom { source: None, tag: None };
    while let Ok(Some((matched, envelope))) = mpi.improbe(any, comm) {
        let Some(memory) = words(envelope.len) else { return };
        let received = Operation::receive_matched(mpi, Box::new(memory), envelope.len, matched);
        if received.and_then(Operation::finish).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_taken_while_an_earlier_one_lacks_memory() {
        let envelope = Envelope { context: 0, source: 0, tag: 0 };
        let mut drops = Drops::default();
        assert!(drops.may_take());
        drops.push(Dropped::Unstarted(None, envelope, usize::MAX));
        assert!(!drops.may_take());
        drops.advance(|_| false);
        assert!(!drops.may_take() && !drops.is_empty(), "there is no memory yet");
        drops.advance(|_| true);
        assert!(drops.may_take() && drops.is_empty());
    }
}
