//! The hidden command behind measurements through a bad network: a relay, the two ends of a stream, and all of it together.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use mpjdev_proto::datagram::network::Impairment;

use crate::bench::BenchError;
use crate::bench::netem::{self, ADDRESSES, Maker, Way};
use crate::bench::relay::Relay;
use crate::bench::stream::{self, Goodput};

/// How long a stream may take beyond its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where a stream goes to.
const PORT: u16 = 4000;

/// Its arguments.
#[derive(Args, Debug)]
pub struct BenchNet {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Relay datagrams between peers until standard input ends; prints for each pair the addresses at which its peers find each
    /// other, and at the end what has become of the datagrams
    Relay {
        /// What happens to datagrams, such as loss=1%,dup=1%,reorder=16
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Which numbers are drawn
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Addresses of two peers that talk to each other, with a comma between
        #[arg(required = true, value_parser = pair)]
        pairs: Vec<(SocketAddr, SocketAddr)>,
    },
    /// Take a stream; prints where it may come to, then its octets and nanoseconds
    Take {
        /// The address
        at: SocketAddr,
    },
    /// Give a stream
    Give {
        /// Its address
        to: SocketAddr,
        /// For how long
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// By which congestion control
        #[arg(long, default_value = "cubic")]
        congestion: String,
    },
    /// Measure a stream of the system's TCP through a bad network
    Stream {
        /// How bad it is each way, such as loss=1%,delay=5ms,rate=100mbit
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Which numbers are drawn
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// For how long
        #[arg(long, default_value_t = 20)]
        seconds: u64,
        /// By which congestion control
        #[arg(long, default_value = "cubic")]
        congestion: String,
        /// What makes the network bad [default: netem where the kernel has it, else relay]
        #[arg(long, value_enum)]
        by: Option<By>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Netem,
    Relay,
}

impl BenchNet {
    /// Does it; gives the exit status.
    pub fn run(&self) -> ExitCode {
        let done = match &self.what {
            What::Relay { impair, seed, pairs } => relay(pairs, *impair, *seed),
            What::Take { at } => take(*at).map_err(BenchError::system("a stream")),
            What::Give { to, seconds, congestion } => {
                let given = stream::give(*to, Duration::from_secs(*seconds), congestion);
                given.map_err(BenchError::system(format!("a stream to {to} by {congestion}")))
            }
            What::Stream { impair, seed, seconds, congestion, by } => {
                let by = by.map(|by| if matches!(by, By::Netem) { Maker::Netem } else { Maker::Relay });
                Way::new(*impair, *seed, by).and_then(|way| measure(way, *impair, *seconds, congestion))
            }
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev: {error}");
                ExitCode::from(if matches!(error, BenchError::Missing(_)) { crate::UNUSABLE } else { 1 })
            }
        }
    }
}

fn relay(pairs: &[(SocketAddr, SocketAddr)], impair: Impairment, seed: u64) -> Result<(), BenchError> {
    let relay = Relay::between(pairs, impair, seed).map_err(BenchError::system("a relay"))?;
    let mut out = io::stdout();
    for (of_second, of_first) in relay.fronts() {
        writeln!(out, "{of_second} {of_first}").map_err(BenchError::system("standard output"))?;
    }
    out.flush().map_err(BenchError::system("standard output"))?;
    io::stdin().read_to_end(&mut Vec::new()).map_err(BenchError::system("standard input"))?;
    let totals = relay.end().map_err(BenchError::system("the relay"))?;
    writeln!(out, "{totals}").map_err(BenchError::system("standard output"))
}

fn take(at: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout();
    let Goodput { octets, nanos } = stream::take(at, |at| {
        writeln!(io::stdout(), "{at}")?;
        io::stdout().flush()
    })?;
    writeln!(out, "{octets} {nanos}")
}

fn measure(way: Way, impair: Impairment, seconds: u64, congestion: &str) -> Result<(), BenchError> {
    if let Some(why) = way.why_no_netem() {
        eprintln!("mpjdev: a relay of ours is the network, since {why}");
    }
    let goodput = goodput(&way, seconds, congestion)?;
    let mut out = io::stdout();
    let maker = way.maker();
    let totals = way.end()?;
    let text = format!(
        "{:.2} Mbit/s of payload by {congestion} through {maker}, '{impair}' each way ({} octets in {:.2} s)",
        goodput.mbit(),
        goodput.octets,
        goodput.nanos as f64 / 1e9
    );
    let lines = totals.map_or(text.clone(), |totals| format!("{text}\n{totals}"));
    writeln!(out, "{lines}").map_err(BenchError::system("standard output"))
}

/// What one connection from side 0 to side 1 carries.
fn goodput(way: &Way, seconds: u64, congestion: &str) -> Result<Goodput, BenchError> {
    let own = std::env::current_exe().map_err(BenchError::system("this command"))?;
    let wrong = |why: &str| BenchError::Side { side: format!("TCP by {congestion}"), why: why.into() };
    let at = SocketAddr::from((ADDRESSES[1], PORT)).to_string();
    let start = |side: usize, words: &[&str]| {
        let mut command = way.command(side);
        command.arg(&own).arg("bench-net").args(words).stdout(Stdio::piped());
        command.spawn().map(Ended).map_err(BenchError::system("one end of a stream"))
    };
    let mut taker = start(1, &["take", &at])?;
    let mut told = BufReader::new(taker.0.stdout.take().ok_or_else(|| wrong("it has no output"))?);
    let mut line = String::new();
    let mut next = || -> Result<String, BenchError> {
        line.clear();
        told.read_line(&mut line).map_err(BenchError::system("one end of a stream"))?;
        Ok(line.trim().to_owned())
    };
    if next()? != at {
        return Err(wrong("who takes the stream cannot"));
    }
    let mut giver = start(0, &["give", &at, "--seconds", &seconds.to_string(), "--congestion", congestion])?;
    let patience = Duration::from_secs(seconds) + PATIENCE;
    for child in [&mut giver.0, &mut taker.0] {
        let status = netem::ended(child, patience).map_err(BenchError::system("one end of a stream"))?;
        if !status.is_some_and(|status| status.success()) {
            return Err(wrong("one end of the stream has failed"));
        }
    }
    let line = next()?;
    let numbers =
        line.split_once(' ').and_then(|(octets, nanos)| Some((octets.parse().ok()?, nanos.parse().ok()?)));
    let (octets, nanos) = numbers.ok_or_else(|| wrong("it says nothing of what has come"))?;
    Ok(Goodput { octets, nanos })
}

/// A process that does not outlive this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pair(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let (one, other) = text.split_once(',').ok_or("two addresses with a comma between")?;
    let address = |text: &str| text.parse::<SocketAddr>().map_err(|error| format!("{text}: {error}"));
    Ok((address(one)?, address(other)?))
}
