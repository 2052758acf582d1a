//! Hidden command `rank`: a contestant in Rust.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::relay_client::RelayClient;
use crate::{datagrams, rank, sockets};

/// Arguments of `rank`.
#[derive(Args, Debug)]
pub struct Rank {
    /// Unix socket of the commands
    socket: PathBuf,

    /// Run N ranks as threads instead of one rank of a launcher
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,

    /// Give each message different contents, and check them
    #[arg(long, conflicts_with_all = ["threads", "sockets", "datagrams", "rank"])]
    check: bool,

    /// Send datagrams through the relay that answers at this TCP address
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["threads", "sockets", "datagrams", "rank"])]
    relay: Option<SocketAddr>,

    /// Treat peers behind the relay as ranks of other machines
    #[arg(long, requires = "relay")]
    inter_node: bool,

    /// Run N ranks as processes with plain TCP sockets
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..), conflicts_with = "threads")]
    sockets: Option<u32>,

    /// Run N ranks as processes with plain UDP sockets
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..), conflicts_with_all = ["threads", "sockets"])]
    datagrams: Option<u32>,

    /// Run another rank of plain sockets
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["threads", "sockets", "datagrams"])]
    rank: Option<u32>,

    /// With --rank: use a UDP socket
    #[arg(long, requires = "rank")]
    udp: bool,
}

impl Rank {
    /// Executes commands until the last one and returns the exit status.
    pub fn run(&self) -> ExitCode {
        let relay = self.relay.map(|address| RelayClient { address, is_inter_node: self.inter_node });
        let served = match (self.sockets, self.datagrams, self.rank) {
            (Some(ranks), ..) => sockets::serve(&self.socket, ranks),
            (None, Some(ranks), _) => datagrams::serve(&self.socket, ranks),
            (None, None, Some(rank)) if self.udp => datagrams::serve_other(&self.socket, rank),
            (None, None, Some(rank)) => sockets::serve_other(&self.socket, rank),
            (None, None, None) => rank::serve(&self.socket, self.threads, self.check, relay),
        };
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench, a rank: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
