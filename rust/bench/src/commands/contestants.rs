//! Contestants that a command line asks for: ours over each transport, and the peers beside them.

use clap::ValueEnum;

use crate::BenchError;
use crate::contestant::{Contestant, Tools, Transport};
use crate::peer::{Peer, Program};

/// A peer that ranks are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeerKind {
    /// C under Open MPI, over its shared memory and, beside ranks over TCP, over TCP
    #[value(name = "openmpi")]
    OpenMpi,
    /// C under MPICH, as it comes
    Mpich,
    /// The baseline in Java, over shared memory: one thread in each of two ranks that trust each other
    Baseline,
    /// Aeron in Java, over IPC beside ranks over shared memory and over UDP beside datagrams
    Aeron,
}

impl PeerKind {
    /// The MPI of a C program.
    fn mpi(self) -> Option<Peer> {
        match self {
            PeerKind::OpenMpi => Some(Peer::OpenMpi),
            PeerKind::Mpich => Some(Peer::Mpich),
            PeerKind::Baseline | PeerKind::Aeron => None,
        }
    }
}

/// Options of a command line that contestants depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    /// Transports of our ranks.
    pub(super) transports: &'a [Transport],
    /// Whether ranks in Java are measured.
    pub(super) is_java: bool,
    /// Whether two ranks alone do something, as plain sockets and Aeron need it.
    pub(super) is_of_two: bool,
    /// Peers that were asked for by name.
    pub(super) peers: &'a [PeerKind],
    /// Whether none is to be there.
    pub(super) is_alone: bool,
}

impl Selection<'_> {
    /// All contestants.
    ///
    /// # Errors
    /// A peer that was asked for by name is not on this machine.
    pub(super) fn contestants(&self, tools: &Tools) -> Result<Vec<Contestant>, BenchError> {
        let transports = self.transports;
        let mut contestants = Vec::new();
        for transport in transports.iter().filter(|transport| **transport != Transport::Mpi) {
            contestants.push(Contestant::Rust(*transport));
            if self.is_java {
                contestants.push(Contestant::Java(*transport));
            }
        }
        if transports.contains(&Transport::Tcp) && self.is_of_two {
            contestants.push(Contestant::Sockets);
        }
        if transports.contains(&Transport::Udp) && self.is_of_two {
            contestants.push(Contestant::Datagrams);
        }
        contestants.extend(tools.baseline.is_some().then_some(Contestant::Baseline));
        if tools.aeron.is_some() {
            contestants.extend(self.over_aeron().map(Contestant::Aeron));
        }
        contestants.extend(self.c_programs(tools)?.into_iter().map(Contestant::C));
        if transports.contains(&Transport::Mpi) {
            contestants.extend(self.over_mpi(tools)?);
        }
        Ok(contestants)
    }

    /// Whether Aeron takes part if it is there.
    ///
    /// # Errors
    /// It was asked for where it has no part.
    pub(super) fn wants_aeron(&self) -> Result<bool, BenchError> {
        let has_part = self.over_aeron().next().is_some();
        self.wants(PeerKind::Aeron, has_part, "--peer aeron is for two ranks, over local, shm and udp")
    }

    /// Whether the baseline takes part if it is there.
    ///
    /// # Errors
    /// It was asked for where it has no part.
    pub(super) fn wants_baseline(&self) -> Result<bool, BenchError> {
        let has_part = self.transports.iter().any(|transport| is_memory(*transport));
        self.wants(PeerKind::Baseline, has_part, "--peer baseline is for two ranks, over local and shm")
    }

    /// Whether a peer in Java takes part, which it does beside ranks in Java or when it was asked for.
    fn wants(&self, peer: PeerKind, has_part: bool, why: &str) -> Result<bool, BenchError> {
        let has_part = has_part && self.is_of_two;
        match self.peers {
            [] => Ok(has_part && self.is_java && !self.is_alone),
            peers if !peers.contains(&peer) => Ok(false),
            _ if has_part => Ok(true),
            _ => Err(BenchError::Missing(why.into())),
        }
    }

    /// The transports of ours that Aeron has something beside, memory and datagrams, each once.
    fn over_aeron(&self) -> impl Iterator<Item = Transport> {
        let is_over_memory = self.transports.iter().any(|transport| is_memory(*transport));
        let is_over_udp = self.transports.contains(&Transport::Udp);
        let memory = is_over_memory.then_some(Transport::Shm);
        memory.into_iter().chain(is_over_udp.then_some(Transport::Udp))
    }

    /// Ours over each MPI that was asked for or is there, and the C program beside them.
    fn over_mpi(&self, tools: &Tools) -> Result<Vec<Contestant>, BenchError> {
        let mut contestants = Vec::new();
        for program in self.programs(tools, &Peer::ALL)?.iter().filter_map(|one| one.over(Transport::Mpi)) {
            contestants.push(Contestant::RustOver(program.clone()));
            contestants.extend(self.is_java.then(|| Contestant::JavaOver(program.clone())));
            contestants.push(Contestant::C(program));
        }
        if contestants.is_empty() {
            let why = "ranks over an MPI need one, and its compiler for what they are beside (not --no-peer)";
            return Err(BenchError::Missing(why.into()));
        }
        Ok(contestants)
    }

    /// The C programs that belong beside ranks over these transports.
    fn c_programs(&self, tools: &Tools) -> Result<Vec<Program>, BenchError> {
        let is_over_tcp = self.transports.contains(&Transport::Tcp);
        let is_over_memory = self.transports.iter().any(|transport| is_memory(*transport));
        if !is_over_memory && !is_over_tcp {
            // They know no datagrams.
            return Ok(Vec::new());
        }
        // MPICH takes memory within a machine.
        let programs = self.programs(tools, if is_over_memory { &Peer::ALL } else { &Peer::ALL[..1] })?;
        let mut peers = Vec::new();
        for program in programs {
            let over_tcp = program.over(Transport::Tcp).filter(|_| is_over_tcp);
            if is_over_memory || over_tcp.is_none() {
                peers.push(program);
            }
            peers.extend(over_tcp);
        }
        Ok(peers)
    }

    /// The C programs that were asked for; if no peer was, those of `all` that are there, and a word about
    /// those that are not.
    ///
    /// # Errors
    /// One that was asked for is not there.
    pub(super) fn programs(&self, tools: &Tools, all: &[Peer]) -> Result<Vec<Program>, BenchError> {
        let named: Vec<Peer> = self.peers.iter().filter_map(|peer| peer.mpi()).collect();
        let peers = if self.peers.is_empty() { all } else { &named };
        let mut programs = Vec::new();
        for peer in peers.iter().filter(|_| !self.is_alone) {
            match peer.compile(tools.folder.path()) {
                Ok(program) => programs.push(program),
                Err(BenchError::Missing(why)) if self.peers.is_empty() => eprintln!("mpjdev-bench: {why}"),
                Err(error) => return Err(error),
            }
        }
        Ok(programs)
    }
}

/// Whether ranks share memory.
fn is_memory(transport: Transport) -> bool {
    matches!(transport, Transport::Local | Transport::Shm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection<'a>(transports: &'a [Transport], peers: &'a [PeerKind]) -> Selection<'a> {
        Selection { transports, is_java: true, is_of_two: true, peers, is_alone: false }
    }

    #[test]
    fn aeron_takes_part_over_shared_memory_and_udp() {
        use Transport::{Local, Shm, Tcp, Udp};
        let over = |transports| selection(transports, &[]).over_aeron().collect::<Vec<_>>();
        assert_eq!([over(&[Local, Shm]), over(&[Udp, Tcp])], [[Shm], [Udp]]);
        assert_eq!(over(&[Udp, Shm]), [Shm, Udp]);
        assert_eq!(over(&[Tcp]), []);
    }

    #[test]
    fn baseline_takes_part_over_shared_memory_only() {
        let wants = |transports, peers| selection(transports, peers).wants_baseline().ok();
        assert_eq!(wants(&[Transport::Shm], &[]), Some(true));
        assert_eq!(wants(&[Transport::Udp], &[]), Some(false));
        assert_eq!(wants(&[Transport::Udp], &[PeerKind::Baseline]), None);
        assert_eq!(wants(&[Transport::Shm], &[PeerKind::Aeron]), Some(false));
    }

    #[test]
    fn aeron_takes_part_beside_java_unless_others_are_named() {
        let shm = [Transport::Shm];
        let wants = |selection: Selection<'_>| selection.wants_aeron().ok();
        let plain = selection(&shm, &[]);
        assert_eq!(wants(plain), Some(true));
        assert_eq!(wants(Selection { is_java: false, ..plain }), Some(false));
        assert_eq!(wants(Selection { is_alone: true, ..plain }), Some(false));
        assert_eq!(wants(Selection { is_of_two: false, ..plain }), Some(false));
        let named = selection(&shm, &[PeerKind::Aeron]);
        assert_eq!(wants(Selection { is_java: false, ..named }), Some(true));
        assert_eq!(wants(Selection { is_of_two: false, ..named }), None);
        assert_eq!(wants(selection(&shm, &[PeerKind::Mpich])), Some(false));
    }
}
