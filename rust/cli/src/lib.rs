//! The `mpjdev` command.
//!
//! [`commands`] has one file for each command: arguments, files and exit statuses. [`inspect`] explains the
//! octets of a message or of IMPI, [`job`] runs ranks, [`hosts`] runs them on several machines, [`impi`]
//! connects the sites of a job, and [`profile`] shows what the ranks of a job have called.
//!
//! Exit statuses: 0 success, 1 a damaged message or a failed job, 2 wrong usage or an unreadable input.
#![forbid(unsafe_code)]

pub mod commands;
pub mod hosts;
pub mod impi;
pub mod inspect;
pub mod job;
pub mod profile;
pub mod signals;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command line `args`, the first of which is the name the program was called by.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|word| word == hosts::remote_command::AGENT) {
        mpjdev_logging::start("agent");
        return hosts::agent::run(&args[2..]);
    }
    let is_monitor = args.get(1).is_some_and(|word| word == job::MONITOR);
    if is_monitor {
        args.remove(1);
    }
    if args.first().is_some_and(|name| Path::new(name).file_stem() == Some("mpjrun".as_ref())) {
        args.splice(..1, ["mpjdev".into(), "run".into()]);
    }
    let args = commands::words::known(args);
    let name = args.get(1).map(|word| word.to_string_lossy());
    mpjdev_logging::start(match (name.as_deref(), is_monitor) {
        (Some("run"), false) => "mpjrun",
        (Some("run"), true) => "monitor",
        (Some("impi-server"), _) => "impi-server",
        _ => "mpjdev",
    });
    match commands::parse(args.clone()) {
        Ok(command) => command.run(&args[1..], is_monitor),
        Err(usage) => {
            // Help and version are printed here, too, with status 0 and to standard output. An error means
            // that the output is closed.
            let _ = usage.print();
            ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(commands::UNUSABLE))
        }
    }
}
