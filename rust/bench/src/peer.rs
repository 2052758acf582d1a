//! C program under an MPI of the machine, compiled into a temporary folder.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mpjdev_buffer::layout::{PRIMARY_HEADER_LEN, SECTION_HEADER_LEN};

use super::BenchError;
use super::contestant::Transport;

/// Sources of the program.
const SOURCES: [(&str, &str); 2] =
    [("peer.c", include_str!("peer.c")), ("collectives.c", include_str!("collectives.c"))];
/// Variable that lets the program yield the processor in MPICH (`collectives.c`).
const YIELD: &str = "MPJDEV_BENCH_YIELD";
/// Headers of an mpjdev message in doubles.
const EXTRA: usize = (PRIMARY_HEADER_LEN + SECTION_HEADER_LEN) / size_of::<f64>();

/// A C MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Open MPI over shared memory, or over TCP beside ranks over TCP.
    OpenMpi,
    /// MPICH with its default transports.
    Mpich,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Peer::OpenMpi => "Open MPI",
            Peer::Mpich => "MPICH",
        })
    }
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 2] = [Peer::OpenMpi, Peer::Mpich];

    /// Compilers and launchers. Debian's names are first, since its plain names may belong to either MPI.
    fn commands(self) -> [(&'static str, &'static str); 2] {
        match self {
            Peer::OpenMpi => [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc", "mpirun")],
            Peer::Mpich => [("mpicc.mpich", "mpirun.mpich"), ("mpicc", "mpirun")],
        }
    }

    /// Text in the launcher's version. Open MPI's prints OpenRTE unless its name is mpirun.
    fn mark(self) -> &'static str {
        match self {
            Peer::OpenMpi => "(Open",
            Peer::Mpich => "HYDRA",
        }
    }

    /// Command that installs it.
    pub fn how_to_install(self) -> &'static str {
        match self {
            Peer::OpenMpi => "apt-get install openmpi-bin libopenmpi-dev",
            Peer::Mpich => "apt-get install mpich libmpich-dev",
        }
    }

    /// Compiles the program into `folder`.
    ///
    /// # Errors
    /// This MPI is missing, or its compiler cannot compile the program. The one of Debian's `openmpi-bin` has
    /// no headers.
    pub fn compile(self, folder: &Path) -> Result<Program, BenchError> {
        let found = self.commands().into_iter().find_map(|(compiler, launcher)| {
            let version = output_of(launcher, &["--version"])?;
            (version.contains(self.mark()) && output_of(compiler, &["-show"]).is_some())
                .then_some((compiler, launcher, version))
        });
        let missing = || format!("{self} is not installed: {}", self.how_to_install());
        let (compiler, launcher, version) = found.ok_or_else(|| BenchError::Missing(missing()))?;
        let program = folder.join(format!("peer-{self:?}"));
        let mut compile = Command::new(compiler);
        // The library finds functions of the program that have names of its own (collectives.c).
        compile.args(["-O2", "-w", "-rdynamic", "-o"]).arg(&program).stdin(Stdio::null());
        for (name, text) in SOURCES {
            let source = folder.join(name);
            std::fs::write(&source, text).map_err(BenchError::system(source.display().to_string()))?;
            compile.arg(&source);
        }
        compile.arg("-ldl");
        let output = compile.output().map_err(BenchError::system(compiler))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let hint = self.how_to_install();
            return Err(BenchError::Missing(format!(
                "{compiler} cannot compile ({hint}): {}",
                why.trim_end()
            )));
        }
        Ok(Program { peer: self, over: Transport::Shm, launcher, program, version: number(&version) })
    }
}

/// Output of a command, or `None` if it cannot be run.
fn output_of(command: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(command).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first word that begins with a digit.
fn number(version: &str) -> String {
    let mut words = version.split_whitespace();
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or_default().to_owned()
}

/// The compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    peer: Peer,
    over: Transport,
    launcher: &'static str,
    program: PathBuf,
    version: String,
}

impl Program {
    /// The same program over `transport`, or `None` if it cannot be selected. With `Mpi` it initialises the
    /// library with MPI_THREAD_MULTIPLE, and its messages are as long as those of mpjdev.
    pub fn over(&self, transport: Transport) -> Option<Program> {
        let can_select = match transport {
            Transport::Local => false,
            Transport::Mpi => true,
            Transport::Shm | Transport::Tcp | Transport::Udp => self.peer == Peer::OpenMpi,
        };
        can_select.then(|| Program { over: transport, ..self.clone() })
    }

    /// Name in reports.
    pub fn name(&self) -> String {
        match self.peer {
            Peer::OpenMpi => format!("C {} {} {}", self.peer, self.version, self.over),
            Peer::Mpich if self.over == Transport::Mpi => format!("C {} {} mpi", self.peer, self.version),
            Peer::Mpich => format!("C {} {}", self.peer, self.version),
        }
    }

    /// Way in which its ranks yield when they are more than the processors.
    pub fn yields_by(&self) -> &'static str {
        match self.peer {
            Peer::OpenMpi => "mpi_yield_when_idle is 1",
            Peer::Mpich => {
                "the program yields after each poll of UCX that finds nothing; MPICH offers no option"
            }
        }
    }

    /// MPI of the program.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Command line of the program; `crowded` under oversubscription.
    pub fn command(&self, ranks: u32, crowded: bool, socket: &Path) -> Vec<OsString> {
        let mut words = self.launcher(ranks, crowded);
        if crowded && self.peer == Peer::Mpich {
            words.extend(["-genv", YIELD, "1"].map(OsString::from));
        }
        words.push(self.program.clone().into());
        words.push(socket.into());
        if self.over == Transport::Mpi {
            words.push(EXTRA.to_string().into());
        }
        words
    }

    /// Command line of the MPI's launcher for a number of ranks, without the program.
    pub fn launcher(&self, ranks: u32, crowded: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.launcher.into(), "-np".into(), ranks.to_string().into()];
        if self.peer == Peer::OpenMpi {
            let options = ["--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl"];
            words.extend(options.iter().chain(self.layers()).map(OsString::from));
            if crowded {
                words.extend(["--mca", "mpi_yield_when_idle", "1"].map(OsString::from));
            }
        }
        words
    }

    /// Layers (BTL) of Open MPI and their options.
    fn layers(&self) -> &'static [&'static str] {
        // Before version 5 the shared-memory layer is vader.
        let is_old = self.version.split('.').next().is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n < 5));
        match (self.over, is_old) {
            // Open MPI excludes the loopback interface by default.
            (Transport::Tcp, _) => &["tcp,self", "--mca", "btl_tcp_if_include", "lo"],
            (_, true) => &["vader,self"],
            (_, false) => &["sm,self"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_first_word_with_a_leading_digit() {
        assert_eq!(number("mpirun (Open MPI) 4.1.4\n\nReport bugs to"), "4.1.4");
        assert_eq!(number("HYDRA build details:\n    Version:      4.0.2\n"), "4.0.2");
        assert_eq!(number("none"), "");
    }

    fn program(peer: Peer, version: &str) -> Program {
        let (launcher, program, version) = ("mpirun", "p".into(), version.into());
        Program { peer, over: Transport::Shm, launcher, program, version }
    }

    fn line(program: &Program, crowded: bool) -> String {
        let words = program.command(8, crowded, Path::new("s"));
        words.join(std::ffi::OsStr::new(" ")).to_string_lossy().into_owned()
    }

    #[test]
    fn open_mpi_uses_shared_memory_and_yields_if_oversubscribed() {
        assert!(line(&program(Peer::OpenMpi, "4.1.4"), false).ends_with("--mca btl vader,self p s"));
        let crowded = line(&program(Peer::OpenMpi, "5.0.1"), true);
        assert!(crowded.ends_with("--mca btl sm,self --mca mpi_yield_when_idle 1 p s"));
    }

    #[test]
    fn peer_over_tcp_or_with_threads_has_the_options_of_its_library() {
        let over_tcp = program(Peer::OpenMpi, "4.1.4").over(Transport::Tcp).expect("a transport");
        assert!(line(&over_tcp, false).ends_with("--mca btl tcp,self --mca btl_tcp_if_include lo p s"));
        assert_eq!(over_tcp.name(), "C Open MPI 4.1.4 tcp");
        let mpich = program(Peer::Mpich, "4.0.2");
        assert!(mpich.over(Transport::Tcp).is_none());
        let with_threads = mpich.over(Transport::Mpi).expect("a transport");
        assert_eq!(
            (line(&with_threads, true), with_threads.name()),
            ("mpirun -np 8 -genv MPJDEV_BENCH_YIELD 1 p s 2".into(), "C MPICH 4.0.2 mpi".into())
        );
        assert_eq!((line(&mpich, false), mpich.name()), ("mpirun -np 8 p s".into(), "C MPICH 4.0.2".into()));
    }
}
