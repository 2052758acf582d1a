//! Entry point of the `mpjdev` command.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    mpjdev_cli::run(std::env::args_os())
}
