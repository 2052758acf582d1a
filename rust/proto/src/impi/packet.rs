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
    /// The receiver has taken `ackmark` counted packets off the channel.
    ProtoAck = TYPE_PROTOACK,
    /// The message has been matched by a receive.
    SyncAck = TYPE_SYNCACK,
    /// The sender wants its message back.
    Cancel = TYPE_CANCEL,
    /// The message was not matched, and is gone.
    CancelYes = TYPE_CANCELYES,
    /// The message was matched.
    CancelNo = TYPE_CANCELNO,
    /// The host says nothing more; the draft has no such packet.
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
/// as they came, and are 0 in packets that begin from [`Packet::new`].
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
    /// The sender's request id, from whatever side the packet comes.
    pub srqid: u64,
    /// The receiver's request id.
    pub drqid: u64,
    /// Octets of the whole message.
    pub msglen: u64,
    /// Rank of the sender in the communicator. The draft has none: it stays behind when a packet goes out,
    /// and is 0 in one that has come; the rank there follows from `src`.
    pub lsrank: i32,
    /// The tag. In the draft it has 8 octets on the wire, and the values of these 4: the largest tag of a job
    /// is negotiated as a number of 4 octets in both dialects (IMPI 3.3, C_TAGUB).
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

/// A header that is none.
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
    /// The tag of a draft packet with data is no tag that a job can have.
    #[error("tag {tag} does not fit 32 bits")]
    Tag {
        /// The tag field.
        tag: i64,
    },
}

impl Packet {
    /// A packet of this type between these processes; all else is 0.
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

    /// Reads a header. Whether its lengths and ids make sense is for the machine of the pair to say, which
    /// knows the messages.
    ///
    /// # Errors
    /// An unknown type; a tag of the draft that does not fit 32 bits in a packet with data. Where the field
    /// means nothing such a tag is read as 0.
    #[inline]
    pub fn parse(octets: &[u8; HEADER_LEN], dialect: Dialect) -> Result<Self, PacketError> {
        let code = u32::from_be_bytes(field(octets, TYPE_FIELD));
        let kind = PacketType::from_code(code, dialect).ok_or(PacketError::Type { code, dialect })?;
        let (lsrank, tag) = match dialect {
            Dialect::Final => (
                i32::from_be_bytes(field(octets, LSRANK_FIELD)),
                i32::from_be_bytes(field(octets, TAG_FIELD)),
            ),
            Dialect::Draft => (0, draft_tag(i64::from_be_bytes(field(octets, DRAFT_TAG_FIELD)), kind)?),
        };
        Ok(Self {
            kind,
            len: u32::from_be_bytes(field(octets, LEN_FIELD)),
            src: Proc {
                host_id: field(octets, SRC_HOST_ID_FIELD),
                pid: i64::from_be_bytes(field(octets, SRC_PID_FIELD)),
            },
            dest: Proc {
                host_id: field(octets, DEST_HOST_ID_FIELD),
                pid: i64::from_be_bytes(field(octets, DEST_PID_FIELD)),
            },
            srqid: u64::from_be_bytes(field(octets, SRQID_FIELD)),
            drqid: u64::from_be_bytes(field(octets, DRQID_FIELD)),
            msglen: u64::from_be_bytes(field(octets, MSGLEN_FIELD)),
            lsrank,
            tag,
            cid: u64::from_be_bytes(field(octets, CID_FIELD)),
            seqnum: u64::from_be_bytes(field(octets, SEQNUM_FIELD)),
            count: i64::from_be_bytes(field(octets, COUNT_FIELD)),
            dtype: u64::from_be_bytes(field(octets, DTYPE_FIELD)),
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
        octets[TYPE_FIELD].copy_from_slice(&self.kind.code().to_be_bytes());
        octets[LEN_FIELD].copy_from_slice(&self.len.to_be_bytes());
        octets[SRC_HOST_ID_FIELD].copy_from_slice(&self.src.host_id);
        octets[SRC_PID_FIELD].copy_from_slice(&self.src.pid.to_be_bytes());
        octets[DEST_HOST_ID_FIELD].copy_from_slice(&self.dest.host_id);
        octets[DEST_PID_FIELD].copy_from_slice(&self.dest.pid.to_be_bytes());
        octets[SRQID_FIELD].copy_from_slice(&self.srqid.to_be_bytes());
        octets[DRQID_FIELD].copy_from_slice(&self.drqid.to_be_bytes());
        octets[MSGLEN_FIELD].copy_from_slice(&self.msglen.to_be_bytes());
        match dialect {
            Dialect::Final => {
                octets[LSRANK_FIELD].copy_from_slice(&self.lsrank.to_be_bytes());
                octets[TAG_FIELD].copy_from_slice(&self.tag.to_be_bytes());
            }
            Dialect::Draft => octets[DRAFT_TAG_FIELD].copy_from_slice(&i64::from(self.tag).to_be_bytes()),
        }
        octets[CID_FIELD].copy_from_slice(&self.cid.to_be_bytes());
        octets[SEQNUM_FIELD].copy_from_slice(&self.seqnum.to_be_bytes());
        octets[COUNT_FIELD].copy_from_slice(&self.count.to_be_bytes());
        octets[DTYPE_FIELD].copy_from_slice(&self.dtype.to_be_bytes());
        octets[RESERVED_FIELD].fill(0);
    }

    /// Octets of user data behind the header: `len` in data packets, 0 in all others, whatever their `len`
    /// is; LAM puts 128 there (IMPI 7.2). Compare with maxdatalen before reading as many.
    #[inline]
    pub const fn data_len(&self) -> u32 {
        if self.kind.has_data() { self.len } else { 0 }
    }
}

/// The octets of a field. The ranges are constants inside the header, so nothing is checked at run time.
#[inline(always)]
fn field<const N: usize>(octets: &[u8; HEADER_LEN], range: std::ops::Range<usize>) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&octets[range]);
    field
}

#[inline]
fn draft_tag(tag: i64, kind: PacketType) -> Result<i32, PacketError> {
    match i32::try_from(tag) {
        Ok(tag) => Ok(tag),
        Err(_) if kind.has_data() => Err(PacketError::Tag { tag }),
        Err(_) => Ok(0),
    }
}

/// A packet in memory takes no more room than on the wire: it is copied about as freely.
const _: () = assert!(size_of::<Packet>() <= HEADER_LEN);
