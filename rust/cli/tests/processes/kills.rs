//! Tests of jobs in which a process is killed at some time. The other ranks are notified, and no process is
//! left.
//!
//! Process and time follow from a fixed seed. The time is a number of lines that the ranks have written, and
//! a delay.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use crate::parts::kills::{ROUNDS, until};
use crate::soaks;

/// Jobs in `check` and in `soak`.
const FEW: u64 = 10;
const MANY: u64 = 100;
/// Maximum time of a job.
const DEADLINE: Duration = Duration::from_secs(30);

/// Numbers from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Launcher,
    Monitor,
    /// The process of a rank.
    Rank(u32),
    /// The shell that has started this rank.
    Shell(u32),
}

/// The children of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The events of one job.
#[derive(Debug)]
struct Plan {
    ranks: u32,
    by_shell: bool,
    keep_going: bool,
    victim: Victim,
    /// After this number of lines, and this time.
    lines: u64,
    pause: Duration,
}

impl Plan {
    fn new(seed: u64) -> Plan {
        let mut numbers = Numbers(seed);
        let ranks = 2 + numbers.next(4) as u32;
        let by_shell = numbers.next(2) == 0;
        let rank = numbers.next(u64::from(ranks)) as u32;
        let victim = match numbers.next(8) {
            0 => Victim::Launcher,
            1 => Victim::Monitor,
            2 | 3 if by_shell => Victim::Shell(rank),
            _ => Victim::Rank(rank),
        };
        // A third of them at the start, and some after the end of the job.
        let all = u64::from(ranks) * (ROUNDS + 2);
        let lines = if numbers.next(3) == 0 { 0 } else { numbers.next(all + 2) };
        let pause = Duration::from_micros(numbers.next(if lines == 0 { 30_000 } else { 2_000 }));
        Plan { ranks, by_shell, keep_going: numbers.next(2) == 0, victim, lines, pause }
    }

    fn start(&self, folder: &Path) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
        command.args(["run", "-n", &self.ranks.to_string(), "--timeout", "25"]);
        command.args(self.keep_going.then_some("--keep-going"));
        if self.by_shell {
            command.args(["sh", "-c", "\"$0\" \"$1\"; exit $?"]);
        }
        let own = std::env::current_exe().expect("this program");
        command.arg(own).arg("kills").env("TMPDIR", folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    /// The process to kill, once it runs.
    fn find(&self, launcher: i32) -> Option<i32> {
        let monitor = || children(launcher).first().copied();
        // The monitor starts the ranks in order, and has no other children yet.
        let program = |rank: u32| {
            let is_its = |pid: &i32| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                let own = format!("MPJDEV_RANK={rank}");
                environment.split(|octet| *octet == 0).any(|variable| variable == own.as_bytes())
            };
            children(monitor()?).into_iter().find(is_its)
        };
        match self.victim {
            Victim::Launcher => Some(launcher),
            Victim::Monitor => monitor(),
            Victim::Rank(rank) if self.by_shell => children(program(rank)?).first().copied(),
            Victim::Rank(rank) | Victim::Shell(rank) => program(rank),
        }
    }

    /// Kills the victim at its time; false if the job ends before.
    fn kill_at_random(&self, job: &mut Child, out: &mut impl BufRead, text: &mut String) -> bool {
        for _ in 0..self.lines {
            if out.read_line(text).expect("UTF-8") == 0 {
                break;
            }
        }
        let begun = Instant::now();
        while begun.elapsed() < self.pause {
            std::hint::spin_loop();
        }
        loop {
            if let Some(pid) = self.find(job.id() as i32).and_then(Pid::from_raw) {
                return kill_process(pid, Signal::KILL).is_ok();
            }
            if job.try_wait().expect("our child").is_some() {
                return false;
            }
            assert!(begun.elapsed() < DEADLINE, "there is no {:?}", self.victim);
        }
    }

    /// The output that the job must have printed.
    fn check(&self, status: Option<i32>, out: &str, err: &str) {
        // The job may have succeeded before.
        if (status, err) == (Some(0), "") {
            return;
        }
        match self.victim {
            Victim::Launcher => assert_eq!(status, None),
            Victim::Monitor => {
                assert_eq!(status, Some(137));
                assert!(err.contains("the monitor of the job was killed by signal 9 (SIGKILL)"));
            }
            Victim::Rank(rank) | Victim::Shell(rank) => {
                assert_eq!(status, Some(137));
                assert!(err.contains(&format!("mpjrun: rank {rank} ")));
                // No rank was notified of the failure of another one.
                let reported =
                    out.lines().filter(|line| line.contains(" has failed") || line.contains(" has ended"));
                reported.for_each(|line| assert!(line.contains(&format!(": rank {rank} has ")), "{line}"));
            }
        }
        if let (Victim::Rank(rank), true) = (self.victim, self.keep_going) {
            // All other ranks continue to their end.
            for other in (0..self.ranks).filter(|other| *other != rank) {
                assert!(out.lines().any(|line| line == format!("{other}: done")), "rank {other}");
            }
        }
    }

    fn run(&self, folder: &Path) {
        let mut job = self.start(folder);
        let begun = Instant::now();
        let mut out = BufReader::new(job.stdout.take().expect("piped"));
        let mut err = job.stderr.take().expect("piped");
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).map(|_| text).expect("UTF-8")
        });
        let mut text = String::new();
        let is_killed = self.kill_at_random(&mut job, &mut out, &mut text);
        out.read_to_string(&mut text).expect("UTF-8");
        let errors = errors.join().expect("no panic");
        let status = job.wait().expect("our child").code();
        let result = std::panic::catch_unwind(|| {
            assert!(begun.elapsed() < DEADLINE, "it took {:?}", begun.elapsed());
            if is_killed {
                self.check(status, &text, &errors);
            } else {
                assert_eq!((status, errors.as_str()), (Some(0), ""));
            }
            nothing_is_left(folder);
        });
        if result.is_err() {
            panic!("{self:?}: status {status:?}, killed {is_killed}\n{text}{errors}");
        }
    }
}

/// This process adopts the orphans of a job, so each survivor is its child.
pub(crate) fn nothing_runs() {
    until("all processes have ended", || match wait(WaitOptions::NOHANG) {
        Ok(_) => false,
        Err(errno) => {
            assert_eq!(errno, rustix::io::Errno::CHILD);
            true
        }
    });
}

fn nothing_is_left(folder: &Path) {
    nothing_runs();
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(folder), Vec::<String>::new());
    let shared = names(Path::new("/dev/shm"));
    assert!(!shared.iter().any(|name| name.contains("mpjdev")), "{shared:?}");
    let sockets = fs::read_to_string("/proc/net/unix").expect("/proc");
    let ours = |line: &&str| line.contains("@mpjdev") || line.contains(&*folder.to_string_lossy());
    assert_eq!(sockets.lines().find(ours), None);
}

pub(crate) fn no_process_is_left_after_a_kill_at_any_time() {
    set_child_subreaper(Some(getpid())).expect("allowed");
    let folder: PathBuf = std::env::temp_dir().join(format!("mpjdev-kills-{}", std::process::id()));
    fs::create_dir(&folder).expect("a new folder");
    let count = if soaks() { MANY } else { FEW };
    for seed in 0..count {
        Plan::new(seed).run(&folder);
    }
    fs::remove_dir(&folder).expect("it is empty");
    set_child_subreaper(None).expect("allowed");
}

/// The parent-death signal of the program is lost at the fork of its shell.
pub(crate) fn ranks_behind_a_shell_end_when_launcher_and_monitor_are_killed() {
    set_child_subreaper(Some(getpid())).expect("allowed");
    for transport in ["auto", "tcp", "udp"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
        command.args(["run", "-n", "2", "--transport", transport, "sh", "-c", "\"$0\" \"$1\"; true"]);
        command.arg(std::env::current_exe().expect("this program")).arg("sleeps-or-computes");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut job = command.spawn().expect("it starts");
        let mut lines = BufReader::new(job.stdout.take().expect("piped")).lines();
        for _ in 0..2 {
            assert_eq!(lines.next().expect("it runs").expect("UTF-8"), "joined", "over {transport}");
        }
        let launcher = job.id() as i32;
        let monitor = children(launcher)[0];
        let kill =
            |pid, signal| kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it lives");
        // The stopped monitor does not react to the end of the launcher.
        kill(monitor, Signal::STOP);
        kill(launcher, Signal::KILL);
        kill(monitor, Signal::KILL);
        job.wait().expect("our child");
        nothing_runs();
    }
    set_child_subreaper(None).expect("allowed");
}
