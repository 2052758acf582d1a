//! `mpjdev impi-server`: the startup server of a job of several sites.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mpjdev_proto::impi::startup::{Failure, Limits, Server, ServerSettings};

use super::Text;
use super::run::seconds;
use crate::impi::auth;
use crate::impi::server::{Ending, Rim, say};

/// Arguments of `mpjdev impi-server`.
#[derive(Args, Debug)]
#[command(
    override_usage = "mpjdev impi-server -server N [OPTIONS]",
    after_help = "\
The first line of output is the address that the clients are given: mpjrun -client RANK ADDRESS:PORT, and likewise for \
other implementations. The server stays until all clients have finished. Refused connections are named on standard \
error, and the others go on.

Who may join is said in the environment, of the server and of each client alike:
  IMPI_AUTH_KEY_FILE  a file that holds the key, which nobody but its owner should be able to open (chmod 600); wins over \
IMPI_AUTH_KEY
  IMPI_AUTH_KEY       the key: a decimal number of 64 bits with a sign, or 0x and hexadecimal digits (which LAM does not \
know)
  IMPI_AUTH_NONE      set to anything: whoever has no key may join as well

With none of them set a server on a loopback address lets everybody on this machine join, as with IMPI_AUTH_NONE; so one \
person on one machine needs no key. Any other address needs a key. It travels in clear: where others can listen to the \
network, use a tunnel. A key that every implementation can read:

  export IMPI_AUTH_KEY=$(od -An -N7 -tu8 /dev/urandom | tr -d ' ')

Server and client use the strongest method that both have enabled; methods of others that mpjdev does not know are ignored. \
Without one in common the connection is refused.

At most 64 connections may be open that have not joined: one more closes the oldest silent one of the address that has \
most, and so does one that the server has no descriptor for. A site whose connection is closed before the server has answered tries again, four times in all.

A wrong key is answered after 0.2 s, each further one after twice that time, up to 5 s, which holds nobody else up. While \
64 wait for that answer the server listens to no new connection.

Exit status: 0 all clients have finished, 1 the job has failed, 124 the time to form it is over, 2 wrong usage or an \
address that cannot be had, 128 + n for signal n."
)]
pub struct ImpiServer {
    /// Number of clients, which have the ranks from 0 (also -server)
    #[arg(long = "server", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    server: u32,

    /// Address to listen on; any but a loopback address needs a key
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Port to listen on, 0 for any that is free (also -port)
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// End with status 124 if the job does not run after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Seconds for a connection to give its rank
    #[arg(long, alias = "join-wait", value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    join_timeout: Duration,

    /// Seconds for the other clients to finish after one was lost
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    grace: Duration,

    /// The text of IMPI that the clients follow
    #[arg(long, value_enum, default_value_t = Text::Final)]
    dialect: Text,
}

/// Maximum time from the last client's joining until the job runs.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of connections that have not joined.
const STRANGERS_MAX: usize = 64;
/// The status of a job that took too long, as in timeout(1).
const TIMED_OUT: u8 = 124;

impl ImpiServer {
    /// Serves one job and returns the exit status.
    pub fn run(&self) -> ExitCode {
        let status = match self.listen() {
            Err(why) => {
                say(&why);
                crate::UNUSABLE
            }
            Ok(rim) => match announce(&rim).and_then(|()| rim.run()) {
                Ok(Ending::Finished) => 0,
                Ok(Ending::Failed(failure)) => {
                    say(&failure.to_string());
                    status(&failure)
                }
                Ok(Ending::Signal(signal)) => {
                    say(&format!("ended by signal {signal}"));
                    128u8.saturating_add(signal as u8)
                }
                Err(error) => {
                    say(&error.to_string());
                    1
                }
            },
        };
        ExitCode::from(status)
    }

    fn listen(&self) -> Result<Rim, String> {
        let enabled = auth::from_environment(say).map_err(|error| error.to_string())?;
        let auth = auth::allowed(self.host, enabled)?;
        let limits = Limits {
            join_ms: ms(self.join_timeout),
            form_ms: self.timeout.map(ms),
            exchange_ms: ms(EXCHANGE_MAX),
            grace_ms: ms(self.grace),
            strangers_max: STRANGERS_MAX,
        };
        let dialect = self.dialect.into();
        let settings = ServerSettings { clients: self.server, dialect, auth, limits };
        let server = Server::new(settings, 0).map_err(|error| error.to_string())?;
        let address = (self.host, self.port).into();
        let rim =
            Rim::bind(address, server).map_err(|error| format!("cannot listen on {address}: {error}"))?;
        if !auth::is_loopback(self.host) && auth.none {
            say(&format!(
                "warning: with {} set, whoever can reach {} may join without a key",
                auth::AUTH_NONE,
                self.host
            ));
        }
        Ok(rim)
    }
}

/// Prints the address that the clients need. It is the first line of output.
fn announce(rim: &Rim) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", rim.address()?)?;
    out.flush()
}

fn status(failure: &Failure) -> u8 {
    match failure {
        Failure::NotFormed { .. } | Failure::NotStarted { .. } => TIMED_OUT,
        Failure::Client { .. } | Failure::Lost { .. } => 1,
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
