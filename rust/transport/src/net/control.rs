//! Control messages between our own ranks: data packets in a context that no communicator has (a choice of
//! ours).
//!
//! | tag | octets | meaning |
//! |---|---|---|
//! | 1 | 8 | octets from the receiver of this message that its sender has matched so far |
//! | 2 | 0 | request for a heartbeat |
//! | 3 | 8 | heartbeat: the number of calls of the sender's program into the library |
//! | 4 | 1 to 1024 | the job has failed, and the reason |

use mpjdev_proto::context::{WORLD, collective, control};

/// The context of control messages.
pub(in super::super) const CONTEXT: u64 = control(WORLD);
/// Longest reason in octets.
const WHY_MAX: usize = 1024;

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Extra {
    Matched(u64),
    AreYouAlive,
    Alive(u64),
    Failed(String),
}

impl Extra {
    pub(in super::super) fn tag(&self) -> i32 {
        match self {
            Extra::Matched(_) => 1,
            Extra::AreYouAlive => 2,
            Extra::Alive(_) => 3,
            Extra::Failed(_) => 4,
        }
    }

    pub(in super::super) fn octets(&self) -> Vec<u8> {
        match self {
            Extra::Matched(number) | Extra::Alive(number) => number.to_be_bytes().to_vec(),
            Extra::AreYouAlive => Vec::new(),
            Extra::Failed(why) => {
                let end = (0..=why.len().min(WHY_MAX)).rev().find(|end| why.is_char_boundary(*end));
                why.as_bytes()[..end.unwrap_or(0)].to_vec()
            }
        }
    }

    /// The octets of the message, at most `most` of them. A reason is cut to fit.
    pub(in super::super) fn octets_within(&self, most: usize) -> Vec<u8> {
        let mut octets = self.octets();
        if let Extra::Failed(_) = self {
            let mut end = octets.len().min(most);
            while end < octets.len() && octets[end] & 0xc0 == 0x80 {
                end -= 1;
            }
            octets.truncate(end);
        }
        octets
    }

    /// The control message with this tag and these octets; `None` if there is no such message.
    pub(in super::super) fn parse(tag: i32, octets: &[u8]) -> Option<Extra> {
        let number = || octets.try_into().ok().map(u64::from_be_bytes);
        match tag {
            1 => number().map(Extra::Matched),
            2 => octets.is_empty().then_some(Extra::AreYouAlive),
            3 => number().map(Extra::Alive),
            4 => Some(Extra::Failed(String::from_utf8_lossy(octets).into_owned())),
            _ => None,
        }
    }
}

/// Whether a foreign rank may send in this context. It is a member of no communicator but the world, since
/// others cannot be negotiated with it.
pub(in super::super) fn is_open_to_all(context: u64) -> bool {
    context == WORLD || context == collective(WORLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_come_back_from_their_octets_and_nothing_else_does() {
        let all = [
            Extra::Matched(u64::MAX),
            Extra::AreYouAlive,
            Extra::Alive(7),
            Extra::Failed("rank 3 has failed".into()),
        ];
        for extra in all {
            assert_eq!(Extra::parse(extra.tag(), &extra.octets()), Some(extra));
        }
        assert_eq!(Extra::parse(1, &[0; 7]), None);
        assert_eq!(Extra::parse(2, &[0]), None);
        assert_eq!(Extra::parse(5, &[]), None);
    }

    #[test]
    fn reason_is_cut_to_fit_a_packet() {
        let failed = |why: &str| Extra::Failed(why.into()).octets_within(8);
        assert_eq!(failed("a disk is full"), b"a disk i");
        assert_eq!(failed("1234567\u{e4}"), b"1234567");
        assert_eq!(failed("full"), b"full");
        assert_eq!(Extra::Alive(7).octets_within(4).len(), 8, "half a number is none");
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let octets = Extra::Failed("ä".repeat(1000) + "x").octets();
        assert_eq!(octets.len(), WHY_MAX);
        assert!(std::str::from_utf8(&octets).is_ok());
    }
}
