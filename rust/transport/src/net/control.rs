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
const REASON_MAX: usize = 1024;

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum ControlMessage {
    Credit(u64),
    HeartbeatRequest,
    Heartbeat(u64),
    JobFailed(String),
}

impl ControlMessage {
    pub(in super::super) fn tag(&self) -> i32 {
        match self {
            ControlMessage::Credit(_) => 1,
            ControlMessage::HeartbeatRequest => 2,
            ControlMessage::Heartbeat(_) => 3,
            ControlMessage::JobFailed(_) => 4,
        }
    }

    pub(in super::super) fn octets(&self) -> Vec<u8> {
        match self {
            ControlMessage::Credit(number) | ControlMessage::Heartbeat(number) => {
                number.to_be_bytes().to_vec()
            }
            ControlMessage::HeartbeatRequest => Vec::new(),
            ControlMessage::JobFailed(why) => {
                let end = (0..=why.len().min(REASON_MAX)).rev().find(|end| why.is_char_boundary(*end));
                why.as_bytes()[..end.unwrap_or(0)].to_vec()
            }
        }
    }

    /// The octets of the message, at most `most` of them. A reason is cut to fit.
    pub(in super::super) fn octets_within(&self, most: usize) -> Vec<u8> {
        let mut octets = self.octets();
        if let ControlMessage::JobFailed(_) = self {
            let mut end = octets.len().min(most);
            while end < octets.len() && octets[end] & 0xc0 == 0x80 {
                end -= 1;
            }
            octets.truncate(end);
        }
        octets
    }

    /// The control message with this tag and these octets; `None` if none has them.
    pub(in super::super) fn parse(tag: i32, octets: &[u8]) -> Option<ControlMessage> {
        let number = || octets.try_into().ok().map(u64::from_be_bytes);
        match tag {
            1 => number().map(ControlMessage::Credit),
            2 => octets.is_empty().then_some(ControlMessage::HeartbeatRequest),
            3 => number().map(ControlMessage::Heartbeat),
            4 => Some(ControlMessage::JobFailed(String::from_utf8_lossy(octets).into_owned())),
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
    fn control_messages_round_trip_and_other_octets_are_rejected() {
        let all = [
            ControlMessage::Credit(u64::MAX),
            ControlMessage::HeartbeatRequest,
            ControlMessage::Heartbeat(7),
            ControlMessage::JobFailed("rank 3 has failed".into()),
        ];
        for message in all {
            assert_eq!(ControlMessage::parse(message.tag(), &message.octets()), Some(message));
        }
        assert_eq!(ControlMessage::parse(1, &[0; 7]), None);
        assert_eq!(ControlMessage::parse(2, &[0]), None);
        assert_eq!(ControlMessage::parse(5, &[]), None);
    }

    #[test]
    fn reason_is_cut_to_fit_a_packet() {
        let failed = |why: &str| ControlMessage::JobFailed(why.into()).octets_within(8);
        assert_eq!(failed("a disk is full"), b"a disk i");
        assert_eq!(failed("1234567\u{e4}"), b"1234567");
        assert_eq!(failed("full"), b"full");
        assert_eq!(ControlMessage::Heartbeat(7).octets_within(4).len(), 8, "a number is not cut");
    }

    #[test]
    fn long_reason_is_cut_between_characters() {
        let octets = ControlMessage::JobFailed("ä".repeat(1000) + "x").octets();
        assert_eq!(octets.len(), REASON_MAX);
        assert!(std::str::from_utf8(&octets).is_ok());
    }
}
