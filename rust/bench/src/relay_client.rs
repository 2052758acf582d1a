//! The side of a rank in the exchange with a relay ([`relay_ports`](super::relay_ports)).
//!
//! ```text
//! rank -> relay   RANK RANKS PORT        a line of text, over TCP
//! relay -> rank   PORT PORT ...          one for each rank, 0 for the rank itself
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use mpjdev_bootstrap::setup::PortRelay;

/// The limit on the octets of a reply, which has the ports of all ranks.
const REPLY_MAX: u64 = 64 << 10;
/// The least time for an exchange, since sockets take no timeout of 0.
const TIME_MIN: Duration = Duration::from_millis(1);

/// A relay that a rank's datagrams pass through.
#[derive(Clone, Copy, Debug)]
pub struct RelayClient {
    /// The TCP address at which the relay answers.
    pub address: SocketAddr,
    /// Whether peers count as ranks of other machines.
    pub is_inter_node: bool,
}

impl PortRelay for RelayClient {
    fn ports(&self, rank: u32, ranks: usize, port: u16, deadline: Instant) -> io::Result<Vec<u16>> {
        let left = || deadline.saturating_duration_since(Instant::now()).max(TIME_MIN);
        let mut stream = TcpStream::connect_timeout(&self.address, left())?;
        stream.set_read_timeout(Some(left()))?;
        writeln!(stream, "{rank} {ranks} {port}")?;
        let mut line = String::new();
        BufReader::new(stream.take(REPLY_MAX)).read_line(&mut line)?;
        parse(&line, rank, ranks).ok_or_else(|| io::Error::other(format!("the relay answers {line:?}")))
    }

    fn is_inter_node(&self) -> bool {
        self.is_inter_node
    }
}

/// The ports in a reply to one of `ranks` ranks; `None` if it is malformed.
fn parse(line: &str, rank: u32, ranks: usize) -> Option<Vec<u16>> {
    let ports: Option<Vec<u16>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    let is_valid = |(peer, port): (usize, &u16)| (*port == 0) == (peer == rank as usize);
    ports.filter(|ports| ports.len() == ranks && ports.iter().enumerate().all(is_valid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_without_a_port_for_each_peer_is_refused() {
        assert_eq!(parse("0 4000\n", 0, 2), Some(vec![0, 4000]));
        for line in ["", "0\n", "4000 0\n", "0 0\n", "0 4000 4001\n", "0 70000\n", "0 x\n"] {
            assert_eq!(parse(line, 0, 2), None, "{line:?}");
        }
    }
}
