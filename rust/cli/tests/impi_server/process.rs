//! A server process, and clients that join it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpjdev_cli::impi::client::{JoinError, Joined, join};
use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{Auth, HostSettings, Key, Settings};
use mpjdev_proto::impi::{Dialect, Proc};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const NO_KEY: Auth = Auth { none: true, key: None };
pub(crate) const WITH_KEY: Auth = Auth { none: false, key: Some(Key(42)) };

pub(crate) fn soon() -> Option<Instant> {
    Some(Instant::now() + DEADLINE)
}

/// A running `mpjdev impi-server`, which is killed on drop.
pub(crate) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    err: Option<JoinHandle<String>>,
    pub(crate) address: SocketAddr,
}

/// The command line of a server, with these variables only.
pub(crate) fn command(args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new("env");
    // Signals that this process ignores, as in the background of a script, are not ignored there.
    command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_mpjdev"), "impi-server"]).args(args);
    ["IMPI_AUTH_NONE", "IMPI_AUTH_KEY", "IMPI_AUTH_KEY_FILE"].iter().for_each(|name| {
        command.env_remove(name);
    });
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Process {
    pub(crate) fn start(args: &[&str]) -> Process {
        Process::start_with(args, &[])
    }

    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut child = command(args, variables).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut err = child.stderr.take().expect("piped");
        let err = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).expect("UTF-8");
            text
        });
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let address = line.strip_suffix('\n').and_then(|line| line.parse().ok());
        let address = address.unwrap_or_else(|| panic!("the first line is no address: {line:?}"));
        Process { child, out, err: Some(err), address }
    }

    /// Waits for its end; returns exit status and standard error. Standard output must be one line.
    pub(crate) fn ended(mut self) -> (i32, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                break status.code().expect("no signal");
            }
            assert!(begun.elapsed() < DEADLINE, "still running");
            std::thread::sleep(Duration::from_millis(1));
        };
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(rest, "");
        (status, self.err.take().expect("once").join().expect("no panic"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it lives");
    }

    /// Limits its open files from now on.
    pub(crate) fn limit_files(&self, files: u64) {
        let limit = Rlimit { current: Some(files), maximum: Some(files) };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limit).expect("our child");
    }

    /// Its peak memory in octets.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("proc(5)");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    pub(crate) fn connect(&self) -> RawClient {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time");
        RawClient(stream)
    }

    /// Joins with these settings, on a thread of its own, since joining blocks.
    pub(crate) fn join(&self, settings: Settings) -> JoinHandle<Result<Joined, JoinError>> {
        let address = self.address.to_string();
        std::thread::spawn(move || join(&address, settings, soon()))
    }

    /// All clients, joined.
    pub(crate) fn join_all(&self, settings: impl IntoIterator<Item = Settings>) -> Vec<Joined> {
        let joining: Vec<_> = settings.into_iter().map(|settings| self.join(settings)).collect();
        let joined = joining.into_iter().map(|client| client.join().expect("no panic"));
        joined.map(|joined| joined.expect("it joins")).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A raw connection to the server.
pub(crate) struct RawClient(pub(crate) TcpStream);

impl RawClient {
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("connected")
    }

    pub(crate) fn send(&mut self, octets: &[u8]) {
        self.0.write_all(octets).expect("it listens");
    }

    pub(crate) fn receive(&mut self, len: usize) -> Vec<u8> {
        let mut octets = vec![0; len];
        self.0.read_exact(&mut octets).expect("it answers");
        octets
    }

    /// Waits until the server has closed the connection.
    pub(crate) fn until_closed(&mut self) {
        let mut octets = [0; 1024];
        loop {
            match self.0.read(&mut octets) {
                Ok(n) if n > 0 => {}
                Ok(_) => return,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Closes the sending side.
    pub(crate) fn end(&mut self) {
        self.0.shutdown(Shutdown::Write).expect("connected");
    }
}

/// The announcement of a site of one process.
pub(crate) fn settings(rank: u32) -> Settings {
    let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1];
    let procs = vec![Proc { host_id: address, pid: 100 + i64::from(rank) }];
    Settings {
        rank,
        dialect: Dialect::Final,
        auth: NO_KEY,
        versions: vec![Version::V0_0],
        hosts: vec![HostSettings { address, port: 5000 + rank as u16, procs, ackmark: 10, hiwater: 20 }],
        datalen: 65536,
        tag_ub: i32::MAX as u32,
        coll_xsize: None,
        coll_maxlinear: None,
        pipelines: false,
    }
}

/// A message of the startup protocol.
pub(crate) fn message(command: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    [&command[..], &(payload.len() as u32).to_be_bytes(), payload].concat()
}

/// The first octets of a client.
pub(crate) fn joining(rank: u32) -> Vec<u8> {
    [message(b"AUTH", &[0, 0, 0, 1]), message(b"IMPI", &rank.to_be_bytes())].concat()
}
