//! Deadlines of a startup server.

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::{Failure, Fault, Limits, Ranks, Server, ServerEvent, ServerSettings};

use crate::job::{LIMITS, NO_KEY, Watched, joining, message};

fn started(form_ms: Option<u64>) -> Watched {
    let limits = Limits { form_ms, ..LIMITS };
    let settings = ServerSettings { clients: 3, dialect: Dialect::Final, auth: NO_KEY, limits };
    Watched::new(Server::new(settings, 1000).expect("sound"))
}

/// Advances the time; nothing may happen before.
fn pass(watched: &mut Watched, until_ms: u64) {
    let events = watched.events.len();
    let closed = watched.closed.len();
    assert_eq!(watched.server.next_deadline(), Some(until_ms));
    watched.server.handle_timeout(until_ms - 1);
    watched.drain();
    assert_eq!((watched.events.len(), watched.closed.len()), (events, closed));
    watched.server.handle_timeout(until_ms);
    watched.drain();
}

fn over(failure: Failure) -> Option<ServerEvent> {
    Some(ServerEvent::Over(Err(failure)))
}

/// Proves that each connection has its own deadline to join, whether it sends octets or not, and that a
/// joined client may wait.
#[test]
fn connection_that_does_not_join_in_time_is_closed() {
    let mut watched = started(None);
    assert_eq!(watched.server.next_deadline(), None);
    watched.connect(2000, 0);
    watched.connect(2500, 1);
    watched.connect(2600, 2);
    watched.server.handle_octets(11_000, 1, &joining(1)[..23]);
    watched.server.handle_octets(11_000, 2, &joining(2));
    watched.drain();
    let fault = || Some(Fault::Silent { after_ms: 10_000 });
    pass(&mut watched, 12_000);
    assert_eq!(watched.closed, [(0, fault())]);
    pass(&mut watched, 12_500);
    assert_eq!(watched.closed[1..], [(1, fault())]);
    assert_eq!((watched.server.next_deadline(), watched.outcome()), (None, None));
}

#[test]
fn form_timeout_names_the_missing_clients() {
    let mut watched = started(Some(5000));
    watched.connect(1000, 0);
    watched.receive(0, &joining(1));
    pass(&mut watched, 6000);
    let failure = Failure::NotFormed { missing: Ranks(vec![0, 2]) };
    assert_eq!(failure.to_string(), "the time to form the job is over, without clients 0, 2");
    assert_eq!(watched.outcome().cloned(), over(failure));
    assert_eq!(watched.closed, [(0, None)]);
}

fn joined(form_ms: Option<u64>) -> Watched {
    let mut watched = started(form_ms);
    for rank in 0..3 {
        watched.connect(3000, rank);
        watched.server.handle_octets(3000, rank, &joining(rank as i32));
    }
    watched.drain();
    watched
}

#[test]
fn start_timeout_names_the_late_clients() {
    let failure = || Failure::NotStarted { silent: Ranks(vec![1]) };
    assert_eq!(failure().to_string(), "the time to start the job is over, all wait for client 1");
    for (form_ms, end_ms) in [(None, 63_000), (Some(10_000), 11_000), (Some(100_000), 63_000)] {
        let mut watched = joined(form_ms);
        [0, 2].into_iter().for_each(|conn| watched.receive(conn, &message(b"DONE", &[])));
        pass(&mut watched, end_ms);
        assert_eq!(watched.outcome().cloned(), over(failure()));
    }
}

fn running() -> Watched {
    let mut watched = joined(Some(10_000));
    (0..3).for_each(|conn| watched.receive(conn, &message(b"DONE", &[])));
    assert_eq!(watched.events.last(), Some(&ServerEvent::Running));
    assert_eq!(watched.server.next_deadline(), None, "a job may run as long as it likes");
    watched
}

/// Proves that after a loss the other clients may finish, and that the job has still failed.
#[test]
fn other_clients_finish_after_a_loss() {
    let mut watched = running();
    watched.server.handle_eof(50_000, 1);
    watched.drain();
    assert_eq!(watched.events.last(), Some(&ServerEvent::Lost { rank: 1, fault: Fault::Closed }));
    assert_eq!((watched.closed.as_slice(), watched.outcome()), (&[(1, Some(Fault::Closed))][..], None));
    watched.receive(0, &message(b"FINI", &[]));
    watched.receive(2, &message(b"FINI", &[]));
    let failure = Failure::Lost { lost: vec![(1, Fault::Closed)], unfinished: Ranks(vec![]) };
    assert_eq!(failure.to_string(), "client 1 was lost without FINI: the connection ended too early");
    assert_eq!(watched.outcome().cloned(), over(failure));
}

/// Proves that the grace time counts from the first loss, and that clients that have finished by then are not
/// named.
#[test]
fn job_ends_after_the_grace_time_of_a_loss() {
    let mut watched = running();
    watched.receive(2, &message(b"FINI", &[]));
    watched.server.handle_octets(50_000, 1, b"DONE\0\0\0\0");
    watched.drain();
    pass(&mut watched, 55_000);
    let Some(ServerEvent::Over(Err(failure))) = watched.outcome() else { panic!("{:?}", watched.events) };
    let text = "client 1 was lost without FINI: DONE comes out of turn, FINI is due; client 0 did not finish after that";
    assert_eq!(failure.to_string(), text);
    assert_eq!(watched.closed.last(), Some(&(0, None)));
}

#[test]
fn all_losses_are_named() {
    let mut watched = running();
    for conn in [2, 0, 1] {
        watched.server.handle_eof(50_000 + conn, conn);
    }
    watched.drain();
    let lost = [2, 0, 1].map(|rank| (rank, Fault::Closed)).to_vec();
    assert_eq!(watched.outcome().cloned(), over(Failure::Lost { lost, unfinished: Ranks(vec![]) }));
}
