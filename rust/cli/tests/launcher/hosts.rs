//! Tests of `mpjrun --hosts` whose hosts are all this machine: a shell script stands for ssh. Tests with sshd
//! are among those of real ranks.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::job::{DEADLINE, Job};
use crate::{Folder, ends_when_its_output_is_closed, lines, signalled};

/// A remote shell that runs the command for another host here.
const SHELL: &str = "host=$1; shift; exec sh -c \"$*\"";

/// A folder with an executable script.
fn with_script(name: &str, script: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let path = folder.path("shell");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    (folder, path)
}

fn job(hosts: &str, shell: &str, words: &[&str]) -> Job {
    Job::new(&[&["--hosts", hosts, "--launcher", shell], words].concat())
}

#[test]
fn ranks_of_all_hosts_have_world_numbers_and_tags() {
    let (_folder, shell) = with_script("hosts-tags", SHELL);
    let echo =
        "echo $MPJDEV_WORLD_RANK of $MPJDEV_WORLD_SIZE is $MPJDEV_RANK of $MPJDEV_SIZE; echo error >&2";
    let (status, out, err) = job("a:2,b:1", &shell, &["--tag-output", "sh", "-c", echo]).run();
    let expected = vec!["[0@a] 0 of 3 is 0 of 2", "[1@a] 1 of 3 is 1 of 2", "[2@b] 2 of 3 is 0 of 1"];
    assert_eq!((status, lines(&out)), (0, expected));
    assert_eq!(lines(&err), ["[0@a] error", "[1@a] error", "[2@b] error"]);
    let (status, out, _) =
        job("a,b", &shell, &["-n", "5", "--map-by", "node", "sh", "-c", "echo $MPJDEV_SIZE"]).run();
    assert_eq!((status, lines(&out)), (0, vec!["2", "2", "3", "3", "3"]));
}

#[test]
fn hostfile_and_batch_system_name_the_hosts() {
    let (folder, shell) = with_script("hosts-file", SHELL);
    let file = folder.path("hosts");
    fs::write(&file, "# two hosts\na slots=2\nb\n").expect("a file");
    let echo = ["--tag-output", "sh", "-c", "echo here"];
    let (status, out, _) =
        Job::new(&[&["--hostfile", &file, "--launcher", &shell], &echo[..]].concat()).run();
    assert_eq!((status, lines(&out)), (0, vec!["[0@a] here", "[1@a] here", "[2@b] here"]));
    fs::write(&file, "a\nb slots=x\n").expect("a file");
    let (status, _, err) = Job::new(&["--hostfile", &file, "true"]).run();
    assert_eq!(
        (status, err),
        (2, format!("mpjrun: {file}: line 2: b: \"x\" is no number of slots, which is 1 to 4096\n"))
    );

    // Not a Slurm: only its variables, and a script in the place of srun.
    let srun = "while [ \"$1\" != sh ]; do case $1 in --nodelist=*) echo ${1#*=} >> $0.hosts;; esac; shift; done; exec \"$@\"";
    let (slurm, path) = with_script("hosts-srun", srun);
    fs::rename(&path, slurm.path("srun")).expect("it is ours");
    let search = format!("{}:{}", slurm.path("."), std::env::var("PATH").expect("a PATH"));
    let slurm_job = |words: &[&str]| {
        Job::new(words)
            .with("PATH", search.clone())
            .with("SLURM_JOB_NODELIST", "n[08-09,12]")
            .with("SLURM_TASKS_PER_NODE", "2,1(x2)")
    };
    let (status, out, err) = slurm_job(&echo).run();
    assert_eq!(
        (status, lines(&out)),
        (0, vec!["[0@n08] here", "[1@n08] here", "[2@n09] here", "[3@n12] here"]),
        "{err}"
    );
    assert_eq!(lines(&fs::read_to_string(slurm.path("srun.hosts")).expect("hosts")), ["n08", "n09", "n12"]);
    let (status, _, err) = slurm_job(&["-n", "5", "true"]).run();
    assert!(status == 2 && err.contains("-n 5 needs 5 slots, and the hosts have 4"), "{err}");
}

#[test]
fn first_failed_rank_is_named_with_its_host() {
    let (_folder, shell) = with_script("hosts-fails", SHELL);
    let script = "[ $MPJDEV_WORLD_RANK = 2 ] && exit 7; exec sleep 1000";
    let (status, out, err) = job("a:2,b:1", &shell, &["sh", "-c", script]).run();
    assert_eq!((status, out.as_str()), (7, ""), "{err}");
    assert!(err.starts_with("mpjrun: rank 2 on b (process "), "{err}");
    assert!(err.contains("exited with status 7, ") && err.ends_with("; ending all other ranks\n"), "{err}");
    let (status, _, err) = job("a:1,b:1", &shell, &["./no-such-thing"]).run();
    assert!(
        status == 127 && err.contains("mpjrun: host b: cannot start ./no-such-thing as rank 1: "),
        "{err}"
    );
    let script = "[ $MPJDEV_WORLD_RANK = 1 ] && exit 7; exit 0";
    let (status, _, err) = job("a,b", &shell, &["--keep-going", "sh", "-c", script]).run();
    assert!(status == 7 && err.contains("mpjrun: rank 1 on b (process "), "{err}");
}

#[test]
fn input_goes_to_rank_0_and_output_comes_whole() {
    let (_folder, shell) = with_script("hosts-input", SHELL);
    let input = vec![b'x'; 3 << 20];
    let count = ["sh", "-c", "wc -c | sed \"s/^/$MPJDEV_WORLD_RANK: /\""];
    let (status, out, _) = job("a:2,b:1", &shell, &count).run_with(&input);
    assert_eq!((status, lines(&out)), (0, vec!["0: 3145728", "1: 0", "2: 0"]));
    // Unread input does not delay the end of the job.
    assert_eq!(job("a,b", &shell, &["true"]).run_with(&input).0, 0);
    let much = "i=0; while [ $i -lt 20000 ]; do echo rank $MPJDEV_WORLD_RANK line $i end; i=$((i+1)); done; printf last";
    let (status, out, _) = job("a:1,b:2", &shell, &["sh", "-c", much]).run();
    let mut next = [0; 3];
    for line in out.lines().filter(|line| *line != "last") {
        let words: Vec<&str> = line.split(' ').collect();
        let ["rank", rank, "line", number, "end"] = words[..] else { panic!("mixed: {line}") };
        let expected = &mut next[rank.parse::<usize>().expect(line)];
        assert_eq!(number.parse(), Ok(*expected), "{line}");
        *expected += 1;
    }
    assert_eq!((status, next, out.matches("last\n").count()), (0, [20000; 3], 3));
}

#[test]
fn closed_output_ends_the_writing_ranks_of_all_hosts() {
    let (_folder, shell) = with_script("hosts-closed", SHELL);
    ends_when_its_output_is_closed(&job("a,b", &shell, &["yes"]));
}

#[test]
fn signals_and_timeout_end_the_ranks_of_all_hosts() {
    let (_folder, shell) = with_script("hosts-signals", SHELL);
    let handles_term = "trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let ready = job("a:2,b:1", &shell, &["--grace", "60", "sh", "-c", handles_term]);
    let (status, out, _) = signalled(&ready, ready.start(), "ready", 3, &[Signal::TERM]);
    assert_eq!((status, out.matches("ended").count()), (0, 3), "{out}");

    // The second signal does not wait for the grace.
    let ignores = "trap '' TERM INT; echo ready; while :; do sleep 0.01; done";
    let ready = job("a,b", &shell, &["--grace", "1000", "sh", "-c", ignores]);
    let begun = Instant::now();
    signalled(&ready, ready.start(), "ready", 2, &[Signal::TERM, Signal::INT]);
    assert!(begun.elapsed() < DEADLINE);

    let (status, _, err) = job("a,b", &shell, &["--timeout", "0.5", "sleep", "1000"]).run();
    assert_eq!(
        (status, err.as_str()),
        (124, "mpjrun: the time of 0.5 s is over (--timeout): the ranks of 2 of 2 hosts are running\n")
    );
}

/// The shell of one host waits longer than agents wait for a frame.
#[test]
fn host_that_is_ready_waits_for_one_that_is_slow() {
    let (_folder, shell) = with_script("hosts-slow", &format!("[ $1 = b ] && sleep 2; {SHELL}"));
    let words = ["--peer-timeout", "1", "sh", "-c", "echo ran"];
    assert_eq!(job("a,b", &shell, &words).run(), (0, "ran\nran\n".to_owned(), String::new()));
}

#[test]
fn signal_before_the_start_ends_the_job_with_its_status() {
    let (folder, shell) = with_script("hosts-early", "touch $0.$1; exec sleep 1000");
    let job = job("a,b", &shell, &["true"]);
    let mut child = job.start();
    let begun = Instant::now();
    while !Path::new(&folder.path("shell.b")).exists() {
        assert!(begun.elapsed() < DEADLINE);
        std::thread::sleep(Duration::from_millis(1));
    }
    crate::job::signal(child.id() as i32, Signal::TERM);
    assert_eq!(child.wait().expect("our child").code(), Some(128 + 15));
    job.until("", 0);
}

/// A host that does not answer delays the end of a job by half a second.
#[test]
fn second_signal_ends_a_job_whose_agent_is_stopped() {
    let (_folder, shell) = with_script("hosts-stopped", SHELL);
    let job = job("a,b", &shell, &["--grace", "1000", "sleep", "1000"]);
    let mut child = job.start();
    job.until("sleep 1000", 2);
    let agents = job.until(concat!(env!("CARGO_BIN_EXE_mpjdev"), " __agent"), 2);
    crate::job::signal(agents[0], Signal::STOP);
    job.until_state(agents[0], 'T');
    for signal in [Signal::TERM, Signal::INT] {
        crate::job::signal(child.id() as i32, signal);
    }
    // The rank of the other host may have ended by the first signal, which is either of them.
    let status = child.wait().expect("our child").code();
    assert!(status.is_some_and(|status| [130, 137, 143].contains(&status)), "{status:?}");
    job.until("", 0);
}

#[test]
fn no_process_survives_a_killed_launcher_or_agent() {
    let (_folder, shell) = with_script("hosts-kills", SHELL);
    for victim in ["launcher", "monitor", "agent"] {
        let job = job("a:2,b:1", &shell, &["sleep", "1000"]);
        let mut child = job.start();
        job.until("sleep 1000", 3);
        let pid = match victim {
            "launcher" => child.id() as i32,
            // That of the hosts, and not those of their ranks.
            "monitor" => job.until("mpjdev __monitor run --hosts", 1)[0],
            _ => job.until(concat!(env!("CARGO_BIN_EXE_mpjdev"), " __agent"), 2)[0],
        };
        crate::job::signal(pid, Signal::KILL);
        let status = child.wait().expect("our child");
        assert!(
            victim == "launcher" || status.code().is_some_and(|status| status != 0),
            "{victim}: {status}"
        );
        job.until("", 0);
    }
}

/// The shells log when they begin and when they start the agent.
#[test]
fn many_hosts_start_in_parallel_and_bounded() {
    let log = "echo begin >> $0.log; ";
    let wait = "until [ -e $0.go ] || [ $(grep -c begin $0.log) -ge 4 ]; do sleep 0.01; done; touch $0.go; ";
    let (folder, shell) = with_script("hosts-many", &format!("{log}{wait}echo end >> $0.log; {SHELL}"));
    let hosts: Vec<String> = (0..64).map(|host| format!("h{host}")).collect();
    let (status, out, err) =
        job(&hosts.join(","), &shell, &["--at-once", "4", "sh", "-c", "echo $MPJDEV_WORLD_RANK"]).run();
    let mut ranks: Vec<u32> = out.lines().map(|line| line.parse().expect(line)).collect();
    ranks.sort_unstable();
    assert_eq!((status, ranks, err.as_str()), (0, (0..64).collect(), ""));
    // A host that has written "end" may count as starting for a moment more, never less.
    let log = fs::read_to_string(folder.path("shell.log")).expect("a log");
    let mut starting = 0_i32;
    let most = log.lines().map(|line| {
        starting += if line == "begin" { 1 } else { -1 };
        starting
    });
    assert_eq!(most.max(), Some(4), "in parallel, and not more than 4");
}

#[test]
fn few_open_files_suffice_for_many_hosts_or_are_asked_for() {
    let (_folder, shell) = with_script("hosts-files", SHELL);
    let hosts: Vec<String> = (0..64).map(|host| format!("h{host}")).collect();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 64; exec \"$0\" run --hosts \"$1\" --launcher \"$2\" sh -c 'ulimit -n'"]);
    command.args([env!("CARGO_BIN_EXE_mpjdev"), &hosts.join(","), &shell]).stdin(Stdio::null());
    let output = command.output().expect("it starts");
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(
        (output.status.code(), out),
        (Some(0), "64\n".repeat(64)),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn dry_run_prints_the_commands_and_starts_nothing() {
    let (status, out, err) =
        Job::new(&["--hosts", "a:2,user@b:1", "--dry-run", "-cp", "no such", "Main", "x"]).run();
    assert_eq!((status, err.as_str()), (0, ""));
    let begins: Vec<&str> = out.lines().map(|line| line.split(" 'exec").next().unwrap_or_default()).collect();
    let ssh = "  ssh -T -x -a -o BatchMode=yes -o EscapeChar=none";
    let expected = [
        "a: ranks 0 to 1",
        &format!("{ssh} a"),
        "user@b: rank 2",
        &format!("{ssh} user@b"),
        "program: -cp 'no such' Main x",
    ];
    assert_eq!(begins, expected);
}

/// Each remote shell does something else.
#[test]
fn unusable_agents_are_named_with_what_they_said() {
    let own = env!("CARGO_PKG_VERSION");
    for (script, text) in [
        ("echo who are you >&2; exit 5", "shell exited with status 5: who are you\n"),
        ("echo Welcome; exit 5", "shell exited with status 5: Welcome\n"),
        ("exec false", "shell exited with status 1"),
        ("exec cat /dev/zero", "a line of more than 65536 octets"),
        ("echo 'mpjdev-agent: version 0.0.9'; cat", "it has version 0.0.9 of mpjdev, and this launcher is"),
        (
            "echo 'mpjdev-agent: missing /opt/mpjdev'; cat",
            "it has no program /opt/mpjdev: install mpjdev at the same",
        ),
        ("echo 'mpjdev-agent: stage sparc'; cat", "its architecture is sparc, and this one is"),
        (
            "echo 'mpjdev-agent: version OWN'; cat /dev/zero",
            "breaks the protocol: a frame has the unknown kind 0",
        ),
        ("exec sleep 1000", "not ready within 1 s (--connect-timeout)"),
    ] {
        let (_folder, shell) = with_script("hosts-unusable", &script.replace("OWN", own));
        let (status, out, err) = job("a", &shell, &["--connect-timeout", "1", "true"]).run();
        assert_eq!((status, out.as_str()), (1, ""), "{script}: {err}");
        let begin = "mpjrun: the host cannot take part; no rank was started:\n  a: ";
        assert!(err.starts_with(begin) && err.contains(text), "{script}: {err}");
    }
    let (status, _, err) = job("a", "/no/such/shell", &["true"]).run();
    assert!(status == 1 && err.contains("cannot start /no/such/shell: No such file"), "{err}");
}

#[test]
fn login_shell_may_print_a_welcome() {
    let (_folder, shell) =
        with_script("hosts-welcome", &format!("echo Welcome to $1; echo 'news: none'; {SHELL}"));
    assert_eq!(
        job("a,b", &shell, &["sh", "-c", "echo ran"]).run(),
        (0, "ran\nran\n".to_owned(), String::new())
    );
}

#[test]
fn options_of_hosts_are_checked() {
    for (args, text) in [
        (&["--hosts", "a:x", "true"][..], "--hosts: a: \"x\" is no number of slots"),
        (&["--hosts", "", "true"], "--hosts: \"\" is no host"),
        (&["--hosts=-oProxyCommand=x", "true"], "is no host"),
        (&["--hostfile", "/no/such/file", "true"], "--hostfile: /no/such/file: No such file"),
        (&["-n", "2", "--stage", "true"], "are for jobs with --hosts or --hostfile"),
        (
            &["--hosts", "a", "--stage", "true"],
            "--stage copies the class path of a class or a jar; true is a command",
        ),
        (&["--hosts", "a", "--launcher", " ", "true"], "--launcher: the name of a program is needed"),
        (&["--hosts", "a", "--dialect", "draft", "true"], "--dialect is for sites of a job"),
        (&["--hosts", "a", "--checksum", "true"], "are for ranks that send datagrams"),
        (&["true"], "-n N is needed"),
    ] {
        let (status, out, err) = Job::new(args).run();
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(text), "{args:?}: {err}");
    }
    for args in
        [&["--hosts", "a", "--sites", "2", "-n", "1", "true"][..], &["--hosts", "a", "--threads", "Main"]]
    {
        assert_eq!(Job::new(args).run().0, 2, "{args:?}");
    }
}

/// An agent whose launcher sends octets that are no frames ends, and starts nothing.
#[test]
fn agent_ends_when_its_launcher_breaks_the_protocol() {
    let agent = |octets: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
        command.arg("__agent").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // The agent may have ended before it has read everything.
        let _ = child.stdin.as_mut().expect("piped").write_all(octets);
        let begun = Instant::now();
        while child.try_wait().expect("our child").is_none() {
            assert!(begun.elapsed() < DEADLINE, "{octets:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        let output = child.wait_with_output().expect("it has ended");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.starts_with("mpjdev-agent: version "), "{text}");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    for (octets, text) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "the unknown kind 71"),
        (&[10, 0xff, 0xff, 0xff, 0xff], "octets, at most"),
        (&[1, 0, 0, 0, 2, b'{', b'}'], "is malformed"),
        (&[9, 0, 0, 0, 1, 0], "an unexpected frame"),
    ] {
        let (status, err) = agent(octets);
        assert!(status == Some(1) && err.contains(text), "{octets:?}: {status:?} {err}");
    }
}
