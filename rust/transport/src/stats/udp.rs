//! The counters of datagrams, with their names.

use serde::Serialize;

/// Combination of two values: into a sum, and into a difference between an earlier and a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number that only grows.
    Grows,
    /// A current value.
    IsNow,
}

use Kind::{Grows, IsNow};

macro_rules! counters {
    ($($(#[$doc:meta])* $kind:ident $name:ident,)*) => {
        /// Counters since a rank began. All but the last ones only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Datagrams {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Datagrams {
            /// The names of all counters.
            pub const NAMES: [&'static str; [$(stringify!($name)),*].len()] = [$(stringify!($name)),*];
            const KINDS: [Kind; Self::NAMES.len()] = [$($kind),*];

            /// All values, in the order of the names.
            #[must_use]
            pub const fn values(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$name),*]
            }

            /// The counters with these values, in the same order.
            #[must_use]
            pub const fn of([$($name),*]: [u64; Self::NAMES.len()]) -> Datagrams {
                Datagrams { $($name),* }
            }
        }
    };
}

counters! {
    /// Messages of the program that were sent.
    Grows messages_sent,
    /// Messages of the program that were received, whole or by their RTS.
    Grows messages_received,
    /// First transmissions of packets with a sequence number.
    Grows packets_sent,
    /// Packets received on a known connection.
    Grows packets_received,
    /// Octets of all sent datagrams.
    Grows octets_sent,
    /// Octets of all received datagrams.
    Grows octets_received,
    /// Acks sent on a packet with a sequence number.
    Grows acks,
    /// Packets sent only for an ack or a probe.
    Grows pure_acks,
    /// Of those, acks sent because the socket was drained without an answer.
    Grows acks_drained,
    /// Of those, acks sent after the longest allowed delay.
    Grows acks_late,
    /// Of those, window probes.
    Grows window_probes,
    /// Retransmitted packets.
    Grows retransmitted,
    /// Of those, spurious ones: the peer had the packet already.
    Grows spurious,
    /// Of those, packets sent because a timer had expired.
    Grows probes,
    /// Timers that expired without an ack.
    Grows timeouts,
    /// Reductions of the congestion window.
    Grows cuts,
    /// Reductions that were undone.
    Grows undone_cuts,
    /// Packets kept until earlier ones had arrived.
    Grows kept,
    /// Dropped: datagrams that are no packets.
    Grows malformed,
    /// Dropped: packets with a wrong checksum.
    Grows bad_checksums,
    /// Dropped: packets of an unknown connection.
    Grows unknown,
    /// Dropped: packets that had arrived before.
    Grows duplicates,
    /// Dropped: packets beyond the window.
    Grows beyond_window,
    /// Ignored: packets that no honest peer sends.
    Grows violations,
    /// Dropped by the system, because the socket was full.
    Grows socket_drops,
    /// System calls that sent.
    Grows send_calls,
    /// System calls that received, or were empty.
    Grows receive_calls,
    /// Octets of user data that were sent.
    Grows data_sent,
    /// Octets of user data copied before they were passed to the system.
    Grows data_copied_before,
    /// Octets of user data that the system has copied to send them.
    Grows data_copied_to_system,
    /// Octets of received user data, each counted once.
    Grows data_received,
    /// Octets of user data copied after the system had delivered them, to the message or to an intermediate
    /// buffer.
    Grows data_copied_after,
    /// Packets that may be in flight.
    IsNow window,
    /// Octets of the longest datagrams.
    IsNow datagram_len,
    /// The smoothed round trip, in nanoseconds; 0 before any sample.
    IsNow round_trip_ns,
    /// The variation of the round trip, in nanoseconds.
    IsNow round_trip_variation_ns,
}

impl Datagrams {
    /// The sum of both: growing values are added, and of current ones the larger is taken.
    #[must_use]
    pub fn plus(&self, other: &Datagrams) -> Datagrams {
        self.with(other, |one, other| one.wrapping_add(other), u64::max)
    }

    /// The growth since an earlier time, and the current values.
    #[must_use]
    pub fn since(&self, earlier: &Datagrams) -> Datagrams {
        self.with(earlier, |now, earlier| now.wrapping_sub(earlier), |now, _| now)
    }

    fn with(&self, other: &Datagrams, grows: fn(u64, u64) -> u64, is_now: fn(u64, u64) -> u64) -> Datagrams {
        let (ours, others) = (self.values(), other.values());
        Datagrams::of(std::array::from_fn(|at| match Self::KINDS[at] {
            Grows => grows(ours[at], others[at]),
            IsNow => is_now(ours[at], others[at]),
        }))
    }

    /// Datagrams that arrived and were dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.malformed
            + self.bad_checksums
            + self.unknown
            + self.duplicates
            + self.beyond_window
            + self.socket_drops
    }

    /// Copies per octet of sent user data, with the system's copy; `None` if nothing was sent.
    #[must_use]
    pub fn copies_sent(&self) -> Option<f64> {
        let copied = self.data_copied_before + self.data_copied_to_system;
        (self.data_sent > 0).then(|| copied as f64 / self.data_sent as f64)
    }

    /// Copies per octet of received user data after the system's copy; `None` if nothing was received.
    #[must_use]
    pub fn copies_received(&self) -> Option<f64> {
        (self.data_received > 0).then(|| self.data_copied_after as f64 / self.data_received as f64)
    }

    /// The counters that are not 0, as `name=value` with blanks between.
    #[must_use]
    pub fn words(&self) -> String {
        let pairs = Self::NAMES.iter().zip(self.values()).filter(|(_, value)| *value > 0);
        pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// The counters of such words. Missing ones are 0.
    ///
    /// # Errors
    /// The word that is no counter.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Datagrams, &'a str> {
        let mut values = [0; Self::NAMES.len()];
        for word in words {
            let (name, value) = word.split_once('=').ok_or(word)?;
            let at = Self::NAMES.iter().position(|known| *known == name).ok_or(word)?;
            values[at] = value.parse().map_err(|_| word)?;
        }
        Ok(Datagrams::of(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different values for all counters.
    fn numbered(first: u64) -> Datagrams {
        Datagrams::of(std::array::from_fn(|at| first + at as u64))
    }

    #[test]
    fn counters_round_trip_through_words() {
        let all = numbered(1);
        assert_eq!(Datagrams::parse(all.words().split(' ')), Ok(all));
        assert_eq!(Datagrams::default().words(), "");
        assert_eq!(Datagrams::parse([]), Ok(Datagrams::default()));
        for nonsense in ["acks", "acks=", "acks=x", "acks=-1", "ack=1"] {
            assert_eq!(Datagrams::parse(["kept=1", nonsense]), Err(nonsense));
        }
    }

    #[test]
    fn counters_are_summed_and_gauges_are_not() {
        let (early, late) = (numbered(100), numbered(1000));
        let since = late.since(&early);
        assert_eq!((since.acks, since.data_copied_after), (900, 900));
        assert_eq!((since.window, since.round_trip_ns), (late.window, late.round_trip_ns));
        let both = early.plus(&since);
        assert_eq!(both.messages_sent, late.messages_sent);
        assert_eq!(both.round_trip_variation_ns, late.round_trip_variation_ns);
    }

    #[test]
    fn copies_are_counted_by_octet() {
        let counters = Datagrams {
            data_sent: 100,
            data_copied_before: 50,
            data_copied_to_system: 100,
            data_received: 10,
            data_copied_after: 20,
            ..Datagrams::default()
        };
        assert_eq!((counters.copies_sent(), counters.copies_received()), (Some(1.5), Some(2.0)));
        assert_eq!(Datagrams::default().copies_sent(), None);
    }
}
