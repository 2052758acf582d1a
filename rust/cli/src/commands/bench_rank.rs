//! The hidden command that is a contestant in Rust of `mpjdev bench`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::bench::rank;

/// Its arguments.
#[derive(Args, Debug)]
pub struct BenchRank {
    /// Where orders come from
    socket: PathBuf,

    /// Be so many ranks as threads, instead of the one that a launcher has started
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
}

impl BenchRank {
    /// Follows orders to their end; gives the exit status.
    pub fn run(&self) -> ExitCode {
        match rank::serve(&self.socket, self.threads) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev bench, a rank: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
