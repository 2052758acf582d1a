//! Every vector of IMPI in tests/golden, parsed and emitted.

use mpjdev_proto::impi::layout::HEADER_LEN;
use mpjdev_proto::impi::packet::{Packet, PacketError, PacketType};
use mpjdev_proto::impi::{Dialect, Proc};

use crate::vectors;

/// Proves that every field of captured packets, and of the texts' structures, has its offset.
#[test]
fn every_packet_parses_as_described() {
    let mut count = 0;
    for vector in vectors::all() {
        for (k, described) in vector.packets.iter().enumerate() {
            let found = Packet::parse(&described.octets, vector.dialect);
            assert_eq!(found, Ok(described.packet), "{} packet {k}", vector.name);
            count += 1;
        }
    }
    assert!(count >= 120, "only {count} packets found");
}

/// Proves that a packet has all fields that LAM sets, and that emit writes every octet.
#[test]
fn every_canonical_packet_is_emitted_as_recorded() {
    let mut count = 0;
    for vector in vectors::all().into_iter().filter(|vector| vector.canonical) {
        for (k, described) in vector.packets.iter().enumerate() {
            let mut octets = [0xcc; HEADER_LEN];
            described.packet.emit(vector.dialect, &mut octets);
            assert_eq!(octets, described.octets, "{} packet {k}", vector.name);
            count += 1;
        }
    }
    assert!(count >= 115, "only {count} packets found");
}

/// Proves that headers of no dialect, or only of the other one, are refused with the wrong field.
#[test]
fn every_damaged_header_is_refused_with_its_field() {
    let mut count = 0;
    for vector in vectors::all() {
        let Some((octets, field, value)) = &vector.error else { continue };
        let (name, found) = match Packet::parse(octets, vector.dialect).expect_err(&vector.name) {
            PacketError::Type { code, dialect } => {
                assert_eq!(dialect, vector.dialect, "{}", vector.name);
                ("type", i64::from(code))
            }
            PacketError::Tag { tag } => ("tag", tag),
        };
        assert_eq!((name, found), (field.as_str(), *value), "{}", vector.name);
        count += 1;
    }
    assert!(count >= 5, "only {count} damaged headers found");
}

/// Proves that the len of 128 in LAM's packets without data is ignored.
#[test]
fn only_data_packets_have_data() {
    let mut ignored = 0;
    for described in vectors::all().iter().flat_map(|vector| &vector.packets) {
        let packet = described.packet;
        let has_data = matches!(packet.kind, PacketType::Data | PacketType::DataSync);
        assert_eq!(packet.data_len(), if has_data { packet.len } else { 0 });
        ignored += usize::from(!has_data && packet.len != 0);
    }
    assert!(ignored > 0, "no capture has a length to ignore");
}

/// Proves that the same octets are the same non-negative tag in both dialects (IMPI 7.1), and that the
/// draft's tag is signed.
#[test]
fn draft_tag_is_read_as_lsrank_and_tag_of_the_final_dialect() {
    let proc = Proc::default();
    for (tag, lsrank) in [(0, 0), (7, 0), (i32::MAX, 0), (-1, -1), (i32::MIN, -1)] {
        let mut octets = [0xcc; HEADER_LEN];
        Packet { tag, lsrank: 99, ..Packet::new(PacketType::Data, proc, proc) }
            .emit(Dialect::Draft, &mut octets);
        let draft = Packet::parse(&octets, Dialect::Draft).expect("a packet");
        assert_eq!((draft.tag, draft.lsrank), (tag, 0), "the draft has no lsrank");
        let other = Packet::parse(&octets, Dialect::Final).expect("a packet");
        assert_eq!((other.tag, other.lsrank), (tag, lsrank));
    }
}

/// Proves that src and dest are those of the packet, also in an answer (IMPI 7.2).
#[test]
fn reply_has_src_and_dest_swapped() {
    for vector in vectors::all() {
        let named = vector.packets.iter().filter(|d| d.packet.kind != PacketType::Fini);
        for one in named.clone() {
            for other in named.clone().filter(|other| other.from != one.from) {
                let ends = (other.packet.dest, other.packet.src);
                assert_eq!((one.packet.src, one.packet.dest), ends, "{}", vector.name);
            }
        }
    }
}
