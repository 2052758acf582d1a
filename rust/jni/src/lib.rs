//! The native methods of `mpjdev.core.Native`: each converts its arguments, calls the engine once, and
//! converts the error.
//!
//! `boundary` holds the exported shells and `array` the copies between Java arrays and message memory; they
//! alone use unsafe code. All other modules are safe Rust that a test can call.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod array;
#[allow(unsafe_code)]
mod boundary;
mod buffer;
mod comm;
mod error;
mod handle;
mod stats;
mod view;
