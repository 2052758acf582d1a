//! Tests of connections that do not join.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::process::{Process, RawClient, joining, message, settings, soon};

/// Runs the job of two clients to its end; returns the standard error of the server.
fn finish(server: Process) -> String {
    let joined = server.join_all((0..2).map(settings));
    joined.into_iter().for_each(|site| site.connection.finish(soon()).expect("it takes it"));
    let (status, text) = server.ended();
    assert_eq!(status, 0, "{text}");
    text
}

fn line(client: &RawClient, reason: &str) -> String {
    format!("mpjdev impi-server: refused {}: {reason}", client.address())
}

/// Proves that each refusal is one line with address and reason, and that the job forms.
#[test]
fn each_refusal_is_one_line_and_the_job_forms() {
    let auth = message(b"AUTH", &[0, 0, 0, 1]);
    let cases: [(&[u8], &str); 9] = [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\"GET \" is no command"),
        (b"SSH-2.0-x\r\n", "\"SSH-\" is no command"),
        (&[0xff; 4096], "0xffffffff is no command"),
        (b"AUTH\xff\xff\xff\xff", "AUTH has the length -1"),
        (b"AUTH\x7f\xff\xff\xff", "AUTH has a length of 2147483647"),
        (b"FINI\0\0\0\0", "FINI comes out of turn, AUTH is due"),
        (b"AUTH\0\0\0\x04\0\0\0\x02", "it offers authentication methods 0x2, none of which is enabled here"),
        (&joining(2), "there is no rank 2 among 2 clients"),
        (&[auth.clone(), message(b"COLL", &[0; 4])].concat(), "COLL comes out of turn, IMPI is due"),
    ];
    let server = Process::start(&["-server", "2"]);
    let mut lines = Vec::new();
    for (words, reason) in cases {
        let mut client = server.connect();
        client.send(words);
        client.until_closed();
        lines.push(line(&client, reason));
    }
    let mut silent = server.connect();
    silent.end();
    silent.until_closed();
    lines.push(line(&silent, "the connection ended too early"));
    let text = finish(server);
    assert_eq!(text.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn taken_rank_and_surplus_client_are_refused() {
    let server = Process::start(&["-server", "2"]);
    let mut first = server.connect();
    first.send(&joining(1));
    first.receive(8);
    let mut second = server.connect();
    second.send(&joining(1));
    second.until_closed();
    // One connects before the job is complete, and one after that.
    let mut early = server.connect();
    early.send(&message(b"AUTH", &[0, 0, 0, 1]));
    early.receive(8);
    let mut other = server.connect();
    other.send(&joining(0));
    other.receive(20);
    early.until_closed();
    let mut late = server.connect();
    late.until_closed();
    let full = "the job has all of its 2 clients";
    let lines = [line(&second, "there is a client of rank 1 already"), line(&early, full), line(&late, full)];
    for site in [&mut first, &mut other] {
        site.send(&message(b"DONE", &[]));
    }
    for site in [&mut first, &mut other] {
        site.until_done();
        site.send(&message(b"FINI", &[]));
    }
    let (status, text) = server.ended();
    assert_eq!((status, text.lines().collect::<Vec<_>>()), (0, lines.iter().map(String::as_str).collect()));
}

impl RawClient {
    /// Receives all commands up to DONE.
    fn until_done(&mut self) {
        let mut received = Vec::new();
        while !received.ends_with(b"DONE\0\0\0\0") {
            received.extend(self.receive(1));
        }
    }
}

/// Time that a connection has to join.
const JOIN_TIMEOUT: Duration = Duration::from_secs(4);

/// Sends its first octets one by one, each within the join timeout, until the connection is closed.
fn dribble(mut client: RawClient) {
    client.0.set_read_timeout(Some(JOIN_TIMEOUT / 2)).expect("a time");
    for octet in &message(b"AUTH", &[0, 0, 0, 1])[..11] {
        match client.0.write_all(&[*octet]).and_then(|()| client.0.read(&mut [0; 1])) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
    panic!("the connection is still open");
}

/// Proves that a connection that sends nothing, or one octet at a time, is closed in time and delays no
/// other.
#[test]
fn slow_connections_are_closed_in_time_and_delay_no_client() {
    let server = Process::start(&["-server", "2", "--join-timeout", &JOIN_TIMEOUT.as_secs().to_string()]);
    let slow: Vec<_> = (0..40).map(|_| server.connect()).collect();
    let threads: Vec<_> =
        slow.into_iter().map(|client| std::thread::spawn(move || dribble(client))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let text = finish(server);
    let in_time = text.lines().filter(|line| line.ends_with(": it has not joined within 4 s")).count();
    assert_eq!((in_time, text.lines().count()), (40, 40), "{text}");
}

#[test]
fn oldest_silent_connection_is_closed_for_a_new_one() {
    let server = Process::start(&["-server", "2"]);
    let mut flood: Vec<_> = (0..65).map(|_| server.connect()).collect();
    flood[0].until_closed();
    let reason = line(&flood[0], "closed for a new connection: it had not joined, like 63 others");
    drop(flood);
    let text = finish(server);
    assert_eq!(text.lines().next(), Some(reason.as_str()));
}

/// Fewer than the limit on connections that have not joined.
const FILES: u64 = 64;

/// Proves that silent connections are closed when the server has no descriptor left, and that the job forms.
#[test]
fn silent_connections_are_closed_when_descriptors_run_out() {
    let server = Process::start(&["-server", "2", "--join-timeout", "3600"]);
    server.limit_files(FILES);
    let mut flood: Vec<_> = (0..FILES).map(|_| server.connect()).collect();
    flood[0].until_closed();
    let text = finish(server);
    let lines: Vec<&str> = text.lines().collect();
    let is_evicted = |line: &&str| line.contains(": closed for a new connection: it had not joined, like ");
    let (evicted, others): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(is_evicted);
    assert!(evicted[0].starts_with(&line(&flood[0], "closed")), "{text}");
    // The connections that were open when the job had formed.
    assert!(others.iter().all(|line| line.ends_with(": the job has all of its 2 clients")), "{text}");
}

/// Proves that a job forms while a client of the same address reopens each closed connection.
#[test]
fn job_forms_while_silent_connections_flood_the_server() {
    let server = Process::start(&["-server", "2"]);
    let mut open: VecDeque<_> = (0..100).map(|_| server.connect()).collect();
    let is_over = AtomicBool::new(false);
    let joined = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                open.pop_front().expect("100 are open").until_closed();
                open.push_back(server.connect());
            }
        });
        let joined = server.join_all((0..2).map(settings));
        is_over.store(true, Ordering::Relaxed);
        joined
    });
    joined.into_iter().for_each(|site| site.connection.finish(soon()).expect("it takes it"));
    assert_eq!(server.ended().0, 0);
}

/// Proves that unauthenticated clients cannot fill a log.
#[test]
fn only_a_thousand_refusals_are_printed() {
    let server = Process::start(&["-server", "2"]);
    for _ in 0..1010 {
        let mut client = server.connect();
        client.send(b"12345678");
        client.until_closed();
    }
    let text = finish(server);
    assert_eq!(text.lines().count(), 1000);
    assert!(
        text.ends_with("is no command; further refusals are not printed\n"),
        "{}",
        &text[text.len() - 200..]
    );
}
