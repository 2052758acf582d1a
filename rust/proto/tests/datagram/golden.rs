//! Every vector of datagrams in tests/golden, parsed and emitted.

use mpjdev_proto::datagram::error::PacketError;
use mpjdev_proto::datagram::extension::Extension;
use mpjdev_proto::datagram::header::Mode;
use mpjdev_proto::datagram::layout::{FLAGS, HEAD_LEN_MAX, HEADER_LEN, TRAILER_LEN};
use mpjdev_proto::datagram::packet::{Packet, checksum};

use crate::vectors::{self, Described, Vector};

fn parse<'a>(vector: &Vector, octets: &'a [u8]) -> Result<(Packet, &'a [u8]), PacketError> {
    if vector.is_reliable {
        return Packet::parse(octets);
    }
    let (header, data) = mpjdev_unet::parse(octets)?;
    Ok((Packet { header, extension: Extension::default() }, data))
}

fn emit(vector: &Vector, packet: &Packet, data: &[u8], octets: &mut [u8]) -> Result<usize, PacketError> {
    if vector.is_reliable {
        packet.emit(data, octets)
    } else {
        mpjdev_unet::emit(&packet.header, data, octets)
    }
}

/// The name of an error in a description.
fn words(error: PacketError) -> String {
    let kebab = |field: &str| field.replace(' ', "-");
    match error {
        PacketError::Cut { field, .. } => format!("cut {}", kebab(field)),
        PacketError::NoNumbers => "no-numbers".to_owned(),
        PacketError::Mode { code } => format!("mode {code}"),
        PacketError::Lrank { lrank } => format!("lrank {lrank}"),
        PacketError::Len { found, .. } => format!("len {found}"),
        PacketError::Reserved { field, .. } => format!("reserved {field}"),
        PacketError::SackWords { count } => format!("sack-words {count}"),
        PacketError::WithoutSeq { field } => format!("without-seq {}", kebab(field)),
        PacketError::WithoutAck { field } => format!("without-ack {field}"),
        PacketError::Together { field, other } => format!("together {field} {}", kebab(other)),
        PacketError::NoBlock { what, block } => format!("no-block {what} {block}"),
        PacketError::Beyond { offset, len, total } => format!("beyond {offset} {len} {total}"),
        PacketError::Checksum { .. } => "checksum".to_owned(),
        PacketError::Capacity { len, .. } => format!("capacity {len}"),
    }
}

fn sound(vectors: &[Vector]) -> impl Iterator<Item = (&Vector, usize, &Described, Packet)> {
    vectors.iter().flat_map(|vector| {
        let packets = vector.datagrams.iter().enumerate();
        packets.filter_map(move |(k, d)| d.what.as_ref().ok().map(|packet| (vector, k, d, *packet)))
    })
}

/// Proves that every field has its offset of the tables, in both kinds of packets.
#[test]
fn every_packet_parses_as_described() {
    let vectors = vectors::all();
    let mut count = 0;
    for (vector, k, described, packet) in sound(&vectors) {
        let (found, data) =
            parse(vector, &described.octets).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        assert_eq!(found, packet, "{} packet {k}", vector.name);
        let end = described.octets.len() - packet.trailer_len();
        assert_eq!(data, &described.octets[end - packet.header.len as usize..end], "{}", vector.name);
        count += 1;
    }
    assert!(count >= 45, "only {count} packets found");
}

/// Proves that emit writes every octet, and that a buffer shorter by one octet is refused.
#[test]
fn every_canonical_packet_is_emitted_as_recorded() {
    let vectors = vectors::all();
    let mut count = 0;
    for (vector, k, described, packet) in sound(&vectors).filter(|(vector, ..)| vector.canonical) {
        let (_, data) = parse(vector, &described.octets).expect("a packet");
        let len = described.octets.len();
        let mut octets = vec![0xcc; len + 3];
        assert_eq!(emit(vector, &packet, data, &mut octets), Ok(len), "{} packet {k}", vector.name);
        assert_eq!(octets[..len], described.octets, "{} packet {k}", vector.name);
        assert_eq!(octets[len..], [0xcc; 3]);

        octets.fill(0xcc);
        let capacity = len - 1;
        let refused = emit(vector, &packet, data, &mut octets[..capacity]);
        assert_eq!(refused, Err(PacketError::Capacity { len, capacity }));
        assert!(octets.iter().all(|octet| *octet == 0xcc), "a failed call writes nothing");
        count += 1;
    }
    assert!(count >= 43, "only {count} packets found");
}

/// Proves that head, data and checksum emitted apart equal the whole packet, for gathering senders.
#[test]
fn packet_emitted_in_parts_equals_the_whole() {
    let vectors = vectors::all();
    for (vector, k, described, packet) in sound(&vectors).filter(|(vector, ..)| vector.is_reliable) {
        let (_, data) = parse(vector, &described.octets).expect("a packet");
        let mut head = [0xcc; HEAD_LEN_MAX];
        let head_len = packet.emit_head(&mut head).expect("room for all blocks");
        assert_eq!(head_len, packet.head_len());
        let mut octets = [&head[..head_len], data].concat();
        if packet.extension.checked {
            octets.extend(checksum([&head[..head_len], data]).to_be_bytes());
        }
        assert_eq!(octets, described.octets, "{} packet {k}", vector.name);
    }
}

/// Proves that each damaged packet is refused with the error of its damage.
#[test]
fn every_damaged_packet_is_refused_with_its_error() {
    let mut count = 0;
    for vector in &vectors::all() {
        for (k, described) in vector.datagrams.iter().enumerate() {
            let Err(expected) = &described.what else { continue };
            match parse(vector, &described.octets) {
                Ok(found) => panic!("{} datagram {k} should be {expected}: {found:?}", vector.name),
                Err(error) => assert_eq!(&words(error), expected, "{} datagram {k}: {error}", vector.name),
            }
            count += 1;
        }
    }
    assert!(count >= 50, "only {count} damaged packets found");
}

/// Proves that every prefix of a packet and every packet with an additional octet is refused.
#[test]
fn packet_shorter_or_longer_than_its_datagram_is_refused() {
    let vectors = vectors::all();
    for (vector, k, described, _) in sound(&vectors) {
        for cut in 0..described.octets.len() {
            let found = parse(vector, &described.octets[..cut]);
            assert!(found.is_err(), "{} packet {k} cut to {cut}: {found:?}", vector.name);
        }
        let longer = [&described.octets[..], &[0]].concat();
        assert!(parse(vector, &longer).is_err(), "{} packet {k}", vector.name);
    }
}

/// Proves that a checked packet with any one bit changed is refused.
#[test]
fn changed_bit_of_a_checked_packet_is_refused() {
    let vectors = vectors::all();
    let mut count = 0;
    for (_, _, described, packet) in sound(&vectors).filter(|(.., packet)| packet.extension.checked) {
        for bit in 0..described.octets.len() * 8 {
            let mut octets = described.octets.clone();
            octets[bit / 8] ^= 1 << (bit % 8);
            let found = Packet::parse(&octets);
            assert!(found.is_err(), "bit {bit} of {packet:?}");
            count += 1;
        }
    }
    assert!(count > 8 * 3 * (HEADER_LEN + TRAILER_LEN), "only {count} bits");
}

/// Proves that the vectors include every mode, flag and block.
#[test]
fn vectors_cover_every_mode_and_flag() {
    let vectors = vectors::all();
    let packets: Vec<Packet> = sound(&vectors).map(|(.., packet)| packet).collect();
    for mode in Mode::ALL {
        assert!(packets.iter().any(|packet| packet.header.mode == mode), "{mode:?}");
    }
    for (bit, name, _) in FLAGS {
        assert!(packets.iter().any(|packet| packet.extension.flags() & bit != 0), "{name}");
    }
}

/// Proves that emit refuses every packet that parse refuses.
#[test]
fn packet_that_parse_would_refuse_is_not_emitted() {
    let mut octets = [0xcc; 64];
    let mut packet = Packet { extension: Extension::new(1, 2), ..Packet::default() };
    assert_eq!(packet.emit(&[], &mut octets), Err(PacketError::NoNumbers));
    assert_eq!(mpjdev_unet::emit(&packet.header, &[], &mut octets), Err(PacketError::NoNumbers));
    packet.header.numbers.seq = Some(Default::default());
    packet.header.lrank = 2048;
    assert_eq!(packet.emit(&[], &mut octets), Err(PacketError::Lrank { lrank: 2048 }));
    packet.header.lrank = 2047;
    assert_eq!(packet.emit(b"a", &mut octets), Err(PacketError::Len { len: 0, found: 1 }));
    assert_eq!(
        mpjdev_unet::emit(&packet.header, b"a", &mut octets),
        Err(PacketError::Len { len: 0, found: 1 })
    );
    packet.extension.nak = true;
    assert_eq!(packet.emit_head(&mut octets), Err(PacketError::WithoutAck { field: "NAK" }));
    assert_eq!(octets, [0xcc; 64]);
}
