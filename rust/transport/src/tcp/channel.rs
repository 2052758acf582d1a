//! Connection to one host.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_sys::sync::{LockRank, Mutex, MutexGuard};

use super::body_action::BodyAction;
use super::channel_state::{Backlog, HostState};
use super::rx_stream::RxStream;
use super::tx_stream::TxStream;
use crate::net::atomic_state::AtomicState;

/// One connection, with both directions.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) socket: OwnedFd,
    /// The ranks at its other end.
    pub(super) ranks: Vec<u32>,
    rx: Mutex<RxStream<BodyAction>>,
    tx: Mutex<TxStream>,
    /// A header or a body can be taken.
    pub(super) is_ready: AtomicBool,
    /// Octets that wait in `tx`, for readers without its lock.
    pub(super) backlog: AtomicState<Backlog>,
    pub(super) host: AtomicState<HostState>,
}

impl Channel {
    pub(super) fn new(socket: OwnedFd, ranks: Vec<u32>, rx: RxStream<BodyAction>, tx: TxStream) -> Channel {
        Channel {
            socket,
            ranks,
            rx: Mutex::new(LockRank::ReceiveSide, rx),
            tx: Mutex::new(LockRank::SendSide, tx),
            is_ready: AtomicBool::new(false),
            backlog: AtomicState::new(Backlog::Empty),
            host: AtomicState::new(HostState::Open),
        }
    }

    /// The receiving direction.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn rx(&self) -> MutexGuard<'_, RxStream<BodyAction>> {
        self.rx.lock()
    }

    /// The receiving direction, unless another thread polls it already.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn try_rx(&self) -> Option<MutexGuard<'_, RxStream<BodyAction>>> {
        self.rx.try_lock()
    }

    /// Whether the host has announced the end of its packets.
    pub(super) fn has_finished(&self) -> bool {
        self.host.load(Relaxed).has_finished()
    }

    /// The sending direction.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn tx(&self) -> MutexGuard<'_, TxStream> {
        self.tx.lock()
    }
}
