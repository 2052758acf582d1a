//! Two network namespaces and an impaired path between them, which carries every protocol of the system.
//!
//! The kernel impairs the path (`tc netem` on a pair of interfaces). Where it cannot, a [`Relay`] between two
//! TUN interfaces does, by the same model as between sockets. A process keeps each namespace and ends when
//! its input is closed. So nothing remains when this process ends, even if it is killed.
//!
//! ```text
//! +- namespace 0 ------+                       +------ namespace 1 -+
//! | 10.77.0.1  mpjX0 --+-- netem, or a relay --+-- mpjX1  10.77.0.2 |
//! +--------------------+                       +--------------------+
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use mpjdev_sim::Impairment;
use mpjdev_sys::tunnel;

use super::BenchError;
use super::relay::{Relay, Totals};

/// Addresses of both ends.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
/// Limit of the packets in netem's queue, which includes delayed packets.
const NETEM_LIMIT: usize = 10_000;
/// Deadline of a process that was asked to end.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between polls of its state.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Emulator of an impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emulator {
    /// The kernel.
    Netem,
    /// A relay of ours.
    Relay,
}

impl fmt::Display for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Emulator::Netem => "netem of the kernel",
            Emulator::Relay => "a relay between two interfaces",
        })
    }
}

/// Two namespaces and the path between them.
#[derive(Debug)]
pub struct ImpairedPath {
    namespaces: [Namespace; 2],
    relay: Option<Relay>,
    why_no_netem: Option<BenchError>,
}

impl ImpairedPath {
    /// Makes namespaces and path, with the same impairment each way. Without an emulator the kernel is tried
    /// first, then a relay.
    ///
    /// # Errors
    /// [`BenchError::Missing`] if this process lacks a right or the machine a program, or if netem has no
    /// such impairment.
    pub fn new(
        impairment: Impairment,
        seed: u64,
        emulator: Option<Emulator>,
    ) -> Result<ImpairedPath, BenchError> {
        let why_no_netem = match emulator {
            Some(Emulator::Relay) => None,
            _ => {
                let namespaces = [Namespace::new()?, Namespace::new()?];
                match netem(&namespaces, impairment) {
                    Ok(()) => return Ok(ImpairedPath { namespaces, relay: None, why_no_netem: None }),
                    Err(error) if emulator.is_some() => return Err(error),
                    // Interfaces of the failed attempt are removed with their namespaces.
                    Err(error) => Some(error),
                }
            }
        };
        let namespaces = [Namespace::new()?, Namespace::new()?];
        let open = |side: usize| -> Result<File, BenchError> {
            let no_interface = |error| BenchError::Missing(format!("no interface of ours: {error}"));
            let (file, name) = tunnel::open("mpjw").map_err(no_interface)?;
            system(&["ip", "link", "set", &name, "netns", &namespaces[side].process()])?;
            namespaces[side].up(&name, ADDRESSES[side])?;
            Ok(file)
        };
        let relay = Relay::of_interfaces(open(0)?, open(1)?, impairment, seed);
        let relay = relay.map_err(BenchError::system("a relay"))?;
        Ok(ImpairedPath { namespaces, relay: Some(relay), why_no_netem })
    }

    /// The error of netem, if a relay emulates the path instead.
    pub fn why_no_netem(&self) -> Option<&BenchError> {
        self.why_no_netem.as_ref()
    }

    /// Emulator of the impairment.
    pub fn emulator(&self) -> Emulator {
        if self.relay.is_some() { Emulator::Relay } else { Emulator::Netem }
    }

    /// A command that runs at end 0 or 1, whose address is that of [`ADDRESSES`]. The caller appends the
    /// program and ends the process.
    pub fn command(&self, side: usize) -> Command {
        self.namespaces[side].command()
    }

    /// Removes the path and returns the relay's counts, if there was a relay.
    ///
    /// # Errors
    /// The relay has failed.
    pub fn end(self) -> Result<Option<Totals>, BenchError> {
        self.relay.map(Relay::end).transpose().map_err(BenchError::system("the relay"))
    }
}

/// Connects both namespaces by a veth pair with netem.
fn netem(namespaces: &[Namespace; 2], impairment: Impairment) -> Result<(), BenchError> {
    let words = netem_words(impairment)?;
    let process = [namespaces[0].process(), namespaces[1].process()];
    let names = [format!("mpjv{}", process[0]), format!("mpjv{}", process[1])];
    let pair = ["ip", "link", "add", &names[0], "netns", &process[0], "type", "veth"];
    system(&[&pair[..], &["peer", "name", &names[1], "netns", &process[1]]].concat())?;
    for ((namespace, own), name) in namespaces.iter().zip(ADDRESSES).zip(&names) {
        let rule = ["tc", "qdisc", "add", "dev", name, "root", "netem"];
        let rule = rule.into_iter().chain(words.iter().map(String::as_str));
        run(namespace.command().args(rule), "the kernel has no netem")?;
        namespace.up(name, own)?;
    }
    Ok(())
}

/// Arguments of netem for an impairment.
fn netem_words(impairment: Impairment) -> Result<Vec<String>, BenchError> {
    let Impairment { loss, burst, duplication, reorder, delay_ns, jitter_ns, rate, queue: _, partition } =
        impairment;
    if burst.is_some() || reorder.is_some() || partition.is_some() {
        let why = format!("netem lacks some part of '{impairment}', or defines it differently");
        return Err(BenchError::Missing(why));
    }
    let mut words = vec!["limit".to_owned(), NETEM_LIMIT.to_string()];
    if delay_ns > 0 || jitter_ns > 0 {
        // Jitter of netem is symmetric.
        let (middle, half) = (delay_ns + jitter_ns / 2, jitter_ns / 2);
        words.extend(["delay".to_owned(), format!("{}us", middle / 1000), format!("{}us", half / 1000)]);
    }
    for (name, chance) in [("loss", loss), ("duplicate", duplication)] {
        if chance.billionths() > 0 {
            words.extend([name.to_owned(), format!("{}%", f64::from(chance.billionths()) / 1e7)]);
        }
    }
    if let Some(rate) = rate {
        words.extend(["rate".to_owned(), format!("{rate}bit")]);
    }
    Ok(words)
}

/// A network namespace and the process that keeps it.
#[derive(Debug)]
struct Namespace(Child);

impl Namespace {
    fn new() -> Result<Namespace, BenchError> {
        let script = "ip link set lo up && echo ready && exec cat";
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| BenchError::Missing(format!("unshare: {error}")))?;
        let mut namespace = Namespace(child);
        let mut line = String::new();
        if let Some(stdout) = &mut namespace.0.stdout {
            BufReader::new(stdout).read_line(&mut line).map_err(BenchError::system("a namespace"))?;
        }
        if line.trim() == "ready" {
            return Ok(namespace);
        }
        let mut why = String::new();
        if let Some(stderr) = &mut namespace.0.stderr {
            io::Read::read_to_string(stderr, &mut why).map_err(BenchError::system("a namespace"))?;
        }
        Err(BenchError::Missing(format!("no network namespace: {}", why.trim())))
    }

    fn process(&self) -> String {
        self.0.id().to_string()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.process())).arg("--").stdin(Stdio::null());
        command
    }

    /// Gives an interface its address and brings it up.
    fn up(&self, name: &str, own: Ipv4Addr) -> Result<(), BenchError> {
        let address = format!("{own}/24");
        run(self.command().args(["ip", "address", "add", &address, "dev", name]), "an address")?;
        // A relay that waits for a processor must not lose packets.
        let queue = NETEM_LIMIT.to_string();
        run(self.command().args(["ip", "link", "set", name, "txqueuelen", &queue, "up"]), "an interface")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Its shell ends with its input; otherwise it is killed.
        drop(self.0.stdin.take());
        let _ = ended(&mut self.0, TIMEOUT);
    }
}

/// Waits for the end of a process. After the timeout the process is killed and the result is `None`.
pub fn ended(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn system(words: &[&str]) -> Result<(), BenchError> {
    run(Command::new(words[0]).args(&words[1..]), &words[..3].join(" "))
}

/// Runs a command to its end. An error has its standard error.
fn run(command: &mut Command, what: &str) -> Result<(), BenchError> {
    let missing = |why: &dyn fmt::Display| BenchError::Missing(format!("{what}: {why}"));
    let Output { status, stderr, .. } = command.output().map_err(|error| missing(&error))?;
    if status.success() { Ok(()) } else { Err(missing(&String::from_utf8_lossy(&stderr).trim())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impairment_is_translated_to_netem() {
        let words =
            |text: &str| netem_words(text.parse().expect("an impairment")).map(|words| words.join(" "));
        assert_eq!(words("").expect("words"), "limit 10000");
        assert_eq!(
            words("loss=1%,delay=5ms,rate=100mbit,dup=0.01%").expect("words"),
            "limit 10000 delay 5000us 0us loss 1% duplicate 0.01% rate 100000000bit"
        );
        assert_eq!(words("delay=1ms,jitter=1ms").expect("words"), "limit 10000 delay 1500us 500us");
        assert!(
            words("reorder=3").is_err()
                && words("burst=1%/50%").is_err()
                && words("partition=1s/1s").is_err()
        );
    }

    /// Proves that datagrams of one end reach the other over this path only, and that no namespace remains.
    #[test]
    fn sides_reach_each_other_over_the_path_only() {
        let path = match ImpairedPath::new(Impairment::NONE, 1, None) {
            Ok(path) => path,
            Err(error) => {
                eprintln!("NOT TESTED: {error}");
                return;
            }
        };
        let own = std::env::current_exe().expect("this program");
        let run = |side: usize, role: &str| {
            let mut command = path.command(side);
            command.arg(&own).args(["--exact", "netem::tests::one_side", "--nocapture"]);
            command.env(ROLE, role).output().expect("it runs")
        };
        std::thread::scope(|scope| {
            let there = scope.spawn(|| run(1, "answer"));
            let here = run(0, "ask");
            for output in [here, there.join().expect("no panic")] {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(output.status.success() && text.contains("done"), "{text}");
            }
        });
        if let Some(why) = path.why_no_netem() {
            eprintln!("NOT TESTED with netem, but with a relay: {why}");
        }
        let emulator = path.emulator();
        let namespaces = [path.namespaces[0].process(), path.namespaces[1].process()];
        let totals = path.end().expect("it ends");
        assert_eq!(totals.is_some(), emulator == Emulator::Relay);
        assert!(totals.is_none_or(|totals| totals.counts.iter().all(|counts| counts.delivered > 0)));
        for namespace in namespaces {
            assert!(!std::path::Path::new("/proc").join(namespace).exists(), "a namespace remains");
        }
    }

    const ROLE: &str = "MPJDEV_TEST_SIDE";

    /// One end of the test above. Without its environment variable it does nothing.
    #[test]
    fn one_side() {
        use std::net::UdpSocket;
        let Ok(role) = std::env::var(ROLE) else { return };
        let own = usize::from(role == "answer");
        let socket = UdpSocket::bind((ADDRESSES[own], 4000)).expect("the address of this end");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("an option");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut octets = [0; 16];
        // One end asks until it receives an answer; the other answers until no question arrives.
        let mut is_answered = false;
        loop {
            assert!(Instant::now() < deadline, "no datagram was received");
            if own == 0 {
                socket.send_to(b"ping", (ADDRESSES[1], 4000)).expect("sent");
            }
            match socket.recv_from(&mut octets) {
                Ok((_, from)) if own == 1 => {
                    socket.send_to(b"pong", from).expect("sent");
                    is_answered = true;
                }
                Ok(_) => break,
                Err(_) if is_answered => break,
                Err(_) => {}
            }
        }
        println!("done");
    }
}
