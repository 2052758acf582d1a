//! Ackmark and hiwater, step by step.

use mpjdev_proto::impi::flow::{Flow, FlowError, MarksError};
use proptest::prelude::*;

fn flow(ackmark: u32, hiwater: u32) -> Flow {
    Flow::new(ackmark, hiwater).expect("good marks")
}

/// Sends while that is permitted; returns the number of packets.
fn fill(flow: &mut Flow) -> u32 {
    let mut count = 0;
    while flow.is_open() {
        flow.count_sent();
        flow.check_invariants();
        count += 1;
    }
    count
}

fn acks(flow: &mut Flow) -> u32 {
    std::iter::from_fn(|| flow.poll_protoack().then_some(())).count() as u32
}

/// Proves that marks without any flow, or without any ProtoAck, are refused.
#[test]
fn marks_are_refused_unless_one_to_ackmark_to_hiwater() {
    for (ackmark, hiwater) in [(0, 0), (0, 1), (2, 1), (u32::MAX, u32::MAX - 1)] {
        assert_eq!(Flow::new(ackmark, hiwater).unwrap_err(), MarksError { ackmark, hiwater });
    }
    for (ackmark, hiwater) in [(1, 1), (1, 2), (10, 20), (1, u32::MAX), (u32::MAX, u32::MAX)] {
        flow(ackmark, hiwater).check_invariants();
    }
}

/// Proves the capture with 3 and 5: five packets are sent, then three for each ProtoAck (IMPI 9).
#[test]
fn protoack_permits_ackmark_more_packets() {
    let mut flow = flow(3, 5);
    assert_eq!(fill(&mut flow), 5);
    for _ in 0..4 {
        assert_eq!(flow.handle_protoack(), Ok(()));
        assert_eq!(fill(&mut flow), 3);
    }
    assert_eq!(flow.sent(), 5);
}

/// Proves the capture with 10 and 20: 46 packets trigger four ProtoAcks (IMPI 9).
#[test]
fn one_protoack_is_due_for_every_ackmark_packets() {
    let mut flow = flow(10, 20);
    let mut due = Vec::new();
    for packet in 1..=46 {
        assert_eq!(flow.count_received(), Ok(()));
        for _ in 0..acks(&mut flow) {
            due.push(packet);
        }
    }
    assert_eq!(due, [10, 20, 30, 40]);
    assert_eq!(flow.rcvd(), 6);
}

/// Proves that with 1 and 1 every packet waits for the ProtoAck of the one before.
#[test]
fn marks_of_one_alternate() {
    let mut flow = flow(1, 1);
    for _ in 0..3 {
        assert_eq!(fill(&mut flow), 1);
        assert_eq!(flow.handle_protoack(), Ok(()));
        assert_eq!(flow.count_received(), Ok(()));
        assert_eq!(acks(&mut flow), 1);
    }
}

/// Proves that the counter never becomes negative: a ProtoAck for fewer packets than ackmark is refused.
#[test]
fn protoack_for_unsent_packets_is_an_error() {
    let mut flow = flow(3, 5);
    assert_eq!(flow.handle_protoack(), Err(FlowError::TooManyAcks { ackmark: 3, sent: 0 }));
    flow.count_sent();
    flow.count_sent();
    assert_eq!(flow.handle_protoack(), Err(FlowError::TooManyAcks { ackmark: 3, sent: 2 }));
    flow.count_sent();
    assert_eq!(flow.handle_protoack(), Ok(()));
    assert_eq!(flow.sent(), 0);
}

/// Proves that held ProtoAcks stop the peer at hiwater, are released together, and that a peer that does not
/// stop violates the flow.
#[test]
fn held_protoacks_stop_the_peer_and_are_released_at_once() {
    let mut flow = flow(2, 7);
    flow.hold_acks(true);
    for _ in 0..7 {
        assert_eq!(flow.count_received(), Ok(()));
        assert_eq!(acks(&mut flow), 0);
    }
    assert_eq!(flow.count_received(), Err(FlowError::Violation { hiwater: 7 }));
    assert_eq!(flow.rcvd(), 7);
    flow.hold_acks(false);
    assert_eq!(acks(&mut flow), 3);
    assert_eq!(flow.rcvd(), 1);
}

/// Proves that a ProtoAck counts when it is sent, not when it is due.
#[test]
fn unsent_protoack_permits_no_packets() {
    let mut flow = flow(1, 2);
    assert_eq!(flow.count_received(), Ok(()));
    assert_eq!(flow.count_received(), Ok(()));
    assert!(flow.is_ack_due());
    assert_eq!(flow.count_received(), Err(FlowError::Violation { hiwater: 2 }));
    assert!(flow.poll_protoack());
    assert_eq!(flow.count_received(), Ok(()));
}

proptest! {
    /// Proves that two ends which keep to the marks report no violation and never stall, with any packets in
    /// flight and any delay of ProtoAcks.
    #[test]
    fn two_honest_ends_never_violate_the_flow_and_never_stall(
        ackmark in 1u32..6, more in 0u32..6, steps in proptest::collection::vec(0u8..5, 0..400),
    ) {
        let (mut s, mut d) = (flow(ackmark, ackmark + more), flow(ackmark, ackmark + more));
        let (mut packets, mut acks) = (0u32, 0u32);
        for step in steps {
            match step {
                0 if s.is_open() => {
                    s.count_sent();
                    packets += 1;
                }
                1 if packets > 0 => {
                    packets -= 1;
                    prop_assert_eq!(d.count_received(), Ok(()));
                }
                2 if d.poll_protoack() => acks += 1,
                3 if acks > 0 => {
                    acks -= 1;
                    prop_assert_eq!(s.handle_protoack(), Ok(()));
                }
                4 => d.hold_acks(!d.is_holding_acks()),
                _ => {}
            }
            s.check_invariants();
            d.check_invariants();
            prop_assert_eq!(s.sent(), packets + d.rcvd() + acks * ackmark);
        }
        d.hold_acks(false);
        while packets > 0 {
            packets -= 1;
            prop_assert_eq!(d.count_received(), Ok(()));
        }
        while d.poll_protoack() {
            acks += 1;
        }
        while acks > 0 {
            acks -= 1;
            prop_assert_eq!(s.handle_protoack(), Ok(()));
        }
        prop_assert!(s.is_open());
    }
}
