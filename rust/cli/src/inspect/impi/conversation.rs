//! What is known of one client's conversation with the server: whose turn it is, and what either side may say.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::layout::{
    AUTH_KEY, AUTH_KEY_LEN, AUTH_NONE, CHDR_LEN, CLIENT_AUTH_LEN, CLIENTS_MAX, COLL_LEN, Cmd, CmdError,
    Command, IMPI_LEN, Label, SERVER_AUTH_LEN,
};

use super::item::{Field, Item, Value};
use super::labels::{self, Counts};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// What is said at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A command and its payload.
    Command(Cmd),
    /// IMPI_Server_auth, which has no command.
    Method { which: i32, len: i32 },
    /// The key of a client, which has none either.
    Key,
}

/// What comes next in a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// That cannot be told yet.
    Wait,
    /// This, so many octets in front of its payload, and so many of payload.
    Unit { side: Side, unit: Unit, head_len: usize, payload_len: u64 },
    /// Nothing that makes sense.
    Nonsense(String),
}

/// The conversation so far.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    dialect: Dialect,
    is_marked: bool,
    /// How often the client has said AUTH, IMPI and DONE; more than once where several clients are in one stream.
    auths: u32,
    ranks: u32,
    client_dones: u32,
    /// Keys that stood outside AUTH.
    keys: u32,
    /// How often the server has chosen a method, and said anything at all.
    methods: u32,
    server_units: u64,
    client_units: u64,
    offered_mask: Option<u32>,
    /// The server has chosen the key, and it has not come.
    is_key_due: bool,
    pub(super) rank: Option<u32>,
    pub(super) size: Option<u32>,
    /// Labels of the client so far: the last, and those of the specification as bits.
    client_label: Label,
    client_labels: u32,
    has_client_fini: bool,
    is_server_done: bool,
    pub(super) counts: Counts,
}

/// Octets that show what an unmarked unit without a command is: itself, and the command behind it.
const LOOK_AHEAD: usize = 16;

impl Conversation {
    /// Nothing has been said. `is_marked`: the recording says who speaks.
    pub(super) fn new(dialect: Dialect, is_marked: bool) -> Conversation {
        Conversation { dialect, is_marked, ..Conversation::default() }
    }

    /// Whether several clients are in one stream, so that nobody knows whose turn it is.
    pub(super) fn is_mixed(&self) -> bool {
        self.auths > 1 && !self.is_marked
    }

    pub(super) fn has_client_fini(&self) -> bool {
        self.has_client_fini
    }

    fn hears_client(&self) -> bool {
        self.client_units > 0
    }

    fn hears_server(&self) -> bool {
        self.server_units > 0
    }

    /// What the octets are with which a unit begins. `side`: who says them, if that is known; `is_all`: no more come.
    pub(super) fn next(&self, octets: &[u8], side: Option<Side>, is_all: bool) -> Next {
        // In a stream without marks there is a client only if AUTH was heard.
        let is_client = side.map_or(self.auths > 0, |side| side == Side::Client);
        if self.is_key_due && is_client {
            return key();
        }
        let Some(head) = octets.first_chunk::<SERVER_AUTH_LEN>() else { return Next::Wait };
        match Cmd::parse(*head) {
            Ok(cmd) => self.command(cmd, octets, side, is_all),
            Err(error @ CmdError::Unknown { .. }) => {
                let raw = self.raw(octets, *head, side, is_all);
                raw.unwrap_or_else(|| Next::Nonsense(error.to_string()))
            }
            Err(error) => Next::Nonsense(error.to_string()),
        }
    }

    fn command(&self, cmd: Cmd, octets: &[u8], side: Option<Side>, is_all: bool) -> Next {
        let needed = SERVER_AUTH_LEN + (cmd.len as usize).min(COLL_LEN);
        if side.is_none() && octets.len() < needed && !is_all {
            return Next::Wait;
        }
        let label = octets.get(8..12).and_then(|label| label.try_into().ok()).map(i32::from_be_bytes);
        let side = side.unwrap_or_else(|| self.speaker(cmd, label.map(Label)));
        Next::Unit { side, unit: Unit::Command(cmd), head_len: SERVER_AUTH_LEN, payload_len: cmd.len.into() }
    }

    /// What eight octets are that begin no command: a method of the server, the key of a client, or nothing.
    fn raw(&self, octets: &[u8], head: [u8; 8], side: Option<Side>, is_all: bool) -> Option<Next> {
        if self.dialect == Dialect::Draft {
            return None;
        }
        let both = i64::from_be_bytes(head);
        let (which, len) = ((both >> 32) as i32, both as i32);
        let unit = Unit::Method { which, len };
        let method = Next::Unit { side: Side::Server, unit, head_len: SERVER_AUTH_LEN, payload_len: 0 };
        match side {
            Some(Side::Server) => (self.methods == 0).then_some(method),
            Some(Side::Client) => {
                let is_due = self.auths > self.keys && self.ranks == 0 && !self.hears_server();
                is_due.then(key)
            }
            None if self.auths == 0 && self.methods == 0 && !self.hears_server() => Some(method),
            None if self.auths > self.methods + self.keys && self.auths > self.ranks => {
                if octets.len() < LOOK_AHEAD && !is_all {
                    return Some(Next::Wait);
                }
                let is_offered = self.offered_mask.is_none_or(|mask| is_in(mask, which));
                // Where both sides are heard the key stands between this and the next command.
                let next = octets.get(8..).and_then(|octets| octets.first_chunk()).copied().map(Cmd::parse);
                let is_rank = |cmd: Cmd| cmd.command == Command::Impi && cmd.len as usize == IMPI_LEN;
                let key_follows = !matches!(next, Some(Ok(cmd)) if is_rank(cmd));
                let is_method = match (which, len) {
                    (AUTH_NONE, 0) => is_offered,
                    (AUTH_KEY, 8) => is_offered && key_follows,
                    _ => false,
                };
                Some(if is_method { method } else { key() })
            }
            None => None,
        }
    }

    /// Who says this command, in a stream without marks.
    fn speaker(&self, cmd: Cmd, label: Option<Label>) -> Side {
        if self.auths == 0 && cmd.command != Command::Auth {
            // Every client begins with AUTH.
            return Side::Server;
        }
        let is_client = match cmd.command {
            Command::Auth | Command::Fini => true,
            Command::Impi => self.ranks < self.auths,
            Command::Done => self.client_dones < self.auths && !self.is_server_done,
            Command::Coll => label.is_none_or(|label| self.is_request(label, cmd.len as usize)),
        };
        if is_client { Side::Client } else { Side::Server }
    }

    /// Whether a COLL command of this length is a client's: a reply has a mask, and the elements of all.
    fn is_request(&self, label: Label, len: usize) -> bool {
        let Some(element_len) = labels::element_len(label, self.dialect) else {
            // Nobody's length is known; the client says it first.
            return label > self.client_label;
        };
        let is_cut = |head: usize| len >= head && (len - head).is_multiple_of(element_len);
        match (is_cut(COLL_LEN), is_cut(CHDR_LEN)) {
            (true, true) => {}
            (is_request, _) => return is_request,
        }
        match self.counts.total(label) {
            Some(total) => len as u64 != CHDR_LEN as u64 + total * element_len as u64,
            // A client says one number of itself; a reply has a mask as well.
            None if label < Label::H_IPV6 => len == COLL_LEN + element_len,
            None => label > self.client_label,
        }
    }

    /// Takes in what was said, and says what it means: fields, meaning and warnings of the item. `payload` is the
    /// beginning of `len` octets.
    pub(super) fn handle(&mut self, side: Side, unit: Unit, payload: &[u8], item: &mut Item) {
        match (side, unit) {
            (Side::Server, Unit::Method { which, len }) => self.method(which, len, item),
            (_, Unit::Method { .. }) => {}
            (_, Unit::Key) => {
                // Behind a method it is part of the answer to that.
                self.keys += u32::from(!std::mem::take(&mut self.is_key_due));
                item.meaning = format!("{AUTH_KEY_LEN} octets, which are not shown");
            }
            (Side::Client, Unit::Command(cmd)) => self.client(cmd, payload, item),
            (Side::Server, Unit::Command(cmd)) => self.server(cmd, payload, item),
        }
        match side {
            Side::Client => self.client_units += 1,
            Side::Server => self.server_units += 1,
        }
    }

    fn method(&mut self, which: i32, len: i32, item: &mut Item) {
        self.methods += 1;
        item.fields = vec![Field::number("which", which), Field::number("len", len)];
        let (name, expected_len) = match which {
            AUTH_NONE => ("none", 0),
            AUTH_KEY => ("key", AUTH_KEY_LEN),
            _ => ("unknown", 0),
        };
        item.meaning = format!("the server chooses the method \"{name}\"");
        let warnings = &mut item.warnings;
        if name == "unknown" {
            warnings.push(format!("there is no method {which}"));
        } else if usize::try_from(len) != Ok(expected_len) {
            warnings.push(format!("len is {len}, the method has {expected_len} octets"));
        }
        if self.offered_mask.is_some_and(|mask| !is_in(mask, which)) && !self.is_mixed() {
            warnings.push("the client has not offered it".to_owned());
        }
        self.is_key_due = which == AUTH_KEY;
    }

    fn client(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        let is_known = !self.is_mixed();
        if self.has_client_fini && is_known {
            item.warnings.push("behind FINI".to_owned());
        }
        if self.auths == 0 && cmd.command != Command::Auth {
            item.warnings.push("a client begins with AUTH".to_owned());
        }
        match cmd.command {
            Command::Auth => self.auth(cmd, payload, item),
            Command::Impi => self.client_rank(cmd, payload, item),
            Command::Coll => self.client_coll(cmd, payload, item),
            Command::Done => {
                self.client_dones += 1;
                item.meaning = "no more labels".to_owned();
                check_len(cmd, 0, item);
                let missing = (0..).zip(Label::ALL).filter(|(k, _)| self.client_labels & 1 << k == 0);
                let missing: Vec<String> = missing.map(|(_, label)| label.to_string()).collect();
                if is_known && !missing.is_empty() {
                    item.warnings.push(format!("not sent: {}", missing.join(", ")));
                }
                if is_known && self.client_dones > 1 {
                    item.warnings.push("a second time".to_owned());
                }
            }
            Command::Fini => {
                self.has_client_fini = true;
                item.meaning = "the client has ended well".to_owned();
                check_len(cmd, 0, item);
                if is_known && self.hears_server() && !self.is_server_done {
                    item.warnings.push("before the job runs".to_owned());
                }
            }
        }
    }

    fn auth(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        self.auths += 1;
        if self.auths > 1 && self.is_marked {
            item.warnings.push("a second time".to_owned());
        }
        if payload.len() == CLIENT_AUTH_LEN {
            let mask = number(payload).unwrap_or(0);
            self.offered_mask = Some(mask);
            item.fields.push(Field::new("auth_mask", Value::Set(methods(mask))));
            item.meaning = "methods that the client has".to_owned();
            if mask == 0 {
                item.warnings.push("no method at all".to_owned());
            }
            if self.dialect == Dialect::Draft {
                item.warnings.push("not the AUTH of the draft (--dialect final)".to_owned());
            }
        } else if payload.len() == AUTH_KEY_LEN {
            item.meaning = format!("a key of {AUTH_KEY_LEN} octets, which are not shown");
            if self.dialect == Dialect::Final {
                item.warnings.push("the AUTH of the draft (--dialect draft)".to_owned());
            }
        } else {
            item.warnings.push(format!("AUTH with {} octets", cmd.len));
        }
    }

    fn client_rank(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        self.ranks += 1;
        check_len(cmd, IMPI_LEN, item);
        let Some(rank) = number(payload).map(u32::cast_signed) else { return };
        item.fields.push(Field::number("rank", rank));
        self.rank = u32::try_from(rank).ok().filter(|rank| *rank < CLIENTS_MAX);
        item.meaning = format!("this is client {rank}");
        if self.rank.is_none() {
            item.warnings.push(format!("rank {rank}, clients have 0 to {}", CLIENTS_MAX - 1));
        }
        if self.ranks > 1 && !self.is_mixed() {
            item.warnings.push("a second time".to_owned());
        }
    }

    fn client_coll(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        let Some(label) = number(payload).map(|label| Label(label.cast_signed())) else {
            return check_len(cmd, COLL_LEN, item);
        };
        let len = u64::from(cmd.len) - COLL_LEN as u64;
        label_fields(label, None, item);
        match labels::list(label, self.dialect, &payload[COLL_LEN..], len, None) {
            Some(values) => item.fields.push(Field::new("values", values)),
            None if label.name().is_some() => {
                item.warnings.push(format!("{label} with {len} octets of data"))
            }
            None => {}
        }
        item.meaning = labels::subject(label).to_owned();
        if !self.is_mixed() {
            if self.ranks == 0 {
                item.warnings.push("before IMPI".to_owned());
            } else if self.hears_server() && self.size.is_none() {
                item.warnings.push("before all clients have joined".to_owned());
            }
            if label <= self.client_label {
                item.warnings.push(format!("{label} comes after {}, labels ascend", self.client_label));
            }
            if self.client_dones > 0 {
                item.warnings.push("behind DONE".to_owned());
            }
        }
        self.client_label = self.client_label.max(label);
        let place = Label::ALL.iter().position(|known| *known == label);
        self.client_labels |= place.map_or(0, |k| 1 << k);
    }

    fn server(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        match cmd.command {
            Command::Impi => self.server_size(cmd, payload, item),
            Command::Coll => self.server_coll(cmd, payload, item),
            Command::Done => {
                item.meaning = "start-up is over, the job runs".to_owned();
                if self.hears_client() && self.client_dones == 0 {
                    item.warnings.push("before the client has said it".to_owned());
                }
                if self.is_server_done && !self.is_mixed() {
                    item.warnings.push("a second time".to_owned());
                }
                self.is_server_done = true;
            }
            Command::Auth | Command::Fini => {
                item.warnings.push(format!("a server never says {}", cmd.command))
            }
        }
    }

    fn server_size(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        check_len(cmd, IMPI_LEN, item);
        let Some(size) = number(payload).map(u32::cast_signed) else { return };
        item.fields.push(Field::number("size", size));
        item.meaning = "all clients have joined".to_owned();
        let before = self.size.take();
        self.size = u32::try_from(size).ok().filter(|size| (1..=CLIENTS_MAX).contains(size));
        match (self.size, self.rank) {
            (None, _) => item.warnings.push(format!("size {size}, a job has 1 to {CLIENTS_MAX} clients")),
            (Some(size), Some(rank)) if rank >= size && !self.is_mixed() => {
                item.warnings.push(format!("the client has rank {rank}"));
            }
            _ => {}
        }
        if before.is_some() && !self.is_mixed() {
            item.warnings.push("a second time".to_owned());
        }
    }

    fn server_coll(&mut self, cmd: Cmd, payload: &[u8], item: &mut Item) {
        let (Some(label), Some(mask)) = (number(payload), payload.get(COLL_LEN..).and_then(number)) else {
            return check_len(cmd, CHDR_LEN, item);
        };
        let (label, data) = (Label(label.cast_signed()), &payload[CHDR_LEN..]);
        let len = u64::from(cmd.len) - CHDR_LEN as u64;
        label_fields(label, Some(mask), item);
        self.counts.learn(label, mask, data);
        // What is wrong with the length is for whoever hears it as a client to say.
        let values = labels::list(label, self.dialect, data, len, Some((mask, &self.counts)));
        item.fields.extend(values.map(|values| Field::new("values", values)));
        item.meaning = labels::outcome(label, data, len).unwrap_or_else(|| labels::subject(label).to_owned());
        let is_named = self.rank.is_some_and(|rank| mask & 1 << rank != 0);
        let has_said = label <= self.client_label;
        if is_named && !has_said && self.hears_client() && !self.is_mixed() {
            item.warnings.push("before this client has sent it".to_owned());
        }
    }
}

fn key() -> Next {
    Next::Unit { side: Side::Client, unit: Unit::Key, head_len: 0, payload_len: AUTH_KEY_LEN as u64 }
}

/// The number at the front of a payload, if it is all there.
fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}

fn is_in(mask: u32, method: i32) -> bool {
    u32::try_from(method).ok().and_then(|method| 1u32.checked_shl(method)).is_some_and(|bit| mask & bit != 0)
}

/// The names of the methods in a mask.
fn methods(mask: u32) -> Vec<Value> {
    let name = |bit: i32| match bit {
        AUTH_NONE => "none".to_owned(),
        AUTH_KEY => "key".to_owned(),
        other => format!("method {other}"),
    };
    (0..32).filter(|bit| is_in(mask, *bit)).map(|bit| Value::Word(name(bit))).collect()
}

fn label_fields(label: Label, mask: Option<u32>, item: &mut Item) {
    let name = label.name().map_or_else(|| format!("{:#06x}", label.0), str::to_owned);
    item.fields.push(Field::new("label", Value::Word(name)));
    if let Some(mask) = mask {
        let clients = labels::clients(mask).map(|client| Value::Number(client.into())).collect();
        item.fields.push(Field::new("client_mask", Value::Set(clients)));
    }
}

fn check_len(cmd: Cmd, expected_len: usize, item: &mut Item) {
    if cmd.len as usize != expected_len {
        item.warnings.push(format!("{} with {} octets", cmd.command, cmd.len));
    }
}
