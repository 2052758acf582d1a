//! The relay between ranks, for demonstrations and measurements of datagrams on a bad network.
//!
//! Each rank sends the port of its socket to the relay. It receives a port for each other rank, at which that
//! rank reaches this one from now on. The rank announces that port in its Hello instead of its own;
//! all else is as without a relay.
//!
//! ```text
//! rank -> desk   RANK RANKS PORT        a line of text, over TCP
//! desk -> rank   PORT PORT ...          one for each rank, 0 at the own place
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The variable with the address of the relay.
pub const VARIABLE: &str = "MPJDEV_RELAY";
/// The suffix of the address: the others count as ranks of other machines, the path to which may be
/// congested.
pub const FAR: &str = ",far";
/// The limit on the octets of a reply, which has the ports of all ranks.
const ANSWER_MAX: u64 = 64 << 10;

/// The relay's location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Its address, on this machine. The ports belong to the address at which ranks see each other.
    pub desk: SocketAddr,
    /// Whether the others count as ranks of other machines.
    pub is_far: bool,
}

impl FromStr for Relay {
    type Err = ();

    fn from_str(text: &str) -> Result<Relay, ()> {
        let (desk, is_far) = match text.strip_suffix(FAR) {
            Some(desk) => (desk, true),
            None => (text, false),
        };
        let desk: SocketAddr = desk.parse().map_err(drop)?;
        if desk.ip().is_loopback() { Ok(Relay { desk, is_far }) } else { Err(()) }
    }
}

impl Relay {
    /// The ports at which the others reach this rank, whose socket has port `port`. Blocks until the relay
    /// has replied.
    pub(super) fn ports(
        &self,
        rank: u32,
        ranks: usize,
        port: u16,
        deadline: Instant,
    ) -> io::Result<Vec<u16>> {
        let left = || Some(deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        let mut stream = TcpStream::connect_timeout(&self.desk, left().unwrap_or_default())?;
        stream.set_read_timeout(left())?;
        writeln!(stream, "{rank} {ranks} {port}")?;
        let mut line = String::new();
        BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut line)?;
        let ports: Option<Vec<u16>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let is_one = |(peer, port): (usize, &u16)| (*port == 0) == (peer == rank as usize);
        let ports = ports.filter(|ports| ports.len() == ranks && ports.iter().enumerate().all(is_one));
        ports.ok_or_else(|| io::Error::other(format!("the relay answers {line:?}")))
    }
}
