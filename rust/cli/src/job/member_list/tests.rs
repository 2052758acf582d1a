//! Tests of ranks that send Hello and Cancel, in every order of their packets and of the monitor's turns.

use super::*;

/// A packet of a rank; the monitor may take a turn after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    rank: usize,
    is_cancel: bool,
    takes_turn: bool,
}

/// The answer to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Nothing,
    Joined,
    Cancelled,
    Refused(Refusal),
}

/// A rank's side of the sockets.
#[derive(Debug)]
struct JoiningRank {
    line: OwnedFd,
    answers: Option<OwnedFd>,
}

impl JoiningRank {
    fn hello(&mut self, rank: usize) {
        let (answers, theirs) = control::socket_pair().expect("sockets");
        rustix::io::ioctl_fionbio(&answers, true).expect("a socket");
        // The monitor forwards the descriptor of the segment and does not use it.
        let hello = Packet::Hello { rank: rank as u32 };
        control::send(self.line.as_fd(), hello, &[answers.as_fd(), theirs.as_fd()]).expect("sent");
        self.answers = Some(answers);
    }

    fn cancel(&self, rank: usize) {
        control::send(self.line.as_fd(), Packet::Cancel { rank: rank as u32 }, &[]).expect("sent");
    }

    /// The answer so far; there is at most one.
    fn answer(&self) -> Answer {
        let mut found = Answer::Nothing;
        let Some(answers) = &self.answers else { return found };
        while let Ok(Some(received)) = control::receive(answers.as_fd()) {
            let next = match received.packet {
                Some(Packet::World | Packet::Welcome { .. }) => Answer::Joined,
                Some(Packet::Segments { .. }) if found == Answer::Joined => continue,
                Some(Packet::Cancelled) => Answer::Cancelled,
                Some(Packet::Refused(why)) => Answer::Refused(why),
                other => panic!("{other:?} behind {found:?}"),
            };
            assert_eq!(found, Answer::Nothing, "then {next:?}");
            found = next;
        }
        found
    }
}

/// A member list and its ranks.
#[derive(Debug)]
struct Fixture {
    members: MemberList,
    ranks: Vec<JoiningRank>,
    /// Turns of the monitor before a site grants the world. One launcher without sites grants it at once.
    grant_after: usize,
    turns: usize,
}

impl Fixture {
    fn new(ranks: usize, extent: Extent, grant_after: usize) -> Fixture {
        let mut members = MemberList::new(ranks as u32, extent);
        let line =
            |rank| JoiningRank { line: members.control_socket(rank).expect("a socket"), answers: None };
        let ranks = (0..ranks as u32).map(line).collect();
        Fixture { members, ranks, grant_after, turns: 0 }
    }

    fn send(&mut self, step: Step) {
        match step.is_cancel {
            true => self.ranks[step.rank].cancel(step.rank),
            false => self.ranks[step.rank].hello(step.rank),
        }
        if step.takes_turn {
            self.turn();
        }
    }

    /// One turn of the monitor's loop.
    fn turn(&mut self) {
        self.members.listen();
        if self.members.undescribed().is_some() || self.turns > 0 {
            self.turns += 1;
        }
        if self.turns == self.grant_after + 1 && self.members.extent != Extent::Memory {
            let file = || control::socket_pair().expect("sockets").0;
            let listeners = self.ranks.iter().map(|_| file()).collect();
            self.members.grant_world(WorldGrant { description: file(), listeners, shares_memory: false });
        }
        self.members.answer();
    }

    fn answers(&self) -> Vec<Answer> {
        self.ranks.iter().map(JoiningRank::answer).collect()
    }
}

/// All interleavings of the ranks' steps, with and without a turn of the monitor after each step.
fn orders(left: &[Vec<bool>]) -> Vec<Vec<Step>> {
    if left.iter().all(Vec::is_empty) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for rank in (0..left.len()).filter(|rank| !left[*rank].is_empty()) {
        let mut rest = left.to_vec();
        let is_cancel = rest[rank].remove(0);
        for order in orders(&rest) {
            for takes_turn in [false, true] {
                let step = Step { rank, is_cancel, takes_turn };
                all.push([vec![step], order.clone()].concat());
            }
        }
    }
    all
}

#[test]
fn ranks_join_all_or_none_in_every_order_of_hello_cancel_and_welcome() {
    const HELLO: bool = false;
    const CANCEL: bool = true;
    let scripts = [
        vec![vec![HELLO, CANCEL], vec![HELLO]],
        vec![vec![HELLO, CANCEL], vec![HELLO, CANCEL]],
        vec![vec![HELLO, CANCEL], vec![HELLO], vec![HELLO]],
    ];
    let extents = [(Extent::Memory, 0), (Extent::Connections, 0), (Extent::Site, 0), (Extent::Site, 2)];
    let mut seen = [0; 2];
    for script in &scripts {
        for order in orders(script) {
            for (extent, grant_after) in extents {
                let what = format!("{extent:?}, granted after {grant_after}: {order:?}");
                let mut fixture = Fixture::new(script.len(), extent, grant_after);
                order.iter().for_each(|step| fixture.send(*step));
                (0..=grant_after).for_each(|_| fixture.turn());
                let joined = check(&mut fixture, script, &what);
                seen[usize::from(joined)] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?} orders without and with a job");
}

/// Whether all have joined. If not, none has joined, and all join when the cancelled ranks send a Hello
/// again.
fn check(fixture: &mut Fixture, script: &[Vec<bool>], what: &str) -> bool {
    let answers = fixture.answers();
    if answers.iter().all(|answer| *answer == Answer::Joined) {
        return true;
    }
    for (rank, answer) in answers.iter().enumerate() {
        let expected = if script[rank].len() > 1 { Answer::Cancelled } else { Answer::Nothing };
        assert_eq!(*answer, expected, "rank {rank} of {what}");
    }
    let again = (0..answers.len()).filter(|rank| answers[*rank] == Answer::Cancelled);
    again.for_each(|rank| fixture.ranks[rank].hello(rank));
    (0..=fixture.grant_after + 1).for_each(|_| fixture.turn());
    for (rank, before) in answers.iter().enumerate() {
        assert_eq!(fixture.ranks[rank].answer(), Answer::Joined, "rank {rank}, {before:?} before, of {what}");
    }
    false
}

#[test]
fn cancelled_rank_is_reported_as_late() {
    let mut fixture = Fixture::new(3, Extent::Memory, 0);
    for rank in [0, 1] {
        fixture.send(Step { rank, is_cancel: false, takes_turn: true });
    }
    fixture.send(Step { rank: 1, is_cancel: true, takes_turn: true });
    assert!(fixture.members.overdue_at(Duration::ZERO).is_some());
    assert_eq!(fixture.members.overdue(), Some(vec![1, 2]));
}

#[test]
fn cancel_before_hello_after_joining_or_by_another_process_is_ignored() {
    let mut fixture = Fixture::new(2, Extent::Memory, 0);
    // No rank has sent a Hello.
    fixture.send(Step { rank: 0, is_cancel: true, takes_turn: true });
    fixture.send(Step { rank: 0, is_cancel: false, takes_turn: true });
    fixture.members.handle_cancel(0, Pid::INIT);
    assert!(!fixture.members.is_busy(), "the process has sent no Hello");
    fixture.send(Step { rank: 1, is_cancel: false, takes_turn: true });
    // Both ranks have joined.
    fixture.send(Step { rank: 0, is_cancel: true, takes_turn: true });
    assert_eq!(fixture.answers(), [Answer::Joined; 2]);
}

#[test]
fn cancel_after_the_end_of_another_rank_gets_one_refusal() {
    let mut fixture = Fixture::new(2, Extent::Memory, 0);
    fixture.send(Step { rank: 0, is_cancel: false, takes_turn: true });
    fixture.members.handle_program_end(1);
    fixture.send(Step { rank: 0, is_cancel: true, takes_turn: true });
    assert_eq!(fixture.ranks[0].answer(), Answer::Refused(Refusal::Ended(1)));
}
