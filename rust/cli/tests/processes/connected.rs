//! Tests of ranks over TCP in one launcher.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::{DEADLINE, Ended, ended, job, lines, own, ring, soaks};

/// Runs a part as a number of ranks over TCP.
fn connected(ranks: u32, options: &[&str], part: &str) -> Ended {
    job(ranks, &[&["--transport", "tcp"], options].concat(), part)
}

fn messages_of_all_sizes_pass_a_ring_over_tcp() {
    for ranks in [1, 2, 3, 8] {
        let (status, out, err) = connected(ranks, &[], ring(ranks == 2));
        assert_eq!(
            (status, out.lines().count() as u32, err.as_str()),
            (0, ranks, ""),
            "{ranks} ranks: {out}"
        );
    }
}

fn all_pairs_exchange_messages_over_tcp() {
    let (status, out, err) = connected(4, &[], "exchange");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 4]), "{err}");
}

/// Packets of 16 octets, each of them acknowledged.
fn messages_arrive_with_the_smallest_packet_limits() {
    let run = |part: &str, variables: [(&str, &str); 3]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
        command.args(["run", "-n", "3", "--transport", "tcp", "--timeout", DEADLINE]).arg(own()).arg(part);
        ended(command.envs(variables).output().expect("it starts"))
    };
    let variables = [("IMPI_C_DATALEN", "16"), ("IMPI_H_ACKMARK", "1"), ("IMPI_H_HIWATER", "1")];
    let (status, out, err) = run(if soaks() { "rounds" } else { "three-rounds" }, variables);
    assert_eq!((status, lines(&out)), (0, vec!["done"; 3]), "{err}");
    let (status, out, err) = run("once", [variables[0], variables[1], ("IMPI_H_HIWATER", "0")]);
    let text = "mpjrun: IMPI_H_HIWATER is \"0\", it must be a number from 1 to 4294967295\n";
    assert_eq!((status, out.as_str(), err.as_str()), (2, "", text));
}

fn ranks_listen_at_and_connect_from_the_given_addresses() {
    let (status, out, err) = connected(3, &["--address", "127.0.0.2,127.0.0.3"], "addresses");
    let of = |rank, at, others: &str| format!("{rank}: from 127.0.0.{at} to {others}");
    let all = [of(0, 2, "127.0.0.2, 127.0.0.3"), of(1, 3, "127.0.0.2"), of(2, 2, "127.0.0.2, 127.0.0.3")];
    assert_eq!((status, lines(&out)), (0, all.iter().map(String::as_str).collect()), "{err}");
    // TEST-NET-1 is reserved for documentation (RFC 5737).
    let (status, out, err) = connected(2, &["--address", "192.0.2.1"], "once");
    assert_eq!((status, out.as_str()), (1, ""));
    let why = "mpjrun: cannot listen at 192.0.2.1, port 0: Cannot assign requested address";
    assert!(err.contains(why), "{err}");
    let (status, _, err) = job(2, &["--address", "127.0.0.2"], "once");
    assert_eq!(status, 2);
    let text = "mpjrun: --address, --ports, --connect-timeout and --peer-timeout are for ranks that connect";
    assert!(err.starts_with(text), "{err}");
}

fn tcp_ports_are_within_the_range() {
    let (status, _, err) = connected(2, &["--ports", "1:1"], "once");
    assert!(status == 1 && err.contains("cannot listen at 127.0.0.1"), "{status}: {err}");
    // Two ranks cannot have one port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = free.expect("a port").port();
    let (status, _, err) = connected(2, &["--ports", &format!("{port}:{port}")], "once");
    let why = format!("cannot listen at 127.0.0.1: none of the ports {port} to {port} is free");
    assert!(status == 1 && err.contains(&why), "{status}: {err}");
}

fn ranks_join_repeatedly_over_tcp() {
    let (status, out, err) = connected(3, &[], "rounds");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 3]), "{err}");
}

fn kill_is_reported_to_peers_over_tcp() {
    let begun = Instant::now();
    let (status, out, err) = connected(3, &["--keep-going"], "killed");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let text = "0: rank 1 has failed: its connection has ended before it had finished";
    assert_eq!((status, lines(&out)), (137, vec![text, "2: done"]), "{err}");
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("SIGKILL"), "{err}");
}

fn exit_without_finish_is_a_failure_over_tcp() {
    let (status, _, err) = connected(2, &[], "leaves");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("exited with status 0") && err.contains("without Comm.finish"), "{err}");
}

fn listeners_and_world_description_are_closed_after_joining() {
    let (status, out, err) = connected(2, &[], "keeps");
    assert_eq!((status, lines(&out)), (0, vec!["1 connection, 0 listen, nothing of the world"; 2]), "{err}");
}

/// A thousand round trips with another rank complete while the large message is in flight to a stopped rank.
fn large_message_does_not_delay_messages_to_another_rank() {
    for part in ["large-and-small", "large-and-small-by-two-threads"] {
        let options = ["--address", "127.0.0.2,127.0.0.3,127.0.0.4"];
        let (status, out, err) = connected(3, &options, part);
        let text = "0: 1000 answers of rank 2 while rank 1 was stopped\n";
        assert_eq!((status, out.as_str(), err.as_str()), (0, text, ""), "{part}");
    }
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("messages_of_all_sizes_pass_a_ring_over_tcp", messages_of_all_sizes_pass_a_ring_over_tcp),
    ("all_pairs_exchange_messages_over_tcp", all_pairs_exchange_messages_over_tcp),
    ("messages_arrive_with_the_smallest_packet_limits", messages_arrive_with_the_smallest_packet_limits),
    (
        "ranks_listen_at_and_connect_from_the_given_addresses",
        ranks_listen_at_and_connect_from_the_given_addresses,
    ),
    (
        "large_message_does_not_delay_messages_to_another_rank",
        large_message_does_not_delay_messages_to_another_rank,
    ),
    ("tcp_ports_are_within_the_range", tcp_ports_are_within_the_range),
    ("ranks_join_repeatedly_over_tcp", ranks_join_repeatedly_over_tcp),
    ("kill_is_reported_to_peers_over_tcp", kill_is_reported_to_peers_over_tcp),
    ("exit_without_finish_is_a_failure_over_tcp", exit_without_finish_is_a_failure_over_tcp),
    (
        "listeners_and_world_description_are_closed_after_joining",
        listeners_and_world_description_are_closed_after_joining,
    ),
];
