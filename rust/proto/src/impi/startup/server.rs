//! The state machine of the startup server (IMPI 5.2 to 5.8).

mod exchange;
mod fault;

pub use fault::{Failure, Fault, Ranks};

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use byteorder::{BigEndian, ByteOrder};
use bytes::Bytes;

use super::layout::{
    AUTH_KEY, AUTH_KEY_LEN, CLIENT_AUTH_LEN, CLIENTS_MAX, CMD_LEN, COLL_LEN, Cmd, Command, IMPI_LEN, Label,
};
use super::reader::Reader;
use super::{Auth, Key, SettingsError};
use crate::impi::Dialect;
use exchange::{Emission, Exchange};

/// The settings of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// Clients of the job, 1 to 32.
    pub clients: u32,
    /// The dialect of all clients.
    pub dialect: Dialect,
    /// The methods of authentication; not empty.
    pub auth: Auth,
    /// Time and memory limits.
    pub limits: Limits,
}

/// Times in milliseconds, and a number.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a connection to send its rank.
    pub join_ms: u64,
    /// From the start until the job runs; `None` is no limit.
    pub form_ms: Option<u64>,
    /// From the join of the last client until the job runs.
    pub exchange_ms: u64,
    /// For the other clients to finish after one was lost.
    pub grace_ms: u64,
    /// Most connections that have not sent their rank; one more evicts one of them.
    pub unjoined_max: usize,
}

/// The startup server of one job. Its driver numbers the connections, each number once.
///
/// The calling order: [`poll_output`](Self::poll_output) until it returns `None`, carrying out each output;
/// then wait for a connection, octets, the end of a stream or [`next_deadline`](Self::next_deadline), pass it
/// to the `handle_*` of its name, and begin again. [`ServerEvent::Over`] is the last output; all connections
/// are closed then. Times are milliseconds of any monotonic clock. Inputs of closed connections are ignored.
///
/// ```text
///   connection:  AUTH ---> (key) ---> IMPI ---> client of that rank ---> COLL ... DONE ---> FINI
///   job:         Gathering --------------------> Exchanging -------------> Running -------> over
///                           all have joined        DONE to all    FINI or loss of each
/// ```
///
/// A fault before a connection has sent its rank closes that connection. A fault of a client before the job
/// runs ends the job for all. A client that is lost later is reported, and the others may finish (IMPI 5.7).
///
/// Bounds: the connections that have not joined are counted; all COLL data have at most
/// [`COLL_TOTAL_MAX`](super::layout::COLL_TOTAL_MAX) octets; all clients share the octets of an output.
#[derive(Debug)]
pub struct Server {
    settings: ServerSettings,
    phase: Phase,
    connections: BTreeMap<u64, Connection>,
    /// The clients that have joined, by rank.
    members: Vec<Option<Member>>,
    exchange: Exchange,
    outputs: VecDeque<Output>,
    /// When the job must run; later, when the others must have finished.
    deadline_ms: Option<u64>,
    lost: Vec<(u32, Fault)>,
}

/// An action for the driver, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Output {
    /// Send these octets.
    Send {
        /// The connection.
        conn: u64,
        /// The octets, shared by all connections that get the same.
        octets: Bytes,
    },
    /// Close the connection at once; unsent octets are dropped.
    Close {
        /// The connection.
        conn: u64,
        /// Its fault; `None` when it has finished or the job is over.
        fault: Option<Fault>,
    },
    /// An event for the log of the server.
    Event(ServerEvent),
}

/// An event of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A connection has joined as a client.
    Joined {
        /// The connection.
        conn: u64,
        /// Its rank.
        rank: u32,
    },
    /// All clients have joined.
    Formed,
    /// All clients have the tables; the job runs.
    Running,
    /// A client has ended well.
    Finished {
        /// Its rank.
        rank: u32,
    },
    /// A client closed its connection without FINI while the job ran.
    Lost {
        /// Its rank.
        rank: u32,
        /// The fault.
        fault: Fault,
    },
    /// The job is over, successful or not. All connections are closed.
    Over(Result<(), Failure>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Exchanging,
    Running,
    Over,
}

#[derive(Debug)]
struct Connection {
    stage: Stage,
    reader: Reader,
    /// The command whose payload is awaited.
    begun: Option<Cmd>,
    /// When it must have sent its rank.
    deadline_ms: u64,
    /// Its source, as the driver distinguishes sources.
    source: u128,
}

/// The next command that a connection must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Auth,
    /// The key, without a command.
    Key,
    Impi,
    /// As the phase of the job requires.
    Joined(u32),
}

#[derive(Clone, Copy, Debug)]
struct Member {
    conn: u64,
    has_ended: bool,
}

impl Server {
    /// A server without connections, at this time.
    ///
    /// # Errors
    /// A number of clients out of range, or no method of authentication.
    pub fn new(settings: ServerSettings, now_ms: u64) -> Result<Server, SettingsError> {
        let ServerSettings { clients, auth, limits, .. } = settings;
        if !(1..=CLIENTS_MAX).contains(&clients) {
            let (field, value) = ("the number of clients", clients.into());
            return Err(SettingsError::OutOfRange { field, value, min: 1, max: CLIENTS_MAX.into() });
        }
        if auth.is_empty() {
            return Err(SettingsError::NoAuth);
        }
        Ok(Server {
            phase: Phase::Gathering,
            connections: BTreeMap::new(),
            members: vec![None; clients as usize],
            exchange: Exchange::new(clients),
            outputs: VecDeque::new(),
            deadline_ms: limits.form_ms.map(|form_ms| now_ms.saturating_add(form_ms)),
            lost: Vec::new(),
            settings,
        })
    }

    /// The next action.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout); `None` if no timer runs.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let unjoined = self.connections.values().filter(|connection| connection.is_unjoined());
        unjoined.map(|connection| connection.deadline_ms).chain(self.deadline_ms).min()
    }

    /// A connection was accepted. Its number is larger than all earlier ones. Connections of equal `source`
    /// are from the same address.
    pub fn handle_connected(&mut self, now_ms: u64, conn: u64, source: u128) {
        let Limits { join_ms, unjoined_max, .. } = self.settings.limits;
        if self.phase != Phase::Gathering {
            return self.close(conn, Some(Fault::Full { clients: self.settings.clients }));
        }
        if self.unjoined().count() >= unjoined_max {
            self.make_room();
        }
        let deadline_ms = now_ms.saturating_add(join_ms);
        let reader = Reader::new(CMD_LEN);
        let connection = Connection { stage: Stage::Auth, reader, begun: None, deadline_ms, source };
        self.connections.insert(conn, connection);
    }

    /// Evicts a connection that has not joined, to make room for a new one; false if there is none.
    pub fn make_room(&mut self) -> bool {
        let Some(evicted) = self.evictable() else { return false };
        let unjoined = self.unjoined().count();
        self.close(evicted, Some(Fault::Evicted { unjoined }));
        true
    }

    /// The connection to evict for a new one: of the source with the most unauthenticated clients, the oldest
    /// that has sent nothing, else the oldest. A source that floods the server evicts its own connections.
    fn evictable(&self) -> Option<u64> {
        let mut counts = BTreeMap::<u128, usize>::new();
        self.unjoined().for_each(|(_, connection)| *counts.entry(connection.source).or_default() += 1);
        let rank = |(conn, connection): &(u64, &Connection)| {
            (counts[&connection.source], connection.is_silent(), Reverse(*conn))
        };
        self.unjoined().max_by_key(rank).map(|(conn, _)| conn)
    }

    /// The connections that have not sent their rank, with their numbers.
    fn unjoined(&self) -> impl Iterator<Item = (u64, &Connection)> {
        let numbered = self.connections.iter().map(|(conn, connection)| (*conn, connection));
        numbered.filter(|(_, connection)| connection.is_unjoined())
    }

    /// Octets of a connection were received, in any pieces.
    pub fn handle_octets(&mut self, now_ms: u64, conn: u64, mut octets: &[u8]) {
        while let Some(connection) = self.connections.get_mut(&conn)
            && let Some(piece) = connection.reader.take(&mut octets)
        {
            if let Err(fault) = self.handle_piece(now_ms, conn, &piece) {
                self.handle_fault(now_ms, conn, fault);
            }
        }
    }

    /// A connection was closed by its peer, or is lost.
    pub fn handle_eof(&mut self, now_ms: u64, conn: u64) {
        self.handle_fault(now_ms, conn, Fault::Closed);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_ms: u64) {
        let is_late = |connection: &Connection| connection.is_unjoined() && connection.deadline_ms <= now_ms;
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_late(connection))
            .map(|(conn, _)| *conn)
            .collect();
        let after_ms = self.settings.limits.join_ms;
        late.into_iter().for_each(|conn| self.handle_fault(now_ms, conn, Fault::Silent { after_ms }));
        if self.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
            self.handle_overdue();
        }
    }

    /// The deadline of the job has passed.
    fn handle_overdue(&mut self) {
        match self.phase {
            Phase::Gathering => {
                let missing = (0..).zip(&self.members).filter(|(_, member)| member.is_none());
                let missing = Ranks(missing.map(|(rank, _)| rank).collect());
                self.end(Err(Failure::NotFormed { missing }));
            }
            Phase::Exchanging => {
                let silent = Ranks(self.exchange.waiting_for());
                self.end(Err(Failure::NotStarted { silent }));
            }
            Phase::Running => self.end_running(),
            Phase::Over => {}
        }
    }

    fn handle_piece(&mut self, now_ms: u64, conn: u64, piece: &Bytes) -> Result<(), Fault> {
        let Some(connection) = self.connections.get_mut(&conn) else { return Ok(()) };
        // By default a command follows.
        connection.reader.want(CMD_LEN);
        let stage = connection.stage;
        if stage == Stage::Key {
            connection.stage = Stage::Impi;
            return self.check_key(piece);
        }
        if let Some(cmd) = connection.begun.take() {
            return self.handle_payload(now_ms, conn, stage, cmd.command, piece);
        }
        let cmd = Cmd::parse(*piece.first_chunk().expect("as long as was asked for"))?;
        connection.begun = Some(cmd);
        connection.reader.want(cmd.len as usize);
        self.check(stage, cmd)
    }

    /// Checks that a command is permitted, before its payload is received.
    fn check(&mut self, stage: Stage, cmd: Cmd) -> Result<(), Fault> {
        let Cmd { command, len } = cmd;
        let expected = self.expected(stage);
        if !expected.contains(&command) {
            return Err(Fault::Unexpected { command, expected });
        }
        let dialect = self.settings.dialect;
        let has_len = match command {
            Command::Auth => len as usize == auth_len(dialect),
            Command::Impi => len as usize == IMPI_LEN,
            Command::Coll => len as usize >= COLL_LEN,
            Command::Done | Command::Fini => len == 0,
        };
        match (command, stage) {
            (Command::Coll, Stage::Joined(rank)) if has_len => {
                self.exchange.admit(rank, len as usize - COLL_LEN)
            }
            _ if has_len => Ok(()),
            (Command::Auth, _) if [CLIENT_AUTH_LEN, AUTH_KEY_LEN].contains(&(len as usize)) => {
                Err(Fault::OtherDialect { dialect })
            }
            _ => Err(Fault::Len { command, len }),
        }
    }

    /// The commands that are permitted now.
    fn expected(&self, stage: Stage) -> &'static [Command] {
        match (stage, self.phase) {
            (Stage::Auth | Stage::Key, _) => &[Command::Auth],
            (Stage::Impi, _) => &[Command::Impi],
            // A client may pipeline its labels behind its rank, before the others have joined (IMPI 5.4).
            (Stage::Joined(rank), Phase::Gathering | Phase::Exchanging) if !self.exchange.is_done(rank) => {
                &[Command::Coll, Command::Done]
            }
            (Stage::Joined(_), Phase::Running) => &[Command::Fini],
            (Stage::Joined(_), _) => &[],
        }
    }

    fn handle_payload(
        &mut self,
        now_ms: u64,
        conn: u64,
        stage: Stage,
        command: Command,
        payload: &Bytes,
    ) -> Result<(), Fault> {
        match (stage, command) {
            (Stage::Auth, _) => self.handle_auth(conn, payload),
            (Stage::Impi, _) => self.handle_rank(now_ms, conn, payload),
            (Stage::Joined(rank), Command::Coll) => {
                let (label, data) = (Label(BigEndian::read_i32(payload)), payload.slice(COLL_LEN..));
                self.exchange.push(rank, label, data)?;
                self.emit();
                Ok(())
            }
            (Stage::Joined(rank), Command::Done) => {
                self.exchange.done(rank);
                self.emit();
                Ok(())
            }
            (Stage::Joined(rank), _) => {
                self.outputs.push_back(Output::Event(ServerEvent::Finished { rank }));
                self.retire(rank, None);
                Ok(())
            }
            (Stage::Key, _) => Ok(()),
        }
    }

    /// AUTH: a mask to choose from, or the draft's key (IMPI 5.2).
    fn handle_auth(&mut self, conn: u64, payload: &[u8]) -> Result<(), Fault> {
        let Some(connection) = self.connections.get_mut(&conn) else { return Ok(()) };
        if payload.len() != CLIENT_AUTH_LEN {
            connection.stage = Stage::Impi;
            return if self.settings.auth.none { Ok(()) } else { self.check_key(payload) };
        }
        let offered_mask = BigEndian::read_u32(payload);
        let which = self.settings.auth.strongest(offered_mask).ok_or(Fault::NoMethod { offered_mask })?;
        let len = if which == AUTH_KEY { AUTH_KEY_LEN } else { 0 };
        if which == AUTH_KEY {
            connection.reader.want(len);
            connection.stage = Stage::Key;
        } else {
            connection.stage = Stage::Impi;
        }
        let octets = Bytes::from([which.to_be_bytes(), (len as u32).to_be_bytes()].concat());
        self.outputs.push_back(Output::Send { conn, octets });
        Ok(())
    }

    fn check_key(&self, octets: &[u8]) -> Result<(), Fault> {
        let received = octets.get(..AUTH_KEY_LEN).map(|octets| Key(BigEndian::read_u64(octets)));
        match (received, self.settings.auth.key) {
            (Some(received), Some(key)) if key.is(received) => Ok(()),
            _ => Err(Fault::WrongKey),
        }
    }

    /// IMPI: the connection is a client from now on, the last one completes the job (IMPI 5.3).
    fn handle_rank(&mut self, now_ms: u64, conn: u64, payload: &[u8]) -> Result<(), Fault> {
        let rank = BigEndian::read_i32(payload);
        let clients = self.settings.clients;
        let place = usize::try_from(rank).ok().and_then(|rank| self.members.get_mut(rank));
        match place {
            None => return Err(Fault::Rank { rank, clients }),
            Some(Some(_)) => return Err(Fault::RankTaken { rank: rank as u32 }),
            Some(member) => *member = Some(Member { conn, has_ended: false }),
        }
        let rank = rank as u32;
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.stage = Stage::Joined(rank);
        }
        self.outputs.push_back(Output::Event(ServerEvent::Joined { conn, rank }));
        if self.members.iter().all(Option::is_some) {
            self.form(now_ms);
        }
        Ok(())
    }

    /// Forms the job when all clients have joined; all other connections are closed with [`Fault::Full`].
    fn form(&mut self, now_ms: u64) {
        let clients = self.settings.clients;
        self.phase = Phase::Exchanging;
        let end_ms = now_ms.saturating_add(self.settings.limits.exchange_ms);
        self.deadline_ms = Some(self.deadline_ms.map_or(end_ms, |form_ms| form_ms.min(end_ms)));
        self.outputs.push_back(Output::Event(ServerEvent::Formed));
        let unjoined = self.connections.iter().filter(|(_, connection)| connection.is_unjoined());
        let unjoined: Vec<u64> = unjoined.map(|(conn, _)| *conn).collect();
        unjoined.into_iter().for_each(|conn| self.close(conn, Some(Fault::Full { clients })));
        self.send_all(Cmd::emit(Command::Impi, &[&clients.to_be_bytes()]));
        self.emit();
    }

    /// Sends the complete labels (IMPI 5.4), once all have joined.
    fn emit(&mut self) {
        while self.phase == Phase::Exchanging
            && let Some(emission) = self.exchange.pop()
        {
            match emission {
                Emission::Coll(octets) => self.send_all(octets),
                Emission::Done => {
                    self.send_all(Cmd::emit(Command::Done, &[]));
                    self.phase = Phase::Running;
                    self.deadline_ms = None;
                    self.outputs.push_back(Output::Event(ServerEvent::Running));
                    return;
                }
            }
        }
    }

    fn send_all(&mut self, octets: Bytes) {
        for member in self.members.iter().flatten() {
            self.outputs.push_back(Output::Send { conn: member.conn, octets: octets.clone() });
        }
    }

    /// A connection has a fault.
    fn handle_fault(&mut self, now_ms: u64, conn: u64, fault: Fault) {
        let Some(connection) = self.connections.get(&conn) else { return };
        match (connection.stage, self.phase) {
            (Stage::Joined(rank), Phase::Running) => {
                self.lost.push((rank, fault.clone()));
                self.outputs.push_back(Output::Event(ServerEvent::Lost { rank, fault: fault.clone() }));
                let end_ms = now_ms.saturating_add(self.settings.limits.grace_ms);
                self.deadline_ms = self.deadline_ms.or(Some(end_ms));
                self.retire(rank, Some(fault));
            }
            (Stage::Joined(rank), _) => {
                self.close(conn, Some(fault.clone()));
                self.end(Err(Failure::Client { rank, fault }));
            }
            _ => self.close(conn, Some(fault)),
        }
    }

    /// A client of the running job has finished or was lost, perhaps the last one.
    fn retire(&mut self, rank: u32, fault: Option<Fault>) {
        if let Some(member) = &mut self.members[rank as usize] {
            member.has_ended = true;
            let conn = member.conn;
            self.close(conn, fault);
        }
        if self.members.iter().flatten().all(|member| member.has_ended) {
            self.end_running();
        }
    }

    fn end_running(&mut self) {
        let left =
            (0..).zip(&self.members).filter(|(_, member)| member.is_some_and(|member| !member.has_ended));
        let unfinished = Ranks(left.map(|(rank, _)| rank).collect());
        let lost = std::mem::take(&mut self.lost);
        self.end(if lost.is_empty() { Ok(()) } else { Err(Failure::Lost { lost, unfinished }) });
    }

    fn close(&mut self, conn: u64, fault: Option<Fault>) {
        self.connections.remove(&conn);
        self.outputs.push_back(Output::Close { conn, fault });
    }

    fn end(&mut self, outcome: Result<(), Failure>) {
        while let Some((conn, _)) = self.connections.pop_first() {
            self.close(conn, None);
        }
        self.phase = Phase::Over;
        self.deadline_ms = None;
        self.outputs.push_back(Output::Event(ServerEvent::Over(outcome)));
    }
}

impl Connection {
    /// Whether it has not sent its rank.
    fn is_unjoined(&self) -> bool {
        !matches!(self.stage, Stage::Joined(_))
    }

    /// Whether it has sent no octet.
    fn is_silent(&self) -> bool {
        self.stage == Stage::Auth && self.begun.is_none() && self.reader.is_empty()
    }
}

/// Octets of the AUTH payload (IMPI 5.2).
fn auth_len(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Final => CLIENT_AUTH_LEN,
        Dialect::Draft => AUTH_KEY_LEN,
    }
}
