//! Reliable messages over datagrams that may be lost: the protocol of "MPI on U-Net" (1997), carried over
//! UDP.
//!
//! There are two protocols with the same header of 16 octets. [`reliable`] is the protocol of the UDP
//! transport; its packets have an extension behind the header. The protocol as published is a reference for
//! tests and benchmarks, in `rust/unet`; no transport uses it. Both ends agree on the protocol before the
//! first packet. A number in brackets is a section of `docs/spec/unet.md`.

pub mod error;
pub mod extension;
pub mod header;
pub mod layout;
pub mod packet;
pub mod reliable;
pub mod sequence;
