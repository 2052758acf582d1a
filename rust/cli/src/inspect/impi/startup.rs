//! The commands between a client and the startup server.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::layout::{
    AUTH_KEY, AUTH_KEY_LEN, AUTH_NONE, CHDR_LEN, CLIENT_AUTH_LEN, CLIENTS_MAX, CMD_LEN, COLL_LEN, Cmd,
    CmdError, Command, IMPI_LEN, Label, SERVER_AUTH_LEN,
};

use super::data::Data;
use super::item::{Direction, Endpoint, Item};
use super::labels;
use super::packet::Terms;
use super::value::{List, Value};

/// The sender of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    /// The sender of a direction. Without a mark the first octets decide: every client begins with AUTH.
    pub(super) fn of(direction: Option<Direction>, head: &[u8]) -> Side {
        let is_server = match direction {
            Some(direction) => direction.from == Endpoint::Server,
            None => number(head) != Some(Command::Auth.code()),
        };
        if is_server { Side::Server } else { Side::Client }
    }

    /// The direction of a stream without a mark.
    pub(super) fn direction(self) -> Direction {
        let client = Endpoint::Client(None);
        match self {
            Side::Client => Direction { from: client, to: Endpoint::Server },
            Side::Server => Direction { from: Endpoint::Server, to: client },
        }
    }
}

/// Octets that are sent at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A command and its payload.
    Command(Cmd),
    /// IMPI_Server_auth, the method that the server chooses. No command precedes it.
    Method { which: i32, len: i32 },
    /// The key of a client. No command precedes it either.
    Key,
}

impl Unit {
    /// Octets in front of the payload.
    pub(super) fn head_len(self) -> usize {
        match self {
            Unit::Command(_) | Unit::Method { .. } => CMD_LEN,
            Unit::Key => 0,
        }
    }

    /// Octets of payload.
    pub(super) fn payload_len(self) -> usize {
        match self {
            Unit::Command(cmd) => cmd.len as usize,
            Unit::Method { .. } => 0,
            Unit::Key => AUTH_KEY_LEN,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Command(cmd) => cmd.command.name(),
            Unit::Method { .. } => "method",
            Unit::Key => "key",
        }
    }
}

/// Finds the units of one direction.
#[derive(Debug)]
pub(super) struct UnitReader {
    dialect: Dialect,
    side: Side,
    has_begun: bool,
    /// Whether AUTH was the last unit: the key may come next.
    is_behind_auth: bool,
}

impl UnitReader {
    pub(super) fn new(dialect: Dialect, side: Side) -> UnitReader {
        UnitReader { dialect, side, has_begun: false, is_behind_auth: false }
    }

    /// The unit that begins with these octets.
    ///
    /// # Errors
    /// They are neither a command nor a unit without a command in its position.
    pub(super) fn next(&self, head: [u8; CMD_LEN]) -> Result<Unit, CmdError> {
        let cmd = Cmd::parse(head);
        if self.dialect == Dialect::Final {
            // A key or IMPI follows AUTH, and a key may have any octets.
            let is_command = |cmd: Cmd| cmd.command != Command::Impi || cmd.len as usize == IMPI_LEN;
            if self.is_behind_auth && !cmd.is_ok_and(is_command) {
                return Ok(Unit::Key);
            }
            let is_unknown = matches!(cmd, Err(CmdError::Unknown { .. }));
            if self.side == Side::Server && !self.has_begun && is_unknown {
                let [which, len] = [0, 4].map(|at| number(&head[at..]).unwrap_or(0));
                return Ok(Unit::Method { which, len });
            }
        }
        cmd.map(Unit::Command)
    }

    /// Handles the unit that [`next`](Self::next) has found; returns its sender.
    pub(super) fn handle(&mut self, unit: Unit) -> Side {
        self.has_begun = true;
        let is_auth = matches!(unit, Unit::Command(Cmd { command: Command::Auth, .. }));
        self.is_behind_auth = is_auth && self.side == Side::Client;
        self.side
    }
}

/// Describes a unit: its fields, its meaning, and its violations of the protocol. Stores the terms that it
/// states.
pub(super) fn describe(
    side: Side,
    unit: Unit,
    payload: &[u8],
    dialect: Dialect,
    terms: &mut Terms,
    item: &mut Item,
) {
    match (side, unit) {
        (_, Unit::Method { which, len }) => method(which, len, item),
        (_, Unit::Key) => item.meaning = format!("{AUTH_KEY_LEN} octets, which are not shown"),
        (Side::Client, Unit::Command(cmd)) => client_command(cmd, payload, dialect, item),
        (Side::Server, Unit::Command(cmd)) => server_command(cmd, payload, dialect, terms, item),
    }
}

fn method(which: i32, len: i32, item: &mut Item) {
    item.add_number("which", which);
    item.add_number("len", len);
    let (name, expected_len) = match which {
        AUTH_NONE => ("none", 0),
        AUTH_KEY => ("key", AUTH_KEY_LEN),
        _ => {
            item.meaning = "the server chooses an unknown method".to_owned();
            return item.warn(format!("there is no method {which}"));
        }
    };
    item.meaning = format!("the server chooses the method \"{name}\"");
    if usize::try_from(len) != Ok(expected_len) {
        item.warn(format!("len is {len}, the method has {expected_len} octets"));
    }
}

fn client_command(cmd: Cmd, payload: &[u8], dialect: Dialect, item: &mut Item) {
    match cmd.command {
        Command::Auth => auth(cmd, payload, dialect, item),
        Command::Impi => {
            check_len(cmd, IMPI_LEN, item);
            let Some(rank) = number(payload) else { return };
            item.add_number("rank", rank);
            item.meaning = format!("this is client {rank}");
            if u32::try_from(rank).map_or(true, |rank| rank >= CLIENTS_MAX) {
                item.warn(format!("rank {rank}, clients have 0 to {}", CLIENTS_MAX - 1));
            }
        }
        Command::Coll => {
            let Some(label) = label(payload) else { return check_len(cmd, COLL_LEN, item) };
            let data = &payload[COLL_LEN..];
            add_label(label, None, item);
            item.meaning = labels::subject(label).to_owned();
            add_values(label, labels::list(label, dialect, data, None), data, item);
        }
        Command::Done => {
            item.meaning = "no more labels".to_owned();
            check_len(cmd, 0, item);
        }
        Command::Fini => {
            item.meaning = "the client has succeeded".to_owned();
            check_len(cmd, 0, item);
        }
    }
}

fn auth(cmd: Cmd, payload: &[u8], dialect: Dialect, item: &mut Item) {
    match payload.len() {
        CLIENT_AUTH_LEN => {
            let mask = number(payload).unwrap_or(0).cast_unsigned();
            item.add("auth_mask", Value::Set(methods(mask)));
            item.meaning = "methods that the client has".to_owned();
            if mask == 0 {
                item.warn("no method at all");
            }
            if dialect == Dialect::Draft {
                item.warn("not the AUTH of the draft (--dialect final)");
            }
        }
        AUTH_KEY_LEN => {
            item.meaning = format!("a key of {AUTH_KEY_LEN} octets, which are not shown");
            if dialect == Dialect::Final {
                item.warn("the AUTH of the draft (--dialect draft)");
            }
        }
        _ => item.warn(format!("AUTH with {} octets", cmd.len)),
    }
}

fn server_command(cmd: Cmd, payload: &[u8], dialect: Dialect, terms: &mut Terms, item: &mut Item) {
    match cmd.command {
        Command::Impi => {
            check_len(cmd, IMPI_LEN, item);
            let Some(size) = number(payload) else { return };
            item.add_number("size", size);
            item.meaning = "all clients have joined".to_owned();
            if !u32::try_from(size).is_ok_and(|size| (1..=CLIENTS_MAX).contains(&size)) {
                item.warn(format!("size {size}, a job has 1 to {CLIENTS_MAX} clients"));
            }
        }
        Command::Coll => {
            let (Some(label), Some(mask)) = (label(payload), payload.get(COLL_LEN..).and_then(number)) else {
                return check_len(cmd, CHDR_LEN, item);
            };
            let (mask, data) = (mask.cast_unsigned(), &payload[CHDR_LEN..]);
            add_label(label, Some(mask), item);
            let outcome = labels::outcome(label, data);
            item.meaning = outcome.unwrap_or_else(|| labels::subject(label).to_owned());
            add_values(label, labels::list(label, dialect, data, Some(mask)), data, item);
            item.warnings.extend(labels::reply_fault(label, mask, data));
            learn(label, labels::least(data), terms);
        }
        Command::Done => {
            item.meaning = "start-up is over, the job runs".to_owned();
            check_len(cmd, 0, item);
        }
        Command::Auth | Command::Fini => item.warn(format!("a server never sends {}", cmd.command)),
    }
}

/// Stores a term that start-up has agreed on, unless an option has set it.
fn learn(label: Label, least: Option<u32>, terms: &mut Terms) {
    let term = match label {
        Label::C_DATALEN => &mut terms.maxdatalen,
        Label::C_TAGUB => &mut terms.tag_ub,
        Label::H_ACKMARK => &mut terms.ackmark,
        _ => return,
    };
    *term = term.or(least);
}

/// The signed number at the front of a payload, if it is all there.
fn number(payload: &[u8]) -> Option<i32> {
    payload.first_chunk().map(|octets| i32::from_be_bytes(*octets))
}

fn label(payload: &[u8]) -> Option<Label> {
    number(payload).map(Label)
}

/// The names of the methods in a mask.
fn methods(mask: u32) -> Vec<Value> {
    let name = |bit: u32| match bit.cast_signed() {
        AUTH_NONE => "none".to_owned(),
        AUTH_KEY => "key".to_owned(),
        other => format!("method {other}"),
    };
    (0..32).filter(|bit| mask & 1 << bit != 0).map(|bit| Value::Word(name(bit))).collect()
}

fn add_label(label: Label, mask: Option<u32>, item: &mut Item) {
    let name = label.name().map_or_else(|| format!("{:#06x}", label.0), str::to_owned);
    item.add("label", Value::Word(name));
    if let Some(mask) = mask {
        let clients = labels::clients(mask).map(|client| Value::Number(client.into())).collect();
        item.add("client_mask", Value::Set(clients));
    }
}

/// Adds the values under a label, or the octets if they are no values of the label.
fn add_values(label: Label, values: Option<List>, data: &[u8], item: &mut Item) {
    let len = data.len() as u64;
    match values {
        Some(values) => return item.add("values", Value::List(values)),
        None if label.name().is_some() => item.warn(format!("{label} with {len} octets of data")),
        None => {}
    }
    item.data = (len > 0).then(|| Data::new(len, data, None));
}

fn check_len(cmd: Cmd, expected_len: usize, item: &mut Item) {
    if cmd.len as usize != expected_len {
        item.warn(format!("{} with {} octets", cmd.command, cmd.len));
    }
}

const _: () = assert!(CMD_LEN == SERVER_AUTH_LEN);
