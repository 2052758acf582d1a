//! Explains the octets of a message. Pure: octets in, text out, however damaged they are.

pub mod explain;
pub mod hex;
pub mod input;
pub mod json;
pub mod text;
pub mod value;
