//! The payloads of communicator creation: emit, and parse with every octet checked. Big-endian; a choice of
//! ours.

use std::ops::Range;

use byteorder::{BigEndian, ByteOrder};
use bytes::BufMut;

use super::machine::ProtocolError;
use crate::context::{WORLD, is_communicator};

/// The longest payload that a collective machine sends in a communicator of this size, in octets.
#[must_use]
pub const fn payload_len_max(size: u32) -> usize {
    DECISION_HEADER_LEN + RANK_LEN * size as usize
}

/// The request of a rank in create: the ids it was called with.
///
/// A list of more ids than ranks is invalid whatever it holds, so of such a list only the count travels.
pub(super) fn emit_ids(ids: &[i32], size: u32) -> Vec<u8> {
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let mut octets = Vec::with_capacity(payload_len_max(size));
    octets.put_u32(count);
    if count <= size {
        ids.iter().for_each(|id| octets.put_i32(*id));
    }
    octets
}

/// The request of a rank in split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitRequest {
    pub(super) color: i32,
    pub(super) key: i32,
}

impl SplitRequest {
    pub(super) fn emit(self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(SPLIT_REQUEST_LEN);
        octets.put_i32(self.color);
        octets.put_i32(self.key);
        octets
    }

    pub(super) fn parse(from: From, octets: &[u8]) -> Result<Self, ProtocolError> {
        if octets.len() != SPLIT_REQUEST_LEN {
            return Err(from.length(octets.len(), SPLIT_REQUEST_LEN));
        }
        Ok(Self { color: BigEndian::read_i32(octets), key: BigEndian::read_i32(&octets[4..]) })
    }
}

/// The ids of a create request; `None` if they are more than the ranks.
pub(super) fn parse_ids(from: From, octets: &[u8], size: u32) -> Result<Option<Vec<i32>>, ProtocolError> {
    let Some((count, ids)) = octets.split_at_checked(IDS_HEADER_LEN) else {
        return Err(from.length(octets.len(), IDS_HEADER_LEN));
    };
    let count = BigEndian::read_u32(count);
    let sent = if count <= size { count as usize } else { 0 };
    if ids.len() != RANK_LEN * sent {
        return Err(from.length(octets.len(), IDS_HEADER_LEN + RANK_LEN * sent));
    }
    let mut parsed = vec![0; sent];
    BigEndian::read_i32_into(ids, &mut parsed);
    Ok((count <= size).then_some(parsed))
}

/// The message of rank 0 to a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The rank belongs to a new communicator with these members.
    Member { context: u64, members: Vec<u32> },
    /// There is no new communicator for this rank.
    NoMember,
    /// The ids of these ranks name a rank that asked with other ids.
    DifferentIds { ranks: Vec<u32> },
    /// The ids of these ranks are no list of different ranks.
    BadIds { ranks: Vec<u32> },
    /// Rank 0 has no context ids left.
    NoContexts,
    /// The requests of these ranks could not be understood.
    Damaged { ranks: Vec<u32> },
    /// These ranks have finished without a request.
    Ended { ranks: Vec<u32> },
    /// These ranks are in both groups.
    Overlap { ranks: Vec<u32> },
    /// This rank, a leader, has abandoned the operation.
    Left { ranks: Vec<u32> },
}

impl Decision {
    pub(super) fn emit(&self) -> Vec<u8> {
        let (context, ranks): (u64, &[u32]) = match self {
            Self::Member { context, members } => (*context, members),
            Self::DifferentIds { ranks }
            | Self::BadIds { ranks }
            | Self::Damaged { ranks }
            | Self::Ended { ranks }
            | Self::Overlap { ranks }
            | Self::Left { ranks } => (0, ranks),
            Self::NoMember | Self::NoContexts => (0, &[]),
        };
        // Ranks are below the size, a u32, and each is there once.
        let count = ranks.len() as u32;
        let mut octets = Vec::with_capacity(DECISION_HEADER_LEN + RANK_LEN * ranks.len());
        octets.put_slice(&[self.status(), 0, 0, 0]);
        octets.put_u32(count);
        octets.put_u64(context);
        ranks.iter().for_each(|rank| octets.put_u32(*rank));
        octets
    }

    /// The status, named as the field that contradicts what the receiver asked for.
    pub(super) fn as_misfit(&self) -> Misfit {
        ("status", u64::from(self.status()))
    }

    fn status(&self) -> u8 {
        match self {
            Self::Member { .. } => status::MEMBER,
            Self::NoMember => status::NO_MEMBER,
            Self::DifferentIds { .. } => status::DIFFERENT_IDS,
            Self::BadIds { .. } => status::BAD_IDS,
            Self::NoContexts => status::NO_CONTEXTS,
            Self::Damaged { .. } => status::DAMAGED,
            Self::Ended { .. } => status::ENDED,
            Self::Overlap { .. } => status::OVERLAP,
            Self::Left { .. } => status::LEFT,
        }
    }

    /// Parses a decision in a communicator of `size` ranks.
    ///
    /// Nothing is allocated before the count has been compared with the size and with the octets that are
    /// there. Ranks come out below the size and different from each other, a context id as one a communicator
    /// can have.
    pub(super) fn parse(from: From, octets: &[u8], size: u32) -> Result<Self, ProtocolError> {
        let Some((header, ranks)) = octets.split_first_chunk::<DECISION_HEADER_LEN>() else {
            return Err(from.length(octets.len(), DECISION_HEADER_LEN));
        };
        let (status, count) = (header[STATUS_OCTET], BigEndian::read_u32(&header[COUNT_FIELD]));
        let context = BigEndian::read_u64(&header[CONTEXT_FIELD]);
        if count > size {
            return Err(from.field("count", u64::from(count)));
        }
        let expected = RANK_LEN * count as usize;
        if ranks.len() != expected {
            return Err(from.length(octets.len(), DECISION_HEADER_LEN + expected));
        }
        let ranks = parse_ranks(from, ranks, size)?;
        match status {
            status::NO_MEMBER | status::NO_CONTEXTS if !ranks.is_empty() => {
                Err(from.field("count", u64::from(count)))
            }
            status::NO_MEMBER => Ok(Self::NoMember),
            status::NO_CONTEXTS => Ok(Self::NoContexts),
            status::MEMBER..=status::LEFT if ranks.is_empty() => Err(from.field("count", 0)),
            status::MEMBER if !is_communicator(context) || context == WORLD => {
                Err(from.field("context", context))
            }
            status::MEMBER => Ok(Self::Member { context, members: ranks }),
            status::DIFFERENT_IDS => Ok(Self::DifferentIds { ranks }),
            status::BAD_IDS => Ok(Self::BadIds { ranks }),
            status::DAMAGED => Ok(Self::Damaged { ranks }),
            status::ENDED => Ok(Self::Ended { ranks }),
            status::OVERLAP => Ok(Self::Overlap { ranks }),
            status::LEFT => Ok(Self::Left { ranks }),
            unknown => Err(from.field("status", u64::from(unknown))),
        }
    }
}

/// Ranks below the size, no two alike. `octets` holds whole ranks, at most `size` of them.
fn parse_ranks(from: From, octets: &[u8], size: u32) -> Result<Vec<u32>, ProtocolError> {
    let mut ranks = vec![0; octets.len() / RANK_LEN];
    BigEndian::read_u32_into(octets, &mut ranks);
    let mut sorted = ranks.clone();
    sorted.sort_unstable();
    if let Some(last) = sorted.last().filter(|last| **last >= size) {
        return Err(from.field("rank", u64::from(*last)));
    }
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(from.field("repeated rank", u64::from(pair[0]))),
        None => Ok(ranks),
    }
}

/// A decision's field that contradicts this rank's request, and its value.
pub(super) type Misfit = (&'static str, u64);

/// The source of a payload, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct From {
    pub(super) source: u32,
    pub(super) tag: i32,
}

impl From {
    pub(super) fn field(self, field: &'static str, value: u64) -> ProtocolError {
        ProtocolError::Field { source_rank: self.source, tag: self.tag, field, value }
    }

    pub(super) fn not_asked_for(self) -> ProtocolError {
        ProtocolError::NotAskedFor { source_rank: self.source, tag: self.tag }
    }

    pub(super) fn length(self, actual: usize, expected: usize) -> ProtocolError {
        ProtocolError::Length { source_rank: self.source, tag: self.tag, actual, expected }
    }
}

/// Octet 0 of a decision.
mod status {
    pub(super) const MEMBER: u8 = 0;
    pub(super) const NO_MEMBER: u8 = 1;
    pub(super) const DIFFERENT_IDS: u8 = 2;
    pub(super) const BAD_IDS: u8 = 3;
    pub(super) const NO_CONTEXTS: u8 = 4;
    pub(super) const DAMAGED: u8 = 5;
    pub(super) const ENDED: u8 = 6;
    pub(super) const OVERLAP: u8 = 7;
    pub(super) const LEFT: u8 = 8;
}

/// Status, three unused octets, count, context.
const DECISION_HEADER_LEN: usize = 16;
const STATUS_OCTET: usize = 0;
const COUNT_FIELD: Range<usize> = 4..8;
const CONTEXT_FIELD: Range<usize> = 8..16;

/// The count before the ids of a create request.
const IDS_HEADER_LEN: usize = 4;

/// Color and key.
const SPLIT_REQUEST_LEN: usize = 8;

/// One rank or id.
const RANK_LEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: From = From { source: 0, tag: 66 };

    /// The octets are those that PROTOCOL.md draws.
    #[test]
    fn payloads_are_laid_out_as_documented() {
        let member = Decision::Member { context: 0x0000_0007_0000_0002, members: vec![2, 0] };
        let octets = [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0];
        assert_eq!(member.emit(), octets);
        let damaged = Decision::Damaged { ranks: vec![258] };
        assert_eq!(damaged.emit(), [5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(emit_ids(&[1, -2], 2), [0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(emit_ids(&[1, -2], 1), [0, 0, 0, 2]);
        let split = SplitRequest { color: 1, key: -1 };
        assert_eq!(split.emit(), [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
    }

    /// Every decision is read back as it was written, also with its unused octets set.
    #[test]
    fn decision_survives_the_round_trip() {
        let decisions = [
            Decision::Member { context: 2, members: vec![1, 0, 2] },
            Decision::NoMember,
            Decision::DifferentIds { ranks: vec![1] },
            Decision::BadIds { ranks: vec![0, 1] },
            Decision::NoContexts,
            Decision::Damaged { ranks: vec![0, 2] },
            Decision::Ended { ranks: vec![1] },
            Decision::Overlap { ranks: vec![1, 2] },
            Decision::Left { ranks: vec![2] },
        ];
        for decision in decisions {
            let mut octets = decision.emit();
            octets[1..4].fill(0xff);
            assert_eq!(Decision::parse(FROM, &octets, 3), Ok(decision));
        }
    }

    /// Each damage to a decision is named by field and value.
    #[test]
    fn damaged_decisions_are_named() {
        let good = Decision::Member { context: 2, members: vec![1, 0] }.emit();
        for cut in 0..good.len() {
            let expected = if cut < 16 { 16 } else { 24 };
            assert_eq!(Decision::parse(FROM, &good[..cut], 2), Err(FROM.length(cut, expected)));
        }
        let changes: [(usize, u8, &str, u64); 8] = [
            (0, 9, "status", 9),
            (0, 1, "count", 2),
            (7, 3, "count", 3),
            (4, 0xff, "count", 0xff00_0002),
            (15, 3, "context", 3),
            (15, 0, "context", 0),
            (19, 2, "rank", 2),
            (19, 0, "repeated rank", 0),
        ];
        for (at, value, field, read) in changes {
            let mut octets = good.clone();
            octets[at] = value;
            assert_eq!(Decision::parse(FROM, &octets, 2), Err(FROM.field(field, read)));
        }
        assert_eq!(Decision::parse(FROM, &[0; 16], 2), Err(FROM.field("count", 0)));
    }

    /// A request has exactly the octets that its count announces; split's has eight.
    #[test]
    fn requests_of_a_wrong_length_are_refused() {
        for len in (0..20).filter(|len| *len != 8) {
            let parsed = SplitRequest::parse(FROM, &vec![0; len]);
            assert_eq!(parsed, Err(FROM.length(len, 8)));
        }
        assert_eq!(parse_ids(FROM, &[0, 0, 0], 4), Err(FROM.length(3, 4)));
        assert_eq!(parse_ids(FROM, &[0, 0, 0, 1], 4), Err(FROM.length(4, 8)));
        assert_eq!(parse_ids(FROM, &[0, 0, 0, 1, 0, 0, 0, 0, 0], 4), Err(FROM.length(9, 8)));
        assert_eq!(parse_ids(FROM, &[0xff; 8], 4), Err(FROM.length(8, 4)));
        assert_eq!(parse_ids(FROM, &[0xff; 4], 4), Ok(None));
        assert_eq!(parse_ids(FROM, &emit_ids(&[3, -1], 4), 4), Ok(Some(vec![3, -1])));
    }
}
