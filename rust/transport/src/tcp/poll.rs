//! Polling: a rank polls its channels by reading them.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use super::channel::Channel;
use super::rx_stream::Look;
use super::transport::TcpTransport;

/// Polls of the most recently active channel for each poll of all channels.
const LOOKS: u32 = 4;

impl TcpTransport {
    /// Reads one channel. Returns whether there is a packet to take.
    pub(super) fn look_at(&self, at: usize) -> bool {
        let channel = &self.channels[at];
        if channel.is_closed.load(Relaxed) {
            return false;
        }
        let Some(mut reading) = channel.try_reading() else { return false };
        match reading.look(channel.socket.as_fd()) {
            Ok(Look::Nothing) => return false,
            Ok(Look::Octets | Look::End) => {}
            // Octets that arrived before the error are taken first. They may contain the other end's finish.
            Err(error) => self.note_fault(channel, &error),
        }
        let has_something = reading.has_something();
        let is_over = reading.is_over;
        drop(reading);
        if is_over {
            self.unwatch(channel);
        }
        if has_something || is_over {
            self.hot.store(at, Relaxed);
            self.note_ready(channel);
        }
        has_something || is_over
    }

    pub(super) fn note_ready(&self, channel: &Channel) {
        if !channel.is_ready.swap(true, SeqCst) {
            self.ready_count.fetch_add(1, SeqCst);
        }
    }

    /// Polls: reads the channels and writes pending octets. Returns whether there is a packet to take.
    pub(super) fn look(&self) -> bool {
        if self.has_news() {
            return true;
        }
        self.write_waiting();
        if self.channels.is_empty() {
            return false;
        }
        if self.look_at(self.hot.load(Relaxed)) {
            return true;
        }
        let is_turn = self.looks.fetch_add(1, Relaxed).is_multiple_of(LOOKS);
        self.channels.len() > 1 && is_turn && self.look_at_all()
    }

    /// Reads the channels with events.
    pub(super) fn look_at_all(&self) -> bool {
        self.read_told(|told| self.poller.poll(told))
    }

    /// Waits until a channel has an event or a wake arrives, and reads the channels with events.
    pub(super) fn wait_for_all(&self, most: Duration) -> bool {
        self.read_told(|told| self.poller.wait(most, told))
    }

    fn read_told(&self, tell: impl FnOnce(&mut dyn FnMut(usize))) -> bool {
        let mut told = [0; 64];
        let mut n = 0;
        tell(&mut |channel| {
            told[n] = channel;
            n += 1;
        });
        told[..n].iter().filter(|channel| self.look_at(**channel)).count() > 0
    }
}
