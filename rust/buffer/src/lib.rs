#![doc = include_str!("../FORMAT.md")]
//!
//! # This crate
//!
//! Pure: octets and numbers in, octets and errors out. No I/O, no clock, no thread, no unsafe. Message memory
//! comes from an implementation of [`SlabSource`].
#![forbid(unsafe_code)]

pub mod capacity;
pub mod element;
pub mod encoding;
pub mod error;
pub mod header;
pub mod layout;
pub mod message;
pub mod octets;
mod packing_unit;
pub mod patch;
pub mod read;
mod refcount;
pub mod slab;
pub mod sole_section;
pub mod types;
mod view;
pub mod write;

pub use element::Element;
pub use encoding::Encoding;
pub use error::{BufferError, Damage, SlabError};
pub use header::{PrimaryHeader, SecondaryHeader, SectionHeader};
pub use message::Message;
pub use octets::Octets;
pub use packing_unit::UnitHeader;
pub use patch::Patch;
pub use read::ReadBuffer;
pub use slab::{Packer, PlainSource, Slab, SlabMemory, SlabSource};
pub use types::Type;
pub use view::ViewedSlab;
pub use write::WriteBuffer;
