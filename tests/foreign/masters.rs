//! Foreign masters in barriers, implemented directly from IMPI 13: each blocks on its connections, in the
//! order of the text.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::site::{Client, SOON, Site};
use crate::speaker::{DATA, Head, Speaker};

/// The tag and the context of a barrier on the world (IMPI 3.6, 11.2).
pub(crate) const TAG: i32 = 110;
pub(crate) const CID: u64 = 1;

/// One foreign master.
#[derive(Debug)]
pub(crate) struct Master {
    pub(crate) number: usize,
    count: usize,
    maxlinear: usize,
    /// Connections to masters of ours, by number.
    pub(crate) ours: BTreeMap<usize, Speaker>,
    /// To and from other foreign masters.
    to: BTreeMap<usize, Sender<()>>,
    from: BTreeMap<usize, Receiver<()>>,
}

/// The foreign masters of a job, and its other connections, where no barrier's message may arrive.
#[derive(Debug)]
pub(crate) struct Masters {
    pub(crate) all: Vec<Master>,
    pub(crate) others: Vec<Speaker>,
}

impl Masters {
    /// Takes the speakers of a job of these clients.
    pub(crate) fn of(site: &mut Site, clients: &[Client], maxlinear: u32) -> Masters {
        let (mut host, mut rank) = (0, 0);
        // First host and first rank of each client, and whether it is foreign.
        let mut firsts = Vec::new();
        for client in clients {
            let (hosts, ranks, is_foreign) = match client {
                Client::Ours(ranks) | Client::Posing(ranks) => (*ranks, *ranks, false),
                Client::Foreign(hosts) => (hosts.len(), hosts.iter().sum(), true),
            };
            firsts.push((host, rank, is_foreign));
            host += hosts as u32;
            rank += ranks as u32;
        }
        let is_foreign = |(_, client): &(usize, &(u32, u32, bool))| client.2;
        let foreign: Vec<(usize, u32)> =
            firsts.iter().enumerate().filter(is_foreign).map(|(number, client)| (number, client.0)).collect();
        let master = |(number, host): &(usize, u32)| {
            let ours = firsts.iter().enumerate().filter(|client| !is_foreign(client));
            let speakers =
                ours.filter_map(|(ours, (_, rank, _))| Some((ours, site.speakers.remove(&(*host, *rank))?)));
            let (ours, number) = (speakers.collect(), *number);
            let (to, from) = (BTreeMap::new(), BTreeMap::new());
            Master { number, count: clients.len(), maxlinear: maxlinear as usize, ours, to, from }
        };
        let mut all: Vec<Master> = foreign.iter().map(master).collect();
        for source in 0..all.len() {
            for dest in (0..all.len()).filter(|dest| *dest != source) {
                let (sender, receiver) = channel();
                let numbers = (all[source].number, all[dest].number);
                all[source].to.insert(numbers.1, sender);
                all[dest].from.insert(numbers.0, receiver);
            }
        }
        Masters { all, others: std::mem::take(&mut site.speakers).into_values().collect() }
    }
}

impl Master {
    /// Takes part in a barrier; `entered` when its own client has, and before any rank is notified.
    pub(crate) fn barrier(&mut self, entered: impl FnOnce()) {
        let (v, m) = (self.number, self.count);
        entered();
        if m <= self.maxlinear {
            if v == 0 {
                (1..m).for_each(|from| self.recv(from));
                (1..m).for_each(|to| self.send(to));
            } else {
                self.send(0);
                self.recv(0);
            }
            return;
        }
        let mut dimensions = 0;
        while 1 << dimensions < m {
            dimensions += 1;
        }
        let highest = (0..dimensions).rev().find(|bit| v & (1 << bit) != 0);
        let above = highest.map_or(0, |bit| bit + 1);
        for bit in (above..dimensions).rev() {
            if v | 1 << bit < m {
                self.recv(v | 1 << bit);
            }
        }
        if let Some(bit) = highest {
            self.send(v - (1 << bit));
            self.recv(v - (1 << bit));
        }
        for bit in above..dimensions {
            if v | 1 << bit < m {
                self.send(v | 1 << bit);
            }
        }
    }

    fn send(&mut self, to: usize) {
        match self.ours.get_mut(&to) {
            Some(speaker) => speaker.send_as(0, CID, TAG, &[]),
            None => self.to[&to].send(()).expect("the other one is there"),
        }
    }

    fn recv(&mut self, from: usize) {
        match self.ours.get_mut(&from) {
            Some(speaker) => expect_signal(speaker),
            None => self.from[&from].recv_timeout(SOON).expect("the other one enters"),
        }
    }
}

/// Checks that the next packet is exactly a barrier's message.
#[track_caller]
pub(crate) fn expect_signal(speaker: &mut Speaker) {
    let (head, octets) = speaker.take();
    // As in tests/golden/impi-captures/collective.txt: unused fields are zero. Messages are numbered for
    // tracing.
    let (src, dest) = (speaker.theirs, speaker.head(0).src);
    let expected = Head { kind: DATA, src, dest, tag: TAG, cid: CID, ..Head::default() };
    assert_eq!(Head { lsrank: 0, seqnum: 0, ..head }, expected);
    assert_eq!((head.lsrank, octets.len()), (speaker.their_rank, 0));
    assert!(head.seqnum > 0);
}
