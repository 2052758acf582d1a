//! The C MPI of this process: initialised once, used in sessions from init to finish, finalised once.
//!
//! The thread that has initialised MPI should finalise it (MPI 4.1, 11.2.2), and both calls block. A thread
//! of this crate does both, and sleeps in between.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mpjdev_buffer::SlabSource;
use mpjdev_sys::mpi::{self, Candidates, Mpi, MpiError, OpenError, ThreadLevel};
use mpjdev_sys::sync::{LockRank, Mutex};
use mpjdev_transport::config::Config;
use mpjdev_transport::wait::WaitControl;
use tracing::{info, warn};

use super::group::Group;
use super::retirement::empty;
use super::{Rank, kept_comms, processors, wait};

/// The variable that selects the transport.
const TRANSPORT: &str = "MPJDEV_TRANSPORT";
/// The time limit of `MPI_Finalize` once all processes have called it.
const FINALIZE: Duration = Duration::from_secs(10);
/// The time for the launcher to forward the processes' output before the job is aborted.
const FORWARD: Duration = Duration::from_millis(300);
/// The interval at which a thread that waits for the library's thread checks for interrupts.
const SLICE: Duration = Duration::from_millis(20);

/// The reason why this process cannot be a rank over a C MPI.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unfit {
    /// No library was found.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The library returns an error.
    #[error("{library}: {error}")]
    Library {
        /// Name and version of the library.
        library: String,
        /// The error.
        error: MpiError,
    },
    /// The library belongs to another launcher.
    #[error(
        "{library} sees a job of {size} where {launcher} has started {started}: it belongs to another \
         launcher; start the ranks by its own one, or let MPJDEV_MPI_LIBRARY name the library of this one, \
         by its path or name"
    )]
    OtherLauncher {
        /// Name and version of the library.
        library: String,
        /// The launcher of the process.
        launcher: String,
        /// Processes that the library reports.
        size: u32,
        /// Processes that the launcher has started.
        started: u32,
    },
    /// The library restricts calls from several threads.
    #[error(
        "{library} grants {granted} only, and the threads of a rank need MPI_THREAD_MULTIPLE: enable that as \
         the library's documentation says (Cray MPICH: MPICH_MAX_THREAD_SAFETY=multiple), or let \
         MPJDEV_MPI_LIBRARY name one of the same launcher that was built with it; `mpjdev mpi-info` under \
         the launcher says what is granted"
    )]
    Threads {
        /// Name and version of the library.
        library: String,
        /// The thread level that it grants.
        granted: ThreadLevel,
    },
    /// The library was finalised.
    #[error("{library} was finalised before: MPI can be used once in a process")]
    Over {
        /// Name and version of the library.
        library: String,
    },
    /// The system has no thread left.
    #[error("the C MPI gets no thread: {0}")]
    Thread(String),
    /// The waiting thread was interrupted; the call can be repeated.
    #[error("interrupted while waiting for the other processes")]
    Interrupted,
}

/// Error: the user's variable names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {TRANSPORT} is {value:?}, which no launcher sets")]
pub struct UnknownTransport {
    /// Value of the variable.
    pub value: String,
}

/// Name and version of a library, for texts.
fn named(mpi: &Mpi) -> String {
    format!("{} ({})", mpi.path(), mpi.version())
}

/// Checks that ranks can use a library that has been initialised.
///
/// # Errors
/// It belongs to another launcher, or restricts calls from several threads.
pub fn check(mpi: &Mpi, candidates: &Candidates, granted: ThreadLevel, size: u32) -> Result<(), Unfit> {
    let library = named(mpi);
    if let (Some(launcher), Some(started)) = (candidates.launcher, candidates.size)
        && started != size
    {
        return Err(Unfit::OtherLauncher { library, launcher: launcher.to_string(), size, started });
    }
    match granted {
        ThreadLevel::Multiple => Ok(()),
        granted => Err(Unfit::Threads { library, granted }),
    }
}

/// Whether this process has used an MPI, which it must [`end`] before it exits.
#[must_use]
pub fn is_used() -> bool {
    RUNTIME.lock().is_some()
}

/// Whether the environment requests a rank over a C MPI: the user's variable, or that of a launcher of MPI.
///
/// # Errors
/// The user's variable names no transport.
pub fn is_asked_for() -> Result<bool, UnknownTransport> {
    let chosen = std::env::var(TRANSPORT).unwrap_or_default();
    match chosen.as_str() {
        "mpi" => Ok(true),
        "" | "auto" => Ok(Candidates::from_environment().launcher.is_some()),
        "local" | "shm" | "tcp" | "udp" => Ok(false),
        _ => Err(UnknownTransport { value: chosen }),
    }
}

/// One session from init to finish, with communicators of all processes that no other session uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) tag_max: i32,
    /// The world's, for the program's messages and for collective operations.
    world: [mpi::Comm; 2],
    /// First and second physical messages of rendezvous messages.
    pub(super) firsts: mpi::Comm,
    pub(super) seconds: mpi::Comm,
    /// Notices to all ranks.
    pub(super) all: mpi::Comm,
    /// The parent of new communicators. Open MPI sends messages of its own on it during a creation, with the
    /// given tag: no code may probe it for any tag.
    pub(super) origin: mpi::Comm,
}

enum Command {
    Open(mpsc::Sender<Result<Session, Unfit>>),
    Close(mpsc::Sender<Closing>),
}

enum Closing {
    /// All processes have reached their end.
    AllHere,
    Over(Result<(), MpiError>),
}

/// The state of the library in this process.
#[derive(Debug)]
struct Runtime {
    mpi: &'static Mpi,
    /// Ranks on this machine, if the launcher states their number.
    here: Option<u32>,
    commands: mpsc::Sender<Command>,
    /// The session that is being opened.
    opening: Option<mpsc::Receiver<Result<Session, Unfit>>>,
    /// The session that has not finished, and its rank.
    open: Option<(u64, u32)>,
    is_closed: bool,
}

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(LockRank::Job, None);

/// Makes this process a rank of the job that its MPI runs, and returns the group of all ranks. `leave`
/// notifies the other members of a group that this rank takes no part in it. Blocks until all processes join.
///
/// # Errors
/// No usable MPI; interrupted: the call can be repeated then.
pub(crate) fn join(
    config: Config,
    source: Arc<dyn SlabSource>,
    leave: fn(Arc<Group>),
    wait_control: &mut dyn WaitControl,
) -> Result<Arc<Group>, Unfit> {
    let mut runtime = RUNTIME.lock();
    let runtime = match &mut *runtime {
        Some(runtime) => runtime,
        empty => empty.insert(Runtime::start()?),
    };
    let session = runtime.open_session(wait_control)?;
    runtime.open = Some((session.number, session.rank));
    let here = runtime.here.unwrap_or(session.size) as usize;
    let (rank, ranks) = (session.rank, session.size);
    info!(target: "mpjdev::mpi", rank, ranks, here, library = runtime.mpi.path(), "rank has joined");
    let config = Config { spins: wait::SPINS, ..config };
    let config = config.for_ranks_on(here, processors::shared()).bounded();
    // A poll of the library takes longer than one of ours: a wait of that time would last much longer.
    let config = Config { oversubscribed_spin: Duration::ZERO, ..config };
    let rank = Arc::new(Rank::new(runtime.mpi, session, config, source, leave));
    let members = (0..session.size).collect();
    Ok(Group::world(rank, members, session.world))
}

impl Runtime {
    fn start() -> Result<Runtime, Unfit> {
        let candidates = Candidates::from_environment();
        let mpi: &'static Mpi = Box::leak(Box::new(Mpi::open(&candidates)?));
        let here = candidates.here;
        let (commands, received) = mpsc::channel();
        let thread = std::thread::Builder::new().name("mpjdev-mpi".into());
        let spawned = thread
            .spawn(move || Main { mpi, candidates, begun: None, session_comms: Vec::new() }.run(&received));
        spawned.map_err(|error| Unfit::Thread(error.to_string()))?;
        Ok(Runtime { mpi, here, commands, opening: None, open: None, is_closed: false })
    }

    fn open_session(&mut self, wait_control: &mut dyn WaitControl) -> Result<Session, Unfit> {
        let over = || Unfit::Over { library: named(self.mpi) };
        if self.is_closed {
            return Err(over());
        }
        let answer = match self.opening.take() {
            Some(answer) => answer,
            None => {
                let (reply, answer) = mpsc::channel();
                self.commands.send(Command::Open(reply)).map_err(|_| over())?;
                answer
            }
        };
        loop {
            match answer.recv_timeout(SLICE) {
                Ok(session) => return session,
                Err(RecvTimeoutError::Disconnected) => return Err(over()),
                Err(RecvTimeoutError::Timeout) if wait_control.keep_waiting() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.opening = Some(answer);
                    return Err(Unfit::Interrupted);
                }
            }
        }
    }
}

/// Records that the rank of a session has finished.
pub(super) fn note_finished(number: u64) {
    if let Some(runtime) = &mut *RUNTIME.lock()
        && runtime.open.is_some_and(|(open, _)| open == number)
    {
        runtime.open = None;
    }
}

/// Prints why this rank has failed, and ends all processes of the job, this one too.
pub(super) fn abort(mpi: &Mpi, rank: u32, why: &str) -> ! {
    abort_with(mpi, rank, why, 1)
}

/// Prints why this rank ends the job, and ends all processes of the job with this exit status, this one too.
/// Returns in a process that is no rank of an MPI.
pub fn end_job(status: u8, why: &str) {
    let held = RUNTIME.lock();
    if let Some(runtime) = &*held
        && let Some((_, rank)) = runtime.open
    {
        abort_with(runtime.mpi, rank, why, status);
    }
}

fn abort_with(mpi: &Mpi, rank: u32, why: &str, status: u8) -> ! {
    eprintln!("mpjdev: rank {rank} ends the job: {why}");
    warn!(target: "mpjdev::failure", rank, why, "rank ends the job");
    // An aborting launcher forwards no more output; MPICH's drops even what it has read.
    std::thread::sleep(FORWARD);
    if let Err(error) = mpi.abort(status) {
        eprintln!("mpjdev: {error}");
    }
    // If the abort returns, the library has at least notified its launcher.
    mpi::leave(status);
}

/// Finalises the library in a process that is about to end. Blocks until all processes of the job do so, and
/// then for some seconds at most. Does nothing without a used MPI. If the rank of this process has not
/// finished, prints the reason, `why` if given, and ends the job; it does not return then.
pub fn end(why: Option<&str>) {
    let mut held = RUNTIME.lock();
    let Some(runtime) = &mut *held else { return };
    if let Some((_, rank)) = runtime.open {
        abort(runtime.mpi, rank, why.unwrap_or("its process ends without Comm.finish"));
    }
    if runtime.is_closed || runtime.opening.is_some() {
        return;
    }
    runtime.is_closed = true;
    let (reply, closing) = mpsc::channel();
    if runtime.commands.send(Command::Close(reply)).is_err() {
        return;
    }
    drop(held);
    let mut all_here: Option<Instant> = None;
    loop {
        match closing.recv_timeout(SLICE) {
            Ok(Closing::AllHere) => all_here = Some(Instant::now()),
            Ok(Closing::Over(Ok(()))) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Closing::Over(Err(error))) => return eprintln!("mpjdev: {error}"),
            Err(RecvTimeoutError::Timeout) if all_here.is_some_and(|since| since.elapsed() > FINALIZE) => {
                return eprintln!(
                    "mpjdev: MPI_Finalize has not returned within {FINALIZE:?}; this process ends without it"
                );
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The state of the library's own thread.
struct Main {
    mpi: &'static Mpi,
    candidates: Candidates,
    /// The communicator for the end.
    begun: Option<mpi::Comm>,
    /// Communicators of earlier sessions.
    session_comms: Vec<mpi::Comm>,
}

impl Main {
    fn run(mut self, commands: &mpsc::Receiver<Command>) {
        let mut number = 0;
        for command in commands {
            match command {
                Command::Open(reply) => {
                    number += 1;
                    let _ = reply.send(self.open(number));
                }
                Command::Close(reply) => {
                    let over = self.close(&reply);
                    let _ = reply.send(Closing::Over(over));
                    return;
                }
            }
        }
    }

    fn open(&mut self, number: u64) -> Result<Session, Unfit> {
        if self.begun.is_none() {
            self.begin()?;
        }
        self.open_begun(number).map_err(|error| Unfit::Library { library: named(self.mpi), error })
    }

    fn begin(&mut self) -> Result<(), Unfit> {
        let mpi = self.mpi;
        let of_library = |error| Unfit::Library { library: named(mpi), error };
        let granted = mpi.init().map_err(of_library)?;
        let world = mpi.world();
        mpi.return_errors(world).map_err(of_library)?;
        check(mpi, &self.candidates, granted, mpi.size(world).map_err(of_library)?)?;
        self.begun = Some(dup(mpi, world).map_err(of_library)?);
        Ok(())
    }

    /// The communicators of a session. Those of the last session are freed only here: since all processes
    /// have reached this point, all messages on them have arrived.
    fn open_begun(&mut self, number: u64) -> Result<Session, MpiError> {
        let mpi = self.mpi;
        let world = mpi.world();
        let make = || dup(mpi, world);
        let session = Session {
            number,
            rank: mpi.rank(world)?,
            size: mpi.size(world)?,
            tag_max: mpi.tag_max(world)?,
            world: [make()?, make()?],
            firsts: make()?,
            seconds: make()?,
            all: make()?,
            origin: make()?,
        };
        self.session_comms.append(&mut kept_comms::take());
        for comm in self.session_comms.drain(..) {
            empty(mpi, comm);
            mpi.free(comm)?;
        }
        self.session_comms.extend([session.firsts, session.seconds, session.all, session.origin]);
        self.session_comms.extend(session.world);
        Ok(session)
    }

    fn close(&self, reply: &mpsc::Sender<Closing>) -> Result<(), MpiError> {
        let Some(ends) = self.begun else { return Ok(()) };
        // The other processes may compute for any time.
        let mut barrier = self.mpi.ibarrier(ends)?;
        let mut nap = Duration::from_micros(50);
        while !barrier.test()? {
            std::thread::sleep(nap);
            nap = (2 * nap).min(SLICE);
        }
        let _ = reply.send(Closing::AllHere);
        // Libraries complain of unreceived messages, and a late finisher sends notices to ranks that finished
        // early.
        self.session_comms.iter().chain(&kept_comms::take()).for_each(|comm| empty(self.mpi, *comm));
        self.mpi.finalize()
    }
}

/// Duplicates a communicator by the library's nonblocking call, and leaves the processor to the processes
/// that it waits for.
fn dup(mpi: &'static Mpi, comm: mpi::Comm) -> Result<mpi::Comm, MpiError> {
    let mut made = mpi.idup(comm)?;
    let mut polls = 0_u32;
    loop {
        if let Some(made) = made.test()? {
            return Ok(made);
        }
        polls += 1;
        match polls {
            0..1000 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_transport_has_the_variable_and_its_value() {
        let unknown = UnknownTransport { value: "mpii".to_owned() };
        let text = "the environment variable MPJDEV_TRANSPORT is \"mpii\", which no launcher sets";
        assert_eq!(unknown.to_string(), text);
    }
}
