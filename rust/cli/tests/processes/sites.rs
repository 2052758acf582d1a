//! Tests of jobs of several sites, with a launcher for each site or one launcher for all.

use std::fs::Permissions;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

use crate::kills::{children, nothing_runs};
use crate::started::{KEY, NO_KEY, Started, foreign_site, server, site};
use crate::{DEADLINE, job, lines, own, ring};

fn is_one_line(text: &str, words: &[&str]) {
    assert_eq!(text.lines().count(), 1, "{text}");
    words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in {text}"));
}

fn sites_are_one_world_in_the_order_of_their_clients() {
    for (sites, ranks, dialect) in [(2, 2, "final"), (3, 1, "final"), (2, 2, "draft")] {
        for part in [ring(false), "exchange"] {
            let (server, address) = server(sites, &["--dialect", dialect], KEY);
            let options = ["--dialect", dialect, "--tag-output"];
            // The order in which the sites join does not matter.
            let started = (0..sites).rev().map(|client| site(client, &address, ranks, &options, part, KEY));
            let started: Vec<Started> = started.collect();
            for (client, site) in (0..sites).rev().zip(started) {
                let (status, out, err) = site.ended();
                let own = client * ranks..(client + 1) * ranks;
                let said = |rank| {
                    if part == "exchange" {
                        format!("[{rank}] done")
                    } else {
                        format!("[{rank}] {rank}: done")
                    }
                };
                let expected: Vec<String> = own.map(said).collect();
                let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
                let found = (status, lines(&out), err.as_str());
                assert_eq!(found, (0, expected, ""), "{part} of {sites} sites, {dialect}");
            }
            let (status, _, err) = server.ended();
            assert_eq!((status, err.as_str()), (0, ""), "{part} of {sites} sites, {dialect}");
        }
    }
}

fn sites_option_starts_server_and_all_sites() {
    for (sites, ranks, dialect) in [("2", 2, "final"), ("3", 1, "draft")] {
        let options = ["--sites", sites, "--tag-output", "--dialect", dialect];
        let (status, out, err) = job(ranks, &options, ring(ranks == 2));
        let all = ranks * sites.parse::<u32>().expect("a number");
        let expected: Vec<String> = (0..all).map(|rank| format!("[{rank}] {rank}: done")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!((status, lines(&out), err.as_str()), (0, expected, ""), "{sites} sites");
    }
    for (sites, transport) in [("2", "tcp"), ("3", "auto")] {
        let (status, out, err) = job(2, &["--sites", sites, "--transport", transport], "exchange");
        let all = 2 * sites.parse::<usize>().expect("a number");
        assert_eq!((status, lines(&out), err.as_str()), (0, vec!["done"; all], ""), "{transport}");
    }
}

fn ranks_of_a_site_connect_to_other_sites_only() {
    let addresses = ["--sites", "2", "--address", "127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5"];
    let expect = |transport: &str, peers: [&[u32]; 4]| {
        let (status, out, err) = job(2, &[&addresses[..], &["--transport", transport]].concat(), "addresses");
        let of = |(rank, peers): (usize, &[u32])| {
            let peers: Vec<String> = peers.iter().map(|peer| format!("127.0.0.{}", peer + 2)).collect();
            format!("{rank}: from 127.0.0.{} to {}", rank + 2, peers.join(", "))
        };
        let all: Vec<String> = peers.into_iter().enumerate().map(of).collect();
        let all = all.iter().map(String::as_str).collect();
        assert_eq!((status, lines(&out), err.as_str()), (0, all, ""), "{transport}");
    };
    expect("auto", [&[2, 3], &[2, 3], &[0, 1], &[0, 1]]);
    expect("shm", [&[2, 3], &[2, 3], &[0, 1], &[0, 1]]);
    expect("tcp", [&[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]]);
    // The listeners and the world description are closed.
    let (status, out, err) = job(2, &["--sites", "2"], "keeps");
    assert_eq!((status, lines(&out)), (0, vec!["2 connection, 0 listen, nothing of the world"; 4]), "{err}");
}

fn computing_rank_does_not_delay_other_sites() {
    let (status, out, err) = job(2, &["--sites", "2"], "computes-far");
    assert_eq!((status, lines(&out)), (0, vec!["computed", "sent"]), "{err}");
}

/// Ranks of the same site detect it by the status page, others by their connections.
fn kill_is_reported_to_peers_at_all_sites() {
    let begun = Instant::now();
    let (status, out, err) = job(2, &["--sites", "2", "--keep-going"], "detects-failure-of-rank-1");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let near = "0: rank 1 has failed: its process was killed by signal 9".to_owned();
    let far = |rank| format!("{rank}: rank 1 has failed: its connection has ended before it had finished");
    let all = [near, far(2), far(3)];
    assert_eq!((status, lines(&out)), (137, all.iter().map(String::as_str).collect()), "{err}");
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("SIGKILL"), "{err}");
}

fn stopped_rank_counts_as_alive_at_all_sites() {
    let (status, out, err) = job(2, &["--sites", "2", "--keep-going"], "stopped");
    let far = "rank 1 has failed: its connection has ended before it had finished";
    let near = "rank 1 has failed: its process was killed by signal 9";
    assert_eq!((status, lines(&out)), (137, vec![far, far, near]), "{err}");
}

/// Closes the first `refused` connections as a flooded server does, and forwards the next one to the server.
fn flooded(server: String, refused: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        (0..refused).for_each(|_| drop(listener.accept().expect("a site")));
        let (mut site, _) = listener.accept().expect("a site");
        let mut server = TcpStream::connect(server).expect("it listens");
        let (mut from_site, mut to_server) =
            (site.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
        std::thread::spawn(move || std::io::copy(&mut from_site, &mut to_server));
        let _ = std::io::copy(&mut server, &mut site);
    });
    address
}

fn site_joins_again_when_the_server_closes_before_it_answers() {
    let (server, address) = server(1, &[], NO_KEY);
    let (status, out, err) = site(0, &flooded(address, 3), 2, &[], "ring", NO_KEY).ended();
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["0: done", "1: done"], ""));
    assert_eq!(server.ended().0, 0);
    // It fails after the fourth attempt.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let closes = std::thread::spawn(move || (0..4).for_each(|_| drop(listener.accept().expect("a site"))));
    let (status, _, err) = site(0, &address, 1, &[], "ring", NO_KEY).ended();
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("closed the connection during authentication"), "{err}");
    closes.join().expect("four attempts");
}

fn ranks_of_all_sites_listen_at_the_addresses_in_turn() {
    let options = ["--sites", "3", "--transport", "tcp", "--address", "127.0.0.2,127.0.0.3"];
    let (status, out, err) = job(1, &options, "addresses");
    let of = |rank, at, others: &str| format!("{rank}: from 127.0.0.{at} to {others}");
    let all = [of(0, 2, "127.0.0.2, 127.0.0.3"), of(1, 3, "127.0.0.2"), of(2, 2, "127.0.0.2, 127.0.0.3")];
    assert_eq!((status, lines(&out)), (0, all.iter().map(String::as_str).collect()), "{err}");
}

fn wrong_key_and_taken_rank_are_refused_and_other_sites_continue() {
    let (server, address) = server(2, &[], KEY);
    let refused = "mpjrun: the startup server has closed the connection";
    let wrong = site(0, &address, 1, &[], "ring", ("IMPI_AUTH_KEY", "4712")).ended();
    assert_eq!((wrong.0, wrong.1.as_str()), (1, ""));
    assert!(wrong.2.contains(refused) && wrong.2.contains("a wrong key"), "{}", wrong.2);
    let without = site(0, &address, 1, &[], "ring", NO_KEY).ended();
    assert_eq!((without.0, without.1.as_str()), (1, ""));
    assert!(without.2.contains(refused) && without.2.contains("no method in common"), "{}", without.2);
    // The first of the two joins, and the other one is refused.
    let mut sites = [0, 0].map(|client| Some(site(client, &address, 1, &[], "ring", KEY)));
    let is_over = |site: &mut Option<Started>| {
        site.as_mut().is_some_and(|site| site.child.try_wait().expect("our child").is_some())
    };
    let begun = Instant::now();
    let loser = loop {
        if let Some(loser) = sites.iter_mut().position(is_over) {
            break loser;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "neither is refused");
        std::thread::yield_now();
    };
    let (status, _, err) = sites[loser].take().expect("it is there").ended();
    assert_eq!(status, 1);
    assert!(err.contains(refused) && err.contains("a rank that is taken"), "{err}");
    let other = site(1, &address, 1, &[], "ring", KEY).ended();
    let winner = sites[1 - loser].take().expect("it is there").ended();
    assert_eq!([(winner.0, &*winner.1), (other.0, &*other.1)], [(0, "0: done\n"), (0, "1: done\n")]);
    let (status, _, err) = server.ended();
    // A site without a common method receives no answer, and tries four times.
    let refusals = |reason| err.lines().filter(|line| line.ends_with(reason)).count();
    let counts = ["wrong key", "none of which is enabled here", "already"].map(refusals);
    assert_eq!((status, counts, err.lines().count()), (0, [1, 4, 1], 6), "{err}");
}

fn late_server_is_joined_and_a_missing_one_is_named() {
    // The system does not give a port to another program so soon.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let (address, port) = (free.to_string(), free.port().to_string());
    let mut early = site(0, &address, 2, &[], "says-and-joins", NO_KEY);
    assert_eq!(early.line(), "here");
    let (server, _) = server(1, &["-port", &port], NO_KEY);
    let (status, out, err) = early.ended();
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["here", "joined", "joined"], ""));
    assert_eq!(server.ended().0, 0);
    let (status, out, err) = site(0, &address, 2, &["--connect-timeout", "1"], "ring", NO_KEY).ended();
    assert_eq!((status, out.as_str()), (1, ""));
    let refused = format!("mpjrun: cannot connect to the startup server at {address}: Connection refused");
    assert!(err.contains(&refused) && err.contains("; ending 2 ranks"), "{err}");
}

fn job_ends_at_its_timeout_when_a_site_is_missing() {
    let (_server, address) = server(2, &[], NO_KEY);
    let words = ["run", "-client", "1", &address, "-n", "2", "--timeout", "1"];
    let own = own();
    let (status, out, err) =
        Started::new(&[&words[..], &[own.to_str().expect("UTF-8"), "ring"]].concat(), NO_KEY).ended();
    assert_eq!((status, out.as_str()), (124, ""));
    let text =
        "mpjrun: the time of 1 s is over (--timeout): 2 of 2 ranks are running, not all sites have joined\n";
    assert_eq!(err, text);
}

fn killed_server_ends_all_sites_with_one_line_each() {
    let (server, address) = server(2, &[], NO_KEY);
    let mut sites = [0, 1].map(|client| site(client, &address, 2, &[], "joins-and-waits", NO_KEY));
    for site in &mut sites {
        assert_eq!([site.line(), site.line()], ["joined", "joined"]);
    }
    kill_process(Pid::from_child(&server.child), Signal::KILL).expect("it lives");
    for site in sites {
        let (status, out, err) = site.ended();
        assert_eq!((status, out.as_str()), (1, ""));
        let why = "the startup server has closed the connection while the job runs; ending 2 ranks";
        is_one_line(&err, &["mpjrun: ", why]);
    }
}

fn killed_rank_ends_dependent_ranks_of_all_sites() {
    let (server, address) = server(2, &[], NO_KEY);
    let begun = Instant::now();
    let sites = [0, 1].map(|client| site(client, &address, 2, &[], "needs-rank-1", NO_KEY));
    let [first, second] = sites.map(Started::ended);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((first.0, second.0), (137, 3), "{}{}", first.2, second.2);
    is_one_line(&first.2, &["mpjrun: rank 1 (process ", "SIGKILL", "; ending the other rank"]);
    // Both ranks may have ended when one of them is reported.
    is_one_line(&second.2, &["exited with status 3, ", " s after the start, without Comm.finish"]);
    assert!(
        second.2.starts_with("mpjrun: rank 2 ") || second.2.starts_with("mpjrun: rank 3 "),
        "{}",
        second.2
    );
    assert!(second.1.contains("rank 1 has failed: its connection "), "{}", second.1);
    let (status, _, err) = server.ended();
    assert_eq!(status, 1);
    assert!(err.contains("client 0 was lost without FINI"), "{err}");
    // One launcher for all sites does not print the messages of the server.
    let (status, _, err) = job(2, &["--sites", "2"], "needs-rank-1");
    assert_eq!(status, 137, "{err}");
    is_one_line(&err, &["mpjrun: rank 1 (process ", "SIGKILL", "; ending all other ranks"]);
}

/// Proves that the killed rank determines message and status, whatever its site. All other ranks fail because
/// of it, perhaps before its own site has detected the kill.
fn message_and_status_are_those_of_the_first_failed_rank() {
    let own = own();
    for victim in 0..4 {
        let words = ["run", "--sites", "2", "-n", "2", "--timeout", DEADLINE];
        let words = [&words[..], &[own.to_str().expect("UTF-8"), "barriers"]].concat();
        let mut started = Started::new(&words, NO_KEY);
        let said: Vec<String> = (0..4).map(|_| started.line()).collect();
        let begin = format!("{victim} is ");
        let pid = said.iter().find_map(|line| line.strip_prefix(&begin)).expect("all have joined");
        let process = pid.parse().ok().and_then(Pid::from_raw).expect("a process");
        kill_process(process, Signal::KILL).expect("it lives");
        let (status, out, err) = started.ended();
        assert_eq!(status, 137, "rank {victim}: {err}{out}");
        let begin = format!("mpjrun: rank {victim} (process {pid}) was killed by signal 9 (SIGKILL), ");
        is_one_line(&err, &[&begin, "; ending all other ranks"]);
    }
    for (rank, part) in [(1, "rank-1-leaves-barriers"), (2, "rank-2-leaves-barriers")] {
        let (status, out, err) = job(2, &["--sites", "2"], part);
        assert_eq!(status, 5, "{err}{out}");
        let begin = format!("mpjrun: rank {rank} (process ");
        is_one_line(
            &err,
            &[&begin, "exited with status 5, ", ", without Comm.finish; ending all other ranks"],
        );
    }
    // With --keep-going all failures are reported, and the status is the same.
    let (status, out, err) = job(2, &["--sites", "2", "--keep-going"], "rank-2-leaves-barriers");
    assert_eq!(status, 5, "{err}{out}");
    assert_eq!(err.lines().count(), 4, "{err}");
    assert_eq!(err.matches("exited with status 3, ").count(), 3, "{err}");
}

fn second_or_missing_join_of_a_site_is_reported() {
    let (status, out, err) = job(2, &["--sites", "2"], "joins-again");
    let text = "a site joins its job once: Comm.init cannot be called again after Comm.finish here";
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.matches(text).count(), 4, "{out}");
    let (server, address) = server(1, &[], NO_KEY);
    let words = ["run", "-client", "0", &address, "-n", "2", "true"];
    let (status, _, err) = Started::new(&words, NO_KEY).ended();
    let text = "mpjrun: the site has not joined its job: not all of its ranks have called Comm.init\n";
    assert_eq!((status, err.as_str()), (1, text));
    drop(server);
}

fn end_of_a_rank_before_its_join_ends_the_site() {
    let (server, address) = server(2, &[], NO_KEY);
    let absent = site(0, &address, 2, &["--keep-going"], "absent", NO_KEY).ended();
    assert_eq!(absent.0, 1);
    assert!(absent.2.contains("rank 1 has ended without Comm.init"), "{}", absent.2);
    drop(server);
}

fn key_of_the_job_is_hidden_from_ranks() {
    let script = "echo ${IMPI_AUTH_KEY-none} ${IMPI_AUTH_KEY_FILE-none}";
    let words = ["run", "--sites", "2", "-n", "2", "sh", "-c", script];
    let (status, out, err) = Started::new(&words, KEY).ended();
    // A site whose ranks end without Comm.init ends the job, perhaps before the ranks of the other one print.
    let said = lines(&out);
    assert!((1..=4).contains(&said.len()) && said.iter().all(|line| *line == "none none"), "{out}{err}");
    assert_eq!(status, 1, "{err}");
}

fn invalid_options_are_wrong_usage() {
    let of = |words: &[&str]| Started::new(&[&["run"], words, &["-n", "1", "true"]].concat(), NO_KEY).ended();
    for (words, text) in [
        (&["-client", "32", "127.0.0.1:5000"][..], "a client's rank is a number from 0 to 31"),
        (&["-client", "x", "127.0.0.1:5000"], "a client's rank is a number from 0 to 31"),
        (&["-client", "0", "127.0.0.1"], "the startup server is HOST:PORT"),
        (&["-client", "0", ":5000"], "the startup server is HOST:PORT"),
        (&["--dialect", "draft"], "--dialect is for sites of a job"),
        (&["--sites", "33"], "33"),
        (&["--sites", "2", "-client", "0", "127.0.0.1:5000"], "cannot be used with"),
        (&["--address", "0.0.0.0", "--sites", "2"], "not an address that others can connect to"),
        (&["--address", "fe80::1%eth0", "--sites", "2"], "zones, which link-local addresses need"),
        (&["--connect-timeout", "5"], "--peer-timeout are for ranks that connect"),
        (&["--peer-timeout", "5"], "--peer-timeout are for ranks that connect"),
        (&["--peer-timeout", "0.5", "--transport", "tcp"], "not a number of seconds from 1 to 86400"),
        (&["--connect-timeout", "0", "--sites", "2"], "not a number of seconds from 0.001 to 86400"),
        (&["--connect-timeout", "-1", "--transport", "tcp"], "not a number of seconds from 0.001 to 86400"),
        (&["--connect-timeout", "soon", "--transport", "tcp"], "not a number of seconds from 0.001 to 86400"),
        (
            &["--connect-timeout", "86401", "--transport", "tcp"],
            "not a number of seconds from 0.001 to 86400",
        ),
    ] {
        let (status, out, err) = of(words);
        assert_eq!((status, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(text), "{words:?}: {err}");
    }
}

/// Proves that ranks wait for others to connect as long as their user says, and no longer: here for a site
/// that has joined and whose host never connects.
fn connect_timeout_option_limits_the_start() {
    let (server, address) = server(2, &[], NO_KEY);
    let ours = site(0, &address, 1, &["--connect-timeout", "0.3"], "ring", NO_KEY);
    let joined = foreign_site(&address);
    let (status, out, err) = ours.ended();
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("host 1 at 127.0.0.1:9") && err.contains("within 0.3 s"), "{err}");
    drop((joined, server));
}

fn key_file_without_a_key_fails_and_one_open_to_others_warns() {
    let file = std::env::temp_dir().join(format!("mpjdev-site-key-{}", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    let write = |octets: &[u8], mode| {
        std::fs::write(&file, octets).expect("a file");
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
    };
    let of = |path: &str| {
        let words = ["run", "-client", "0", "127.0.0.1:9", "-n", "1", "true"];
        Started::new(&words, ("IMPI_AUTH_KEY_FILE", path)).ended()
    };
    let is_refused = |path: &str, why: &str| {
        let text = format!("mpjrun: IMPI_AUTH_KEY_FILE: {path} {why}\n");
        assert_eq!(of(path), (2, String::new(), text));
    };
    write(b"4711", 0o644);
    let (_, _, err) = of(name);
    let warning = format!(
        "mpjrun: warning: IMPI_AUTH_KEY_FILE: {name} is open to others (mode 0644): chmod 600 {name}\n"
    );
    assert!(err.starts_with(&warning), "{err}");
    write(b"", 0o600);
    is_refused(name, "is empty");
    write(&[b'1'; 5000], 0o600);
    is_refused(name, "has more than 4096 octets, a key is one number");
    is_refused("/tmp", "is no regular file");
    std::fs::remove_file(&file).expect("ours");
    // A pipe without data.
    let status = Command::new("mkfifo").arg(&file).status().expect("coreutils");
    assert!(status.success());
    is_refused(name, "is no regular file");
    std::fs::remove_file(&file).expect("ours");
    let (status, _, err) = of(name);
    assert!(status == 2 && err.contains(&format!("{name}: No such file")), "{err}");
    write(b"4711\n", 0o600);
    let (server, address) = server(1, &[], KEY);
    let own = own();
    let words = ["run", "-client", "0", &address, "-n", "1", own.to_str().expect("UTF-8"), "ring"];
    let (status, out, err) = Started::new(&words, ("IMPI_AUTH_KEY_FILE", name)).ended();
    assert_eq!((status, out.as_str()), (0, "0: done\n"), "{err}");
    assert_eq!(server.ended().0, 0);
    std::fs::remove_file(&file).expect("ours");
}

/// The process that is killed in a job that one launcher has started whole.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Launcher,
    Monitor,
    Server,
    SiteLauncher,
    SiteMonitor,
    /// One of the ranks of a site.
    Rank,
}

fn no_process_is_left_after_a_kill_in_a_job_of_sites() {
    set_child_subreaper(Some(getpid())).expect("allowed");
    let own = own();
    for victim in [
        Victim::Launcher,
        Victim::Monitor,
        Victim::Server,
        Victim::SiteLauncher,
        Victim::SiteMonitor,
        Victim::Rank,
    ] {
        let words = ["run", "--sites", "2", "-n", "2", "--timeout", DEADLINE, "--grace", "1"];
        let words = [&words[..], &[own.to_str().expect("UTF-8"), "joins-and-waits"]].concat();
        let mut started = Started::new(&words, NO_KEY);
        (0..4).for_each(|_| assert_eq!(started.line(), "joined", "{victim:?}"));
        let monitor = children(started.pid())[0];
        // In the order in which they were started.
        let mut below = children(monitor);
        below.sort_unstable();
        let [server, site, _] = below[..] else { panic!("{below:?}") };
        let pid = match victim {
            Victim::Launcher => started.pid(),
            Victim::Monitor => monitor,
            Victim::Server => server,
            Victim::SiteLauncher => site,
            Victim::SiteMonitor => children(site)[0],
            Victim::Rank => children(children(site)[0])[0],
        };
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("it lives");
        let begun = Instant::now();
        let (status, out, err) = started.ended();
        assert!(begun.elapsed() < Duration::from_secs(20), "{victim:?}: {:?}", begun.elapsed());
        let expected = match victim {
            Victim::Launcher => -1,
            Victim::Server => 1,
            Victim::Monitor | Victim::SiteLauncher | Victim::SiteMonitor | Victim::Rank => 137,
        };
        assert_eq!((status, out.as_str()), (expected, ""), "{victim:?}: {err}");
        nothing_runs();
    }
    set_child_subreaper(None).expect("allowed");
}

fn signal_ends_all_sites() {
    let own = own();
    let words = ["run", "--sites", "2", "-n", "2", "--timeout", DEADLINE];
    let words = [&words[..], &[own.to_str().expect("UTF-8"), "joins-and-waits"]].concat();
    let mut started = Started::new(&words, NO_KEY);
    (0..4).for_each(|_| assert_eq!(started.line(), "joined"));
    kill_process(Pid::from_child(&started.child), Signal::TERM).expect("it lives");
    let begun = Instant::now();
    let (status, out, err) = started.ended();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((status, out.as_str(), err.as_str()), (143, "", ""));
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    (
        "site_joins_again_when_the_server_closes_before_it_answers",
        site_joins_again_when_the_server_closes_before_it_answers,
    ),
    ("no_process_is_left_after_a_kill_in_a_job_of_sites", no_process_is_left_after_a_kill_in_a_job_of_sites),
    ("signal_ends_all_sites", signal_ends_all_sites),
    ("sites_are_one_world_in_the_order_of_their_clients", sites_are_one_world_in_the_order_of_their_clients),
    ("sites_option_starts_server_and_all_sites", sites_option_starts_server_and_all_sites),
    ("ranks_of_a_site_connect_to_other_sites_only", ranks_of_a_site_connect_to_other_sites_only),
    ("computing_rank_does_not_delay_other_sites", computing_rank_does_not_delay_other_sites),
    ("kill_is_reported_to_peers_at_all_sites", kill_is_reported_to_peers_at_all_sites),
    ("stopped_rank_counts_as_alive_at_all_sites", stopped_rank_counts_as_alive_at_all_sites),
    (
        "ranks_of_all_sites_listen_at_the_addresses_in_turn",
        ranks_of_all_sites_listen_at_the_addresses_in_turn,
    ),
    (
        "wrong_key_and_taken_rank_are_refused_and_other_sites_continue",
        wrong_key_and_taken_rank_are_refused_and_other_sites_continue,
    ),
    ("late_server_is_joined_and_a_missing_one_is_named", late_server_is_joined_and_a_missing_one_is_named),
    ("job_ends_at_its_timeout_when_a_site_is_missing", job_ends_at_its_timeout_when_a_site_is_missing),
    ("killed_server_ends_all_sites_with_one_line_each", killed_server_ends_all_sites_with_one_line_each),
    ("killed_rank_ends_dependent_ranks_of_all_sites", killed_rank_ends_dependent_ranks_of_all_sites),
    (
        "message_and_status_are_those_of_the_first_failed_rank",
        message_and_status_are_those_of_the_first_failed_rank,
    ),
    ("second_or_missing_join_of_a_site_is_reported", second_or_missing_join_of_a_site_is_reported),
    ("end_of_a_rank_before_its_join_ends_the_site", end_of_a_rank_before_its_join_ends_the_site),
    ("key_of_the_job_is_hidden_from_ranks", key_of_the_job_is_hidden_from_ranks),
    ("connect_timeout_option_limits_the_start", connect_timeout_option_limits_the_start),
    (
        "key_file_without_a_key_fails_and_one_open_to_others_warns",
        key_file_without_a_key_fails_and_one_open_to_others_warns,
    ),
    ("invalid_options_are_wrong_usage", invalid_options_are_wrong_usage),
];
