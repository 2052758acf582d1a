//! Tests of `mpjrun --hosts` with real sshd on hosts with addresses of their own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use mpjdev_testing::cluster::Cluster;

use crate::{DEADLINE, Ended, ended, lines, own, skip};

/// A cluster; the test is skipped if the system refuses.
fn cluster(hosts: usize) -> Cluster {
    Cluster::new(hosts, &[]).unwrap_or_else(|why| skip(why))
}

/// The command of a launcher on the hub of a cluster.
fn launcher(cluster: &Cluster, hosts: &str) -> Command {
    let mut command = cluster.launcher(Path::new(env!("CARGO_BIN_EXE_mpjdev")), hosts);
    command.args(["--timeout", DEADLINE]);
    command
}

/// Runs a part on these hosts.
fn job(cluster: &Cluster, hosts: &str, options: &[&str], part: &str) -> Ended {
    let ended =
        ended(launcher(cluster, hosts).args(options).arg(own()).arg(part).output().expect("it starts"));
    cluster.await_end();
    ended
}

fn hosts_run_a_job_with_the_lines_of_all_ranks() {
    let cluster = cluster(4);
    for (hosts, tags) in [
        ("h0:2,h1:2", ["0@h0", "1@h0", "2@h1", "3@h1"]),
        ("h0:1,h1:3", ["0@h0", "1@h1", "2@h1", "3@h1"]),
        ("h0,h1,h2,h3", ["0@h0", "1@h1", "2@h2", "3@h3"]),
        ("six2:2,six3:2", ["0@six2", "1@six2", "2@six3", "3@six3"]),
    ] {
        let (status, out, err) = job(&cluster, hosts, &["--tag-output"], "ring");
        let expected: Vec<String> =
            (0..).zip(tags).map(|(rank, tag)| format!("[{tag}] {rank}: done")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!((status, lines(&out), err.as_str()), (0, expected, ""), "{hosts}");
    }
    let (status, out, err) = job(&cluster, "h0:2,h1:2", &["--transport", "udp"], "ring");
    assert_eq!((status, out.lines().count(), err.as_str()), (0, 4, ""));
}

fn ranks_announce_the_address_of_the_route_to_the_other_hosts() {
    let cluster = cluster(2);
    for (hosts, address) in [
        ("h0,h1", "h0 at 198.18.0.10, h1 at 198.18.0.11"),
        ("six0,six1", "six0 at fd00:6d70::10, six1 at fd00:6d70::11"),
    ] {
        let (status, _, err) = job(&cluster, hosts, &["--verbose"], "ring");
        let is_announced = err.contains(&format!("mpjrun: ranks listen on {address}\n"));
        assert!(status == 0 && is_announced && err.contains("docker0 (172.17.0.1)"), "{hosts}: {err}");
    }
    let (status, _, err) = job(&cluster, "h0,h1", &["--verbose", "--interface", "fd00:6d70::/64"], "ring");
    assert!(status == 0 && err.contains("h0 at fd00:6d70::10, h1 at fd00:6d70::11"), "{err}");
    let (status, _, err) = job(&cluster, "h0,h1", &["--interface", "ib0"], "ring");
    assert!(status == 1 && err.contains("  h1: no interface for ib0; there are "), "{err}");
}

/// No rank starts, and all faults are in one message.
fn hosts_that_cannot_take_part_are_all_named() {
    let cluster = cluster(3);
    cluster.refuse_key(1);
    let mut command = launcher(&cluster, "h0,h1,h2,gone,no-such-host");
    let (status, out, err) = ended(command.arg("app.Main").output().expect("it starts"));
    cluster.await_end();
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    assert!(err.starts_with("mpjrun: 5 of 5 hosts cannot take part; no rank was started:\n"), "{err}");
    for part in [
        "  h0: no java on the PATH of a remote shell, and JAVA_HOME is not set there: install a JDK",
        "  h1: ssh exited with status 255: root@198.18.0.11: Permission denied (publickey). (copy your key",
        "  gone: ssh exited with status 255: ssh: connect to host 198.18.0.99 port 22: No route to host (check network",
        "  no-such-host: ssh exited with status 255: ssh: Could not resolve hostname no-such-host: ",
    ] {
        assert!(err.contains(part), "no {part:?} in {err}");
    }
}

fn folder_that_a_host_lacks_is_named() {
    let cluster = cluster(2);
    // The hosts share the file system; this host has another one at the place of the folder.
    let folder = cluster.path("work");
    fs::create_dir(&folder).expect("our folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.current_dir(&folder).args([
        "run",
        "--hosts",
        "h0,h1",
        "--launcher",
        &hiding_shell(&cluster, &folder),
    ]);
    let (status, _, err) = ended(command.arg(own()).arg("ring").output().expect("it starts"));
    assert_eq!(status, 1, "{err}");
    assert!(
        err.contains(&format!("  h1: the working directory {folder}: No such file or directory")),
        "{err}"
    );
    assert!(!err.contains("  h0: "), "{err}");
}

/// A remote shell that hides a folder on the host h1.
fn hiding_shell(cluster: &Cluster, folder: &str) -> String {
    let shell = cluster.path("shell");
    let hide =
        format!("mount -t tmpfs none {}", std::path::Path::new(folder).parent().expect("a parent").display());
    let text = format!(
        "#!/bin/sh\nhost=$1; shift\n[ $host = h0 ] && exec sh -c \"$*\"\ncd /; exec unshare -m sh -c \"{hide} && $*\"\n"
    );
    fs::write(&shell, text).expect("our file");
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).expect("our file");
    shell
}

/// A job that is killed on drop.
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn new(mut command: Command, part: &str) -> Running {
        let mut child = command.arg(own()).arg(part).spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        Running { child, out }
    }

    /// Reads this many lines.
    fn await_lines(&mut self, count: usize) -> Vec<String> {
        let mut line = || {
            let mut line = String::new();
            self.out.read_line(&mut line).map(|_| line).expect("UTF-8")
        };
        (0..count).map(|_| line()).collect()
    }

    fn ended(mut self) -> Ended {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("UTF-8");
        self.child.stderr.take().expect("piped").read_to_string(&mut err).expect("UTF-8");
        (self.child.wait().expect("our child").code().unwrap_or(-1), out, err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("it runs");
}

/// Nothing reports that the link is cut.
fn cut_link_ends_the_job_and_names_the_host() {
    let cluster = cluster(2);
    let mut command = launcher(&cluster, "h0:2,h1:2");
    command.args(["--peer-timeout", "4"]);
    let mut job = Running::new(command, "needs-the-other-site");
    assert_eq!(job.await_lines(4), ["met\n"; 4]);
    let begun = Instant::now();
    cluster.cut(1);
    let (status, _, err) = job.ended();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}: {err}", begun.elapsed());
    assert_eq!(status, 1, "{err}");
    assert!(
        err.contains("mpjrun: host h1 with ranks 2 to 3 is lost: no frame and no heartbeat for 3s"),
        "{err}"
    );
    // The agent of the lost host ends its ranks without a word of the launcher.
    cluster.await_end();
}

fn killed_server_process_ends_the_job_and_names_the_host() {
    let cluster = cluster(2);
    let mut job = Running::new(launcher(&cluster, "h0:2,h1:2"), "needs-the-other-site");
    assert_eq!(job.await_lines(4), ["met\n"; 4]);
    let processes = cluster.processes(1);
    let server = processes.iter().find(|(_, line)| line.starts_with("sshd: ")).expect("a connection");
    kill(server.0);
    let (status, _, err) = job.ended();
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("mpjrun: host h1 with ranks 2 to 3 is lost: ssh exited with status 255"), "{err}");
    cluster.await_end();
}

fn nothing_is_left_when_launcher_agent_or_monitor_is_killed() {
    let cluster = cluster(2);
    type Victim = fn(&Cluster, &Running) -> i32;
    let victims: [(&str, Victim); 3] = [
        ("launcher", |_, job| job.child.id() as i32),
        ("agent", |cluster, _| process(cluster, " __agent ")),
        ("monitor", |cluster, _| process(cluster, " __monitor ")),
    ];
    for (victim, pid) in victims {
        let mut job = Running::new(launcher(&cluster, "h0:2,h1:2"), "needs-the-other-site");
        assert_eq!(job.await_lines(4), ["met\n"; 4], "{victim}");
        kill(pid(&cluster, &job));
        if victim != "launcher" {
            let (status, _, err) = job.ended();
            assert!(status != 0 && err.contains("h1"), "{victim}: {status}: {err}");
        }
        cluster.await_end();
    }
}

/// A process of host h1.
fn process(cluster: &Cluster, part: &str) -> i32 {
    let processes = cluster.processes(1);
    let found =
        processes.iter().find(|(_, line)| format!("{line} ").contains(part) && !line.starts_with("sh"));
    found.unwrap_or_else(|| panic!("no {part} in {processes:?}")).0
}

fn failed_rank_is_named_with_its_host() {
    let cluster = cluster(2);
    let (status, _, err) = job(&cluster, "h0:1,h1:2", &[], "killed");
    assert_eq!(status, 137, "{err}");
    assert!(
        err.contains("mpjrun: rank 1 on h1 (process ") && err.contains("; ending all other ranks"),
        "{err}"
    );
}

/// The hosts have no Java; a script stands for it and shows that the class path has arrived.
fn staged_class_path_arrives_and_is_removed() {
    let cluster = cluster(2);
    let folder = cluster.path("classes");
    fs::create_dir_all(format!("{folder}/app")).expect("our folder");
    fs::write(format!("{folder}/app/Main.class"), "class of both hosts\n").expect("our file");
    let jdk = cluster.path("jdk");
    fs::create_dir_all(format!("{jdk}/bin")).expect("our folder");
    // The class path is the argument behind -cp; its first entry is the staged folder.
    let java = "#!/bin/sh\nwhile [ \"$1\" != -cp ]; do shift; done\ncp=${2%%:*}\necho \"$cp\"\ncat \"$cp/app/Main.class\"\n";
    fs::write(format!("{jdk}/bin/java"), java).expect("our file");
    fs::set_permissions(format!("{jdk}/bin/java"), fs::Permissions::from_mode(0o755)).expect("our file");
    let mut command = launcher(&cluster, "localhost:1,h1:2");
    command.args(["--stage", "-x", &format!("JAVA_HOME={jdk}"), "-cp", &folder, "app.Main"]);
    let (status, out, err) = ended(command.output().expect("it starts"));
    cluster.await_end();
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.matches("class of both hosts\n").count(), 3, "{out}");
    let staged: Vec<&str> = out.lines().filter(|line| line.contains("/mpjdev-stage-")).collect();
    assert_eq!(staged.len(), 2, "this machine has the files: {out}");
    assert!(staged.iter().all(|path| !std::path::Path::new(path).exists()), "{staged:?} is left");
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("hosts_run_a_job_with_the_lines_of_all_ranks", hosts_run_a_job_with_the_lines_of_all_ranks),
    (
        "ranks_announce_the_address_of_the_route_to_the_other_hosts",
        ranks_announce_the_address_of_the_route_to_the_other_hosts,
    ),
    ("hosts_that_cannot_take_part_are_all_named", hosts_that_cannot_take_part_are_all_named),
    ("folder_that_a_host_lacks_is_named", folder_that_a_host_lacks_is_named),
    ("cut_link_ends_the_job_and_names_the_host", cut_link_ends_the_job_and_names_the_host),
    (
        "killed_server_process_ends_the_job_and_names_the_host",
        killed_server_process_ends_the_job_and_names_the_host,
    ),
    (
        "nothing_is_left_when_launcher_agent_or_monitor_is_killed",
        nothing_is_left_when_launcher_agent_or_monitor_is_killed,
    ),
    ("failed_rank_is_named_with_its_host", failed_rank_is_named_with_its_host),
    ("staged_class_path_arrives_and_is_removed", staged_class_path_arrives_and_is_removed),
];
