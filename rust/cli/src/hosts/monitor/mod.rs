//! The monitor of a job on several hosts. It starts the agents, lets the job form, forwards signals, input
//! and output, and ends everything.
//!
//! It is a process of its own, as the monitor of ranks is, so that launcher and monitor clean up for each
//! other.

mod failures;
mod formation;
mod profile_files;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use mpjdev_sys::child::{self, ChildSetup};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, set_child_subreaper, setsid};
use tracing::{debug, info, warn};

use crate::hosts::addresses;
use crate::hosts::frame::{Frame, Stream};
use crate::hosts::hello::{Hello, Start};
use crate::hosts::host_link::{HostEvent, HostLink, HostState};
use crate::hosts::plan::{HostsPlan, StagePlan, ranks};
use crate::job::exit_status::{ExitStatus, JobResult};
use crate::job::host_site::RankAddress;
use crate::job::launcher_link::{Grants, drain, receive_grants, signals};
use crate::job::output::Sink;
use crate::job::root_cause::RootCause;
use crate::job::{descendants, limits};
use profile_files::ProfileFiles;

/// The status of a job that took too long, as in timeout(1).
const TIMED_OUT: u8 = 124;
/// The status if hosts cannot take part, or are lost.
const NOT_FORMED: u8 = 1;
/// Time of this monitor beyond the hosts' own time of grace.
const HOST_GRACE: Duration = Duration::from_secs(1);
/// Time for agents to end their ranks after a second signal. Then their remote shells are killed.
const KILL_MAX: Duration = Duration::from_millis(500);
/// Time to write the last output.
const LAST_MAX: Duration = Duration::from_secs(5);
/// Hosts that a line names.
const NAMED: usize = 8;

/// The monitor of a running job.
#[derive(Debug)]
struct Monitor {
    plan: HostsPlan,
    hosts: Vec<HostLink>,
    /// The ranks of each host that have called `init`.
    announced: Vec<Option<Vec<RankAddress>>>,
    /// Hosts with a rank that has ended without `init`.
    has_left: Vec<bool>,
    has_formed: bool,
    /// Time of the first announcement; `None` once the late hosts are reported.
    first_announced: Option<Instant>,
    begun: Instant,
    input: Option<OwnedFd>,
    out: Sink,
    err: Sink,
    result: JobResult,
    root_cause: RootCause,
    settle_at: Option<Instant>,
    /// Streams of this process whose reader has closed them.
    closed: Vec<Stream>,
    is_settled: bool,
    profiles: ProfileFiles,
    closing: Option<Instant>,
    has_killed: bool,
    has_launcher: bool,
}

/// Runs a job to its end and returns the exit status. Standard input is the launcher's socket.
///
/// # Errors
/// The system refuses a resource that a monitor needs.
pub fn run(plan: HostsPlan) -> io::Result<u8> {
    set_child_subreaper(Some(getpid()))?;
    setsid()?;
    let launcher = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Grants { input, .. } = receive_grants(&launcher)?;
    let (children, notify) = UnixStream::pair()?;
    for stream in [&children, &launcher] {
        stream.set_nonblocking(true)?;
    }
    rustix::io::ioctl_fionbio(&input, true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, notify)?;
    let limit = limits::raise(plan.shares.len() as u32, "host", limits::PER_HOST)?;
    let hosts: Vec<HostLink> = plan.shares.iter().map(|share| HostLink::new(&share.host)).collect();
    let mut monitor = Monitor {
        announced: hosts.iter().map(|_| None).collect(),
        has_left: vec![false; hosts.len()],
        hosts,
        has_formed: false,
        first_announced: None,
        begun: Instant::now(),
        input: Some(input),
        out: Sink::new(io::stdout()),
        err: Sink::new(io::stderr()),
        result: JobResult::default(),
        root_cause: RootCause::default(),
        settle_at: None,
        closed: Vec::new(),
        is_settled: false,
        profiles: ProfileFiles::new(&plan),
        closing: None,
        has_killed: false,
        has_launcher: true,
        plan,
    };
    let prepare = |words: &[OsString]| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // A remote shell dies with this process. Its agent then sees the end of the connection.
        child::prepare(&mut command, ChildSetup { parent: getpid(), open_files: limit, processors: None });
        command
    };
    monitor.prepare_hosts(&prepare, &launcher, &children);
    monitor.watch(&launcher, &children);
    monitor.settle_root_cause();
    monitor.clean_up(&launcher, &children);
    let status = monitor.result.status();
    info!(target: "mpjdev::job", status, "job is over");
    Ok(status)
}

impl Monitor {
    /// Starts the agents, some at a time, and the ranks when all hosts are ready.
    fn prepare_hosts(
        &mut self,
        prepare: &dyn Fn(&[OsString]) -> Command,
        launcher: &UnixStream,
        children: &UnixStream,
    ) {
        info!(target: "mpjdev::job", hosts = self.hosts.len(), ranks = self.plan.ranks(), "agents are started");
        if let Some(octets) = self.plan.stage.as_ref().map(StagePlan::octets)
            && self.plan.is_verbose
        {
            self.print_line(&format!("copying {octets} octets to each host"));
        }
        let is_pending = |host: &HostLink| host.is_starting() || matches!(host.state, HostState::Queued);
        loop {
            let starting = self.hosts.iter().filter(|host| host.is_starting()).count();
            let queued: Vec<usize> = (0..self.hosts.len())
                .filter(|at| matches!(self.hosts[*at].state, HostState::Queued))
                .take(self.plan.at_once.saturating_sub(starting))
                .collect();
            for at in queued {
                let words = self.plan.words(at);
                self.hosts[at].start(&self.plan, at, prepare(&words));
            }
            if self.closing.is_some() || !self.hosts.iter().any(is_pending) {
                break;
            }
            self.turn(launcher, children);
        }
        if self.closing.is_some() {
            return self.hosts.iter_mut().for_each(HostLink::kill);
        }
        if !self.report_faults() {
            self.start_ranks();
        }
    }

    /// Prints all faults of all hosts; false if there is none.
    fn report_faults(&mut self) -> bool {
        let faulty: Vec<String> = self
            .hosts
            .iter()
            .filter_map(|host| match &host.state {
                HostState::Faulty(faults) => Some(format!("  {}: {}", host.name, faults.join("\n    and: "))),
                _ => None,
            })
            .collect();
        if faulty.is_empty() {
            return false;
        }
        let hosts = self.hosts.len();
        let count = match faulty.len() {
            count if count == hosts && hosts == 1 => "the host cannot take part".to_owned(),
            count => format!("{count} of {hosts} hosts cannot take part"),
        };
        self.print_line(&format!("{count}; no rank was started:\n{}", faulty.join("\n")));
        self.result.handle_own(NOT_FORMED);
        self.hosts.iter_mut().for_each(HostLink::close);
        true
    }

    fn start_ranks(&mut self) {
        let hellos: Vec<Hello> = self
            .hosts
            .iter()
            .filter_map(|host| match &host.state {
                HostState::Ready(hello) => Some(hello.clone()),
                _ => None,
            })
            .collect();
        let is_one_machine = addresses::are_one_machine(&hellos.iter().collect::<Vec<_>>());
        let known: Vec<_> = hellos.iter().map(addresses::known).collect();
        for (at, hello) in hellos.iter().enumerate() {
            let others = known.iter().enumerate().filter(|(other, _)| *other != at);
            let peers = others.filter_map(|(_, address)| *address).collect();
            self.hosts[at].run(Frame::Start(Start { peers, is_one_machine }));
            if at > 0 {
                // Input is for rank 0. The first ranks of other hosts read an empty one.
                self.hosts[at].send(&Frame::Closed(Stream::Input));
            }
            if self.plan.is_verbose {
                let Hello { architecture, java, interfaces, .. } = hello;
                let java = java.as_ref().map(|java| format!(", {java}")).unwrap_or_default();
                let ranks = ranks(&self.plan.shares[at]);
                let line = format!(
                    "{}: {ranks}, {architecture}{java}, interfaces {}",
                    self.hosts[at].name,
                    addresses::shown(interfaces)
                );
                self.print_line(&line);
            }
        }
        info!(target: "mpjdev::job", is_one_machine, "all hosts are ready");
    }

    /// Runs the job until all hosts have ended.
    fn watch(&mut self, launcher: &UnixStream, children: &UnixStream) {
        while self.hosts.iter().any(HostLink::is_running) {
            self.turn(launcher, children);
        }
        // The remote shells end with their agents.
        let deadline = Instant::now() + HOST_GRACE + self.plan.grace;
        self.hosts.iter_mut().for_each(HostLink::close);
        while self.hosts.iter().any(|host| host.pid().is_some())
            && Instant::now() < deadline
            && !self.has_killed
            && self.has_launcher
        {
            self.turn(launcher, children);
        }
        self.hosts.iter_mut().for_each(HostLink::kill);
    }

    /// Waits for an event and handles it.
    fn turn(&mut self, launcher: &UnixStream, children: &UnixStream) {
        self.wait(launcher, children);
        self.listen(launcher, children);
        self.reap();
        self.forward_input();
        for at in 0..self.hosts.len() {
            for event in self.hosts[at].advance(&self.plan, at) {
                self.handle(at, event);
            }
        }
        self.acknowledge();
        self.keep_time();
    }

    /// Sleeps until an event.
    fn wait(&self, launcher: &UnixStream, children: &UnixStream) {
        let mut fds = vec![PollFd::new(children, PollFlags::IN)];
        if self.has_launcher {
            fds.push(PollFd::new(launcher, PollFlags::IN));
        }
        for host in &self.hosts {
            fds.extend(host.readable().map(|fd| PollFd::new(fd, PollFlags::IN)));
            fds.extend(host.writable().map(|fd| PollFd::new(fd, PollFlags::OUT)));
        }
        if self.hosts.first().is_some_and(|host| host.input_room() > 0) {
            fds.extend(self.input.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        let deadlines = [self.next_deadline(), self.late_at(), self.settle_at];
        let deadlines =
            deadlines.into_iter().flatten().chain(self.hosts.iter().filter_map(HostLink::next_deadline));
        let mut most = deadlines.min().map(|at| at.saturating_duration_since(Instant::now()));
        // No event reports that a writing thread has room again, or is done.
        let is_over = !self.hosts.iter().any(|host| host.is_running() || host.is_starting());
        if !(self.out.is_free() && self.err.is_free()) || is_over {
            let soon = Duration::from_millis(5);
            most = Some(most.map_or(soon, |most| most.min(soon)));
        }
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // After an error, such as an interrupting signal, the caller polls every source as well.
        let _ = poll(&mut fds, most.as_ref());
    }

    /// Receives what the launcher forwards.
    fn listen(&mut self, launcher: &UnixStream, children: &UnixStream) {
        drain(children);
        match signals(launcher) {
            Some(numbers) => numbers.into_iter().for_each(|number| self.handle_signal(number)),
            None if self.has_launcher => {
                self.has_launcher = false;
                warn!(target: "mpjdev::job", "launcher has died");
                self.kill_hosts();
            }
            None => {}
        }
    }

    fn handle_signal(&mut self, number: u8) {
        let Some(signal) = crate::signals::known(number) else { return };
        if !crate::signals::ends(signal) {
            return self.signal_hosts(number, false);
        }
        if !self.hosts.iter().any(HostLink::has_started) {
            // No rank has a status that tells of the signal.
            self.result.handle_own(128 | number);
        }
        // A second signal kills the ranks at once.
        if self.closing.is_some() { self.kill_hosts() } else { self.close(signal, false) }
    }

    fn signal_hosts(&mut self, number: u8, skips_failed: bool) {
        for at in 0..self.hosts.len() {
            let has_failed = self.root_cause.has_failed(&self.plan.shares[at].ranks);
            if self.hosts[at].is_running() && !(skips_failed && has_failed) {
                self.hosts[at].send(&Frame::Signal(number));
            }
        }
    }

    /// Begins to end the job: a signal now, SIGKILL after the time of grace.
    fn close(&mut self, signal: Signal, skips_failed: bool) {
        if self.closing.is_none() {
            info!(target: "mpjdev::job", signal = signal.as_raw(), "ranks are asked to end");
            self.closing = Some(Instant::now() + self.plan.grace + HOST_GRACE);
            self.signal_hosts(signal.as_raw() as u8, skips_failed && !self.plan.keep_going);
        }
    }

    /// Kills all ranks, and the remote shells a moment later.
    fn kill_hosts(&mut self) {
        if self.has_killed {
            for (at, host) in (0..).zip(&mut self.hosts).filter(|(_, host)| host.is_running()) {
                self.result.handle_end(at, ExitStatus::Killed(Signal::KILL.as_raw() as u8));
                host.kill();
            }
            return;
        }
        warn!(target: "mpjdev::job", "remaining ranks are killed");
        self.has_killed = true;
        self.closing = Some(Instant::now() + KILL_MAX);
        self.hosts.iter_mut().filter(|host| host.is_running()).for_each(|host| host.send(&Frame::Kill));
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.closing.or_else(|| self.begun.checked_add(self.plan.timeout?))
    }

    /// The time at which late hosts are reported.
    fn late_at(&self) -> Option<Instant> {
        self.first_announced?.checked_add(self.plan.init_timeout)
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.late_at().is_some_and(|at| at <= now) {
            self.report_late_hosts();
        }
        if self.settle_at.is_some_and(|at| at <= now) {
            self.settle_root_cause();
        }
        if self.next_deadline().is_none_or(|at| now < at) {
            return;
        }
        if self.closing.is_some() {
            return self.kill_hosts();
        }
        let running = self.hosts.iter().filter(|host| host.is_running()).count();
        let timeout = self.plan.timeout.unwrap_or_default().as_secs_f64();
        self.print_line(&format!(
            "the time of {timeout} s is over (--timeout): the ranks of {running} of {} hosts are running",
            self.hosts.len()
        ));
        self.result.handle_own(TIMED_OUT);
        self.close(Signal::TERM, false);
    }

    /// Warns of hosts whose ranks delay the start.
    fn report_late_hosts(&mut self) {
        self.first_announced = None;
        let late = self.names(|at, host| host.is_running() && self.announced[at].is_none());
        if !self.has_formed && !late.is_empty() {
            let after = self.plan.init_timeout.as_secs_f64();
            self.print_line(&format!(
                "not all ranks on {late} called Comm.init within {after} s of the first other host; waiting \
                 on (--init-timeout sets the time until this warning, --timeout ends the job)"
            ));
        }
    }

    /// The names of some hosts.
    fn names(&self, is_one: impl Fn(usize, &HostLink) -> bool) -> String {
        let names: Vec<&str> = self
            .hosts
            .iter()
            .enumerate()
            .filter(|(at, host)| is_one(*at, host))
            .map(|(_, host)| host.name.as_str())
            .collect();
        let (named, others) = names.split_at(names.len().min(NAMED));
        let others = if others.is_empty() { String::new() } else { format!(" and {} others", others.len()) };
        named.join(", ") + &others
    }

    /// Reaps the remote shells that have ended.
    fn reap(&mut self) {
        let hosts = &mut self.hosts;
        descendants::reap(|pid, status| {
            debug!(target: "mpjdev::job", pid = pid.as_raw_nonzero().get(), %status, "remote shell has ended");
            hosts.iter_mut().filter(|host| host.pid() == Some(pid)).for_each(|host| host.handle_exit(status));
        });
    }

    /// Forwards input to rank 0, as far as its host takes it.
    fn forward_input(&mut self) {
        let Some(host) = self.hosts.first_mut() else { return };
        while let Some(input) = &self.input {
            let room = host.input_room();
            if room == 0 {
                return;
            }
            let mut octets = vec![0; room];
            match rustix::io::read(input, &mut octets[..]) {
                Ok(0) => {
                    host.send(&Frame::Closed(Stream::Input));
                    self.input = None;
                }
                Ok(n) => {
                    octets.truncate(n);
                    host.send_input(octets.into());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.input = None,
            }
        }
    }

    /// Lets the hosts send more output when theirs has been written.
    fn acknowledge(&mut self) {
        self.out.pump();
        self.err.pump();
        for (stream, sink) in [(Stream::Output, &self.out), (Stream::Error, &self.err)] {
            // A rank that writes on gets SIGPIPE there.
            if sink.is_unread() && !self.closed.contains(&stream) {
                self.closed.push(stream);
                self.hosts.iter_mut().for_each(|host| host.send(&Frame::Closed(stream)));
            }
        }
        let free = [(Stream::Output, self.out.is_free()), (Stream::Error, self.err.is_free())];
        for (stream, _) in free.into_iter().filter(|(_, is_free)| *is_free) {
            self.hosts.iter_mut().for_each(|host| host.acknowledge_output(stream));
        }
    }

    fn handle(&mut self, at: usize, event: HostEvent) {
        match event {
            HostEvent::Output(lines) => self.out.put(lines),
            HostEvent::Error(lines) => self.err.put(lines),
            HostEvent::Profiles(octets) => self.store_profiles(at, &octets),
            HostEvent::InputClosed => self.input = None,
            HostEvent::Exchange(line) => self.handle_exchange(at, &line),
            HostEvent::Failure(line) => self.handle_failure(at, &line),
            HostEvent::Ended(status) => self.handle_end(at, status),
            HostEvent::Lost(why) => self.handle_loss(at, &why),
        }
    }

    fn store_profiles(&mut self, at: usize, octets: &[u8]) {
        if let Err(error) = self.profiles.store(at, octets) {
            self.print_line(&format!("the profiles of {} are lost: {error}", self.hosts[at].name));
        }
    }

    fn print_line(&mut self, line: &str) {
        self.err.put(format!("mpjrun: {line}\n").into());
    }

    /// Ends all processes that are left, and writes the remaining output.
    fn clean_up(&mut self, launcher: &UnixStream, children: &UnixStream) {
        let left = descendants::kill_all(|_, _| {});
        if left > 0 {
            self.print_line(&format!("{left} processes of the job could not be killed"));
        }
        let deadline = self.closing.map(|_| Instant::now() + LAST_MAX);
        let is_late = || deadline.is_some_and(|at| Instant::now() > at);
        while self.has_launcher && !(self.out.is_done() && self.err.is_done()) && !is_late() {
            self.wait(launcher, children);
            self.listen(launcher, children);
            if self.has_killed {
                break;
            }
        }
    }
}
