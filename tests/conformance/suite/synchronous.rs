//! Completion of sends: a synchronous one is done when it is matched, and so is a standard one past the
//! credit.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mpjdev_engine::{Mode, RequestId};

use crate::rank_harness::{ANY, Job, Party, from, run};
use crate::test_message::Letter;
use crate::transport_fixtures::{Ability, World, in_every_world};

in_every_world![
    a_synchronous_send_is_pending_until_its_receive_is_posted,
    a_synchronous_send_is_done_when_its_receive_was_there_before,
    a_blocking_synchronous_send_returns_only_after_its_match,
    a_standard_send_within_the_credit_needs_no_receive,
    standard_sends_past_the_credit_are_done_after_their_match,
    credit_comes_back_when_messages_are_received,
    some_messages_larger_than_the_credit_go_when_nothing_else_is_on_its_way,
    a_send_that_is_cancelled_gives_its_credit_back,
    a_rank_that_only_tests_gets_its_answers_from_one_that_does_not_call_in,
];

fn letters() -> [Letter; 4] {
    [Letter::plain(1, 0), Letter::plain(2, 64), Letter::plain(3, 5000), Letter::split(4, 64, 999)]
}

fn is_pending(party: &Party, id: RequestId) -> bool {
    party.comm.test(id).expect("test").is_none()
}

/// The receiver has seen the message by a probe, and still the sender's request is pending; the receive is
/// posted only after the sender has looked.
fn a_synchronous_send_is_pending_until_its_receive_is_posted(world: &World) {
    run(world, 2, |party| {
        for (i, letter) in letters().iter().enumerate() {
            let (arrived, looked) = (format!("arrived {i}"), format!("looked {i}"));
            if party.rank() == 0 {
                let id = party.isend(Mode::Synchronous, letter, 1, 1).expect("pending");
                party.until("the message is at its destination", || {
                    assert!(is_pending(party, id));
                    party.was_said(&arrived)
                });
                for _ in 0..100 {
                    assert!(is_pending(party, id), "done though nobody has posted a receive");
                }
                party.say(&looked);
                party.wait(id);
            } else {
                party.see(ANY);
                party.say(&arrived);
                party.hear(&looked);
                party.expect(ANY, letter);
            }
        }
    });
}

/// The other order: nothing but progress is needed.
fn a_synchronous_send_is_done_when_its_receive_was_there_before(world: &World) {
    run(world, 2, |party| {
        for (i, letter) in letters().iter().enumerate() {
            let posted = format!("posted {i}");
            if party.rank() == 0 {
                party.hear(&posted);
                party.ssend(letter, 1, 1);
            } else {
                let id = party.post(ANY, letter.needs());
                party.say(&posted);
                party.wait_letter(id, letter);
            }
        }
    });
}

/// The note that the receiver writes before it receives is there when the blocking send returns.
fn a_blocking_synchronous_send_returns_only_after_its_match(world: &World) {
    run(world, 2, |party| {
        for (i, letter) in letters().iter().enumerate() {
            let received = format!("about to receive {i}");
            if party.rank() == 0 {
                party.ssend(letter, 1, 1);
                assert!(party.was_said(&received));
            } else {
                party.see(ANY);
                party.say(&received);
                party.expect(ANY, letter);
            }
        }
    });
}

/// Both ranks send before either receives.
fn a_standard_send_within_the_credit_needs_no_receive(world: &World) {
    let job = Job::new(world, 2).tuned(|config| config.credit = 1 << 20);
    job.run(|party| {
        let peer = 1 - party.rank();
        let letters = [Letter::plain(1, 64), Letter::plain(2, 5000), Letter::split(3, 64, 900)];
        for letter in &letters {
            party.send(letter, peer, 1);
        }
        for letter in &letters {
            party.expect(from(peer, 1), letter);
        }
    });
}

/// The receiver has all messages before it receives the first; no more of them are done than the credit
/// allows.
fn standard_sends_past_the_credit_are_done_after_their_match(world: &World) {
    const CREDIT: usize = 8192;
    const COUNT: usize = 40;
    let job = Job::new(world, 2).tuned(|config| config.credit = config.credit.min(CREDIT as u64));
    job.run(|party| {
        let letter = |i: usize| Letter::plain(i as u64, 1000);
        if party.rank() == 0 {
            let sends: Vec<_> =
                (0..COUNT).map(|i| party.isend(Mode::Standard, &letter(i), 1, i as i32)).collect();
            party.until("all messages are at their destination", || {
                for id in sends.iter().flatten() {
                    party.comm.is_done(*id);
                }
                party.was_said("all there")
            });
            let is_done = |id: &Option<RequestId>| id.is_none_or(|id| party.comm.is_done(id));
            let done = sends.iter().filter(|id| is_done(id)).count();
            assert!(done * 1016 <= CREDIT, "{done} sends are done past a credit of {CREDIT}");
            party.say("looked");
            party.wait_all(sends);
        } else {
            // Non-overtaking: when the last one is there, all are.
            party.see(from(0, COUNT as i32 - 1));
            party.say("all there");
            party.hear("looked");
            for i in 0..COUNT {
                party.expect(from(0, i as i32), &letter(i));
            }
        }
    });
}

/// After a round of receives a full credit of messages can be sent once more without waiting, unless what
/// tells of them is late.
fn credit_comes_back_when_messages_are_received(world: &World) {
    if !world.can(Ability::Prompt, "credit_comes_back_when_messages_are_received") {
        return;
    }
    let rounds = world.amount(20, 20);
    // Several times what a round takes: the sender learns of matches a quarter of the credit late.
    let job = Job::new(world, 2).tuned(|config| (config.credit, config.queue_cells) = (64 << 10, 256));
    job.run(|party| {
        let letter = Letter::plain(1, 1000);
        let mut at_once = 0;
        for round in 0.. {
            let (received, goes_on) = (format!("received {round}"), format!("round {round} is over"));
            if party.rank() == 0 {
                let sends: Vec<_> = (0..30).map(|_| party.isend(Mode::Standard, &letter, 1, 1)).collect();
                at_once += usize::from(sends.iter().all(Option::is_none));
                party.hear(&received);
                party.wait_all(sends);
                if at_once == rounds {
                    party.say("enough");
                }
                party.say(&goes_on);
            } else {
                for _ in 0..30 {
                    party.expect(from(0, 1), &letter);
                }
                party.say(&received);
                party.hear(&goes_on);
            }
            if party.was_said("enough") {
                break;
            }
        }
    });
}

/// Else every large message would cost a round trip. Where messages are copied one goes, the second one
/// waits, and when both are received the next one goes. Where they stay their sender's memory a few go.
fn some_messages_larger_than_the_credit_go_when_nothing_else_is_on_its_way(world: &World) {
    if !world.can(Ability::Bulk, "some_messages_larger_than_the_credit_go_when_nothing_else_is_on_its_way") {
        return;
    }
    // As many as there are parts of the credit but one; the sender learns of one match late.
    let goes = match (world.config)().message_oriented {
        true => 1..=1,
        false => 6..=7,
    };
    let job = Job::new(world, 2).tuned(|config| (config.credit, config.queue_cells) = (64 << 10, 16));
    let went = AtomicU64::new(0);
    job.run(|party| {
        let letter = Letter::plain(1, 1 << 20);
        for round in 0..5 {
            let received = format!("received {round}");
            if party.rank() == 0 {
                let mut at_once = 0u64;
                let waits = loop {
                    match party.isend(Mode::Standard, &letter, 1, 1) {
                        Some(waits) => break waits,
                        None => at_once += 1,
                    }
                };
                assert!(is_pending(party, waits), "in round {round}");
                assert!(goes.contains(&at_once), "{at_once} went in round {round}");
                went.store(at_once, Relaxed);
                party.say(&format!("sent {round}"));
                party.wait_all(vec![Some(waits)]);
                party.hear(&received);
            } else {
                party.hear(&format!("sent {round}"));
                for _ in 0..=went.load(Relaxed) {
                    party.expect(from(0, 1), &letter);
                }
                party.say(&received);
            }
        }
    });
}

/// A cancelled send has not left, so it must not count as unexpected memory of the receiver for ever.
fn a_send_that_is_cancelled_gives_its_credit_back(world: &World) {
    let job = Job::new(world, 2).tuned(|config| (config.credit, config.queue_cells) = (64 << 10, 4));
    job.run(|party| {
        let letter = Letter::plain(1, 1000);
        if party.rank() == 0 {
            // The receiver takes nothing out of the queue as long as it only listens.
            let sent: Vec<_> = (0..4).map(|_| party.isend(Mode::Standard, &letter, 1, 1)).collect();
            let mut left: Vec<_> = Vec::new();
            for _ in 0..200 {
                let Some(id) = party.isend(Mode::Standard, &letter, 1, 2) else {
                    left.push(None);
                    continue;
                };
                match party.comm.cancel(id).expect("cancel") {
                    true => assert!(party.comm.test(id).is_err()),
                    false => left.push(Some(id)),
                }
            }
            party.say(&format!("{} left", left.len()));
            party.say("cancelled");
            party.wait_all(left);
            party.wait_all(sent);
            party.hear("received");
            assert_eq!(party.isend(Mode::Standard, &letter, 1, 3), None, "credit was lost");
        } else {
            party.hear("cancelled");
            let left = (0..=200).find(|n| party.was_said(&format!("{n} left"))).expect("a number");
            for _ in 0..4 {
                party.expect(from(0, 1), &letter);
            }
            for _ in 0..left {
                party.expect(from(0, 2), &letter);
            }
            party.say("received");
            party.expect(from(0, 3), &letter);
        }
    });
}

/// The answer did not fit into the sender's queue, and the receiver does something else since.
fn a_rank_that_only_tests_gets_its_answers_from_one_that_does_not_call_in(world: &World) {
    Job::new(world, 2).tuned(|config| config.queue_cells = 2).run(|party| {
        let letter = Letter::plain(1, 16);
        if party.rank() == 0 {
            let id = party.isend(Mode::Synchronous, &letter, 1, 1).expect("pending");
            party.hear("received");
            party.until("the answer is here", || !is_pending(party, id));
            party.say("answered");
            (0..2).for_each(|_| assert_eq!(party.expect(ANY, &letter).source, 1));
        } else {
            party.until("the message is here", || party.comm.iprobe(ANY).expect("iprobe").is_some());
            let fill: Vec<_> = (0..2).map(|_| party.isend(Mode::Standard, &letter, 0, 1)).collect();
            party.expect(ANY, &letter);
            party.say("received");
            party.hear("answered");
            party.wait_all(fill);
        }
    });
}
