//! The commands of `mpjdev`: one file and one variant of [`Command`] for each.

pub mod bench;
pub mod host_options;
pub mod impi_server;
pub mod inspect;
pub mod machine;
pub mod mpi_info;
mod output;
pub mod profile;
pub mod run;
mod values;
pub mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use mpjdev_proto::impi::Dialect;

/// Exit status for wrong usage and for inputs that cannot be read.
pub(crate) const UNUSABLE: u8 = 2;

/// Typed arrays and objects between Java programs.
#[derive(Debug, Parser)]
#[command(name = "mpjdev", version, arg_required_else_help = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A command of `mpjdev`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the name of the benchmark program
    #[command(hide = true)]
    Bench(bench::Bench),
    /// Run the startup server, at which the sites of an IMPI job meet
    ImpiServer(impi_server::ImpiServer),
    /// Explain the octets of a message, or the packets and commands of an IMPI recording
    Inspect(inspect::Inspect),
    /// Print the C MPI that ranks find on this machine, and its abilities
    MpiInfo(mpi_info::MpiInfo),
    /// Make table and page from the profiles that ranks have written
    Profile(profile::Profile),
    /// Run the ranks of a program as processes of this machine; also called mpjrun
    Run(Box<run::Run>),
}

/// A text of IMPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Text {
    /// The final text, which all implementations in use follow
    Final,
    /// The draft of March 1999
    Draft,
}

impl From<Text> for Dialect {
    fn from(text: Text) -> Dialect {
        match text {
            Text::Final => Dialect::Final,
            Text::Draft => Dialect::Draft,
        }
    }
}

impl Command {
    /// Runs the command and returns the exit status. `args` are the words of the command line after the
    /// program's name. `is_monitor` is true in the monitor, which a launcher starts with the same command
    /// line.
    pub fn run(&self, args: &[OsString], is_monitor: bool) -> ExitCode {
        match self {
            Command::Bench(bench) => bench.run(),
            Command::ImpiServer(server) => server.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::MpiInfo(info) => info.run(),
            Command::Profile(profile) => profile.run(),
            Command::Run(run) => run.run(args, is_monitor),
        }
    }
}

/// Parses a command line.
///
/// # Errors
/// Wrong usage. Help and version are also returned as errors, with the text to print.
pub fn parse(args: Vec<OsString>) -> Result<Command, clap::Error> {
    Line::try_parse_from(args).map(|line| line.command)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        format!("{:?}", parse(words::known(words)).expect(line))
    }

    fn help(command: &str) -> String {
        let mut line = Line::command();
        line.find_subcommand_mut(command).expect(command).render_long_help().to_string()
    }

    /// Proves that scripts with the spelling of an earlier version have the same effect.
    #[test]
    fn earlier_spellings_of_options_work_and_are_hidden() {
        let renamed = [
            ("run", "-n 1 x", "--silence", "--peer-timeout"),
            ("run", "-n 1 x", "--init-wait", "--init-timeout"),
            ("impi-server", "-server 2", "--join-wait", "--join-timeout"),
        ];
        for (command, rest, earlier, now) in renamed {
            let [with_earlier, with_now, without] =
                [format!("{earlier} 7 "), format!("{now} 7 "), String::new()]
                    .map(|option| parsed(&format!("mpjdev {command} {option}{rest}")));
            assert_eq!(with_earlier, with_now);
            assert_ne!(with_now, without, "{now}");
            let joined = parsed(&format!("mpjdev {command} {earlier}=7 {rest}"));
            assert_eq!(joined, with_now, "{earlier}=7");
            let help = help(command);
            assert!(help.contains(now) && !help.contains(earlier), "{help}");
        }
    }

    /// Proves that the program of a job is found behind every option of `run`.
    #[test]
    fn words_has_every_spelling_of_an_option_with_one_value() {
        let line = Line::command();
        let run = line.find_subcommand("run").expect("run");
        let with_value = run.get_arguments().filter(|arg| {
            !arg.is_positional() && arg.get_action().takes_values() && arg.get_id() != "client"
        });
        let mut spellings: Vec<String> = with_value
            .flat_map(|arg| {
                let shorts = arg.get_short().map(|short| format!("-{short}"));
                let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
                let hidden = arg.get_aliases().unwrap_or_default();
                let longs = longs.into_iter().chain(hidden).map(|long| format!("--{long}"));
                shorts.into_iter().chain(longs).collect::<Vec<_>>()
            })
            .chain(["-np".to_owned()])
            .collect();
        spellings.sort();
        let mut known = words::WITH_VALUE.to_vec();
        known.sort_unstable();
        assert_eq!(known, spellings, "left: WITH_VALUE of words.rs, right: options of Run in run.rs");
    }
}
