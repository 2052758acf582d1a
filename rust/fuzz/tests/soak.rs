//! Every target with its corpus and with seeded mutations of it.
//!
//! MPJDEV_SOAK multiplies the number of mutations, by default 10000 for each target. MPJDEV_SEED is their
//! seed.

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

/// Calls the target. A panic prints the octets of the input.
fn call(target: Target, what: &str, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        let octets: String = input.iter().map(|octet| format!("{octet:02x}")).collect();
        eprintln!("{what} fails; add its octets to the corpus:\n{octets}");
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

/// Proves the invariants of the message parser on its corpus and on mutations of it.
#[test]
fn message_parser_accepts_and_refuses_consistently() {
    soak("message");
}

/// Proves the invariants of the read buffer under sequences of calls.
#[test]
fn reader_survives_any_sequence_of_calls() {
    soak("reader");
}

/// Proves that explanations agree with the reader.
#[test]
fn inspect_agrees_with_the_reader() {
    soak("inspect");
}

/// Proves the invariants of the hex decoder.
#[test]
fn decoded_hex_text_survives_the_round_trip() {
    soak("input");
}

/// Proves the invariants of a startup client that receives any octets.
#[test]
fn startup_client_survives_any_octets() {
    soak("startup-client");
}

/// Proves the invariants of a startup server under any events.
#[test]
fn startup_server_survives_any_events() {
    soak("startup-server");
}

/// Proves the invariants of the parser of IMPI packets.
#[test]
fn impi_packet_survives_the_round_trip() {
    soak("packet");
}

/// Proves the invariants of the IMPI state machine for any driver and peer.
#[test]
fn impi_pair_matches_its_model() {
    soak("pair");
}

/// Proves the invariants of dissected recordings.
#[test]
fn inspect_of_impi_has_the_same_counts_in_text_and_json() {
    soak("recording");
}

/// Proves the invariants of the handshake of two hosts.
#[test]
fn handshake_completes_for_the_key_only() {
    soak("handshake");
}

/// Proves the invariants of the parser of world descriptions.
#[test]
fn world_description_survives_the_round_trip() {
    soak("world");
}

/// Proves that the corpus passes the first checks, and that damaged descriptions are refused.
#[test]
fn worlds_of_the_corpus_are_valid_unless_named_damaged() {
    for (file, octets) in corpus("world") {
        let is_sound = World::parse(&octets).is_ok();
        assert_eq!(is_sound, !file.contains("/damaged-"), "{file}: {:?}", World::parse(&octets));
    }
}

/// Proves the invariants of the datagram parsers.
#[test]
fn datagram_survives_the_round_trip() {
    soak("datagram");
}

/// Proves the invariants of the U-Net protocol for any driver and peer.
#[test]
fn unet_connection_matches_its_model() {
    soak("datagram-unet");
}

/// Proves the invariants of the reliable protocol for any driver and peer.
#[test]
fn reliable_connection_matches_its_model() {
    soak("datagram-reliable");
}

/// Proves that this file has a test for each target.
#[test]
fn every_target_has_a_test() {
    let tests = include_str!("soak.rs");
    for (name, ..) in TARGETS {
        assert!(tests.contains(&format!("soak(\"{name}\")")), "{name}");
    }
}
