#![doc = include_str!("../PROTOCOL.md")]
#![forbid(unsafe_code)]

mod arrival_table;
pub mod collective;
pub mod completion;
pub mod context;
pub mod datagram;
pub mod envelope;
pub mod freed;
pub mod impi;
pub mod matching;
pub mod rts;
pub mod send_policy;
