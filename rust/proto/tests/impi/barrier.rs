//! IMPI's barrier of masters: the example of the text and variants, captures, and all members in any order.

use std::collections::VecDeque;

use mpjdev_proto::impi::Proc;
use mpjdev_proto::impi::barrier::{Action, Barrier, BarrierError, Master, Masters};
use mpjdev_proto::impi::layout::{TAG_BARRIER, collective_operation};
use mpjdev_proto::impi::packet::{Packet, PacketType};
use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{JobClient, JobHost, JobProc, Tables};

use crate::vectors;
use crate::world::Random;

/// Tables of a job with these numbers of processes per client.
fn tables(procs_of: &[u32]) -> Tables {
    let mut tables = Tables {
        clients: Vec::new(),
        hosts: Vec::new(),
        procs: Vec::new(),
        maxdatalen: 65536,
        ackmark: 10,
        hiwater: 20,
        tag_ub: 32767,
        xsize: 1024,
        maxlinear: 4,
    };
    for (client, &count) in (0..).zip(procs_of) {
        let (host, first) = (client, tables.procs.len() as u32);
        let procs = first..first + count;
        let versions = vec![Version::V0_0];
        tables.clients.push(JobClient { versions, hosts: host..host + 1, procs: procs.clone() });
        let address = [client as u8; 16];
        tables.hosts.push(JobHost {
            client,
            address,
            port: 1,
            procs: procs.clone(),
            ackmark: 10,
            hiwater: 20,
        });
        let proc = |rank: u32| Proc { host_id: address, pid: i64::from(rank) };
        tables.procs.extend(procs.map(|rank| JobProc { proc: proc(rank), host, client }));
    }
    tables
}

/// The actions of a master from its local barrier on, each receive followed by its message.
fn script(masters: &Masters, world_rank: u32, maxlinear: u32) -> Vec<Action> {
    let mut barrier = Barrier::new(masters, world_rank, maxlinear);
    assert_eq!(barrier.poll_action(), None, "before its own client's members have entered");
    assert!(!barrier.is_over());
    barrier.handle_local_done();
    let mut actions = Vec::new();
    while let Some(action) = barrier.poll_action() {
        actions.push(action);
        if let Action::Receive { source } = action {
            assert_eq!(barrier.poll_action(), None, "before its message");
            assert!(!barrier.is_over());
            barrier.handle_received(source, 0).unwrap();
        }
    }
    assert!(barrier.is_over());
    actions
}

/// "r4" is a receive from world rank 4, "s1" a send to world rank 1.
fn actions(words: &str) -> Vec<Action> {
    let action = |word: &str| match (word.split_at(1), word[1..].parse().unwrap()) {
        (("r", _), source) => Action::Receive { source },
        (_, dest) => Action::Send { dest },
    };
    words.split_whitespace().map(action).collect()
}

/// The masters of MPI_COMM_WORLD.
fn world_masters(tables: &Tables) -> Masters {
    Masters::of_clients(tables.procs.iter().map(|proc| proc.client))
}

/// The masters of the text's example: clients with the ranks {0,1,4}, {2,3,5} and {6,7}.
fn example() -> Masters {
    Masters::of_clients([0, 0, 1, 1, 0, 1, 2, 2])
}

/// Proves the text's example: its masters are 0, 2 and 6.
#[test]
fn masters_are_the_lowest_ranks_of_their_clients() {
    let masters = example();
    let master = |client, rank| Master { client, rank, world_rank: rank };
    assert_eq!(masters.all(), [master(0, 0), master(1, 2), master(2, 6)]);
    assert_eq!(
        [0, 2, 6, 1, 3, 99].map(|rank| masters.number(rank)),
        [Some(0), Some(1), Some(2), None, None, None]
    );
    let world = world_masters(&tables(&[3, 3, 2]));
    assert_eq!(world.all(), [master(0, 0), master(1, 3), master(2, 6)]);
    // Rank 0 is master 0 under any client.
    assert_eq!(Masters::of_clients([2, 0, 0]).all(), [master(2, 0), master(0, 1)]);
    assert_eq!(Masters::of_clients([]).all(), []);
}

/// Proves that messages are addressed by rank, not by the masters' numbers.
#[test]
fn example_of_the_text_exchanges_its_messages() {
    let masters = example();
    assert_eq!(script(&masters, 0, 4), actions("r2 r6 s2 s6"));
    assert_eq!(script(&masters, 2, 4), actions("s0 r0"));
    assert_eq!(script(&masters, 6, 4), actions("s0 r0"));
    for other in [1, 3, 4, 5, 7] {
        assert_eq!(script(&masters, other, 4), [], "no master");
    }
    assert_eq!(script(&masters, 0, 2), actions("r6 r2 s2 s6"), "the tree");
}

/// Proves every step of 1 to 9 masters, as in the text: linear up to maxlinear, 4, a tree above it.
#[test]
fn each_number_of_masters_has_the_steps_of_the_text() {
    let written: [&[&str]; 9] = [
        &[""],
        &["r1 s1", "s0 r0"],
        &["r1 r2 s1 s2", "s0 r0", "s0 r0"],
        &["r1 r2 r3 s1 s2 s3", "s0 r0", "s0 r0", "s0 r0"],
        &["r4 r2 r1 s1 s2 s4", "r3 s0 r0 s3", "s0 r0", "s1 r1", "s0 r0"],
        &["r4 r2 r1 s1 s2 s4", "r5 r3 s0 r0 s3 s5", "s0 r0", "s1 r1", "s0 r0", "s1 r1"],
        &["r4 r2 r1 s1 s2 s4", "r5 r3 s0 r0 s3 s5", "r6 s0 r0 s6", "s1 r1", "s0 r0", "s1 r1", "s2 r2"],
        &[
            "r4 r2 r1 s1 s2 s4",
            "r5 r3 s0 r0 s3 s5",
            "r6 s0 r0 s6",
            "r7 s1 r1 s7",
            "s0 r0",
            "s1 r1",
            "s2 r2",
            "s3 r3",
        ],
        &[
            "r8 r4 r2 r1 s1 s2 s4 s8",
            "r5 r3 s0 r0 s3 s5",
            "r6 s0 r0 s6",
            "r7 s1 r1 s7",
            "s0 r0",
            "s1 r1",
            "s2 r2",
            "s3 r3",
            "s0 r0",
        ],
    ];
    for (m, each) in (1..).zip(written) {
        let masters = world_masters(&tables(&vec![1; m]));
        assert_eq!((masters.all().len(), each.len()), (m, m));
        for (number, words) in (0..).zip(each) {
            assert_eq!(script(&masters, number, 4), actions(words), "master {number} of {m}");
        }
    }
}

/// Proves that maxlinear decides at its edge: with 1 two or more masters form a tree, with 9 nine masters are
/// linear.
#[test]
fn maxlinear_chooses_between_line_and_tree() {
    let world = |m: usize| world_masters(&tables(&vec![1; m]));
    assert_eq!(script(&world(1), 0, 1), []);
    assert_eq!(script(&world(1), 0, 0), []);
    assert_eq!(script(&world(2), 0, 1), actions("r1 s1"));
    assert_eq!(script(&world(3), 0, 1), actions("r2 r1 s1 s2"));
    assert_eq!(script(&world(3), 0, 2), actions("r2 r1 s1 s2"));
    assert_eq!(script(&world(3), 0, 3), actions("r1 r2 s1 s2"));
    assert_eq!(script(&world(4), 1, 3), actions("r3 s0 r0 s3"));
    let line = actions("r1 r2 r3 r4 r5 r6 r7 r8 s1 s2 s3 s4 s5 s6 s7 s8");
    assert_eq!(script(&world(9), 0, 9), line);
    assert_eq!(script(&world(9), 8, 9), actions("s0 r0"));
    assert_eq!(script(&world(9), 0, u32::MAX), line);
}

/// Proves that messages of other sources, early, late or with data are refused without effect.
#[test]
fn unexpected_message_in_a_barrier_is_refused() {
    let masters = world_masters(&tables(&[1, 1, 1]));
    let mut barrier = Barrier::new(&masters, 0, 4);
    let not_asked_for = |source_rank| Err(BarrierError::NotAskedFor { source_rank });
    assert_eq!(barrier.handle_received(1, 0), not_asked_for(1), "before the local barrier");
    barrier.handle_local_done();
    assert_eq!(barrier.handle_received(1, 0), not_asked_for(1), "before the receive");
    assert_eq!(barrier.poll_action(), Some(Action::Receive { source: 1 }));
    barrier.handle_local_done();
    assert_eq!(barrier.poll_action(), None, "the local barrier is over once");
    assert_eq!(barrier.handle_received(2, 0), not_asked_for(2));
    assert_eq!(barrier.handle_received(1, 4), Err(BarrierError::NotEmpty { source_rank: 1, len: 4 }));
    assert_eq!(barrier.handle_received(1, 0), Ok(()));
    assert_eq!(barrier.handle_received(1, 0), not_asked_for(1));
    assert_eq!(barrier.poll_action(), Some(Action::Receive { source: 2 }));
    assert_eq!(barrier.handle_received(2, 0), Ok(()));
    assert!(!barrier.is_over(), "the others are not notified yet");
    assert_eq!(barrier.poll_action(), Some(Action::Send { dest: 1 }));
    assert_eq!(barrier.poll_action(), Some(Action::Send { dest: 2 }));
    assert!(barrier.is_over());
    assert_eq!(barrier.handle_received(1, 0), not_asked_for(1));
}

/// Proves that the masters send the messages of LAM's masters, in the same order to the same destinations, in
/// each barrier of two captures.
#[test]
fn captured_barriers_have_our_messages() {
    for (name, barriers) in [("impi-hello", 1), ("impi-collective", 2)] {
        let packets: Vec<Packet> = vectors::read(name).packets.iter().map(|d| d.packet).collect();
        let is_barrier = |p: &&Packet| p.kind == PacketType::Data && p.tag == TAG_BARRIER && p.cid == 1;
        let found: Vec<&Packet> = packets.iter().filter(is_barrier).collect();
        // One process each: world rank and lsrank are the client's.
        let mut tables = tables(&[1, 1]);
        for packet in &found {
            tables.procs[packet.lsrank as usize].proc = packet.src;
        }
        let masters = world_masters(&tables);
        let mut found = found.into_iter();
        for _ in 0..barriers {
            let mut ranks = [0, 1].map(|rank| Barrier::new(&masters, rank, tables.maxlinear));
            ranks.iter_mut().for_each(Barrier::handle_local_done);
            let mut messages = VecDeque::new();
            while ranks.iter().any(|rank| !rank.is_over()) {
                for rank in [0, 1] {
                    while let Some(action) = ranks[rank].poll_action() {
                        if let Action::Send { dest } = action {
                            messages.push_back((rank, dest));
                        }
                    }
                }
                let Some((from, dest)) = messages.pop_front() else { continue };
                let packet = found.next().expect("captured as well");
                assert_eq!(packet.lsrank as usize, from, "{name}");
                let ends = [from, dest as usize].map(|rank| tables.procs[rank].proc);
                assert_eq!([packet.src, packet.dest], ends, "{name}");
                ranks[dest as usize].handle_received(from as u32, packet.msglen).expect("asked for");
            }
        }
        assert_eq!(found.next(), None, "{name}: more than we send");
    }
}

/// Proves the names of collective operations by their captured tags.
#[test]
fn captured_operations_are_named_by_their_tags() {
    let packets = vectors::read("impi-collective").packets;
    let data = packets.iter().map(|d| d.packet).filter(|packet| packet.kind == PacketType::Data);
    let names: Vec<_> = data.map(|packet| collective_operation(packet.tag)).collect();
    let wanted = ["barrier", "barrier", "bcast", "reduce", "barrier", "barrier"].map(Some);
    assert_eq!(names, wanted);
    assert_eq!([0, 31, 109, 111, 240, -110].map(collective_operation), [None; 6]);
}

/// A job in which every process enters a barrier, one after the other in any order.
struct Job {
    barriers: Vec<Barrier>,
    /// Members of each client that have not entered.
    outside: Vec<u32>,
    entered: Vec<bool>,
    client_of: Vec<usize>,
    /// Messages in flight, by source and destination.
    wires: Vec<Vec<u32>>,
    asked: Vec<Option<u32>>,
}

impl Job {
    fn new(procs_of: &[u32], maxlinear: u32) -> Self {
        let tables = tables(procs_of);
        let (masters, size) = (world_masters(&tables), tables.procs.len());
        Self {
            barriers: (0..size as u32).map(|rank| Barrier::new(&masters, rank, maxlinear)).collect(),
            outside: procs_of.to_vec(),
            entered: vec![false; size],
            client_of: tables.procs.iter().map(|proc| proc.client as usize).collect(),
            wires: vec![vec![0; size]; size],
            asked: vec![None; size],
        }
    }

    /// One step of this rank, if it can make one.
    fn step(&mut self, rank: usize) -> bool {
        if !self.entered[rank] {
            self.enter(rank);
            return true;
        }
        if let Some(source) = self.asked[rank] {
            let wire = &mut self.wires[source as usize][rank];
            if *wire == 0 {
                return false;
            }
            *wire -= 1;
            self.asked[rank] = None;
            self.barriers[rank].handle_received(source, 0).unwrap();
            return true;
        }
        match self.barriers[rank].poll_action() {
            None => return false,
            Some(Action::Send { dest }) => self.wires[rank][dest as usize] += 1,
            Some(Action::Receive { source }) => self.asked[rank] = Some(source),
        }
        true
    }

    fn enter(&mut self, rank: usize) {
        self.entered[rank] = true;
        let client = self.client_of[rank];
        self.outside[client] -= 1;
        if self.outside[client] == 0 {
            let members = (0..self.barriers.len()).filter(|other| self.client_of[*other] == client);
            members.for_each(|member| self.barriers[member].handle_local_done());
        }
    }
}

/// Proves for any order of events that no master leaves before every process of the job has entered, that all
/// leave, and that no message is left: with 1 to 32 clients, one process each or several, linear and tree.
#[test]
fn no_master_leaves_before_all_have_entered() {
    for seed in 1..=300 {
        let mut random = Random::new(seed);
        let m = 1 + random.below(32);
        let procs_of: Vec<u32> = (0..m).map(|_| 1 + random.below(3) as u32).collect();
        let maxlinear = [1, 4, 32][random.below(3)];
        let mut job = Job::new(&procs_of, maxlinear);
        let size = job.barriers.len();
        let masters = world_masters(&tables(&procs_of));
        let mut idle = vec![false; size];
        while idle.contains(&false) {
            let rank = random.below(size);
            let moved = job.step(rank);
            idle[rank] = !moved;
            if moved {
                idle.fill(false);
            }
            let is_through =
                masters.all().iter().any(|master| job.barriers[master.world_rank as usize].is_over());
            assert!(!is_through || !job.entered.contains(&false), "seed {seed}");
        }
        assert!(
            job.barriers.iter().all(Barrier::is_over),
            "seed {seed}: {procs_of:?}, maxlinear {maxlinear}"
        );
        assert_eq!(job.wires.concat().iter().sum::<u32>(), 0, "seed {seed}");
    }
}
