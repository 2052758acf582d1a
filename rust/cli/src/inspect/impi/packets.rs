//! The packets of the mesh: cut out of their streams, told one by one.

use std::collections::{BTreeMap, BTreeSet};

use mpjdev_device::transport::tcp::mesh::handshake::{self as greeting, REFUSAL};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::ending::{EndOfStream, Ending};
use mpjdev_proto::impi::layout::{HEADER_LEN, TYPE_FIELD};
use mpjdev_proto::impi::marker::is_marked;
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::startup::Tables;

use super::book::{Agreed, Book};
use super::data::{Data, KEPT_MAX};
use super::held::Held;
use super::item::{
    END, Field, GREETING, HANDSHAKE, Item, PROOF, Part, Party, Place, Told, Value, Way, count,
};
use super::recording::Block;

/// Octets of the number that opens a connection (IMPI 6).
const HANDSHAKE_LEN: usize = greeting::NUMBER_LEN;
/// Directions that are followed.
const WAYS_MAX: usize = 4096;

/// All packets of a recording.
#[derive(Debug)]
pub(super) struct Packets {
    dialect: Dialect,
    streams: BTreeMap<Option<Way>, Stream>,
    book: Book,
    /// Processes, with the host that they speak for.
    hosts: BTreeMap<mpjdev_proto::impi::Proc, Party>,
    /// Those who have said anything.
    heard: BTreeSet<Party>,
    /// Whether the recorder has written down both directions for certain.
    hears_all: bool,
    is_crowded: bool,
}

/// One direction of a connection.
#[derive(Debug)]
struct Stream {
    held: Held,
    /// A packet whose data come.
    body: Option<Body>,
    has_begun: bool,
    /// Greetings and proofs of hosts of ours, in front of the first packet.
    greetings: usize,
    proofs: usize,
    has_packets: bool,
    is_over: bool,
    ending: Ending,
}

#[derive(Debug)]
struct Body {
    place: Place,
    packet: Packet,
    left: u64,
    kept: Vec<u8>,
}

impl Packets {
    pub(super) fn new(dialect: Dialect, agreed: Agreed) -> Packets {
        Packets {
            dialect,
            streams: BTreeMap::new(),
            book: Book::new(dialect, agreed),
            hosts: BTreeMap::new(),
            heard: BTreeSet::new(),
            hears_all: false,
            is_crowded: false,
        }
    }

    /// Start-up was heard.
    pub(super) fn learn(&mut self, tables: &Tables) {
        self.book.learn(tables);
    }

    /// What [`Book::open`] says.
    pub(super) fn open(&self) -> [u64; 3] {
        self.book.open()
    }

    /// The stream of this direction; none if there are too many, which is told once.
    fn stream(&mut self, way: Option<Way>, place: Place, told: &mut Told) -> Option<&mut Stream> {
        if self.streams.len() >= WAYS_MAX && !self.streams.contains_key(&way) {
            if !std::mem::replace(&mut self.is_crowded, true) {
                told.damage(Part::Packets, place, way, format!("more than {WAYS_MAX} directions"));
            }
            return None;
        }
        let new = || Stream {
            held: Held::default(),
            body: None,
            has_begun: false,
            greetings: 0,
            proofs: 0,
            has_packets: false,
            is_over: false,
            ending: Ending::new(self.dialect),
        };
        Some(self.streams.entry(way).or_insert_with(new))
    }

    /// Takes in the number that opens a connection.
    pub(super) fn handle_handshake(
        &mut self,
        way: Option<Way>,
        place: Place,
        octets: &[u8],
        told: &mut Told,
    ) {
        let Some(stream) = self.stream(way, place, told) else { return };
        if stream.is_over {
            return;
        }
        let has_begun = std::mem::replace(&mut stream.has_begun, true);
        let Ok(number) = octets.try_into().map(u32::from_be_bytes) else {
            stream.is_over = true;
            return told.damage(
                Part::Packets,
                place,
                way,
                format!("{} of a handshake, 4 needed", count(octets.len() as u64, "octet")),
            );
        };
        let mut item = Item::new(Part::Packets, place, way, HANDSHAKE);
        item.fields.push(Field::number("number", number));
        item.meaning = format!("host {number} has connected");
        if has_begun {
            item.warnings.push("not the first that comes from there".to_owned());
        }
        if let Some(Way { from: Party::Host(from), to: Party::Host(to) }) = way {
            if from != number {
                item.warnings.push(format!("host {from} calls itself {number}"));
            }
            if from <= to {
                item.warnings.push("the host with the higher number connects".to_owned());
            }
        }
        self.heard.extend(way.map(|way| way.from));
        told.item(item);
    }

    /// Takes in octets of a stream.
    pub(super) fn handle_octets(&mut self, way: Option<Way>, place: Place, octets: &[u8], told: &mut Told) {
        let dialect = self.dialect;
        let Some(stream) = self.stream(way, place, told).filter(|stream| !stream.is_over) else { return };
        stream.held.push(place, octets);
        // An unmarked stream has had its handshake cut off.
        if !stream.has_begun
            && let Some(Way { from: Party::Host(from), .. }) = way
        {
            let Some(word) = stream.held.octets().first_chunk::<HANDSHAKE_LEN>().copied() else { return };
            let number = u32::from_be_bytes(word);
            if number == from && PacketType::from_code(number, dialect).is_none() {
                let place = stream.held.place();
                stream.held.take(HANDSHAKE_LEN);
                self.handle_handshake(way, place, &word, told);
            }
        }
        while self.step(way, told) {}
    }

    /// Makes something of the octets of a stream; false when more are needed.
    fn step(&mut self, way: Option<Way>, told: &mut Told) -> bool {
        let dialect = self.dialect;
        let Some(stream) = self.streams.get_mut(&way).filter(|stream| !stream.is_over) else { return false };
        stream.has_begun = true;
        if let Some(body) = &mut stream.body {
            body.take(&mut stream.held);
            if body.left > 0 {
                return false;
            }
            let body = stream.body.take();
            body.into_iter().for_each(|body| self.packet(way, &body, None, told));
            return true;
        }
        if let Some(opening) = stream.opening(way.is_none()) {
            return self.open_with(way, opening, told);
        }
        let Some(header) = stream.held.octets().first_chunk::<HEADER_LEN>() else { return false };
        let place = stream.held.place();
        stream.has_packets = true;
        match Packet::parse(header, dialect) {
            Ok(packet) => {
                stream.held.take(HEADER_LEN);
                let left = u64::from(packet.data_len());
                stream.body = Some(Body { place, packet, left, kept: Vec::new() });
                true
            }
            Err(error) => {
                stream.is_over = true;
                told.damage(Part::Packets, place, way, error.to_string());
                false
            }
        }
    }

    /// Takes in what a host of ours says before its packets; false when more octets are needed.
    fn open_with(&mut self, way: Option<Way>, opening: Opening, told: &mut Told) -> bool {
        let Some(stream) = self.streams.get_mut(&way) else { return false };
        let place = stream.held.place();
        let Some(octets) = stream.held.octets().get(..opening.len()) else { return false };
        let is_refusal = octets == REFUSAL;
        stream.held.take(opening.len());
        let mut item = Item::new(Part::Packets, place, way, opening.name());
        match opening {
            Opening::Greeting => {
                stream.greetings += 1;
                item.meaning = "a host of mpjdev, and a number that is used once".to_owned();
            }
            Opening::Proof => {
                stream.proofs += 1;
                item.meaning = "that it has the key of the job".to_owned();
                if is_refusal {
                    item.meaning = "the other's is refused".to_owned();
                    item.warnings.push("the hosts have other keys, or belong to other jobs".to_owned());
                }
            }
        }
        self.heard.extend(way.map(|way| way.from));
        told.item(item);
        true
    }

    /// Takes in a packet by itself.
    pub(super) fn handle_block(&mut self, block: &Block, told: &mut Told) {
        let (way, place) = (Some(block.way), block.place);
        self.hears_all |= block.data_len.is_some();
        let Some(stream) = self.stream(way, place, told) else { return };
        stream.has_begun = true;
        let Ok(header) = block.header.as_slice().try_into() else {
            let len = count(block.header.len() as u64, "octet");
            return told.damage(Part::Packets, place, way, format!("{len} of a header, {HEADER_LEN} needed"));
        };
        let packet = match Packet::parse(header, self.dialect) {
            Ok(packet) => packet,
            Err(error) => return told.damage(Part::Packets, place, way, error.to_string()),
        };
        let kept = block.data[..block.data.len().min(KEPT_MAX)].to_vec();
        self.packet(way, &Body { place, packet, left: 0, kept }, Some(block.data_len), told);
    }

    /// Tells of a packet. `recorded`: what a recorder says of the length of its data.
    fn packet(&mut self, way: Option<Way>, body: &Body, recorded: Option<Option<u64>>, told: &mut Told) {
        let Body { place, packet, .. } = body;
        let mut item = Item::new(Part::Packets, *place, way, name(packet.kind));
        item.fields = fields(packet, self.dialect);
        let number = told.next_number();
        let hears_both = self.hears_all || way.is_some_and(|way| self.heard.contains(&way.to));
        let verdict = self.book.handle(number, packet, hears_both);
        (item.meaning, item.warnings) = (verdict.meaning, verdict.warnings);
        if let Some(way) = way {
            self.heard.insert(way.from);
            self.check_host(way, packet, &mut item);
        }
        if let Some(stream) = self.streams.get_mut(&way)
            && let Err(error) = stream.ending.handle_packet(packet.kind)
            && way.is_some()
        {
            item.warnings.push(error.to_string());
        }
        let len = u64::from(packet.data_len());
        if let Some(Some(recorded)) = recorded
            && recorded != len
        {
            let what = if packet.kind.has_data() { "len is" } else { "a packet of this type has" };
            item.warnings
                .push(format!("{what} {len}, the recording has {} of data", count(recorded, "octet")));
        }
        if len > 0 {
            // The rest of a message begins nothing.
            let is_rest = packet.kind == PacketType::Data && len < packet.msglen;
            let msglen =
                (!is_rest && body.kept.len() as u64 == len.min(KEPT_MAX as u64)).then_some(packet.msglen);
            item.data = Some(Data::new(len, &body.kept, msglen));
        }
        told.item(item);
    }

    /// A process speaks for one host only.
    fn check_host(&mut self, way: Way, packet: &Packet, item: &mut Item) {
        if packet.kind == PacketType::Fini {
            return;
        }
        for (proc, party) in [(packet.src, way.from), (packet.dest, way.to)] {
            match self.hosts.get(&proc) {
                Some(other) if *other != party => {
                    item.warnings
                        .push(format!("{} is a process of {other}, not of {party}", Value::Proc(proc)));
                }
                None if self.hosts.len() < WAYS_MAX => drop(self.hosts.insert(proc, party)),
                _ => {}
            }
        }
    }

    /// Takes in that somebody says nothing more.
    pub(super) fn handle_end(&mut self, way: Way, place: Place, told: &mut Told) {
        self.finish_stream(Some(way), told);
        let Some(stream) = self.stream(Some(way), place, told) else { return };
        stream.is_over = true;
        let mut item = Item::new(Part::Packets, place, Some(way), END);
        item.meaning = "end of stream".to_owned();
        if stream.ending.handle_end_of_stream() == EndOfStream::Died {
            item.warnings.push(format!("without Fini: {} has died", way.from));
        }
        told.item(item);
    }

    /// The recording is over.
    pub(super) fn finish(&mut self, told: &mut Told) {
        let ways: Vec<Option<Way>> = self.streams.keys().copied().collect();
        ways.into_iter().for_each(|way| self.finish_stream(way, told));
    }

    /// No more octets come in this direction: what has begun and is not there is told.
    fn finish_stream(&mut self, way: Option<Way>, told: &mut Told) {
        let Some(stream) = self.streams.get_mut(&way).filter(|stream| !stream.is_over) else { return };
        stream.is_over = true;
        let (end, len) = (stream.held.end(), stream.held.len() as u64);
        if let Some(body) = stream.body.take() {
            let data_len = u64::from(body.packet.data_len());
            let come = data_len - body.left;
            self.packet(way, &body, None, told);
            told.damage(Part::Packets, end, way, format!("{come} of {} of data", count(data_len, "octet")));
        } else if len > 0 {
            let opening = stream.opening(way.is_none());
            let (name, needed) =
                opening.map_or(("header", HEADER_LEN), |opening| (opening.name(), opening.len()));
            let what = format!("{} of a {name}, {needed} needed", count(len, "octet"));
            told.damage(Part::Packets, end, way, what);
        }
    }
}

impl Stream {
    /// What hosts of ours say before their packets, if that comes next: each a greeting and a proof. `hears_both`: it is the
    /// stream of both.
    fn opening(&self, hears_both: bool) -> Option<Opening> {
        if self.has_packets {
            return None;
        }
        let octets = self.held.octets();
        let greets = octets.starts_with(&greeting::GREETING) || greeting::GREETING.starts_with(octets);
        let greetings_max = if hears_both { 2 } else { 1 };
        if greets && !octets.is_empty() && self.proofs == 0 && self.greetings < greetings_max {
            Some(Opening::Greeting)
        } else {
            (self.proofs < self.greetings).then_some(Opening::Proof)
        }
    }
}

/// What hosts of ours say before their packets.
#[derive(Clone, Copy, Debug)]
enum Opening {
    Greeting,
    Proof,
}

impl Opening {
    fn len(self) -> usize {
        match self {
            Opening::Greeting => greeting::GREETING_LEN,
            Opening::Proof => greeting::PROOF_LEN,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Opening::Greeting => GREETING,
            Opening::Proof => PROOF,
        }
    }
}

impl Body {
    fn take(&mut self, held: &mut Held) {
        let len = self.left.min(held.len() as u64) as usize;
        let room = KEPT_MAX - self.kept.len();
        self.kept.extend_from_slice(&held.octets()[..len.min(room)]);
        held.take(len);
        self.left -= len as u64;
    }
}

/// The type's name.
fn name(kind: PacketType) -> &'static str {
    match kind {
        PacketType::Data => "Data",
        PacketType::DataSync => "DataSync",
        PacketType::ProtoAck => "ProtoAck",
        PacketType::SyncAck => "SyncAck",
        PacketType::Cancel => "Cancel",
        PacketType::CancelYes => "CancelYes",
        PacketType::CancelNo => "CancelNo",
        PacketType::Fini => "Fini",
    }
}

/// All fields of a header, and which of them mean something (IMPI 7.2).
fn fields(packet: &Packet, dialect: Dialect) -> Vec<Field> {
    use PacketType::{Cancel, CancelNo, CancelYes, Data, Fini, SyncAck};
    let has_data = packet.kind.has_data();
    let is_rest = packet.kind == Data && u64::from(packet.len) < packet.msglen;
    let has_srqid = match packet.kind {
        Data => is_rest || packet.srqid != 0,
        kind => has_data || matches!(kind, SyncAck | Cancel | CancelYes | CancelNo),
    };
    let has_drqid = is_rest || (packet.kind == SyncAck && packet.drqid != 0);
    let has_ends = packet.kind != Fini;
    let has_lsrank = has_data && dialect == Dialect::Final;
    let all = [
        ("src", Value::Proc(packet.src), has_ends),
        ("dest", Value::Proc(packet.dest), has_ends),
        ("srqid", Value::Number(packet.srqid.into()), has_srqid),
        ("drqid", Value::Number(packet.drqid.into()), has_drqid),
        ("lsrank", Value::Number(packet.lsrank.into()), has_lsrank),
        ("tag", Value::Number(packet.tag.into()), has_data),
        ("cid", Value::Number(packet.cid.into()), has_data),
        ("len", Value::Number(packet.len.into()), has_data),
        ("msglen", Value::Number(packet.msglen.into()), has_data),
        ("seqnum", Value::Number(packet.seqnum.into()), false),
        ("count", Value::Number(packet.count.into()), false),
        ("dtype", Value::Number(packet.dtype.into()), false),
    ];
    all.into_iter().map(|(name, value, means)| Field { name, value, means }).collect()
}

/// Whether a stream whose first octets are these opens with the number of a host. A header's first four octets are its
/// type; where a number could be one as well, what makes sense as headers decides.
pub(super) fn opens_with_handshake(head: &[u8], dialect: Dialect) -> bool {
    let Some(word) = head.first_chunk().map(|word| u32::from_be_bytes(*word)) else { return false };
    match word {
        // Host 0 connects to nobody.
        0 => false,
        _ if head[HANDSHAKE_LEN..].starts_with(&greeting::GREETING) => true,
        _ if PacketType::from_code(word, dialect).is_none() => {
            word <= mpjdev_proto::impi::startup::layout::HOSTS_MAX
        }
        _ if head.len() == HANDSHAKE_LEN => true,
        _ => sense(&head[HANDSHAKE_LEN..], dialect) > sense(head, dialect),
    }
}

/// How much sense octets make as packets: one point for each pid of a usual size; none where they make no sense at all.
fn sense(mut octets: &[u8], dialect: Dialect) -> Option<u32> {
    let mut points = 0;
    for _ in 0..8 {
        let Some(header) = octets.first_chunk::<HEADER_LEN>() else { break };
        let packet = Packet::parse(header, dialect).ok()?;
        if packet.kind.has_data() && u64::from(packet.len) > packet.msglen {
            return None;
        }
        let is_usual = |pid: i64| i32::try_from(pid).is_ok() || is_marked(dialect, pid);
        points += u32::from(is_usual(packet.src.pid)) + u32::from(is_usual(packet.dest.pid));
        octets = octets.get(HEADER_LEN + packet.data_len() as usize..).unwrap_or(&[]);
    }
    Some(points)
}

const _: () = assert!(TYPE_FIELD.end == HANDSHAKE_LEN);
