//! The reliable mode: selective repeat, windows of both kinds, lazy acknowledgments, an orderly end (5).
//!
//! A [`connection::Connection`] is one end of one pair of ranks. Time comes in as a number, octets stay with
//! the driver.
//!
//! ```text
//!   send, matched, cancel, flush, close               handle_datagram, handle_drained, handle_timeout
//!            |                                                      |
//!            v                                                      v
//!   message_tx  messages -> contents of packets        message_rx  contents -> messages
//!            |                                                      ^
//!            v                                                      |
//!   packet_tx   numbers, losses      <- ack_rx -       packet_rx   order, what is kept
//!   congestion, pacing, windows      <- acks, rtt ->   pending_acks, windows
//!            |                                                      |
//!            v                                                      v
//!      poll_transmit, next_timeout                         poll_kept, poll_event
//! ```

mod ack_rx;
mod arrival;
mod bitmap;
mod close;
mod close_state;
pub mod congestion;
pub mod connection;
pub mod content;
pub mod context_ids;
pub mod counters;
pub mod error;
pub mod loss;
pub mod message_rx;
pub mod message_tx;
pub mod pacing;
mod packet_rx;
mod packet_tx;
mod pending_acks;
pub mod resets;
pub mod rtt;
mod rx;
pub mod settings;
mod slow_start;
pub mod time;
mod transmit;
pub mod windows;
