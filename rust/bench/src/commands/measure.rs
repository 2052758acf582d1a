//! Measuring commands: messages between ranks, beside C programs and other peers.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use mpjdev_cli::commands::machine::java;
use mpjdev_cli::job::network;
use mpjdev_sim::Impairment;
use serde::Serialize;

use super::contestants::{PeerKind, Selection};
use super::workload::Workload;
use crate::BenchError;
use crate::chart;
use crate::contest::{self, Entry, Pace, Stop};
use crate::contestant::{Contestant, Folder, RunningJob, Tools, Transport};
use crate::counters;
use crate::environment::Environment;
use crate::figures::{self, Figure};
use crate::goodput;
use crate::impaired::{self, BadNetwork, Conditions, DatagramCounts};
use crate::installation::Installation;
use crate::netem::{Emulator, ImpairedPath};
use crate::outcome::compare;
use crate::peer::Peer;
use crate::protocol::Case;
use crate::report::{Absent, Row, size, table};
use crate::series::{self, Cliff};
use crate::targets::{Outcome, TargetRun};

/// Arguments of a measurement.
#[derive(Args, Debug)]
#[command(after_help = "\
All contestants run at the same time and take turns; only one works at any moment. Between turns the time of a \
bare cache line from one processor to another is measured. On virtual processors it may change within seconds, so \
only turns of the same mode (less than 100 ns, or more) are compared. 'mixed' means that no mode has enough turns. \
Times are medians. The last column is the number of processors that other programs used meanwhile. If it is not \
about 0, ranks waited for a processor, and the times say little.

  mpjdev-bench pingpong
  mpjdev-bench figures --time 2 --jobs 5
  mpjdev-bench series --transport tcp --save series-tcp.json
  mpjdev-bench bandwidth --transport shm --java --sizes 64k,1m,16m --svg bandwidth.svg
  mpjdev-bench pingpong --transport tcp
  mpjdev-bench bandwidth --transport udp --impair loss=1%,dup=1%,reorder=16
  mpjdev-bench goodput --impair loss=1%,delay=5ms,rate=100mbit

Over UDP a second table has the counters of the ranks in the measured turns. With --impair all datagrams of the \
ranks pass a relay, which is slow, and which impairs them each way. The impairment has parts with commas between:
  loss=P         loses each datagram with chance P, such as 1%
  burst=P/Q      begins a burst with chance P and ends it with chance Q at each datagram; a burst loses all
                 datagrams, such as 0.1%/30%
  dup=P          duplicates a datagram with chance P
  reorder=N[/P]  lets up to N later datagrams overtake one, with chance P (default 10%)
  delay=T        delays each datagram, such as 5ms or 100us
  jitter=T       adds a random delay of up to T
  rate=R         limits the rate in bits per second, such as 100mbit
  queue=N        limits the packets that wait for the rate (default 256); more are dropped
  partition=T/U  drops all datagrams from time T on for time U, such as 1s/500ms
Every message is filled and checked then, which is part of its time. With a rate, a delay or --link-rate the ranks \
treat the path as inter-node: datagrams have 1472 octets, and the ranks send with congestion control or at the \
rate of the link. Otherwise they send as within a machine.

The baseline is what one thread in each of two ranks that trust each other reaches over shared memory, from Java, \
with buffers, headers and tags. It lacks checks of the peer, credit, sleep, requests and more threads.

Series measures one case and size after the other. If the times of neighbouring sizes are more than 1.6 x apart, \
both are measured again by turns, and the second times count. A step that remains is a cliff. Sizes of --sizes \
are neighbours if they are as close as those of the default. With --peer that peer has a series too. With --peer \
and --transport mpi only the ranks over that MPI are measured.

With --jobs N each figure of two ranks is the median of N jobs, one after the other. Figures of more ranks are \
medians of at least nine jobs.

Aeron's media driver is embedded in its ranks and has no thread of its own (threading mode INVOKER). A rank that \
polls without success runs the driver and polls again without sleep. On two processors a thread of the driver \
would take a processor from a rank, and from other contestants between the turns.

Goodput is measured between network namespaces, which requires root. The network between them is impaired by the \
kernel (netem) or, without netem, by a relay of this process between two interfaces (/dev/net/tun).

Exit status: 0 measured, 1 something failed, 2 wrong usage, or something that was requested is missing.")]
pub struct Measure {
    /// Workload, which the name of the command selects
    #[arg(skip = Workload::Pingpong)]
    what: Workload,

    /// Number of ranks [default: 2; for ring and alltoall 4]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=256))]
    ranks: Option<u32>,

    /// Transports of the ranks [default: local,shm; for series, baseline and mpj shm; for
    /// figures shm,tcp,udp,mpi]
    #[arg(long, value_enum, value_delimiter = ',')]
    transport: Vec<Transport>,

    /// Measure ranks in Java too
    #[arg(long)]
    java: bool,

    /// Impair the network, see below; with pingpong, bandwidth, rate and goodput [default: for goodput
    /// loss=1%,delay=5ms,rate=100mbit]
    #[arg(long, value_name = "PARTS", conflicts_with_all = ["java", "peer"])]
    impair: Option<Impairment>,

    /// Seed of the random numbers for --impair
    #[arg(long, value_name = "N", requires = "impair", default_value_t = 1)]
    seed: u64,

    /// With --impair: declared rate of the link, as the option of mpjrun
    #[arg(long, value_name = "RATE", requires = "impair", value_parser = network::rate)]
    link_rate: Option<NonZeroU32>,

    /// Class path of the Java benchmarks [default: the jars of the installation]
    #[arg(long, value_name = "PATH")]
    class_path: Option<OsString>,

    /// Library of the baseline [default: libmpjdev_baseline.so of the installation]
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Peers to compare with [default: those that are installed; baseline and aeron only beside Java]
    #[arg(long, value_enum, value_delimiter = ',')]
    peer: Vec<PeerKind>,

    /// Compare with no peer
    #[arg(long, conflicts_with = "peer")]
    no_peer: bool,

    /// With pingpong: measure beside N busy threads, time each trip, and report mean and median
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    #[arg(conflicts_with = "impair")]
    busy: Option<u32>,

    /// Octets of a message: multiples of 8, with k, m or g as units
    #[arg(long, value_delimiter = ',', value_parser = octets)]
    sizes: Vec<u64>,

    /// Seconds for each contestant and size, after a warm-up of the same length; for goodput seconds of each
    /// stream [default: 0.5; for series 0.25; for goodput 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,

    /// With figures: jobs whose medians the figures are; rings take nine at least
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=99))]
    jobs: u8,

    /// With goodput: emulator of the impairment [default: netem if the kernel has it, else relay]
    #[arg(long, value_enum)]
    by: Option<Emulator>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// Write the JSON to a file too
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Draw time and bandwidth over the size to a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Results of a command.
#[derive(Default, Serialize)]
struct Measurements {
    /// Environment of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
    /// Jobs whose medians the figures are.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<u8>,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<Figure>,
    /// Cliffs of a series.
    #[serde(skip_serializing_if = "Option::is_none")]
    cliffs: Option<Vec<Cliff>>,
    /// Contestants that could not be started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<Absent>,
    /// Counts of the datagrams that passed an impaired network.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<DatagramCounts>,
    /// Errors that did not prevent other measurements.
    #[serde(skip)]
    errors: Vec<BenchError>,
}

impl Measure {
    /// Measures, prints the results and returns the exit status.
    pub fn run(mut self, what: Workload) -> ExitCode {
        self.what = what;
        let printed = self.check().and_then(|()| match self.what {
            Workload::Goodput => self.goodput(),
            _ => self.measure_and_print(),
        });
        match printed {
            Ok(is_complete) => ExitCode::from(u8::from(!is_complete)),
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::from(if matches!(error, BenchError::Missing(_)) { crate::UNUSABLE } else { 1 })
            }
        }
    }

    /// Returns whether no contestant failed.
    fn measure_and_print(&self) -> Result<bool, BenchError> {
        self.measure().and_then(|measured| {
            self.print_results(&measured)?;
            measured.errors.iter().for_each(|error| eprintln!("mpjdev-bench: {error}"));
            Ok(measured.errors.is_empty())
        })
    }

    /// Checks that the options fit together.
    fn check(&self) -> Result<(), BenchError> {
        if self.what != Workload::Goodput && self.by.is_some() {
            return Err(BenchError::Missing("--by requires goodput".into()));
        }
        if self.what != Workload::Pingpong && self.busy.is_some() {
            return Err(BenchError::Missing("--busy requires pingpong".into()));
        }
        if !matches!(self.what, Workload::Figures | Workload::Mpj) && self.jobs > 1 {
            return Err(BenchError::Missing("--jobs requires figures or mpj".into()));
        }
        if self.what == Workload::Series && (self.ranks.is_some() || self.impair.is_some()) {
            return Err(BenchError::Missing(
                "series measures two ranks: -n and --impair are not allowed".into(),
            ));
        }
        let has_foreign_options = self.ranks.is_some()
            || self.link_rate.is_some()
            || self.java
            || self.no_peer
            || self.svg.is_some()
            || !(self.transport.is_empty() && self.peer.is_empty() && self.sizes.is_empty());
        if self.what == Workload::Goodput && has_foreign_options {
            let why = "goodput allows only --time, --impair, --seed, --by, --json and --save";
            return Err(BenchError::Missing(why.into()));
        }
        Ok(())
    }

    fn goodput(&self) -> Result<bool, BenchError> {
        let time = self.time.unwrap_or(STREAM);
        let impairment = self.impair.map_or_else(|| BAD.parse(), Ok);
        let impairment = impairment.map_err(|error| BenchError::Missing(format!("{error}")))?;
        let (seed, stop) = (self.seed, stop_at_signals()?);
        let probed = ImpairedPath::new(impairment, seed, self.by)?;
        if let Some(why) = probed.why_no_netem() {
            eprintln!("mpjdev-bench: a relay of this process impairs the network, since {why}");
        }
        let emulator = probed.emulator();
        drop(probed);
        let run = goodput::GoodputRun { impairment, seed, emulator, time, stop: &stop };
        let measured = run.run(&|what| eprintln!("mpjdev-bench: {what}"))?;
        let own = env::current_exe().map_err(BenchError::system("this program"))?;
        let measured = measured.with_environment(Environment::now(env::args_os(), &own, &java()));
        let json = self.save(&measured)?;
        let text = if self.json { json } else { measured.table() };
        print(&text).map(|()| true)
    }

    /// Returns the JSON, and writes it to the file of --save.
    fn save(&self, measured: &impl Serialize) -> Result<String, BenchError> {
        let json = serde_json::to_string_pretty(measured).map_err(io::Error::from);
        let json = json.map_err(BenchError::system("JSON"))? + "\n";
        if let Some(file) = &self.save {
            std::fs::write(file, &json).map_err(BenchError::system(file.display().to_string()))?;
        }
        Ok(json)
    }

    fn print_results(&self, measured: &Measurements) -> Result<(), BenchError> {
        let json = self.save(measured)?;
        if let Some(file) = &self.svg
            && let Some(picture) =
                chart::draw(self.what.title(), &measured.rows).map_err(BenchError::system("the chart"))?
        {
            std::fs::write(file, picture).map_err(BenchError::system(file.display().to_string()))?;
        }
        let text = match self.what {
            _ if self.json => json,
            Workload::Figures | Workload::Mpj => figures::table(&measured.figures),
            Workload::Series => series::text(&measured.rows, measured.cliffs.as_deref().unwrap_or_default()),
            _ => self.text(measured),
        };
        print(&text)
    }

    fn text(&self, measured: &Measurements) -> String {
        let counts = measured.network.as_ref().map_or_else(String::new, |counts| format!("\n{counts}"));
        table(&measured.rows, &measured.absent, self.what.unit()) + &counters::table(&measured.rows) + &counts
    }

    fn measure(&self) -> Result<Measurements, BenchError> {
        if env::var_os(mpjdev_bootstrap::control::CONTROL).is_some() {
            return Err(BenchError::Missing(
                "this process is a rank of a job; mpjdev-bench starts its own ranks".into(),
            ));
        }
        let is_plain = self.ranks.is_none() && self.sizes.is_empty() && self.svg.is_none();
        let is_of_targets = matches!(self.what, Workload::Figures | Workload::Mpj);
        if is_of_targets && !is_plain {
            let why = "figures and mpj have their own ranks and sizes: -n, --sizes and --svg are not allowed";
            return Err(BenchError::Missing(why.into()));
        }
        if self.what == Workload::Mpj && self.transport.contains(&Transport::Mpi) {
            return Err(BenchError::Missing("mpj is for the transports local, shm, tcp and udp".into()));
        }
        if self.what == Workload::Figures && self.transport.contains(&Transport::Local) {
            return Err(BenchError::Missing("figures are for the transports shm, tcp, udp and mpi".into()));
        }
        let tools = self.tools()?;
        let stop = stop_at_signals()?;
        if is_of_targets {
            return self.figures(&tools, &stop);
        }
        if self.what == Workload::Series {
            return self.series(&tools, &stop);
        }
        let ranks = self.ranks.unwrap_or(self.what.ranks());
        let network = self.network(ranks)?;
        let contestants = match &network {
            Some(network) => vec![Contestant::Relayed(network.relayed_path())],
            None => self.selection().contestants(&tools)?,
        };
        let (mut jobs, mut measured) = self.start(&contestants, ranks, &tools)?;
        let sizes = if self.sizes.is_empty() { self.what.sizes() } else { &self.sizes };
        // Through an impaired network messages are checked, which is possible from array to array only.
        let is_asked = |case: &&Case| network.is_none() || matches!(case, Case::Arrays | Case::RateArrays);
        let cases = if self.busy.is_some() { &[Case::Timed] } else { self.what.cases() };
        for case in cases.iter().filter(is_asked) {
            for octets in sizes {
                if network.is_some() {
                    eprintln!("mpjdev-bench: measuring {} of {}", case.title(), size(*octets));
                }
                measured.rows.push(self.row(&mut jobs, *case, *octets, &stop)?);
            }
        }
        measured.errors.extend(RunningJob::end_all(jobs));
        measured.network = network.map(BadNetwork::end).transpose()?;
        Ok(measured)
    }

    /// The impaired network of --impair.
    fn network(&self, ranks: u32) -> Result<Option<BadNetwork>, BenchError> {
        let Some(impairment) = self.impair else { return Ok(None) };
        if !self.what.is_of_two() || self.transport[..] != [Transport::Udp] {
            let why = "--impair is for pingpong, bandwidth and rate with --transport udp alone";
            return Err(BenchError::Missing(why.into()));
        }
        if ranks > impaired::RANKS_MAX {
            let why = format!("an impaired network has {} ranks at most", impaired::RANKS_MAX);
            return Err(BenchError::Missing(why));
        }
        let conditions = Conditions { impairment, seed: self.seed, link_rate: self.link_rate };
        BadNetwork::new(conditions, ranks).map(Some)
    }

    /// Starts contestants. Absent ones are named, and the others are measured.
    fn start(
        &self,
        contestants: &[Contestant],
        ranks: u32,
        tools: &Tools,
    ) -> Result<(Vec<RunningJob>, Measurements), BenchError> {
        let (mut jobs, mut measured) = (Vec::new(), Measurements::default());
        for contestant in contestants {
            match RunningJob::start(contestant, ranks, tools) {
                Ok(job) => jobs.push(job),
                Err(error) => {
                    measured.absent.push(Absent { name: contestant.name(), why: error.to_string() });
                    measured.errors.push(error);
                }
            }
        }
        match measured.errors.pop() {
            Some(error) if jobs.is_empty() => Err(error),
            last => {
                measured.errors.extend(last);
                Ok((jobs, measured))
            }
        }
    }

    fn figures(&self, tools: &Tools, stop: &Stop) -> Result<Measurements, BenchError> {
        let transports = self.transports();
        // Over UDP no C program takes part. MPICH takes part beside ranks over MPICH only.
        let theirs = match transports {
            [Transport::Udp] => &[][..],
            _ if transports.contains(&Transport::Mpi) => &Peer::ALL,
            _ => &Peer::ALL[..1],
        };
        let programs = self.selection().programs(tools, theirs)?;
        let pace = Pace::of(self.time.unwrap_or(TURNS));
        let jobs = usize::from(self.jobs);
        let run = TargetRun { tools, transports, peers: &programs, pace, jobs, stop };
        let progress = |title: &str| eprintln!("mpjdev-bench: measuring {title}");
        let outcome = if self.what == Workload::Mpj { run.run_mpj(&progress) } else { run.run(&progress) }?;
        let Outcome { rows, figures, absent, errors } = outcome;
        let environment = Some(Environment::now(env::args_os(), &tools.own, &tools.java));
        let jobs = Some(self.jobs);
        Ok(Measurements { environment, jobs, rows, figures, absent, errors, ..Measurements::default() })
    }

    fn series(&self, tools: &Tools, stop: &Stop) -> Result<Measurements, BenchError> {
        let mut contestants = self.selection().contestants(tools)?;
        contestants.retain(|contestant| match contestant {
            Contestant::Java(_) | Contestant::JavaOver(_) => true,
            Contestant::C(_) | Contestant::Baseline | Contestant::Aeron(_) => !self.peer.is_empty(),
            _ => false,
        });
        let (mut jobs, mut measured) = self.start(&contestants, self.what.ranks(), tools)?;
        let mut sizes = if self.sizes.is_empty() { series::sizes() } else { self.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        let pace = Pace::of(self.time.unwrap_or(SERIES));
        let progress = |what: &str| eprintln!("mpjdev-bench: measuring {what}");
        let (rows, cliffs) = series::run(&mut jobs, &sizes, pace, stop, &progress)?;
        measured.errors.extend(RunningJob::end_all(jobs));
        let environment = Some(Environment::now(env::args_os(), &tools.own, &tools.java));
        Ok(Measurements { environment, rows, cliffs: Some(cliffs), ..measured })
    }

    fn row(&self, jobs: &mut [RunningJob], case: Case, octets: u64, stop: &Stop) -> Result<Row, BenchError> {
        let takes = |job: &usize| jobs[*job].takes(octets);
        let entries: Vec<Entry> =
            (0..jobs.len()).filter(takes).map(|job| Entry { job, case, octets }).collect();
        let pace = Pace::of(self.time.unwrap_or(TURNS)).beside(self.busy.unwrap_or(0));
        let pace = Pace { reports_progress: self.impair.is_some(), ..pace };
        let turns = contest::contest(jobs, &entries, pace, stop)?;
        let names: Vec<String> = entries.iter().map(|entry| jobs[entry.job].name().to_owned()).collect();
        let ranks = jobs.first().map_or(0, RunningJob::size);
        Ok(Row::new(case, octets, ranks, &names, compare(&turns.samples)).beside(turns.others))
    }

    fn tools(&self) -> Result<Tools, BenchError> {
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let is_java = self.selection().is_java
            || self.peer.iter().any(|peer| [PeerKind::Baseline, PeerKind::Aeron].contains(peer));
        let class_path = match installation.java_class_path(self.class_path.as_ref()) {
            Err(error) if is_java => return Err(error),
            class_path => class_path.unwrap_or_default(),
        };
        let aeron = self.aeron(&installation, &class_path)?;
        let baseline = self.baseline(&installation)?;
        let (own, launcher) = (installation.program().to_owned(), installation.launcher());
        Ok(Tools { folder: Folder::new()?, own, launcher, java: java(), class_path, aeron, baseline })
    }

    fn selection(&self) -> Selection<'_> {
        let is_of_figures = self.what == Workload::Figures;
        // Ranks over an MPI need the launcher of a program.
        let is_series_alone = self.what == Workload::Series
            && self.peer.is_empty()
            && !self.transports().contains(&Transport::Mpi);
        Selection {
            transports: self.transports(),
            is_java: self.java
                || matches!(
                    self.what,
                    Workload::Figures | Workload::Baseline | Workload::Series | Workload::Mpj
                ),
            // Plain sockets, the baseline and Aeron do not time single trips.
            is_of_two: self.what.is_of_two() && self.busy.is_none() || is_of_figures,
            peers: &self.peer,
            has_no_peers: self.no_peer || self.impair.is_some() || is_series_alone,
        }
    }

    /// The requested transports, or the defaults of the workload.
    fn transports(&self) -> &[Transport] {
        match self.what {
            _ if !self.transport.is_empty() => &self.transport,
            Workload::Figures => &figures::TRANSPORTS,
            Workload::Baseline | Workload::Series | Workload::Mpj => &[Transport::Shm],
            _ => &[Transport::Local, Transport::Shm],
        }
    }

    /// Additions to the class path for Aeron, if it takes part.
    fn aeron(&self, installation: &Installation, class_path: &OsStr) -> Result<Option<OsString>, BenchError> {
        if !self.selection().wants_aeron()? {
            return Ok(None);
        }
        let is_aeron = |entry: &Path| {
            entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("aeron-all"))
        };
        let is_named = env::split_paths(class_path).any(|entry| is_aeron(&entry));
        let found = if is_named { Some(OsString::new()) } else { installation.aeron() };
        let why =
            "Aeron is not installed: ./gradlew installBench installs it if a Maven repository is reachable";
        self.present(found, why)
    }

    /// Library of the baseline, if it takes part.
    fn baseline(&self, installation: &Installation) -> Result<Option<PathBuf>, BenchError> {
        if !self.selection().wants_baseline()? {
            return Ok(None);
        }
        let found = self.baseline.clone().or_else(|| installation.baseline());
        self.present(found, "the baseline is not installed: use ./gradlew installBench or --baseline")
    }

    /// A peer that was found. A requested peer must be installed.
    fn present<T>(&self, found: Option<T>, why: &str) -> Result<Option<T>, BenchError> {
        match found {
            None if !self.peer.is_empty() => return Err(BenchError::Missing(why.into())),
            None => eprintln!("mpjdev-bench: {why}"),
            Some(_) => {}
        }
        Ok(found)
    }
}

pub(super) fn print(text: &str) -> Result<(), BenchError> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(BenchError::system("standard output")),
    }
}

/// A flag that SIGINT and SIGTERM set, so that the contestants are ended in order.
pub(super) fn stop_at_signals() -> Result<Arc<Stop>, BenchError> {
    let stop = Arc::new(Stop::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let registered = signal_hook::flag::register(signal, stop.clone());
        registered.map_err(BenchError::system("a signal"))?;
    }
    Ok(stop)
}

/// Octets of a message of doubles.
fn octets(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| "not a number of octets".to_owned())?;
    match number.checked_mul(1 << shift) {
        Some(octets) if octets % 8 == 0 && (8..=OCTETS_MAX).contains(&octets) => Ok(octets),
        _ => Err(format!("a multiple of 8 from 8 to {OCTETS_MAX} is needed")),
    }
}

/// Default impairment of a network.
const BAD: &str = "loss=1%,delay=5ms,rate=100mbit";
/// Default time of each contestant.
const TURNS: Duration = Duration::from_millis(500);
/// Default time of each size of a series.
const SERIES: Duration = Duration::from_millis(250);
/// Default time of a stream, whose rate is steady after many round trips.
const STREAM: Duration = Duration::from_secs(10);

/// Length limit of a message. Two messages must fit the memory limit of a contestant.
const OCTETS_MAX: u64 = 256 << 20;

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds from 0 to 3600".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        assert_eq!(["8", "1k", "64K", "16m"].map(octets), [Ok(8), Ok(1024), Ok(65_536), Ok(16 << 20)]);
        for nonsense in ["", "k", "7", "0", "-8", "1g", "99999999999999999999", "8 k", "ä"] {
            assert!(octets(nonsense).is_err(), "{nonsense}");
        }
    }
}
