//! Ranks of one launcher that have nothing in common but TCP connections.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::{DEADLINE, Ended, ended, job, lines, own, ring, soaks};

/// Runs a part as a number of ranks over TCP.
fn connected(ranks: u32, options: &[&str], part: &str) -> Ended {
    job(ranks, &[&["--transport", "tcp"], options].concat(), part)
}

fn messages_of_all_sizes_go_round_over_connections() {
    for ranks in [1, 2, 3, 8] {
        let (status, out, err) = connected(ranks, &[], ring(ranks == 2));
        assert_eq!(
            (status, out.lines().count() as u32, err.as_str()),
            (0, ranks, ""),
            "{ranks} ranks: {out}"
        );
    }
}

fn all_exchange_with_all_over_connections() {
    let (status, out, err) = connected(4, &[], "exchange");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 4]), "{err}");
}

/// Packets of 16 octets, each of them acknowledged.
fn messages_arrive_in_the_smallest_packets_that_the_environment_announces() {
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

fn ranks_listen_at_and_come_from_the_addresses_that_are_named() {
    let (status, out, err) = connected(3, &["--address", "127.0.0.2,127.0.0.3"], "addresses");
    let of = |rank, at, others: &str| format!("{rank}: from 127.0.0.{at} to {others}");
    let all = [of(0, 2, "127.0.0.2, 127.0.0.3"), of(1, 3, "127.0.0.2"), of(2, 2, "127.0.0.2, 127.0.0.3")];
    assert_eq!((status, lines(&out)), (0, all.iter().map(String::as_str).collect()), "{err}");
    // TEST-NET-1 is nobody's (RFC 5737).
    let (status, out, err) = connected(2, &["--address", "192.0.2.1"], "once");
    assert_eq!((status, out.as_str()), (1, ""));
    let why = "mpjrun: cannot listen at 192.0.2.1, port 0: Cannot assign requested address";
    assert!(err.contains(why), "{err}");
    let (status, _, err) = job(2, &["--address", "127.0.0.2"], "once");
    assert_eq!(status, 2);
    let text = "mpjrun: --address, --ports, --connect-timeout and --peer-timeout are for ranks that connect";
    assert!(err.starts_with(text), "{err}");
}

fn ports_are_those_of_the_range() {
    let (status, _, err) = connected(2, &["--ports", "1:1"], "once");
    assert!(status == 1 && err.contains("cannot listen at 127.0.0.1"), "{status}: {err}");
    // Two ranks cannot have one port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = free.expect("a port").port();
    let (status, _, err) = connected(2, &["--ports", &format!("{port}:{port}")], "once");
    let why = format!("cannot listen at 127.0.0.1: none of the ports {port} to {port} is free");
    assert!(status == 1 && err.contains(&why), "{status}: {err}");
}

fn ranks_may_finish_and_connect_again_and_again() {
    let (status, out, err) = connected(3, &[], "rounds");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 3]), "{err}");
}

fn kill_is_reported_to_peers_over_connections() {
    let begun = Instant::now();
    let (status, out, err) = connected(3, &["--keep-going"], "killed");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let text = "0: rank 1 has failed: its connection has ended before it had finished";
    assert_eq!((status, lines(&out)), (137, vec![text, "2: done"]), "{err}");
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("SIGKILL"), "{err}");
}

fn an_exit_without_finish_is_a_failure_over_connections_too() {
    let (status, _, err) = connected(2, &[], "leaves");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("exited with status 0") && err.contains("without Comm.finish"), "{err}");
}

fn nothing_of_what_is_handed_out_stays_open() {
    let (status, out, err) = connected(2, &[], "keeps");
    assert_eq!((status, lines(&out)), (0, vec!["1 connection, 0 listen, nothing of the world"; 2]), "{err}");
}

/// While it is in flight and its receiver reads nothing, a thousand round trips are made with another rank.
fn a_large_message_to_one_rank_delays_no_small_ones_to_another() {
    for part in ["large-and-small", "large-and-small-by-two-threads"] {
        let options = ["--address", "127.0.0.2,127.0.0.3,127.0.0.4"];
        let (status, out, err) = connected(3, &options, part);
        let text = "0: 1000 answers of rank 2 while rank 1 was stopped\n";
        assert_eq!((status, out.as_str(), err.as_str()), (0, text, ""), "{part}");
    }
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("messages_of_all_sizes_go_round_over_connections", messages_of_all_sizes_go_round_over_connections),
    ("all_exchange_with_all_over_connections", all_exchange_with_all_over_connections),
    (
        "messages_arrive_in_the_smallest_packets_that_the_environment_announces",
        messages_arrive_in_the_smallest_packets_that_the_environment_announces,
    ),
    (
        "ranks_listen_at_and_come_from_the_addresses_that_are_named",
        ranks_listen_at_and_come_from_the_addresses_that_are_named,
    ),
    (
        "a_large_message_to_one_rank_delays_no_small_ones_to_another",
        a_large_message_to_one_rank_delays_no_small_ones_to_another,
    ),
    ("ports_are_those_of_the_range", ports_are_those_of_the_range),
    ("ranks_may_finish_and_connect_again_and_again", ranks_may_finish_and_connect_again_and_again),
    ("kill_is_reported_to_peers_over_connections", kill_is_reported_to_peers_over_connections),
    (
        "an_exit_without_finish_is_a_failure_over_connections_too",
        an_exit_without_finish_is_a_failure_over_connections_too,
    ),
    ("nothing_of_what_is_handed_out_stays_open", nothing_of_what_is_handed_out_stays_open),
];
