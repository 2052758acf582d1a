//! Sends that the library refuses after their RTS: the receive fails instead of waiting.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use mpjdev_bootstrap::job;
use mpjdev_buffer::SlabSource;
use mpjdev_engine::pool::HeapPool;
use mpjdev_engine::{Comm, Config, DeviceError, Mode, Uninterruptible, mpi};

use super::{Launcher, be_a_rank, directory, launch_one, mpich, open_mpi};
use crate::rank_harness;
use crate::test_message::TestMessage;

/// Picks this test, which needs a special library and is not part of the suite.
pub(super) const PICKED: &str = "a refused send";

const ROOM: usize = 1 << 20;
/// Octets of the primary and of the secondary payload of refused messages.
const REFUSED: [usize; 2] = [50_000, 60_000];

/// Refuses to send messages of these lengths and passes all other calls to the library it is linked with.
const REFUSING: &str = r"
int PMPI_Isend(const void *, int, void *, int, int, void *, void *);
int MPI_Isend(const void *memory, int count, void *type, int dest, int tag, void *comm, void *request) {
    return count == FIRST || count == SECOND ? 15 : PMPI_Isend(memory, count, type, dest, tag, comm, request);
}
";

/// A message whose first half is refused, one whose second half is, and one that is sent.
fn test_messages() -> [TestMessage; 3] {
    let [primary, secondary] = REFUSED;
    [
        TestMessage::plain(1, primary),
        TestMessage::split(2, 20_000, secondary),
        TestMessage::split(3, 20_000, 30_000),
    ]
}

/// One of the two ranks that send and receive the messages.
pub(super) fn exchange() {
    let pool = HeapPool::new(1 << 30);
    let comm =
        job::join(Config::default(), &pool, &mut Uninterruptible).expect("an MPI").expect("a launcher").world;
    let source: Arc<dyn SlabSource> = pool;
    if comm.rank() == 0 {
        send(&comm, &source)
    } else {
        receive(&comm)
    }
    comm.finish(&mut Uninterruptible).expect("nothing is left");
    println!("refused ... ok");
    mpi::end(None);
}

fn send(comm: &Comm, source: &Arc<dyn SlabSource>) {
    let sent = test_messages().map(|test_message| {
        comm.send(&test_message.write(source), 1, 1, Mode::Standard, &mut Uninterruptible)
    });
    assert!(matches!(sent, [Err(DeviceError::Library(_)), Err(DeviceError::Library(_)), Ok(())]), "{sent:?}");
}

fn receive(comm: &Comm) {
    let receive = || comm.recv(rank_harness::ANY, ROOM, None, &mut Uninterruptible);
    for _ in 0..2 {
        let received = receive();
        assert!(matches!(received, Err(DeviceError::Lengths { .. })), "{received:?}");
    }
    let (_, message) = receive().expect("it arrives");
    test_messages()[2].check(&message);
}

/// Builds the refusing library, to be loaded before the launcher's own.
fn refusing(test: &str, library: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mpjdev-{}-{test}-library", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    let (from, to) = (folder.join("refusing.c"), folder.join("librefusing.so"));
    std::fs::write(&from, REFUSING).expect("a file");
    let first = test_messages()[0].first_len();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", &format!("-DFIRST={first}"), &format!("-DSECOND={}", REFUSED[1])]);
    cc.arg("-o").arg(&to).arg(&from).args(["-Wl,--no-as-needed", &format!("-l:{library}")]);
    assert!(cc.status().expect("the compiler that rustc links by").success());
    to
}

fn launch(test: &str, launcher: fn() -> Result<Launcher, String>, library: &str) {
    if directory().is_some() {
        return be_a_rank();
    }
    let mut launcher = match launcher() {
        Ok(launcher) => launcher,
        Err(why) => return println!("SKIPPED {test}: {why}"),
    };
    let built = refusing(test, library);
    launcher.variables.push(("MPJDEV_MPI_LIBRARY", built.clone()));
    let out = launch_one(test, &launcher, 2, PICKED);
    let _ = std::fs::remove_dir_all(built.parent().unwrap_or(&built));
    assert_eq!(out.matches("refused ... ok").count(), 2, "{out}");
}

#[test]
fn a_send_that_open_mpi_refuses_ends_its_receive() {
    launch("refused::a_send_that_open_mpi_refuses_ends_its_receive", open_mpi, "libmpi.so.40");
}

#[test]
fn a_send_that_mpich_refuses_ends_its_receive() {
    launch("refused::a_send_that_mpich_refuses_ends_its_receive", mpich, "libmpich.so.12");
}
