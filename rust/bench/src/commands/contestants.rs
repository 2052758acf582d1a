//! Contestants of a command line: mpjdev over each transport, and the peers beside it.

use clap::ValueEnum;

use crate::BenchError;
use crate::contestant::{Contestant, Tools, Transport};
use crate::peer::{Peer, Program};

/// A peer that ranks are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeerKind {
    /// C under Open MPI, over shared memory, or over TCP beside ranks over TCP
    #[value(name = "openmpi")]
    OpenMpi,
    /// C under MPICH with its default transports
    Mpich,
    /// The baseline in Java, over shared memory: one thread in each of two ranks that trust each other
    Baseline,
    /// Aeron in Java, over IPC beside ranks over shared memory, and over UDP beside ranks over UDP
    Aeron,
}

impl PeerKind {
    /// Whether it is a C program.
    pub(super) fn is_mpi(self) -> bool {
        self.mpi().is_some()
    }

    /// The MPI of a C program.
    fn mpi(self) -> Option<Peer> {
        match self {
            PeerKind::OpenMpi => Some(Peer::OpenMpi),
            PeerKind::Mpich => Some(Peer::Mpich),
            PeerKind::Baseline | PeerKind::Aeron => None,
        }
    }
}

/// Options that select contestants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    /// Transports of mpjdev ranks.
    pub(super) transports: &'a [Transport],
    /// Whether ranks in Java are measured.
    pub(super) is_java: bool,
    /// Whether the workload has two ranks only, as plain sockets and Aeron require.
    pub(super) is_of_two: bool,
    /// Peers that were requested by name.
    pub(super) peers: &'a [PeerKind],
    /// Whether no peer takes part.
    pub(super) has_no_peers: bool,
}

impl Selection<'_> {
    /// All contestants.
    ///
    /// # Errors
    /// A requested peer is not installed.
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

    /// Whether Aeron takes part if it is installed.
    ///
    /// # Errors
    /// It was requested for other transports or ranks.
    pub(super) fn wants_aeron(&self) -> Result<bool, BenchError> {
        let has_part = self.over_aeron().next().is_some();
        self.wants(PeerKind::Aeron, has_part, "--peer aeron is for two ranks, over local, shm and udp")
    }

    /// Whether the baseline takes part if it is installed.
    ///
    /// # Errors
    /// It was requested for other transports or ranks.
    pub(super) fn wants_baseline(&self) -> Result<bool, BenchError> {
        let has_part = self.transports.iter().any(|transport| is_memory(*transport));
        self.wants(PeerKind::Baseline, has_part, "--peer baseline is for two ranks, over local and shm")
    }

    /// Whether a peer in Java takes part: beside ranks in Java, or on request.
    fn wants(&self, peer: PeerKind, has_part: bool, why: &str) -> Result<bool, BenchError> {
        let has_part = has_part && self.is_of_two;
        match self.peers {
            [] => Ok(has_part && self.is_java && !self.has_no_peers),
            peers if !peers.contains(&peer) => Ok(false),
            _ if has_part => Ok(true),
            _ => Err(BenchError::Missing(why.into())),
        }
    }

    /// Transports that Aeron is compared with: shared memory and UDP.
    fn over_aeron(&self) -> impl Iterator<Item = Transport> {
        let is_over_memory = self.transports.iter().any(|transport| is_memory(*transport));
        let is_over_udp = self.transports.contains(&Transport::Udp);
        let memory = is_over_memory.then_some(Transport::Shm);
        memory.into_iter().chain(is_over_udp.then_some(Transport::Udp))
    }

    /// Ranks over each requested or installed MPI, with the C program beside them.
    fn over_mpi(&self, tools: &Tools) -> Result<Vec<Contestant>, BenchError> {
        let mut contestants = Vec::new();
        for program in self.programs(tools, &Peer::ALL)?.iter().filter_map(|one| one.over(Transport::Mpi)) {
            contestants.push(Contestant::RustOver(program.clone()));
            contestants.extend(self.is_java.then(|| Contestant::JavaOver(program.clone())));
            contestants.push(Contestant::C(program));
        }
        if contestants.is_empty() {
            let why = "ranks over an MPI need an installed MPI with its compiler, and not --no-peer";
            return Err(BenchError::Missing(why.into()));
        }
        Ok(contestants)
    }

    /// C programs beside ranks over these transports.
    fn c_programs(&self, tools: &Tools) -> Result<Vec<Program>, BenchError> {
        let is_over_tcp = self.transports.contains(&Transport::Tcp);
        let is_over_memory = self.transports.iter().any(|transport| is_memory(*transport));
        if !is_over_memory && !is_over_tcp {
            // The C program has no UDP transport.
            return Ok(Vec::new());
        }
        // MPICH uses shared memory within a machine, so it takes no part beside TCP alone.
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

    /// The requested C programs. Without a request the installed ones of `all`; the missing ones are named on
    /// standard error.
    ///
    /// # Errors
    /// A requested MPI is not installed.
    pub(super) fn programs(&self, tools: &Tools, all: &[Peer]) -> Result<Vec<Program>, BenchError> {
        let named: Vec<Peer> = self.peers.iter().filter_map(|peer| peer.mpi()).collect();
        let peers = if self.peers.is_empty() { all } else { &named };
        let mut programs = Vec::new();
        for peer in peers.iter().filter(|_| !self.has_no_peers) {
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
        Selection { transports, is_java: true, is_of_two: true, peers, has_no_peers: false }
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
        assert_eq!(wants(Selection { has_no_peers: true, ..plain }), Some(false));
        assert_eq!(wants(Selection { is_of_two: false, ..plain }), Some(false));
        let named = selection(&shm, &[PeerKind::Aeron]);
        assert_eq!(wants(Selection { is_java: false, ..named }), Some(true));
        assert_eq!(wants(Selection { is_of_two: false, ..named }), None);
        assert_eq!(wants(selection(&shm, &[PeerKind::Mpich])), Some(false));
    }
}
