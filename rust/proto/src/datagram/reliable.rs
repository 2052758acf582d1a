//! The reliable mode: selective repeat, windows of both kinds, lazy acknowledgments, an orderly end (5).
//!
//! A [`connection::Connection`] is one end of one pair of ranks. Time comes in as a number, octets stay with the driver.
//!
//! ```text
//!   send, matched, cancel, flush, close               handle_datagram, handle_drained, handle_timeout
//!            |                                                      |
//!            v                                                      v
//!   sending   messages -> contents of packets          receiving  contents -> messages
//!            |                                                      ^
//!            v                                                      |
//!   sender    numbers, losses        <- reports -      receiver   order, what is kept
//!   congestion, pacing, windows      <- acks, rtt ->   acks, windows
//!            |                                                      |
//!            v                                                      v
//!      poll_transmit, next_timeout                         poll_kept, poll_event
//! ```

mod acks;
mod bitmap;
mod closing;
pub mod congestion;
pub mod connection;
pub mod content;
pub mod contexts;
pub mod counters;
pub mod error;
mod incoming;
pub mod loss;
pub mod pacing;
mod receiver;
pub mod receiving;
mod reports;
pub mod resets;
pub mod rtt;
mod sender;
pub mod sending;
pub mod settings;
mod slow_start;
pub mod time;
mod transmit;
pub mod windows;
