//! Unreceived messages: they had arrived when the rank finished or freed their communicator, and no receive
//! took them.

use std::collections::BTreeMap;
use std::fmt;

use mpjdev_proto::context::{WORLD, communicator, is_internal, is_shadow};
use mpjdev_proto::envelope::Envelope;

/// The limit for messages that are named, and for sources that are listed.
const NAMED_MAX: usize = 8;

/// The unreceived messages of one rank. Its text is the warning of the rank: one line without a line end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreceived {
    rank: u32,
    count: usize,
    /// The number of messages, and the first ones, by world rank of the source.
    sources: BTreeMap<u32, (usize, Vec<Named>)>,
    named: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    tag: i32,
    len: usize,
    context: u64,
}

impl Unreceived {
    pub(crate) fn of(rank: u32) -> Unreceived {
        Unreceived { rank, ..Unreceived::default() }
    }

    /// Number of messages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a message of `len` octets of payload. Second halves and internal messages do not count.
    pub(crate) fn add(&mut self, envelope: &Envelope, len: usize) {
        let Envelope { context, source, tag } = *envelope;
        if is_internal(context) || is_shadow(context) {
            return;
        }
        self.count += 1;
        let (count, named) = self.sources.entry(source).or_default();
        *count += 1;
        if self.named < NAMED_MAX {
            self.named += 1;
            named.push(Named { tag, len, context });
        }
    }
}

impl fmt::Display for Unreceived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = if self.count == 1 { "message" } else { "messages" };
        write!(f, "rank {} finishes with {} {messages} that no receive took: ", self.rank, self.count)?;
        for (at, (source, (count, named))) in self.sources.iter().take(NAMED_MAX).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match *source == self.rank {
                true => write!(f, "{comma}{count} from itself")?,
                false => write!(f, "{comma}{count} from rank {source}")?,
            }
            for (at, message) in named.iter().enumerate() {
                let opening = if at > 0 { "; " } else { " (" };
                write!(f, "{opening}tag {}, {} octets", message.tag, message.len)?;
                if message.context != WORLD {
                    let own = communicator(message.context);
                    let (maker, number) = (own >> 32, (own & u64::from(u32::MAX)) / 2);
                    write!(f, ", in communicator {number} made by rank {maker}")?;
                }
            }
            let more = if named.len() < *count { "; ..." } else { "" };
            match named.is_empty() {
                true => {}
                false => write!(f, "{more})")?,
            }
        }
        if self.sources.len() > NAMED_MAX {
            write!(f, ", others from {} more ranks", self.sources.len() - NAMED_MAX)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpjdev_proto::context::{collective, shadow};

    fn message(context: u64, source: u32, tag: i32) -> Envelope {
        Envelope { context, source, tag }
    }

    #[test]
    fn text_names_count_source_tag_octets_and_communicator() {
        let mut unreceived = Unreceived::of(1);
        unreceived.add(&message(WORLD, 0, 7), 16);
        unreceived.add(&message(2 << 32 | 6, 0, 9), 1 << 20);
        unreceived.add(&message(WORLD, 1, 1), 16);
        unreceived.add(&message(shadow(WORLD), 0, 1), 16);
        unreceived.add(&message(collective(WORLD), 0, 1), 16);
        assert_eq!(
            unreceived.to_string(),
            "rank 1 finishes with 3 messages that no receive took: 2 from rank 0 (tag 7, 16 octets; tag 9, \
             1048576 octets, in communicator 3 made by rank 2), 1 from itself (tag 1, 16 octets)"
        );
    }

    #[test]
    fn text_is_bounded_however_many_messages_and_sources_there_are() {
        let mut unreceived = Unreceived::of(0);
        (0..100_000).for_each(|i| unreceived.add(&message(WORLD, i % 1000, 5), 8));
        let text = unreceived.to_string();
        assert!(text.len() < 1000 && text.ends_with("others from 992 more ranks"), "{text}");
        assert_eq!(unreceived.count(), 100_000);
    }
}
