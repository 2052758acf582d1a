//! Explanations of messages, and in [`impi`] dissection of IMPI recordings. Pure: octets in, text or JSON
//! out, however damaged they are.

mod digits;
pub mod error;
pub mod explain;
pub mod hex;
pub mod impi;
pub mod input;
pub mod json;
pub mod text;
pub mod value;
