//! The hosts of an allocation, as batch systems describe them to a job script.
//!
//! | system | variables | documented in |
//! |---|---|---|
//! | Slurm | `SLURM_JOB_NODELIST`, `SLURM_TASKS_PER_NODE`, `SLURM_JOB_CPUS_PER_NODE` | sbatch(1) |
//! | PBS, Torque | `PBS_NODEFILE`, a file with a line for each slot | qsub(1) |
//! | LSF | `LSB_MCPU_HOSTS`, `LSB_HOSTS` | bsub(1) |

use std::io;

use thiserror::Error;

use super::host_list::{Host, HostListError, parse_hostfile};
use super::node_list::{NodeListError, expand};

/// A batch system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Slurm.
    Slurm,
    /// PBS or Torque.
    Pbs,
    /// LSF.
    Lsf,
}

/// The hosts that a batch system has given to this job script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The system.
    pub system: System,
    /// The hosts with their slots.
    pub hosts: Vec<Host>,
}

/// The reason why the variables describe no hosts.
#[derive(Debug, Error)]
pub enum AllocationError {
    /// The node list of Slurm is malformed.
    #[error("SLURM_JOB_NODELIST: {0}")]
    NodeList(#[from] NodeListError),
    /// The counts do not belong to the nodes.
    #[error(
        "{variable} is {text:?}, it must have a number for each of the {nodes} nodes, such as 4(x{nodes})"
    )]
    Counts {
        /// The variable.
        variable: &'static str,
        /// Its value.
        text: String,
        /// Number of nodes.
        nodes: usize,
    },
    /// The file of hosts cannot be read.
    #[error("PBS_NODEFILE: {file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The list of hosts is malformed.
    #[error("{variable}: {error}")]
    List {
        /// The variable.
        variable: &'static str,
        /// The error.
        error: HostListError,
    },
}

/// The allocation of these variables, if a batch system has set them.
///
/// # Errors
/// A variable is malformed, or the file that it names cannot be read.
pub fn find(
    variable: impl Fn(&str) -> Option<String>,
    read: impl Fn(&str) -> io::Result<String>,
) -> Result<Option<Allocation>, AllocationError> {
    let listed = |variable, text: &str| {
        parse_hostfile(text).map_err(|error| AllocationError::List { variable, error })
    };
    if let Some(list) = variable("SLURM_JOB_NODELIST") {
        let names = expand(&list)?;
        let counts = ["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"];
        let counts = counts.into_iter().find_map(|name| Some((name, variable(name)?)));
        let counts = counts.map(|(variable, text)| per_node(variable, &text, names.len())).transpose()?;
        let slots = |at: usize| counts.as_ref().map(|counts| counts[at]);
        let hosts = names.into_iter().enumerate().map(|(at, name)| Host { name, slots: slots(at) });
        return Ok(Some(Allocation { system: System::Slurm, hosts: hosts.collect() }));
    }
    if let Some(file) = variable("PBS_NODEFILE") {
        let text = read(&file).map_err(|source| AllocationError::File { file, source })?;
        let slots =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}:1\n"));
        let hosts = listed("PBS_NODEFILE", &slots.collect::<String>())?;
        return Ok(Some(Allocation { system: System::Pbs, hosts }));
    }
    let lsf = |variable, lines: String| {
        Ok(Some(Allocation { system: System::Lsf, hosts: listed(variable, &lines)? }))
    };
    if let Some(text) = variable("LSB_MCPU_HOSTS") {
        let words: Vec<&str> = text.split_whitespace().collect();
        let lines = words.chunks(2).map(|pair| format!("{}\n", pair.join(":")));
        return lsf("LSB_MCPU_HOSTS", lines.collect());
    }
    if let Some(text) = variable("LSB_HOSTS") {
        return lsf("LSB_HOSTS", text.split_whitespace().map(|name| format!("{name}:1\n")).collect());
    }
    Ok(None)
}

/// The numbers of `4(x2),3`, one for each node.
fn per_node(variable: &'static str, text: &str, nodes: usize) -> Result<Vec<u32>, AllocationError> {
    let invalid = || AllocationError::Counts { variable, text: text.to_owned(), nodes };
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (number, times) = match part.trim().split_once("(x") {
            Some((number, times)) => (number, times.strip_suffix(')').ok_or_else(invalid)?),
            None => (part.trim(), "1"),
        };
        let number: u32 = number.parse().ok().filter(|number| *number > 0).ok_or_else(invalid)?;
        let times: usize =
            times.parse().ok().filter(|times| (1..=nodes).contains(times)).ok_or_else(invalid)?;
        counts.extend(std::iter::repeat_n(number, times));
        if counts.len() > nodes {
            return Err(invalid());
        }
    }
    if counts.len() == nodes { Ok(counts) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        let read = |file: &str| match file {
            "nodes" => Ok("a\na\nb\n\na\n".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let allocation = find(variable, read).map_err(|error| error.to_string())?;
        let Some(Allocation { system, hosts }) = allocation else { return Ok(String::new()) };
        let slots = |host: &Host| host.slots.map_or_else(String::new, |slots| format!(":{slots}"));
        let hosts: Vec<String> = hosts.iter().map(|host| format!("{}{}", host.name, slots(host))).collect();
        Ok(format!("{system:?} {}", hosts.join(",")))
    }

    #[test]
    fn slurm_names_nodes_and_tasks() {
        let list = ("SLURM_JOB_NODELIST", "n[01-03]");
        assert_eq!(found(&[list]), Ok("Slurm n01,n02,n03".into()));
        let cpus = ("SLURM_JOB_CPUS_PER_NODE", "16(x3)");
        assert_eq!(found(&[list, cpus]), Ok("Slurm n01:16,n02:16,n03:16".into()));
        let tasks = ("SLURM_TASKS_PER_NODE", "4(x2),3");
        assert_eq!(found(&[list, cpus, tasks]), Ok("Slurm n01:4,n02:4,n03:3".into()), "tasks come first");
    }

    #[test]
    fn pbs_and_lsf_name_a_host_for_each_slot() {
        assert_eq!(found(&[("PBS_NODEFILE", "nodes")]), Ok("Pbs a:3,b:1".into()));
        assert_eq!(found(&[("LSB_HOSTS", "a a b")]), Ok("Lsf a:2,b:1".into()));
        assert_eq!(found(&[("LSB_HOSTS", "x"), ("LSB_MCPU_HOSTS", "a 2 b 1 ")]), Ok("Lsf a:2,b:1".into()));
        assert_eq!(found(&[("PATH", "/bin")]), Ok(String::new()));
    }

    #[test]
    fn malformed_variables_are_refused() {
        let list = ("SLURM_JOB_NODELIST", "n[1-2]");
        for counts in ["", "x", "4", "4(x3)", "4(x1)", "4(2x)", "0(x2)", "4(x2", "1,1,1"] {
            let error = found(&[list, ("SLURM_TASKS_PER_NODE", counts)]).expect_err(counts);
            assert!(error.starts_with("SLURM_TASKS_PER_NODE is "), "{error}");
        }
        assert!(found(&[("SLURM_JOB_NODELIST", "n[1")]).is_err_and(|error| error.contains("brackets")));
        assert!(
            found(&[("PBS_NODEFILE", "gone")]).is_err_and(|error| error.starts_with("PBS_NODEFILE: gone: "))
        );
        assert!(found(&[("LSB_MCPU_HOSTS", "a x")]).is_err_and(|error| error.contains("slots")));
        assert!(found(&[("LSB_HOSTS", " ")]).is_err());
    }
}
