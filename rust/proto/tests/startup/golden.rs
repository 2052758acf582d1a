//! Captures of tests/golden, reproduced by the machines octet by octet.

use mpjdev_proto::impi::Proc;
use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{
    Auth, Client, Event, JobClient, JobHost, JobProc, ServerEvent, Settings, Tables,
};

use crate::job::{BOTH, NO_KEY, WITH_KEY, Watched, host, lam, mapped, server, settings};
use crate::vectors::{self, Step, Vector};

/// The settings of the two clients of a capture, and the methods of the server.
fn participants(vector: &Vector) -> ([Settings; 2], Auth) {
    let hello = |rank: u32, port, pid| Settings {
        hosts: vec![host(lam(2 + rank as u8), port, &[pid], 10, 20)],
        ..settings(rank)
    };
    let mut hosts = vec![host(mapped(2), 5001, &[101], 8, 16), host(mapped(3), 5002, &[-1, 1 << 40], 9, 9)];
    let versions = |numbers: &[(u32, u32)]| {
        numbers.iter().map(|(major, minor)| Version { major: *major, minor: *minor }).collect()
    };
    let several = |hosts| Settings {
        dialect: vector.dialect,
        auth: WITH_KEY,
        versions: versions(&[(0, 0), (0, 1), (1, 0)]),
        hosts,
        coll_xsize: Some(4096),
        ..settings(0)
    };
    let other = Settings {
        dialect: vector.dialect,
        auth: BOTH,
        versions: versions(&[(0, 0), (0, 1), (0, 2)]),
        hosts: vec![host(mapped(4), 65535, &[101, 102], 10, 20)],
        datalen: 1000,
        tag_ub: 32767,
        coll_xsize: Some(4096),
        coll_maxlinear: Some(4),
        ..settings(1)
    };
    match vector.name {
        "hello" => ([hello(0, 0x8bf7, 0xdb4), hello(1, 0xb211, 0xdb9)], NO_KEY),
        "flow" => {
            let probe = Settings {
                auth: BOTH,
                hosts: vec![host(mapped(3), 0x8663, &[4242], 3, 5)],
                datalen: 1000,
                tag_ub: 32767,
                ..settings(1)
            };
            ([hello(0, 0xab75, 0x5250), probe], NO_KEY)
        }
        "key" => ([several(hosts), other], BOTH),
        _ => {
            hosts[1] = host(mapped(3), 5002, &[0xffff_ffff, 7], 9, 9);
            ([several(hosts), other], WITH_KEY)
        }
    }
}

/// Replays a client's capture, with replies in pieces of this length.
fn converse(vector: &Vector, client: usize, piece_len: usize) -> Vec<Event> {
    let name = format!("{} client {client}, pieces of {piece_len}", vector.name);
    let ([first, second], _) = participants(vector);
    let mut machine = Client::new(if client == 0 { first } else { second }).expect("sound settings");
    let mut events = Vec::new();
    for step in &vector.steps {
        match step {
            Step::Send(from, octets) if *from == client => {
                if octets.starts_with(b"FINI") {
                    machine.finish().expect("it runs");
                }
                assert_eq!(machine.poll_output().as_deref(), Some(&octets[..]), "{name}");
            }
            Step::Reply(to, octets) | Step::Relayed(to, octets) if *to == client => {
                assert_eq!(machine.poll_output(), None, "{name}");
                for piece in octets.chunks(piece_len) {
                    machine.handle_octets(piece).unwrap_or_else(|error| panic!("{name}: {error}"));
                }
                events.extend(std::iter::from_fn(|| machine.poll_event()));
            }
            Step::Close(from) if *from == client => machine.handle_eof().expect("it has finished"),
            _ => {}
        }
    }
    assert_eq!(machine.poll_output(), None, "{name}");
    events
}

/// Proves that the client sends the octets of real clients in the same order, for replies in pieces of any
/// length.
#[test]
fn clients_send_the_octets_of_the_captures() {
    for vector in vectors::all() {
        for client in 0..2 {
            let whole = converse(&vector, client, usize::MAX);
            assert!(matches!(whole[..], [Event::Joined { size: 2 }, Event::Done(_)]), "{whole:?}");
            for piece_len in [1, 3, 7, 8] {
                assert_eq!(converse(&vector, client, piece_len), whole);
            }
        }
    }
}

/// The reply that a relay has replaced, as the server sent it: H_PORT with the ports that the clients sent.
fn unreplaced(vector: &Vector) -> Vec<u8> {
    let port = |client| -> Vec<u8> {
        let said =
            vector.said_by(client).into_iter().find(|octets| octets[8..].starts_with(&[0, 0, 0x21, 0]));
        said.expect("H_PORT is sent")[12..].to_vec()
    };
    let head = [&b"COLL"[..], &16u32.to_be_bytes(), &0x2100u32.to_be_bytes(), &3u32.to_be_bytes()].concat();
    [head, port(0), port(1)].concat()
}

fn serve(vector: &Vector, piece_len: usize) {
    let name = format!("{}, pieces of {piece_len}", vector.name);
    let mut watched = Watched::new(server(2, participants(vector).1, vector.dialect));
    (0..2).for_each(|conn| watched.connect(0, conn));
    for step in &vector.steps {
        match step {
            Step::Send(client, octets) => {
                assert!(
                    watched.sent.is_empty(),
                    "{name}: too much before {octets:02x?}: {:02x?}",
                    watched.sent
                );
                octets.chunks(piece_len).for_each(|piece| watched.receive(*client as u64, piece));
            }
            Step::Reply(client, octets) => {
                let said = (!watched.sent.is_empty()).then(|| watched.sent.remove(0));
                assert_eq!(said, Some((*client as u64, octets.clone())), "{name}");
            }
            Step::Relayed(client, _) => {
                assert_eq!(watched.sent.remove(0), (*client as u64, unreplaced(vector)), "{name}");
            }
            Step::Close(client) => {
                assert!(watched.closed.contains(&(*client as u64, None)), "{name}");
                watched.server.handle_eof(0, *client as u64);
            }
        }
    }
    let joined = |rank: u32| ServerEvent::Joined { conn: rank.into(), rank };
    let finished = |rank| ServerEvent::Finished { rank };
    let wanted = [
        joined(0),
        joined(1),
        ServerEvent::Formed,
        ServerEvent::Running,
        finished(0),
        finished(1),
        ServerEvent::Over(Ok(())),
    ];
    assert_eq!(watched.events, wanted, "{name}");
    assert_eq!(watched.server.next_deadline(), None);
}

/// Proves that the server answers real clients as in the captures, in the same order, for pieces of any
/// length.
#[test]
fn server_sends_the_octets_of_the_captures() {
    for vector in vectors::all() {
        [usize::MAX, 1, 3, 7, 8].into_iter().for_each(|piece_len| serve(&vector, piece_len));
    }
}

fn tables(name: &'static str) -> Tables {
    let [mut of_0, mut of_1] = [0, 1].map(|client| converse(&vectors::read(name), client, usize::MAX));
    match (of_0.pop(), of_1.pop()) {
        (Some(Event::Done(of_0)), Some(Event::Done(of_1))) => {
            assert_eq!(of_0, of_1, "the same on all clients");
            *of_0
        }
        other => panic!("{other:?}"),
    }
}

/// Proves the tables of the smallest job, and of one with different numbers per client, against the captures
/// of the jobs.
#[test]
fn captured_jobs_give_the_documented_tables() {
    let client = |at: u32| JobClient { versions: vec![Version::V0_0], hosts: at..at + 1, procs: at..at + 1 };
    let host = |client: u32, address, port, ackmark, hiwater| JobHost {
        client,
        address,
        port,
        procs: client..client + 1,
        ackmark,
        hiwater,
    };
    let proc = |at, host_id, pid| JobProc { proc: Proc { host_id, pid }, host: at, client: at };
    let hello = Tables {
        clients: vec![client(0), client(1)],
        hosts: vec![host(0, lam(2), 0xb089, 10, 20), host(1, lam(3), 0xb203, 10, 20)],
        procs: vec![proc(0, lam(2), 0xdb4), proc(1, lam(3), 0xdb9)],
        maxdatalen: 65536,
        ackmark: 10,
        hiwater: 20,
        tag_ub: 2147483647,
        xsize: 1024,
        maxlinear: 4,
    };
    assert_eq!(tables("hello"), hello);
    let flow = Tables {
        hosts: vec![host(0, lam(2), 0x852b, 10, 20), host(1, mapped(3), 0x91d7, 3, 5)],
        procs: vec![proc(0, lam(2), 0x5250), proc(1, mapped(3), 4242)],
        maxdatalen: 1000,
        ackmark: 3,
        hiwater: 5,
        tag_ub: 32767,
        ..hello
    };
    assert_eq!(tables("flow"), flow);
}

/// Proves that hosts, processes and versions are divided by client, in both dialects.
#[test]
fn hosts_processes_and_versions_are_distinguished() {
    for (name, pids) in [("key", [101, -1, 1 << 40]), ("draft", [101, 0xffff_ffff, 7])] {
        let tables = tables(name);
        let clients: Vec<_> = tables.clients.iter().map(|c| (c.hosts.clone(), c.procs.clone())).collect();
        assert_eq!(clients, [(0..2, 0..3), (2..3, 3..5)]);
        let hosts: Vec<_> =
            tables.hosts.iter().map(|h| (h.client, h.port, h.procs.clone(), h.ackmark)).collect();
        assert_eq!(hosts, [(0, 5001, 0..1, 8), (0, 5002, 1..3, 9), (1, 65535, 3..5, 10)]);
        let procs: Vec<_> = tables.procs.iter().map(|p| (p.proc.host_id, p.host, p.client)).collect();
        let (a, b, c) = ((mapped(2), 0, 0), (mapped(3), 1, 0), (mapped(4), 2, 1));
        assert_eq!(procs, [a, b, b, c, c]);
        let all: Vec<i64> = tables.procs.iter().map(|p| p.proc.pid).collect();
        assert_eq!((&all[..3], &all[3..]), (&pids[..], &[101, 102][..]));
        let minima = (tables.maxdatalen, tables.ackmark, tables.hiwater, tables.tag_ub, tables.xsize);
        assert_eq!((minima, tables.maxlinear), ((1000, 8, 9, 32767, 4096), 4));
        assert_eq!(tables.version(0, 1), Version { major: 0, minor: 1 }, "not 1.0 and not 0.2");
        assert_eq!(tables.version(0, 0), Version { major: 1, minor: 0 });
    }
}
