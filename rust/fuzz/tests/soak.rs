//! Every target with its corpus and with seeded mutations of it.
//!
//! MPJDEV_SOAK multiplies the number of mutations (10000 for each target by default), MPJDEV_SEED chooses
//! others.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use mpjdev_bootstrap::job::world::World;
use mpjdev_fuzz::{Mutator, TARGETS, Target};

/// Mutations for each target.
const MUTATIONS: usize = 10_000;

fn number(name: &str, otherwise: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")),
        Err(_) => otherwise,
    }
}

/// The files of a corpus, in the order of their names.
fn corpus(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.into_iter().map(|f| (f.display().to_string(), fs::read(&f).expect("a file"))).collect()
}

/// Calls the target; when it panics, says how to repeat that.
fn call(target: Target, what: &str, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        let octets: String = input.iter().map(|octet| format!("{octet:02x}")).collect();
        eprintln!("{what} fails; its octets, to be kept in the corpus:\n{octets}");
        resume_unwind(panic);
    }
}

fn soak(name: &str) {
    let (_, folder, target) = TARGETS.into_iter().find(|t| t.0 == name).expect("a target");
    let corpus = corpus(folder);
    for (file, input) in &corpus {
        call(target, file, input);
    }
    let seed = number("MPJDEV_SEED", 1);
    let mut mutator = Mutator::new(seed);
    for k in 0..MUTATIONS as u64 * number("MPJDEV_SOAK", 1) {
        let (file, input) = &corpus[mutator.below(corpus.len())];
        let other = &corpus[mutator.below(corpus.len())].1;
        let mutation = mutator.mutate(input, other);
        call(target, &format!("mutation {k} of seed {seed}, from {file},"), &mutation);
    }
}

/// Proves the promises of the message parser on its corpus and around it.
#[test]
fn the_message_parser_keeps_its_promises() {
    soak("message");
}

/// Proves the promises of the reader under sequences of calls.
#[test]
fn the_reader_keeps_its_promises() {
    soak("reader");
}

/// Proves the promises of the explanation.
#[test]
fn inspect_keeps_its_promises() {
    soak("inspect");
}

/// Proves the promises of the hex decoder.
#[test]
fn the_input_decoder_keeps_its_promises() {
    soak("input");
}

/// Proves the promises of a client that receives arbitrary octets.
#[test]
fn the_startup_client_keeps_its_promises() {
    soak("startup-client");
}

/// Proves the promises of a server to which anything happens.
#[test]
fn the_startup_server_keeps_its_promises() {
    soak("startup-server");
}

/// Proves the promises of the parser of IMPI packets.
#[test]
fn the_packet_parser_keeps_its_promises() {
    soak("packet");
}

/// Proves the promises of the machine between two IMPI processes, whatever its driver and its peer do.
#[test]
fn the_pair_machine_keeps_its_promises() {
    soak("pair");
}

/// Proves the promises of the explanation of conversations and packets.
#[test]
fn inspect_of_impi_keeps_its_promises() {
    soak("recording");
}

/// Proves the promises of what two hosts say on a new connection.
#[test]
fn the_handshake_keeps_its_promises() {
    soak("handshake");
}

/// Proves the promises of the description of a world, which a launcher hands to its ranks.
#[test]
fn the_world_parser_keeps_its_promises() {
    soak("world");
}

/// Proves that the corpus gets behind the checks, and that what is called damaged is found out.
#[test]
fn the_worlds_of_the_corpus_are_what_they_are_called() {
    for (file, octets) in corpus("world") {
        let is_sound = World::parse(&octets).is_ok();
        assert_eq!(is_sound, !file.contains("/damaged-"), "{file}: {:?}", World::parse(&octets));
    }
}

/// Proves the promises of the parser of datagrams.
#[test]
fn the_datagram_parser_keeps_its_promises() {
    soak("datagram");
}

/// Proves the promises of the datagram machine of 1997, whatever its driver and its peer do.
#[test]
fn the_unet_machine_keeps_its_promises() {
    soak("datagram-unet");
}

/// Proves the promises of the reliable datagram machine, whatever its driver and its peer do.
#[test]
fn the_reliable_machine_keeps_its_promises() {
    soak("datagram-reliable");
}

/// Proves that no target is left out of this file.
#[test]
fn every_target_has_a_test() {
    let tests = include_str!("soak.rs");
    for (name, ..) in TARGETS {
        assert!(tests.contains(&format!("soak(\"{name}\")")), "{name}");
    }
}
