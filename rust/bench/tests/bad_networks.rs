//! Impaired networks as processes: a relay between sockets, and a stream between namespaces. The tests do not
//! assert speed.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev-bench"));
    command.arg("net").args(args);
    command
}

/// Proves that two programs reach each other at the addresses that the relay prints, that it loses datagrams,
/// and that it prints its counts when its input ends.
#[test]
fn relay_command_forwards_between_two_processes() {
    let any = || UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
    let (one, other) = (any(), any());
    let address = |socket: &UdpSocket| socket.local_addr().expect("an address").to_string();
    let pair = format!("{},{}", address(&one), address(&other));
    let mut relay = command(&["relay", "--impair", "loss=50%", "--seed", "3", &pair]);
    let mut relay = relay.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut out = BufReader::new(relay.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    let (of_other, of_one) = line.trim().split_once(' ').expect("two addresses");
    let (of_other, of_one): (SocketAddr, SocketAddr) =
        (of_other.parse().expect("an address"), of_one.parse().expect("an address"));
    other.connect(of_one).expect("connected");
    other.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    let mut octets = [0; 8];
    // About half of them are delivered.
    for _ in 0..100 {
        one.send_to(b"there?", of_other).expect("sent");
    }
    for _ in 0..20 {
        assert_eq!(other.recv(&mut octets).expect("one of a hundred"), 6);
    }
    drop(relay.stdin.take());
    let mut text = String::new();
    out.read_to_string(&mut text).expect("the totals");
    assert!(relay.wait().expect("it ends").success());
    assert!(text.contains("pair 0, there: ") && text.contains("pair 0, back: 0 sent, 0 delivered"), "{text}");
    assert!(
        !text.contains(" 0 lost, 0 dropped by a full queue, 0 duplicated, 0 reordered\npair 0, back"),
        "{text}"
    );
}

/// Proves that a whole TCP stream passes a path that loses packets, or that the reason for its absence is
/// printed.
#[test]
fn stream_through_an_impaired_network_reports_its_goodput() {
    let args = [
        "stream",
        "--impair",
        "loss=1%,delay=1ms",
        "--seconds",
        "1",
        "--by",
        "relay",
        "--congestion",
        "reno",
    ];
    let output = command(&args).stdin(Stdio::null()).output().expect("it runs");
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(2) {
        assert!(err.starts_with("mpjdev-bench: no "), "{err}");
        eprintln!("NOT TESTED: {err}");
        return;
    }
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("Mbit/s of payload by reno through a relay") && !out.starts_with("0.00 "), "{out}");
}

/// Proves that invalid arguments are refused before anything starts.
#[test]
fn invalid_impairment_or_pair_is_wrong_usage() {
    for args in [
        &["relay", "--impair", "loss=much", "127.0.0.1:1,127.0.0.1:2"][..],
        &["relay", "127.0.0.1:1"],
        &["relay", "here,there"],
        &["relay"],
        &["stream", "--impair", "smell=1%"],
    ] {
        let output = command(args).stdin(Stdio::null()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
    // Netem defines reordering differently.
    let args = ["stream", "--impair", "reorder=3", "--by", "netem"];
    let output = command(&args).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}
