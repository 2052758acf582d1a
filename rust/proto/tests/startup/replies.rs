//! A client's handling of the server's replies.

use mpjdev_proto::impi::startup::layout::{CmdError, Command, Label, Version};
use mpjdev_proto::impi::startup::{
    Client, ClientError, Event, HostSettings, Settings, SettingsError, Stage, TableError, Tables,
};
use mpjdev_proto::impi::{Dialect, Proc};

use crate::job::{host, lam, message, settings};

/// The replies of a server, as label, mask and data.
#[derive(Clone)]
struct Said {
    size: i32,
    replies: Vec<(Label, u32, Vec<u8>)>,
    done: Vec<u8>,
}

fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// A job of three: client 1 has two hosts with two processes and one, the others one of each.
fn sound() -> Said {
    let addresses = [2, 3, 4, 5].map(lam).concat();
    let host_ids = [2, 3, 3, 4, 5].map(lam).concat();
    let pids: Vec<u8> = [10i64, 11, 12, 13, 14].iter().flat_map(|pid| pid.to_be_bytes()).collect();
    let data = [
        vec![0; 24],
        u32s(&[1, 2, 1]),
        u32s(&[1, 3, 1]),
        u32s(&[65536, 1000, 2000]),
        u32s(&[0x7fff_ffff, 40000, 50000]),
        u32s(&[u32::MAX, 1024, u32::MAX]),
        u32s(&[4, u32::MAX, u32::MAX]),
        addresses,
        u32s(&[4000, 4001, 4002, 0xffff_1234]),
        u32s(&[1, 2, 1, 1]),
        u32s(&[10, 20, 30, 9]),
        u32s(&[20, 20, 30, 40]),
        host_ids,
        pids,
    ];
    let replies = Label::ALL.into_iter().zip(data).map(|(label, data)| (label, 7, data)).collect();
    Said { size: 3, replies, done: Vec::new() }
}

impl Said {
    /// Replaces the reply to this label.
    fn with(mut self, label: Label, mask: u32, data: Vec<u8>) -> Said {
        let reply = self.replies.iter_mut().find(|reply| reply.0 == label).expect("it is there");
        *reply = (label, mask, data);
        self
    }

    /// Inserts a reply before those of larger labels.
    fn and(mut self, label: i32, mask: u32, data: &[u8]) -> Said {
        let at = self.replies.iter().position(|reply| reply.0.0 > label).unwrap_or(self.replies.len());
        self.replies.insert(at, (Label(label), mask, data.to_vec()));
        self
    }

    fn octets(&self) -> Vec<u8> {
        let mut octets = vec![0; 8];
        octets.extend(message(b"IMPI", &self.size.to_be_bytes()));
        for (label, mask, data) in &self.replies {
            octets.extend(reply(label.0, *mask, data));
        }
        octets.extend(message(b"DONE", &self.done));
        octets
    }

    /// The tables or the error of client 0, equal with and without pipelining.
    fn parsed(&self) -> Result<Tables, ClientError> {
        let heard = |pipelines| {
            let mut client = Client::new(Settings { pipelines, ..settings(0) }).expect("sound");
            client.handle_octets(&self.octets())?;
            std::iter::from_fn(|| client.poll_event())
                .find_map(|event| if let Event::Done(tables) = event { Some(*tables) } else { None })
                .ok_or(ClientError::NotRunning)
        };
        assert_eq!(heard(true), heard(false));
        heard(true)
    }
}

fn reply(label: i32, mask: u32, data: &[u8]) -> Vec<u8> {
    message(b"COLL", &[&label.to_be_bytes()[..], &mask.to_be_bytes(), data].concat())
}

fn error(said: Said) -> TableError {
    match said.parsed() {
        Err(ClientError::Table(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn valid_replies_are_accepted() {
    let tables = sound().parsed().expect("sound");
    assert_eq!((tables.maxdatalen, tables.tag_ub, tables.xsize, tables.maxlinear), (1000, 40000, 1024, 4));
    assert_eq!((tables.ackmark, tables.hiwater), (9, 20));
    let hosts: Vec<_> =
        tables.hosts.iter().map(|host| (host.client, host.procs.clone(), host.port)).collect();
    assert_eq!(hosts, [(0, 0..1, 4000), (1, 1..3, 4001), (1, 3..4, 4002), (2, 4..5, 0x1234)]);
    let last = tables.procs[4];
    assert_eq!((last.proc, last.host, last.client), (Proc { host_id: lam(5), pid: 14 }, 3, 2));
}

/// Proves that each contradiction is refused with the client and the value.
#[test]
fn contradictory_replies_are_refused() {
    let with = |label, numbers: &[u32]| error(sound().with(label, 7, u32s(numbers)));
    let value = |label, client, value| TableError::Value { label, client, value };
    for label in [Label::C_NHOSTS, Label::C_NPROCS, Label::C_DATALEN] {
        assert_eq!(with(label, &[1, 2, 0]), value(label, 2, 0));
    }
    assert_eq!(with(Label::C_TAGUB, &[32766, 40000, 40000]), value(Label::C_TAGUB, 0, 32766));
    assert_eq!(with(Label::C_TAGUB, &[32767, u32::MAX, 40000]), value(Label::C_TAGUB, 1, -1));
    assert_eq!(with(Label::C_COLL_XSIZE, &[u32::MAX, u32::MAX - 1, 1024]), value(Label::C_COLL_XSIZE, 1, -2));
    assert_eq!(with(Label::H_ACKMARK, &[1, 1, 0, 1]), value(Label::H_ACKMARK, 1, 0));
    assert_eq!(with(Label::H_HIWATER, &[20, 20, 30, 0]), value(Label::H_HIWATER, 2, 0));
    let marks = TableError::Marks { host: 2, ackmark: 30, hiwater: 29 };
    assert_eq!(with(Label::H_HIWATER, &[20, 20, 29, 40]), marks);
    let sum = |on_hosts| TableError::Sum { client: 1, on_hosts, nprocs: 3 };
    assert_eq!(with(Label::H_NPROCS, &[1, 2, 2, 1]), sum(4));
    // Not modulo 2^32.
    assert_eq!(with(Label::H_NPROCS, &[1, u32::MAX, 4, 1]), sum(u64::from(u32::MAX) + 4));
    let too_many = |label, total, max| TableError::TooMany { label, total, max };
    assert_eq!(with(Label::C_NHOSTS, &[1, 65535, 1]), too_many(Label::C_NHOSTS, 65537, 65536));
    let all = 3 * u64::from(u32::MAX);
    assert_eq!(with(Label::C_NPROCS, &[u32::MAX; 3]), too_many(Label::C_NPROCS, all, 1 << 20));
    let same = [2, 3, 3, 3, 5].map(lam).concat();
    let pids: Vec<u8> = [10i64, 11, 12, 12, 14].iter().flat_map(|pid| pid.to_be_bytes()).collect();
    let twice = sound().with(Label::P_IPV6, 7, same).with(Label::P_PID, 7, pids);
    assert_eq!(error(twice), TableError::SameProc { first: 2, second: 3, pid: 12 });
}

#[test]
fn disagreement_error_has_the_value_of_each_client() {
    for label in [Label::C_COLL_XSIZE, Label::C_COLL_MAXLINEAR] {
        let default = if label == Label::C_COLL_XSIZE { 1024 } else { 4 };
        let found = error(sound().with(label, 7, u32s(&[u32::MAX, 5, 0])));
        assert_eq!(found, TableError::Disagreement { label, values: vec![default, 5, 0] });
        let text = format!(
            "{label} must be the same everywhere: client 0 has {default}, client 1 has 5, client 2 has 0"
        );
        assert_eq!(found.to_string(), text);
    }
}

/// Proves that every label's data must have exactly the length of mask and counts.
#[test]
fn data_of_a_wrong_length_are_refused() {
    for (label, mask, data) in sound().replies {
        for actual in [data.len() - 1, data.len() + 1, data.len() - 4, data.len() + 4, 0] {
            let mut changed = data.clone();
            changed.resize(actual, 0);
            let said = sound().with(label, mask, changed);
            match error(said) {
                TableError::Len { label: named, mask: 7, actual_len, .. } => {
                    assert_eq!((named, actual_len), (label, actual));
                }
                TableError::VersionLists { lists, mask: 7 } if label == Label::C_VERSION => {
                    assert_eq!(lists, actual / 8);
                }
                other => panic!("{label} of {actual}: {other}"),
            }
        }
    }
}

#[test]
fn version_lists_are_split_at_0_0() {
    let with = |numbers: &[u32]| sound().with(Label::C_VERSION, 7, u32s(numbers));
    let tables = with(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 0]).parsed().expect("three lists");
    let version = |major, minor| Version { major, minor };
    assert_eq!(tables.clients[0].versions, [version(0, 0), version(0, 1)]);
    assert_eq!(tables.clients[2].versions, [version(0, 0), version(0, 1), version(2, 0)]);
    assert_eq!((tables.version(0, 2), tables.version(2, 1)), (version(0, 1), version(0, 0)));
    let no_start = TableError::Version { version: version(0, 1), before: None };
    assert_eq!(error(with(&[0, 1, 0, 0, 0, 0])), no_start);
    let before = Some(version(1, 0));
    assert_eq!(
        error(with(&[0, 0, 1, 0, 0, 9, 0, 0])),
        TableError::Version { version: version(0, 9), before }
    );
    assert_eq!(
        error(with(&[0, 0, 1, 0, 1, 0, 0, 0])),
        TableError::Version { version: version(1, 0), before }
    );
    assert_eq!(error(with(&[0; 8])), TableError::VersionLists { lists: 4, mask: 7 });
    assert_eq!(error(with(&[0; 4])), TableError::VersionLists { lists: 2, mask: 7 });
}

/// Proves the defaults of omitted labels (IMPI 5.4), and which labels may not be omitted.
#[test]
fn omitted_label_has_its_default() {
    let leaves_out = |label| {
        let (_, _, mut data) =
            sound().replies.into_iter().find(|reply| reply.0 == label).expect("it is there");
        let one = match label {
            Label::H_IPV6 | Label::P_IPV6 => 16,
            Label::P_PID | Label::C_VERSION => 8,
            _ => 4,
        };
        data.truncate(data.len() - one);
        sound().with(label, 3, data)
    };
    let tables = |label| leaves_out(label).parsed().unwrap_or_else(|e| panic!("{label}: {e}"));
    assert_eq!(tables(Label::C_VERSION).clients[2].versions, [Version::V0_0]);
    assert_eq!(tables(Label::C_DATALEN).maxdatalen, 1);
    assert_eq!(tables(Label::C_TAGUB).tag_ub, 40000);
    assert_eq!(tables(Label::C_COLL_XSIZE).xsize, 1024);
    assert_eq!(tables(Label::C_COLL_MAXLINEAR).maxlinear, 4);
    let required = [Label::H_IPV6, Label::H_PORT, Label::H_NPROCS, Label::P_IPV6, Label::P_PID];
    for label in required.into_iter().chain([Label::H_ACKMARK, Label::H_HIWATER]) {
        assert_eq!(error(leaves_out(label)), TableError::Missing { label, client: 2 });
    }
    let disagreement = |values| TableError::Disagreement { label: Label::C_COLL_XSIZE, values };
    assert_eq!(error(sound().with(Label::C_COLL_XSIZE, 3, u32s(&[5, 5]))), disagreement(vec![5, 5, 1024]));
}

/// Proves that a client without hosts, because it omits that label, contributes nothing.
#[test]
fn client_without_hosts_contributes_nothing() {
    let mut said = sound();
    for (label, mask, data) in &mut said.replies {
        let one = match *label {
            Label::H_IPV6 | Label::P_IPV6 => 16,
            Label::P_PID => 8,
            _ => 4,
        };
        if *label != Label::C_VERSION {
            *mask = 3;
            data.truncate(data.len() - one);
        }
    }
    let tables = said.parsed().expect("two are enough");
    assert_eq!((tables.clients.len(), tables.hosts.len(), tables.procs.len()), (3, 3, 4));
    assert_eq!((tables.clients[2].hosts.clone(), tables.clients[2].procs.clone()), (3..3, 4..4));
    assert_eq!(tables.maxdatalen, 1);
}

#[test]
fn mask_with_other_clients_or_without_this_one_is_refused() {
    for label in Label::ALL {
        let (_, _, data) = sound().replies.into_iter().find(|reply| reply.0 == label).expect("it is there");
        let mask = |mask| sound().with(label, mask, data.clone()).parsed().err();
        let left_out = ClientError::LeftOut { label, mask: 6, rank: 0 };
        assert_eq!(mask(6), Some(left_out));
        let error = TableError::Mask { label, mask: 0x8000_0007, size: 3 };
        assert_eq!(mask(0x8000_0007), Some(ClientError::Table(error)));
    }
}

/// Proves that unknown labels are ignored at any position, and that all labels must ascend.
#[test]
fn unknown_label_is_ignored_and_label_out_of_order_refused() {
    let others = sound().and(1, 2, b"x").and(0x1001, 0xffff_ffff, b"").and(0x7fff_ffff, 6, &[0; 100]);
    assert_eq!(others.parsed(), sound().parsed());
    let done = Said { done: vec![1, 2, 3], ..sound() };
    assert_eq!(done.parsed(), sound().parsed());
    let mut skipped = sound();
    skipped.replies.remove(3);
    let expected = ClientError::Label { label: Label::C_TAGUB, expected: Label::C_DATALEN };
    assert_eq!(skipped.parsed(), Err(expected));
    let mut twice = sound();
    twice.replies.insert(3, twice.replies[2].clone());
    let order = |label, before| ClientError::Order { label, before };
    assert_eq!(twice.parsed(), Err(order(Label::C_NPROCS, Label::C_NPROCS)));
    let mut back = sound().and(0x7fff_ffff, 2, b"");
    back.replies.push((Label(0x4000), 2, Vec::new()));
    assert_eq!(back.parsed(), Err(order(Label(0x4000), Label(0x7fff_ffff))));
    assert_eq!(sound().and(-1, 2, b"").parsed(), Err(order(Label(-1), Label::NO_LABEL)));
}

#[test]
fn job_without_room_for_the_rank_is_refused() {
    for size in [0, -1, i32::MIN, 33, i32::MAX] {
        assert_eq!(Said { size, ..sound() }.parsed(), Err(ClientError::Size { rank: 0, size }));
    }
    let mut client = Client::new(settings(2)).expect("sound");
    let octets = [vec![0; 8], message(b"IMPI", &2i32.to_be_bytes())].concat();
    assert_eq!(client.handle_octets(&octets), Err(ClientError::Size { rank: 2, size: 2 }));
}

/// Proves that commands out of turn and wrong lengths are errors before their payload is received.
#[test]
fn commands_out_of_turn_are_errors() {
    let joined = [vec![0; 8], message(b"IMPI", &3i32.to_be_bytes())].concat();
    let sound = sound().octets();
    let after = |before: &[u8], words: &[u8]| {
        let mut client = Client::new(Settings { pipelines: true, ..settings(0) }).expect("sound");
        client.handle_octets(before).expect("sound so far");
        client.handle_octets(words)
    };
    let unexpected = |command, stage| Err(ClientError::Unexpected { command, stage });
    let len = |command, len| Err(ClientError::Len { command, len });
    let head = |command: &[u8; 4], len: u32| [&command[..], &len.to_be_bytes()].concat();
    assert_eq!(after(&[0; 8], &head(b"DONE", 0)), unexpected(Command::Done, Stage::Join));
    assert_eq!(after(&[0; 8], &head(b"AUTH", 4)), unexpected(Command::Auth, Stage::Join));
    assert_eq!(after(&[0; 8], &head(b"IMPI", 5)), len(Command::Impi, 5));
    let unknown = Err(ClientError::Cmd(CmdError::Unknown { code: 0 }));
    assert_eq!(after(&[0; 8], &[0; 8]), unknown);
    assert_eq!(after(&joined, &head(b"IMPI", 4)), unexpected(Command::Impi, Stage::Labels));
    assert_eq!(after(&joined, &head(b"DONE", 0)), unexpected(Command::Done, Stage::Labels));
    assert_eq!(after(&joined, &head(b"COLL", 7)), len(Command::Coll, 7));
    let total_len = i32::MAX as usize - 8;
    assert_eq!(after(&joined, &head(b"COLL", i32::MAX as u32)), Err(ClientError::TooMuch { total_len }));
    let negative = CmdError::NegativeLen { command: Command::Coll, len: -8 };
    assert_eq!(after(&joined, &head(b"COLL", -8i32 as u32)), Err(ClientError::Cmd(negative)));
    let too_much = after(&sound[..sound.len() - 8], &head(b"DONE", i32::MAX as u32));
    assert!(matches!(too_much, Err(ClientError::TooMuch { .. })), "{too_much:?}");
    for command in Command::ALL {
        let octets = [&command.code().to_be_bytes()[..], &[0; 4]].concat();
        assert_eq!(after(&sound, &octets), unexpected(command, Stage::Running));
    }
}

#[test]
fn finish_is_refused_before_the_job_runs_and_sent_once() {
    let mut client = Client::new(settings(0)).expect("sound");
    assert_eq!(client.finish(), Err(ClientError::NotRunning));
    client.handle_octets(&sound().octets()).expect("sound");
    while client.poll_output().is_some() {}
    for _ in 0..2 {
        client.finish().expect("it runs");
    }
    let said: Vec<Vec<u8>> = std::iter::from_fn(|| client.poll_output()).map(Vec::from).collect();
    assert_eq!(said, [message(b"FINI", &[])]);
    assert_eq!((client.handle_octets(b"anything that arrives late"), client.handle_eof()), (Ok(()), Ok(())));
}

#[test]
fn invalid_client_settings_are_refused() {
    let refused = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings(0);
        change(&mut settings);
        Client::new(settings).err()
    };
    let range = |field, value, min, max| Some(SettingsError::OutOfRange { field, value, min, max });
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|s| s.rank = 32), range("the rank", 32, 0, 31));
    assert_eq!(refused(&|s| s.hosts.clear()), range("the number of hosts", 0, 1, 65536));
    assert_eq!(refused(&|s| s.hosts[0].procs.clear()), range("the number of processes", 0, 1, 1 << 20));
    assert_eq!(refused(&|s| s.datalen = 0), range("DATALEN", 0, 1, u64::from(u32::MAX)));
    assert_eq!(refused(&|s| s.tag_ub = 32766), range("TAGUB", 32766, 32767, 0x7fff_ffff));
    assert_eq!(refused(&|s| s.tag_ub = 1 << 31), range("TAGUB", 1 << 31, 32767, 0x7fff_ffff));
    assert_eq!(refused(&|s| s.coll_xsize = Some(u32::MAX)), range("COLL_XSIZE", 0xffff_ffff, 0, 0x7fff_ffff));
    assert_eq!(
        refused(&|s| s.coll_maxlinear = Some(1 << 31)),
        range("COLL_MAXLINEAR", 1 << 31, 0, 0x7fff_ffff)
    );
    for versions in [&[][..], &[(0, 1)], &[(0, 0), (0, 0)], &[(0, 0), (1, 0), (0, 9)]] {
        let list = versions.iter().map(|(major, minor)| Version { major: *major, minor: *minor });
        let list: Vec<Version> = list.collect();
        assert_eq!(refused(&|s| s.versions = list.clone()), Some(SettingsError::Versions));
    }
    for (ackmark, hiwater) in [(0, 5), (6, 5)] {
        let marks = SettingsError::Marks { host: 0, ackmark, hiwater };
        assert_eq!(
            refused(&|s| s.hosts = vec![HostSettings { ackmark, hiwater, ..s.hosts[0].clone() }]),
            Some(marks)
        );
    }
    let twice =
        |s: &mut Settings| s.hosts = vec![host(lam(2), 1, &[7], 1, 1), host(lam(2), 2, &[8, 7], 1, 1)];
    assert_eq!(refused(&twice), Some(SettingsError::SameProc { pid: 7 }));
    for pid in [-1, 1 << 32] {
        let draft = |s: &mut Settings| {
            s.dialect = Dialect::Draft;
            s.hosts = vec![host(lam(2), 1, &[pid], 1, 1)];
        };
        assert_eq!(refused(&draft), Some(SettingsError::DraftPid { pid }));
    }
}
