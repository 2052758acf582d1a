//! The monitor: the parent of a job's ranks. It starts them, forwards their output, and ends all processes
//! that they leave behind.
//!
//! Launcher and monitor are two processes, so that each can clean up when the other is killed. Both are
//! subreapers, so they adopt every orphaned descendant of a rank. The ranks end with the monitor.

mod exits;
mod formation;
mod site_reports;
mod site_startup;
mod startup_server;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use mpjdev_sys::child::{self, ChildSetup};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Rlimit, Signal, getpgid, getpid, kill_process_group, pidfd_send_signal, set_child_subreaper, setsid,
};
use tracing::{debug, info, warn};

use super::exit_status::{ExitStatus, JobResult};
use super::launcher_link::{Grants, drain, receive_grants, signals};
use super::library::{LIBRARY, Library};
use super::lines::Lines;
use super::member_list::MemberList;
use super::names::Names;
use super::output::Sink;
use super::plan::Plan;
use super::{descendants, limits, processors};
use exits::ProgramExit;
use formation::Formation;
use site_reports::SiteReports;
use startup_server::StartupServer;

/// Octets of one read from a pipe.
const PIECE: usize = 64 << 10;
/// Reads from a pipe before the monitor handles other events.
const READS_MAX: usize = 64;
/// The status of a job that took too long, as in timeout(1).
const TIMED_OUT: u8 = 124;
/// Time for a program, such as a shell, to end after its rank's process has died.
const LOSS_WAIT: Duration = Duration::from_millis(500);
/// Time for orphaned processes to end by themselves.
const ORPHANS_MAX: Duration = Duration::from_millis(500);
/// Time to write the last messages when the reader of the output is too slow.
const LAST_MAX: Duration = Duration::from_millis(200);
/// Exit statuses of shells for a command that is not found, and for one that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Standard output or error of a rank.
#[derive(Debug)]
struct Pipe {
    fd: OwnedFd,
    /// `None` for the startup server.
    rank: Option<u32>,
    lines: Lines,
    is_error: bool,
}

/// The program of one rank. It sends the Hello itself or starts the process that does.
#[derive(Debug)]
struct Rank {
    pid: Pid,
    has_ended: bool,
}

/// The state of a job that is ending.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// Time at which the remaining processes are killed.
    kill_at: Instant,
    /// Whether a signal or the timeout is the reason. Then the monitor does not wait for slow readers.
    asked: bool,
}

/// The monitor of a running job.
#[derive(Debug)]
struct Monitor {
    plan: Plan,
    names: Names,
    /// The part of these ranks in a job of several sites or hosts.
    formation: Option<Formation>,
    /// The startup server, if the ranks are sites.
    server: Option<StartupServer>,
    /// The output of that server.
    server_output: BytesMut,
    /// The reports of the sites, if the ranks are sites.
    site_reports: Option<SiteReports>,
    /// The pipe in which a site reports its failed ranks.
    report_pipe: Option<std::fs::File>,
    /// The native library for all ranks.
    library: Option<Library>,
    /// The limit on open files of a rank.
    limit: Rlimit,
    begun: Instant,
    ranks: Vec<Rank>,
    pipes: Vec<Pipe>,
    out: Sink,
    err: Sink,
    result: JobResult,
    members: MemberList,
    /// Ranks whose process has died while their program runs, each with the deadline for the end of the
    /// program, which may explain it.
    losses: Vec<(u32, Instant)>,
    /// Exits that may follow from the failure of another rank, each with its deadline.
    deferred_exits: Vec<(ProgramExit, Instant)>,
    closing: Option<Closing>,
    /// Signals that were sent to end ranks.
    sent: Vec<i32>,
    /// Whether the launcher runs.
    has_launcher: bool,
    /// Whether the remaining processes were killed.
    has_killed: bool,
}

/// Runs a job to its end and returns the exit status.
///
/// Standard input is the launcher's socket. Its first packet carries the pipe that rank 0 reads. Each further
/// octet is a signal. The socket ends when the launcher has died.
///
/// # Errors
/// The system refuses a resource that a monitor needs.
pub fn run(plan: Plan) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    // Leaves the terminal. The ranks are never in its foreground, and the system may stop background
    // processes that write to it.
    setsid()?;
    let launcher = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Grants { input, exchange } = receive_grants(&launcher)?;
    let (children, notify) = UnixStream::pair()?;
    for stream in [&children, &launcher] {
        stream.set_nonblocking(true)?;
    }
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, notify)?;
    let listener = if plan.network.is_some() { limits::PER_LISTENER } else { 0 };
    let limit = limits::raise(plan.ranks, "rank", limits::PER_RANK + listener)?;
    let mut monitor = Monitor {
        names: plan.names(),
        formation: Formation::of(&plan, exchange)?,
        server: None,
        server_output: BytesMut::new(),
        site_reports: SiteReports::new(&plan)?,
        report_pipe: site_reports::report_pipe(&plan),
        members: MemberList::new(plan.ranks, site_startup::extent(&plan)),
        // After an error each rank unpacks its own library, or reports why it cannot.
        library: plan.jar.as_deref().and_then(|jar| Library::unpack(jar).ok()),
        plan,
        limit,
        begun: Instant::now(),
        ranks: Vec::new(),
        pipes: Vec::new(),
        out: Sink::new(io::stdout()),
        err: Sink::new(io::stderr()),
        result: JobResult::default(),
        losses: Vec::new(),
        deferred_exits: Vec::new(),
        closing: None,
        sent: Vec::new(),
        has_launcher: true,
        has_killed: false,
    };
    info!(target: "mpjdev::job", ranks = monitor.plan.ranks, "job starts");
    match monitor.start_server() {
        Ok(()) => monitor.start(input),
        Err(error) => monitor.give_up(&error.to_string()),
    }
    monitor.watch(&launcher, &children);
    monitor.settle_root_cause();
    monitor.leave_job(&launcher, &children);
    monitor.clean_up(&launcher, &children);
    info!(target: "mpjdev::job", status = monitor.result.status(), "job is over");
    Ok(monitor.result.status())
}

impl Monitor {
    fn start(&mut self, input: OwnedFd) {
        let mut input = Some(input);
        for rank in 0..self.plan.ranks {
            match self.start_rank(rank, input.take()) {
                Ok(started) => self.ranks.push(started),
                Err(error) => {
                    let words = self.plan.words(rank, "", "");
                    let program = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
                    self.print_line(&format!("cannot start {program} as {}: {error}", self.names.rank(rank)));
                    let is_missing = error.kind() == io::ErrorKind::NotFound;
                    self.result.handle_own(if is_missing { NOT_FOUND } else { NOT_STARTED });
                    return self.close(Signal::TERM, false);
                }
            }
        }
    }

    fn start_rank(&mut self, rank: u32, input: Option<OwnedFd>) -> io::Result<Rank> {
        let place = self.plan.bind.then(|| rank + self.names.first.unwrap_or(0));
        let report_pipe = self.site_reports.as_ref().map(SiteReports::path).unwrap_or_default();
        let server = self.server.as_ref().map_or("", StartupServer::address);
        let mut command = self.command(&self.plan.words(rank, server, &report_pipe), place);
        command.envs(self.plan.environment(rank));
        command.env_remove(LIBRARY).envs(self.library.as_ref().map(|library| (LIBRARY, library.word())));
        self.set_server_key(&mut command);
        let line = self.members.control_socket(rank)?;
        command.env(mpjdev_bootstrap::control::CONTROL, line.as_raw_fd().to_string());
        command.stdin(input.map_or(Stdio::null(), Stdio::from));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let out = child.stdout.take().map(|p: ChildStdout| (OwnedFd::from(p), false));
        let err = child.stderr.take().map(|p: ChildStderr| (OwnedFd::from(p), true));
        for (fd, is_error) in [out, err].into_iter().flatten() {
            rustix::io::ioctl_fionbio(&fd, true)?;
            let lines = Lines::new(&self.tag(rank));
            self.pipes.push(Pipe { fd, rank: Some(rank), lines, is_error });
        }
        let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::NotFound)?;
        debug!(target: "mpjdev::job", member = rank, pid = child.id(), "program of a rank is started");
        Ok(Rank { pid, has_ended: false })
    }

    /// The command of a process that dies with this one, has the user's limit on open files, and is bound to
    /// the processor of this index, if there is one.
    fn command(&self, words: &[OsString], place: Option<u32>) -> Command {
        let mut command = Command::new(words.first().map(OsString::as_os_str).unwrap_or_default());
        command.args(words.iter().skip(1));
        let processors = place.and_then(processors::one);
        child::prepare(&mut command, ChildSetup { parent: getpid(), open_files: self.limit, processors });
        command
    }

    /// The tag of a rank's lines.
    fn tag(&self, rank: u32) -> String {
        if self.plan.tag_output { format!("[{}] ", self.names.tag(rank)) } else { String::new() }
    }

    /// Runs the job until all ranks have ended.
    fn watch(&mut self, launcher: &UnixStream, children: &UnixStream) {
        while self.running_count() > 0 {
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.members.listen();
            self.read_site_reports();
            self.reap();
            self.advance_formation();
            self.members.answer();
            self.keep_time();
        }
    }

    /// Receives what the launcher forwards.
    fn listen(&mut self, launcher: &UnixStream, children: &UnixStream) {
        drain(children);
        match signals(launcher) {
            Some(signals) => signals.into_iter().for_each(|signal| self.handle_signal(signal)),
            None if self.has_launcher => {
                self.has_launcher = false;
                warn!(target: "mpjdev::job", "launcher has died");
                self.kill_ranks();
            }
            None => {}
        }
    }

    /// Sleeps until an event.
    fn wait(&self, launcher: &UnixStream, children: &UnixStream) {
        let mut fds = vec![PollFd::new(children, PollFlags::IN)];
        if self.has_launcher {
            fds.push(PollFd::new(launcher, PollFlags::IN));
        }
        let (out_free, err_free) = (self.out.is_free(), self.err.is_free());
        let free = |pipe: &&Pipe| if pipe.is_error { err_free } else { out_free };
        fds.extend(
            self.pipes
                .iter()
                .filter(free)
                .map(|pipe| PollFd::from_borrowed_fd(pipe.fd.as_fd(), PollFlags::IN)),
        );
        let formation = self.formation.as_ref().and_then(Formation::ready_fd);
        fds.extend(formation.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        fds.extend(
            self.site_reports
                .as_ref()
                .map(|site_reports| PollFd::from_borrowed_fd(site_reports.fd(), PollFlags::IN)),
        );
        fds.extend(self.members.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let settle_at = self.site_reports.as_ref().and_then(SiteReports::settle_at);
        let deadlines = [self.next_deadline(), self.members.overdue_at(self.plan.init_timeout), settle_at];
        let losses =
            self.losses.iter().map(|(_, at)| *at).chain(self.deferred_exits.iter().map(|(_, at)| *at));
        let mut most = deadlines
            .into_iter()
            .flatten()
            .chain(losses)
            .min()
            .map(|at| at.saturating_duration_since(Instant::now()));
        // No event reports that a writing thread or the socket of a waiting rank has room again.
        if !(out_free && err_free && self.running_count() > 0) || self.members.is_busy() {
            let soon = Duration::from_millis(5);
            most = Some(most.map_or(soon, |most| most.min(soon)));
        }
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // After an error, such as an interrupting signal, the caller polls every source as well.
        let _ = poll(&mut fds, most.as_ref());
    }

    fn next_deadline(&self) -> Option<Instant> {
        let timeout = self.plan.timeout.filter(|_| self.closing.is_none());
        let timeout = timeout.and_then(|timeout| self.begun.checked_add(timeout));
        self.closing.map(|closing| closing.kill_at).or(timeout)
    }

    fn keep_time(&mut self) {
        if self.members.overdue_at(self.plan.init_timeout).is_some_and(|at| at <= Instant::now()) {
            self.report_late_ranks();
        }
        let now = Instant::now();
        let over: Vec<_> = self.losses.extract_if(.., |(_, at)| *at <= now).collect();
        over.into_iter().for_each(|(rank, _)| self.handle_loss(rank));
        self.handle_deferred_exits();
        if self.next_deadline().is_none_or(|at| Instant::now() < at) {
            return;
        }
        if self.closing.is_some() {
            return self.kill_ranks();
        }
        let timeout = self.plan.timeout.unwrap_or_default().as_secs_f64();
        let what = match self.running_count() {
            0 => "all ranks have ended, and their output is not read".to_owned(),
            left => format!("{left} of {} {}s are running", self.plan.ranks, self.names.noun()),
        };
        let waits = self.formation.as_ref().and_then(Formation::waits_for).map(|waits| format!(", {waits}"));
        let what = what + &waits.unwrap_or_default();
        self.print_line(&format!("the time of {timeout} s is over (--timeout): {what}"));
        self.result.handle_own(TIMED_OUT);
        self.close(Signal::TERM, true);
    }

    /// Warns of late ranks.
    fn report_late_ranks(&mut self) {
        if let Some(late) = self.members.overdue() {
            let after = self.plan.init_timeout.as_secs_f64();
            let late = self.names.ranks(&late);
            self.print_line(&format!(
                "{late} did not call Comm.init within {after} s of the first that did; waiting on \
                 (--init-timeout sets the time until this warning, --timeout ends the job)"
            ));
        }
    }

    fn handle_signal(&mut self, number: u8) {
        let Some(signal) = crate::signals::known(number) else { return };
        if !crate::signals::ends(signal) {
            return self.signal_ranks(signal);
        }
        // A second signal kills the ranks at once.
        if self.closing.is_some() { self.kill_ranks() } else { self.close(signal, true) }
    }

    /// Begins to end the job: a signal now, SIGKILL after the time of grace.
    fn close(&mut self, signal: Signal, asked: bool) {
        if self.closing.is_none() {
            info!(target: "mpjdev::job", signal = signal.as_raw(), asked, "ranks are asked to end");
            self.closing = Some(Closing { kill_at: Instant::now() + self.plan.grace, asked });
            self.sent.push(signal.as_raw());
            self.signal_unfailed(signal, !asked && !self.plan.keep_going);
        }
    }

    fn kill_ranks(&mut self) {
        warn!(target: "mpjdev::job", running = self.running_count(), "remaining ranks are killed");
        self.has_killed = true;
        // Killed processes take some time to end.
        let kill_at = Instant::now() + Duration::from_secs(1);
        self.closing = Some(Closing { kill_at, asked: self.closing.is_none_or(|closing| closing.asked) });
        if !self.sent.contains(&Signal::KILL.as_raw()) {
            self.sent.push(Signal::KILL.as_raw());
        }
        self.signal_ranks(Signal::KILL);
    }

    fn signal_ranks(&self, signal: Signal) {
        self.signal_unfailed(signal, false);
    }

    /// Signals all ranks. With `skips_failed`, sites that have reported a failure get no signal: they end by
    /// themselves.
    fn signal_unfailed(&self, signal: Signal, skips_failed: bool) {
        for (at, rank) in self.ranks.iter().enumerate() {
            if skips_failed && self.has_reported(at as u32) {
                continue;
            }
            // A process that has ended meanwhile needs no signal.
            let process = self.members.process(at as u32);
            let group = process.and_then(|(pid, _)| getpgid(Some(pid)).ok());
            if !rank.has_ended || group == Some(rank.pid) {
                let _ = kill_process_group(rank.pid, signal);
            }
            if let Some((_, process)) = process
                && group != Some(rank.pid)
            {
                let _ = pidfd_send_signal(process, signal);
            }
        }
    }

    /// Forwards the output of the ranks.
    fn forward(&mut self) {
        let Monitor { pipes, out, err, server_output, .. } = self;
        let mut octets = vec![0; PIECE];
        pipes.retain_mut(|pipe| {
            if pipe.rank.is_none() {
                return startup_server::keep_server_output(pipe.fd.as_fd(), server_output, &mut octets);
            }
            let sink = if pipe.is_error { &mut *err } else { &mut *out };
            // A rank may write without end: the other duties of the monitor must not wait for it.
            for _ in 0..READS_MAX {
                // Closes the pipe: a rank whose output has no reader gets SIGPIPE.
                if sink.is_unread() {
                    return false;
                }
                if !sink.pump() {
                    break;
                }
                match rustix::io::read(&pipe.fd, &mut octets[..]) {
                    Ok(0) => {
                        sink.put(pipe.lines.handle_end());
                        return false;
                    }
                    Ok(n) => sink.put(pipe.lines.handle_octets(&octets[..n])),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(_) => return false,
                }
            }
            true
        });
    }

    /// Records which programs and ranks have ended.
    fn reap(&mut self) {
        // Before reaping, so that the statuses of these ranks are known below if they are children.
        let unhandled = self.members.unhandled_ends();
        let mut ended = Vec::new();
        descendants::reap(|pid, status| ended.push((pid, status)));
        // Killed processes first: a kill may cause an exit at the same time, and an exit causes no kill.
        ended.sort_by_key(|(_, status)| matches!(status, ExitStatus::Exited(_)));
        if ended.is_empty() && unhandled.is_empty() {
            return;
        }
        // Forwards the last output of a rank, and reads the reports of a site, before handling its end.
        self.forward();
        self.read_site_reports();
        for (pid, status) in ended {
            let program = self.ranks.iter().position(|rank| rank.pid == pid && !rank.has_ended);
            let member = self.members.handle_exit(pid, status);
            let rank = member.map(|(rank, _)| rank).or(program.map(|at| at as u32));
            debug!(
                target: "mpjdev::job", member = rank, pid = pid.as_raw_nonzero().get(), %status,
                "process has ended"
            );
            self.note_server_end(pid, status);
            if let Some(at) = program {
                self.ranks[at].has_ended = true;
                self.members.handle_program_end(at as u32);
            }
            match member {
                Some((rank, is_lost)) => {
                    self.handle_or_defer_exit(ProgramExit { rank, pid, status, is_lost })
                }
                None => program.into_iter().for_each(|at| {
                    self.handle_or_defer_exit(ProgramExit { rank: at as u32, pid, status, is_lost: false });
                }),
            }
        }
        for rank in unhandled {
            let is_known = self.members.process(rank).is_none();
            if !is_known && self.members.handle_loss(rank) {
                info!(target: "mpjdev::job", member = rank, "process of a rank has died, its program runs");
                self.losses.push((rank, Instant::now() + LOSS_WAIT));
            }
        }
        self.handle_deferred_exits();
    }

    /// Number of ranks that run.
    fn running_count(&self) -> usize {
        (0..self.ranks.len()).filter(|at| self.is_running(*at)).count()
    }

    /// Whether a rank's program or process runs.
    fn is_running(&self, at: usize) -> bool {
        !self.ranks[at].has_ended || self.members.process(at as u32).is_some()
    }

    fn print_line(&mut self, line: &str) {
        let host = self.names.host.as_ref().map(|host| format!("host {host}: ")).unwrap_or_default();
        self.err.put(format!("mpjrun: {host}{line}\n").into());
    }

    /// Ends and reaps all processes that the ranks have left behind, and writes the remaining output.
    fn clean_up(&mut self, launcher: &UnixStream, children: &UnixStream) {
        let orphans = self.wait_for_orphans(launcher, children);
        if orphans > 0 {
            self.print_line(&format!("killed {orphans} processes that ranks have left behind"));
        }
        let left = descendants::kill_all(|_, _| {});
        if left > 0 {
            self.print_line(&format!("{left} processes of the job could not be killed"));
        }
        self.has_killed = false;
        self.closing = self.closing.filter(|closing| closing.asked);
        if let Some(closing) = &mut self.closing {
            closing.kill_at = Instant::now() + self.plan.grace;
        }
        // Not longer than a reader may read: a process that could not be killed may keep a pipe open.
        while self.has_launcher && !self.has_killed && !self.is_written(left > 0) {
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.keep_time();
        }
        if self.has_launcher && self.has_killed && !self.err.is_unread() {
            self.print_line(
                "the last output of the ranks is lost: it was not read within the time of --grace",
            );
            let deadline = Instant::now() + LAST_MAX;
            while !self.err.is_done() && Instant::now() < deadline {
                self.wait(launcher, children);
                drain(children);
            }
        }
    }

    /// Gives orphaned processes some time to end by themselves, as a filter behind a shell does. Returns the
    /// number of those that still run.
    fn wait_for_orphans(&mut self, launcher: &UnixStream, children: &UnixStream) -> usize {
        let deadline = Instant::now() + ORPHANS_MAX;
        while self.has_launcher && self.closing.is_none() {
            let left = descendants::left();
            if left == 0 || Instant::now() > deadline {
                return left;
            }
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.keep_time();
        }
        0
    }

    /// Whether all output of the ranks is written. With `drops_pipes`, output that the pipes still hold is
    /// dropped.
    fn is_written(&mut self, drops_pipes: bool) -> bool {
        let Monitor { pipes, out, err, .. } = self;
        if drops_pipes {
            for mut pipe in pipes.drain(..) {
                let sink = if pipe.is_error { &mut *err } else { &mut *out };
                sink.put(pipe.lines.handle_end());
            }
        }
        let all_read = self.pipes.is_empty();
        // Standard error is closed last, for messages about standard output.
        all_read && self.out.is_done() && self.err.is_done()
    }
}
