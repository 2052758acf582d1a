//! Tests of `mpjdev run` with real processes, signals and pipes. Each test checks that no process of its job
//! is left.

mod hosts;
mod job;
mod profile;
mod terminal;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use job::{DEADLINE, Job, lines_until, signal};

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("mpjdev-launcher-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }

    /// Adds a shell script that prints its arguments in the place of a JDK's `java`.
    fn with_java(self) -> Folder {
        let java = self.0.join("bin/java");
        fs::create_dir(self.0.join("bin")).expect("a new folder");
        fs::write(&java, "#!/bin/sh\necho java \"$@\"\n").expect("a script");
        fs::set_permissions(&java, fs::Permissions::from_mode(0o755)).expect("it is ours");
        self
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_rank_gets_its_number_and_its_lines_are_tagged() {
    let echo = "echo $MPJDEV_RANK of $MPJDEV_SIZE; echo to $MPJDEV_RANK >&2";
    let (status, out, err) = Job::new(&["-n", "3", "--tag-output", "sh", "-c", echo]).run();
    assert_eq!((status, lines(&out)), (0, vec!["[0] 0 of 3", "[1] 1 of 3", "[2] 2 of 3"]));
    assert_eq!(lines(&err), ["[0] to 0", "[1] to 1", "[2] to 2"]);
}

#[test]
fn variables_of_a_rank_are_documented() {
    let script =
        "env | grep ^MPJDEV_ | grep -v -e MARK -e SOAK -e TEST; readlink /proc/$$/fd/$MPJDEV_CONTROL";
    let (status, out, _) = Job::new(&["-n", "1", "sh", "-c", script]).run();
    let found = lines(&out);
    let begins = [
        "MPJDEV_CONTROL=",
        "MPJDEV_JOB=mpjdev-",
        "MPJDEV_RANK=0",
        "MPJDEV_SIZE=1",
        "MPJDEV_TRANSPORT=auto",
        "MPJDEV_WORLD_RANK=0",
        "MPJDEV_WORLD_SIZE=1",
    ];
    assert_eq!(
        (status, found.len()),
        (0, begins.len() + 1),
        "list a new variable here, in after_help of run.rs and in docs/user/launcher.md: {out}"
    );
    assert!(found.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{out}");
    assert!(found[begins.len()].starts_with("socket:["), "{out}");
    let (_, help, _) = Job::new(&["--help"]).run();
    let names = begins.iter().filter_map(|begin| begin.split('=').next());
    names.for_each(|name| assert!(help.contains(name), "after_help of run.rs has no {name}: {help}"));
}

#[test]
fn exported_variable_takes_its_value_or_that_of_the_environment() {
    let job = Job::new(&["-np", "1", "-x", "GIVEN=a=b", "-x", "KEPT", "sh", "-c", "echo $GIVEN $KEPT"]);
    assert_eq!(job.with("KEPT", "c").run().1, "a=b c\n");
    let (status, _, err) = Job::new(&["-n", "1", "-x", "MPJDEV_NOT_SET", "true"]).run();
    assert_eq!(status, 2);
    assert!(err.contains("MPJDEV_NOT_SET is not set here"), "{err}");
}

#[test]
fn first_failed_rank_ends_the_job_with_its_status_and_one_line() {
    let fails = |how: &str| format!("if [ $MPJDEV_RANK = 2 ]; then {how}; fi; exec sleep 1000");
    for (how, status, text) in
        [("exit 3", 3, "exited with status 3"), ("kill -9 $$", 137, "was killed by signal 9 (SIGKILL)")]
    {
        let (found, out, err) = Job::new(&["-n", "4", "sh", "-c", &fails(how)]).run();
        assert_eq!((found, out.as_str()), (status, ""), "{err}");
        assert!(err.starts_with("mpjrun: rank 2 (process ") && err.contains(text), "{err}");
        assert!(err.ends_with(" s after the start; ending the other 3 ranks\n"), "{err}");
    }
}

#[test]
fn keep_going_continues_and_reports_every_failure() {
    let folder = Folder::new("keep-going");
    // The others wait until the launcher has seen the end of rank 1.
    let script = "if [ $MPJDEV_RANK = 1 ]; then echo $$ > $0.part; mv $0.part $0; exit 4; fi; \
                  until [ -e $0 ]; do sleep 0.01; done; while kill -0 $(cat $0) 2>/dev/null; do sleep 0.01; done; \
                  echo done; [ $MPJDEV_RANK = 0 ]";
    let pid = folder.path("pid");
    let (status, out, err) = Job::new(&["-n", "3", "--keep-going", "sh", "-c", script, &pid]).run();
    assert_eq!((status, out.as_str()), (4, "done\ndone\n"));
    assert!(err.contains("rank 1 ") && err.contains("status 4"), "{err}");
    assert!(err.contains("rank 2 ") && err.contains("status 1"), "{err}");
}

#[test]
fn standard_input_goes_to_rank_0_only() {
    let script = "wc -c | sed \"s/^/$MPJDEV_RANK: /\"";
    let input = vec![b'x'; 1 << 20];
    let (status, out, _) = Job::new(&["-n", "2", "sh", "-c", script]).run_with(&input);
    assert_eq!((status, lines(&out)), (0, vec!["0: 1048576", "1: 0"]));
    // Unread input does not delay the end of the job.
    assert_eq!(Job::new(&["-n", "2", "true"]).run_with(&input).0, 0);
}

#[test]
fn lines_of_ranks_are_forwarded_whole_and_in_order() {
    let script =
        "i=0; while [ $i -lt 3000 ]; do echo rank $MPJDEV_RANK line $i end; i=$((i+1)); done; printf last";
    let (status, out, _) = Job::new(&["-n", "4", "sh", "-c", script]).run();
    assert_eq!(status, 0);
    let mut next = [0; 4];
    let mut last = 0;
    for line in out.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["rank", rank, "line", number, "end"] => {
                let expected = &mut next[rank.parse::<usize>().expect(line)];
                assert_eq!(number.parse(), Ok(*expected), "{line}");
                *expected += 1;
            }
            ["last"] => last += 1,
            _ => panic!("mixed: {line}"),
        }
    }
    assert_eq!((next, last), ([3000; 4], 4));
}

#[test]
fn closed_reader_does_not_stop_the_job() {
    let folder = Folder::new("reader");
    let script = format!("seq 100000; touch {}/$MPJDEV_RANK", folder.path("."));
    let job = Job::new(&["-n", "2", "sh", "-c", &script]);
    let mut child = job.start();
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut first).expect("a line");
    assert_eq!(first, "1\n");
    let begun = Instant::now();
    while child.try_wait().expect("our child").is_none() {
        assert!(begun.elapsed() < DEADLINE);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Path::new(&folder.path("0")).exists() && Path::new(&folder.path("1")).exists());
    assert_eq!(job.left(), Vec::<String>::new());
}

#[test]
fn closed_output_ends_the_writing_ranks() {
    ends_when_its_output_is_closed(&Job::new(&["-n", "2", "yes"]));
}

/// Reads one line of a job that writes `y` without end, and waits for its end.
fn ends_when_its_output_is_closed(job: &Job) {
    let mut child = job.start();
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut first).expect("a line");
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
    let status = child.wait().expect("our child").code();
    assert_eq!((first.as_str(), status, err.as_str()), ("y\n", Some(141), ""));
    job.until("", 0);
}

/// More output than a pipe holds, when the ranks end.
const MUCH: &str = "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end of $MPJDEV_RANK";

#[test]
fn last_output_waits_for_a_slow_reader() {
    let job = Job::new(&["-n", "2", "sh", "-c", MUCH]);
    let mut child = job.start();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut text = vec![0];
    out.read_exact(&mut text).expect("an octet");
    job.until("sh -c", 0);
    // The subject of the test: longer than any time limit of the launcher.
    std::thread::sleep(Duration::from_secs(6));
    out.read_to_end(&mut text).expect("the rest");
    assert_eq!(child.wait().expect("our child").code(), Some(0));
    assert_eq!(text.len(), 2 * (1_000_001 + "end of 0\n".len()));
    assert_eq!(job.left(), Vec::<String>::new());
}

#[test]
fn slow_reader_delays_neither_timeout_nor_signal() {
    // A slow machine needs some time until the ranks have written their output.
    let ended = |seconds: &str| {
        let job = Job::new(&["-n", "2", "--timeout", seconds, "--grace", "0.1", "sh", "-c", MUCH]);
        let mut child = job.start();
        assert_eq!(child.wait().expect("our child").code(), Some(124));
        let mut err = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
        assert_eq!(job.left(), Vec::<String>::new());
        let text = format!(
            "mpjrun: the time of {seconds} s is over (--timeout): all ranks have ended, and their output is not read\n"
        );
        err.starts_with(&text).then_some(err)
    };
    let err = ["2", "10", "50"].into_iter().find_map(ended).expect("all was written");
    assert!(
        err.ends_with(
            "mpjrun: the last output of the ranks is lost: it was not read within the time of --grace\n"
        ),
        "{err}"
    );

    let job = Job::new(&["-n", "2", "--grace", "0.1", "sh", "-c", MUCH]);
    let mut child = job.start();
    let mut octet = [0];
    let mut out = child.stdout.take().expect("piped");
    out.read_exact(&mut octet).expect("an octet");
    job.until("sh -c", 0);
    signal(child.id() as i32, Signal::TERM);
    child.wait().expect("our child");
    assert_eq!(job.left(), Vec::<String>::new());
}

#[test]
fn job_ends_with_status_124_at_its_timeout() {
    let (status, _, err) = Job::new(&["-n", "2", "--timeout", "0.3", "sleep", "1000"]).run();
    assert_eq!(status, 124);
    assert_eq!(err, "mpjrun: the time of 0.3 s is over (--timeout): 2 of 2 ranks are running\n");
}

#[test]
fn signal_is_forwarded_and_ranks_are_killed_after_the_grace() {
    let handles_term = "trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let job = Job::new(&["-n", "2", "--grace", "60", "sh", "-c", handles_term]);
    let child = job.start();
    let (status, out, _) = signalled(&job, child, "ready", 2, &[Signal::TERM]);
    assert_eq!((status, out.matches("ended").count()), (0, 2), "{out}");

    let ignores_term = "trap '' TERM INT; echo ready; while :; do sleep 0.01; done";
    let job = Job::new(&["-n", "2", "--grace", "0.2", "sh", "-c", ignores_term]);
    let (status, _, _) = signalled(&job, job.start(), "ready", 2, &[Signal::INT]);
    assert_eq!(status, 137);

    // A second signal kills at once. Two signals of one kind may arrive as one.
    let job = Job::new(&["-n", "2", "--grace", "1000", "sh", "-c", ignores_term]);
    let (status, _, _) = signalled(&job, job.start(), "ready", 2, &[Signal::TERM, Signal::INT]);
    assert_eq!(status, 137);
}

/// Sends the launcher signals after a number of lines, and waits for its end.
fn signalled(
    job: &Job,
    mut child: Child,
    line: &str,
    count: usize,
    signals: &[Signal],
) -> (i32, String, String) {
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut text = lines_until(&mut out, line, count);
    for each in signals {
        signal(child.id() as i32, *each);
    }
    out.read_to_string(&mut text).expect("UTF-8");
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
    let status = child.wait().expect("our child").code().expect("no signal");
    assert_eq!(job.left(), Vec::<String>::new());
    (status, text, err)
}

/// A rank that is a shell. Its child has a session of its own and ignores signals.
const DEEP: &str = "setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 0.01; done' & sleep 1000; :";

#[test]
fn no_process_survives_a_killed_launcher_monitor_or_rank() {
    for victim in ["launcher", "monitor", "rank"] {
        let job = Job::new(&["-n", "3", "sh", "-c", DEEP]);
        let mut child = job.start();
        job.until("sh -c trap", 3);
        job.until("sleep 1000", 3);
        let pid = match victim {
            "launcher" => child.id() as i32,
            "monitor" => job.until("mpjdev __monitor", 1)[0],
            _ => job.until("sh -c setsid", 3)[1],
        };
        signal(pid, Signal::KILL);
        let status = child.wait().expect("our child");
        if victim != "launcher" {
            assert_eq!(status.code(), Some(137), "{victim}");
        }
        job.until("", 0);
    }
}

/// Processes that the ranks have started may survive: neither launcher nor monitor can end them.
#[test]
fn ranks_end_when_launcher_and_monitor_are_killed_at_once() {
    let job = Job::new(&["-n", "3", "sleep", "1000"]);
    let mut child = job.start();
    job.until("sleep 1000", 3);
    let monitor = job.until("mpjdev __monitor", 1)[0];
    signal(monitor, Signal::STOP);
    signal(child.id() as i32, Signal::KILL);
    child.wait().expect("our child");
    // The system continues a stopped process whose group is orphaned, and sends it SIGHUP: it may have ended.
    let _ = kill_process(Pid::from_raw(monitor).expect("a process"), Signal::KILL);
    job.until("", 0);
}

#[test]
fn orphaned_processes_are_killed_with_the_job() {
    let job = Job::new(&["-n", "2", "sh", "-c", "setsid sleep 1000 & exit 0"]);
    let line = "mpjrun: killed 2 processes that ranks have left behind\n".to_owned();
    assert_eq!(job.run(), (0, String::new(), line));
}

/// As the filter in `program > >(filter)`. A busy machine may need more than one attempt.
#[test]
fn orphaned_process_can_end_by_itself_within_half_a_second() {
    let filter = "(while kill -0 $$ 2>/dev/null; do sleep 0.01; done; echo late) & exit 0";
    let run = || Job::new(&["-n", "2", "sh", "-c", filter]).run();
    let is_ended =
        |(_, _, err): &(i32, String, String)| err.contains("processes that ranks have left behind");
    let begun = Instant::now();
    let ended = std::iter::repeat_with(run).find(|job| !is_ended(job) || begun.elapsed() > DEADLINE);
    assert_eq!(ended, Some((0, "late\nlate\n".to_owned(), String::new())));
}

#[test]
fn ranks_are_bound_to_processors_of_their_own() {
    let script = "grep Cpus_allowed_list /proc/self/status";
    let (_, free, _) = Job::new(&["-n", "1", "sh", "-c", script]).run();
    let (status, bound, _) = Job::new(&["-n", "2", "--bind", "core", "sh", "-c", script]).run();
    let processors = lines(&bound);
    assert_eq!((status, processors.len()), (0, 2));
    assert!(processors.iter().all(|line| !line.contains(['-', ','])), "{bound}");
    if free.contains(['-', ',']) {
        assert_ne!(processors[0], processors[1]);
    }
}

#[test]
fn classes_and_jars_are_started_by_java() {
    let home = Folder::new("java").with_java();
    let jar = home.path("app.jar");
    let mut archive = zip::ZipWriter::new(fs::File::create(&jar).expect("a file"));
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("META-INF/MANIFEST.MF", options).expect("an entry");
    archive.write_all(b"Manifest-Version: 1.0\r\nMain-Class: app.Main\r\n").expect("its octets");
    archive.finish().expect("an archive");
    let run = |args: &[&str]| Job::new(args).with("JAVA_HOME", home.path(".")).with("CLASSPATH", "out").run();
    let java = "java --enable-native-access=ALL-UNNAMED";
    assert_eq!(run(&["-n", "1", "demo.Main", "-n", "7"]).1, format!("{java} -cp out demo.Main -n 7\n"));
    assert_eq!(run(&["-n", "1", "-Xmx1g", "-cp", "x", "Main"]).1, format!("{java} -Xmx1g -cp x Main\n"));
    assert_eq!(run(&["-n", "1", &jar, "a"]).1, format!("{java} -cp {jar} app.Main a\n"));
    let threads = "mpjdev.core.RankThreads 3 Main a";
    assert_eq!(run(&["-n", "3", "--threads", "Main", "a"]).1, format!("{java} -cp out {threads}\n"));
    let prefixed = "-Dmpjdev.args=mpje Main";
    let ranks = [0, 1].map(|rank| format!("{java} -cp out {prefixed} {rank} 2 multicore a\n"));
    assert_eq!(lines(&run(&["-n", "2", "--args", "mpje", "Main", "a"]).1), lines(&ranks.concat()));
    let (status, _, err) = run(&["-n", "2", "--args", "mpje", "./program"]);
    assert!(status == 2 && err.contains("--args is for a class or a jar"), "{err}");
    let (status, _, err) = run(&["-n", "3", "--threads", "./program"]);
    assert!(status == 2 && err.contains("not for the command ./program"), "{err}");
    let (status, _, err) = run(&["-n", "1", &home.path("no.jar")]);
    assert!(status == 2 && err.contains("no.jar: No such file"), "{err}");
}

#[test]
fn wrong_usage_exits_with_status_2_and_missing_program_with_127() {
    for args in
        [&[][..], &["-n", "0", "true"], &["-n", "x", "true"], &["-n", "2"], &["-n", "1", "no-such-thing"]]
    {
        let (status, out, err) = Job::new(args).run();
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(!err.is_empty(), "{args:?}");
    }
    let (status, _, err) = Job::new(&["-n", "1", "./no-such-thing"]).run();
    assert_eq!(status, 127);
    assert!(err.contains("cannot start ./no-such-thing"), "{err}");
}
