//! Processes of jobs of several sites: servers, sites, and foreign sites.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mpjdev_bootstrap::job::world::address_octets;
use mpjdev_cli::impi::client::{Joined, join};
use mpjdev_proto::impi::startup::layout::Version;
use mpjdev_proto::impi::startup::{Auth, HostSettings, Settings};
use mpjdev_proto::impi::{Dialect, Proc};

use crate::{DEADLINE, Ended, own};

const VARIABLES: [&str; 3] = ["IMPI_AUTH_NONE", "IMPI_AUTH_KEY", "IMPI_AUTH_KEY_FILE"];
pub(crate) const KEY: (&str, &str) = ("IMPI_AUTH_KEY", "4711");
pub(crate) const NO_KEY: (&str, &str) = ("IMPI_AUTH_NONE", "1");

/// A process that is killed on drop.
pub(crate) struct Started {
    pub(crate) child: Child,
    out: BufReader<std::process::ChildStdout>,
    err: Option<std::thread::JoinHandle<String>>,
}

impl Started {
    pub(crate) fn new(words: &[&str], variable: (&str, &str)) -> Started {
        Started::by(Command::new(env!("CARGO_BIN_EXE_mpjdev")), words, variable)
    }

    /// Started by a command that runs mpjdev.
    pub(crate) fn by(mut command: Command, words: &[&str], variable: (&str, &str)) -> Started {
        VARIABLES.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.args(words).env(variable.0, variable.1);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let mut err = child.stderr.take().expect("piped");
        let err = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).map(|_| text).expect("UTF-8")
        });
        Started { child, out, err: Some(err) }
    }

    /// The next line of its output, without the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("UTF-8");
        line.trim_end().to_owned()
    }

    /// Reads the lines of its two ranks that have joined.
    ///
    /// # Panics
    /// There is another line or none; the text has exit status and standard error.
    pub(crate) fn met(&mut self) {
        let said = [self.line(), self.line()];
        if said != ["met", "met"] {
            let _ = self.child.kill();
            let status = self.child.wait().expect("our child");
            let err = self.err.take().expect("once").join().expect("no panic");
            panic!("{said:?} before {status}: {err}");
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The rest of its output, and its end.
    pub(crate) fn ended(mut self) -> Ended {
        let mut out = String::new();
        self.out.read_to_string(&mut out).expect("UTF-8");
        let status = self.child.wait().expect("our child").code().unwrap_or(-1);
        (status, out, self.err.take().expect("once").join().expect("no panic"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A startup server and its address.
pub(crate) fn server(sites: u32, options: &[&str], variable: (&str, &str)) -> (Started, String) {
    let sites = sites.to_string();
    let words = [&["impi-server", "-server", &sites, "--grace", "5"], options].concat();
    let mut server = Started::new(&words, variable);
    let address = server.line();
    (server, address)
}

/// A site of some ranks.
pub(crate) fn site(
    client: u32,
    address: &str,
    ranks: u32,
    options: &[&str],
    part: &str,
    key: (&str, &str),
) -> Started {
    let (client, ranks, own) = (client.to_string(), ranks.to_string(), own());
    let words = ["run", "-client", &client, address, "-n", &ranks, "--timeout", DEADLINE];
    Started::new(&[&words, options, &[own.to_str().expect("UTF-8"), part]].concat(), key)
}

/// Joins as a foreign site: client 1 with one process, whose host 127.0.0.1:9 never connects.
pub(crate) fn foreign_site(server: &str) -> Joined {
    let host_id = address_octets([127, 0, 0, 1].into());
    let procs = vec![Proc { host_id, pid: 4711 }];
    let settings = Settings {
        rank: 1,
        dialect: Dialect::Final,
        auth: Auth { none: true, key: None },
        versions: vec![Version::V0_0],
        hosts: vec![HostSettings { address: host_id, port: 9, procs, ackmark: 1, hiwater: 2 }],
        datalen: 1000,
        tag_ub: 40_000,
        coll_xsize: None,
        coll_maxlinear: None,
        pipelines: false,
    };
    join(server, settings, Some(Instant::now() + Duration::from_secs(60))).expect("it joins")
}
