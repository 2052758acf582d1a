//! The suite with ranks as processes that the launcher of an MPI starts.
//!
//! Each process is this program and runs one rank of every test. A job consists of the first `n` processes,
//! which join once for each job. A rank that fails ends the launcher's job, and later tests do not run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mpjdev_bootstrap::job;
use mpjdev_buffer::SlabSource;
use mpjdev_buffer::layout::CAPACITY_MAX;
use mpjdev_engine::collective::Outcome;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, Mode, Uninterruptible, mpi};

use crate::test_message::TestMessage;
use crate::transport_fixtures::{Ability, TransportFixture};
use crate::{rank_harness, suite};

mod flood;
mod freed;
mod refused;

/// Ranks are processes over a C MPI.
static MPI: TransportFixture = TransportFixture {
    name: "MPI",
    config: Config::default,
    connect,
    lacks: &[(Ability::SharesMemory, "the sender's memory is another process's")],
};

/// Set for the processes that are ranks: a directory that they share.
const DIRECTORY: &str = "MPJDEV_TEST_DIRECTORY";

/// Set to run only tests whose names contain its value.
const PICK: &str = "MPJDEV_TEST_ONLY";

/// Number of tests that any number of ranks can run.
const LEAST: usize = 60;

/// Picks the test that takes many gigabytes of memory and is not part of the suite.
const LONGEST: &str = "the longest message";
/// Octets of the longest message. Each rank has it, and a copy of half of it.
const LONGEST_TAKES: u64 = 18 << 30;

/// Deadline of one launch.
const DEADLINE: Duration = Duration::from_secs(400);

const VARIABLES: &str = "its ranks share variables, and here they are processes";
const BUFFERS: &str = "what a standard send waits for is the library's to decide";
const ORDER: &str = "between sources a library may prefer a message that has arrived behind a probe";
const LIFE: &str = "an MPI does not report heartbeats";
const PART: &str = "where there are more processes its world is a communicator that can be freed";
const ABORTS: &str = "an MPI ends all processes of a job of which one fails";

/// Tests that do not apply to a C MPI.
const SKIPPED: [(&str, &str); 19] = [
    ("many_senders_and_a_slow_receiver_use_bounded_memory", VARIABLES),
    ("small_messages_of_a_large_buffer_use_bounded_memory", VARIABLES),
    ("a_cancel_that_races_with_the_arrival_loses_no_message", VARIABLES),
    ("messages_larger_than_the_credit_are_sent_when_no_other_is_in_flight", VARIABLES),
    ("no_rank_leaves_a_barrier_before_all_have_entered", VARIABLES),
    ("probe_returns_the_message_that_a_receive_would_get", ORDER),
    ("credit_comes_back_when_messages_are_received", BUFFERS),
    ("cancelled_send_returns_its_credit", BUFFERS),
    ("a_standard_send_within_the_credit_needs_no_receive", BUFFERS),
    ("standard_sends_past_the_credit_are_done_after_their_match", BUFFERS),
    ("unexpected_split_messages_use_bounded_memory", BUFFERS),
    ("finish_reports_unreceived_messages_after_the_peer_timeout", LIFE),
    ("finish_keeps_the_peer_timeout_for_a_peer_that_others_drive", LIFE),
    ("freeing_the_world_is_refused", PART),
    ("a_failure_ends_every_kind_of_blocked_operation", ABORTS),
    ("a_failure_ends_all_threads_of_a_rank", ABORTS),
    ("after_a_failure_every_operation_fails_with_the_rank_and_the_reason", ABORTS),
    ("first_failure_is_reported", ABORTS),
    ("a_failure_ends_a_receive_that_has_only_its_first_half", ABORTS),
];

/// The directory that this rank shares with the others. `None` in a process that is no rank.
pub(crate) fn directory() -> Option<&'static PathBuf> {
    static DIRECTORY_PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    DIRECTORY_PATH.get_or_init(|| std::env::var_os(DIRECTORY).map(PathBuf::from)).as_ref()
}

/// Number of processes.
fn processes() -> usize {
    let said = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().find_map(|name| std::env::var(name).ok());
    said.and_then(|size| size.parse().ok()).expect("a launcher of an MPI")
}

/// Whether a job of this size can run. Otherwise prints that the test is skipped.
pub(crate) fn has_room(ranks: usize) -> bool {
    let room = directory().is_none() || ranks <= processes();
    if !room {
        println!("SKIPPED a job of {ranks} ranks: there are {} processes", processes());
    }
    room
}

/// The number of the job: the same in all its ranks, which run the same jobs.
static JOBS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn job_number() -> u32 {
    JOBS.load(Relaxed)
}

/// This process's rank of a job, if it has one.
fn connect(ranks: usize, config: Config, pool: &Arc<HeapPool>) -> Vec<Comm> {
    JOBS.fetch_add(1, Relaxed);
    let world = job::join(config, pool, &mut Uninterruptible).expect("an MPI").expect("a launcher").world;
    if ranks == world.size() {
        return vec![world];
    }
    let color = if (world.rank() as usize) < ranks { 0 } else { -1 };
    match world.start_split(color, 0).finish(&mut Uninterruptible) {
        Ok(Outcome::Created(Some(comm))) => vec![comm],
        Ok(Outcome::Created(None)) => {
            world.finish(&mut Uninterruptible).expect("nothing was sent");
            Vec::new()
        }
        other => panic!("split gives {other:?}"),
    }
}

fn pick() -> String {
    std::env::var(PICK).unwrap_or_default()
}

/// One of the two ranks that send and receive the longest possible message, in both payloads.
fn exchange_the_longest() {
    let pool = HeapPool::new(16 << 30);
    let comm =
        job::join(Config::default(), &pool, &mut Uninterruptible).expect("an MPI").expect("a launcher").world;
    let source: Arc<dyn SlabSource> = pool;
    let test_message = TestMessage::split(7, CAPACITY_MAX, CAPACITY_MAX);
    if comm.rank() == 0 {
        comm.send(&test_message.write(&source), 1, 1, Mode::Standard, &mut Uninterruptible).expect("it goes");
    } else {
        let (_, message) =
            comm.recv(rank_harness::ANY, CAPACITY_MAX, None, &mut Uninterruptible).expect("it arrives");
        test_message.check(&message);
        println!("{} octets in one message ... ok", test_message.first_len());
    }
    comm.finish(&mut Uninterruptible).expect("nothing is left");
    mpi::end(None);
}

/// Runs all tests as one of the ranks.
fn be_a_rank() {
    let pick = pick();
    match pick.as_str() {
        LONGEST => return exchange_the_longest(),
        flood::PICKED => return flood::exchange(),
        refused::PICKED => return refused::exchange(),
        freed::CYCLES => return freed::make_and_free(),
        freed::ROUNDS => return freed::make_and_keep(),
        _ => {}
    }
    for (name, test) in suite::all().filter(|(name, _)| name.contains(&pick)) {
        if let Some((_, why)) = SKIPPED.iter().find(|(skipped, _)| *skipped == name) {
            println!("SKIPPED {name} in {}: {why}", MPI.name);
            continue;
        }
        let begun = Instant::now();
        println!("test {name} ...");
        test(&MPI);
        println!("test {name} ... ok, {:?}", begun.elapsed());
    }
    mpi::end(None);
}

/// A launcher, and the library that its processes use.
#[derive(Debug)]
struct Launcher {
    command: PathBuf,
    options: &'static [&'static str],
    variables: Vec<(&'static str, PathBuf)>,
}

/// More processes than processors, also as root.
const FREELY: &[&str] = &["--allow-run-as-root", "--oversubscribe"];
/// Folder of a library with the ABI of MPI-5 and its launcher, with the folders bin and lib.
const ABI: &str = "MPJDEV_TEST_MPI_ABI";

/// The launcher of Open MPI, which calls itself Open MPI or OpenRTE.
fn open_mpi() -> Result<Launcher, String> {
    named(&["mpirun.openmpi", "mpirun"], "(Open", FREELY)
}

/// The launcher of MPICH.
fn mpich() -> Result<Launcher, String> {
    named(&["mpirun.mpich", "mpirun"], "HYDRA", &[])
}

/// The launcher of a library with the ABI of MPI-5.
fn abi() -> Result<Launcher, String> {
    let folder = std::env::var_os(ABI).ok_or_else(|| format!("{ABI} does not say where there is one"))?;
    let (bin, lib) = (PathBuf::from(&folder).join("bin"), PathBuf::from(&folder).join("lib"));
    let library = lib.join("libmpi_abi.so.1");
    Ok(Launcher {
        command: bin.join("mpiexec.hydra"),
        options: &[],
        variables: vec![("MPJDEV_MPI_LIBRARY", library), ("LD_LIBRARY_PATH", lib)],
    })
}

/// The first of these commands whose output names this MPI.
fn named(names: &[&str], mark: &str, options: &'static [&'static str]) -> Result<Launcher, String> {
    let is_it = |name: &&&str| {
        let output = Command::new(name).arg("--version").stdin(Stdio::null()).output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(mark))
    };
    let found = names.iter().find(is_it);
    let none = || format!("there is no {}", names.join(" of it, and no "));
    Ok(Launcher { command: found.ok_or_else(none)?.into(), options, variables: Vec::new() })
}

/// Starts processes of this program by a launcher, if it is installed.
fn launch(test: &str, launcher: fn() -> Result<Launcher, String>, ranks: usize) {
    if directory().is_some() {
        return be_a_rank();
    }
    match launcher() {
        // Races are run more often, and not for longer: many processes share few processors.
        Ok(launcher) => {
            for _ in 0..rank_harness::amount(1, 2) {
                let out = launch_one(test, &launcher, ranks, &pick());
                let ran = out.matches("... ok, ").count();
                let least = if pick().is_empty() { LEAST } else { 1 };
                assert!(ran >= ranks * least, "only {ran} tests ran\n{out}");
                println!("{}: {ran} tests of {ranks} ranks", launcher.command.display());
            }
        }
        Err(why) => println!("SKIPPED {test}: {why}"),
    }
}

/// Octets of available memory, if the system reports them.
fn available() -> u64 {
    let said = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = said.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) << 10
}

/// The longest message, in soak alone.
fn launch_longest(test: &str, launcher: fn() -> Result<Launcher, String>) {
    if directory().is_some() {
        return be_a_rank();
    }
    match launcher() {
        Ok(_) if !rank_harness::soaks() => {
            println!("SKIPPED {test}: it is part of soak, since it takes much memory");
        }
        Ok(_) if available() < LONGEST_TAKES => {
            println!(
                "SKIPPED {test}: it takes {LONGEST_TAKES} octets of memory, and {} are there",
                available()
            );
        }
        Ok(launcher) => {
            let out = launch_one(test, &launcher, 2, LONGEST);
            assert!(out.contains("octets in one message ... ok"), "{out}");
        }
        Err(why) => println!("SKIPPED {test}: {why}"),
    }
}

/// Output of the ranks.
fn launch_one(test: &str, launcher: &Launcher, ranks: usize, pick: &str) -> String {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::env::current_exe().expect("this program");
    let directory = std::env::temp_dir().join(format!("mpjdev-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (out, err) = (directory.join("out"), directory.join("err"));
    let file = |path| std::fs::File::create(path).expect("a file");
    let mut child = Command::new(&launcher.command)
        .args(launcher.options)
        .args(["-n", &ranks.to_string()])
        .arg(own)
        .args(["--exact", &format!("under_mpirun::{test}"), "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, &directory)
        .env(PICK, pick)
        .env_remove(rank_harness::SOAK)
        .envs(launcher.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .expect("it starts");
    let end = Instant::now() + DEADLINE;
    let status = loop {
        match child.try_wait().expect("our child") {
            Some(status) => break Some(status),
            None if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (out, err) = (read(&out), read(&err));
    let _ = std::fs::remove_dir_all(&directory);
    let well = status.is_some_and(|status| status.success());
    let launcher = launcher.command.display();
    assert!(well, "{launcher} with {ranks} ranks ends with {status:?}\n{out}\n{err}");
    out
}

macro_rules! under {
    ($($test:ident: $launcher:ident, $ranks:literal;)*) => {
        $(
            #[test]
            fn $test() {
                launch(stringify!($test), $launcher, $ranks);
            }
        )*
    };
}

under! {
    two_ranks_under_open_mpi: open_mpi, 2;
    three_ranks_under_open_mpi: open_mpi, 3;
    four_ranks_under_open_mpi: open_mpi, 4;
    eight_ranks_under_open_mpi: open_mpi, 8;
    two_ranks_under_mpich: mpich, 2;
    three_ranks_under_mpich: mpich, 3;
    four_ranks_under_mpich: mpich, 4;
    eight_ranks_under_mpich: mpich, 8;
    two_ranks_over_the_abi_of_mpi_5: abi, 2;
    four_ranks_over_the_abi_of_mpi_5: abi, 4;
}

#[test]
fn the_longest_message_under_open_mpi() {
    launch_longest("the_longest_message_under_open_mpi", open_mpi);
}

#[test]
fn the_longest_message_under_mpich() {
    launch_longest("the_longest_message_under_mpich", mpich);
}
