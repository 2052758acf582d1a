//! The call in progress of the calling thread, and its messages.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_sys::ticks;

use crate::call::Call;
use crate::recorder::{NONE, Recorder, add};
use crate::session;
use crate::switch::is_on;

/// The counts of the calling thread, and its call in progress.
struct Own {
    recorder: OnceCell<Arc<Recorder>>,
    /// The messages of the call in progress.
    peer: Cell<u32>,
    sent: Cell<u64>,
    received: Cell<u64>,
}

thread_local! {
    static OWN: Own = const {
        Own {
            recorder: OnceCell::new(),
            peer: Cell::new(NONE),
            sent: Cell::new(0),
            received: Cell::new(0),
        }
    };
}

impl Own {
    #[inline(always)]
    fn recorder(&self) -> &Arc<Recorder> {
        self.recorder.get_or_init(session::new_recorder)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            session::end_thread(&recorder);
        }
    }
}

/// Notes a message of the calling thread to a world rank. Its call has this peer, unless it receives too.
#[inline(always)]
pub fn sent(peer: u32, octets: impl FnOnce() -> usize) {
    if is_on() {
        note_sent(peer, octets() as u64);
    }
}

#[inline(never)]
fn note_sent(peer: u32, octets: u64) {
    let _ = OWN.try_with(|own| {
        let recorder = own.recorder();
        if let Some(messages) = recorder.messages(peer) {
            add(&messages.messages_sent, 1);
            add(&messages.sent, octets);
        }
        add(&recorder.sizes[(u64::BITS - octets.leading_zeros()) as usize], 1);
        own.sent.set(own.sent.get() + octets);
        if own.peer.get() == NONE {
            own.peer.set(peer);
        }
    });
}

/// Notes a message to the calling thread from a world rank, which is the peer of its call.
#[inline(always)]
pub fn received(peer: u32, octets: impl FnOnce() -> usize) {
    if is_on() {
        note_received(peer, octets() as u64);
    }
}

#[inline(never)]
fn note_received(peer: u32, octets: u64) {
    let _ = OWN.try_with(|own| {
        if let Some(messages) = own.recorder().messages(peer) {
            add(&messages.messages_received, 1);
            add(&messages.received, octets);
        }
        own.received.set(own.received.get() + octets);
        own.peer.set(peer);
    });
}

/// The time of a call.
#[derive(Debug)]
#[must_use = "the call ends with it"]
pub struct Span {
    call: Call,
    /// Ticks at its begin; 0 if nothing is counted.
    begin: u64,
    /// Ticks that the thread had spent in calls before, if calls may happen inside of this one.
    before: u64,
}

impl Span {
    /// Begins a call.
    #[inline(always)]
    pub fn begin(call: Call) -> Span {
        if !is_on() {
            return Span { call, begin: 0, before: 0 };
        }
        begin(call)
    }

    /// Ends the call.
    #[inline(always)]
    pub fn end(self) {
        if self.begin != 0 {
            end(&self);
        }
    }
}

#[inline(never)]
fn begin(call: Call) -> Span {
    let begun = OWN.try_with(|own| {
        let recorder = own.recorder();
        let before = if call.has_upcalls() { recorder.in_calls.load(Relaxed) } else { 0 };
        let begin = ticks::now();
        recorder.begin(call, begin);
        Span { call, begin, before }
    });
    begun.unwrap_or(Span { call, begin: 0, before: 0 })
}

#[inline(never)]
fn end(span: &Span) {
    let elapsed = ticks::now().saturating_sub(span.begin);
    let _ = OWN.try_with(|own| {
        let recorder = own.recorder();
        let octets = (own.sent.take(), own.received.take());
        let peer = own.peer.replace(NONE);
        let peer = if span.call.is_collective() { NONE } else { peer };
        recorder.current.store(0, Relaxed);
        let in_calls = recorder.in_calls.load(Relaxed);
        let nested = if span.call.has_upcalls() { in_calls - span.before } else { 0 };
        recorder.note_call(span.call, peer, span.begin, elapsed.saturating_sub(nested), octets);
    });
}
