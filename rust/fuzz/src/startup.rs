//! Targets of IMPI's startup protocol: client and server.

use std::collections::BTreeSet;

use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{
    Auth, Client, ClientError, Event, HostSettings, Key, Limits, Output, Server, ServerEvent, ServerSettings,
    Settings, Tables,
};
use mpjdev_proto::impi::{Dialect, Proc};

/// The key of the conversations in tests/golden.
const KEY: Key = Key(0x0123_4567_89ab_cdef);

/// Divides the input into the first two of four octets of settings, and the rest. `auth` and `dialect` have
/// the bits.
fn split(input: &[u8]) -> Option<(u8, u8, &[u8])> {
    let ([a, b, _, _], rest) = input.split_first_chunk()?;
    Some((*a, *b, rest))
}

fn auth(octet: u8) -> Auth {
    Auth { none: octet & 1 != 0, key: (octet & 2 != 0 || octet & 1 == 0).then_some(KEY) }
}

fn dialect(octet: u8) -> Dialect {
    if octet & 4 == 0 { Dialect::Final } else { Dialect::Draft }
}

/// A client receives the input after four octets of settings.
///
/// Invariants: the output does not depend on the division of the input. An error is permanent and ends all
/// output. Tables are in order, and follow the event that all clients have joined.
pub fn startup_client(input: &[u8]) {
    let Some((octet, rank, octets)) = split(input) else { return };
    let host = HostSettings {
        address: [7; 16],
        port: 1,
        procs: vec![Proc { host_id: [7; 16], pid: 1 }],
        ackmark: 1,
        hiwater: 2,
    };
    let settings = Settings {
        rank: u32::from(rank % 32),
        dialect: dialect(octet),
        auth: auth(octet),
        versions: vec![Version::V0_0],
        hosts: vec![host],
        datalen: 100,
        tag_ub: 40000,
        coll_xsize: None,
        coll_maxlinear: None,
        pipelines: octet & 8 != 0,
    };
    let whole = feed(&settings, octets, usize::MAX);
    assert_eq!(feed(&settings, octets, 1 + usize::from(octet >> 4)), whole);
    if let [Event::Joined { size }, rest @ ..] = &whole.1[..] {
        assert!(*size > settings.rank && *size <= 32);
        match rest {
            [] => {}
            [Event::Done(tables)] => are_in_order(tables, *size),
            other => panic!("{other:?}"),
        }
    } else {
        assert!(whole.1.is_empty(), "{:?}", whole.1);
    }
}

type Outcome = (Result<(), ClientError>, Vec<Event>, Vec<u8>);

fn feed(settings: &Settings, octets: &[u8], piece_len: usize) -> Outcome {
    let mut client = Client::new(settings.clone()).expect("sound");
    let mut sent = Vec::new();
    let mut result = Ok(());
    for piece in octets.chunks(piece_len) {
        result = client.handle_octets(piece);
        if result.is_err() {
            break;
        }
        sent.extend(std::iter::from_fn(|| client.poll_output()).flatten());
    }
    if result.is_err() {
        // The events before the error depend on the division; none follow it.
        sent.clear();
        assert_eq!(client.poll_output(), None);
        assert_eq!((client.handle_octets(octets), client.handle_eof()), (result.clone(), result.clone()));
    }
    let events = std::iter::from_fn(|| client.poll_event()).collect();
    (result, events, sent)
}

fn are_in_order(tables: &Tables, size: u32) {
    assert_eq!(tables.clients.len(), size as usize);
    let (mut host, mut proc) = (0, 0);
    for client in &tables.clients {
        assert_eq!((client.hosts.start, client.procs.start), (host, proc));
        assert_eq!(client.versions.first(), Some(&Version::V0_0));
        (host, proc) = (client.hosts.end, client.procs.end);
    }
    assert_eq!((host as usize, proc as usize), (tables.hosts.len(), tables.procs.len()));
    let mut proc = 0;
    for (number, host) in (0..).zip(&tables.hosts) {
        assert!(tables.clients[host.client as usize].hosts.contains(&number));
        assert!(1 <= host.ackmark && host.ackmark <= host.hiwater);
        assert!(tables.ackmark <= host.ackmark && tables.hiwater <= host.hiwater);
        assert_eq!(host.procs.start, proc);
        proc = host.procs.end;
    }
    assert_eq!(proc as usize, tables.procs.len());
    for (rank, proc) in (0..).zip(&tables.procs) {
        assert!(tables.hosts[proc.host as usize].procs.contains(&rank));
        assert_eq!(tables.hosts[proc.host as usize].client, proc.client);
    }
    let all: BTreeSet<Proc> = tables.procs.iter().map(|proc| proc.proc).collect();
    assert_eq!(all.len(), tables.procs.len());
    assert!(tables.ackmark >= 1 && tables.ackmark <= tables.hiwater);
    assert!(tables.maxdatalen >= 1 && (32767..=0x7fff_ffff).contains(&tables.tag_ub));
}

/// A server with up to eight connections handles the events of the input, which follow four octets of
/// settings: connection, kind, two octets of length, octets.
///
/// Invariants: each connection is closed once and receives nothing afterwards. The end closes all connections
/// and is the last event. Deadlines are in the future.
pub fn startup_server(input: &[u8]) {
    let Some((octet, clients, mut rest)) = split(input) else { return };
    let limits =
        Limits { join_ms: 100, form_ms: Some(1000), exchange_ms: 500, grace_ms: 50, unjoined_max: 3 };
    let clients = 1 + u32::from(clients % 4);
    let settings = ServerSettings { clients, dialect: dialect(octet), auth: auth(octet), limits };
    let mut server = Server::new(settings, 0).expect("sound");
    let mut open = BTreeSet::new();
    let mut ever = BTreeSet::new();
    let mut is_over = false;
    let mut now_ms = 0;
    while let Some(([conn, kind, high, low], behind)) = rest.split_first_chunk() {
        let conn = u64::from(conn % 8);
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        match kind % 4 {
            0 if !is_over && ever.insert(conn) => {
                open.insert(conn);
                server.handle_connected(now_ms, conn, u128::from(high % 2));
            }
            0 | 1 => server.handle_octets(now_ms, conn, &behind[..len]),
            2 => server.handle_eof(now_ms, conn),
            _ => {
                now_ms += len as u64;
                server.handle_timeout(now_ms);
            }
        }
        rest = &behind[len..];
        while let Some(output) = server.poll_output() {
            assert!(!is_over, "after the end: {output:?}");
            match output {
                Output::Send { conn, .. } => assert!(open.contains(&conn)),
                Output::Close { conn, .. } => assert!(open.remove(&conn), "closed twice"),
                Output::Event(ServerEvent::Over(_)) => is_over = true,
                Output::Event(_) => {}
            }
        }
        assert!(!is_over || open.is_empty(), "left open");
        if kind % 4 == 3 {
            assert!(server.next_deadline().is_none_or(|at_ms| at_ms > now_ms));
        }
    }
}
