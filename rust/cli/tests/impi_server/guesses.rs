//! Tests of clients that guess keys beside clients with the right key.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use mpjdev_proto::impi::startup::Settings;

use crate::process::{Process, RawClient, WITH_KEY, message, settings, soon};

const KEY: [(&str, &str); 1] = [("IMPI_AUTH_KEY", "42")];

/// A connection that has given a wrong key.
fn guess(server: &Process, key: u64) -> RawClient {
    let mut client = server.connect();
    client.send(&message(b"AUTH", &[0, 0, 0, 2]));
    assert_eq!(client.receive(8), [0, 0, 0, 1, 0, 0, 0, 8]);
    client.send(&key.to_be_bytes());
    client
}

fn honest(rank: u32) -> Settings {
    Settings { auth: WITH_KEY, ..settings(rank) }
}

/// Runs the job of two clients to its end; returns the standard error of the server.
fn finish(server: Process) -> String {
    let joined = server.join_all((0..2).map(honest));
    joined.into_iter().for_each(|site| site.connection.finish(soon()).expect("it takes it"));
    let (status, text) = server.ended();
    assert_eq!(status, 0, "{text}");
    text
}

#[test]
fn each_wrong_key_waits_longer_for_its_answer() {
    let server = Process::start_with(&["-server", "2"], &KEY);
    for wait_ms in [200, 400, 800] {
        let begun = Instant::now();
        let mut client = guess(&server, wait_ms);
        client.until_closed();
        // The server counts whole milliseconds.
        assert!(begun.elapsed() >= Duration::from_millis(wait_ms - 10), "{:?}", begun.elapsed());
    }
    let text = finish(server);
    assert_eq!(text.lines().filter(|line| line.ends_with(": wrong key")).count(), 3, "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}

/// Proves that a wrong key delays no other client: a job forms, runs and ends meanwhile.
#[test]
fn client_with_the_key_does_not_wait_for_wrong_keys() {
    const GUESSES: u64 = 40;
    let server = Process::start_with(&["-server", "2"], &KEY);
    let mut guessing: Vec<_> = (1..GUESSES).map(|key| guess(&server, 1000 + key)).collect();
    let begun = Instant::now();
    guessing.push(guess(&server, 1000));
    let joined = server.join_all((0..2).map(honest));
    let last = guessing.last_mut().expect("many");
    last.0.set_nonblocking(true).expect("a socket");
    let answer = last.0.read(&mut [0]).map_err(|error| error.kind());
    // The delay is 5 s; a busy machine may have taken as long for the job.
    let is_late = begun.elapsed() >= Duration::from_secs(5);
    assert!(
        is_late || answer == Err(ErrorKind::WouldBlock),
        "the last one has its answer already: {answer:?}"
    );
    last.0.set_nonblocking(false).expect("a socket");
    joined.into_iter().for_each(|site| site.connection.finish(soon()).expect("it takes it"));
    let (status, text) = server.ended();
    assert_eq!((status, text.lines().count()), (0, GUESSES as usize), "{text}");
    guessing.iter_mut().for_each(RawClient::until_closed);
}

/// Proves that a new connection does not shorten the delay: a wrong key counts until its delay is over.
#[test]
fn closed_connection_with_a_wrong_key_still_counts() {
    let server = Process::start_with(&["-server", "2"], &KEY);
    let begun = Instant::now();
    // At most 64 connections are delayed at a time, and one more may be accepted while the last key is in
    // flight. Five delays are shorter, all others 5 s.
    (0..75).for_each(|key| drop(guess(&server, 1000 + key)));
    assert!(begun.elapsed() >= Duration::from_millis(4990), "{:?}", begun.elapsed());
    assert_eq!(finish(server).lines().count(), 75);
}
