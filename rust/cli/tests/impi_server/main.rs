//! `mpjdev impi-server` as a user runs it: a real process, real connections, real signals.

mod guesses;
mod jobs;
mod keys;
mod process;
mod strangers;
