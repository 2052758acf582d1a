//! `mpjdev run`, which is `mpjrun`: runs a program's ranks as processes of this machine.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::job::plan::Plan;
use crate::job::target::{Surroundings, resolve};
use crate::job::{launcher, monitor};

/// Arguments of `mpjdev run`.
#[derive(Args, Debug)]
#[command(
    override_usage = "mpjrun -n N [OPTIONS] [JVM OPTIONS] <COMMAND | CLASS | FILE.jar> [ARGUMENTS]",
    after_help = "\
What has a slash or is on the PATH is run as a command. FILE.jar is started by its Main-Class, anything else is the \
name of a class; -cp, -D, -X and other options of the JVM before either go to java, and mpjdev's own jar is put on \
the class path.

  mpjrun -n 4 java -cp app.jar:mpjdev.jar Main
  mpjrun -n 4 -cp classes -Xmx1g Main
  mpjrun -n 4 app.jar

Standard input goes to rank 0. Output is forwarded line by line. SIGINT, SIGTERM and SIGHUP end the job, asked for \
twice at once; SIGQUIT, SIGUSR1 and SIGUSR2 are passed on; SIGTSTP stops it and SIGCONT lets it go on.

Each rank finds in its environment:
  MPJDEV_RANK       its number, from 0
  MPJDEV_SIZE       the number of ranks
  MPJDEV_JOB        the name of the job: mpjdev- and the process that is the parent of its ranks
  MPJDEV_TRANSPORT  how ranks reach each other, as asked for
  MPJDEV_CONTROL    the number of an open socket, on which Comm.init gets the memory that the ranks share; \
/proc/PID/fd shows that as memfd:mpjdev-rank-0 and so on
  MPJDEV_LIBRARY    the native library of mpjrun's own jar, as CRC-32:PATH, so that no rank needs to unpack it; a rank \
whose jar has another one says so and unpacks its own

Exit status: that of the first rank that fails (128 + n for signal n), 124 when the time is over, 2 wrong usage."
)]
pub struct Run {
    /// Number of ranks (also -np)
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: u32,

    /// Put the rank in brackets before each line of output
    #[arg(long)]
    tag_output: bool,

    /// Bind each rank to a processor of its own
    #[arg(long, value_enum, default_value_t = Bind::None)]
    bind: Bind,

    /// End the job after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Seconds between asking ranks to end and killing them
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "3")]
    grace: Duration,

    /// Seconds until ranks are named that have not called Comm.init when others have
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    init_wait: Duration,

    /// Give ranks an environment variable
    #[arg(short = 'x', value_name = "NAME[=VALUE]", value_parser = variable)]
    export: Vec<(OsString, OsString)>,

    /// End all ranks when one fails (the default)
    #[arg(long, conflicts_with = "keep_going")]
    kill_on_failure: bool,

    /// Let the others go on when a rank fails
    #[arg(long)]
    keep_going: bool,

    /// How ranks reach each other
    #[arg(long, value_enum, default_value_t = Transport::Auto)]
    transport: Transport,

    /// The program, after options for its JVM
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// More ranks than a machine runs.
const RANKS_MAX: i64 = 4096;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Bind {
    /// Where the system puts it
    None,
    /// One processor each
    Core,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Transport {
    /// Shared memory
    Auto,
    /// Shared memory
    Shm,
}

impl Run {
    /// Runs the job, or its monitor; `args` is the command line that both get.
    pub fn run(&self, args: &[OsString], is_monitor: bool) -> ExitCode {
        let result = self.plan().map_err(|why| (crate::UNUSABLE, why)).and_then(|plan| {
            let result = if is_monitor { monitor::run(plan) } else { launcher::run(args) };
            result.map_err(|error| (1, error.to_string()))
        });
        match result {
            Ok(status) => ExitCode::from(status),
            Err((status, why)) => {
                eprintln!("mpjrun: {why}");
                ExitCode::from(status)
            }
        }
    }

    fn plan(&self) -> Result<Plan, String> {
        Ok(Plan {
            ranks: self.ranks,
            program: resolve(&self.program, &Machine).map_err(|e| e.to_string())?,
            jar: own_jar(),
            job: format!("mpjdev-{}", std::process::id()),
            tag_output: self.tag_output,
            bind: matches!(self.bind, Bind::Core),
            timeout: self.timeout,
            grace: self.grace,
            init_wait: self.init_wait,
            keep_going: self.keep_going,
            transport: match self.transport {
                Transport::Auto => "auto".to_owned(),
                Transport::Shm => "shm".to_owned(),
            },
            exports: self.export.clone(),
        })
    }
}

/// This machine's files and environment.
struct Machine;

impl Surroundings for Machine {
    fn is_command(&self, name: &OsStr) -> bool {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|folder| is_executable(&folder.join(name)))
    }

    fn main_class(&self, jar: &Path) -> Result<String, String> {
        let file = std::fs::File::open(jar).map_err(|e| e.to_string())?;
        let mut archive = zip::ZipArchive::new(file).map_err(|e| e.to_string())?;
        let manifest =
            archive.by_name("META-INF/MANIFEST.MF").map_err(|_| "it has no manifest".to_owned())?;
        let text = io::read_to_string(io::Read::take(manifest, MANIFEST_MAX)).map_err(|e| e.to_string())?;
        main_class(&text).ok_or_else(|| "its manifest names no Main-Class".to_owned())
    }

    fn java(&self) -> OsString {
        java()
    }

    fn own_jar(&self) -> Option<OsString> {
        own_jar().map(PathBuf::into_os_string)
    }

    fn class_path(&self) -> OsString {
        env::var_os("CLASSPATH").filter(|path| !path.is_empty()).unwrap_or_else(|| ".".into())
    }
}

/// The `java` command: that of JAVA_HOME, else the one on the PATH.
pub(crate) fn java() -> OsString {
    match env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java")) {
        Some(java) if is_executable(&java) => java.into(),
        _ => "java".into(),
    }
}

/// Our own jar, when there is one beside the command's folder.
pub(crate) fn own_jar() -> Option<PathBuf> {
    let command = env::current_exe().ok()?;
    let jar = command.parent()?.parent()?.join("lib/mpjdev.jar");
    jar.is_file().then_some(jar)
}

/// Octets of a manifest that are looked at.
const MANIFEST_MAX: u64 = 1 << 20;

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The main class in a manifest. Lines of more than 72 octets go on in the next one, which begins with a space (JAR file
/// specification).
fn main_class(manifest: &str) -> Option<String> {
    let whole = manifest.replace("\r\n", "\n").replace("\n ", "");
    let main = whole.lines().take_while(|line| !line.is_empty());
    main.filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("Main-Class"))
        .map(|(_, class)| class.trim().to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|e| e.to_string())
}

/// `NAME=VALUE`, or `NAME` for the value it has here.
fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.into()),
        None => (text, env::var_os(text).ok_or_else(|| format!("{text} is not set here"))?),
    };
    if name.is_empty() { Err("a variable needs a name".to_owned()) } else { Ok((name.into(), value)) }
}

/// The command line with `-np` as `-n`: other launchers know both, clap knows single letters only. What belongs to the program
/// stays as it is.
pub fn without_np(mut args: Vec<OsString>) -> Vec<OsString> {
    const WITH_VALUE: [&str; 9] =
        ["-n", "-np", "--ranks", "-x", "--bind", "--timeout", "--grace", "--init-wait", "--transport"];
    if args.get(1).is_none_or(|word| word != "run") {
        return args;
    }
    let mut at = 2;
    while let Some(word) = args.get_mut(at).filter(|word| word.as_encoded_bytes().starts_with(b"-")) {
        at += 1 + usize::from(WITH_VALUE.iter().any(|option| *word == **option));
        if word == "-np" {
            *word = "-n".into();
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_class_is_found_in_a_manifest_of_any_shape() {
        let found = |text| main_class(text);
        assert_eq!(found("Manifest-Version: 1.0\r\nMain-Class: a.B\r\n\r\n"), Some("a.B".into()));
        assert_eq!(found("main-class: very.lo\n ng.Name\n"), Some("very.long.Name".into()));
        assert_eq!(found("A: b\n\nName: x\nMain-Class: no\n"), None, "only the main section counts");
    }

    #[test]
    fn np_is_n_before_the_program_and_the_programs_own_behind_it() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let line = without_np(words("mpjdev run --tag-output -np 3 -x A=-np -cp x Main -np 4"));
        assert_eq!(line, words("mpjdev run --tag-output -n 3 -x A=-np -cp x Main -np 4"));
        assert_eq!(without_np(words("mpjdev inspect -np")), words("mpjdev inspect -np"));
    }

    #[test]
    fn a_variable_is_given_a_value_or_keeps_its_own() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(variable("PATH").is_ok_and(|(_, value)| !value.is_empty()));
        assert!(variable("MPJDEV_NO_SUCH_VARIABLE").is_err());
        assert!(variable("=x").is_err());
    }
}
