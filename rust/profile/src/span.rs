//! The call in progress of the calling thread, and its messages.
//!
//! Two readings of the clock would be most of the cost of a short call. So one call in 16 is timed of
//! those that send or receive a short message and do not wait. The others get the time of the last timed one.
//! A call that waits, or moves more octets, is timed from there on at least ([`take_time`]).

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use mpjdev_sys::ticks;

use crate::call::Call;
use crate::recorder::{NONE, Recorder, add};
use crate::session;
use crate::switch::is_on;

/// Octets of a short message: it is copied within some nanoseconds.
const SHORT_OCTETS: u64 = 1088;
/// Ticks of a call that may stand for others: about a microsecond.
const SHORT_TICKS: u64 = 4000;

/// The counts of the calling thread, and its call in progress.
struct Own {
    recorder: OnceCell<Arc<Recorder>>,
    /// Calls in progress: one, and those that functions of the program make within it.
    depth: Cell<u32>,
    call: Cell<Call>,
    /// Whether it is timed from its start on.
    is_timed: Cell<bool>,
    /// Calls until one is timed.
    untimed: Cell<u32>,
    /// State of the random numbers of calls between timed ones: a program may call in a fixed order.
    seed: Cell<u32>,
    /// The messages of the call.
    peer: Cell<u32>,
    sent: Cell<u64>,
    received: Cell<u64>,
}

thread_local! {
    static OWN: Own = const {
        Own {
            recorder: OnceCell::new(),
            depth: Cell::new(0),
            call: Cell::new(Call::Send),
            is_timed: Cell::new(false),
            untimed: Cell::new(0),
            seed: Cell::new(1),
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

    /// Calls to leave untimed: 0 to 30, 15 on average.
    fn next_gap(&self) -> u32 {
        let seed = self.seed.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.seed.set(seed);
        (seed >> 16) % 31
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

/// Notes a message to the calling thread from a world rank, which is the peer of its call. Its elements are
/// copied afterwards.
#[inline(always)]
pub fn received(peer: u32, octets: impl FnOnce() -> usize) {
    if is_on() {
        note_received(peer, octets() as u64);
    }
}

#[inline(never)]
fn note_received(peer: u32, octets: u64) {
    let _ = OWN.try_with(|own| {
        if octets > SHORT_OCTETS {
            time_from_here(own);
        }
        if let Some(messages) = own.recorder().messages(peer) {
            add(&messages.messages_received, 1);
            add(&messages.received, octets);
        }
        own.received.set(own.received.get() + octets);
        own.peer.set(peer);
    });
}

/// Times the call of this thread from here on, unless it is timed already: it waits, or copies much.
#[inline(always)]
pub fn take_time() {
    if is_on() {
        begin_to_time();
    }
}

#[cold]
fn begin_to_time() {
    let _ = OWN.try_with(time_from_here);
}

fn time_from_here(own: &Own) {
    let recorder = own.recorder();
    if own.depth.get() > 0 && recorder.begun_at() == 0 {
        recorder.begin(own.call.get(), ticks::now());
    }
}

/// A call from its start to its end.
///
/// It does not carry whether it is counted: a compiler that knows has two copies of the code between, and
/// inlines neither.
#[derive(Debug)]
#[must_use = "the call ends with it"]
pub struct Span(());

impl Span {
    /// Begins a call.
    #[inline(always)]
    pub fn begin(call: Call) -> Span {
        if is_on() {
            begin_counted(call);
        }
        Span(())
    }

    /// Ends the call.
    #[inline(always)]
    pub fn end(self) {
        if is_on() {
            end_counted();
        }
    }
}

#[inline(never)]
fn begin_counted(call: Call) {
    let _ = OWN.try_with(|own| begin(own, call));
}

#[inline(never)]
fn end_counted() {
    let _ = OWN.try_with(end);
}

fn begin(own: &Own, call: Call) {
    if own.depth.get() > 0 {
        return begin_inside(own);
    }
    own.depth.set(1);
    own.call.set(call);
    let recorder = own.recorder();
    let untimed = own.untimed.get();
    if untimed > 0 && call.may_be_short() && recorder.may_stay_untimed(call) {
        own.untimed.set(untimed - 1);
        own.is_timed.set(false);
        return;
    }
    own.is_timed.set(true);
    recorder.begin(call, ticks::now());
}

/// A call within another one, by a function of the program in a reduction. It counts as a part of that.
#[cold]
fn begin_inside(own: &Own) {
    own.depth.set(own.depth.get() + 1);
}

fn end(own: &Own) {
    let depth = own.depth.get();
    own.depth.set(depth.saturating_sub(1));
    if depth != 1 {
        // It is inside of another one, or has begun before the counts.
        return;
    }
    let (recorder, call) = (own.recorder(), own.call.get());
    let octets = (own.sent.take(), own.received.take());
    let peer = own.peer.replace(NONE);
    let peer = if call.is_collective() { NONE } else { peer };
    let begin = recorder.begun_at();
    if begin == 0 {
        return recorder.note_untimed(call, peer, octets);
    }
    let ticks = ticks::now().saturating_sub(begin).max(1);
    recorder.begin(call, 0);
    if own.is_timed.get() && ticks < SHORT_TICKS && octets.0.max(octets.1) <= SHORT_OCTETS {
        recorder.set_short_ticks(call, ticks);
        own.untimed.set(own.next_gap());
    }
    recorder.note_timed(call, peer, begin, ticks, octets);
}
