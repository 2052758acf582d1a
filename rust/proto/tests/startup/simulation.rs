//! Jobs of up to 32 clients over simulated connections.
//!
//! Connections cut their octets anywhere and deliver in any order.

use std::collections::VecDeque;

use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{
    Client, Event, HostSettings, JobClient, JobHost, JobProc, Limits, Output, Server, ServerEvent,
    ServerSettings, Settings, Stage, Tables,
};
use mpjdev_proto::impi::{Dialect, Proc};

use crate::job::{LIMITS, NO_KEY, WITH_KEY, mapped, settings};
use crate::random::Random;

/// Random settings that are consistent.
fn any_settings(random: &mut Random, clients: u32) -> Vec<Settings> {
    let dialect = if random.below(2) == 0 { Dialect::Final } else { Dialect::Draft };
    let auth = if random.below(2) == 0 { NO_KEY } else { WITH_KEY };
    let (xsize, maxlinear) = (random.below(2) == 0, random.below(2) == 0);
    let mut pid = random.below(1000) as i64;
    let mut all = Vec::new();
    for rank in 0..clients {
        let hosts: Vec<HostSettings> = (0..1 + random.below(3))
            .map(|at| {
                // The first host has at least one process.
                let count = random.below(4) + usize::from(at == 0);
                let procs = (0..count).map(|_| {
                    pid += 1 + random.below(5) as i64;
                    Proc { host_id: mapped(random.below(4) as u8), pid }
                });
                let procs = procs.collect();
                let ackmark = 1 + random.below(20) as u32;
                let hiwater = ackmark + random.below(20) as u32;
                let port = random.below(65536) as u16;
                HostSettings { address: mapped(random.below(250) as u8), port, procs, ackmark, hiwater }
            })
            .collect();
        let mut versions = vec![Version::V0_0];
        (1..4).filter(|_| random.below(2) == 0).for_each(|minor| versions.push(Version { major: 0, minor }));
        all.push(Settings {
            dialect,
            auth,
            versions,
            hosts,
            datalen: 1 + random.below(100_000) as u32,
            tag_ub: 32767 + random.below(1 << 20) as u32,
            // A value that equals the default may be omitted.
            coll_xsize: if xsize { Some(77) } else { (random.below(2) == 0).then_some(1024) },
            coll_maxlinear: if maxlinear { Some(0) } else { (random.below(2) == 0).then_some(4) },
            pipelines: random.below(2) == 0,
            ..settings(rank)
        });
    }
    all
}

/// The tables that these settings must give.
fn model(all: &[Settings]) -> Tables {
    let hosts = || all.iter().flat_map(|client| client.hosts.iter().map(move |host| (client.rank, host)));
    let mut tables = Tables {
        clients: Vec::new(),
        hosts: Vec::new(),
        procs: Vec::new(),
        maxdatalen: all.iter().map(|client| client.datalen).min().expect("a client"),
        ackmark: hosts().map(|(_, host)| host.ackmark).min().expect("a host"),
        hiwater: hosts().map(|(_, host)| host.hiwater).min().expect("a host"),
        tag_ub: all.iter().map(|client| client.tag_ub).min().expect("a client"),
        xsize: all[0].coll_xsize.unwrap_or(1024),
        maxlinear: all[0].coll_maxlinear.unwrap_or(4),
    };
    for (client, host) in hosts() {
        let first = tables.procs.len() as u32;
        let number = tables.hosts.len() as u32;
        tables.procs.extend(host.procs.iter().map(|proc| JobProc { proc: *proc, host: number, client }));
        let HostSettings { address, port, ackmark, hiwater, .. } = *host;
        let procs = first..tables.procs.len() as u32;
        tables.hosts.push(JobHost { client, address, port, procs, ackmark, hiwater });
    }
    let (mut host, mut proc) = (0, 0);
    for client in all {
        let (first_host, first_proc) = (host, proc);
        host += client.hosts.len() as u32;
        proc += client.hosts.iter().map(|host| host.procs.len() as u32).sum::<u32>();
        let versions = client.versions.clone();
        tables.clients.push(JobClient { versions, hosts: first_host..host, procs: first_proc..proc });
    }
    tables
}

/// One connection: octets in flight.
#[derive(Default)]
struct Wire {
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    is_closed: bool,
}

fn some(random: &mut Random, queue: &mut VecDeque<u8>) -> Vec<u8> {
    let most = [1, 9, 4096][random.below(3)];
    let count = queue.len().min(1 + random.below(most));
    queue.drain(..count).collect()
}

fn run(seed: u64, clients: u32) {
    let mut random = Random::new(seed);
    let all = any_settings(&mut random, clients);
    let limits = Limits { unjoined_max: 32, ..LIMITS };
    let (dialect, auth) = (all[0].dialect, all[0].auth);
    let mut server = Server::new(ServerSettings { clients, dialect, auth, limits }, 0).expect("sound");
    let mut machines: Vec<Client> =
        all.iter().map(|settings| Client::new(settings.clone()).expect("sound")).collect();
    let mut wires: Vec<Wire> = machines.iter().map(|_| Wire::default()).collect();
    let mut done: Vec<Option<Tables>> = vec![None; machines.len()];
    let mut events = Vec::new();
    // In another order than that of ranks.
    (0..u64::from(clients)).rev().for_each(|conn| server.handle_connected(0, conn, 0));
    for _ in 0..20_000_000 {
        let at = random.below(machines.len());
        let (machine, wire) = (&mut machines[at], &mut wires[at]);
        while let Some(octets) = machine.poll_output() {
            wire.to_server.extend(octets);
        }
        if random.below(2) == 0 {
            let octets = some(&mut random, &mut wire.to_server);
            server.handle_octets(0, at as u64, &octets);
        } else {
            let octets = some(&mut random, &mut wire.to_client);
            machine.handle_octets(&octets).unwrap_or_else(|e| panic!("seed {seed}: client {at}: {e}"));
        }
        while let Some(event) = machine.poll_event() {
            if let Event::Done(tables) = event {
                done[at] = Some(*tables);
            }
        }
        while let Some(output) = server.poll_output() {
            match output {
                Output::Send { conn, octets } => wires[conn as usize].to_client.extend(octets.iter()),
                Output::Close { conn, fault } => {
                    assert_eq!(fault, None, "seed {seed}: connection {conn}");
                    wires[conn as usize].is_closed = true;
                }
                Output::Event(event) => events.push(event),
            }
        }
        let is_all_done = done.iter().all(Option::is_some);
        if is_all_done && machines[at].stage() == Stage::Running && random.below(8) == 0 {
            machines[at].finish().expect("it runs");
        }
        if wires.iter().all(|wire| wire.is_closed) {
            break;
        }
    }
    assert_eq!(events.last(), Some(&ServerEvent::Over(Ok(()))), "seed {seed}: {events:?}");
    let wanted = model(&all);
    for (rank, tables) in done.into_iter().enumerate() {
        assert_eq!(tables.as_ref(), Some(&wanted), "seed {seed}, client {rank}");
    }
}

/// Proves that every interleaving and every cut of the octets gives all clients the same tables, and that
/// every job ends in order.
#[test]
fn every_interleaving_gives_the_same_tables_to_all() {
    for seed in 0..200 {
        run(seed, 1 + (seed % 5) as u32);
    }
}

/// Proves that the largest number of clients forms a job.
#[test]
fn thirty_two_clients_form_a_job() {
    (1000..1004).for_each(|seed| run(seed, 32));
}
