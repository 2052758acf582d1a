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

    /// Send datagrams through the relay at this TCP address of the loopback interface
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback, conflicts_with_all = ["threads", "sockets", "datagrams", "rank"])]
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

/// The address of a relay. Relays run on this machine only.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|error| format!("{error}"))?;
    if address.ip().is_loopback() { Ok(address) } else { Err(format!("{address} is no loopback address")) }
}

#[cfg(test)]
mod tests {
    use super::loopback;

    #[test]
    fn relay_address_outside_the_loopback_interface_is_refused() {
        assert!(loopback("127.0.0.1:4000").is_ok() && loopback("[::1]:4000").is_ok());
        for text in ["192.0.2.1:4000", "[2001:db8::1]:4000", "127.0.0.1", "localhost:4000", ""] {
            assert!(loopback(text).is_err(), "{text}");
        }
    }
}
