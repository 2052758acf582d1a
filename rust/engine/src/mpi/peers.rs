//! The table of the other ranks: which of them finish or have finished, and the number of messages they have
//! sent.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mpjdev_buffer::octets::{load_word, store_word};
use mpjdev_proto::rts::EAGER_MAX;
use mpjdev_sys::mpi::{self, Operation};
use tracing::debug;

use super::memory::Octets;
use super::recv::Receive;
use super::requests::FailIf;
use super::{Group, Rank, Wanted};
use crate::error::DeviceError;
use crate::operation::Undelivered;

/// Time that messages sent before a rank's finish are waited for, when they may still be in flight.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Octets of a notice: the session, its kind, and the number of messages that were sent to the receiver.
const NOTICE_LEN: usize = 24;

/// The kind of a notice that carries [match acks](super::match_acks) instead.
pub(super) const MATCH_ACKS: u64 = 2;

/// The state of a rank that it notifies the others of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// The rank receives nothing more.
    Finishing,
    /// The rank has sent everything.
    Finished,
}

#[derive(Clone, Copy, Debug)]
enum Peer {
    Running,
    Finishing,
    /// The rank has sent this rank that number of messages; the time is that of the notice.
    Finished(u64, Instant),
}

/// The states of all ranks, by the notices received so far.
#[derive(Debug)]
pub(super) struct Peers {
    /// Notices of another session are ignored.
    session: u64,
    peers: Vec<Peer>,
    /// Undelivered messages.
    pub(super) lost: Undelivered,
    is_over: bool,
}

impl Peers {
    pub(super) fn new(size: u32, session: u64) -> Peers {
        let peers = vec![Peer::Running; size as usize];
        Peers { session, peers, lost: Undelivered::default(), is_over: false }
    }

    /// Whether this rank has finished.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether a rank may still receive, by the notices received so far.
    pub(super) fn is_running(&self, world: u32) -> bool {
        matches!(self.peers[world as usize], Peer::Running)
    }

    pub(super) fn note_lost(&mut self, send: Option<(u32, i32, usize)>) {
        send.into_iter().for_each(|send| self.lost.add(send));
    }
}

impl Rank {
    /// Sends a notice to all other ranks. Does not wait for them.
    pub(super) fn send_notices(&self, notice: Notice) -> Result<Vec<Operation<Octets>>, DeviceError> {
        let others = (0..self.size).filter(|other| *other != self.rank);
        let notices = others.map(|other| {
            let slab = self.source.take(NOTICE_LEN)?;
            let sent = self.sent[other as usize].load(Ordering::Relaxed);
            for (at, word) in [self.session.number, notice as u64, sent].into_iter().enumerate() {
                store_word(slab.words(), 8 * at, word.to_le_bytes());
            }
            let to = mpi::To { dest: other, tag: 0, comm: self.session.all, mode: mpi::Mode::Standard };
            Ok(Operation::send(self.mpi, Octets(slab), NOTICE_LEN, to)?)
        });
        notices.collect()
    }

    /// Handles the notices of other ranks.
    pub(super) fn receive_notices(&self, peers: &mut Peers) {
        let any = mpi::RecvFrom { source: None, tag: None };
        // A notice that cannot be received is skipped: the library returns the error where it matters.
        while let Ok(Some((matched, envelope))) = self.mpi.improbe(any, self.session.all) {
            let Ok(slab) = self.source.take_arrived(envelope.len.max(EAGER_MAX)) else { return };
            let memory = Box::new(Octets(slab));
            let notice = Operation::receive_matched(self.mpi, memory, envelope.len, matched);
            let Ok(memory) = notice.and_then(Operation::finish) else { return };
            let Octets(slab) = *memory;
            let word = |at: usize| u64::from_le_bytes(load_word(slab.words(), 8 * at));
            if envelope.len < NOTICE_LEN || word(0) != peers.session {
                continue;
            }
            if word(1) == MATCH_ACKS {
                self.handle_match_acks(&slab, envelope.len);
                continue;
            }
            let (rank, peer, sent) = (self.rank, envelope.source, word(2));
            debug!(target: "mpjdev::mpi", rank, peer, has_finished = word(1) != 0, sent, "peer ends");
            peers.peers[envelope.source as usize] = match word(1) {
                0 => Peer::Finishing,
                _ => Peer::Finished(word(2), Instant::now()),
            };
            self.has_ended.store(true, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether a rank has finished and all its messages have arrived, as far as this rank can see.
    fn is_drained(&self, peers: &Peers, world: u32) -> bool {
        match peers.peers[world as usize] {
            Peer::Finished(sent, since) => {
                self.received[world as usize].load(Ordering::Relaxed) >= sent || since.elapsed() > GRACE
            }
            Peer::Running | Peer::Finishing => false,
        }
    }

    /// Checks that a world rank can still receive.
    #[inline]
    pub(super) fn check_peer(&self, world: u32) -> Result<(), DeviceError> {
        match self.has_ended() {
            false => Ok(()),
            true => self.unsatisfiable_send(&self.state().peers, world).map_or(Ok(()), Err),
        }
    }

    pub(super) fn unsatisfiable_send(&self, peers: &Peers, world: u32) -> Option<DeviceError> {
        let has_finished = matches!(peers.peers[world as usize], Peer::Finished(..));
        has_finished.then_some(DeviceError::PeerFinished { rank: world })
    }

    /// The error of the first of these ranks that has finished.
    pub(crate) fn first_finished(&self, worlds: &[u32]) -> Option<DeviceError> {
        if !self.has_ended() {
            return None;
        }
        let peers = &self.state().peers;
        worlds.iter().find_map(|world| self.unsatisfiable_send(peers, *world))
    }

    /// The reason why no matching message can arrive any more; `None` as long as one can.
    pub(super) fn unsatisfiable(
        &self,
        peers: &Peers,
        receive: &Receive,
        fail_if: FailIf,
    ) -> Option<DeviceError> {
        if !self.has_ended() {
            return None;
        }
        match receive.source() {
            Some(world) => self.is_drained(peers, world).then_some(DeviceError::PeerFinished { rank: world }),
            None if fail_if == FailIf::Awaited => self.no_member_left(peers, &receive.group),
            None => None,
        }
    }

    fn no_member_left(&self, peers: &Peers, group: &Group) -> Option<DeviceError> {
        let mut others = group.members().iter().filter(|member| **member != self.rank).peekable();
        others.peek()?;
        others.all(|member| self.is_drained(peers, *member)).then_some(DeviceError::NoSourceLeft)
    }

    /// [`unsatisfiable`](Self::unsatisfiable) for a probe.
    pub(super) fn unsatisfiable_probe(&self, group: &Group, wanted: Wanted) -> Option<DeviceError> {
        if !self.has_ended() {
            return None;
        }
        let peers = &self.state().peers;
        match wanted.source.map(|source| group.members()[source as usize]) {
            Some(world) => self.is_drained(peers, world).then_some(DeviceError::PeerFinished { rank: world }),
            None => self.no_member_left(peers, group),
        }
    }
}
