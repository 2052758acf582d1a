//! Explains the octets of a message, and in [`impi`] what sites of an IMPI job say. Pure: octets in, text out, however
//! damaged they are.

mod digits;
pub mod explain;
pub mod hex;
pub mod impi;
pub mod input;
pub mod json;
pub mod text;
pub mod value;
