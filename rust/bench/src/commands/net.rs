//! Hidden command `net`: a relay, the ends of streams and messages, and measurements between namespaces.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use mpjdev_proto::datagram::reliable::settings::Path;
use mpjdev_sim::Impairment;

use crate::BenchError;
use crate::ends::{self, EndConfig, Protocol, Task};
use crate::netem::{Emulator, ImpairedPath};
use crate::pairs::{Pair, Tcp};
use crate::relay::Relay;
use crate::stream::{self, Goodput};

/// Arguments of `net`.
#[derive(Args, Debug)]
pub struct Net {
    #[command(subcommand)]
    what: NetCommand,
}

#[derive(Debug, Subcommand)]
enum NetCommand {
    /// Relay datagrams between peers until standard input ends. Prints for each pair the addresses at which
    /// its peers reach each other, and the counts of all datagrams at the end
    Relay {
        /// Impairment of datagrams, such as loss=1%,dup=1%,reorder=16
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Addresses of two peers, with a comma between
        #[arg(required = true, value_parser = pair)]
        pairs: Vec<(SocketAddr, SocketAddr)>,
    },
    /// Receive a stream. Prints the address of the listener, then octets and nanoseconds
    Receive {
        /// Address of the listener
        at: SocketAddr,
    },
    /// Send a stream
    Send {
        /// Address of the receiver
        to: SocketAddr,
        /// Seconds of the stream
        #[arg(long, default_value_t = 20.0, value_parser = seconds)]
        seconds: f64,
        /// Congestion control of the sender
        #[arg(long, default_value = "cubic")]
        congestion: String,
    },
    /// Run one of two ranks over UDP. Prints its receive window, reads that of the other rank, prints that it
    /// is ready, reads a line, and prints its report at the end
    Rank {
        /// Rank of this end
        #[arg(value_parser = clap::value_parser!(u32).range(..2))]
        rank: u32,
        /// Address of this end
        at: SocketAddr,
        /// Address of the other end
        peer: SocketAddr,
        /// Number from which both derive the numbers of their connection
        number: u32,
        #[command(flatten)]
        what: Messages,
    },
    /// Measure messages through an impaired network
    Messages {
        /// Impairment each way, such as loss=1%,delay=5ms,rate=100mbit
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        what: Messages,
        /// Run a TCP stream beside the messages
        #[arg(long)]
        beside_tcp: bool,
    },
    /// Measure a TCP stream through an impaired network
    Stream {
        /// Impairment each way, such as loss=1%,delay=5ms,rate=100mbit
        #[arg(long, default_value = "")]
        impair: Impairment,
        /// Seed of the random numbers
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Seconds of the stream
        #[arg(long, default_value_t = 20.0, value_parser = seconds)]
        seconds: f64,
        /// Congestion control of the sender
        #[arg(long, default_value = "cubic")]
        congestion: String,
        /// Emulator of the impairment [default: netem if the kernel has it, else relay]
        #[arg(long, value_enum)]
        by: Option<Emulator>,
    },
}

/// Task of two ranks and their settings for the path.
#[derive(Args, Clone, Copy, Debug)]
struct Messages {
    /// Seconds of the stream
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    /// Make this number of round trips instead of a stream
    #[arg(long)]
    times: Option<u64>,
    /// Octets of a message
    #[arg(long, default_value_t = 65_536)]
    octets: u64,
    /// Declare the path a private link with this rate in bits per second
    #[arg(long)]
    private: Option<NonZeroU64>,
    /// Use the U-Net protocol of 1997
    #[arg(long, alias = "classic", conflicts_with = "private")]
    unet: bool,
    /// Ack each message at once
    #[arg(long, requires = "unet")]
    eager_acks: bool,
}

impl Net {
    /// Runs the command and returns the exit status.
    pub fn run(&self) -> ExitCode {
        let done = match &self.what {
            NetCommand::Relay { impair, seed, pairs } => relay(pairs, *impair, *seed),
            NetCommand::Receive { at } => receive(*at).map_err(BenchError::system("a stream")),
            NetCommand::Rank { rank, at, peer, number, what } => {
                let config = what.end_config(*rank, [*at, *peer], *number);
                ends::serve(&config, io::stdin().lock(), io::stdout()).map_err(|error| {
                    BenchError::Contestant { name: format!("rank {rank}"), why: error.to_string() }
                })
            }
            NetCommand::Messages { impair, seed, what, beside_tcp } => {
                ImpairedPath::new(*impair, *seed, None).and_then(|path| measure_ours(path, what, *beside_tcp))
            }
            NetCommand::Send { to, seconds, congestion } => {
                let sent = stream::send(*to, Duration::from_secs_f64(*seconds), congestion);
                sent.map_err(BenchError::system(format!("a stream to {to} by {congestion}")))
            }
            NetCommand::Stream { impair, seed, seconds, congestion, by } => {
                ImpairedPath::new(*impair, *seed, *by)
                    .and_then(|path| measure(path, *impair, *seconds, congestion))
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

fn receive(at: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout();
    let Goodput { octets, nanos } = stream::receive(at, |at| {
        writeln!(io::stdout(), "{at}")?;
        io::stdout().flush()
    })?;
    writeln!(out, "{octets} {nanos}")
}

fn measure(path: ImpairedPath, impair: Impairment, seconds: f64, congestion: &str) -> Result<(), BenchError> {
    if let Some(why) = path.why_no_netem() {
        eprintln!("mpjdev-bench: a relay of this process impairs the network, since {why}");
    }
    let time = Duration::from_secs_f64(seconds);
    let goodput = Tcp::prepare(&path, time, congestion)?.start()?.tcp(time)?;
    let mut out = io::stdout();
    let emulator = path.emulator();
    let totals = path.end()?;
    let text = format!(
        "{:.2} Mbit/s of payload by {congestion} through {emulator}, '{impair}' each path ({} octets in {:.2} s)",
        goodput.mbit(),
        goodput.octets,
        goodput.nanos as f64 / 1e9
    );
    let lines = totals.map_or(text.clone(), |totals| format!("{text}\n{totals}"));
    writeln!(out, "{lines}").map_err(BenchError::system("standard output"))
}

fn measure_ours(path: ImpairedPath, what: &Messages, beside_tcp: bool) -> Result<(), BenchError> {
    let time = Duration::from_secs_f64(what.seconds);
    let mut ours = Pair::of_ends(&path, &what.options())?;
    let tcp = beside_tcp.then(|| Tcp::prepare(&path, time, "cubic")).transpose()?;
    let tcp = tcp.map(Tcp::start).transpose()?;
    ours.begin()?;
    let reports = ours.reports(time)?;
    let mut text = format!("{:.2} Mbit/s of messages\n{reports:#?}\n", reports[1].goodput().mbit());
    if let Some(tcp) = tcp {
        text += &format!("{:.2} Mbit/s by TCP beside them\n", tcp.tcp(time)?.mbit());
    }
    if let Some(totals) = path.end()? {
        text += &totals.to_string();
    }
    writeln!(io::stdout(), "{text}").map_err(BenchError::system("standard output"))
}

impl Messages {
    fn options(&self) -> Vec<String> {
        let mut options = vec![format!("--seconds={}", self.seconds), format!("--octets={}", self.octets)];
        options.extend(self.times.map(|times| format!("--times={times}")));
        options.extend(self.unet.then(|| "--unet".to_owned()));
        options.extend(self.eager_acks.then(|| "--eager-acks".to_owned()));
        options.extend(self.private.map(|rate| format!("--private={rate}")));
        options
    }

    fn end_config(&self, rank: u32, [at, peer]: [SocketAddr; 2], number: u32) -> EndConfig {
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
        EndConfig { rank, at, peer, number, protocol, octets: self.octets, task }
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
