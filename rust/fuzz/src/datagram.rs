//! Target of the datagram parsers.

use mpjdev_proto::datagram::error::PacketError;
use mpjdev_proto::datagram::header::Numbers;
use mpjdev_proto::datagram::layout::{
    ACK_HIGH_FIELD, FIXED_LEN, FLAGS_FIELD, HEADER_LEN, LEN_FIELD, MODE_FIELD, MODE_SHIFT, NUMBERS_FIELD,
    SACK_WORDS_MAX, SEQ_HIGH_FIELD, TRAILER_LEN,
};
use mpjdev_proto::datagram::packet::{Packet, checksum};

/// Parses the octets as a datagram of both protocols. A reliable one with a wrong CRC32C is parsed again with
/// the right one.
///
/// Invariants: an accepted datagram is whole and valid, and emitting it gives the same octets, except for
/// invalid numbers. An error has the value of its field. Both protocols parse the same header.
pub fn datagram(input: &[u8]) {
    let unet = unet(input);
    let mut octets = input.to_vec();
    let reliable = match reliable(&octets) {
        Err(PacketError::Checksum { found, computed }) => {
            let end = octets.len() - TRAILER_LEN;
            assert_eq!(octets[end..], found.to_be_bytes());
            assert_eq!(checksum([&octets[..end]]), computed);
            octets[end..].copy_from_slice(&computed.to_be_bytes());
            let again = reliable(&octets);
            assert!(!matches!(again, Err(PacketError::Checksum { .. })), "{again:?}");
            again
        }
        other => other,
    };
    // The extension is not empty, so a datagram cannot be valid in both protocols.
    assert!(unet.is_err() || reliable.is_err());
}

fn unet(octets: &[u8]) -> Result<(), PacketError> {
    let (header, data) = mpjdev_unet::parse(octets).inspect_err(|error| check(octets, error))?;
    assert_eq!((header.len as usize, HEADER_LEN + data.len()), (data.len(), octets.len()));
    let mut again = vec![0xcc; octets.len()];
    assert_eq!(mpjdev_unet::emit(&header, data, &mut again), Ok(octets.len()));
    assert_eq!(again, expected(octets, header.numbers, false));
    Ok(())
}

fn reliable(octets: &[u8]) -> Result<(), PacketError> {
    let (packet, data) = Packet::parse(octets).inspect_err(|error| check(octets, error))?;
    assert_eq!(packet.head_len() + data.len() + packet.trailer_len(), octets.len());
    assert_eq!(packet.header.len as usize, data.len());
    assert_eq!(packet.extension.flags().to_be_bytes(), octets[FLAGS_FIELD]);
    assert_eq!(packet.check(), Ok(()));
    let mut again = vec![0xcc; octets.len()];
    assert_eq!(packet.emit(data, &mut again), Ok(octets.len()));
    let mut expected = expected(octets, packet.header.numbers, true);
    if packet.extension.checked {
        // The checksum covered invalid numbers, which are emitted as 0.
        let end = octets.len() - TRAILER_LEN;
        let crc = checksum([&expected[..end]]);
        expected[end..].copy_from_slice(&crc.to_be_bytes());
    }
    assert_eq!(again, expected);
    Ok(())
}

/// The octets with 0 for invalid numbers.
fn expected(octets: &[u8], numbers: Numbers, is_reliable: bool) -> Vec<u8> {
    let mut octets = octets.to_vec();
    if numbers.seq.is_none() {
        octets[0..2].fill(0);
        if is_reliable {
            octets[SEQ_HIGH_FIELD].fill(0);
        }
    }
    if numbers.ack.is_none() {
        octets[2..4].fill(0);
        if is_reliable {
            octets[ACK_HIGH_FIELD].fill(0);
        }
    }
    octets
}

/// Compares the numbers of an error with the octets.
fn check(octets: &[u8], error: &PacketError) {
    match *error {
        PacketError::Cut { end, len, .. } => assert!(len == octets.len() && len < end, "{error}"),
        PacketError::NoNumbers => assert_eq!((octets[NUMBERS_FIELD.start] | octets[2]) & 0x80, 0),
        PacketError::Mode { code } => {
            assert_eq!(octets[MODE_FIELD.start] >> (MODE_SHIFT - 24), code);
            assert!(code > 12);
        }
        PacketError::Len { len, found } => {
            assert_eq!(len.to_be_bytes(), octets[LEN_FIELD]);
            assert!(found != len as usize && found <= octets.len(), "{error}");
        }
        PacketError::Beyond { offset, len, total } => {
            assert!(offset.checked_add(u64::from(len)).is_none_or(|end| end > total), "{error}");
        }
        PacketError::SackWords { count } => {
            assert!(count == 0 || usize::from(count) > SACK_WORDS_MAX);
            assert_eq!(count.to_be_bytes(), octets[FIXED_LEN..FIXED_LEN + 2]);
        }
        PacketError::Reserved { value, .. } => assert_ne!(value, 0),
        PacketError::Checksum { found, computed } => assert_ne!(found, computed),
        PacketError::WithoutSeq { .. } => assert_eq!(octets[NUMBERS_FIELD.start] & 0x80, 0),
        PacketError::WithoutAck { .. } => assert_eq!(octets[2] & 0x80, 0),
        PacketError::Together { field, .. } => assert!(["FIN", "RST"].contains(&field)),
        PacketError::NoBlock { .. } => {}
        PacketError::Lrank { .. } | PacketError::Capacity { .. } => panic!("{error}: nothing was written"),
    }
}
