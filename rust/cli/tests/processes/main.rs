//! Tests of ranks as real processes. This program is also the program of the ranks. Without a launcher it
//! runs the tests, each of which starts it again under `mpjdev run`. With a launcher it plays the part that
//! its argument names.

mod connected;
mod datagrams;
mod hosts;
mod kills;
mod logging;
mod namespaces;
mod parts;
mod sites;
mod started;

use std::process::{Command, ExitCode, Output};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Exit status, standard output, standard error.
type Ended = (i32, String, String);

/// Maximum time of one job.
const DEADLINE: &str = "60";

/// Runs a part as a number of ranks.
fn job(ranks: u32, options: &[&str], part: &str) -> Ended {
    ended(launcher(ranks, options).arg(own()).arg(part).output().expect("it starts"))
}

/// As [`job`], with ranks that a shell starts by this script; the part is `"$0" "$1"` there.
fn job_by_shell(ranks: u32, options: &[&str], script: &str, part: &str) -> Ended {
    let mut command = launcher(ranks, options);
    ended(command.args(["sh", "-c", script]).arg(own()).arg(part).output().expect("it starts"))
}

fn launcher(ranks: u32, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.args(["run", "-n", &ranks.to_string(), "--timeout", DEADLINE]).args(options);
    command
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().expect("this program")
}

fn ended(output: Output) -> Ended {
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// The reason why a test cannot run here.
struct Skipped(String);

/// Ends a test that cannot run here. It counts as ignored.
fn skip(why: String) -> ! {
    std::panic::resume_unwind(Box::new(Skipped(why)))
}

/// Whether the long tests are asked for.
fn soaks() -> bool {
    std::env::var_os("MPJDEV_SOAK").is_some()
}

/// The part with messages of all sizes: those of 64 MiB only on request, or in the long tests.
fn ring(is_long: bool) -> &'static str {
    if is_long || soaks() { "long-ring" } else { "ring" }
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn messages_of_all_sizes_pass_a_ring() {
    for ranks in [1, 2, 3, 8] {
        let (status, out, err) = job(ranks, &[], ring(ranks == 2));
        assert_eq!((status, out.lines().count() as u32), (0, ranks), "{ranks} ranks: {err}{out}");
    }
}

fn all_pairs_exchange_messages_with_threads_and_wildcards() {
    let (status, out, err) = job(4, &[], "exchange");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 4]), "{err}");
}

fn computing_rank_does_not_delay_its_peer() {
    let (status, out, err) = job(2, &[], "computes");
    assert_eq!((status, lines(&out)), (0, vec!["computed", "sent"]), "{err}");
}

fn kill_is_reported_to_peers_with_its_signal() {
    let begun = Instant::now();
    let (status, out, err) = job(3, &["--keep-going"], "killed");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(
        (status, lines(&out)),
        (137, vec!["0: rank 1 has failed: its process was killed by signal 9", "2: done"]),
        "{err}"
    );
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("SIGKILL"), "{err}");
}

fn exit_without_finish_is_a_failure() {
    let (status, _, err) = job(2, &[], "leaves");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("rank 1 (process ") && err.contains("exited with status 0"), "{err}");
    assert!(err.contains("without Comm.finish"), "{err}");
}

fn rank_that_ends_before_it_joins_fails_the_start() {
    let (status, out, err) = job(2, &["--keep-going"], "absent");
    assert_eq!((status, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("rank 1 has ended without Comm.init"), "{err}");
}

fn second_process_of_a_rank_is_refused() {
    let (status, out, err) = job(2, &[], "twice");
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.matches("another process is this rank already").count(), 2, "{out}{err}");
}

/// A shell that ends with status 0 when the process that it has started sends it SIGUSR1.
const SHELL_ENDS: &str = "trap 'exit 0' USR1; \"$0\" \"$1\" & while :; do sleep 0.01; done";

fn rank_outlives_the_shell_that_started_it() {
    let (status, out, err) = job_by_shell(2, &[], SHELL_ENDS, "outlives");
    assert_eq!((status, lines(&out), err.as_str()), (0, vec!["0: done", "1: done"], ""));
    let (status, out, err) = job_by_shell(2, &["--keep-going"], SHELL_ENDS, "outlives-and-exits-7");
    assert_eq!((status, lines(&out)), (7, vec!["0: done", "1: done"]));
    assert!(err.contains("mpjrun: rank ") && err.contains("exited with status 7, "), "{err}");
    let (status, _, err) = job_by_shell(2, &["--keep-going"], SHELL_ENDS, "outlives-and-leaves");
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("without Comm.finish"), "{err}");
}

fn ranks_join_repeatedly_over_shared_memory() {
    let (status, out, err) = job(3, &[], "rounds");
    assert_eq!((status, lines(&out)), (0, vec!["done"; 3]), "{err}");
}

fn second_join_fails_when_a_rank_is_missing() {
    let (status, out, err) = job(3, &[], "stays-away");
    let text = "the ranks did not all join: rank 1 has ended without Comm.init";
    assert_eq!((status, lines(&out)), (0, vec![text; 2]), "{err}");
    let (status, out, err) = job(3, &["--keep-going"], "fails-meanwhile");
    let text = "the ranks did not all join: rank 1 has failed before all had called Comm.init";
    assert_eq!((status, lines(&out)), (137, vec![text; 2]), "{err}");
}

fn many_ranks_join_within_a_low_limit_on_open_files() {
    for (ranks, files) in [(64, 100), (128, 256)] {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -Sn {files}; exec \"$0\" run -n {ranks} --timeout {DEADLINE} \"$@\"");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_mpjdev")]).arg(own()).arg("gathers");
        let (status, out, err) = ended(shell.output().expect("it starts"));
        assert_eq!((status, err.as_str()), (0, ""), "{ranks} ranks, {files} files");
        // The ranks have the user's limit.
        assert_eq!(lines(&out), vec![files.to_string(); ranks], "{ranks} ranks, {files} files");
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 100; exec \"$0\" run -n 64 true", env!("CARGO_BIN_EXE_mpjdev")]);
    let (status, _, err) = ended(shell.output().expect("it starts"));
    let text = "mpjrun: 64 ranks need 424 open files here, and 100 are allowed (ulimit -Hn)\n";
    assert_eq!((status, err.as_str()), (1, text));
}

fn late_ranks_are_named_and_the_timeout_ends_the_job() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpjdev"));
    command.args(["run", "-n", "4", "--init-timeout", "0.2", "--timeout", "1"]).arg(own()).arg("late");
    let (status, out, err) = ended(command.output().expect("it starts"));
    assert_eq!((status, out.as_str()), (124, ""));
    let late = "mpjrun: ranks 1 and 3 did not call Comm.init within 0.2 s of the first that did; waiting on \
                (--init-timeout sets the time until this warning, --timeout ends the job)\n";
    let over = "mpjrun: the time of 1 s is over (--timeout): 4 of 4 ranks are running\n";
    assert_eq!(err, [late, over].concat());
}

fn stopped_rank_counts_as_alive() {
    let (status, out, err) = job(2, &["--keep-going"], "stopped");
    assert_eq!(
        (status, out.as_str()),
        (137, "rank 1 has failed: its process was killed by signal 9\n"),
        "{err}"
    );
    assert!(err.contains("mpjrun: rank 1 (process ") && err.contains("SIGKILL"), "{err}");
}

/// All tests.
fn tests() -> Vec<(&'static str, fn())> {
    TESTS
        .iter()
        .chain(connected::TESTS)
        .chain(logging::TESTS)
        .chain(datagrams::TESTS)
        .chain(sites::TESTS)
        .chain(namespaces::TESTS)
        .chain(hosts::TESTS)
        .copied()
        .collect()
}

const TESTS: [(&str, fn()); 15] = [
    (
        "ranks_behind_a_shell_end_when_launcher_and_monitor_are_killed",
        kills::ranks_behind_a_shell_end_when_launcher_and_monitor_are_killed,
    ),
    ("stopped_rank_counts_as_alive", stopped_rank_counts_as_alive),
    ("no_process_is_left_after_a_kill_at_any_time", kills::no_process_is_left_after_a_kill_at_any_time),
    ("late_ranks_are_named_and_the_timeout_ends_the_job", late_ranks_are_named_and_the_timeout_ends_the_job),
    ("many_ranks_join_within_a_low_limit_on_open_files", many_ranks_join_within_a_low_limit_on_open_files),
    ("rank_outlives_the_shell_that_started_it", rank_outlives_the_shell_that_started_it),
    ("ranks_join_repeatedly_over_shared_memory", ranks_join_repeatedly_over_shared_memory),
    ("second_join_fails_when_a_rank_is_missing", second_join_fails_when_a_rank_is_missing),
    ("messages_of_all_sizes_pass_a_ring", messages_of_all_sizes_pass_a_ring),
    (
        "all_pairs_exchange_messages_with_threads_and_wildcards",
        all_pairs_exchange_messages_with_threads_and_wildcards,
    ),
    ("computing_rank_does_not_delay_its_peer", computing_rank_does_not_delay_its_peer),
    ("kill_is_reported_to_peers_with_its_signal", kill_is_reported_to_peers_with_its_signal),
    ("exit_without_finish_is_a_failure", exit_without_finish_is_a_failure),
    ("rank_that_ends_before_it_joins_fails_the_start", rank_that_ends_before_it_joins_fails_the_start),
    ("second_process_of_a_rank_is_refused", second_process_of_a_rank_is_refused),
];

fn main() -> ExitCode {
    if std::env::var_os(mpjdev_bootstrap::control::CONTROL).is_some() {
        mpjdev_logging::start("library");
        return parts::play(&std::env::args().nth(1).unwrap_or_default());
    }
    let mut arguments = Arguments::from_args();
    // Each test has several processes, which are busy.
    arguments.test_threads.get_or_insert(1);
    let trials = tests().into_iter().map(|(name, test)| Trial::ignorable_test(name, move || run(name, test)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Runs a test, which may say that it cannot run here.
fn run(name: &str, test: fn()) -> Result<Completion, Failed> {
    match std::panic::catch_unwind(test).map_err(|panic| panic.downcast::<Skipped>()) {
        Ok(()) => Ok(Completion::Completed),
        Err(Ok(skipped)) => {
            println!("SKIPPED {name}: {}", skipped.0);
            Ok(Completion::ignored_with(skipped.0))
        }
        Err(Err(panic)) => std::panic::resume_unwind(panic),
    }
}
