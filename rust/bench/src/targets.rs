//! Run of all targets: contestants of each group take turns, and each figure is compared with its limit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::BenchError;
use super::contest::{self, ContestResult, Entry, Pace, Stop};
use super::contestant::{self, Contestant, RunningJob, Tools, Transport};
use super::copies;
use super::figures::{self, Comparison, Figure, GROUPS, Group, Part, Role};
use super::memory::{memory_below, private_below};
use super::outcome::{Compared, Sample, compare};
use super::peer::{Peer, Program};
use super::protocol::{Case, RunCommand};
use super::report::{self, Absent, Row};
use super::startup;

/// Measurements of the start and the end of a job.
const STARTS: usize = 5;

/// Measurements of the start-up of clients, which takes some milliseconds.
const STARTUPS: usize = 15;

/// Arguments of a run of all targets.
#[derive(Debug)]
pub struct TargetRun<'a> {
    /// Programs of the contestants.
    pub tools: &'a Tools,
    /// Transports whose figures are measured.
    pub transports: &'a [Transport],
    /// C program under the installed MPIs, Open MPI first.
    pub peers: &'a [Program],
    /// Durations of a measurement.
    pub pace: Pace,
    /// Jobs of two ranks whose medians are the figures. Larger jobs are at least
    /// [`CROWDED_JOBS`](figures::CROWDED_JOBS).
    pub jobs: usize,
    /// Flag that ends the run.
    pub stop: &'a Stop,
}

/// Results of a comparison.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Figures of all targets.
    pub figures: Vec<Figure>,
    /// Results of all contestants.
    pub rows: Vec<Row>,
    /// Contestants that could not be started.
    pub absent: Vec<Absent>,
    /// Errors that did not prevent other measurements.
    pub errors: Vec<BenchError>,
}

/// Running contestants and their roles.
struct TargetJobs {
    parts: Vec<Role>,
    jobs: Vec<RunningJob>,
}

impl TargetJobs {
    /// Index of the job with this part.
    fn index_of(&self, part: &Part) -> Option<usize> {
        self.parts.iter().position(|role| *role == part.0)
    }
}

impl TargetRun<'_> {
    /// Measures all figures. `progress` gets the name of each measurement.
    ///
    /// # Errors
    /// A contestant fails, or `stop` is set.
    pub fn run(&self, progress: &dyn Fn(&str)) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome::default();
        let is_asked = |transport| self.transports.contains(&transport);
        for group in GROUPS.iter().filter(|group| is_asked(group.transport)) {
            if group.transport == Transport::Mpi {
                self.over_each_mpi(group, progress, &mut outcome)?;
            } else {
                let open_mpi = self.peers.iter().find(|program| program.peer() == Peer::OpenMpi);
                self.group(group, open_mpi, progress, &mut outcome)?;
            }
        }
        if is_asked(Transport::Shm) {
            progress(figures::START.title);
            outcome.figures.push(self.start()?);
            progress(figures::IDLE.title);
            outcome.figures.extend(self.memory(&mut outcome.errors)?);
            progress(figures::COPIES[0].title);
            let copies = copies::measure()?;
            outcome.figures.extend(figures::COPIES.map(|target| target.evaluate(&compare(&copies), &copies)));
        }
        if is_asked(Transport::Tcp) {
            progress(figures::STARTUP[0].title);
            let figures = self.startup().unwrap_or_else(|error| {
                outcome.absent.push(Absent { name: startup::NAME.into(), why: error.to_string() });
                outcome.errors.push(error);
                figures::STARTUP.map(|target| target.figure(None))
            });
            outcome.figures.extend(figures);
        }
        Ok(outcome)
    }

    /// Measures the figures of package `mpi` over each transport. `progress` gets the name of each
    /// measurement.
    ///
    /// # Errors
    /// A contestant fails, or `stop` is set.
    pub fn run_mpj(&self, progress: &dyn Fn(&str)) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome::default();
        let open_mpi = self.peers.iter().find(|program| program.peer() == Peer::OpenMpi);
        for transport in self.transports {
            let group = Group { transport: *transport, comparisons: figures::MPJ };
            let first = outcome.figures.len();
            self.group(&group, open_mpi, progress, &mut outcome)?;
            for figure in &mut outcome.figures[first..] {
                figure.title = format!("{transport}, {}", figure.title);
            }
        }
        Ok(outcome)
    }

    fn over_each_mpi(
        &self,
        group: &Group,
        progress: &dyn Fn(&str),
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        for program in self.peers {
            let first = outcome.figures.len();
            let progress_of_peer = |title: &str| progress(&format!("{}, {title}", program.peer()));
            self.group(group, Some(program), &progress_of_peer, outcome)?;
            progress_of_peer(figures::BEYOND.title);
            let beyond = self.memory_beyond(program, &mut outcome.errors)?;
            outcome.figures.push(figures::BEYOND.figure(Some(beyond)));
            for figures in &mut outcome.figures[first..] {
                figures.title = format!("{}, {}", program.peer(), figures.title);
            }
        }
        Ok(())
    }

    /// Private KiB of a rank in Rust over an MPI beyond those of a rank in C, after the same messages.
    fn memory_beyond(&self, program: &Program, errors: &mut Vec<BenchError>) -> Result<f64, BenchError> {
        const RANKS: u32 = 2;
        let program = program.over(Transport::Mpi).unwrap_or_else(|| program.clone());
        let mut private = [0.0; 2];
        for (at, contestant) in
            [Contestant::RustOver(program.clone()), Contestant::C(program)].into_iter().enumerate()
        {
            let mut job = RunningJob::start(&contestant, RANKS, self.tools)?;
            job.run(RunCommand { case: Case::Arrays, octets: 8, times: 100 })?;
            let figures = private_below(job.process()).map_err(BenchError::system("/proc"))?;
            private[at] = figures as f64 / 1024.0 / f64::from(RANKS);
            errors.extend(RunningJob::end_all(vec![job]));
        }
        Ok(private[0] - private[1])
    }

    fn group(
        &self,
        group: &Group,
        peer: Option<&Program>,
        progress: &dyn Fn(&str),
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        let mut by_ranks: BTreeMap<u32, Vec<&Comparison>> = BTreeMap::new();
        group
            .comparisons
            .iter()
            .for_each(|comparison| by_ranks.entry(comparison.ranks).or_default().push(comparison));
        for (ranks, comparisons) in by_ranks {
            let count = if ranks > 2 { self.jobs.max(figures::CROWDED_JOBS) } else { self.jobs };
            let first = (outcome.figures.len(), outcome.rows.len());
            let (mut figures_of_jobs, mut rows_of_jobs) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let mut jobs = self.start_jobs(group.transport, peer, ranks, outcome);
                for comparison in &comparisons {
                    progress(comparison.targets.first().map_or("", |target| target.title));
                    self.compare_contestants(&mut jobs, comparison, outcome)?;
                }
                outcome.errors.extend(RunningJob::end_all(jobs.jobs));
                figures_of_jobs.push(outcome.figures.split_off(first.0));
                rows_of_jobs.push(outcome.rows.split_off(first.1));
            }
            outcome.figures.extend(figures::medians(figures_of_jobs));
            outcome.rows.extend(report::medians(rows_of_jobs));
        }
        Ok(())
    }

    /// Starts the contestants. An absent one is named, and the others are measured without it.
    fn start_jobs(
        &self,
        transport: Transport,
        peer: Option<&Program>,
        ranks: u32,
        outcome: &mut Outcome,
    ) -> TargetJobs {
        let peer = peer.and_then(|program| program.over(transport));
        let ours = match (&peer, transport) {
            (Some(program), Transport::Mpi) => Contestant::JavaOver(program.clone()),
            _ => Contestant::Java(transport),
        };
        let mut contestants = vec![(Role::Ours, ours)];
        match transport {
            Transport::Tcp => contestants.push((Role::Plain, Contestant::Sockets)),
            Transport::Udp => {
                contestants.push((Role::Plain, Contestant::Datagrams));
                contestants.push((Role::OverTcp, Contestant::Java(Transport::Tcp)));
            }
            Transport::Local | Transport::Shm | Transport::Mpi => {}
        }
        if ranks == 2 && transport == Transport::Shm && self.tools.baseline.is_some() {
            contestants.push((Role::Baseline, Contestant::Baseline));
        }
        let aeron_has_part = ranks == 2 && matches!(transport, Transport::Shm | Transport::Udp);
        if aeron_has_part && self.tools.aeron.is_some() {
            contestants.push((Role::Aeron, Contestant::Aeron(transport)));
        }
        // The C program has no UDP transport.
        let peer = peer.filter(|_| transport != Transport::Udp);
        contestants.extend(peer.map(|program| (Role::Theirs, Contestant::C(program))));
        let mut jobs = TargetJobs { parts: Vec::new(), jobs: Vec::new() };
        for (role, contestant) in contestants {
            match RunningJob::start(&contestant, ranks, self.tools) {
                Ok(job) => {
                    jobs.parts.push(role);
                    jobs.jobs.push(job);
                }
                Err(error) => {
                    let absent = Absent { name: contestant.name(), why: error.to_string() };
                    if outcome.absent.iter().all(|known| known.name != absent.name) {
                        outcome.absent.push(absent);
                    }
                    outcome.errors.push(error);
                }
            }
        }
        jobs
    }

    fn compare_contestants(
        &self,
        jobs: &mut TargetJobs,
        comparison: &Comparison,
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        // Parts of absent contestants have no turns.
        let jobs_of_parts: Vec<Option<usize>> =
            comparison.parts.iter().map(|part| jobs.index_of(part)).collect();
        let present =
            || comparison.parts.iter().zip(&jobs_of_parts).filter_map(|(part, job)| Some((part, (*job)?)));
        let entries: Vec<Entry> =
            present().map(|(part, job)| Entry { job, case: part.1, octets: part.2 }).collect();
        // JIT compilers of many JVMs share few processors.
        let crowding = comparison.ranks.div_ceil(contestant::processors().max(1));
        let compiled_after = contest::COMPILED_AFTER * crowding;
        let pace = Pace { compiled_after, ..self.pace.beside(comparison.busy()) };
        let ContestResult { samples, others } = contest::contest(&mut jobs.jobs, &entries, pace, self.stop)?;
        let compared = compare(&samples);
        outcome
            .rows
            .extend(contest::rows(&entries, &jobs.jobs, &compared).into_iter().map(|row| row.beside(others)));
        let mut turns = samples.into_iter();
        let samples: Vec<Vec<Sample>> =
            jobs_of_parts.iter().map(|job| job.and_then(|_| turns.next()).unwrap_or_default()).collect();
        let compared = spread(compared, &samples);
        let figures = comparison.targets.iter().map(|target| target.evaluate(&compared, &samples));
        outcome.figures.extend(figures.map(|figure| Figure { others, ..figure }));
        Ok(())
    }

    /// Time from start to end of a job of empty Java programs, beside as many JVMs without mpjdev.
    fn start(&self) -> Result<Figure, BenchError> {
        let ranks = figures::JOB_RANKS;
        let java = |word: &str| {
            let mut words = contestant::java(self.tools, true);
            words.push(word.into());
            words
        };
        let launcher = self.tools.launcher.clone().into();
        let mut command: Vec<OsString> = vec![launcher, "run".into(), "-n".into(), ranks.to_string().into()];
        command.extend(java("empty"));
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..STARTS {
            let commands = [(&command, 1), (&java("nothing"), ranks)];
            for (samples, (words, count)) in samples.iter_mut().zip(commands) {
                let nanos = together(words, count)?.as_nanos() as f64;
                samples.push(Sample { nanos, ..Sample::default() });
            }
        }
        Ok(figures::START.evaluate(&compare(&samples), &samples))
    }

    /// Start-up time of many clients, and the share of one compared with its share among few.
    fn startup(&self) -> Result<[Figure; 2], BenchError> {
        let mut samples = [Vec::new(), Vec::new(), Vec::new()];
        let mut add = |at: usize, taken: Duration, by: u32| {
            let nanos = taken.as_nanos() as f64 / f64::from(by);
            samples[at].push(Sample { nanos, ..Sample::default() });
        };
        for _ in 0..STARTUPS {
            for (at, clients) in figures::CLIENTS.into_iter().enumerate() {
                let taken = startup::measure(&mut startup::server(&self.tools.launcher, clients), clients)?;
                add(at + 1, taken.all, clients);
                if at == 0 {
                    add(0, taken.beyond, 1);
                }
            }
        }
        Ok(figures::STARTUP.map(|target| target.evaluate(&compare(&samples), &samples)))
    }

    /// Memory of idle ranks, and of each pair that exchanges small messages.
    fn memory(&self, errors: &mut Vec<BenchError>) -> Result<Vec<Figure>, BenchError> {
        let ranks = figures::JOB_RANKS;
        let mut job = RunningJob::start(&Contestant::Rust(Transport::Shm), ranks, self.tools)?;
        let measure = |job: &RunningJob| memory_below(job.process()).map_err(BenchError::system("/proc"));
        let idle = measure(&job)?;
        job.run(RunCommand { case: Case::Alltoall, octets: 8, times: 1 })?;
        let used = measure(&job)?;
        errors.extend(RunningJob::end_all(vec![job]));
        let kib = |octets: u64, by: u32| octets as f64 / 1024.0 / f64::from(by);
        let pairs = ranks * (ranks - 1);
        Ok(vec![
            figures::IDLE.figure(Some(kib(idle.shared, ranks))),
            figures::PRIVATE.figure(Some(kib(idle.private, ranks))),
            figures::PAIR.figure(Some(kib(used.shared.saturating_sub(idle.shared), pairs))),
        ])
    }
}

/// The summaries of those with turns, at the jobs_of_parts of all.
fn spread(compared: Compared, samples: &[Vec<Sample>]) -> Compared {
    let mut given = compared.summaries.into_iter();
    let summaries =
        samples.iter().map(|s| if s.is_empty() { None } else { given.next().flatten() }).collect();
    Compared { summaries, ..compared }
}

/// Time from the start of `count` processes to the end of the last.
fn together(words: &[OsString], count: u32) -> Result<Duration, BenchError> {
    let name = words[0].to_string_lossy().into_owned();
    let begin = Instant::now();
    let start = |_| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).spawn()
    };
    let children: Vec<_> = (0..count).map(start).collect();
    let ended: Vec<_> =
        children.into_iter().map(|child| child.and_then(|mut child: Child| child.wait())).collect();
    let taken = begin.elapsed();
    for status in ended {
        let status = status.map_err(BenchError::system(name.clone()))?;
        if !status.success() {
            return Err(BenchError::Contestant { name, why: format!("it ended with {status}") });
        }
    }
    Ok(taken)
}
