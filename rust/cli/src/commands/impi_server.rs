//! `mpjdev impi-server`: the startup server of a job of several sites.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mpjdev_proto::impi::startup::{Failure, Limits, Server, ServerSettings, SettingsError};
use thiserror::Error;

use super::Text;
use super::values::seconds;
use crate::impi::auth;
use crate::impi::server::{Ending, ServerDriver, print_line};

/// Arguments of `mpjdev impi-server`.
#[derive(Args, Debug)]
#[command(
    override_usage = "mpjdev impi-server -server N [OPTIONS]",
    after_help = "\
The first line of output is the address for the clients: mpjrun -client RANK ADDRESS:PORT, and likewise for \
other implementations. The server runs until all clients have finished. It names refused connections on \
standard error and continues to serve the others.

These variables of the server and of each client set who may join:
  IMPI_AUTH_KEY_FILE  name of a file that holds the key and that only its owner can read (chmod 600); \
precedes IMPI_AUTH_KEY
  IMPI_AUTH_KEY       the key: a signed decimal number of 64 bits, or 0x and hexadecimal digits (which LAM \
does not read)
  IMPI_AUTH_NONE      set to any value: clients without a key may join as well

Without any of them, a server on a loopback address accepts all clients of this machine, as with \
IMPI_AUTH_NONE. Every other address needs a key. The key is sent in clear text: use a tunnel on a network \
that others can read. To make a key that every implementation reads:

  export IMPI_AUTH_KEY=$(od -An -N7 -tu8 /dev/urandom | tr -d ' ')

Server and client use the strongest method that both enable. Methods that mpjdev does not know are ignored. \
A connection without a common method is refused.

At most 64 connections that have not joined may be open. One more closes the oldest of them from the address \
that has the most; so does a connection for which the server has no descriptor. A site whose connection is \
closed before the server has answered retries, four attempts in all.

The answer to a wrong key is delayed by 0.2 s, and by twice as long for each further one up to 5 s. Other \
connections are not delayed. While 64 connections wait for that answer, the server accepts no new one.

Exit status: 0 all clients have finished, 1 the job has failed, 124 the job did not start in time, 2 wrong \
usage or an address that the server cannot listen on, 128 + n for signal n."
)]
pub struct ImpiServer {
    /// Number of clients; their ranks begin at 0 (also -server)
    #[arg(long = "server", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    server: u32,

    /// Address to listen on; every address but loopback needs a key
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,

    /// Port to listen on, 0 for any free port (also -port)
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Seconds until the server ends with status 124 if the job has not started
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Seconds until a connection that has not stated its rank is closed
    #[arg(long, alias = "join-wait", value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    join_timeout: Duration,

    /// Seconds that the other clients have to finish after one is lost
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    grace: Duration,

    /// Version of the IMPI specification that the clients follow
    #[arg(long, value_enum, default_value_t = Text::Final)]
    dialect: Text,
}

/// The reason why the server cannot listen.
#[derive(Debug, Error)]
enum ListenError {
    /// A key is unusable.
    #[error(transparent)]
    Auth(#[from] auth::AuthError),
    /// The address needs a key.
    #[error(transparent)]
    KeyNeeded(#[from] auth::KeyNeeded),
    /// The settings contradict each other.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The system refuses.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
}

/// Maximum time from the last client's joining until the job runs.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of connections that have not joined.
const UNJOINED_MAX: usize = 64;
/// The status of a job that took too long, as in timeout(1).
const TIMED_OUT: u8 = 124;

impl ImpiServer {
    /// Serves one job and returns the exit status.
    pub fn run(&self) -> ExitCode {
        let status = match self.listen() {
            Err(error) => {
                print_line(&error.to_string());
                super::UNUSABLE
            }
            Ok(driver) => match announce(&driver).and_then(|()| driver.run()) {
                Ok(Ending::Finished) => 0,
                Ok(Ending::Failed(failure)) => {
                    print_line(&failure.to_string());
                    status(&failure)
                }
                Ok(Ending::Signal(signal)) => {
                    print_line(&format!("ended by signal {signal}"));
                    128u8.saturating_add(signal as u8)
                }
                Err(error) => {
                    print_line(&error.to_string());
                    1
                }
            },
        };
        ExitCode::from(status)
    }

    fn listen(&self) -> Result<ServerDriver, ListenError> {
        let enabled = auth::from_environment(print_line)?;
        let auth = auth::allowed(self.host, enabled)?;
        let limits = Limits {
            join_ms: ms(self.join_timeout),
            form_ms: self.timeout.map(ms),
            exchange_ms: ms(EXCHANGE_MAX),
            grace_ms: ms(self.grace),
            unjoined_max: UNJOINED_MAX,
        };
        let dialect = self.dialect.into();
        let settings = ServerSettings { clients: self.server, dialect, auth, limits };
        let server = Server::new(settings, 0)?;
        let address = (self.host, self.port).into();
        let driver =
            ServerDriver::bind(address, server).map_err(|error| ListenError::Bind { address, error })?;
        if !auth::is_loopback(self.host) && auth.none {
            print_line(&format!(
                "warning: {} is set, so every client that reaches {} may join without a key",
                auth::AUTH_NONE,
                self.host
            ));
        }
        Ok(driver)
    }
}

/// Prints the address that the clients need. It is the first line of output.
fn announce(driver: &ServerDriver) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", driver.address()?)?;
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
