//! The tests, each with what it proves.

mod all_pairs;
mod collectives;
mod failures;
mod finishing;
mod floods;
mod matching;
mod payload;
mod probing;
mod requests;
mod splitting;
mod synchronous;
mod threads;
mod traffic;
mod truncation;
