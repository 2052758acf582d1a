//! Measuring commands: messages between ranks, beside a C program where there is an MPI.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use mpjdev_cli::commands::run::java;
use mpjdev_cli::job::network;
use mpjdev_proto::datagram::network::Impairment;
use serde::Serialize;

use super::contestants::{PeerKind, Selection};
use super::workload::Workload;
use crate::BenchError;
use crate::chart;
use crate::contest::{self, Entry, Pace, Stop};
use crate::contestant::{Contestant, Folder, RunningJob, Tools, Transport};
use crate::counters;
use crate::environment::Environment;
use crate::figures::{self, Held};
use crate::goodput;
use crate::impaired::{self, BadNetwork, Conditions, Fate};
use crate::installation::Installation;
use crate::netem::{Maker, Way};
use crate::outcome::compare;
use crate::peer::Peer;
use crate::protocol::Case;
use crate::report::{Absent, Row, size, table};
use crate::series::{self, Cliff};
use crate::targets::{Outcome, TargetRun};

/// Arguments of a measurement.
#[derive(Args, Debug)]
#[command(after_help = "All contestants run at the same time and take turns; only one works at any moment. \
How long a bare cache line takes from one processor to another is measured between turns. Where processors \
are virtual it may change within seconds, so only turns of the same mode (the line takes less than 100 ns, \
or more) are compared; 'mixed' says that no mode had enough of them. Times are medians. The last column says \
how many processors others used meanwhile: where that is not about 0, ranks had to wait for a processor, and \
the times say little.

  mpjdev-bench pingpong
  mpjdev-bench figures --time 2
  mpjdev-bench series --transport tcp --save series-tcp.json
  mpjdev-bench bandwidth --transport shm --java --sizes 64k,1m,16m --svg bandwidth.svg
  mpjdev-bench pingpong --transport tcp
  mpjdev-bench bandwidth --transport udp --impair loss=1%,dup=1%,reorder=16
  mpjdev-bench goodput --impair loss=1%,delay=5ms,rate=100mbit

Over datagrams a second table says what our ranks have counted in the turns that count. With --impair all \
their datagrams go through a relay, which is not fast, and does to them each way what is asked for, in parts \
with commas between:
  loss=P         each dies with this chance, such as 1%
  burst=P/Q      a burst begins with chance P and ends with chance Q, at each; in it all die, such as 0.1%/30%
  dup=P          one comes twice
  reorder=N[/P]  up to N later ones overtake one, with chance P, 10% if not said
  delay=T        how long it takes, such as 5ms or 100us
  jitter=T       up to so much longer
  rate=R         bits per second, such as 100mbit
  queue=N        packets that wait for the rate, at most, 256 by default; more are lost
  partition=T/U  from T on nothing passes, for U, such as 1s/500ms
Every message is checked then, and filling and checking is part of its time. With a rate, a delay or \
--link-rate ranks take the way for one between machines: with datagrams of 1472 octets and with congestion \
control, or at the rate of the link. Else they send as within a machine.

The baseline is what one thread in each of two ranks that trust each other reaches over shared memory, from \
Java, with buffers, headers and tags: without checks of the peer, credit, sleep, requests and more threads.

Series measures one case and size after the other. Neighbouring sizes whose times are more than 1.6 x \
apart are measured once more, by turns, and the second times count: what is still that far apart is a cliff. \
Sizes from --sizes are neighbours if they are as close. With --peer that peer has a series too, and over an \
MPI its ranks are those of that MPI alone.

Aeron's media driver is embedded in its ranks and has no thread of its own (threading mode INVOKER): a rank \
that polls without success runs it, and polls again without sleep. On two processors a driver's thread would \
take one from a rank, and from other contestants between the turns.

Goodput is measured between network namespaces, which this process must be allowed to make (root), through a \
network that is made bad by the kernel (netem) or, where it cannot, by a relay of this process between two \
interfaces (/dev/net/tun).

Exit status: 0 measured, 1 something failed, 2 wrong usage, or something that was asked for is not there.")]
pub struct Measure {
    /// Measurement: the command has its name
    #[arg(skip = Workload::Pingpong)]
    what: Workload,

    /// Number of ranks [default: 2; of ring and alltoall 4]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=256))]
    ranks: Option<u32>,

    /// Transports of our ranks [default: local,shm; of series and baseline shm; of figures
    /// shm,tcp,udp,mpi]
    #[arg(long, value_enum, value_delimiter = ',')]
    transport: Vec<Transport>,

    /// Measure the Java counterpart too
    #[arg(long)]
    java: bool,

    /// Send datagrams through a network that does this to them, see below; of pingpong, bandwidth and rate,
    /// and of goodput [default: of goodput loss=1%,delay=5ms,rate=100mbit]
    #[arg(long, value_name = "PARTS", conflicts_with_all = ["java", "peer"])]
    impair: Option<Impairment>,

    /// Seed of the random numbers for --impair
    #[arg(long, value_name = "N", requires = "impair", default_value_t = 1)]
    seed: u64,

    /// With --impair: the rate at which datagrams leave, as mpjrun has it
    #[arg(long, value_name = "RATE", requires = "impair", value_parser = network::rate)]
    link_rate: Option<NonZeroU32>,

    /// Class path of the Java counterpart [default: mpjdev-bench.jar and mpjdev.jar of the installation]
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

    /// Of pingpong: measure beside this number of busy threads; each trip is timed, and mean and median are
    /// reported
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    #[arg(conflicts_with = "impair")]
    busy: Option<u32>,

    /// Octets of a message: multiples of 8, also with k, m, g
    #[arg(long, value_delimiter = ',', value_parser = octets)]
    sizes: Vec<u64>,

    /// Seconds for each contestant and size, and as many before to warm it up; of goodput for each stream
    /// [default: 0.5; of series 0.25; of goodput 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,

    /// Of goodput: what makes the network bad [default: netem where the kernel has it, else relay]
    #[arg(long, value_enum)]
    by: Option<Maker>,

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

/// All that was measured.
#[derive(Default, Serialize)]
struct Whole {
    /// Environment of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Environment>,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<Held>,
    /// Of a series.
    #[serde(skip_serializing_if = "Option::is_none")]
    cliffs: Option<Vec<Cliff>>,
    /// Contestants that could not be started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<Absent>,
    /// Counts of datagrams that went through a bad network.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Fate>,
    /// Errors that did not keep the others from being measured.
    #[serde(skip)]
    complaints: Vec<BenchError>,
}

impl Measure {
    /// Measures and tells; gives the exit status.
    pub fn run(mut self, what: Workload) -> ExitCode {
        self.what = what;
        let told = self.check().and_then(|()| match self.what {
            Workload::Goodput => self.goodput(),
            _ => self.measure_and_tell(),
        });
        match told {
            Ok(well) => ExitCode::from(u8::from(!well)),
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
                ExitCode::from(if matches!(error, BenchError::Missing(_)) { crate::UNUSABLE } else { 1 })
            }
        }
    }

    /// Whether all went well.
    fn measure_and_tell(&self) -> Result<bool, BenchError> {
        self.measure().and_then(|whole| {
            self.tell(&whole)?;
            whole.complaints.iter().for_each(|complaint| eprintln!("mpjdev-bench: {complaint}"));
            Ok(whole.complaints.is_empty())
        })
    }

    /// Checks that the options fit together.
    fn check(&self) -> Result<(), BenchError> {
        if self.what != Workload::Goodput && self.by.is_some() {
            return Err(BenchError::Missing("--by is of goodput".into()));
        }
        if self.what != Workload::Pingpong && self.busy.is_some() {
            return Err(BenchError::Missing("--busy is of pingpong".into()));
        }
        if self.what == Workload::Series && (self.ranks.is_some() || self.impair.is_some()) {
            return Err(BenchError::Missing("series is of two ranks: without -n and --impair".into()));
        }
        let is_of_others = self.ranks.is_some()
            || self.link_rate.is_some()
            || self.java
            || self.no_peer
            || self.svg.is_some()
            || !(self.transport.is_empty() && self.peer.is_empty() && self.sizes.is_empty());
        if self.what == Workload::Goodput && is_of_others {
            let why = "goodput has contestants and sizes of its own: with --time, --impair, --seed, --by, \
                       --json, --save alone";
            return Err(BenchError::Missing(why.into()));
        }
        Ok(())
    }

    fn goodput(&self) -> Result<bool, BenchError> {
        let time = self.time.unwrap_or(STREAM);
        let impairment = self.impair.map_or_else(|| BAD.parse(), Ok);
        let impairment = impairment.map_err(|error| BenchError::Missing(format!("{error}")))?;
        let (seed, stop) = (self.seed, stop_at_signals()?);
        let trial = Way::new(impairment, seed, self.by)?;
        if let Some(why) = trial.why_no_netem() {
            eprintln!("mpjdev-bench: a relay of this process makes the network bad, since {why}");
        }
        let maker = trial.maker();
        drop(trial);
        let run = goodput::GoodputRun { impairment, seed, maker, time, stop: &stop };
        let measured = run.run(&|what| eprintln!("mpjdev-bench: {what}"))?;
        let json = self.save(&measured)?;
        let text = if self.json { json } else { measured.table() };
        print(&text).map(|()| true)
    }

    /// As JSON; to a file, too, if that is asked for.
    fn save(&self, measured: &impl Serialize) -> Result<String, BenchError> {
        let json = serde_json::to_string_pretty(measured).map_err(io::Error::from);
        let json = json.map_err(BenchError::system("JSON"))? + "\n";
        if let Some(file) = &self.save {
            std::fs::write(file, &json).map_err(BenchError::system(file.display().to_string()))?;
        }
        Ok(json)
    }

    fn tell(&self, whole: &Whole) -> Result<(), BenchError> {
        let json = self.save(whole)?;
        if let Some(file) = &self.svg
            && let Some(picture) =
                chart::draw(self.what.title(), &whole.rows).map_err(BenchError::system("the chart"))?
        {
            std::fs::write(file, picture).map_err(BenchError::system(file.display().to_string()))?;
        }
        let text = match self.what {
            _ if self.json => json,
            Workload::Figures => figures::table(&whole.figures),
            Workload::Series => series::text(&whole.rows, whole.cliffs.as_deref().unwrap_or_default()),
            _ => self.text(whole),
        };
        print(&text)
    }

    fn text(&self, whole: &Whole) -> String {
        let fate = whole.network.as_ref().map_or_else(String::new, |fate| format!("\n{fate}"));
        table(&whole.rows, &whole.absent, self.what.unit()) + &counters::table(&whole.rows) + &fate
    }

    fn measure(&self) -> Result<Whole, BenchError> {
        if env::var_os(mpjdev_bootstrap::control::CONTROL).is_some() {
            return Err(BenchError::Missing("this is a rank of a job; bench starts ranks of its own".into()));
        }
        let is_plain = self.ranks.is_none() && self.sizes.is_empty() && self.svg.is_none();
        if self.what == Workload::Figures && !is_plain {
            let why = "figures have ranks and sizes of their own: without -n, --sizes, --svg";
            return Err(BenchError::Missing(why.into()));
        }
        if self.what == Workload::Figures && self.transport.contains(&Transport::Local) {
            return Err(BenchError::Missing(
                "figures are of ranks over shm, over tcp, over udp and over mpi".into(),
            ));
        }
        let tools = self.tools()?;
        let stop = stop_at_signals()?;
        if self.what == Workload::Figures {
            return self.figures(&tools, &stop);
        }
        if self.what == Workload::Series {
            return self.series(&tools, &stop);
        }
        let ranks = self.ranks.unwrap_or(self.what.ranks());
        let network = self.network(ranks)?;
        let contestants = match &network {
            Some(network) => vec![Contestant::Relayed(network.passage())],
            None => self.selection().contestants(&tools)?,
        };
        let (mut jobs, mut whole) = self.start(&contestants, ranks, &tools)?;
        let sizes = if self.sizes.is_empty() { self.what.sizes() } else { &self.sizes };
        // Only what goes from array to array is checked.
        let is_asked = |case: &&Case| network.is_none() || matches!(case, Case::Arrays | Case::RateArrays);
        let cases = if self.busy.is_some() { &[Case::Timed] } else { self.what.cases() };
        for case in cases.iter().filter(is_asked) {
            for octets in sizes {
                if network.is_some() {
                    eprintln!("mpjdev-bench: measuring {} of {}", case.title(), size(*octets));
                }
                whole.rows.push(self.row(&mut jobs, *case, *octets, &stop)?);
            }
        }
        whole.complaints.extend(RunningJob::end_all(jobs));
        whole.network = network.map(BadNetwork::end).transpose()?;
        Ok(whole)
    }

    /// The bad network that is asked for.
    fn network(&self, ranks: u32) -> Result<Option<BadNetwork>, BenchError> {
        let Some(impairment) = self.impair else { return Ok(None) };
        if !self.what.is_of_two() || self.transport[..] != [Transport::Udp] {
            let why = "--impair is for pingpong, bandwidth and rate with --transport udp alone";
            return Err(BenchError::Missing(why.into()));
        }
        if ranks > impaired::RANKS_MAX {
            let why = format!("through a bad network go {} ranks at most", impaired::RANKS_MAX);
            return Err(BenchError::Missing(why));
        }
        let conditions = Conditions { impairment, seed: self.seed, link_rate: self.link_rate };
        BadNetwork::new(conditions, ranks).map(Some)
    }

    /// Starts contestants. Those that are not there are named, and the others are measured without them.
    fn start(
        &self,
        contestants: &[Contestant],
        ranks: u32,
        tools: &Tools,
    ) -> Result<(Vec<RunningJob>, Whole), BenchError> {
        let (mut jobs, mut whole) = (Vec::new(), Whole::default());
        for contestant in contestants {
            match RunningJob::start(contestant, ranks, tools) {
                Ok(job) => jobs.push(job),
                Err(error) => {
                    whole.absent.push(Absent { name: contestant.name(), why: error.to_string() });
                    whole.complaints.push(error);
                }
            }
        }
        match whole.complaints.pop() {
            Some(error) if jobs.is_empty() => Err(error),
            last => {
                whole.complaints.extend(last);
                Ok((jobs, whole))
            }
        }
    }

    fn figures(&self, tools: &Tools, stop: &Stop) -> Result<Whole, BenchError> {
        let transports = self.transports();
        // Open MPI has no part over datagrams, MPICH one beside ranks over it.
        let theirs = match transports {
            [Transport::Udp] => &[][..],
            _ if transports.contains(&Transport::Mpi) => &Peer::ALL,
            _ => &Peer::ALL[..1],
        };
        let programs = self.selection().programs(tools, theirs)?;
        let pace = Pace::of(self.time.unwrap_or(TURNS));
        let run = TargetRun { tools, transports, peers: &programs, pace, stop };
        let outcome = run.run(&|title| eprintln!("mpjdev-bench: measuring {title}"))?;
        let Outcome { rows, held, absent, complaints } = outcome;
        let environment = Some(Environment::now(env::args_os(), &tools.own, &tools.java));
        Ok(Whole { environment, rows, figures: held, absent, complaints, ..Whole::default() })
    }

    fn series(&self, tools: &Tools, stop: &Stop) -> Result<Whole, BenchError> {
        let mut contestants = self.selection().contestants(tools)?;
        contestants.retain(|contestant| match contestant {
            Contestant::Java(_) | Contestant::JavaOver(_) => true,
            Contestant::C(_) | Contestant::Baseline | Contestant::Aeron(_) => !self.peer.is_empty(),
            _ => false,
        });
        let (mut jobs, mut whole) = self.start(&contestants, self.what.ranks(), tools)?;
        let mut sizes = if self.sizes.is_empty() { series::sizes() } else { self.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        let pace = Pace::of(self.time.unwrap_or(SERIES));
        let tell = |what: &str| eprintln!("mpjdev-bench: measuring {what}");
        let (rows, cliffs) = series::run(&mut jobs, &sizes, pace, stop, &tell)?;
        whole.complaints.extend(RunningJob::end_all(jobs));
        let environment = Some(Environment::now(env::args_os(), &tools.own, &tools.java));
        Ok(Whole { environment, rows, cliffs: Some(cliffs), ..whole })
    }

    fn row(&self, jobs: &mut [RunningJob], case: Case, octets: u64, stop: &Stop) -> Result<Row, BenchError> {
        let takes = |job: &usize| jobs[*job].takes(octets);
        let entries: Vec<Entry> =
            (0..jobs.len()).filter(takes).map(|job| Entry { job, case, octets }).collect();
        let pace = Pace::of(self.time.unwrap_or(TURNS)).beside(self.busy.unwrap_or(0));
        let pace = Pace { tells: self.impair.is_some(), ..pace };
        let turns = contest::contest(jobs, &entries, pace, stop)?;
        let names: Vec<String> = entries.iter().map(|entry| jobs[entry.job].name().to_owned()).collect();
        let ranks = jobs.first().map_or(0, RunningJob::size);
        Ok(Row::new(case, octets, ranks, &names, compare(&turns.samples)).beside(turns.others))
    }

    fn tools(&self) -> Result<Tools, BenchError> {
        let installation = Installation::own().map_err(BenchError::system("this program"))?;
        let class_path = self.class_path.clone().or_else(|| installation.class_path()).unwrap_or_default();
        let is_there = env::split_paths(&class_path).any(|entry| entry.exists());
        let is_java = self.selection().is_java
            || self.peer.iter().any(|peer| [PeerKind::Baseline, PeerKind::Aeron].contains(peer));
        if is_java && !is_there {
            return Err(BenchError::Missing(format!(
                "no Java counterpart at '{}': --class-path names mpjdev-bench.jar and mpjdev.jar",
                class_path.display()
            )));
        }
        let aeron = self.aeron(&installation, &class_path)?;
        let baseline = self.baseline(&installation)?;
        let (own, launcher) = (installation.program().to_owned(), installation.launcher());
        Ok(Tools { folder: Folder::new()?, own, launcher, java: java(), class_path, aeron, baseline })
    }

    fn selection(&self) -> Selection<'_> {
        let is_of_figures = self.what == Workload::Figures;
        // Ranks over an MPI need the one that is there.
        let is_series_alone = self.what == Workload::Series
            && self.peer.is_empty()
            && !self.transports().contains(&Transport::Mpi);
        Selection {
            transports: self.transports(),
            is_java: self.java
                || matches!(self.what, Workload::Figures | Workload::Baseline | Workload::Series),
            // Plain sockets, the baseline and Aeron time no single trips.
            is_of_two: self.what.is_of_two() && self.busy.is_none() || is_of_figures,
            peers: &self.peer,
            is_alone: self.no_peer || self.impair.is_some() || is_series_alone,
        }
    }

    /// The transports that were asked for, or those that the workload has.
    fn transports(&self) -> &[Transport] {
        match self.what {
            _ if !self.transport.is_empty() => &self.transport,
            Workload::Figures => &figures::TRANSPORTS,
            Workload::Baseline | Workload::Series => &[Transport::Shm],
            _ => &[Transport::Local, Transport::Shm],
        }
    }

    /// Additions to the class path for Aeron, if it has a part.
    fn aeron(&self, installation: &Installation, class_path: &OsStr) -> Result<Option<OsString>, BenchError> {
        if !self.selection().wants_aeron()? {
            return Ok(None);
        }
        let is_aeron = |entry: &Path| {
            entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("aeron-all"))
        };
        let is_named = env::split_paths(class_path).any(|entry| is_aeron(&entry));
        let found = if is_named { Some(OsString::new()) } else { installation.aeron() };
        let why = "Aeron is not installed: ./gradlew installBench lays it out where a Maven repository can be reached";
        self.present(found, why)
    }

    /// Library of the baseline, if it has a part.
    fn baseline(&self, installation: &Installation) -> Result<Option<PathBuf>, BenchError> {
        if !self.selection().wants_baseline()? {
            return Ok(None);
        }
        let found = self.baseline.clone().or_else(|| installation.baseline());
        self.present(found, "the baseline is not installed: ./gradlew installBench, or --baseline names it")
    }

    /// A peer that was found. One that was asked for by name has to be there.
    fn present<T>(&self, found: Option<T>, why: &str) -> Result<Option<T>, BenchError> {
        match found {
            None if !self.peer.is_empty() => return Err(BenchError::Missing(why.into())),
            None => eprintln!("mpjdev-bench: {why}"),
            Some(_) => {}
        }
        Ok(found)
    }
}

fn print(text: &str) -> Result<(), BenchError> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(BenchError::system("standard output")),
    }
}

/// A signal that asks to end leaves time to end the contestants.
fn stop_at_signals() -> Result<Arc<Stop>, BenchError> {
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
/// Default time of a stream: it needs many round trips until its rate is steady.
const STREAM: Duration = Duration::from_secs(10);

/// Two of them have to fit what a contestant may take.
const OCTETS_MAX: u64 = 256 << 20;

fn seconds(text: &str) -> Result<Duration, String> {
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
