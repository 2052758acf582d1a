//! The packet: parsed from, and emitted into, the 128 octets of its header.
//!
//! ```text
//!        0               4               8                               16
//!      0 +---------------+---------------+-------------------------------+
//!        | type          | len           | src: host id ...              |
//!     16 +---------------+---------------+-------------------------------+
//!        |             ... host id       | src: pid                      |
//!     32 +-------------------------------+-------------------------------+
//!        | dest: host id                                                 |
//!     48 +-------------------------------+-------------------------------+
//!        | dest: pid                     | srqid                         |
//!     64 +-------------------------------+-------------------------------+
//!        | drqid                         | msglen                        |
//!     80 +---------------+---------------+-------------------------------+
//!        | lsrank        | tag           | cid                           |    draft: tag in all of 80 to 87
//!     96 +---------------+---------------+-------------------------------+
//!        | seqnum                        | count                         |
//!    112 +-------------------------------+-------------------------------+
//!        | dtype                         | unused                        |
//!    128 +-------------------------------+-------------------------------+
//! ```
//!
//! All integers are big-endian, signed ones in two's complement (IMPI 2). The unused field goes out zero and
//! is ignored coming in. Only data packets have anything behind the header.

use std::ops::Range;

use byteorder::{BigEndian, ByteOrder};
use thiserror::Error;

use super::layout::*;
use super::{Dialect, Proc};

/// The purpose of a packet (IMPI 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PacketType {
    /// A short message, or a part of a long one but its first.
    Data = TYPE_DATA,
    /// A short synchronous message, or the first part of a long one.
    DataSync = TYPE_DATASYNC,
    /// The receiver has read `ackmark` counted packets from the channel.
    ProtoAck = TYPE_PROTOACK,
    /// A receive has matched the message.
    SyncAck = TYPE_SYNCACK,
    /// The sender requests a cancel.
    Cancel = TYPE_CANCEL,
    /// The message was not matched and is removed.
    CancelYes = TYPE_CANCELYES,
    /// The message was matched.
    CancelNo = TYPE_CANCELNO,
    /// The host sends no further packets; the draft has no such packet.
    Fini = TYPE_FINI,
}

impl PacketType {
    /// The type with this number, if the dialect has one.
    #[inline]
    pub const fn from_code(code: u32, dialect: Dialect) -> Option<Self> {
        Some(match code {
            TYPE_DATA => Self::Data,
            TYPE_DATASYNC => Self::DataSync,
            TYPE_PROTOACK => Self::ProtoAck,
            TYPE_SYNCACK => Self::SyncAck,
            TYPE_CANCEL => Self::Cancel,
            TYPE_CANCELYES => Self::CancelYes,
            TYPE_CANCELNO => Self::CancelNo,
            TYPE_FINI if matches!(dialect, Dialect::Final) => Self::Fini,
            _ => return None,
        })
    }

    /// Its number on the wire.
    #[inline]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// Whether user data follow the header (IMPI 7.2).
    #[inline]
    pub const fn has_data(self) -> bool {
        matches!(self, Self::Data | Self::DataSync)
    }

    /// Whether flow control counts it (IMPI 9).
    #[inline]
    pub const fn is_counted(self) -> bool {
        !matches!(self, Self::ProtoAck | Self::Fini)
    }
}

/// A packet without its data. Which fields mean something depends on the type (IMPI 7.2); the others are kept
/// as they arrived, and are 0 in packets that begin from [`Packet::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its purpose.
    pub kind: PacketType,
    /// Octets of user data behind the header, in data packets only: see [`data_len`](Self::data_len).
    pub len: u32,
    /// The process that sends this packet. Zero, or nonsense, in Fini.
    pub src: Proc,
    /// The process that this packet is for.
    pub dest: Proc,
    /// The sender's request id, in packets of both ends.
    pub srqid: u64,
    /// The receiver's request id.
    pub drqid: u64,
    /// Octets of the whole message.
    pub msglen: u64,
    /// Rank of the sender in the communicator. The draft has no field for it: it is 0 in received packets,
    /// and the rank follows from `src`.
    pub lsrank: i32,
    /// The tag. In the draft it has 8 octets on the wire but fits 4: the largest tag of a job is negotiated
    /// as a number of 4 octets in both dialects (IMPI 3.3, C_TAGUB).
    pub tag: i32,
    /// Context id.
    pub cid: u64,
    /// For tracing: number of the message or the packet.
    pub seqnum: u64,
    /// For tracing: elements of the message.
    pub count: i64,
    /// For tracing: the sender's datatype.
    pub dtype: u64,
}

/// An invalid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The type is not one of the dialect's.
    #[error("packet type {code} is unknown in the {dialect:?} dialect")]
    Type {
        /// The type field.
        code: u32,
        /// The dialect.
        dialect: Dialect,
    },
    /// The tag of a draft packet with data does not fit 4 octets.
    #[error("tag {tag} does not fit 32 bits")]
    Tag {
        /// The tag field.
        tag: i64,
    },
}

impl Packet {
    /// A packet of this type between these processes; all other fields are 0.
    #[inline]
    pub const fn new(kind: PacketType, src: Proc, dest: Proc) -> Self {
        Self {
            kind,
            len: 0,
            src,
            dest,
            srqid: 0,
            drqid: 0,
            msglen: 0,
            lsrank: 0,
            tag: 0,
            cid: 0,
            seqnum: 0,
            count: 0,
            dtype: 0,
        }
    }

    /// Reads a header. The machine of the pair checks lengths and ids.
    ///
    /// # Errors
    /// An unknown type; in the draft, a tag above 32 bits in a packet with data. In other packets such a tag
    /// is read as 0.
    #[inline]
    pub fn parse(octets: &[u8; HEADER_LEN], dialect: Dialect) -> Result<Self, PacketError> {
        let code = BigEndian::read_u32(&octets[TYPE_FIELD]);
        let kind = PacketType::from_code(code, dialect).ok_or(PacketError::Type { code, dialect })?;
        let (lsrank, tag) = match dialect {
            Dialect::Final => {
                (BigEndian::read_i32(&octets[LSRANK_FIELD]), BigEndian::read_i32(&octets[TAG_FIELD]))
            }
            Dialect::Draft => (0, draft_tag(BigEndian::read_i64(&octets[DRAFT_TAG_FIELD]), kind)?),
        };
        Ok(Self {
            kind,
            len: BigEndian::read_u32(&octets[LEN_FIELD]),
            src: Proc {
                host_id: host_id(octets, SRC_HOST_ID_FIELD),
                pid: BigEndian::read_i64(&octets[SRC_PID_FIELD]),
            },
            dest: Proc {
                host_id: host_id(octets, DEST_HOST_ID_FIELD),
                pid: BigEndian::read_i64(&octets[DEST_PID_FIELD]),
            },
            srqid: BigEndian::read_u64(&octets[SRQID_FIELD]),
            drqid: BigEndian::read_u64(&octets[DRQID_FIELD]),
            msglen: BigEndian::read_u64(&octets[MSGLEN_FIELD]),
            lsrank,
            tag,
            cid: BigEndian::read_u64(&octets[CID_FIELD]),
            seqnum: BigEndian::read_u64(&octets[SEQNUM_FIELD]),
            count: BigEndian::read_i64(&octets[COUNT_FIELD]),
            dtype: BigEndian::read_u64(&octets[DTYPE_FIELD]),
        })
    }

    /// Writes all 128 octets of the header.
    ///
    /// # Panics
    /// In debug builds, when the dialect has no packet of this type.
    #[inline]
    pub fn emit(&self, dialect: Dialect, octets: &mut [u8; HEADER_LEN]) {
        debug_assert!(
            PacketType::from_code(self.kind.code(), dialect).is_some(),
            "{:?} in {dialect:?}",
            self.kind
        );
        BigEndian::write_u32(&mut octets[TYPE_FIELD], self.kind.code());
        BigEndian::write_u32(&mut octets[LEN_FIELD], self.len);
        octets[SRC_HOST_ID_FIELD].copy_from_slice(&self.src.host_id);
        BigEndian::write_i64(&mut octets[SRC_PID_FIELD], self.src.pid);
        octets[DEST_HOST_ID_FIELD].copy_from_slice(&self.dest.host_id);
        BigEndian::write_i64(&mut octets[DEST_PID_FIELD], self.dest.pid);
        BigEndian::write_u64(&mut octets[SRQID_FIELD], self.srqid);
        BigEndian::write_u64(&mut octets[DRQID_FIELD], self.drqid);
        BigEndian::write_u64(&mut octets[MSGLEN_FIELD], self.msglen);
        match dialect {
            Dialect::Final => {
                BigEndian::write_i32(&mut octets[LSRANK_FIELD], self.lsrank);
                BigEndian::write_i32(&mut octets[TAG_FIELD], self.tag);
            }
            Dialect::Draft => BigEndian::write_i64(&mut octets[DRAFT_TAG_FIELD], i64::from(self.tag)),
        }
        BigEndian::write_u64(&mut octets[CID_FIELD], self.cid);
        BigEndian::write_u64(&mut octets[SEQNUM_FIELD], self.seqnum);
        BigEndian::write_i64(&mut octets[COUNT_FIELD], self.count);
        BigEndian::write_u64(&mut octets[DTYPE_FIELD], self.dtype);
        octets[RESERVED_FIELD].fill(0);
    }

    /// Octets of user data behind the header: `len` in data packets, 0 in all others, where LAM sets `len` to
    /// 128 (IMPI 7.2). Compare it with maxdatalen before reading.
    #[inline]
    pub const fn data_len(&self) -> u32 {
        if self.kind.has_data() { self.len } else { 0 }
    }
}

/// A host id. The ranges are constants inside the header, so nothing is checked at run time.
#[inline(always)]
fn host_id(octets: &[u8; HEADER_LEN], range: Range<usize>) -> [u8; 16] {
    let mut host_id = [0; 16];
    host_id.copy_from_slice(&octets[range]);
    host_id
}

#[inline]
fn draft_tag(tag: i64, kind: PacketType) -> Result<i32, PacketError> {
    match i32::try_from(tag) {
        Ok(tag) => Ok(tag),
        Err(_) if kind.has_data() => Err(PacketError::Tag { tag }),
        Err(_) => Ok(0),
    }
}

/// A packet is not larger in memory than on the wire: copies are cheap.
const _: () = assert!(size_of::<Packet>() <= HEADER_LEN);
