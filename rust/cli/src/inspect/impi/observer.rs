//! The replies of a startup server, heard by the machine of a client: it knows what is wrong with them, and makes the
//! tables of the job of them.

use mpjdev_proto::impi::startup::layout::{Cmd, Command, Version};
use mpjdev_proto::impi::startup::{Auth, Client, Event, HostSettings, Key, Settings, Tables};
use mpjdev_proto::impi::{Dialect, Proc};

/// A client that says nothing.
#[derive(Debug)]
pub(super) struct Observer {
    client: Client,
    /// The label of the last reply.
    label: i32,
    is_done: bool,
}

impl Observer {
    /// One that has joined, as client `rank` of `size`; none if no client can.
    pub(super) fn new(dialect: Dialect, rank: u32, size: u32) -> Option<Observer> {
        let host_id = [0; 16];
        let host = HostSettings {
            address: host_id,
            port: 0,
            procs: vec![Proc { host_id, pid: 0 }],
            ackmark: 1,
            hiwater: 1,
        };
        let settings = Settings {
            rank,
            dialect,
            auth: Auth { none: true, key: Some(Key(0)) },
            versions: vec![Version::V0_0],
            hosts: vec![host],
            datalen: 1,
            tag_ub: 32767,
            coll_xsize: None,
            coll_maxlinear: None,
            pipelines: false,
        };
        let mut observer = Observer { client: Client::new(settings).ok()?, label: 0, is_done: false };
        if dialect == Dialect::Final {
            observer.hear_octets(&[0; 8]).ok()?;
        }
        observer.hear(Command::Impi, &size.to_be_bytes()).ok()?;
        Some(observer)
    }

    /// Whether the server has said this before, or something that comes later.
    pub(super) fn has_heard(&self, command: Command, payload: &[u8]) -> bool {
        match command {
            Command::Coll => label(payload) <= self.label || self.is_done,
            _ => self.is_done,
        }
    }

    /// What the server says.
    pub(super) fn hear(&mut self, command: Command, payload: &[u8]) -> Result<(), String> {
        match command {
            Command::Coll => self.label = label(payload),
            Command::Done => self.is_done = true,
            _ => {}
        }
        self.hear_octets(&Cmd::emit(command, &[payload]))
    }

    fn hear_octets(&mut self, octets: &[u8]) -> Result<(), String> {
        let result = self.client.handle_octets(octets);
        // What it would say to that is nobody's business.
        while self.client.poll_output().is_some() {}
        result.map_err(|error| error.to_string())
    }

    /// The tables, once all of them are there.
    pub(super) fn tables(&mut self) -> Option<Box<Tables>> {
        std::iter::from_fn(|| self.client.poll_event()).find_map(|event| match event {
            Event::Done(tables) => Some(tables),
            Event::Joined { .. } => None,
        })
    }
}

fn label(payload: &[u8]) -> i32 {
    payload.first_chunk().map_or(0, |label| i32::from_be_bytes(*label))
}
