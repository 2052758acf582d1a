//! Targets of ranks over UDP: times and counters.

use super::super::counters::Counted;
use super::super::outcome::{Sample, median};
use super::Case::{Arrays, Buffers, Direct, RateArrays, RateBuffers};
use super::Role::{Aeron, Ours, OverTcp, Plain};
use super::delay::late;
use super::{Comparison, KIB, Limit, MIB, Quantity, Target, of_two, ratio, reported, speed};

/// Value derived from the counters of ranks over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Pure acks.
    PureAcks,
    /// Pure acks per window of packets sent.
    PureAcksOfWindow,
    /// Retransmitted packets.
    Retransmitted,
    /// System calls to send, per message.
    SendCalls,
    /// Copies of user data to send, with the kernel's copy.
    CopiesSent,
    /// Copies of user data to receive, with the kernel's copy.
    CopiesReceived,
}

impl Count {
    /// Median over the turns, which excludes turns in which a rank waited for a processor.
    pub(super) fn of(self, turns: &[Sample]) -> Option<f64> {
        median(turns.iter().filter_map(|turn| self.of_turn(&turn.counted?)).collect())
    }

    fn of_turn(self, counted: &Counted) -> Option<f64> {
        let numbers = &counted.numbers;
        match self {
            Count::PureAcks => Some(numbers.pure_acks as f64),
            Count::PureAcksOfWindow => {
                let windows = numbers.packets_sent as f64 / numbers.window as f64;
                Some(numbers.pure_acks as f64 / windows).filter(|acks| acks.is_finite())
            }
            Count::Retransmitted => Some(numbers.retransmitted as f64),
            Count::SendCalls => Some(counted.per_message(numbers.send_calls)),
            Count::CopiesSent => numbers.copies_sent(),
            Count::CopiesReceived => numbers.copies_received().map(|behind| 1.0 + behind),
        }
    }
}

const fn counted(title: &'static str, most: f64, part: usize, count: Count) -> Target {
    Target { title, quantity: Quantity::Counted(part, count), limit: Limit::Most(most) }
}

/// One copy, with an allowance for headers and control messages.
const ONE_COPY: f64 = 1.01;

pub(super) const UDP: &[Comparison] = &[
    late!("udp, 1 MiB, sender computes, late, ns", SendCompute, MIB),
    late!("udp, 1 KiB, receiver computes, late, ns", RecvCompute, KIB),
    of_two(
        &[(Ours, Arrays, 8), (Ours, Buffers, 8), (Plain, Arrays, 8), (Ours, Direct, 8)],
        &[
            ratio("udp, 8 B, array to array, plain sockets", 1.25, 0, 2),
            ratio("udp, 8 B, buffer to buffer, plain sockets", 1.25, 1, 2),
            ratio("udp, 8 B, direct, plain sockets", 1.25, 3, 2),
            counted("udp, 8 B there and back, pure acks", 0.0, 1, Count::PureAcks),
            counted("udp, 8 B there and back, retransmitted", 0.0, 1, Count::Retransmitted),
            counted("udp, 8 B there and back, system calls per send", 1.0, 1, Count::SendCalls),
        ],
    ),
    of_two(
        &[(Ours, Buffers, 8), (Aeron, Buffers, 8)],
        &[reported("udp, 8 B, buffer to buffer, Aeron UDP", Quantity::Ratio(0, 1))],
    ),
    of_two(
        &[(Ours, RateBuffers, MIB), (Plain, RateArrays, MIB), (Ours, RateArrays, MIB)],
        &[
            speed("udp, bandwidth of 1 MiB, buffers, plain sockets", 0.8, 0, 1),
            reported("udp, bandwidth of 1 MiB, arrays, plain sockets", Quantity::Speed(2, 1)),
            counted("udp, stream of 1 MiB, retransmitted", 0.0, 0, Count::Retransmitted),
            counted("udp, stream of 1 MiB, pure acks per window", 5.0, 0, Count::PureAcksOfWindow),
            counted("udp, stream of 1 MiB, copies to send", ONE_COPY, 0, Count::CopiesSent),
            counted("udp, stream of 1 MiB, copies to receive", ONE_COPY, 0, Count::CopiesReceived),
        ],
    ),
    of_two(
        &[(Ours, RateArrays, 8), (Ours, RateBuffers, 8), (OverTcp, RateArrays, 8), (OverTcp, RateBuffers, 8)],
        &[
            reported("udp, rate of 8 B, array to array, ours over tcp", Quantity::Speed(0, 2)),
            reported("udp, rate of 8 B, buffer to buffer, ours over tcp", Quantity::Speed(1, 3)),
        ],
    ),
    of_two(
        &[
            (Ours, RateArrays, 64 * KIB),
            (Ours, RateBuffers, 64 * KIB),
            (OverTcp, RateArrays, 64 * KIB),
            (OverTcp, RateBuffers, 64 * KIB),
        ],
        &[
            reported("udp, rate of 64 KiB, array to array, ours over tcp", Quantity::Speed(0, 2)),
            reported("udp, rate of 64 KiB, buffer to buffer, ours over tcp", Quantity::Speed(1, 3)),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use mpjdev_engine::stats::Datagrams;

    use super::*;

    #[test]
    fn datagram_figure_is_the_median_turn() {
        let turn = |retransmitted| {
            let numbers = Datagrams {
                retransmitted,
                pure_acks: 6,
                packets_sent: 300,
                window: 100,
                send_calls: 50,
                ..Datagrams::default()
            };
            Sample { counted: Some(Counted { messages: 100, numbers }), ..Sample::default() }
        };
        let turns = [turn(0), turn(90), turn(0)];
        let of = |count: Count| count.of(&turns);
        assert_eq!([of(Count::Retransmitted), of(Count::PureAcks)], [Some(0.0), Some(6.0)]);
        assert_eq!([of(Count::PureAcksOfWindow), of(Count::SendCalls)], [Some(2.0), Some(0.5)]);
        assert_eq!(of(Count::CopiesSent), None, "nothing was sent");
        assert_eq!(Count::PureAcks.of(&[Sample::default()]), None, "nothing was counted");
    }
}
