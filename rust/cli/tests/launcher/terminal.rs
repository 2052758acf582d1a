//! Tests of the launcher under a shell and a terminal: in the background, stopped and continued, hung up.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use crate::job::{DEADLINE, Job, lines_until, signal};

/// Runs a shell script on a terminal of its own, with job control; returns the output of the terminal. `$JOB`
/// is the command line of the job.
fn on_a_terminal(job: &Job, script: &str) -> String {
    let inner = format!("stty -echo -onlcr; set -m; JOB=\"{}\"; echo begin; {script}", job.words().join(" "));
    let mut command = job.environment(Command::new("script"));
    command.args(["-qec", &format!("sh -c '{inner}'"), "/dev/null"]);
    // Standard input stays open: its end would be the end of the terminal.
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("util-linux");
    let mut stdin = child.stdin.take().expect("piped");
    let begun = Instant::now();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    lines_until(&mut out, "begin", 1);
    stdin.write_all(b"typed\n").expect("the terminal takes it");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text).expect("UTF-8")
    });
    while child.try_wait().expect("our child").is_none() {
        if begun.elapsed() > DEADLINE {
            let _ = child.kill();
            panic!("still running: {script}: {:?}", job.left());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(job.left(), Vec::<String>::new());
    reader.join().expect("no panic")
}

/// The job does not read the terminal, and is not stopped when the terminal forbids output from the
/// background.
#[test]
fn background_job_leaves_the_terminal_to_its_owner() {
    let job = Job::new(&["-n", "2", "echo", "rank"]);
    let out = on_a_terminal(&job, "$JOB & wait $!; echo status $?; read line; echo $line");
    assert_eq!(out, "rank\nrank\nstatus 0\ntyped\n");
    let out = on_a_terminal(&job, "stty tostop; $JOB & wait $!; echo status $?; read line; echo $line");
    assert_eq!(out, "rank\nrank\nstatus 0\ntyped\n");
    let out = on_a_terminal(&job, "stty tostop; $JOB; echo status $?");
    assert_eq!(out, "rank\nrank\nstatus 0\n");
}

#[test]
fn foreground_rank_0_reads_the_terminal() {
    let job = Job::new(&["-n", "2", "head", "-n", "1"]);
    assert_eq!(on_a_terminal(&job, "$JOB; echo status $?"), "typed\nstatus 0\n");
}

/// As nohup(1) ignores SIGHUP, and shells ignore SIGINT for background processes.
#[test]
fn ignored_signal_stays_ignored() {
    for name in ["HUP", "INT"] {
        let job = Job::new(&["-n", "2", "sh", "-c", "echo ready; until [ -e $STOP ]; do sleep 0.01; done"]);
        let stop = std::env::temp_dir().join(format!("mpjdev-{}-{name}", job.name()));
        let mut command = job.environment(Command::new("sh"));
        command.args(["-c", &format!("trap '' {name}; exec \"$0\" \"$@\"")]).args(job.words());
        command.env("STOP", &stop).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        lines_until(&mut out, "ready", 2);
        let ignored = if name == "HUP" { Signal::HUP } else { Signal::INT };
        signal(child.id() as i32, ignored);
        // A forwarded signal follows it.
        signal(child.id() as i32, Signal::WINCH);
        std::fs::write(&stop, "").expect("a file");
        let mut err = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
        let status = child.wait().expect("our child").code();
        std::fs::remove_file(&stop).expect("it is ours");
        assert_eq!((status, err.as_str()), (Some(0), ""), "{name}");
        assert_eq!(job.left(), Vec::<String>::new());
    }
}

/// Ctrl-Z at a terminal stops all processes; `fg` or `bg` continues them.
#[test]
fn job_stops_and_continues_with_its_launcher() {
    let count = "i=0; while :; do echo $i; read line; i=$((i+1)); done";
    let job = Job::new(&["-n", "1", "sh", "-c", count]);
    let mut child = job.command().stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("piped");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    let rank = job.until("sh -c i=0", 1)[0];
    signal(child.id() as i32, Signal::TSTP);
    job.until_state(child.id() as i32, 'T');
    job.until_state(rank, 'T');
    input.write_all(b"\n").expect("it is read later");
    signal(child.id() as i32, Signal::CONT);
    out.read_line(&mut line).expect("a line");
    assert_eq!(line, "0\n1\n");
    signal(child.id() as i32, Signal::TERM);
    assert_eq!(child.wait().expect("our child").code(), Some(143));
    assert_eq!(job.left(), Vec::<String>::new());
}
