//! Polling: a rank polls its channels by reading them.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use super::channel::Channel;
use super::rx_stream::ReadOutcome;
use super::transport::TcpTransport;

/// Polls of the most recently active channel for each poll of all channels.
const HOT_POLLS: u32 = 4;

impl TcpTransport {
    /// Reads one channel. Returns whether there is a packet to take.
    pub(super) fn poll_channel(&self, at: usize) -> bool {
        let channel = &self.channels[at];
        if channel.host.load(Relaxed).is_closed() {
            return false;
        }
        let Some(mut rx) = channel.try_rx() else { return false };
        match rx.poll(channel.socket.as_fd()) {
            Ok(ReadOutcome::Nothing) => return false,
            Ok(ReadOutcome::Octets | ReadOutcome::End) => {}
            // Octets that arrived before the error are taken first. They may contain the other end's finish.
            Err(error) => self.note_fault(&mut channel.tx(), &error),
        }
        let has_something = rx.has_something();
        let is_over = rx.is_over;
        drop(rx);
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
    pub(super) fn poll(&self) -> bool {
        if self.has_ready_packets() {
            return true;
        }
        self.write_waiting();
        if self.channels.is_empty() {
            return false;
        }
        if self.poll_channel(self.hot.load(Relaxed)) {
            return true;
        }
        if self.channels.len() == 1 {
            return false;
        }
        // A count that another thread overwrites moves the turn.
        let polls = self.polls.load(Relaxed);
        self.polls.store(polls.wrapping_add(1), Relaxed);
        polls.is_multiple_of(HOT_POLLS) && self.poll_channels()
    }

    /// Reads the channels with events.
    pub(super) fn poll_channels(&self) -> bool {
        self.read_reported(|reported| self.net.poller.poll(reported))
    }

    /// Waits until a channel has an event or a wake arrives, and reads the channels with events.
    pub(super) fn wait_for_channels(&self, most: Duration) -> bool {
        self.read_reported(|reported| self.net.poller.wait(most, reported))
    }

    fn read_reported(&self, report: impl FnOnce(&mut dyn FnMut(usize))) -> bool {
        let mut reported = [0; 64];
        let mut n = 0;
        report(&mut |channel| {
            reported[n] = channel;
            n += 1;
        });
        reported[..n].iter().filter(|channel| self.poll_channel(**channel)).count() > 0
    }
}
