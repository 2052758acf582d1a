//! Target of the parser of IMPI packets.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::layout::{DRAFT_TAG_FIELD, HEADER_LEN, RESERVED_FIELD, TYPE_FIELD};
use mpjdev_proto::impi::packet::{Packet, PacketError};

/// Parses each 128 octets as a header, in both dialects.
///
/// Invariants: emitting an accepted header gives the same octets, except for reserved ones. An error has the
/// value of its field. Both dialects parse the same, except for the tag.
pub fn packet(input: &[u8]) {
    for octets in input.chunks_exact(HEADER_LEN) {
        let octets = octets.try_into().expect("a header");
        let [later, draft] = [Dialect::Final, Dialect::Draft].map(|dialect| parse(octets, dialect));
        if let (Some(later), Some(draft)) = (later, draft) {
            assert_eq!(Packet { lsrank: 0, tag: 0, ..later }, Packet { lsrank: 0, tag: 0, ..draft });
        }
    }
}

fn parse(octets: &[u8; HEADER_LEN], dialect: Dialect) -> Option<Packet> {
    let packet = match Packet::parse(octets, dialect) {
        Ok(packet) => packet,
        Err(PacketError::Type { code, dialect: refused }) => {
            assert_eq!(
                (code.to_be_bytes(), refused),
                (octets[TYPE_FIELD].try_into().expect("four"), dialect)
            );
            assert!(code > 6);
            return None;
        }
        Err(PacketError::Tag { tag }) => {
            assert_eq!(tag.to_be_bytes(), octets[DRAFT_TAG_FIELD]);
            assert!(dialect == Dialect::Draft && i32::try_from(tag).is_err());
            return None;
        }
    };
    let mut again = [0xcc; HEADER_LEN];
    packet.emit(dialect, &mut again);
    let mut expected = *octets;
    expected[RESERVED_FIELD].fill(0);
    if dialect == Dialect::Draft && !packet.kind.has_data() && packet.tag == 0 {
        expected[DRAFT_TAG_FIELD].fill(0);
    }
    assert_eq!(again, expected);
    assert!(packet.data_len() == 0 || packet.kind.has_data());
    Some(packet)
}
