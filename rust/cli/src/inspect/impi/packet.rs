//! The meaning of a packet between hosts, from its header alone.

use mpjdev_proto::context::{CONTROL_BIT, SHADOW_BIT};
use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::{TAG_REDUCE, collective_operation};
use mpjdev_proto::impi::message_tx::RTS_DATA_LEN;
use mpjdev_proto::impi::packet::{Packet, PacketType};

use super::item::Item;
use super::value::Value;
use crate::inspect::text::count;

/// The terms of a job, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Most octets of user data in a packet.
    pub maxdatalen: Option<u32>,
    /// Packets that one ProtoAck acknowledges.
    pub ackmark: Option<u32>,
    /// Largest tag.
    pub tag_ub: Option<u32>,
}

/// The name of a packet type.
pub(super) fn name(kind: PacketType) -> &'static str {
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

/// Whether a packet carries a later part of a long message.
pub(super) fn is_rest(packet: &Packet) -> bool {
    packet.kind == PacketType::Data && u64::from(packet.len) < packet.msglen
}

/// Describes a packet: its fields, its meaning, and its violations of the protocol.
pub(super) fn describe(packet: &Packet, dialect: Dialect, terms: &Terms, item: &mut Item) {
    fields(packet, dialect, item);
    item.meaning = meaning(packet, dialect, terms);
    if packet.kind.has_data() {
        check(packet, dialect, terms, item);
    }
}

/// Adds the fields of a header and separates those that mean something from the others (IMPI 7.2).
fn fields(packet: &Packet, dialect: Dialect, item: &mut Item) {
    use PacketType::{Cancel, CancelNo, CancelYes, Data, Fini, SyncAck};
    let has_data = packet.kind.has_data();
    let is_rest = is_rest(packet);
    let has_srqid = match packet.kind {
        Data => is_rest || packet.srqid != 0,
        kind => has_data || matches!(kind, SyncAck | Cancel | CancelYes | CancelNo),
    };
    let has_drqid = is_rest || (packet.kind == SyncAck && packet.drqid != 0);
    let has_ends = packet.kind != Fini;
    let has_lsrank = has_data && dialect == Dialect::Final;
    let all = [
        ("src", Value::Process(packet.src), has_ends),
        ("dest", Value::Process(packet.dest), has_ends),
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
    for (name, value, has_meaning) in all {
        let fields = if has_meaning { &mut item.fields } else { &mut item.ignored };
        fields.0.push((name, value));
    }
}

fn meaning(packet: &Packet, dialect: Dialect, terms: &Terms) -> String {
    let (srqid, msglen) = (packet.srqid, count(packet.msglen, "octet"));
    let message = match packet.kind {
        PacketType::Fini => return "the host sends no more data".to_owned(),
        PacketType::ProtoAck => {
            return match terms.ackmark {
                Some(ackmark) => format!("acknowledges {}", count(ackmark, "packet")),
                None => "acknowledges ackmark packets".to_owned(),
            };
        }
        PacketType::SyncAck if packet.drqid == 0 => return format!("srqid {srqid} is matched"),
        PacketType::SyncAck => {
            return format!(
                "srqid {srqid} is matched; the rest of a long message names drqid {}",
                packet.drqid
            );
        }
        PacketType::Cancel => return format!("asks to cancel srqid {srqid}"),
        PacketType::CancelYes => return format!("srqid {srqid} is cancelled"),
        PacketType::CancelNo => return format!("srqid {srqid} is not cancelled"),
        PacketType::Data if is_rest(packet) => {
            return format!("{} of a long message of {msglen}", count(packet.len, "octet"));
        }
        PacketType::DataSync if u64::from(packet.len) < packet.msglen && packet.len == RTS_DATA_LEN => {
            format!("announces a message of {msglen}")
        }
        PacketType::DataSync if u64::from(packet.len) < packet.msglen => {
            format!("first packet of a long message of {msglen}")
        }
        PacketType::DataSync => format!("short synchronous message of {msglen}"),
        PacketType::Data if packet.msglen == 0 => "empty message".to_owned(),
        PacketType::Data => format!("short message of {msglen}"),
    };
    match subject(packet, dialect) {
        Some(subject) => format!("{subject}: {message}"),
        None => message,
    }
}

/// The operation that a message belongs to by its context and tag.
fn subject(packet: &Packet, dialect: Dialect) -> Option<&'static str> {
    let Packet { cid, tag, .. } = *packet;
    match dialect {
        Dialect::Draft => (tag < 0).then_some("collective"),
        Dialect::Final if cid & SHADOW_BIT != 0 => Some("second half of an mpjdev message"),
        Dialect::Final if cid & CONTROL_BIT != 0 => Some("between ranks of mpjdev"),
        Dialect::Final if cid % 2 == 1 => Some(collective_operation(tag).unwrap_or("collective")),
        Dialect::Final => (tag == TAG_REDUCE).then_some("perhaps reduce, which LAM sends on this cid"),
    }
}

fn check(packet: &Packet, dialect: Dialect, terms: &Terms, item: &mut Item) {
    let (len, msglen) = (packet.len, packet.msglen);
    if let Some(maxdatalen) = terms.maxdatalen.filter(|maxdatalen| len > *maxdatalen) {
        item.warn(format!("len {len} is above maxdatalen, {maxdatalen}"));
    }
    if u64::from(len) > msglen {
        item.warn(format!("len {len} is above msglen, {msglen}"));
    }
    if is_rest(packet) && len == 0 {
        item.warn("len is 0 in the middle of a message");
    }
    if dialect == Dialect::Draft {
        return;
    }
    if packet.tag < 0 {
        item.warn(format!("tag {} is negative", packet.tag));
    }
    if packet.lsrank < 0 {
        item.warn(format!("lsrank {} is negative", packet.lsrank));
    }
    let tag = i64::from(packet.tag);
    if let Some(tag_ub) = terms.tag_ub.filter(|tag_ub| tag > i64::from(*tag_ub)) {
        item.warn(format!("tag {tag} is above the largest of the job, {tag_ub}"));
    }
}
