//! Settings and helpers of the tests.

use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{
    Auth, Client, Event, Fault, HostSettings, Key, Limits, Output, Server, ServerEvent, ServerSettings,
    Settings,
};
use mpjdev_proto::impi::{Dialect, Proc};

/// The key of all jobs with a key.
pub(crate) const KEY: Key = Key(0x0123_4567_89ab_cdef);
pub(crate) const NO_KEY: Auth = Auth { none: true, key: None };
pub(crate) const WITH_KEY: Auth = Auth { none: false, key: Some(KEY) };
pub(crate) const BOTH: Auth = Auth { none: true, key: Some(KEY) };

pub(crate) const LIMITS: Limits =
    Limits { join_ms: 10_000, form_ms: None, exchange_ms: 60_000, grace_ms: 5_000, unjoined_max: 8 };

/// 127.0.0.N with zeros before it, as LAM writes it.
pub(crate) fn lam(n: u8) -> [u8; 16] {
    let mut address = [0; 16];
    address[12..].copy_from_slice(&[127, 0, 0, n]);
    address
}

/// 127.0.0.N as an IPv4-mapped address.
pub(crate) fn mapped(n: u8) -> [u8; 16] {
    let mut address = lam(n);
    address[10..12].fill(0xff);
    address
}

pub(crate) fn host(address: [u8; 16], port: u16, pids: &[i64], ackmark: u32, hiwater: u32) -> HostSettings {
    let procs = pids.iter().map(|pid| Proc { host_id: address, pid: *pid }).collect();
    HostSettings { address, port, procs, ackmark, hiwater }
}

/// The settings of LAM, with one host of one process.
pub(crate) fn settings(rank: u32) -> Settings {
    Settings {
        rank,
        dialect: Dialect::Final,
        auth: NO_KEY,
        versions: vec![Version::V0_0],
        hosts: vec![host(lam(2 + rank as u8), 4000 + rank as u16, &[100 + i64::from(rank)], 10, 20)],
        datalen: 65536,
        tag_ub: i32::MAX as u32,
        coll_xsize: None,
        coll_maxlinear: None,
        pipelines: false,
    }
}

pub(crate) fn server(clients: u32, auth: Auth, dialect: Dialect) -> Server {
    let settings = ServerSettings { clients, dialect, auth, limits: LIMITS };
    Server::new(settings, 0).expect("sound settings")
}

/// A server and its outputs.
pub(crate) struct Watched {
    pub(crate) server: Server,
    /// Octets by connection.
    pub(crate) sent: Vec<(u64, Vec<u8>)>,
    pub(crate) closed: Vec<(u64, Option<Fault>)>,
    pub(crate) events: Vec<ServerEvent>,
}

impl Watched {
    pub(crate) fn new(server: Server) -> Watched {
        Watched { server, sent: Vec::new(), closed: Vec::new(), events: Vec::new() }
    }

    /// Takes its outputs; nothing may follow the end.
    pub(crate) fn drain(&mut self) {
        while let Some(output) = self.server.poll_output() {
            assert!(self.outcome().is_none(), "after the end: {output:?}");
            match output {
                Output::Send { conn, octets } => self.sent.push((conn, octets.to_vec())),
                Output::Close { conn, fault } => self.closed.push((conn, fault)),
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    pub(crate) fn connect(&mut self, now_ms: u64, conn: u64) {
        self.connect_from(now_ms, conn, 0);
    }

    pub(crate) fn connect_from(&mut self, now_ms: u64, conn: u64, source: u128) {
        self.server.handle_connected(now_ms, conn, source);
        self.drain();
    }

    pub(crate) fn receive(&mut self, conn: u64, octets: &[u8]) {
        self.server.handle_octets(0, conn, octets);
        self.drain();
    }

    /// The octets sent to one connection since the last call.
    pub(crate) fn sent_to(&mut self, conn: u64) -> Vec<u8> {
        let sent: Vec<_> = self.sent.extract_if(.., |(to, _)| *to == conn).collect();
        sent.into_iter().flat_map(|(_, octets)| octets).collect()
    }

    /// Why a connection was closed; `None` if it is open or closed in order.
    pub(crate) fn fault(&self, conn: u64) -> Option<&Fault> {
        self.closed.iter().find(|(closed, _)| *closed == conn).and_then(|(_, fault)| fault.as_ref())
    }

    pub(crate) fn outcome(&self) -> Option<&ServerEvent> {
        self.events.iter().find(|event| matches!(event, ServerEvent::Over(_)))
    }

    /// Runs a client as far as possible; returns its events.
    pub(crate) fn serve(&mut self, conn: u64, client: &mut Client) -> Vec<Event> {
        loop {
            let mut is_still = true;
            while let Some(octets) = client.poll_output() {
                self.receive(conn, &octets);
                is_still = false;
            }
            let sent = self.sent_to(conn);
            client.handle_octets(&sent).expect("a sound server");
            if is_still && sent.is_empty() {
                return std::iter::from_fn(|| client.poll_event()).collect();
            }
        }
    }
}

/// A message of the startup protocol, built without the code under test.
pub(crate) fn message(command: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    [&command[..], &(payload.len() as u32).to_be_bytes(), payload].concat()
}

/// The octets that a client sends to join.
pub(crate) fn joining(rank: i32) -> Vec<u8> {
    [message(b"AUTH", &1u32.to_be_bytes()), message(b"IMPI", &rank.to_be_bytes())].concat()
}

/// A client's COLL.
pub(crate) fn coll(label: i32, data: &[u8]) -> Vec<u8> {
    message(b"COLL", &[&label.to_be_bytes(), data].concat())
}
