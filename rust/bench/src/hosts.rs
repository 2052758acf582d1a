//! Start and end of a job on several hosts, whose program is empty: `mpjrun --hosts` beside `mpirun` of Open
//! MPI, which both start the same hosts through the same sshd.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use mpjdev_testing::cluster::Cluster;
use serde::Serialize;

use super::BenchError;
use super::outcome::median;

/// Limit of our time divided by theirs.
pub const LIMIT: f64 = 1.2;
/// Launcher of Open MPI, under the name that Debian gives it.
const THEIRS: &str = "mpirun.openmpi";
/// Program of Open MPI on each host, and the shell that its wrapper needs.
const DAEMON: [&str; 2] = ["orted", "bash"];
/// The empty program.
const PROGRAM: &str = "/bin/true";
/// Seconds after which a job has failed.
const TIMEOUT: &str = "60";

/// Milliseconds of jobs, from the start of the launcher to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    /// Name of the row.
    pub row: String,
    /// Ours.
    pub ours: Vec<f64>,
    /// Those of Open MPI, if it is a contestant.
    pub theirs: Vec<f64>,
}

impl Start {
    /// Median of our times.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        median(self.ours.clone())
    }

    /// Our median divided by theirs.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        Some(self.median()? / median(self.theirs.clone())?)
    }
}

/// Runs jobs of some ranks on each of some hosts in turns, after one of each that is not counted.
///
/// # Errors
/// The system refuses the hosts, Open MPI is missing, or a job fails.
pub fn on_hosts(launcher: &Path, hosts: usize, ranks: u32, jobs: usize) -> Result<Start, BenchError> {
    let theirs = on_path(THEIRS)?;
    on_path(DAEMON[0])?;
    let cluster = Cluster::new(hosts, &DAEMON).map_err(BenchError::Missing)?;
    let list: Vec<String> = (0..hosts).map(|host| format!("h{host}:{ranks}")).collect();
    let list = list.join(",");
    let mut start =
        Start { row: format!("{hosts} hosts x {ranks} ranks"), ours: Vec::new(), theirs: Vec::new() };
    for job in 0..=jobs {
        let mut command = cluster.launcher(launcher, &list);
        let ours = timed(command.args(["--timeout", TIMEOUT, PROGRAM]))?;
        let mut command = cluster.on_hub(&theirs);
        command.args(["--allow-run-as-root", "--timeout", TIMEOUT, "--host", &list]);
        // The bridge of containers is not a way to another host.
        for interfaces in ["oob_tcp_if_include", "btl_tcp_if_include"] {
            command.args(["--mca", interfaces, "198.18.0.0/24"]);
        }
        let theirs = timed(command.args(["--mca", "plm_rsh_agent", &cluster.shell(), PROGRAM]))?;
        if job > 0 {
            start.ours.push(ours);
            start.theirs.push(theirs);
        }
    }
    Ok(start)
}

/// Runs jobs of one rank on each of some hosts, all of which are this machine: a script in `folder` stands
/// for ssh.
///
/// # Errors
/// The system refuses, or a job fails.
pub fn by_local_shells(
    launcher: &Path,
    folder: &Path,
    hosts: usize,
    jobs: usize,
) -> Result<Start, BenchError> {
    let shell = folder.join("shell");
    let made = std::fs::write(&shell, "#!/bin/sh\nshift\nexec sh -c \"$*\"\n")
        .and_then(|()| std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o700)));
    made.map_err(BenchError::system("a script"))?;
    let list: Vec<String> = (0..hosts).map(|host| format!("n{host}")).collect();
    let mut start =
        Start { row: format!("{hosts} local shells x 1 rank"), ours: Vec::new(), theirs: Vec::new() };
    for _ in 0..jobs {
        let mut command = Command::new(launcher);
        command.args(["run", "--hosts", &list.join(","), "--launcher"]).arg(&shell);
        start.ours.push(timed(command.args(["--timeout", TIMEOUT, PROGRAM]))?);
    }
    Ok(start)
}

/// Milliseconds that a command runs.
fn timed(command: &mut Command) -> Result<f64, BenchError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.output().map_err(BenchError::system("a launcher"))?;
    let time = begun.elapsed().as_secs_f64() * 1e3;
    if output.status.success() {
        return Ok(time);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = command.get_program().to_string_lossy().into_owned();
    Err(BenchError::Contestant { name, why: format!("{}: {said}", output.status) })
}

/// A program of the PATH.
fn on_path(name: &str) -> Result<PathBuf, BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
    let missing = || BenchError::Missing(format!("no {name}: install Open MPI (Debian: openmpi-bin)"));
    found.ok_or_else(missing)
}

/// A table of the times.
#[must_use]
pub fn table(starts: &[Start]) -> String {
    let mut text =
        "| row | mpjrun, ms | mpirun of Open MPI, ms | ratio | allowed |\n|---|---|---|---|---|\n".to_owned();
    for start in starts {
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
        let ratio = start.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let limit = if start.theirs.is_empty() { "-".to_owned() } else { format!("at most {LIMIT}") };
        let (ours, theirs) = (shown(start.median()), shown(median(start.theirs.clone())));
        text += &format!("| {} | {ours} | {theirs} | {ratio} | {limit} |\n", start.row);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_medians_and_their_ratio() {
        let row = |row: &str, ours: &[f64], theirs: &[f64]| Start {
            row: row.to_owned(),
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
        };
        let text = table(&[row("a", &[90.0, 30.0, 60.0], &[100.0, 120.0, 110.0]), row("b", &[5.0], &[])]);
        assert!(text.contains("| a | 60 | 110 | 0.55 | at most 1.2 |\n| b | 5 | - | - | - |\n"), "{text}");
    }

    #[test]
    fn command_that_fails_is_an_error_with_its_words() {
        let mut command = Command::new("sh");
        let error = timed(command.args(["-c", "echo no hosts >&2; exit 3"])).expect_err("it fails");
        assert!(error.to_string().contains("no hosts"), "{error}");
    }
}
