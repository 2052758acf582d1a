//! The hidden command behind measurements through a bad network: a relay, the two ends of a stream, and all
//! of it together.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use mpjdev_proto::datagram::network::Impairment;
use mpjdev_proto::datagram::reliable::settings::Path;

use crate::BenchError;
use crate::ends::{self, Order, Protocol, Task};
use crate::netem::{Maker, Way};
use crate::pairs::{Pair, Tcp};
use crate::relay::Relay;
use crate::stream::{self, Goodput};

/// Its arguments.
#[derive(Args, Debug)]
pub struct Net {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Relay datagrams between peers until standard input ends; prints for each pair the addresses at which
    /// its peers find each other, and at the end what has become of the datagrams
    Relay {
        /// Impairment of datagrams, such as loss=1%,dup=1%,reorder=16
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Seed of the random numbers
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
        #[arg(long, default_value_t = 20.0, value_parser = seconds)]
        seconds: f64,
        /// Maker which congestion control
        #[arg(long, default_value = "cubic")]
        congestion: String,
    },
    /// Be one of two ranks of ours behind UDP sockets. Says how many packets it takes ahead, reads that of
    /// the other one, says that it is ready, reads a line, and tells in the end
    Rank {
        /// Number of this end
        #[arg(value_parser = clap::value_parser!(u32).range(..2))]
        rank: u32,
        /// Its address
        at: SocketAddr,
        /// That of the other one
        peer: SocketAddr,
        /// Number from which both derive the numbers of their connection
        number: u32,
        #[command(flatten)]
        what: Messages,
    },
    /// Measure messages of ours through a bad network
    Messages {
        /// Impairment each way, such as loss=1%,delay=5ms,rate=100mbit
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        what: Messages,
        /// With a stream of the system's TCP beside them
        #[arg(long)]
        beside_tcp: bool,
    },
    /// Measure a stream of the system's TCP through a bad network
    Stream {
        /// Impairment each way, such as loss=1%,delay=5ms,rate=100mbit
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// For how long
        #[arg(long, default_value_t = 20.0, value_parser = seconds)]
        seconds: f64,
        /// Maker which congestion control
        #[arg(long, default_value = "cubic")]
        congestion: String,
        /// Maker of the impairment [default: netem where the kernel has it, else relay]
        #[arg(long, value_enum)]
        by: Option<Maker>,
    },
}

/// Task of two ranks of ours, and their settings for the path.
#[derive(Args, Clone, Copy, Debug)]
struct Messages {
    /// Stream for so long
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    /// Send a message there and back so often instead
    #[arg(long)]
    times: Option<u64>,
    /// Octets of a message
    #[arg(long, default_value_t = 65_536)]
    octets: u64,
    /// Bits per second of the private link that is the path, instead of an unknown path
    #[arg(long)]
    private: Option<NonZeroU64>,
    /// Use the protocol of 1997
    #[arg(long, alias = "classic", conflicts_with = "private")]
    unet: bool,
    /// Acknowledges each message at once
    #[arg(long, requires = "unet")]
    eager_acks: bool,
}

impl Net {
    /// Does it; gives the exit status.
    pub fn run(&self) -> ExitCode {
        let done = match &self.what {
            What::Relay { impair, seed, pairs } => relay(pairs, *impair, *seed),
            What::Take { at } => take(*at).map_err(BenchError::system("a stream")),
            What::Rank { rank, at, peer, number, what } => {
                let order = what.order(*rank, [*at, *peer], *number);
                ends::serve(&order, io::stdin().lock(), io::stdout()).map_err(|error| {
                    BenchError::Contestant { name: format!("rank {rank}"), why: error.to_string() }
                })
            }
            What::Messages { impair, seed, what, beside_tcp } => {
                Way::new(*impair, *seed, None).and_then(|way| measure_ours(way, what, *beside_tcp))
            }
            What::Give { to, seconds, congestion } => {
                let given = stream::give(*to, Duration::from_secs_f64(*seconds), congestion);
                given.map_err(BenchError::system(format!("a stream to {to} by {congestion}")))
            }
            What::Stream { impair, seed, seconds, congestion, by } => {
                Way::new(*impair, *seed, *by).and_then(|way| measure(way, *impair, *seconds, congestion))
            }
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("mpjdev-bench: {error}");
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

fn measure(way: Way, impair: Impairment, seconds: f64, congestion: &str) -> Result<(), BenchError> {
    if let Some(why) = way.why_no_netem() {
        eprintln!("mpjdev-bench: a relay of ours is the network, since {why}");
    }
    let time = Duration::from_secs_f64(seconds);
    let goodput = Tcp::prepare(&way, time, congestion)?.start()?.tcp(time)?;
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

fn measure_ours(way: Way, what: &Messages, beside_tcp: bool) -> Result<(), BenchError> {
    let time = Duration::from_secs_f64(what.seconds);
    let mut ours = Pair::of_ends(&way, &what.words())?;
    let tcp = beside_tcp.then(|| Tcp::prepare(&way, time, "cubic")).transpose()?;
    let tcp = tcp.map(Tcp::start).transpose()?;
    ours.begin()?;
    let told = ours.told(time)?;
    let mut text = format!("{:.2} Mbit/s of messages\n{told:#?}\n", told[1].goodput().mbit());
    if let Some(tcp) = tcp {
        text += &format!("{:.2} Mbit/s by TCP beside them\n", tcp.tcp(time)?.mbit());
    }
    if let Some(totals) = way.end()? {
        text += &totals.to_string();
    }
    writeln!(io::stdout(), "{text}").map_err(BenchError::system("standard output"))
}

impl Messages {
    fn words(&self) -> Vec<String> {
        let mut words = vec![format!("--seconds={}", self.seconds), format!("--octets={}", self.octets)];
        words.extend(self.times.map(|times| format!("--times={times}")));
        words.extend(self.unet.then(|| "--unet".to_owned()));
        words.extend(self.eager_acks.then(|| "--eager-acks".to_owned()));
        words.extend(self.private.map(|rate| format!("--private={rate}")));
        words
    }

    fn order(&self, rank: u32, [at, peer]: [SocketAddr; 2], number: u32) -> Order {
        let path = match self.private {
            Some(rate) => Path { rate: Some(rate.get() / 8), ..Path::PRIVATE },
            None => Path::UNKNOWN,
        };
        let task = match self.times {
            Some(times) => Task::PingPong(times),
            None => Task::Stream(Duration::from_secs_f64(self.seconds)),
        };
        let protocol = match self.unet {
            true => Protocol::Unet { eager_acks: self.eager_acks },
            false => Protocol::Reliable(path),
        };
        Order { rank, at, peer, number, protocol, octets: self.octets, task }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds from 0 to 3600".to_owned()),
    }
}

fn pair(text: &str) -> Result<(SocketAddr, SocketAddr), String> {
    let (one, other) = text.split_once(',').ok_or("two addresses with a comma between")?;
    let address = |text: &str| text.parse::<SocketAddr>().map_err(|error| format!("{text}: {error}"));
    Ok((address(one)?, address(other)?))
}
