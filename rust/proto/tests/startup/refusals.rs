//! Refusals of a server: the connections that it closes, and those that stay (IMPI 5.3, 5.7).

use mpjdev_proto::impi::Dialect;
use mpjdev_proto::impi::startup::layout::{COLL_TOTAL_MAX, CmdError, Command, Label};
use mpjdev_proto::impi::startup::{
    Client, Failure, Fault, Server, ServerEvent, ServerSettings, SettingsError,
};

use crate::job::{LIMITS, NO_KEY, Watched, coll, joining, message, server, settings};

const MARK: [u8; 4] = [0xff; 4];

/// Command and length, without a payload.
fn head(command: &[u8; 4], len: u32) -> Vec<u8> {
    [&command[..], &len.to_be_bytes()].concat()
}

/// First octets of unauthenticated clients, each with its fault.
fn invalid_first_commands() -> Vec<(Vec<u8>, Fault)> {
    let auth = |rest: &[u8]| [&message(b"AUTH", &1u32.to_be_bytes()), rest].concat();
    let unexpected = |command, expected| Fault::Unexpected { command, expected };
    let unknown = |octets: &[u8; 4]| Fault::Cmd(CmdError::Unknown { code: i32::from_be_bytes(*octets) });
    let negative = |command, len| Fault::Cmd(CmdError::NegativeLen { command, len });
    vec![
        (b"GET / HTTP/1.1\r\n".to_vec(), unknown(b"GET ")),
        (vec![0; 8], unknown(&[0; 4])),
        ([&MARK[..], &MARK].concat(), unknown(&MARK)),
        (b"auth\0\0\0\x04".to_vec(), unknown(b"auth")),
        (joining(0)[12..].to_vec(), unexpected(Command::Impi, &[Command::Auth])),
        (coll(0x1000, &[]), unexpected(Command::Coll, &[Command::Auth])),
        (head(b"DONE", 0), unexpected(Command::Done, &[Command::Auth])),
        (head(b"FINI", 0), unexpected(Command::Fini, &[Command::Auth])),
        (head(b"AUTH", 0), Fault::Len { command: Command::Auth, len: 0 }),
        (head(b"AUTH", 5), Fault::Len { command: Command::Auth, len: 5 }),
        (head(b"AUTH", i32::MAX as u32), Fault::Len { command: Command::Auth, len: i32::MAX as u32 }),
        (head(b"AUTH", u32::MAX), negative(Command::Auth, -1)),
        (head(b"AUTH", 1 << 31), negative(Command::Auth, i32::MIN)),
        (message(b"AUTH", &[0; 4]), Fault::NoMethod { offered_mask: 0 }),
        (message(b"AUTH", &0xffff_fffeu32.to_be_bytes()), Fault::NoMethod { offered_mask: 0xffff_fffe }),
        (auth(&auth(&[])), unexpected(Command::Auth, &[Command::Impi])),
        (auth(&coll(0x1000, &[])), unexpected(Command::Coll, &[Command::Impi])),
        (auth(&head(b"IMPI", 0)), Fault::Len { command: Command::Impi, len: 0 }),
        (auth(&head(b"IMPI", 8)), Fault::Len { command: Command::Impi, len: 8 }),
        (auth(&head(b"IMPI", u32::MAX)), negative(Command::Impi, -1)),
        (joining(2), Fault::Rank { rank: 2, clients: 2 }),
        (joining(-1), Fault::Rank { rank: -1, clients: 2 }),
        (joining(i32::MIN), Fault::Rank { rank: i32::MIN, clients: 2 }),
        (joining(i32::MAX), Fault::Rank { rank: i32::MAX, clients: 2 }),
        // The job's own client 0 has joined before.
        (joining(0), Fault::RankTaken { rank: 0 }),
    ]
}

/// Proves that each of these closes its connection with its fault, at any octet, and that the job runs
/// without an error.
#[test]
fn unauthenticated_client_is_refused_and_the_others_continue() {
    for (words, fault) in invalid_first_commands() {
        for piece_len in [1, usize::MAX] {
            let mut watched = Watched::new(server(2, NO_KEY, Dialect::Final));
            (0..3).for_each(|conn| watched.connect(0, conn));
            let mut clients = [0, 1].map(|rank| Client::new(settings(rank)).expect("sound"));
            watched.serve(0, &mut clients[0]);
            words.chunks(piece_len).for_each(|piece| watched.receive(2, piece));
            assert_eq!(watched.closed, [(2, Some(fault.clone()))]);
            watched.receive(2, b"more that is not read");
            finish(&mut watched, &mut clients);
        }
    }
}

/// Runs both clients to an orderly end.
fn finish(watched: &mut Watched, clients: &mut [Client; 2]) {
    for _ in 0..40 {
        (0..).zip(clients.iter_mut()).for_each(|(conn, client)| drop(watched.serve(conn, client)));
    }
    for (conn, client) in (0..).zip(clients) {
        client.finish().expect("it runs");
        watched.serve(conn, client);
    }
    assert_eq!(watched.events.last(), Some(&ServerEvent::Over(Ok(()))));
}

/// Proves that a surplus client is refused, before and after the job has formed.
#[test]
fn surplus_client_is_refused() {
    let full = Some(Fault::Full { clients: 1 });
    let mut watched = Watched::new(server(1, NO_KEY, Dialect::Final));
    (0..3).for_each(|conn| watched.connect(0, conn));
    watched.receive(2, &joining(0));
    assert_eq!(watched.closed, [(0, full.clone()), (1, full.clone())]);
    watched.connect(0, 3);
    assert_eq!(watched.closed[2], (3, full));
    assert_eq!(watched.outcome(), None);
}

/// Proves that a full server admits a new connection and evicts the oldest one that has sent nothing.
#[test]
fn connection_past_the_limit_evicts_the_oldest_silent_one() {
    let mut watched = Watched::new(server(32, NO_KEY, Dialect::Final));
    (0..8).for_each(|conn| watched.connect(0, conn));
    watched.receive(0, b"AU");
    watched.connect(0, 8);
    assert_eq!(watched.closed, [(1, Some(Fault::Evicted { unjoined: 8 }))]);
    // A connection that joins makes room.
    watched.receive(8, &joining(31));
    watched.connect(0, 9);
    watched.connect(0, 10);
    assert_eq!(watched.closed[1..], [(2, Some(Fault::Evicted { unjoined: 8 }))]);
    assert_eq!(watched.server.next_deadline(), Some(LIMITS.join_ms));
}

/// Proves that make_room evicts the oldest silent connection, and never a client.
#[test]
fn make_room_evicts_the_oldest_silent_connection_and_no_client() {
    let mut watched = Watched::new(server(32, NO_KEY, Dialect::Final));
    (0..3).for_each(|conn| watched.connect(0, conn));
    watched.receive(0, &joining(31));
    assert!(watched.server.make_room());
    assert!(watched.server.make_room());
    assert!(!watched.server.make_room());
    watched.drain();
    let evicted = |unjoined| Some(Fault::Evicted { unjoined });
    assert_eq!(watched.closed, [(1, evicted(2)), (2, evicted(1))]);
}

/// Proves that a source that floods the server evicts its own connections only.
#[test]
fn flood_from_one_source_evicts_no_connection_of_another() {
    let mut watched = Watched::new(server(2, NO_KEY, Dialect::Final));
    watched.connect_from(0, 0, 7);
    watched.connect_from(0, 1, 8);
    watched.receive(1, b"AUTH");
    for conn in 2..1000 {
        watched.connect_from(0, conn, 9);
        watched.receive(conn, b"A");
    }
    assert_eq!(watched.closed.len(), 992);
    assert!(watched.closed.iter().all(|(conn, _)| *conn >= 2), "{:?}", watched.closed);
    watched.receive(0, &joining(1));
    watched.receive(1, &joining(0)[4..]);
    assert!(watched.events.contains(&ServerEvent::Formed));
}

/// Proves that labels behind a rank are kept until all have joined, in any order of clients.
#[test]
fn labels_sent_before_the_job_has_formed_are_kept() {
    let mut watched = Watched::new(server(2, NO_KEY, Dialect::Final));
    (0..2).for_each(|conn| watched.connect(0, conn));
    watched.receive(1, &[joining(1), coll(0x1000, &[7; 3]), message(b"DONE", &[])].concat());
    assert_eq!((watched.sent_to(1).len(), watched.closed.len()), (8, 0), "the answer to AUTH alone");
    watched.receive(0, &[joining(0), coll(0x1000, &[8; 2]), message(b"DONE", &[])].concat());
    let size = message(b"IMPI", &[0, 0, 0, 2]);
    let tables = message(b"COLL", &[0, 0, 0x10, 0, 0, 0, 0, 3, 8, 8, 7, 7, 7]);
    let sent = [size, tables, message(b"DONE", &[])].concat();
    assert_eq!(watched.sent_to(1), sent);
    assert!(watched.sent_to(0).ends_with(&sent));
    assert!(watched.events.contains(&ServerEvent::Running));
}

/// A job of two whose clients have sent these octets; returns client 1's fault and the outcome.
fn broken(before: &[(u64, Vec<u8>)], words: &[u8]) -> (Option<Fault>, Option<ServerEvent>) {
    let mut watched = Watched::new(server(2, NO_KEY, Dialect::Final));
    (0..2).for_each(|conn| watched.connect(0, conn));
    before.iter().for_each(|(conn, octets)| watched.receive(*conn, octets));
    assert_eq!(watched.closed, []);
    watched.receive(1, words);
    if watched.outcome().is_some() {
        assert!(watched.closed.contains(&(0, None)), "all are closed");
        assert_eq!(watched.server.next_deadline(), None);
    }
    (watched.fault(1).cloned(), watched.outcome().cloned())
}

/// Proves that a client's fault before the job runs ends it for all, with the client and the fault.
#[test]
fn fault_before_the_job_runs_ends_it_for_all() {
    let alone = vec![(1, joining(1))];
    let early = [alone.clone(), vec![(1, message(b"DONE", &[]))]].concat();
    let both = vec![(1, joining(1)), (0, joining(0))];
    let said = [both.clone(), vec![(1, coll(0x1000, &[7; 3]))]].concat();
    let done = [both.clone(), vec![(1, message(b"DONE", &[]))]].concat();
    let unexpected = |command, expected| Fault::Unexpected { command, expected };
    const LABELS: &[Command] = &[Command::Coll, Command::Done];
    let label = |label, before| Fault::Label { label: Label(label), before: Label(before) };
    let cases = [
        (&early, coll(0x1000, &[]), unexpected(Command::Coll, &[])),
        (&alone, message(b"IMPI", &[0; 4]), unexpected(Command::Impi, LABELS)),
        (&alone, message(b"FINI", &[]), unexpected(Command::Fini, LABELS)),
        (&alone, b"????????".to_vec(), Fault::Cmd(CmdError::Unknown { code: 0x3f3f_3f3f })),
        (&both, message(b"AUTH", &[0; 4]), unexpected(Command::Auth, LABELS)),
        (&both, message(b"FINI", &[]), unexpected(Command::Fini, LABELS)),
        (&both, head(b"COLL", 3), Fault::Len { command: Command::Coll, len: 3 }),
        (
            &both,
            head(b"COLL", u32::MAX),
            Fault::Cmd(CmdError::NegativeLen { command: Command::Coll, len: -1 }),
        ),
        (&both, head(b"COLL", i32::MAX as u32), Fault::TooMuch { total_len: i32::MAX as usize - 4 }),
        (&both, head(b"DONE", 1), Fault::Len { command: Command::Done, len: 1 }),
        (&both, coll(0, &[]), label(0, 0)),
        (&both, coll(-1, &[]), label(-1, 0)),
        (&said, coll(0x1000, &[]), label(0x1000, 0x1000)),
        (&said, coll(0xfff, &[]), label(0xfff, 0x1000)),
        (&done, coll(0x3100, &[]), unexpected(Command::Coll, &[])),
        (&done, message(b"DONE", &[]), unexpected(Command::Done, &[])),
        (&done, message(b"FINI", &[]), unexpected(Command::Fini, &[])),
    ];
    for (before, words, fault) in cases {
        let failure = Failure::Client { rank: 1, fault: fault.clone() };
        assert!(failure.to_string().starts_with("client 1 failed before the job ran: "), "{failure}");
        assert_eq!(broken(before, &words), (Some(fault), Some(ServerEvent::Over(Err(failure)))));
    }
}

/// Proves that announced lengths are summed before their octets arrive, up to the limit.
#[test]
fn data_of_all_clients_together_are_limited() {
    let both = vec![(1, joining(1)), (0, joining(0))];
    let most = head(b"COLL", (COLL_TOTAL_MAX - 10 + 4) as u32);
    let before = [both, vec![(0, most)]].concat();
    assert_eq!(broken(&before, &head(b"COLL", 10 + 4)), (None, None));
    let fault = Some(Fault::TooMuch { total_len: COLL_TOTAL_MAX + 1 });
    assert_eq!(broken(&before, &head(b"COLL", 11 + 4)).0, fault);
}

#[test]
fn labels_without_data_are_counted() {
    let both = vec![(1, joining(1)), (0, joining(0))];
    let labels = |count: i32| (1..=count).flat_map(|label| coll(label, &[])).collect::<Vec<u8>>();
    assert_eq!(broken(&both, &labels(1024)), (None, None));
    assert_eq!(broken(&both, &labels(1025)).0, Some(Fault::TooManyLabels { max: 1024 }));
}

/// Proves that labels are forwarded when all clients have passed them, with the mask of their senders, also
/// unknown ones (IMPI 5.4).
#[test]
fn labels_of_some_clients_are_forwarded_with_their_mask() {
    let mut watched = Watched::new(server(2, NO_KEY, Dialect::Final));
    (0..2).for_each(|conn| watched.connect(0, conn));
    (0..2).for_each(|rank| watched.receive(rank, &joining(rank as i32)));
    watched.sent.clear();
    let reply = |label: i32, mask: u32, data: &[u8]| {
        message(b"COLL", &[&label.to_be_bytes()[..], &mask.to_be_bytes(), data].concat())
    };
    watched.receive(0, &coll(5, b"ab"));
    assert_eq!(watched.sent, []);
    watched.receive(1, &coll(7, b"xy"));
    assert_eq!(watched.sent_to(1), reply(5, 1, b"ab"));
    watched.receive(0, &[coll(7, b""), coll(8, b"c"), message(b"DONE", &[])].concat());
    assert_eq!(watched.sent_to(1), reply(7, 3, b"xy"));
    watched.receive(1, &coll(9, b"z"));
    assert_eq!(watched.sent_to(1), [reply(8, 1, b"c"), reply(9, 2, b"z")].concat());
    watched.receive(1, &message(b"DONE", &[]));
    assert_eq!(watched.sent_to(1), message(b"DONE", &[]));
    let all = [reply(5, 1, b"ab"), reply(7, 3, b"xy"), reply(8, 1, b"c"), reply(9, 2, b"z")].concat();
    assert_eq!(watched.sent_to(0), [all, message(b"DONE", &[])].concat());
}

#[test]
fn jobs_have_one_to_thirty_two_clients() {
    let new = |clients| {
        Server::new(ServerSettings { clients, dialect: Dialect::Final, auth: NO_KEY, limits: LIMITS }, 0)
            .err()
    };
    assert_eq!((new(1), new(32)), (None, None));
    for clients in [0, 33, u32::MAX] {
        let (field, value) = ("the number of clients", clients.into());
        assert_eq!(new(clients), Some(SettingsError::OutOfRange { field, value, min: 1, max: 32 }));
    }
}
