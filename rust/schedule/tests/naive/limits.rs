//! Messages of the algorithms that the table chooses, and blocks that do not fit.

use mpjdev_schedule::{Choices, Group, Operation, Placement, Run, Schedule, Step};

const SUM: Operation = Operation { unit: 1, is_commutative: true, is_exact: false, is_divisible: true };

/// Most messages that a rank sends, and most elements in all of them.
fn most_sent(size: u32, call: impl Fn(Group, &Choices<'_>) -> Schedule) -> (usize, usize) {
    let sends = |rank| {
        let schedule = call(Group { rank, size }, &Choices::default());
        let sent = schedule.steps.into_iter().filter_map(|step| match step {
            Step::Send { from, .. } => Some(from.len),
            _ => None,
        });
        sent.fold((0, 0), |(messages, elements), len| (messages + 1, elements + len))
    };
    let all: Vec<(usize, usize)> = (0..size).map(sends).collect();
    let most = |part: fn(&(usize, usize)) -> usize| all.iter().map(part).max().unwrap_or_default();
    (most(|sent| sent.0), most(|sent| sent.1))
}

#[test]
fn short_calls_take_logarithmic_numbers_of_messages() {
    assert_eq!(most_sent(16, |group, choices| mpjdev_schedule::bcast(group, 3, 10, 8, choices)), (4, 40));
    assert_eq!(most_sent(16, |group, choices| mpjdev_schedule::gather(group, 3, 10, 8, choices)), (1, 80));
    assert_eq!(most_sent(16, |group, choices| mpjdev_schedule::scatter(group, 3, 10, 8, choices)), (4, 150));
    assert_eq!(most_sent(16, |group, choices| mpjdev_schedule::allgather(group, 10, 8, choices)), (4, 150));
    assert_eq!(most_sent(15, |group, choices| mpjdev_schedule::allgather(group, 10, 8, choices)), (4, 140));
    assert_eq!(most_sent(16, |group, choices| mpjdev_schedule::alltoall(group, 10, 8, choices)), (4, 320));
    assert_eq!(
        most_sent(16, |group, choices| mpjdev_schedule::reduce(group, 3, 10, SUM, 8, choices)),
        (1, 10)
    );
    assert_eq!(
        most_sent(16, |group, choices| mpjdev_schedule::allreduce(group, 10, SUM, 8, choices)),
        (4, 40)
    );
    let counts = [10; 16];
    let scattered =
        |group, choices: &Choices<'_>| mpjdev_schedule::reduce_scatter(group, &counts, SUM, 8, choices);
    assert_eq!(most_sent(16, scattered), (4, 150));
    assert_eq!(most_sent(16, |group, _| mpjdev_schedule::scan(group, 10)), (4, 40));
}

/// Of `n` elements each rank sends about two vectors at most, whatever the number of ranks, or three if it is
/// not a power of two.
#[test]
fn long_vectors_are_sent_a_few_times() {
    let n = 1 << 20;
    let (_, sent) = most_sent(16, |group, choices| mpjdev_schedule::bcast(group, 3, n, 8, choices));
    assert_eq!(sent, n / 16 * 15 + n / 16 * 15);
    let (_, sent) = most_sent(16, |group, choices| mpjdev_schedule::reduce(group, 3, n, SUM, 8, choices));
    assert_eq!(sent, n / 16 * 15 + n / 16 * 8);
    // Those that are folded before and behind take a vector more: the order must be the same everywhere.
    for (size, vectors) in [(15, 3), (16, 2)] {
        let (_, sent) =
            most_sent(size, |group, choices| mpjdev_schedule::allreduce(group, n, SUM, 8, choices));
        assert!(sent <= vectors * n, "{sent} elements from one of {size} ranks");
    }
}

/// Messages between twelve ranks in sites of five, four and three that cross from one site to another.
fn crossings(call: impl Fn(Group, &Choices<'_>) -> Schedule) -> usize {
    let site_of = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2];
    let placement = Placement::of_sites(&site_of);
    let choices = Choices::default().placed(&placement);
    let crossing = |rank: u32| {
        let schedule = call(Group { rank, size: 12 }, &choices);
        let crosses = |dest: u32| site_of[dest as usize] != site_of[rank as usize];
        let messages = schedule.steps.into_iter().map(move |step| match step {
            Step::Send { dest, .. } => usize::from(crosses(dest)),
            Step::SendToRanks { first, end, .. } => (first..end).filter(|dest| crosses(*dest)).count(),
            _ => 0,
        });
        messages.sum::<usize>()
    };
    (0..12).map(crossing).sum()
}

#[test]
fn few_messages_cross_between_sites() {
    let n = 1 << 16;
    let exact = Operation { is_exact: true, ..SUM };
    for root in 0..12 {
        assert_eq!(crossings(|group, choices| mpjdev_schedule::bcast(group, root, n, 8, choices)), 2);
        assert_eq!(crossings(|group, choices| mpjdev_schedule::gather(group, root, 9, 8, choices)), 2);
        assert_eq!(crossings(|group, choices| mpjdev_schedule::scatter(group, root, 9, 8, choices)), 2);
        assert_eq!(crossings(|group, choices| mpjdev_schedule::reduce(group, root, n, SUM, 8, choices)), 2);
    }
    assert_eq!(crossings(|group, choices| mpjdev_schedule::allgather(group, n, 8, choices)), 6);
    // One pair of sites folds, two exchange, and the folded one gets the result.
    assert_eq!(crossings(|group, choices| mpjdev_schedule::allreduce(group, n, exact, 8, choices)), 4);
}

#[test]
fn own_block_that_is_too_long_is_cut() {
    let group = Group { rank: 1, size: 2 };
    let (sent, room) = (Run { start: 3, len: 5 }, Run { start: 3, len: 2 });
    let gathered = mpjdev_schedule::gatherv(group, 1, 5, &[3, 2]);
    assert_eq!((gathered.len, gathered.input, gathered.output[1]), (8, vec![sent], room));
    let scattered = mpjdev_schedule::scatterv(group, 1, 2, &[3, 5]);
    assert_eq!((scattered.len, scattered.input[1], scattered.output), (8, sent, vec![room]));
    let exchanged = mpjdev_schedule::alltoallv(group, &[3, 5], &[4, 2], 8, &Choices::default());
    assert_eq!((exchanged.len, exchanged.input[1], exchanged.output[1]), (12, sent, room));
}

/// Arrays may be longer than the group.
#[test]
fn further_counts_are_ignored() {
    let (group, choices) = (Group { rank: 0, size: 1 }, Choices::default());
    let counts = [4, 9];
    assert_eq!(mpjdev_schedule::gatherv(group, 0, 4, &counts).len, 4);
    assert_eq!(mpjdev_schedule::scatterv(group, 0, 4, &counts).len, 4);
    assert_eq!(mpjdev_schedule::allgatherv(group, &counts, 8, &choices).len, 4);
    assert_eq!(mpjdev_schedule::alltoallv(group, &counts, &counts, 8, &choices).len, 4);
    assert_eq!(mpjdev_schedule::reduce_scatter(group, &counts, SUM, 8, &choices).len, 4);
}
