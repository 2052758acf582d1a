//! A job that a test runs.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// One job. Its processes have a variable that identifies them.
pub(crate) struct Job {
    mark: String,
    args: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Job {
    pub(crate) fn new(args: &[&str]) -> Job {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("MPJDEV_TEST_MARK=job-{}-{number}-", std::process::id());
        Job { mark, args: args.iter().map(|a| (*a).to_owned()).collect(), variables: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Job {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The value that identifies the processes of this job.
    pub(crate) fn name(&self) -> &str {
        self.mark.split_once('=').expect("a variable").1
    }

    /// Its command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let own = [env!("CARGO_BIN_EXE_mpjdev"), "run"];
        own.into_iter().map(str::to_owned).chain(self.args.iter().cloned()).collect()
    }

    /// A command that the job is run by.
    pub(crate) fn environment(&self, mut command: Command) -> Command {
        let (name, value) = self.mark.split_once('=').expect("a variable");
        command.env(name, value).envs(self.variables.iter().cloned());
        command
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.environment(Command::new("env"));
        // Signals that this process ignores, as in the background of a script, are not ignored there.
        command.arg("--default-signal=HUP,INT,QUIT,TERM,TSTP").args(self.words());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self) -> Child {
        self.command().spawn().expect("it starts")
    }

    /// Runs it to its end; returns exit status, standard output and standard error. Checks that no process is
    /// left.
    pub(crate) fn run(&self) -> (i32, String, String) {
        self.run_with(b"")
    }

    pub(crate) fn run_with(&self, input: &[u8]) -> (i32, String, String) {
        let mut child = self.command().stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let output = self.ended(child);
        // The reader may have closed the pipe.
        let _ = feeder.join().expect("no panic");
        let text = |octets| String::from_utf8(octets).expect("UTF-8");
        let status = output.status.code().expect("no signal");
        assert_eq!(self.left(), Vec::<String>::new(), "after status {status}");
        (status, text(output.stdout), text(output.stderr))
    }

    /// Waits for its end; returns its output.
    fn ended(&self, mut child: Child) -> Output {
        let out = reader(child.stdout.take().expect("piped"));
        let err = reader(child.stderr.take().expect("piped"));
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("our child") {
                break status;
            }
            if begun.elapsed() > DEADLINE {
                let _ = child.kill();
                panic!("after {DEADLINE:?} still running: {:?}", self.args);
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Output { status, stdout: out.join().expect("no panic"), stderr: err.join().expect("no panic") }
    }

    /// Command lines of the running processes of this job, with zombies.
    pub(crate) fn left(&self) -> Vec<String> {
        self.processes().into_iter().map(|(pid, line)| format!("{pid} {line}")).collect()
    }

    fn processes(&self) -> Vec<(i32, String)> {
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(self.mark.len()).any(|part| part == self.mark.as_bytes())
        };
        let line =
            |pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
        pids.filter(ours).map(|pid| (pid, line(pid))).collect()
    }

    /// Waits until exactly `count` processes run whose command line begins so.
    pub(crate) fn until(&self, begin: &str, count: usize) -> Vec<i32> {
        let begun = Instant::now();
        loop {
            let found: Vec<_> =
                self.processes().into_iter().filter(|(_, line)| line.starts_with(begin)).collect();
            if found.len() == count {
                return found.into_iter().map(|(pid, _)| pid).collect();
            }
            assert!(begun.elapsed() < DEADLINE, "not {count} of {begin}: {:?}", self.left());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until a process is in this state, as proc(5) names it.
    pub(crate) fn until_state(&self, pid: i32, state: char) {
        let begun = Instant::now();
        let is = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        };
        while is() != Some(state) {
            assert!(begun.elapsed() < DEADLINE, "{pid} is not in state {state}: {:?}", is());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Reads lines until this one has arrived `count` times.
pub(crate) fn lines_until(out: &mut impl BufRead, line: &str, count: usize) -> String {
    let mut text = String::new();
    while text.matches(line).count() < count {
        assert!(out.read_line(&mut text).expect("a line") > 0, "{text}");
    }
    text
}

/// A thread that reads a stream to its end.
pub(crate) fn reader(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut octets = Vec::new();
        stream.read_to_end(&mut octets).map(|_| octets).expect("it can be read")
    })
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it lives");
}
