//! Time in which clients form a job at the startup server (IMPI 5).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use mpjdev_proto::impi::startup::layout::{TAG_UB_MAX, Version};
use mpjdev_proto::impi::startup::{Auth, Client, Event, HostSettings, Key, Settings};
use mpjdev_proto::impi::{Dialect, Proc};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::BenchError;

/// Name in reports.
pub const NAME: &str = "mpjdev impi-server";
/// Timeout of an answer of the server.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of the server's end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between polls of the server's process.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Octets of a read.
const READ_LEN: usize = 16 << 10;
/// Octets of user data in a packet. No packet is sent.
const DATALEN: u32 = 65536;
/// IMPI's ackmark: counted packets after which a ProtoAck is sent.
const ACKMARK: u32 = 10;
/// IMPI's hiwater: limit of unacknowledged packets.
const HIWATER: u32 = 20;

/// Times of a start-up.
#[derive(Clone, Copy, Debug)]
pub struct StartupTime {
    /// Time from the first connect until the last client has the tables of the job.
    pub all: Duration,
    /// The part of it after the last client was connected.
    pub beyond: Duration,
}

/// Command line of the startup server for a number of clients.
pub fn server(launcher: &Path, clients: u32) -> Command {
    let mut command = Command::new(launcher);
    command.args(["impi-server", "-server", &clients.to_string()]);
    command
}

/// Starts a server and all clients at the same time, and waits for their ends.
///
/// # Errors
/// The server cannot be started or prints no address, or a client fails.
pub fn measure(command: &mut Command, clients: u32) -> Result<StartupTime, BenchError> {
    // A random key excludes other processes. It is decimal and positive, so that every server can read it
    // (IMPI 5.2).
    let key = RandomState::new().build_hasher().finish() >> 1;
    command.env_remove("IMPI_AUTH_KEY_FILE").env_remove("IMPI_AUTH_NONE");
    command.env("IMPI_AUTH_KEY", key.to_string());
    let mut server = Server::start(command)?;
    let address = server.address()?;
    let barrier = Barrier::new(clients as usize);
    let joined = std::thread::scope(|scope| {
        let join = |rank| {
            let (address, barrier) = (&address, &barrier);
            scope.spawn(move || {
                barrier.wait();
                Joined::new(address, settings(rank, key), clients)
            })
        };
        let threads: Vec<_> = (0..clients).map(join).collect();
        let panicked = || Err(wrong("a client panicked".into()));
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked()));
        joined.collect::<Result<Vec<Joined>, BenchError>>()
    })?;
    let taken = taken(&joined);
    for client in joined {
        client.end()?;
    }
    server.end()?;
    taken.ok_or_else(|| wrong("it has no clients".into()))
}

fn taken(joined: &[Joined]) -> Option<StartupTime> {
    let begun = joined.iter().map(|client| client.begun).min()?;
    let connected = joined.iter().map(|client| client.connected).max()?;
    let done = joined.iter().map(|client| client.done).max()?;
    Some(StartupTime { all: done.duration_since(begun), beyond: done.duration_since(connected) })
}

fn wrong(why: String) -> BenchError {
    BenchError::Contestant { name: NAME.into(), why }
}

fn settings(rank: u32, key: u64) -> Settings {
    let address = Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
    let procs = vec![Proc { host_id: address, pid: i64::from(rank) + 1 }];
    // No client connects to that port, since the job ends after startup.
    let host = HostSettings { address, port: 1, procs, ackmark: ACKMARK, hiwater: HIWATER };
    Settings {
        rank,
        dialect: Dialect::Final,
        auth: Auth { none: false, key: Some(Key(key)) },
        versions: vec![Version::V0_0],
        hosts: vec![host],
        datalen: DATALEN,
        tag_ub: TAG_UB_MAX,
        coll_xsize: None,
        coll_maxlinear: None,
        pipelines: true,
    }
}

/// A client that has joined.
struct Joined {
    stream: TcpStream,
    client: Client,
    begun: Instant,
    connected: Instant,
    done: Instant,
}

impl Joined {
    fn new(address: &str, settings: Settings, clients: u32) -> Result<Joined, BenchError> {
        let rank = settings.rank;
        let failed = |why: String| wrong(format!("client {rank}: {why}"));
        let system = |error: io::Error| failed(error.to_string());
        let mut client = Client::new(settings).map_err(|error| failed(error.to_string()))?;
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address).map_err(system)?;
        let connected = Instant::now();
        stream.set_nodelay(true).map_err(system)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(system)?;
        let mut octets = vec![0; READ_LEN];
        loop {
            send(&mut client, &mut stream).map_err(system)?;
            while let Some(event) = client.poll_event() {
                if let Event::Done(tables) = event {
                    let done = Instant::now();
                    if tables.clients.len() != clients as usize {
                        return Err(failed(format!("the job has {} clients", tables.clients.len())));
                    }
                    return Ok(Joined { stream, client, begun, connected, done });
                }
            }
            let handled = match stream.read(&mut octets).map_err(system)? {
                0 => client.handle_eof(),
                count => client.handle_octets(&octets[..count]),
            };
            handled.map_err(|error| failed(error.to_string()))?;
        }
    }

    /// Sends the end of the client.
    fn end(mut self) -> Result<(), BenchError> {
        self.client.finish().map_err(|error| wrong(error.to_string()))?;
        send(&mut self.client, &mut self.stream).map_err(|error| wrong(error.to_string()))
    }
}

/// Sends the output of a client in one write.
fn send(client: &mut Client, stream: &mut TcpStream) -> io::Result<()> {
    let mut octets = Vec::new();
    while let Some(output) = client.poll_output() {
        octets.extend(output);
    }
    stream.write_all(&octets)
}

/// The server's process. It is killed when this is dropped.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Result<Server, BenchError> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        Ok(Server(child.map_err(BenchError::system(NAME))?))
    }

    /// Address of the server, which is its first line of output.
    fn address(&mut self) -> Result<String, BenchError> {
        let stdout = self.0.stdout.as_mut().ok_or_else(|| wrong("it has no output".into()))?;
        let seconds = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let mut ready = [PollFd::new(stdout, PollFlags::IN)];
        let count = poll(&mut ready, Some(&seconds)).map_err(|e| BenchError::system(NAME)(e.into()))?;
        let mut line = String::new();
        if count > 0 {
            BufReader::new(stdout).read_line(&mut line).map_err(BenchError::system(NAME))?;
        }
        match line.trim() {
            "" => Err(wrong("it printed no address".into())),
            address => Ok(address.to_owned()),
        }
    }

    fn end(mut self) -> Result<(), BenchError> {
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            match self.0.try_wait().map_err(BenchError::system(NAME))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(wrong(format!("it ended with {status}"))),
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
        Err(wrong(format!("it did not end in {END_TIMEOUT:?}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if the process has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(script: &str) -> String {
        let mut command = Command::new("sh");
        measure(command.args(["-c", script]), 2).expect_err("no server").to_string()
    }

    #[test]
    fn startup_of_a_wrong_server_command_fails_with_its_reason() {
        assert_eq!(failure("exit 2"), "mpjdev impi-server: it printed no address");
        assert!(failure("echo nowhere").starts_with("mpjdev impi-server: client "));
        let mut missing = Command::new("/no/such/command");
        assert!(matches!(measure(&mut missing, 2), Err(BenchError::System { .. })));
    }
}
