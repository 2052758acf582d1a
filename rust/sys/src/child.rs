//! Set-up of a child process before it becomes its program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The set-up of a child process.
#[derive(Clone, Copy, Debug)]
pub struct ChildSetup {
    /// The process that starts it. The system kills the child when the thread that has started it ends.
    pub parent: Pid,
    /// The limit on open files.
    pub open_files: Rlimit,
    /// The processors that it may use; `None` leaves them as they are.
    pub processors: Option<CpuSet>,
}

/// Makes the child that this command starts set itself up before it becomes the program. What fails there
/// fails the start.
pub fn prepare(command: &mut Command, setup: ChildSetup) {
    // SAFETY: the closure runs between fork and exec. It makes system calls and nothing else: it allocates
    // nothing, takes no lock, and an error is a number.
    unsafe {
        command.pre_exec(move || set_up(&setup));
    }
}

fn set_up(setup: &ChildSetup) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that has ended before sends no signal.
    if getppid() != Some(setup.parent) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    setrlimit(Resource::Nofile, setup.open_files)?;
    match &setup.processors {
        Some(processors) => Ok(sched_setaffinity(None, processors)?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpid, getrlimit};
    use rustix::thread::sched_getaffinity;

    use super::*;

    fn setup() -> ChildSetup {
        ChildSetup { parent: getpid(), open_files: getrlimit(Resource::Nofile), processors: None }
    }

    fn output(setup: ChildSetup, script: &str) -> io::Result<String> {
        let mut command = Command::new("sh");
        prepare(command.args(["-c", script]), setup);
        Ok(String::from_utf8(command.output()?.stdout).expect("text"))
    }

    #[test]
    fn child_has_the_limit_and_the_processors_of_its_setup() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        let open_files = Rlimit { current: Some(77), maximum };
        let allowed = sched_getaffinity(None).expect("processors");
        let last = (0..CpuSet::MAX_CPU).rfind(|cpu| allowed.is_set(*cpu)).expect("one processor");
        let mut one = CpuSet::new();
        one.set(last);
        let setup = ChildSetup { open_files, processors: Some(one), ..setup() };
        let script = "ulimit -n; grep Cpus_allowed_list /proc/self/status";
        let found = output(setup, script).expect("it starts");
        assert_eq!(found, format!("77\nCpus_allowed_list:\t{last}\n"));
    }

    #[test]
    fn child_of_another_parent_is_not_started() {
        let other = Pid::from_raw(1).expect("a process");
        let error =
            output(ChildSetup { parent: other, ..setup() }, "echo started").expect_err("it is refused");
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
