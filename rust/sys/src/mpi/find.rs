//! Choice of the library to open: the one that the user names, else those that the launcher's own variables
//! hint at, else any.

use std::ffi::OsString;
use std::fmt;

/// The variable by which a user names the library, by its path or by a name that the system's loader finds.
pub const LIBRARY: &str = "MPJDEV_MPI_LIBRARY";

/// The launcher of this process, according to its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun` of Open MPI, or of PRRTE below it.
    OpenMpi,
    /// A process manager that speaks PMI: Hydra of MPICH, or `srun --mpi=pmi2`.
    Pmi,
    /// A process manager that speaks PMIx, such as `srun --mpi=pmix`: any MPI may be behind it.
    Pmix,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::OpenMpi => "Open MPI's mpirun",
            Launcher::Pmi => "a launcher with PMI, such as MPICH's mpiexec",
            Launcher::Pmix => "a launcher with PMIx",
        })
    }
}

/// The variables of a launcher.
struct Known {
    launcher: Launcher,
    /// One of these is set.
    by: &'static [&'static str],
    /// Number of processes.
    size: &'static str,
    /// Number of processes on this machine.
    here: &'static str,
}

/// The most reliable first.
const KNOWN: [Known; 3] = [
    Known {
        launcher: Launcher::OpenMpi,
        by: &["OMPI_COMM_WORLD_RANK"],
        size: "OMPI_COMM_WORLD_SIZE",
        here: "OMPI_COMM_WORLD_LOCAL_SIZE",
    },
    Known { launcher: Launcher::Pmix, by: &["PMIX_RANK"], size: "SLURM_NTASKS", here: "MPI_LOCALNRANKS" },
    Known { launcher: Launcher::Pmi, by: &["PMI_RANK", "PMI_FD"], size: "PMI_SIZE", here: "MPI_LOCALNRANKS" },
];

const OPEN_MPI: [&str; 3] = ["libmpi.so.40", "libmpi.so.80", "libmpi.so"];
const MPICH: [&str; 3] = ["libmpich.so.12", "libmpi.so.12", "libmpich.so"];
const STANDARD: [&str; 2] = ["libmpi_abi.so.1", "libmpi_abi.so"];

/// Libraries to try, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// Names or paths.
    pub names: Vec<OsString>,
    /// Whether the user has named the library.
    pub is_named: bool,
    /// The launcher of this process, if known.
    pub launcher: Option<Launcher>,
    /// Processes of the job, according to that launcher.
    pub size: Option<u32>,
    /// Those of them on this machine.
    pub here: Option<u32>,
}

impl Candidates {
    /// The candidates of this process's environment.
    #[must_use]
    pub fn from_environment() -> Candidates {
        Candidates::from_variables(|name| std::env::var_os(name))
    }

    /// The candidates of an environment.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Candidates {
        let is_set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
        let known = KNOWN.iter().find(|known| known.by.iter().any(is_set));
        let launcher = known.map(|known| known.launcher);
        let number = |name: &str| variable(name)?.to_str()?.trim().parse().ok();
        let size = known.and_then(|known| number(known.size));
        let here = known.and_then(|known| number(known.here));
        if let Some(name) = variable(LIBRARY).filter(|name| !name.is_empty()) {
            return Candidates { names: vec![name], is_named: true, launcher, size, here };
        }
        let families: [&[&str]; 3] = match launcher {
            Some(Launcher::Pmi) => [&MPICH, &STANDARD, &OPEN_MPI],
            Some(Launcher::OpenMpi | Launcher::Pmix) | None => [&OPEN_MPI, &STANDARD, &MPICH],
        };
        let names = families.concat().into_iter().map(OsString::from).collect();
        Candidates { names, is_named: false, launcher, size, here }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Candidates {
        Candidates::from_variables(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into()))
    }

    #[test]
    fn library_of_the_launcher_is_tried_first() {
        let first = |set: &[(&str, &str)]| {
            let found = of(set);
            (found.launcher, found.size, found.names[0].clone())
        };
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "0")];
        assert_eq!(first(&open_mpi), (Some(Launcher::OpenMpi), Some(4), "libmpi.so.40".into()));
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_FD", "9")];
        assert_eq!(first(&hydra), (Some(Launcher::Pmi), Some(2), "libmpich.so.12".into()));
        assert_eq!(first(&[("PMIX_RANK", "0")]), (Some(Launcher::Pmix), None, "libmpi.so.40".into()));
        assert_eq!(first(&[("PMI_RANK", "")]), (None, None, "libmpi.so.40".into()));
    }

    #[test]
    fn launcher_states_the_number_of_local_processes() {
        let open_mpi =
            [("OMPI_COMM_WORLD_RANK", "9"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"), ("MPI_LOCALNRANKS", "3")];
        assert_eq!(of(&open_mpi).here, Some(4));
        assert_eq!(of(&[("PMI_RANK", "9"), ("MPI_LOCALNRANKS", "8")]).here, Some(8));
        assert_eq!(of(&[("PMI_RANK", "9"), ("MPI_LOCALNRANKS", "many")]).here, None);
        assert_eq!(of(&[("MPI_LOCALNRANKS", "8")]).here, None);
    }

    #[test]
    fn each_library_is_tried_once_unless_one_is_named() {
        let all = of(&[]).names;
        assert_eq!(all.len(), 8);
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])));
        let named = of(&[("MPJDEV_MPI_LIBRARY", "/opt/mpi/lib/libmpi.so"), ("PMI_RANK", "1")]);
        assert_eq!((named.names, named.is_named), (vec!["/opt/mpi/lib/libmpi.so".into()], true));
        assert_eq!(named.launcher, Some(Launcher::Pmi));
    }
}
