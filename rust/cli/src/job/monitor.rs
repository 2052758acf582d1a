//! The process that a job's ranks are children of: it starts them, forwards their output, and leaves nothing behind.
//!
//! It is apart from the launcher so that each can clean up when the other is killed: both are subreapers, so nothing that a
//! rank starts escapes them, and the ranks themselves die with the monitor.

mod ends;
mod forming;
mod serving;
mod telling;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, getpgid, getpid, kill_process_group, pidfd_send_signal, set_child_subreaper, setsid,
};

use super::ending::{Ending, Verdict};
use super::led::{drain, receive_input, signals};
use super::library::{LIBRARY, Library};
use super::lines::Lines;
use super::names::Names;
use super::output::Sink;
use super::plan::Plan;
use super::roster::Roster;
use super::site::Site;
use super::{limits, tree};
use ends::End;
use serving::Server;
use telling::Hearing;

/// Octets that are read from a pipe at a time.
const PIECE: usize = 64 << 10;
/// The status for a job that took too long, as timeout(1) has it.
const TIMED_OUT: u8 = 124;
/// How long a program may go on when its rank's process has died, as a shell does that has waited for it.
const LOSS_WAIT: Duration = Duration::from_millis(500);
/// How long that may take to end by itself which ranks have left behind.
const BEHIND_MAX: Duration = Duration::from_millis(500);
/// How long the last words may take when nobody reads.
const LAST_MAX: Duration = Duration::from_millis(200);
/// The status when no rank could be started.
const NOT_STARTED: u8 = 126;

/// One stream of a rank, and whether it goes to standard error.
#[derive(Debug)]
struct Pipe {
    fd: OwnedFd,
    /// None for the startup server's.
    rank: Option<u32>,
    lines: Lines,
    is_error: bool,
}

/// The program of one rank, which is the process that says hello or starts it.
#[derive(Debug)]
struct Rank {
    pid: Pid,
    has_ended: bool,
}

/// The end of a job on its way.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// When everything left is killed.
    kill_at: Instant,
    /// Somebody has asked for it, or the time is over: then nobody waits for slow readers either.
    asked: bool,
}

/// A job under way.
#[derive(Debug)]
struct Job {
    plan: Plan,
    names: Names,
    /// The part in a job of several sites, where this is one.
    site: Option<Site>,
    /// The startup server, where the ranks are sites.
    server: Option<Server>,
    /// What that has said.
    heard: Vec<u8>,
    /// What sites tell, where they are the ranks.
    hearing: Option<Hearing>,
    /// Where a site tells of its ranks.
    teller: Option<std::fs::File>,
    /// What all ranks load.
    library: Option<Library>,
    /// How many files a rank may open.
    limit: Option<u64>,
    begun: Instant,
    ranks: Vec<Rank>,
    pipes: Vec<Pipe>,
    out: Sink,
    err: Sink,
    verdict: Verdict,
    roster: Roster,
    /// Ranks whose process has died behind their program, and until when that may say how by its own end.
    losses: Vec<(u32, Instant)>,
    /// Ends of ranks that may be the consequence of others, and until when those are waited for.
    held: Vec<(End, Instant)>,
    closing: Option<Closing>,
    /// Signals that were to end ranks.
    sent: Vec<i32>,
    /// The launcher lives.
    is_led: bool,
    /// What is left was to be killed.
    given_up: bool,
}

/// Runs a job to its end; gives the exit status.
///
/// Standard input is the launcher's socket: the pipe that rank 0 reads comes first, then signals, an octet each; its end is
/// the launcher's death.
///
/// # Errors
/// The machine refuses what a monitor needs.
pub fn run(plan: Plan) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    // Without a terminal: the ranks are never in its foreground, and what is in the background may be stopped for writing.
    setsid()?;
    let launcher = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let input = receive_input(&launcher)?;
    let (children, notify) = UnixStream::pair()?;
    for stream in [&children, &launcher] {
        stream.set_nonblocking(true)?;
    }
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, notify)?;
    let limit = limits::raise(plan.ranks, plan.network.is_some())?;
    let mut job = Job {
        names: plan.names(),
        site: forming::site(&plan),
        server: None,
        heard: Vec::new(),
        hearing: Hearing::new(&plan)?,
        teller: telling::teller(&plan),
        roster: Roster::new(plan.ranks, forming::extent(&plan)),
        // Without it each rank unpacks its own, or says why it cannot.
        library: plan.jar.as_deref().and_then(|jar| Library::unpack(jar).ok()),
        plan,
        limit,
        begun: Instant::now(),
        ranks: Vec::new(),
        pipes: Vec::new(),
        out: Sink::new(io::stdout()),
        err: Sink::new(io::stderr()),
        verdict: Verdict::default(),
        losses: Vec::new(),
        held: Vec::new(),
        closing: None,
        sent: Vec::new(),
        is_led: true,
        given_up: false,
    };
    match job.serve() {
        Ok(()) => job.start(input),
        Err(error) => job.give_up(&error.to_string()),
    }
    job.watch(&launcher, &children);
    job.settle();
    job.leave(&launcher, &children);
    job.end(&launcher, &children);
    Ok(job.verdict.status())
}

impl Job {
    fn start(&mut self, input: OwnedFd) {
        let mut input = Some(input);
        for rank in 0..self.plan.ranks {
            match self.start_rank(rank, input.take()) {
                Ok(started) => self.ranks.push(started),
                Err(error) => {
                    self.say(&format!("cannot start {}: {error}", self.names.rank(rank)));
                    self.verdict.handle_own(NOT_STARTED);
                    return self.close(Signal::TERM, false);
                }
            }
        }
    }

    fn start_rank(&mut self, rank: u32, input: Option<OwnedFd>) -> io::Result<Rank> {
        let place = self.plan.bind.then(|| rank + self.names.first.unwrap_or(0));
        let mut command = self.stub(place);
        let tells = self.hearing.as_ref().map(Hearing::path).unwrap_or_default();
        command.args(self.plan.words(rank, self.server.as_ref().map_or("", Server::address), &tells));
        command.envs(self.plan.environment(rank));
        command.env_remove(LIBRARY).envs(self.library.as_ref().map(|library| (LIBRARY, library.word())));
        self.hand_on_key(&mut command);
        let line = self.roster.line_to(rank)?;
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
        Ok(Rank { pid, has_ended: false })
    }

    /// The beginning of a command line that becomes a program of ours or of the user's.
    fn stub(&self, place: Option<u32>) -> Command {
        let place = place.map_or_else(|| "-".to_owned(), |place| place.to_string());
        let mut command = Command::new("/proc/self/exe");
        command.arg0("mpjdev").arg(super::STUB).args([getpid().to_string(), place, limits::word(self.limit)]);
        command
    }

    /// What stands before a rank's lines.
    fn tag(&self, rank: u32) -> String {
        if self.plan.tag_output { format!("[{}] ", self.names.tag(rank)) } else { String::new() }
    }

    /// Watches until all ranks have ended.
    fn watch(&mut self, launcher: &UnixStream, children: &UnixStream) {
        while self.left() > 0 {
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.roster.listen();
            self.hear_sites();
            self.reap();
            self.form();
            self.roster.answer();
            self.keep_time();
        }
    }

    /// Takes in what the launcher passes on.
    fn listen(&mut self, launcher: &UnixStream, children: &UnixStream) {
        drain(children);
        match signals(launcher) {
            Some(signals) => signals.into_iter().for_each(|signal| self.handle_signal(signal)),
            None if self.is_led => {
                self.is_led = false;
                self.kill_ranks();
            }
            None => {}
        }
    }

    /// Sleeps until something happens.
    fn wait(&self, launcher: &UnixStream, children: &UnixStream) {
        let mut fds = vec![PollFd::new(children, PollFlags::IN)];
        if self.is_led {
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
        let site = self.site.as_ref().and_then(Site::ready_fd);
        fds.extend(site.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        fds.extend(
            self.hearing.as_ref().map(|hearing| PollFd::from_borrowed_fd(hearing.fd(), PollFlags::IN)),
        );
        fds.extend(self.roster.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let settle_at = self.hearing.as_ref().and_then(Hearing::settle_at);
        let deadlines = [self.next_deadline(), self.roster.overdue_at(self.plan.init_wait), settle_at];
        let losses = self.losses.iter().map(|(_, at)| *at).chain(self.held.iter().map(|(_, at)| *at));
        let mut most = deadlines
            .into_iter()
            .flatten()
            .chain(losses)
            .min()
            .map(|at| at.saturating_duration_since(Instant::now()));
        // The threads that write do not tell how far they are, and nobody does who reads descriptors.
        if !(out_free && err_free && self.left() > 0) || self.roster.is_busy() {
            let soon = Duration::from_millis(5);
            most = Some(most.map_or(soon, |most| most.min(soon)));
        }
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // An error is a signal, after which everything is looked at as well.
        let _ = poll(&mut fds, most.as_ref());
    }

    fn next_deadline(&self) -> Option<Instant> {
        let timeout = self.plan.timeout.filter(|_| self.closing.is_none());
        let timeout = timeout.and_then(|timeout| self.begun.checked_add(timeout));
        self.closing.map(|closing| closing.kill_at).or(timeout)
    }

    fn keep_time(&mut self) {
        if self.roster.overdue_at(self.plan.init_wait).is_some_and(|at| at <= Instant::now()) {
            self.name_the_late();
        }
        let now = Instant::now();
        let over: Vec<_> = self.losses.extract_if(.., |(_, at)| *at <= now).collect();
        over.into_iter().for_each(|(rank, _)| self.handle_loss(rank));
        self.let_go();
        if self.next_deadline().is_none_or(|at| Instant::now() < at) {
            return;
        }
        if self.closing.is_some() {
            return self.kill_ranks();
        }
        let timeout = self.plan.timeout.unwrap_or_default().as_secs_f64();
        let what = match self.left() {
            0 => "nobody reads the output".to_owned(),
            left => format!("{left} of {} {}s are running", self.plan.ranks, self.names.noun()),
        };
        let waits = self.site.as_ref().and_then(Site::waits_for).map(|waits| format!(", {waits}"));
        let what = what + &waits.unwrap_or_default();
        self.say(&format!("the time of {timeout} s is over, {what}"));
        self.verdict.handle_own(TIMED_OUT);
        self.close(Signal::TERM, true);
    }

    /// Says which ranks keep others waiting at the start.
    fn name_the_late(&mut self) {
        if let Some(late) = self.roster.overdue() {
            let after = self.plan.init_wait.as_secs_f64();
            let late = self.names.ranks(&late);
            self.say(&format!("{late} did not call Comm.init within {after} s of the first that did"));
        }
    }

    fn handle_signal(&mut self, number: u8) {
        let Some(signal) = super::signals::known(number) else { return };
        if !super::signals::ends(signal) {
            return self.signal_ranks(signal);
        }
        // Whoever asks twice does not want to wait.
        if self.closing.is_some() { self.kill_ranks() } else { self.close(signal, true) }
    }

    /// Begins to end the job: a signal now, SIGKILL after the time of grace.
    fn close(&mut self, signal: Signal, asked: bool) {
        if self.closing.is_none() {
            self.closing = Some(Closing { kill_at: Instant::now() + self.plan.grace, asked });
            self.sent.push(signal.as_raw());
            self.signal_ranks_but(signal, !asked && !self.plan.keep_going);
        }
    }

    fn kill_ranks(&mut self) {
        self.given_up = true;
        // Not again and again: what is killed is gone soon.
        let kill_at = Instant::now() + Duration::from_secs(1);
        self.closing = Some(Closing { kill_at, asked: self.closing.is_none_or(|closing| closing.asked) });
        if !self.sent.contains(&Signal::KILL.as_raw()) {
            self.sent.push(Signal::KILL.as_raw());
        }
        self.signal_ranks(Signal::KILL);
    }

    fn signal_ranks(&self, signal: Signal) {
        self.signal_ranks_but(signal, false);
    }

    /// Signals all ranks, or all sites but those that are ending by themselves.
    fn signal_ranks_but(&self, signal: Signal, leaves: bool) {
        for (at, rank) in self.ranks.iter().enumerate() {
            if leaves && self.has_told(at as u32) {
                continue;
            }
            // What has gone by itself meanwhile needs no signal.
            let process = self.roster.process(at as u32);
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

    /// Forwards what the ranks have written.
    fn forward(&mut self) {
        let Job { pipes, out, err, heard, .. } = self;
        let mut octets = vec![0; PIECE];
        pipes.retain_mut(|pipe| {
            if pipe.rank.is_none() {
                return serving::hear(pipe.fd.as_fd(), heard, &mut octets);
            }
            let sink = if pipe.is_error { &mut *err } else { &mut *out };
            // A rank whose output nobody reads is told as if it wrote to the reader itself.
            if sink.is_unread() {
                return false;
            }
            while sink.pump() {
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

    /// Notes which programs and which ranks have ended.
    fn reap(&mut self) {
        // Asked before: those of them that are our children, or have become it, are reaped now and say how they ended.
        let gone = self.roster.gone();
        let mut ended = Vec::new();
        tree::reap(|pid, ending| ended.push((pid, ending)));
        // Whoever was killed may be why another one has ended at the same time, but not the other way round.
        ended.sort_by_key(|(_, ending)| matches!(ending, Ending::Exited(_)));
        if ended.is_empty() && gone.is_empty() {
            return;
        }
        // What a rank wrote last is said before its end, and what a site has told.
        self.forward();
        self.hear_sites();
        for (pid, ending) in ended {
            let program = self.ranks.iter().position(|rank| rank.pid == pid && !rank.has_ended);
            let member = self.roster.handle_exit(pid, ending);
            self.note_server_end(pid, ending);
            if let Some(at) = program {
                self.ranks[at].has_ended = true;
                self.roster.handle_program_end(at as u32);
            }
            match member {
                Some((rank, is_lost)) => self.take_end(End { rank, pid, ending, is_lost }),
                None => program.into_iter().for_each(|at| {
                    self.take_end(End { rank: at as u32, pid, ending, is_lost: false });
                }),
            }
        }
        for rank in gone {
            let is_known = self.roster.process(rank).is_none();
            if !is_known && self.roster.handle_loss(rank) {
                self.losses.push((rank, Instant::now() + LOSS_WAIT));
            }
        }
        self.let_go();
    }

    /// Number of ranks that run.
    fn left(&self) -> usize {
        (0..self.ranks.len()).filter(|at| self.runs(*at)).count()
    }

    /// Whether a rank's program or process runs.
    fn runs(&self, at: usize) -> bool {
        !self.ranks[at].has_ended || self.roster.process(at as u32).is_some()
    }

    fn say(&mut self, line: &str) {
        self.err.put(format!("mpjrun: {line}\n").into_bytes());
    }

    /// Ends and reaps whatever the ranks have left behind, and writes what is left to write.
    fn end(&mut self, launcher: &UnixStream, children: &UnixStream) {
        let behind = self.left_behind(launcher, children);
        if behind > 0 {
            self.say(&format!("what ranks have left behind is ended: {behind} processes"));
        }
        let left = tree::kill_all(|_, _| {});
        if left > 0 {
            self.say(&format!("{left} processes of the job could not be ended"));
        }
        self.given_up = false;
        self.closing = self.closing.filter(|closing| closing.asked);
        if let Some(closing) = &mut self.closing {
            closing.kill_at = Instant::now() + self.plan.grace;
        }
        // As long as somebody may read; a process that could not be ended may hold a pipe for ever.
        while self.is_led && !self.given_up && !self.is_written(left == 0) {
            self.wait(launcher, children);
            self.listen(launcher, children);
            self.forward();
            self.keep_time();
        }
        if self.is_led && self.given_up && !self.err.is_unread() {
            self.say("what the ranks have written last was not read and is lost");
            let deadline = Instant::now() + LAST_MAX;
            while !self.err.is_done() && Instant::now() < deadline {
                self.wait(launcher, children);
                drain(children);
            }
        }
    }

    /// Lets what the ranks have left behind end by itself for a moment, as a filter does behind a shell; gives how many
    /// processes go on.
    fn left_behind(&mut self, launcher: &UnixStream, children: &UnixStream) -> usize {
        let deadline = Instant::now() + BEHIND_MAX;
        while self.is_led && self.closing.is_none() {
            let left = tree::left();
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

    /// Whether everything that the ranks have written is where it belongs.
    fn is_written(&mut self, to_the_end: bool) -> bool {
        let Job { pipes, out, err, .. } = self;
        if !to_the_end {
            for mut pipe in pipes.drain(..) {
                let sink = if pipe.is_error { &mut *err } else { &mut *out };
                sink.put(pipe.lines.handle_end());
            }
        }
        let all_read = self.pipes.is_empty();
        // Standard error stays open for what there is to say of standard output.
        all_read && self.out.is_done() && self.err.is_done()
    }
}
