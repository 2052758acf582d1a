//! State of a communicator about exchanges: operations in which each rank publishes one short vector to all
//! others, and waits for that of each other one.
//!
//! Two slots suffice. A rank that publishes vector n + 2 has read vector n + 1 of each other rank, and each
//! of them has read all vectors n before it published that one. A rank without free slots sends messages
//! instead. Its first exchange shows the others which way it has taken.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mpjdev_transport::Transport;
use mpjdev_transport::slots::SlotPair;

/// The way in which another rank passes its vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In its slots.
    Slots(SlotPair),
    /// As messages.
    Messages,
}

/// State of a communicator about exchanges.
#[derive(Debug)]
pub(crate) struct Exchanges {
    transport: Weak<dyn Transport>,
    context: u64,
    /// World ranks of all members, and of this rank.
    members: Arc<[u32]>,
    rank: u32,
    /// Exchanges so far, which all members count alike.
    count: AtomicU64,
    own: Option<SlotPair>,
    /// The way of each member, from its first vector on.
    ways: Box<[OnceLock<Way>]>,
    /// Whether all ways are known to be slots.
    are_all_slots: AtomicBool,
}

impl Exchanges {
    /// Claims slots of this rank for a communicator of these world ranks. `None` if the transport has none.
    pub(crate) fn new(
        transport: &Arc<dyn Transport>,
        context: u64,
        members: &Arc<[u32]>,
        rank: u32,
    ) -> Option<Exchanges> {
        let own = transport.slots()?.claim(context, members);
        let (transport, count) = (Arc::downgrade(transport), AtomicU64::new(0));
        let ways = members.iter().map(|_| OnceLock::new()).collect();
        let are_all_slots = AtomicBool::new(false);
        Some(Exchanges {
            transport,
            context,
            members: members.clone(),
            rank,
            count,
            own,
            ways,
            are_all_slots,
        })
    }

    /// The number of the exchange that begins.
    pub(crate) fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether this rank and all others are known to have slots.
    pub(crate) fn are_all_slots(&self) -> bool {
        self.are_all_slots.load(Ordering::Relaxed) || self.find_all_slots()
    }

    #[cold]
    fn find_all_slots(&self) -> bool {
        let others = self.ways.iter().zip(&*self.members).filter(|(_, world)| **world != self.rank);
        let are_all = self.own.is_some()
            && others.map(|(way, _)| way).all(|way| matches!(way.get(), Some(Way::Slots(_))));
        self.are_all_slots.store(are_all, Ordering::Relaxed);
        are_all
    }

    /// The context of the communicator.
    pub(crate) fn context(&self) -> u64 {
        self.context
    }

    /// The slots of this rank; `None` if it has to send messages.
    pub(crate) fn own(&self) -> Option<SlotPair> {
        self.own
    }

    /// World rank of a member.
    pub(crate) fn world(&self, member: u32) -> u32 {
        self.members[member as usize]
    }

    /// The way of a member, once it is known.
    pub(crate) fn way(&self, member: u32) -> &OnceLock<Way> {
        &self.ways[member as usize]
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        let Some(transport) = self.transport.upgrade() else { return };
        let Some(slots) = transport.slots() else { return };
        for (way, world) in self.ways.iter().zip(&*self.members).filter(|(_, world)| **world != self.rank) {
            let pair = match way.get() {
                Some(Way::Messages) => None,
                Some(Way::Slots(pair)) => Some(*pair),
                None => slots.find(*world, self.context),
            };
            pair.into_iter().for_each(|pair| slots.close(*world, pair));
        }
        self.own.into_iter().for_each(|own| slots.retire(own));
    }
}
