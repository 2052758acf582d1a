//! Tests of ranks over UDP.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

use serde_json::Value;

use crate::parts::FIREWALL_PORT;
use crate::started::{KEY, NO_KEY, foreign_site, server, site};
use crate::{Ended, job, lines, ring, skip};

/// Runs a part as a number of ranks over UDP.
fn over_datagrams(ranks: u32, options: &[&str], part: &str) -> Ended {
    job(ranks, &[&["--transport", "udp"], options].concat(), part)
}

fn messages_of_all_sizes_pass_a_ring_over_udp() {
    for ranks in [1, 2, 3, 8] {
        let (status, out, err) = over_datagrams(ranks, &[], ring(ranks == 2));
        assert_eq!(
            (status, out.lines().count() as u32, err.as_str()),
            (0, ranks, ""),
            "{ranks} ranks: {out}"
        );
    }
}

fn all_pairs_exchange_messages_over_udp() {
    let (status, out, err) = over_datagrams(4, &[], "exchange");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 4]), "{err}");
}

fn all_pairs_of_two_sites_exchange_messages_over_udp() {
    let (status, out, err) = over_datagrams(2, &["--sites", "2"], "exchange");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 4], ""));
}

fn ranks_join_repeatedly_over_udp() {
    let (status, out, err) = over_datagrams(3, &[], "rounds");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 3]), "{err}");
}

fn exit_without_finish_is_a_failure_over_udp() {
    let (status, _, err) = over_datagrams(2, &[], "leaves");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("exited with status 0") && err.contains("without Comm.finish"), "{err}");
}

fn kill_is_reported_to_peers_over_udp() {
    let (status, out, err) = over_datagrams(3, &["--keep-going"], "killed");
    let text = "0: rank 1 has failed: its connection has ended before it had finished";
    assert_eq!((status, lines(&out)), (137, vec![text, "2: done"]), "{err}");
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("SIGKILL"), "{err}");
}

fn kill_is_reported_to_busy_peers_over_udp() {
    let (status, out, err) = over_datagrams(3, &["--keep-going"], "killed-beside-traffic");
    let text = |me| format!("{me}: rank 1 has failed: its connection has ended before it had finished");
    assert_eq!((status, lines(&out)), (137, vec![text(0).as_str(), &text(2)]), "{err}");
}

fn stopped_rank_counts_as_alive_over_udp() {
    let (status, out, err) = over_datagrams(2, &["--keep-going"], "stopped");
    let text = "rank 1 has failed: its connection has ended before it had finished\n";
    assert_eq!((status, out.as_str()), (137, text), "{err}");
}

fn messages_to_a_stopped_rank_arrive_when_it_continues() {
    let (status, out, err) = over_datagrams(2, &[], "sends-while-stopped");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["0: all has left", "1: all has arrived"], ""));
}

fn only_liveness_connections_stay_open_over_udp() {
    let (status, out, err) = over_datagrams(2, &[], "keeps");
    assert_eq!((status, lines(&out)), (0, vec!["1 connection, 0 listen, nothing of the world"; 2]), "{err}");
}

fn options_of_datagrams_need_the_udp_transport() {
    let text = "mpjrun: --link-rate, --datagram-len and --checksum are for ranks that send datagrams: with --transport udp\n";
    for option in [&["--link-rate", "1gbit"][..], &["--datagram-len", "1200"], &["--checksum"]] {
        assert_eq!(job(2, option, "once"), (2, String::new(), text.to_owned()));
    }
    let (status, _, err) = over_datagrams(2, &["--link-rate", "100"], "once");
    assert!(status == 2 && err.contains("not a rate such as 100mbit"), "{status}: {err}");
    let (status, out, err) = over_datagrams(2, &["--link-rate", "1gbit"], "exchange");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 2], ""));
}

/// Proves that each rank prints its statistics once, as text or as JSON, and only if the environment asks for
/// them.
fn each_rank_prints_its_statistics_once() {
    let (status, _, err) = over_datagrams(3, &["-x", "MPJDEV_STATS=json"], "ring");
    assert_eq!(status, 0, "{err}");
    let mut reported: Vec<Value> =
        err.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    reported.sort_by_key(|reported| reported["rank"].as_u64());
    assert_eq!(reported.len(), 3, "{err}");
    for (rank, reported) in reported.iter().enumerate() {
        assert_eq!(
            (reported["rank"].as_u64(), reported["transport"].as_str()),
            (Some(rank as u64), Some("udp"))
        );
        let sent = |of: &Value| of["messages_sent"].as_u64().expect("a number");
        let peers = reported["peers"].as_array().expect("peers");
        assert_eq!(peers.len(), 2, "{reported}");
        assert!(
            sent(&reported["sum"]) > 0 && sent(&reported["sum"]) == peers.iter().map(sent).sum::<u64>(),
            "{reported}"
        );
        assert!(reported["sum"]["send_calls"].as_u64() > Some(0), "{reported}");
    }
    let (status, _, err) = over_datagrams(2, &["-x", "MPJDEV_STATS=1"], "ring");
    assert_eq!((status, err.matches(": system calls ").count()), (0, 2), "{err}");
    let (status, _, err) = job(2, &["-x", "MPJDEV_STATS=1"], "ring");
    assert_eq!((status, err.matches(": shm has no further counters").count()), (0, 2), "{err}");
    let (status, _, err) = job(2, &["-x", "MPJDEV_STATS=all"], "ring");
    let text = "MPJDEV_STATS is \"all\"; use 1 for text or json for JSON";
    assert_eq!((status, err.matches(text).count()), (0, 2), "{err}");
}

/// Proves that a rank that ends without `finish` prints its statistics, and so does one that finishes after a
/// peer has failed.
fn failing_rank_prints_its_statistics() {
    for (part, ranks, tell) in [("leaves", 2, [0, 1]), ("killed", 3, [0, 2])] {
        let (status, _, err) = over_datagrams(ranks, &["--keep-going", "-x", "MPJDEV_STATS=json"], part);
        assert_ne!(status, 0, "{part}: {err}");
        for rank in tell {
            let begin = format!("{{\"rank\":{rank},\"transport\"");
            assert_eq!(err.matches(&begin).count(), 1, "{part}: {err}");
        }
    }
}

/// The shortest length, an odd one, that of any path, and the longest.
fn datagram_length_option_limits_datagrams() {
    // Each of the shortest datagrams carries 16 octets of a long message.
    for (len, part) in
        [("84", "short-exchange"), ("101", "short-exchange"), ("1200", "exchange"), ("65507", "exchange")]
    {
        let (status, out, err) = over_datagrams(3, &["--datagram-len", len], part);
        assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 3], ""), "{len} octets");
    }
    let (status, out, err) = over_datagrams(2, &["--sites", "2", "--datagram-len", "1200"], "exchange");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 4], ""));
    let (status, _, err) = over_datagrams(2, &["--datagram-len", "83"], "once");
    assert!(status == 2 && err.contains("not a number of octets from 84 to 65507"), "{status}: {err}");
}

fn messages_arrive_in_datagrams_with_checksums() {
    for (options, part) in
        [(&["--checksum"][..], "exchange"), (&["--checksum", "--datagram-len", "84"], "short-exchange")]
    {
        let (status, out, err) = over_datagrams(3, options, part);
        assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; 3], ""), "{options:?}");
    }
}

/// Each launcher prints the error before any connection is made.
fn sites_of_one_job_use_one_transport() {
    for dialect in ["final", "draft"] {
        let (server, address) = server(2, &["--dialect", dialect], KEY);
        let of = |client, transport| {
            let options = ["--transport", transport, "--dialect", dialect];
            site(client, &address, 2, &options, "once", KEY)
        };
        let sites = [of(0, "tcp"), of(1, "udp")];
        let way = ["packets over TCP", "datagrams"];
        for ((own, site), other) in way.into_iter().zip(sites).zip([1, 0]) {
            let (status, out, err) = site.ended();
            assert_eq!((status, out.as_str()), (1, ""), "{err}");
            let why = format!(
                "mpjrun: the ranks of client {other} send {} and those of this site {own}: give all sites of the job \
                 --transport udp, or none; ending 2 ranks\n",
                way[other]
            );
            assert_eq!(err, why, "{dialect}");
        }
        drop(server);
    }
}

/// A foreign rank has no mpjdev datagrams. The other ranks report that, and do not wait for it.
fn udp_job_with_a_foreign_rank_is_refused() {
    let (server, address) = server(2, &[], NO_KEY);
    let ours = site(0, &address, 2, &["--transport", "udp"], "once", NO_KEY);
    let joined = foreign_site(&address);
    let (status, out, err) = ours.ended();
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    let why = "rank 2 is another implementation's, which does not know mpjdev's datagrams: start all sites with --transport auto";
    assert!(err.contains(why), "{err}");
    drop((joined, server));
}

/// The first of this number of consecutive ports that are free for TCP and for UDP.
fn free_ports(count: u16) -> u16 {
    let is_free = |port| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
            && UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    };
    let mut firsts = (20_000..30_000).step_by(count.into());
    firsts.find(|first| (*first..first + count).all(is_free)).expect("free ports")
}

/// Ranks whose UDP port is taken use another port of the range, or fail with the range in the text.
fn udp_ports_are_within_the_range() {
    let first = free_ports(3);
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, first)).expect("a free port");
    let ports = format!("{first}:{}", first + 1);
    let (status, out, err) = over_datagrams(2, &["--ports", &ports], "once");
    let text = format!("none of the ports {first} to {} of 127.0.0.1 is free for UDP", first + 1);
    assert!(status != 0 && err.contains(&text), "{status}: {out}{err}");
    let ports = format!("{first}:{}", first + 2);
    let (status, _, err) = over_datagrams(2, &["--ports", &ports], "once");
    assert_eq!((status, err.as_str()), (0, ""));
    drop(taken);
}

/// A rank has one socket for peers of both families.
fn datagrams_reach_ipv4_and_ipv6_addresses() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        skip("this machine has no ::1".to_owned());
    }
    for addresses in ["127.0.0.1,::1", "::1,127.0.0.1"] {
        for ranks in [2, 4] {
            let (status, out, err) = over_datagrams(ranks, &["--address", addresses], "exchange");
            let done = vec!["done"; ranks as usize];
            assert_eq!((status, lines(&out), err.as_str()), (0, done, ""), "{addresses}");
        }
    }
}

/// A relay whose port receives datagrams and forwards none, as a firewall does: both addresses are named
/// before any rank runs.
fn start_fails_with_both_addresses_when_a_firewall_drops_datagrams() {
    let firewall = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = firewall.local_addr().expect("bound").port();
    let variable = format!("{FIREWALL_PORT}={port}");
    let (status, out, err) = over_datagrams(2, &["-x", &variable], "once");
    assert!(status != 0 && status != 124, "{status}: {out}{err}");
    let to = format!(" to 127.0.0.1:{port} has arrived within ");
    assert!(err.contains("though the ranks are connected over TCP: a firewall may drop UDP"), "{err}");
    let from = format!("no datagram from 127.0.0.1:{port} to 127.0.0.1:");
    assert!(err.contains(&to) || err.contains(&from), "{err}");
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("messages_of_all_sizes_pass_a_ring_over_udp", messages_of_all_sizes_pass_a_ring_over_udp),
    ("all_pairs_exchange_messages_over_udp", all_pairs_exchange_messages_over_udp),
    ("all_pairs_of_two_sites_exchange_messages_over_udp", all_pairs_of_two_sites_exchange_messages_over_udp),
    ("ranks_join_repeatedly_over_udp", ranks_join_repeatedly_over_udp),
    ("exit_without_finish_is_a_failure_over_udp", exit_without_finish_is_a_failure_over_udp),
    ("datagrams_reach_ipv4_and_ipv6_addresses", datagrams_reach_ipv4_and_ipv6_addresses),
    (
        "start_fails_with_both_addresses_when_a_firewall_drops_datagrams",
        start_fails_with_both_addresses_when_a_firewall_drops_datagrams,
    ),
    ("udp_ports_are_within_the_range", udp_ports_are_within_the_range),
    ("options_of_datagrams_need_the_udp_transport", options_of_datagrams_need_the_udp_transport),
    ("sites_of_one_job_use_one_transport", sites_of_one_job_use_one_transport),
    ("udp_job_with_a_foreign_rank_is_refused", udp_job_with_a_foreign_rank_is_refused),
    ("datagram_length_option_limits_datagrams", datagram_length_option_limits_datagrams),
    ("messages_arrive_in_datagrams_with_checksums", messages_arrive_in_datagrams_with_checksums),
    ("kill_is_reported_to_peers_over_udp", kill_is_reported_to_peers_over_udp),
    ("kill_is_reported_to_busy_peers_over_udp", kill_is_reported_to_busy_peers_over_udp),
    ("stopped_rank_counts_as_alive_over_udp", stopped_rank_counts_as_alive_over_udp),
    (
        "messages_to_a_stopped_rank_arrive_when_it_continues",
        messages_to_a_stopped_rank_arrive_when_it_continues,
    ),
    ("only_liveness_connections_stay_open_over_udp", only_liveness_connections_stay_open_over_udp),
    ("each_rank_prints_its_statistics_once", each_rank_prints_its_statistics_once),
    ("failing_rank_prints_its_statistics", failing_rank_prints_its_statistics),
];
