//! The conversations with the startup server: cut out of their streams, told one by one.

use std::collections::BTreeMap;

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::Tables;
use mpjdev_proto::impi::startup::layout::{CHDR_LEN, Cmd, Command};

use super::conversation::{Conversation, Next, Side, Unit};
use super::data::Data;
use super::held::Held;
use super::item::{END, Item, Part, Party, Place, Told, Way, count};
use super::observer::Observer;

/// Octets of a payload that are kept: those of longer ones mean nothing for what comes later.
const PAYLOAD_MAX: usize = 1 << 18;
/// Clients that are followed; a job has 32 at most.
const CLIENTS_MAX: usize = 64;
/// Replies that are compared.
const REPLIES_MAX: usize = 4096;

/// All conversations of a recording.
#[derive(Debug)]
pub(super) struct Startup {
    dialect: Dialect,
    /// By the recorder's number of the client; one without where there are no marks.
    clients: BTreeMap<Option<u32>, Heard>,
    /// Hears what the server says to one of them.
    observer: Option<(Option<u32>, Observer)>,
    has_observed: bool,
    /// What that one was told: label, length and a checksum.
    replies: Vec<(u32, u32, u64)>,
    /// Set when the tables are there, until they are fetched.
    tables: Option<Box<Tables>>,
    is_crowded: bool,
}

/// One conversation.
#[derive(Debug)]
struct Heard {
    conversation: Conversation,
    /// What the client says, and what it is told; in a stream without marks the first has both.
    streams: [Stream; 2],
    /// Replies that it was told.
    told_len: usize,
}

#[derive(Debug, Default)]
struct Stream {
    held: Held,
    begun: Option<Begun>,
    is_over: bool,
}

/// Something whose payload comes.
#[derive(Debug)]
struct Begun {
    place: Place,
    side: Side,
    unit: Unit,
    len: u64,
    left: u64,
    payload: Vec<u8>,
    checksum: u64,
}

impl Startup {
    pub(super) fn new(dialect: Dialect) -> Startup {
        Startup {
            dialect,
            clients: BTreeMap::new(),
            observer: None,
            has_observed: false,
            replies: Vec::new(),
            tables: None,
            is_crowded: false,
        }
    }

    /// Takes in octets; gives the tables of the job when they are complete with these.
    pub(super) fn handle_octets(
        &mut self,
        way: Option<Way>,
        place: Place,
        octets: &[u8],
        told: &mut Told,
    ) -> Option<Box<Tables>> {
        let (client, side) = ends(way);
        if let Some(stream) = self.stream(client, side, way, place, told)
            && !stream.is_over
        {
            stream.held.push(place, octets);
            while self.step(client, side, way, false, told) {}
        }
        self.tables.take()
    }

    fn stream(
        &mut self,
        client: Option<u32>,
        side: Option<Side>,
        way: Option<Way>,
        place: Place,
        told: &mut Told,
    ) -> Option<&mut Stream> {
        if self.clients.len() >= CLIENTS_MAX && !self.clients.contains_key(&client) {
            if !std::mem::replace(&mut self.is_crowded, true) {
                told.damage(Part::Startup, place, way, format!("more than {CLIENTS_MAX} clients"));
            }
            return None;
        }
        let dialect = self.dialect;
        let heard = self.clients.entry(client).or_insert_with(|| Heard {
            conversation: Conversation::new(dialect, client.is_some()),
            streams: Default::default(),
            told_len: 0,
        });
        Some(&mut heard.streams[index(side)])
    }

    /// Makes something of the octets of a stream; false when more are needed.
    fn step(
        &mut self,
        client: Option<u32>,
        side: Option<Side>,
        way: Option<Way>,
        is_all: bool,
        told: &mut Told,
    ) -> bool {
        let Some(Heard { conversation, streams, .. }) = self.clients.get_mut(&client) else { return false };
        let stream = &mut streams[index(side)];
        if stream.is_over {
            return false;
        }
        if let Some(begun) = &mut stream.begun {
            begun.take(&mut stream.held);
            if begun.left > 0 {
                return false;
            }
            if let Some(begun) = stream.begun.take() {
                self.unit(client, way, &begun, told);
            }
            return true;
        }
        if stream.held.len() == 0 {
            return false;
        }
        let place = stream.held.place();
        match conversation.next(stream.held.octets(), side, is_all) {
            Next::Wait => false,
            Next::Unit { side, unit, head_len, payload_len } => {
                stream.held.take(head_len);
                let (len, left) = (payload_len, payload_len);
                stream.begun =
                    Some(Begun { place, side, unit, len, left, payload: Vec::new(), checksum: CHECKSUM });
                true
            }
            Next::Nonsense(why) => {
                stream.is_over = true;
                told.damage(Part::Startup, place, way, why);
                false
            }
        }
    }

    /// Tells of something that is whole.
    fn unit(&mut self, client: Option<u32>, way: Option<Way>, begun: &Begun, told: &mut Told) {
        let Some(heard) = self.clients.get_mut(&client) else { return };
        let Begun { place, side, unit, .. } = *begun;
        let kind = match unit {
            Unit::Command(cmd) => cmd.command.name(),
            Unit::Method { .. } => "method",
            Unit::Key => "key",
        };
        let mut item = Item::new(Part::Startup, place, Some(way.unwrap_or_else(|| unnumbered(side))), kind);
        heard.conversation.handle(side, unit, &begun.payload, &mut item);
        let (is_mixed, rank) = (heard.conversation.is_mixed(), heard.conversation.rank);
        if kind == Command::Impi.name() && side == Side::Client {
            let others = self.clients.iter().filter(|(other, _)| **other != client);
            let same = others.filter(|(_, heard)| rank.is_some() && heard.conversation.rank == rank);
            item.warnings
                .extend(same.map(|(other, _)| format!("{} has that rank too", Party::Client(*other))));
        }
        if let (Side::Server, Unit::Command(cmd)) = (side, unit) {
            self.observe(client, cmd, begun, &mut item);
            if cmd.command == Command::Coll && !is_mixed {
                self.compare(client, cmd, begun, &mut item);
            }
        }
        if let Unit::Command(cmd) = unit
            && cmd.command == Command::Coll
            && item.fields.iter().all(|field| field.name != "values")
        {
            let head_len = if side == Side::Server { CHDR_LEN } else { 4 };
            let data = begun.payload.get(head_len..).unwrap_or(&[]);
            let len = begun.len.saturating_sub(head_len as u64);
            item.data = (len > 0).then(|| Data::new(len, data, None));
        }
        told.item(item);
    }

    /// Lets a client's machine hear what the server says to one of the clients.
    fn observe(&mut self, client: Option<u32>, cmd: Cmd, begun: &Begun, item: &mut Item) {
        let Some(heard) = self.clients.get(&client) else { return };
        let is_heard = matches!(cmd.command, Command::Coll | Command::Done);
        if !self.has_observed && cmd.command == Command::Coll {
            self.has_observed = true;
            let mask =
                begun.payload.get(4..8).and_then(|mask| mask.try_into().ok()).map_or(0, u32::from_be_bytes);
            // Where only the server is heard its client is any of those that it names.
            let rank = heard.conversation.rank.unwrap_or(mask.trailing_zeros());
            let size = heard.conversation.size.unwrap_or(0);
            self.observer = Observer::new(self.dialect, rank, size).map(|observer| (client, observer));
        }
        let Some((of, observer)) = &mut self.observer else { return };
        // Where several clients are in one stream each is told the same.
        let is_told = heard.conversation.is_mixed() && observer.has_heard(cmd.command, &begun.payload);
        if *of != client || !is_heard || is_told {
            return;
        }
        if begun.payload.len() as u64 != begun.len {
            item.meaning.push_str("; too long to be checked, as is all that follows");
            self.observer = None;
            return;
        }
        if let Err(error) = observer.hear(cmd.command, &begun.payload) {
            item.warnings.push(error);
            self.observer = None;
            return;
        }
        if let Some(tables) = observer.tables() {
            item.job = Some(tables.clone());
            self.tables = Some(tables);
        }
    }

    /// All clients are told the same (IMPI 5.4).
    fn compare(&mut self, client: Option<u32>, cmd: Cmd, begun: &Begun, item: &mut Item) {
        let Some(heard) = self.clients.get_mut(&client) else { return };
        let label = begun.payload.first_chunk().map_or(0, |label| u32::from_be_bytes(*label));
        let reply = (label, cmd.len, begun.checksum);
        match self.replies.get(heard.told_len) {
            Some(other) if *other != reply => {
                item.warnings.push("another client was told something else".to_owned())
            }
            None if self.replies.len() < REPLIES_MAX => self.replies.push(reply),
            _ => {}
        }
        heard.told_len += 1;
    }

    /// Takes in that somebody says nothing more.
    pub(super) fn handle_end(&mut self, way: Way, place: Place, told: &mut Told) {
        let (client, side) = ends(Some(way));
        self.finish_stream(client, side, Some(way), told);
        let Some(stream) = self.stream(client, side, Some(way), place, told) else { return };
        stream.is_over = true;
        let mut item = Item::new(Part::Startup, place, Some(way), END);
        item.meaning = "the connection is closed".to_owned();
        let has_ended = self.clients.get(&client).is_some_and(|heard| heard.conversation.has_client_fini());
        if side == Some(Side::Client) && !has_ended {
            item.warnings.push("without FINI: the client has failed".to_owned());
        }
        told.item(item);
    }

    /// The recording is over.
    pub(super) fn finish(&mut self, told: &mut Told) {
        let clients: Vec<Option<u32>> = self.clients.keys().copied().collect();
        for client in clients {
            let Some(number) = client else {
                self.finish_stream(None, None, None, told);
                continue;
            };
            let client = Party::Client(Some(number));
            let ways = [(client, Party::Server), (Party::Server, client)].map(|(from, to)| Way { from, to });
            for way in ways {
                self.finish_stream(Some(number), ends(Some(way)).1, Some(way), told);
            }
        }
    }

    /// No more octets come: what has begun and is not there is told.
    fn finish_stream(&mut self, client: Option<u32>, side: Option<Side>, way: Option<Way>, told: &mut Told) {
        while self.step(client, side, way, true, told) {}
        let Some(heard) = self.clients.get_mut(&client) else { return };
        let stream = &mut heard.streams[index(side)];
        if std::mem::replace(&mut stream.is_over, true) {
            return;
        }
        let (end, len) = (stream.held.end(), stream.held.len() as u64);
        if let Some(begun) = stream.begun.take() {
            let way = way.or(Some(unnumbered(begun.side)));
            let come = begun.len - begun.left;
            let what = match begun.unit {
                Unit::Command(cmd) => {
                    format!("{come} of the {} of {cmd}", count(begun.len, "octet"), cmd = cmd.command)
                }
                _ => format!("{come} of the {} of a key", count(begun.len, "octet")),
            };
            told.damage(Part::Startup, end, way, what);
        } else if len > 0 {
            told.damage(Part::Startup, end, way, format!("{} of a command, 8 needed", count(len, "octet")));
        }
    }
}

impl Begun {
    fn take(&mut self, held: &mut Held) {
        let len = self.left.min(held.len() as u64) as usize;
        let octets = &held.octets()[..len];
        let room = PAYLOAD_MAX - self.payload.len();
        self.payload.extend_from_slice(&octets[..len.min(room)]);
        self.checksum =
            octets.iter().fold(self.checksum, |sum, octet| (sum ^ u64::from(*octet)).wrapping_mul(PRIME));
        held.take(len);
        self.left -= len as u64;
    }
}

/// FNV-1a, to compare long replies without keeping them.
const CHECKSUM: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The recorder's number of the client, and who speaks.
fn ends(way: Option<Way>) -> (Option<u32>, Option<Side>) {
    match way {
        Some(Way { from: Party::Client(number), .. }) => (number, Some(Side::Client)),
        Some(Way { to: Party::Client(number), .. }) => (number, Some(Side::Server)),
        _ => (None, None),
    }
}

fn index(side: Option<Side>) -> usize {
    usize::from(side == Some(Side::Server))
}

/// The ends of what is said in a stream without marks.
fn unnumbered(side: Side) -> Way {
    let client = Party::Client(None);
    match side {
        Side::Client => Way { from: client, to: Party::Server },
        Side::Server => Way { from: Party::Server, to: client },
    }
}
