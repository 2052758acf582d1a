//! Contestants: jobs that are started once and execute commands until the last one.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Write};
use std::num::NonZeroU32;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::BenchError;
use super::mpj_express::MpjExpress;
use super::peer::Program;
use super::protocol::{Answer, END, RunCommand};
use super::relay_client::RelayClient;

/// Timeout of the ranks for joining and for one command.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The same through an impaired network.
const LONG_TIMEOUT: Duration = Duration::from_secs(3600);
/// Timeout of the end of a job.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between polls of a process or a socket.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Length limit of a message over Aeron in octets: windows of longer ones exceed a container's shared memory.
const AERON_MAX: u64 = 64 << 10;

/// Length limit of a message over the baseline in octets: its segments have a fixed length.
const BASELINE_MAX: u64 = 16 << 20;

/// Limit of the folder names that are tried.
const NAMES_MAX: u32 = 100;

/// Transport of mpjdev ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Transport {
    /// Ranks are threads of one process
    Local,
    /// Ranks are processes, over shared memory
    Shm,
    /// Ranks are processes, over TCP on the loopback interface
    Tcp,
    /// Ranks are processes, over datagrams on the loopback interface
    Udp,
    /// Ranks are processes under the mpirun of each installed MPI, which moves their messages
    Mpi,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Local => "local",
            Transport::Shm => "shm",
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Mpi => "mpi",
        })
    }
}

/// A temporary folder that is removed when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes a folder that only this user may read.
    ///
    /// # Errors
    /// A system call failed.
    pub fn new() -> Result<Folder, BenchError> {
        let mut number = 0;
        loop {
            let path = env::temp_dir().join(format!("mpjdev-bench-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                // The folder of a killed process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => {
                    number += 1
                }
                Err(error) => return Err(BenchError::system(path.display().to_string())(error)),
                Ok(()) => return Ok(Folder(path)),
            }
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A remaining file lies in the system's temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Programs that contestants are started from.
#[derive(Debug)]
pub struct Tools {
    /// Folder of the command sockets and of compiled programs.
    pub folder: Folder,
    /// This program.
    pub own: PathBuf,
    /// The launcher of ranks.
    pub launcher: PathBuf,
    /// The `java` command.
    pub java: OsString,
    /// Class path of the Java counterpart.
    pub class_path: OsString,
    /// Additions to the class path for Aeron, if it takes part.
    pub aeron: Option<OsString>,
    /// Library of the baseline, if it takes part.
    pub baseline: Option<PathBuf>,
}

/// Kind of contestant.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// mpjdev ranks in Rust.
    Rust(Transport),
    /// mpjdev ranks in Java.
    Java(Transport),
    /// The C program under an MPI.
    C(Program),
    /// mpjdev ranks in Rust over the MPI of this program.
    RustOver(Program),
    /// mpjdev ranks in Java over the MPI of this program.
    JavaOver(Program),
    /// Plain TCP sockets, as processes.
    Sockets,
    /// Plain UDP sockets, as processes.
    Datagrams,
    /// The baseline in Java, over shared memory.
    Baseline,
    /// Aeron between processes in Java: its IPC beside shared memory, its UDP beside datagrams.
    Aeron(Transport),
    /// mpjdev ranks in Rust over UDP, through a relay. They check the messages.
    Relayed(RelayedPath),
    /// Ranks of MPJ Express, as threads of one JVM.
    MpjExpress(MpjExpress),
}

/// Path of datagrams through a relay.
#[derive(Clone, Debug)]
pub struct RelayedPath {
    /// Relay of the datagrams.
    pub relay: RelayClient,
    /// Declared rate of the link in kbit/s, if any.
    pub link_rate: Option<NonZeroU32>,
    /// Datagram length limit in octets, unless the ranks discover it.
    pub datagram_len: Option<u16>,
}

impl Contestant {
    /// Name in reports.
    pub fn name(&self) -> String {
        match self {
            Contestant::Rust(transport) => format!("Rust {transport}"),
            Contestant::Java(transport) => format!("Java {transport}"),
            Contestant::C(program) => program.name(),
            Contestant::RustOver(program) => format!("Rust {}", program.peer()),
            Contestant::JavaOver(program) => format!("Java {}", program.peer()),
            Contestant::Sockets => "plain TCP sockets".to_owned(),
            Contestant::Datagrams => "plain UDP sockets".to_owned(),
            Contestant::Baseline => "baseline".to_owned(),
            Contestant::Aeron(over) => format!("Aeron {}", aeron_channel(*over)),
            Contestant::Relayed(_) => "Rust udp".to_owned(),
            Contestant::MpjExpress(_) => MPJ_EXPRESS.to_owned(),
        }
    }

    /// Whether its ranks are JVMs.
    fn is_java(&self) -> bool {
        use Contestant::{Aeron, Baseline, Java, JavaOver, MpjExpress};
        matches!(self, Java(_) | JavaOver(_) | Baseline | Aeron(_) | MpjExpress(_))
    }

    /// Variables of its launcher beside those of this process.
    fn environment(&self, tools: &Tools) -> Vec<(&'static str, OsString)> {
        match self {
            Contestant::MpjExpress(installed) => installed.environment(&tools.java),
            _ => Vec::new(),
        }
    }

    /// Standard output, which is for results. That of MPJ Express has the errors of its ranks.
    fn output(&self) -> Stdio {
        match self {
            Contestant::MpjExpress(_) => io::stderr().into(),
            _ => Stdio::null(),
        }
    }

    /// The command line that starts its ranks.
    fn command(&self, tools: &Tools, ranks: u32, socket: &Path) -> Vec<OsString> {
        let number = || OsString::from(ranks.to_string());
        let own = || OsString::from(tools.own.clone());
        let run = || [OsString::from(tools.launcher.clone()), "run".into(), "-n".into(), number()];
        let rank = || [own(), RANK.into(), socket.into()];
        let crowded = ranks > processors();
        let transport = match self {
            Contestant::C(program) => return program.command(ranks, crowded, socket),
            Contestant::MpjExpress(installed) => return installed.command(&tools.java, ranks, socket),
            Contestant::RustOver(program) => {
                let launcher = program.launcher(ranks, crowded).into_iter();
                return launcher.chain(rank()).collect();
            }
            Contestant::JavaOver(program) => {
                let launcher = program.launcher(ranks, crowded).into_iter().chain(java(tools, crowded));
                return launcher.chain(["serve".into(), socket.into()]).collect();
            }
            Contestant::Sockets | Contestant::Datagrams => {
                let is_tcp = matches!(self, Contestant::Sockets);
                let mut words = Vec::from(rank());
                words.extend([if is_tcp { "--sockets" } else { "--datagrams" }.into(), number()]);
                return words;
            }
            Contestant::Baseline => {
                let library = tools.baseline.as_deref().unwrap_or(Path::new(""));
                let property = format!("-Dmpjdev.baseline.path={}", library.display());
                let mut words = Vec::from(run());
                words.extend(java_of(tools, crowded, &[&property], None));
                words.extend(["serve".into(), socket.into(), "--over".into(), "baseline".into()]);
                return words;
            }
            Contestant::Aeron(over) => {
                let mut words = Vec::from(run());
                words.extend(java_of(tools, crowded, &OVER_AERON, tools.aeron.as_ref()));
                words.extend(["serve".into(), socket.into(), "--over".into()]);
                words.push(format!("aeron-{}", aeron_channel(*over).to_lowercase()).into());
                return words;
            }
            Contestant::Relayed(path) => {
                let mut words = Vec::from(run());
                words.extend(["--transport".into(), "udp".into()]);
                words.extend(path.link_rate.map(|rate| format!("--link-rate={rate}kbit").into()));
                words.extend(path.datagram_len.map(|len| format!("--datagram-len={len}").into()));
                words.extend(rank());
                words.extend(["--check".into(), "--relay".into(), path.relay.address.to_string().into()]);
                words.extend(path.relay.is_inter_node.then(|| "--inter-node".into()));
                return words;
            }
            Contestant::Rust(transport) | Contestant::Java(transport) => *transport,
        };
        let mut words: Vec<OsString> = Vec::new();
        if transport != Transport::Local {
            let option = ["--transport".into(), transport.to_string().into()];
            words.extend(run().into_iter().chain(option));
        }
        if matches!(self, Contestant::Rust(_)) {
            words.extend(rank());
        } else {
            words.extend(java(tools, crowded));
            words.extend(["serve".into(), socket.into()]);
        }
        if transport == Transport::Local {
            words.extend(["--threads".into(), number()]);
        }
        words
    }
}

/// Name of MPJ Express in reports.
pub const MPJ_EXPRESS: &str = "MPJ Express";

/// Main class of the Java benchmarks.
pub const JAVA_PROGRAM: &str = "mpjdev.tools.Bench";

/// Option of a JVM that loads native libraries.
pub const NATIVE_ACCESS: &str = "--enable-native-access=ALL-UNNAMED";

/// Name of the hidden command of a rank.
pub const RANK: &str = "rank";

/// JVM options for Aeron, which uses a class that JDK 16 and later hide.
const OVER_AERON: [&str; 2] = ["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"];

/// Aeron's channel beside ranks over this transport.
fn aeron_channel(over: Transport) -> &'static str {
    if over == Transport::Udp { "UDP" } else { "IPC" }
}

/// Command line of the Java counterpart without its arguments. With more ranks than processors each JVM gets
/// a small heap and a serial collector.
pub fn java(tools: &Tools, crowded: bool) -> Vec<OsString> {
    java_of(tools, crowded, &[], None)
}

/// The same with additional JVM options and class path entries.
fn java_of(tools: &Tools, crowded: bool, more: &[&str], besides: Option<&OsString>) -> Vec<OsString> {
    let options = if crowded { ["-Xmx128m", "-XX:+UseSerialGC"] } else { ["-Xmx1g", "-Xms256m"] };
    let mut words = vec![tools.java.clone(), NATIVE_ACCESS.into()];
    words.extend(options.iter().chain(more).map(OsString::from));
    let mut class_path = tools.class_path.clone();
    for besides in besides.into_iter().filter(|besides| !besides.is_empty()) {
        class_path.push(":");
        class_path.push(besides);
    }
    words.extend(["-cp".into(), class_path, JAVA_PROGRAM.into()]);
    words
}

/// Processors that this process may use.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// A contestant whose ranks wait for commands.
#[derive(Debug)]
pub struct RunningJob {
    name: String,
    ranks: Vec<BufReader<UnixStream>>,
    child: Child,
    ended: bool,
    timeout: Duration,
    octets_max: u64,
    is_java: bool,
}

impl RunningJob {
    /// Starts a contestant with a number of ranks, and waits until all have joined.
    ///
    /// # Errors
    /// It cannot be started, or ends before all ranks have joined.
    pub fn start(contestant: &Contestant, ranks: u32, tools: &Tools) -> Result<RunningJob, BenchError> {
        let name = contestant.name();
        let socket = tools.folder.path().join(format!("{}-{ranks}", name.replace([' ', '.'], "-")));
        let listener =
            UnixListener::bind(&socket).map_err(BenchError::system(socket.display().to_string()))?;
        let words = contestant.command(tools, ranks, &socket);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(contestant.environment(tools));
        command.stdin(Stdio::null()).stdout(contestant.output());
        let child = command.spawn().map_err(BenchError::system(words[0].to_string_lossy()))?;
        let timeout = if matches!(contestant, Contestant::Relayed(_)) { LONG_TIMEOUT } else { TIMEOUT };
        let octets_max = match contestant {
            Contestant::Aeron(_) => AERON_MAX,
            Contestant::Baseline => BASELINE_MAX,
            _ => u64::MAX,
        };
        let is_java = contestant.is_java();
        let mut job =
            RunningJob { name, ranks: Vec::new(), child, ended: false, timeout, octets_max, is_java };
        let accepted = job.accept(&listener, ranks);
        // All ranks have connected.
        let _ = fs::remove_file(&socket);
        accepted?;
        Ok(job)
    }

    fn accept(&mut self, listener: &UnixListener, ranks: u32) -> Result<(), BenchError> {
        listener.set_nonblocking(true).map_err(BenchError::system("the command socket"))?;
        let deadline = Instant::now() + TIMEOUT;
        let mut streams: Vec<Option<BufReader<UnixStream>>> = (0..ranks).map(|_| None).collect();
        while streams.iter().any(Option::is_none) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let mut reader = self.checked(with_read_timeout(stream, self.timeout))?;
                    let line = self.line(&mut reader)?;
                    let stream_of_rank =
                        line.trim().parse().ok().and_then(|rank: usize| streams.get_mut(rank));
                    let stream_of_rank = stream_of_rank
                        .ok_or_else(|| self.wrong(format!("{line:?} is not one of its ranks")))?;
                    *stream_of_rank = Some(reader);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Ok(Some(status)) = self.child.try_wait() {
                        self.ended = true;
                        return Err(self.wrong(format!("it ended before its ranks joined ({status})")));
                    }
                    if Instant::now() > deadline {
                        return Err(self.wrong(format!("its ranks did not join in {TIMEOUT:?}")));
                    }
                    std::thread::sleep(POLL_INTERVAL);
                }
                Err(error) => return Err(BenchError::system("the command socket")(error)),
            }
        }
        self.ranks = streams.into_iter().flatten().collect();
        Ok(())
    }

    /// Name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its ranks are JVMs.
    pub fn is_java(&self) -> bool {
        self.is_java
    }

    /// Whether it can send messages of this length.
    pub fn takes(&self, octets: u64) -> bool {
        octets <= self.octets_max
    }

    /// Process id of the launcher, whose descendants are the ranks.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Number of its ranks.
    pub fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Runs a command on all ranks. The answer has the time of rank 0 and the sums of all other values.
    ///
    /// # Errors
    /// A rank has ended or does not answer in time.
    pub fn run(&mut self, command: RunCommand) -> Result<Answer, BenchError> {
        for at in 0..self.ranks.len() {
            let written = writeln!(self.ranks[at].get_mut(), "{command}");
            self.checked(written)?;
        }
        let mut all: Option<Answer> = None;
        let mut ranks = std::mem::take(&mut self.ranks);
        for rank in &mut ranks {
            let answer: Answer = self.line(rank)?.parse().map_err(|why| self.wrong(why))?;
            all = Some(all.map_or(answer, |sum: Answer| Answer {
                extra: sum.extra + answer.extra,
                counted: sum.counted.zip(answer.counted).map(|(sum, counted)| sum.plus(&counted)),
                ..sum
            }));
        }
        self.ranks = ranks;
        all.ok_or_else(|| self.wrong("it has no ranks".into()))
    }

    /// Ends all ranks and waits for the launcher.
    ///
    /// # Errors
    /// The job does not end in time, or fails.
    pub fn end(mut self) -> Result<(), BenchError> {
        match self.stop() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.wrong(format!("it ended with {status}"))),
            None => Err(self.wrong(format!("it did not end in {END_TIMEOUT:?}"))),
        }
    }

    /// Ends several jobs and returns the errors. Results that were measured before remain valid.
    pub fn end_all(jobs: Vec<RunningJob>) -> Vec<BenchError> {
        jobs.into_iter().filter_map(|job| job.end().err()).collect()
    }

    fn stop(&mut self) -> Option<ExitStatus> {
        self.ended = true;
        for rank in &mut self.ranks {
            // A rank that has ended has closed its socket.
            let _ = writeln!(rank.get_mut(), "{END}");
        }
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                Ok(status) => return status,
                Err(_) => break,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }

    fn line(&self, from: &mut BufReader<UnixStream>) -> Result<String, BenchError> {
        let mut line = String::new();
        match self.checked(from.read_line(&mut line))? {
            0 => Err(self.wrong("a rank has ended".into())),
            _ => Ok(line),
        }
    }

    fn checked<T>(&self, result: io::Result<T>) -> Result<T, BenchError> {
        result.map_err(|error| self.wrong(format!("a rank does not answer: {error}")))
    }

    fn wrong(&self, why: String) -> BenchError {
        BenchError::Contestant { name: self.name.clone(), why }
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        if !self.ended {
            // The first error is reported.
            let _ = self.stop();
        }
    }
}

/// A blocking stream with a read timeout.
fn with_read_timeout(stream: UnixStream, timeout: Duration) -> io::Result<BufReader<UnixStream>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(timeout))?;
    Ok(BufReader::new(stream))
}
