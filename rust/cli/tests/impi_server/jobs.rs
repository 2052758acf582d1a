//! Tests of jobs that form, run, and finish or fail.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mpjdev_cli::impi::client::{JoinError, Link, join};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::{ClientError, Settings, Stage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

use crate::process::{Process, joining, message, settings, soon};

#[test]
fn two_sites_join_run_and_finish() {
    let server = Process::start(&["-server", "2"]);
    assert!(server.address.ip().is_loopback() && server.address.port() != 0);
    let mut joined = server.join_all([settings(1), Settings { pipelines: true, datalen: 99, ..settings(0) }]);
    assert_eq!(joined[0].tables, joined[1].tables);
    let tables = &joined[0].tables;
    assert_eq!((tables.maxdatalen, tables.procs.len(), tables.hosts[1].port), (99, 2, 5001));
    for site in &mut joined {
        site.connection.watch().expect("the server lives");
    }
    joined.into_iter().for_each(|site| site.connection.finish(soon()).expect("it takes it"));
    assert_eq!(server.ended(), (0, String::new()));
}

#[test]
fn thirty_two_sites_join() {
    for dialect in ["final", "draft"] {
        let server = Process::start(&["--server", "32", "--dialect", dialect]);
        let dialect = if dialect == "final" { Dialect::Final } else { Dialect::Draft };
        let joined = server.join_all((0..32).map(|rank| Settings { dialect, ..settings(rank) }));
        assert!(joined.iter().all(|site| site.tables == joined[0].tables));
        assert_eq!(joined[0].tables.procs[31].proc.pid, 131);
        joined.into_iter().for_each(|site| site.connection.finish(soon()).expect("it takes it"));
        assert_eq!(server.ended(), (0, String::new()));
    }
}

#[test]
fn server_listens_at_the_given_port() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let output = crate::process::command(&["-server", "1", "-port", &port.to_string()], &[]).output();
    let output = output.expect("it runs");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(text.starts_with(&format!("mpjdev impi-server: cannot listen on 127.0.0.1:{port}: ")), "{text}");
    drop(taken);
    let server = Process::start(&["-server", "1", "-port", &port.to_string()]);
    assert_eq!(server.address.port(), port);
}

/// Proves that the loss of a site before the job runs ends the job, and that all other sites are notified.
#[test]
fn loss_of_a_site_before_the_job_runs_ends_it() {
    let server = Process::start(&["-server", "3"]);
    let link = Link::connect(&server.address.to_string(), soon()).expect("it listens");
    let waiting = link.begin(settings(0)).expect("sound");
    let mut lost = server.connect();
    lost.send(&joining(2));
    lost.receive(8);
    lost.end();
    let error = waiting.join(soon()).expect_err("no job");
    assert!(
        matches!(error, JoinError::Protocol(ClientError::Closed { stage: Stage::Join | Stage::Auth })),
        "{error}"
    );
    let (status, text) = server.ended();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(status, 1, "{text}");
    assert!(lines[0].starts_with("mpjdev impi-server: lost client 2 at 127.0.0.1:"), "{text}");
    let last = "mpjdev impi-server: client 2 failed before the job ran: the connection ended too early";
    assert_eq!(lines[1..], [last]);
}

/// Proves that the other sites of a running job can finish after a loss, and that the server names the lost
/// one.
#[test]
fn other_sites_can_finish_when_a_site_is_lost() {
    let server = Process::start(&["-server", "3"]);
    let mut joined = server.join_all((0..3).map(settings));
    let address = joined[1].connection.as_fd();
    let address = rustix::net::getsockname(address).expect("connected");
    let address = std::net::SocketAddr::try_from(address).expect("TCP");
    drop(joined.remove(1));
    for mut site in joined {
        site.connection.watch().expect("it is still served");
        site.connection.finish(soon()).expect("it takes it");
    }
    let reason = "the connection ended too early";
    let text = format!(
        "mpjdev impi-server: lost client 1 at {address}: {reason}\nmpjdev impi-server: client 1 was lost without FINI: {reason}\n"
    );
    assert_eq!(server.ended(), (1, text));
}

#[test]
fn server_ends_after_the_grace_when_a_site_is_lost() {
    let server = Process::start(&["-server", "2", "--grace", "0.2"]);
    let mut joined = server.join_all((0..2).map(settings));
    let begun = Instant::now();
    drop(joined.remove(1));
    let mut left = joined.remove(0).connection;
    poll(&mut [PollFd::new(&left, PollFlags::IN)], None).expect("the server answers");
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    let error = left.watch().expect_err("the server has ended");
    assert!(matches!(error, JoinError::Protocol(ClientError::Closed { stage: Stage::Running })), "{error}");
    let (status, text) = server.ended();
    assert_eq!(status, 1);
    assert!(text.ends_with("the connection ended too early; client 0 did not finish after that\n"), "{text}");
}

#[test]
fn signals_end_the_server_and_its_sites_notice() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let server = Process::start(&["-server", "1"]);
        let mut site = server.join_all([settings(0)]).remove(0);
        server.signal(signal);
        let text = format!("mpjdev impi-server: ended by signal {}\n", status - 128);
        assert_eq!(server.ended(), (status, text));
        poll(&mut [PollFd::new(&site.connection, PollFlags::IN)], None).expect("the server answers");
        assert!(site.connection.watch().is_err());
        assert!(site.connection.finish(soon()).is_err(), "the server has ended");
    }
}

/// The standard error of a server that times out. The timeout is raised until the text contains these words.
fn words_in_time(expected: &str, clients: impl Fn(&Process) -> JoinError, server: &str) -> JoinError {
    let mut said = String::new();
    for seconds in ["2", "10", "40"] {
        let server = Process::start(&["-server", server, "--timeout", seconds]);
        let error = clients(&server);
        let (status, text) = server.ended();
        assert_eq!(status, 124, "{text}");
        if text == expected {
            return error;
        }
        said = text;
    }
    panic!("{said}")
}

#[test]
fn job_that_does_not_form_times_out() {
    let text = "mpjdev impi-server: the time to form the job is over, without clients 0, 2\n";
    let missing = |server: &Process| server.join(settings(1)).join().expect("no panic").expect_err("no job");
    let error = words_in_time(text, missing, "3");
    assert!(error.to_string().contains("the job was aborted"), "{error}");
    let text = "mpjdev impi-server: the time to start the job is over, all wait for client 0\n";
    let error = words_in_time(text, joined_and_silent, "2");
    assert!(matches!(error, JoinError::Protocol(ClientError::Closed { stage: Stage::Labels })), "{error}");
}

/// The octets that client 1 receives when client 0 has joined and sends nothing more.
fn joined_and_silent(server: &Process) -> JoinError {
    let mut silent = server.connect();
    silent.send(&joining(0));
    server.join(settings(1)).join().expect("no panic").expect_err("no job")
}

/// Proves that unread data are kept once for all clients, and that slow clients receive them whole.
#[test]
fn slow_readers_receive_all_tables_in_bounded_memory() {
    const CLIENTS: u32 = 8;
    const DATA: usize = 3 << 20;
    let server = Process::start(&["-server", "8"]);
    let mut sites: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    for (rank, site) in (0..).zip(&mut sites) {
        site.send(&joining(rank));
        site.receive(8);
    }
    for (rank, site) in (0..).zip(&mut sites) {
        site.receive(12);
        let data = vec![rank; DATA];
        site.send(&message(b"COLL", &[&[0, 0, 0x70, 0][..], &data].concat()));
        site.send(&message(b"DONE", &[]));
    }
    let all: Vec<u8> = (0..CLIENTS as u8).flat_map(|rank| vec![rank; DATA]).collect();
    let wanted =
        [message(b"COLL", &[&[0, 0, 0x70, 0, 0, 0, 0, 0xff][..], &all].concat()), message(b"DONE", &[])];
    let wanted = wanted.concat();
    for site in sites.iter_mut().rev() {
        assert!(site.receive(wanted.len()) == wanted, "not what was sent");
    }
    // Eight copies would be 192 MiB.
    assert!(server.memory() < 160 << 20, "{} octets", server.memory());
    sites.iter_mut().for_each(|site| site.send(&message(b"FINI", &[])));
    assert_eq!(server.ended(), (0, String::new()));
}

#[test]
fn join_fails_at_its_deadline() {
    let server = Process::start(&["-server", "2"]);
    let deadline = || Some(Instant::now() + Duration::from_millis(200));
    let address = server.address.to_string();
    let error = join(&address, settings(0), deadline()).expect_err("the other is missing");
    assert!(matches!(error, JoinError::Deadline { has_joined: false }), "{error}");
    let error = join(&address, settings(0), Some(Instant::now())).expect_err("no time");
    assert!(matches!(error, JoinError::Deadline { has_joined: false }), "{error}");
}

#[test]
fn missing_server_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let error = join(&free.to_string(), settings(0), soon()).expect_err("no listener");
    assert!(
        error.to_string().starts_with(&format!("cannot connect to the startup server at {free}: ")),
        "{error}"
    );
    let error = join("127.0.0.1", settings(0), soon()).expect_err("no port");
    assert!(error.to_string().starts_with("startup server 127.0.0.1: "), "{error}");
}

/// Proves that a caller with a loop of its own can join, and that it learns its local address.
#[test]
fn site_joins_without_blocking() {
    let server = Process::start(&["-server", "2"]);
    let other = server.join(settings(1));
    let link = Link::connect(&server.address.to_string(), soon()).expect("it listens");
    assert_eq!(link.local_address().expect("connected"), server.address.ip());
    let mut joining = link.begin(settings(0)).expect("sound");
    let tables = loop {
        if let Some(tables) = joining.advance().expect("sound") {
            break tables;
        }
        poll(&mut [PollFd::new(&joining, joining.interest())], None).expect("the server answers");
    };
    assert!(joining.has_joined());
    let other = other.join().expect("no panic").expect("it joins");
    assert_eq!(tables, other.tables);
    joining.into_connection().finish(soon()).expect("it takes it");
    other.connection.finish(soon()).expect("it takes it");
    assert_eq!(server.ended(), (0, String::new()));
}
