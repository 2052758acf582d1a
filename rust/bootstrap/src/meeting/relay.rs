//! A relay between ranks, for whoever shows or measures what becomes of datagrams on a bad network.
//!
//! Each rank tells the relay's desk where its socket is, and gets for each other rank the port at which that one finds this rank
//! from now on. That is what it says when they meet, instead of its own; everything else is as without a relay.
//!
//! ```text
//! rank -> desk   RANK RANKS PORT        a line of text, over TCP
//! desk -> rank   PORT PORT ...          one for each rank, 0 at the own place
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The variable that says where the desk is.
pub const VARIABLE: &str = "MPJDEV_RELAY";
/// Behind the address: the others count as ranks of other machines, which the way to may be full.
pub const FAR: &str = ",far";
/// Octets of an answer at most: the ports of all ranks.
const ANSWER_MAX: u64 = 64 << 10;

/// Where the desk of a relay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Its address, of this machine: ports are of the address at which ranks see each other.
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
    /// The ports at which the others find this rank, whose socket has this port. Blocks until the desk has answered.
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
