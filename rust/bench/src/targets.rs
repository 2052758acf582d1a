//! Run of all targets: the contestants of each group take turns, and each figure is held against its limit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::BenchError;
use super::contest::{self, Entry, Pace, Stop, Turns};
use super::contestant::{self, Contestant, RunningJob, Tools, Transport};
use super::copies;
use super::figures::{self, GROUPS, Group, Held, Part, Trial, Who};
use super::memory::{held_below, private_below};
use super::outcome::{Compared, Sample, compare};
use super::peer::{Peer, Program};
use super::protocol::{Case, Order};
use super::report::{Absent, Row};
use super::startup;

/// Measurements of the start and the end of a job.
const STARTS: usize = 5;

/// And the start-up of clients, which takes some milliseconds.
const STARTUPS: usize = 15;

/// All that is needed for it.
#[derive(Debug)]
pub struct TargetRun<'a> {
    /// Programs that contestants are started from.
    pub tools: &'a Tools,
    /// The transports whose figures are asked for.
    pub transports: &'a [Transport],
    /// The C program under the MPIs that are installed, Open MPI first.
    pub peers: &'a [Program],
    /// Durations of a measurement.
    pub pace: Pace,
    /// Set when all this is to end.
    pub stop: &'a Stop,
}

/// Results of a trial.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The figures.
    pub held: Vec<Held>,
    /// All that took turns.
    pub rows: Vec<Row>,
    /// Contestants that could not be started.
    pub absent: Vec<Absent>,
    /// Errors that did not keep the others from being measured.
    pub complaints: Vec<BenchError>,
}

/// Contestants that have been started, and their parts.
struct TargetJobs {
    parts: Vec<Who>,
    jobs: Vec<RunningJob>,
}

impl TargetJobs {
    /// Index of the job with this part.
    fn index_of(&self, part: &Part) -> Option<usize> {
        self.parts.iter().position(|who| *who == part.0)
    }
}

impl TargetRun<'_> {
    /// All figures. `tell` gets the name of each measurement.
    ///
    /// # Errors
    /// A contestant fails, or it is to stop.
    pub fn run(&self, tell: &dyn Fn(&str)) -> Result<Outcome, BenchError> {
        let mut outcome = Outcome::default();
        let is_asked = |transport| self.transports.contains(&transport);
        for group in GROUPS.iter().filter(|group| is_asked(group.transport)) {
            if group.transport == Transport::Mpi {
                self.over_each_mpi(group, tell, &mut outcome)?;
            } else {
                let open_mpi = self.peers.iter().find(|program| program.peer() == Peer::OpenMpi);
                self.group(group, open_mpi, tell, &mut outcome)?;
            }
        }
        if is_asked(Transport::Shm) {
            tell(figures::START.title);
            outcome.held.push(self.start()?);
            tell(figures::IDLE.title);
            outcome.held.extend(self.memory(&mut outcome.complaints)?);
            tell(figures::COPIES[0].title);
            let copies = copies::measure()?;
            outcome.held.extend(figures::COPIES.map(|asked| asked.hold(&compare(&copies), &copies)));
        }
        if is_asked(Transport::Tcp) {
            tell(figures::STARTUP[0].title);
            let held = self.startup().unwrap_or_else(|error| {
                outcome.absent.push(Absent { name: startup::NAME.into(), why: error.to_string() });
                outcome.complaints.push(error);
                figures::STARTUP.map(|asked| asked.value(None))
            });
            outcome.held.extend(held);
        }
        Ok(outcome)
    }

    fn over_each_mpi(
        &self,
        group: &Group,
        tell: &dyn Fn(&str),
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        for program in self.peers {
            let first = outcome.held.len();
            let tell_whose = |title: &str| tell(&format!("{}, {title}", program.peer()));
            self.group(group, Some(program), &tell_whose, outcome)?;
            tell_whose(figures::BEYOND.title);
            let beyond = self.memory_beyond(program, &mut outcome.complaints)?;
            outcome.held.push(figures::BEYOND.value(Some(beyond)));
            for held in &mut outcome.held[first..] {
                held.title = format!("{}, {}", program.peer(), held.title);
            }
        }
        Ok(())
    }

    /// KiB that each rank in Rust over an MPI holds for itself beyond what one in C holds, when both have
    /// done the same.
    fn memory_beyond(&self, program: &Program, complaints: &mut Vec<BenchError>) -> Result<f64, BenchError> {
        const RANKS: u32 = 2;
        let program = program.over(Transport::Mpi).unwrap_or_else(|| program.clone());
        let mut private = [0.0; 2];
        for (at, contestant) in
            [Contestant::RustOver(program.clone()), Contestant::C(program)].into_iter().enumerate()
        {
            let mut job = RunningJob::start(&contestant, RANKS, self.tools)?;
            job.follow(Order { case: Case::Arrays, octets: 8, times: 100 })?;
            let held = private_below(job.process()).map_err(BenchError::system("/proc"))?;
            private[at] = held as f64 / 1024.0 / f64::from(RANKS);
            complaints.extend(RunningJob::end_all(vec![job]));
        }
        Ok(private[0] - private[1])
    }

    fn group(
        &self,
        group: &Group,
        peer: Option<&Program>,
        tell: &dyn Fn(&str),
        outcome: &mut Outcome,
    ) -> Result<(), BenchError> {
        let mut by_ranks: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
        group.trials.iter().for_each(|trial| by_ranks.entry(trial.ranks).or_default().push(trial));
        for (ranks, trials) in by_ranks {
            let jobs = if ranks > 2 { figures::CROWDED_JOBS } else { 1 };
            let (first, mut held) = (outcome.held.len(), Vec::new());
            for _ in 0..jobs {
                let mut started = self.start_jobs(group.transport, peer, ranks, outcome);
                for trial in &trials {
                    tell(trial.asked.first().map_or("", |asked| asked.title));
                    self.hold(&mut started, trial, outcome)?;
                }
                outcome.complaints.extend(RunningJob::end_all(started.jobs));
                held.push(outcome.held.split_off(first));
            }
            outcome.held.extend(figures::medians(held));
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
        let mut contestants = vec![(Who::Ours, ours)];
        match transport {
            Transport::Tcp => contestants.push((Who::Plain, Contestant::Sockets)),
            Transport::Udp => {
                contestants.push((Who::Plain, Contestant::Datagrams));
                contestants.push((Who::OverTcp, Contestant::Java(Transport::Tcp)));
            }
            Transport::Local | Transport::Shm | Transport::Mpi => {}
        }
        if ranks == 2 && transport == Transport::Shm && self.tools.baseline.is_some() {
            contestants.push((Who::Baseline, Contestant::Baseline));
        }
        let aeron_has_part = ranks == 2 && matches!(transport, Transport::Shm | Transport::Udp);
        if aeron_has_part && self.tools.aeron.is_some() {
            contestants.push((Who::Aeron, Contestant::Aeron(transport)));
        }
        // Its MPI knows no datagrams.
        let peer = peer.filter(|_| transport != Transport::Udp);
        contestants.extend(peer.map(|program| (Who::Theirs, Contestant::C(program))));
        let mut started = TargetJobs { parts: Vec::new(), jobs: Vec::new() };
        for (who, contestant) in contestants {
            match RunningJob::start(&contestant, ranks, self.tools) {
                Ok(job) => {
                    started.parts.push(who);
                    started.jobs.push(job);
                }
                Err(error) => {
                    let absent = Absent { name: contestant.name(), why: error.to_string() };
                    if outcome.absent.iter().all(|known| known.name != absent.name) {
                        outcome.absent.push(absent);
                    }
                    outcome.complaints.push(error);
                }
            }
        }
        started
    }

    fn hold(&self, started: &mut TargetJobs, trial: &Trial, outcome: &mut Outcome) -> Result<(), BenchError> {
        // Parts of absent contestants have no turns.
        let places: Vec<Option<usize>> = trial.parts.iter().map(|part| started.index_of(part)).collect();
        let present = || trial.parts.iter().zip(&places).filter_map(|(part, job)| Some((part, (*job)?)));
        let entries: Vec<Entry> =
            present().map(|(part, job)| Entry { job, case: part.1, octets: part.2 }).collect();
        // Many compilers on few processors need time.
        let crowding = trial.ranks.div_ceil(contestant::processors().max(1));
        let compiled_after = contest::COMPILED_AFTER * crowding;
        let pace = Pace { compiled_after, ..self.pace.beside(trial.busy()) };
        let Turns { samples, others } = contest::contest(&mut started.jobs, &entries, pace, self.stop)?;
        let compared = compare(&samples);
        outcome.rows.extend(
            contest::rows(&entries, &started.jobs, &compared).into_iter().map(|row| row.beside(others)),
        );
        let mut turns = samples.into_iter();
        let samples: Vec<Vec<Sample>> =
            places.iter().map(|job| job.and_then(|_| turns.next()).unwrap_or_default()).collect();
        let compared = spread(compared, &samples);
        let held = trial.asked.iter().map(|asked| asked.hold(&compared, &samples));
        outcome.held.extend(held.map(|figure| Held { others, ..figure }));
        Ok(())
    }

    /// The start and the end of a job of empty Java programs, against as many JVMs that do nothing.
    fn start(&self) -> Result<Held, BenchError> {
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
        Ok(figures::START.hold(&compare(&samples), &samples))
    }

    /// Start-up time of many clients, and the share of one compared with its share among few.
    fn startup(&self) -> Result<[Held; 2], BenchError> {
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
        Ok(figures::STARTUP.map(|asked| asked.hold(&compare(&samples), &samples)))
    }

    /// Memory of idle ranks, and of each pair that exchanges small messages.
    fn memory(&self, complaints: &mut Vec<BenchError>) -> Result<Vec<Held>, BenchError> {
        let ranks = figures::JOB_RANKS;
        let mut job = RunningJob::start(&Contestant::Rust(Transport::Shm), ranks, self.tools)?;
        let look = |job: &RunningJob| held_below(job.process()).map_err(BenchError::system("/proc"));
        let idle = look(&job)?;
        job.follow(Order { case: Case::Alltoall, octets: 8, times: 1 })?;
        let used = look(&job)?;
        complaints.extend(RunningJob::end_all(vec![job]));
        let kib = |octets: u64, by: u32| octets as f64 / 1024.0 / f64::from(by);
        let pairs = ranks * (ranks - 1);
        Ok(vec![
            figures::IDLE.value(Some(kib(idle.shared, ranks))),
            figures::PRIVATE.value(Some(kib(idle.private, ranks))),
            figures::PAIR.value(Some(kib(used.shared.saturating_sub(idle.shared), pairs))),
        ])
    }
}

/// The summaries of those with turns, at the places of all.
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
