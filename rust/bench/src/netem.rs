//! Two network namespaces and a bad way between them, which all of the system's protocols have to take.
//!
//! The kernel can make a way bad (`tc netem` on a pair of interfaces); where it cannot, a [`Relay`] between
//! two interfaces whose other ends are ours does it, by the same model as between sockets. A namespace lives
//! for as long as a process in it, which ends with the pipe to it: so all of this goes with its owner,
//! however that ends.
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
use mpjdev_proto::datagram::network::Impairment;
use mpjdev_sys::tunnel;

use super::BenchError;
use super::relay::{Relay, Totals};

/// Addresses of the sides.
pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
/// Packets that netem may hold, those on their way among them.
const NETEM_LIMIT: usize = 10_000;
/// Deadline of a process that was asked to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(5);

/// Maker of an impairment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Maker {
    /// The kernel.
    Netem,
    /// A relay of ours.
    Relay,
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Maker::Netem => "netem of the kernel",
            Maker::Relay => "a relay between two interfaces",
        })
    }
}

/// Two namespaces and the way between them.
#[derive(Debug)]
pub struct Way {
    spaces: [Space; 2],
    relay: Option<Relay>,
    why_no_netem: Option<BenchError>,
}

impl Way {
    /// Makes both, with the same impairment there and back. Who makes it bad is what is asked for, or who
    /// can.
    ///
    /// # Errors
    /// [`BenchError::Missing`] when this process may not, the machine lacks something, or the kernel is asked
    /// for an impairment that it has not.
    pub fn new(impairment: Impairment, seed: u64, maker: Option<Maker>) -> Result<Way, BenchError> {
        let why_no_netem = match maker {
            Some(Maker::Relay) => None,
            _ => {
                let spaces = [Space::new()?, Space::new()?];
                match netem(&spaces, impairment) {
                    Ok(()) => return Ok(Way { spaces, relay: None, why_no_netem: None }),
                    Err(error) if maker.is_some() => return Err(error),
                    // What is left of the trial goes with these namespaces.
                    Err(error) => Some(error),
                }
            }
        };
        let spaces = [Space::new()?, Space::new()?];
        let open = |side: usize| -> Result<File, BenchError> {
            let no_interface = |error| BenchError::Missing(format!("no interface of ours: {error}"));
            let (file, name) = tunnel::open("mpjw").map_err(no_interface)?;
            system(&["ip", "link", "set", &name, "netns", &spaces[side].process()])?;
            spaces[side].up(&name, ADDRESSES[side])?;
            Ok(file)
        };
        let relay = Relay::of_interfaces(open(0)?, open(1)?, impairment, seed);
        let relay = relay.map_err(BenchError::system("a relay"))?;
        Ok(Way { spaces, relay: Some(relay), why_no_netem })
    }

    /// Why the kernel does not make it bad, where that was for us to choose.
    pub fn why_no_netem(&self) -> Option<&BenchError> {
        self.why_no_netem.as_ref()
    }

    /// Maker of the impairment.
    pub fn maker(&self) -> Maker {
        if self.relay.is_some() { Maker::Relay } else { Maker::Netem }
    }

    /// A command that runs on this side, 0 or 1, where it is the address [`ADDRESSES`]; its words follow.
    /// The caller ends it.
    pub fn command(&self, side: usize) -> Command {
        self.spaces[side].command()
    }

    /// Ends the way; gives what the relay has counted, if it was one.
    ///
    /// # Errors
    /// The relay has failed.
    pub fn end(self) -> Result<Option<Totals>, BenchError> {
        self.relay.map(Relay::end).transpose().map_err(BenchError::system("the relay"))
    }
}

/// Joins both by a pair of interfaces that the kernel makes bad.
fn netem(spaces: &[Space; 2], impairment: Impairment) -> Result<(), BenchError> {
    let words = netem_words(impairment)?;
    let process = [spaces[0].process(), spaces[1].process()];
    let names = [format!("mpjv{}", process[0]), format!("mpjv{}", process[1])];
    let pair = ["ip", "link", "add", &names[0], "netns", &process[0], "type", "veth"];
    system(&[&pair[..], &["peer", "name", &names[1], "netns", &process[1]]].concat())?;
    for ((space, own), name) in spaces.iter().zip(ADDRESSES).zip(&names) {
        let rule = ["tc", "qdisc", "add", "dev", name, "root", "netem"];
        let rule = rule.into_iter().chain(words.iter().map(String::as_str));
        run(space.command().args(rule), "the kernel makes no way bad (netem)")?;
        space.up(name, own)?;
    }
    Ok(())
}

/// An impairment in netem's words.
fn netem_words(impairment: Impairment) -> Result<Vec<String>, BenchError> {
    let Impairment { loss, burst, duplication, reorder, delay_ns, jitter_ns, rate, queue: _, partition } =
        impairment;
    if burst.is_some() || reorder.is_some() || partition.is_some() {
        let why = format!("netem has not, or means otherwise, some of '{impairment}'");
        return Err(BenchError::Missing(why));
    }
    let mut words = vec!["limit".to_owned(), NETEM_LIMIT.to_string()];
    if delay_ns > 0 || jitter_ns > 0 {
        // Jitter of netem goes both ways.
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
struct Space(Child);

impl Space {
    fn new() -> Result<Space, BenchError> {
        let script = "ip link set lo up && echo ready && exec cat";
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| BenchError::Missing(format!("unshare: {error}")))?;
        let mut space = Space(child);
        let mut line = String::new();
        if let Some(stdout) = &mut space.0.stdout {
            // It says something or ends.
            BufReader::new(stdout).read_line(&mut line).map_err(BenchError::system("a namespace"))?;
        }
        if line.trim() == "ready" {
            return Ok(space);
        }
        let mut why = String::new();
        if let Some(stderr) = &mut space.0.stderr {
            io::Read::read_to_string(stderr, &mut why).map_err(BenchError::system("a namespace"))?;
        }
        Err(BenchError::Missing(format!("no namespace of the network: {}", why.trim())))
    }

    fn process(&self) -> String {
        self.0.id().to_string()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.process())).arg("--").stdin(Stdio::null());
        command
    }

    /// Gives an interface that is there its address.
    fn up(&self, name: &str, own: Ipv4Addr) -> Result<(), BenchError> {
        let address = format!("{own}/24");
        run(self.command().args(["ip", "address", "add", &address, "dev", name]), "an address")?;
        // A relay that has to wait for a processor loses nothing.
        let queue = NETEM_LIMIT.to_string();
        run(self.command().args(["ip", "link", "set", name, "txqueuelen", &queue, "up"]), "an interface")
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // It reads the end of its input; if not, it has to go all the same.
        drop(self.0.stdin.take());
        let _ = ended(&mut self.0, PATIENCE);
    }
}

/// Waits for the end of a process, and ends it when it takes too long; none then.
pub fn ended(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn system(words: &[&str]) -> Result<(), BenchError> {
    run(Command::new(words[0]).args(&words[1..]), &words[..3].join(" "))
}

/// Runs a command to its end; says what it has said when it fails.
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

    /// Proves that what is sent on one side comes to the other, that only this way leads there, and that
    /// nothing is left.
    #[test]
    fn sides_reach_each_other_over_the_path_only() {
        let way = match Way::new(Impairment::NONE, 1, None) {
            Ok(way) => way,
            Err(error) => {
                eprintln!("NOT TESTED: {error}");
                return;
            }
        };
        let own = std::env::current_exe().expect("this program");
        let run = |side: usize, role: &str| {
            let mut command = way.command(side);
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
        if let Some(why) = way.why_no_netem() {
            eprintln!("NOT TESTED with netem, but with a relay: {why}");
        }
        let maker = way.maker();
        let spaces = [way.spaces[0].process(), way.spaces[1].process()];
        let totals = way.end().expect("it ends");
        assert_eq!(totals.is_some(), maker == Maker::Relay);
        assert!(totals.is_none_or(|totals| totals.counts.iter().all(|counts| counts.delivered > 0)));
        for space in spaces {
            assert!(!std::path::Path::new("/proc").join(space).exists(), "a namespace is left");
        }
    }

    const ROLE: &str = "MPJDEV_TEST_SIDE";

    /// One side of the test above; on its own it does nothing.
    #[test]
    fn one_side() {
        use std::net::UdpSocket;
        let Ok(role) = std::env::var(ROLE) else { return };
        let own = usize::from(role == "answer");
        let socket = UdpSocket::bind((ADDRESSES[own], 4000)).expect("the address is here");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("an option");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut octets = [0; 16];
        // Asks until there is an answer; answers until nobody asks any more.
        let mut is_answered = false;
        loop {
            assert!(Instant::now() < deadline, "nothing comes");
            if own == 0 {
                socket.send_to(b"anybody?", (ADDRESSES[1], 4000)).expect("sent");
            }
            match socket.recv_from(&mut octets) {
                Ok((_, from)) if own == 1 => {
                    socket.send_to(b"yes", from).expect("sent");
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
