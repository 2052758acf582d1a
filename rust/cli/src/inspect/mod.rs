//! Explanations of messages, and in [`impi`] dissection of IMPI recordings. Pure: octets in, text or JSON
//! out, also for damaged octets.

mod digits;
pub mod error;
pub mod explain;
pub mod hex;
pub mod impi;
pub mod input;
pub mod json;
pub mod text;
pub mod value;
