//! The native methods of `mpjdev.core.Native`: each converts its arguments, calls the engine once, and
//! converts the error.
//!
//! `natives` is the table of them. `boundary` writes the exported shells and `array` copies between Java
//! arrays and message memory; they alone use unsafe code. All other modules are safe Rust that a test can
//! call.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod array;
#[allow(unsafe_code)]
mod boundary;
mod buffer;
mod collective;
mod comm;
mod direct;
mod error;
mod handle;
mod job;
mod natives;
mod requests;
mod stats;
mod topology;
mod types;
mod view;
