//! Every constant of the packet header: sizes, fields, packet types, limits, tags of collective operations.
//!
//! Source: IMPI 7.1 and 3.4. The offsets are those of the draft, except octets 80 to 87. [`super::packet`]
//! draws the same layout.

use std::ops::Range;

/// Octets of a packet header, and of every packet that has no data (IMPI 7.1).
pub const HEADER_LEN: usize = 128;
/// Octets of a process: its host id and its pid (IMPI 2.2).
pub const PROC_LEN: usize = HOST_ID_LEN + 8;
/// Octets of a host id (IMPI 2.1).
pub const HOST_ID_LEN: usize = 16;

/// Field: packet type, unsigned (IMPI 7.1).
pub const TYPE_FIELD: Range<usize> = 0..4;
/// Field: octets of user data behind this header, unsigned (IMPI 7.1).
pub const LEN_FIELD: Range<usize> = 4..8;
/// Field: host id of the process that sends this packet (IMPI 7.1).
pub const SRC_HOST_ID_FIELD: Range<usize> = 8..24;
/// Field: pid of the process that sends this packet, signed (IMPI 7.1).
pub const SRC_PID_FIELD: Range<usize> = 24..32;
/// Field: host id of the destination process (IMPI 7.1).
pub const DEST_HOST_ID_FIELD: Range<usize> = 32..48;
/// Field: pid of the destination process, signed (IMPI 7.1).
pub const DEST_PID_FIELD: Range<usize> = 48..56;
/// Field: the sender's request id, unsigned (IMPI 8.1).
pub const SRQID_FIELD: Range<usize> = 56..64;
/// Field: the receiver's request id, unsigned (IMPI 8.1).
pub const DRQID_FIELD: Range<usize> = 64..72;
/// Field: octets of the whole message, unsigned (IMPI 7.1).
pub const MSGLEN_FIELD: Range<usize> = 72..80;
/// Field of the later text: rank of the sender in the communicator, signed (IMPI 7.1).
pub const LSRANK_FIELD: Range<usize> = 80..84;
/// Field of the later text: the tag, signed (IMPI 7.1).
pub const TAG_FIELD: Range<usize> = 84..88;
/// Field of the draft, at the offset of both: the tag, signed (IMPI 7.1, draft layout).
pub const DRAFT_TAG_FIELD: Range<usize> = 80..88;
/// Field: context id, unsigned (IMPI 7.1).
pub const CID_FIELD: Range<usize> = 88..96;
/// Field: number of the message, for tracing, unsigned (IMPI 7.3).
pub const SEQNUM_FIELD: Range<usize> = 96..104;
/// Field: elements of the message, for tracing, signed (IMPI 7.3).
pub const COUNT_FIELD: Range<usize> = 104..112;
/// Field: the sender's datatype, for tracing, opaque (IMPI 7.3).
pub const DTYPE_FIELD: Range<usize> = 112..120;
/// Field: sent as zero, ignored when received (IMPI 7.1).
pub const RESERVED_FIELD: Range<usize> = 120..128;

/// Type of a packet with data: a short message, or a later part of a long one (IMPI 3.4).
pub const TYPE_DATA: u32 = 0;
/// Type of a packet with data: a short synchronous message, or the first part of a long one (IMPI 3.4).
pub const TYPE_DATASYNC: u32 = 1;
/// Type of a protocol acknowledgement (IMPI 3.4).
pub const TYPE_PROTOACK: u32 = 2;
/// Type of a synchronisation acknowledgement (IMPI 3.4).
pub const TYPE_SYNCACK: u32 = 3;
/// Type of a cancel request (IMPI 3.4).
pub const TYPE_CANCEL: u32 = 4;
/// Type of the answer: cancelled (IMPI 3.4).
pub const TYPE_CANCELYES: u32 = 5;
/// Type of the answer: not cancelled (IMPI 3.4).
pub const TYPE_CANCELNO: u32 = 6;
/// Type of a host's last packet; the draft has none (IMPI 3.4).
pub const TYPE_FINI: u32 = 7;

/// Least value of maxdatalen: octets of user data in a packet (IMPI 3.5).
pub const MAXDATALEN_MIN: u32 = 1;
/// Least value of ackmark (IMPI 3.5).
pub const ACKMARK_MIN: u32 = 1;

/// Tag of a barrier's messages. All collective operations use the communicator's context id plus one (IMPI
/// 3.6, 11.2).
pub const TAG_BARRIER: i32 = 110;
/// Tag of bcast (IMPI 3.6).
pub const TAG_BCAST: i32 = 120;
/// Tag of gather (IMPI 3.6).
pub const TAG_GATHER: i32 = 130;
/// Tag of gatherv (IMPI 3.6).
pub const TAG_GATHERV: i32 = 140;
/// Tag of scatter (IMPI 3.6).
pub const TAG_SCATTER: i32 = 150;
/// Tag of scatterv (IMPI 3.6).
pub const TAG_SCATTERV: i32 = 160;
/// Tag of alltoall (IMPI 3.6).
pub const TAG_ALLTOALL: i32 = 170;
/// Tag of alltoallv (IMPI 3.6).
pub const TAG_ALLTOALLV: i32 = 180;
/// Tag of reduce, which LAM sends on the communicator's own context id (IMPI 3.6, 11.2).
pub const TAG_REDUCE: i32 = 190;
/// Tag of scan (IMPI 3.6).
pub const TAG_SCAN: i32 = 200;
/// Tag of a communicator's duplication (IMPI 3.6).
pub const TAG_DUP: i32 = 210;
/// Tag of an intercommunicator's merge (IMPI 3.6).
pub const TAG_MERGE: i32 = 220;
/// Tag of a communicator's end (IMPI 3.6).
pub const TAG_FREE: i32 = 230;

/// The name of the collective operation that has this tag (IMPI 3.6).
#[must_use]
pub const fn collective_operation(tag: i32) -> Option<&'static str> {
    Some(match tag {
        TAG_BARRIER => "barrier",
        TAG_BCAST => "bcast",
        TAG_GATHER => "gather",
        TAG_GATHERV => "gatherv",
        TAG_SCATTER => "scatter",
        TAG_SCATTERV => "scatterv",
        TAG_ALLTOALL => "alltoall",
        TAG_ALLTOALLV => "alltoallv",
        TAG_REDUCE => "reduce",
        TAG_SCAN => "scan",
        TAG_DUP => "dup",
        TAG_MERGE => "merge",
        TAG_FREE => "free",
        _ => return None,
    })
}

const _: () = assert!(PROC_LEN == 24);
const _: () = assert!(SRC_PID_FIELD.end - SRC_HOST_ID_FIELD.start == PROC_LEN);
const _: () = assert!(DEST_PID_FIELD.end - DEST_HOST_ID_FIELD.start == PROC_LEN);
const _: () = assert!(DRAFT_TAG_FIELD.start == LSRANK_FIELD.start && DRAFT_TAG_FIELD.end == TAG_FIELD.end);
const _: () = assert!(RESERVED_FIELD.end == HEADER_LEN);

/// The header has no gap and no overlap (IMPI 2).
const _: () = {
    let fields = [
        TYPE_FIELD,
        LEN_FIELD,
        SRC_HOST_ID_FIELD,
        SRC_PID_FIELD,
        DEST_HOST_ID_FIELD,
        DEST_PID_FIELD,
        SRQID_FIELD,
        DRQID_FIELD,
        MSGLEN_FIELD,
        LSRANK_FIELD,
        TAG_FIELD,
        CID_FIELD,
        SEQNUM_FIELD,
        COUNT_FIELD,
        DTYPE_FIELD,
        RESERVED_FIELD,
    ];
    let mut k = 0;
    let mut end = 0;
    while k < fields.len() {
        assert!(fields[k].start == end);
        end = fields[k].end;
        k += 1;
    }
    assert!(end == HEADER_LEN);
};
