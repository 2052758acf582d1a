//! Reliable messages over datagrams that may be lost: the protocol of "MPI on U-Net" (1997), carried over UDP.
//!
//! Both modes have the same header of 16 octets. *Classic* is the protocol as it was published, and is for study and for
//! comparison; *modern* packets have an extension behind the header. Ends agree on the mode before the first packet. A number in
//! brackets is a section of `docs/spec/unet.md`.

pub mod classic;
pub mod error;
pub mod extension;
pub mod header;
pub mod layout;
pub mod modern;
pub mod network;
pub mod packet;
pub mod sequence;
