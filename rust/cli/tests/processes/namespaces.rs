//! Tests of sites on several machines, simulated by network namespaces that a bridge connects.
//!
//! They need root, `ip` and `tc` (iproute2), and are skipped elsewhere.

use std::process::Command;
use std::time::{Duration, Instant};

use mpjdev_testing::machines::{make_hub, make_machine, name, port, run};

use crate::started::{KEY, Started};
use crate::{DEADLINE, lines, own, skip, soaks};

/// Addresses that are reserved for tests (RFC 2544): of the server, and of the sites.
const SERVER: &str = "198.18.0.1";
const SITES: [&str; 2] = ["198.18.0.2", "198.18.0.3"];
/// Ranks of a site.
const RANKS: u32 = 2;

/// One machine for the server, and one for each site. They are removed on drop.
struct Machines {
    name: String,
}

impl Machines {
    /// Skips the test if the system refuses.
    fn new() -> Machines {
        let machines = Machines { name: name() };
        if let Err(why) = machines.make() {
            skip(why);
        }
        machines
    }

    fn make(&self) -> Result<(), String> {
        let hub = self.hub();
        make_hub(&hub, &[&format!("{SERVER}/24")])?;
        SITES.iter().enumerate().try_for_each(|(site, address)| {
            make_machine(&hub, &port(site), &self.site(site), &[&format!("{address}/24")])
        })
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }

    fn site(&self, site: usize) -> String {
        format!("{}-site-{site}", self.name)
    }

    /// Starts our command on a machine.
    fn start(machine: &str, words: &[&str]) -> Started {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", machine, env!("CARGO_BIN_EXE_mpjdev")]);
        Started::by(command, words, KEY)
    }

    fn server(&self, dialect: &str) -> (Started, String) {
        let words = ["impi-server", "-server", "2", "--host", SERVER, "--grace", "5", "--dialect", dialect];
        let mut server = Machines::start(&self.hub(), &words);
        let address = server.line();
        assert!(address.starts_with(SERVER), "{address:?}: {:?}", server.ended());
        (server, address)
    }

    /// Starts both sites.
    fn sites(&self, address: &str, options: &[&str], part: &str) -> [Started; 2] {
        let (ranks, own) = (RANKS.to_string(), own());
        [0, 1].map(|site: usize| {
            let client = site.to_string();
            let words = ["run", "-client", &client, address, "-n", &ranks, "--timeout", DEADLINE];
            let words = [&words, options, &[own.to_str().expect("UTF-8"), part]].concat();
            Machines::start(&self.site(site), &words)
        })
    }

    /// Delays and drops packets of both sites; returns the method, or none if the kernel supports none.
    fn impair(&self) -> Result<&'static str, String> {
        let all = |discipline: &[&str]| {
            (0..SITES.len()).try_for_each(|site| {
                let (machine, at) = (self.site(site), ["qdisc", "replace", "dev", "eth", "root"]);
                run("tc", &[&["-n", &machine], &at[..], discipline].concat())
            })
        };
        let Err(why) = all(&["netem", "delay", "5ms", "loss", "1%"]) else { return Ok("netem") };
        println!(
            "SKIPPED a delay of 5 ms and a loss of 1%: {why}; a short queue that delays and drops instead"
        );
        all(&["tbf", "rate", "200mbit", "burst", "8kb", "latency", "1ms"]).map(|()| "tbf")
    }

    /// The number of dropped packets of both sites.
    fn dropped(&self) -> u64 {
        let of = |site: usize| {
            let words = ["-n", &self.site(site), "-s", "qdisc", "show", "dev", "eth"];
            let output = Command::new("tc").args(words).output().expect("it has run before");
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            let (_, behind) = text.split_once("(dropped ").expect("a count");
            behind.split(',').next().and_then(|number| number.parse::<u64>().ok()).expect("a number")
        };
        (0..SITES.len()).map(of).sum()
    }

    /// Sets the MTU of both sites' interfaces.
    fn narrow(&self, mtu: u32) {
        for site in 0..SITES.len() {
            let words = ["-n", &self.site(site), "link", "set", "eth", "mtu", &mtu.to_string()];
            run("ip", &words).expect("it is there");
        }
    }

    /// Makes the hub a router whose link to the second site has an MTU of 1400 octets. It drops longer
    /// packets silently. With `clamps` it lowers the segment size of TCP connections, as most routers of such
    /// links do.
    fn route_over_a_narrow_link(&self, clamps: bool) -> Result<(), String> {
        let hub = self.hub();
        let in_hub = |words: &[&str]| run("ip", &[&["-n", &hub], words].concat());
        for (site, address) in SITES.iter().enumerate() {
            let (port, machine) = (port(site), self.site(site));
            in_hub(&["link", "set", &port, "nomaster"])?;
            in_hub(&["route", "add", &format!("{address}/32"), "dev", &port, "src", SERVER])?;
            let all =
                ["route", "replace", "198.18.0.0/24", "via", SERVER, "dev", "eth", "onlink", "src", address];
            let segments: &[&str] = if clamps { &["advmss", "1300"] } else { &[] };
            run("ip", &[&["-n", &machine], &all[..], segments].concat())?;
        }
        run("ip", &["netns", "exec", &hub, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])?;
        self.narrow_port()?;
        // The router sends no ICMP messages.
        in_hub(&["rule", "add", "iif", "lo", "pref", "5", "blackhole"])
    }

    /// The bridge drops frames of more than 1400 octets on the link to the second site, in both directions
    /// and silently.
    fn bridge_over_a_narrow_link(&self) -> Result<(), String> {
        for site in 0..SITES.len() {
            // Sites send no GSO batches, whose datagrams the link would not measure.
            run("ip", &["-n", &self.site(site), "link", "set", "eth", "gso_max_segs", "1"])?;
        }
        self.narrow_port()
    }

    fn narrow_port(&self) -> Result<(), String> {
        run("ip", &["-n", &self.hub(), "link", "set", &port(1), "mtu", "1400"])
    }

    /// Runs a job with messages of up to a megabyte over UDP, whose ranks all succeed. The server is on the
    /// machine of the first site.
    fn runs_by_datagrams(&self, options: &[&str]) {
        let words = ["impi-server", "-server", "2", "--host", SITES[0], "--grace", "5"];
        let mut server = Machines::start(&self.site(0), &words);
        let address = server.line();
        let options =
            [&["--transport", "udp", "--peer-timeout", "30", "-x", "MPJDEV_STATS=json"], options].concat();
        for (site, started) in (0..).zip(self.sites(&address, &options, "ring")) {
            let (status, out, err) = started.ended();
            let expected: Vec<String> =
                (site * RANKS..(site + 1) * RANKS).map(|rank| format!("{rank}: done")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_eq!((status, lines(&out)), (0, expected), "{options:?}: {err}");
            assert_eq!(err.lines().count() as u32, RANKS, "statistics only: {err}");
            // One line of each rank about each rank of the other site.
            let count = err.matches("\"datagram_len\":1368,").count() as u32;
            assert_eq!(count, RANKS * RANKS, "{options:?}: {err}");
        }
        let (status, _, err) = server.ended();
        assert_eq!((status, err.as_str()), (0, ""), "{options:?}");
    }

    /// Cuts the link of this site.
    fn cut(&self, site: usize) {
        run("ip", &["-n", &self.hub(), "link", "set", &port(site), "down"]).expect("it is there");
    }

    /// Runs a job whose ranks all succeed.
    fn runs(&self, dialect: &str, part: &str) {
        let (server, address) = self.server(dialect);
        let sites = self.sites(&address, &["--dialect", dialect, "--tag-output"], part);
        for (site, started) in (0..).zip(sites) {
            let (status, out, err) = started.ended();
            let said = |rank| match part {
                "exchange" => format!("[{rank}] done"),
                _ => format!("[{rank}] {rank}: done"),
            };
            let expected: Vec<String> = (site * RANKS..(site + 1) * RANKS).map(said).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_eq!((status, lines(&out), err.as_str()), (0, expected, ""), "{part}, {dialect}");
        }
        let (status, _, err) = server.ended();
        assert_eq!((status, err.as_str()), (0, ""), "{part}, {dialect}");
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in [self.hub(), self.site(0), self.site(1)] {
            let _ = run("ip", &["netns", "delete", &machine]);
        }
    }
}

/// Runs several jobs at the same time, each on machines of its own, since they mostly wait.
fn at_once<T: Sync>(jobs: &[(Machines, T)], run: impl Fn(&Machines, &T) + Sync) {
    std::thread::scope(|scope| {
        for (machines, job) in jobs {
            let run = &run;
            scope.spawn(move || run(machines, job));
        }
    });
}

fn sites_on_two_machines_exchange_messages_of_all_sizes() {
    let machines = Machines::new();
    for (dialect, part) in [("final", "long-ring"), ("draft", "ring"), ("final", "exchange")] {
        machines.runs(dialect, part);
    }
}

fn messages_arrive_over_a_network_with_delay_and_loss() {
    let machines = Machines::new();
    match machines.impair() {
        Err(why) => skip(why),
        Ok(how) => {
            for dialect in ["final", "draft"] {
                machines.runs(dialect, "ring");
            }
            assert!(machines.dropped() > 0, "{how} has lost nothing");
        }
    }
}

/// No ICMP message reports that packets are dropped.
fn cut_link_ends_all_sites_and_names_lost_ranks() {
    let machines = Machines::new();
    let (server, address) = machines.server("final");
    let mut sites = machines.sites(&address, &["--peer-timeout", "3"], "needs-the-other-site");
    sites.iter_mut().for_each(Started::met);
    let begun = Instant::now();
    machines.cut(1);
    for (site, started) in (0..).zip(sites) {
        let (status, out, err) = started.ended();
        assert_eq!(status, 3, "{out}{err}");
        let lost = (1 - site) * RANKS..(2 - site) * RANKS;
        let is_lost = |line: &str| {
            lost.clone()
                .any(|rank| line.starts_with(&format!("rank {rank} has failed: its connection is broken: ")))
        };
        assert!(out.lines().count() > 0 && out.lines().all(is_lost), "{out}{err}");
        assert!(err.starts_with("mpjrun: rank ") && err.contains("exited with status 3"), "{err}");
    }
    let (status, _, err) = server.ended();
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("client 0 was lost without FINI"), "{err}");
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}

/// The peer timeout is shorter than the limit of finish, and longer.
fn finish_over_a_cut_link_names_the_rank_and_the_octets() {
    let (late, soon) = ("finishes-behind-a-cut", "finishes-behind-a-cut-soon");
    let jobs = [("tcp", "3", late), ("tcp", "40", soon), ("udp", "8", late), ("udp", "40", soon)];
    at_once(&jobs.map(|job| (Machines::new(), job)), |machines, (carrier, seconds, part)| {
        let (_server, address) = machines.server("final");
        let options = ["--transport", carrier, "--peer-timeout", seconds, "--keep-going"];
        let mut sites = machines.sites(&address, &options, part);
        sites.iter_mut().for_each(Started::met);
        machines.cut(0);
        // The other rank waits and is killed.
        let [first, _other] = sites;
        let (status, out, err) = first.ended();
        assert_eq!(status, 3, "{carrier}, {seconds} s: {out}{err}");
        let octets = out.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        let is_named = octets.is_some_and(|octets| octets >= 1000) && out.contains(" to rank 2");
        // A rank that was delayed for so long has not sent the message.
        let is_late = out.starts_with("not sent: rank 2 has failed: ");
        assert!(is_named || is_late, "{carrier}, {seconds} s: {out}{err}");
    });
}

/// Datagrams between machines have the MTU of the interface, and become shorter with it. Datagrams that were
/// cut before arrive as well, without a timeout.
fn datagrams_shrink_with_the_path() {
    let jobs = [&["--transport", "udp"][..], &["--transport", "udp", "--checksum"]];
    at_once(&jobs.map(|options| (Machines::new(), options)), |machines, options| {
        machines.narrow(1500);
        let (server, address) = machines.server("final");
        let mut sites = machines.sites(&address, options, "narrows");
        sites.iter_mut().for_each(Started::met);
        machines.narrow(1280);
        for (site, started) in (0..).zip(sites) {
            let (status, out, err) = started.ended();
            let expected: Vec<String> =
                (site * RANKS..(site + 1) * RANKS).map(|rank| format!("{rank}: done")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_eq!((status, lines(&out), err.as_str()), (0, expected, ""), "{options:?}");
        }
        let (status, _, err) = server.ended();
        assert_eq!((status, err.as_str()), (0, ""));
    });
}

/// Datagrams are no longer than the TCP segments between two sites, so a router that drops longer packets
/// silently drops none of them.
fn datagrams_fit_a_path_whose_router_drops_long_ones_silently() {
    let machines = Machines::new();
    if let Err(why) = machines.route_over_a_narrow_link(true) {
        skip(why);
    }
    let words = ["impi-server", "-server", "2", "--host", SITES[0], "--grace", "5"];
    let mut server = Machines::start(&machines.site(0), &words);
    let address = server.line();
    let sites =
        machines.sites(&address, &["--transport", "udp", "--peer-timeout", "8", "--tag-output"], "exchange");
    for (site, started) in (0..).zip(sites) {
        let (status, out, err) = started.ended();
        let expected: Vec<String> =
            (site * RANKS..(site + 1) * RANKS).map(|rank| format!("[{rank}] done")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!((status, lines(&out), err.as_str()), (0, expected, ""));
    }
    let (status, _, err) = server.ended();
    assert_eq!((status, err.as_str()), (0, ""));
}

/// A router or a bridge drops long packets silently, and does not lower the TCP segment size. Ranks probe the
/// length of their datagrams.
fn datagrams_fit_a_path_whose_mtu_only_loss_shows() {
    type Narrow = fn(&Machines) -> Result<(), String>;
    let route: Narrow = |machines| machines.route_over_a_narrow_link(false);
    let options: [&[&str]; 3] = [&[], &["--checksum"], &["--datagram-len", "1440"]];
    let of_bridge = if soaks() { &options[..] } else { &options[..1] };
    let mut jobs = Vec::new();
    for (narrow, options) in [(route, &options[..]), (Machines::bridge_over_a_narrow_link, of_bridge)] {
        for options in options {
            let machines = Machines::new();
            if let Err(why) = narrow(&machines) {
                skip(why);
            }
            jobs.push((machines, *options));
        }
    }
    at_once(&jobs, |machines, options| machines.runs_by_datagrams(options));
}

/// The hub has no default route.
fn server_on_all_addresses_prints_that_of_an_interface_without_a_default_route() {
    let machines = Machines::new();
    let words = ["impi-server", "-server", "2", "--host", "0.0.0.0"];
    let address = Machines::start(&machines.hub(), &words).line();
    assert!(address.starts_with(&format!("{SERVER}:")), "{address:?}");
}

pub(crate) const TESTS: &[(&str, fn())] = &[
    (
        "server_on_all_addresses_prints_that_of_an_interface_without_a_default_route",
        server_on_all_addresses_prints_that_of_an_interface_without_a_default_route,
    ),
    (
        "sites_on_two_machines_exchange_messages_of_all_sizes",
        sites_on_two_machines_exchange_messages_of_all_sizes,
    ),
    (
        "messages_arrive_over_a_network_with_delay_and_loss",
        messages_arrive_over_a_network_with_delay_and_loss,
    ),
    ("datagrams_shrink_with_the_path", datagrams_shrink_with_the_path),
    (
        "datagrams_fit_a_path_whose_router_drops_long_ones_silently",
        datagrams_fit_a_path_whose_router_drops_long_ones_silently,
    ),
    ("datagrams_fit_a_path_whose_mtu_only_loss_shows", datagrams_fit_a_path_whose_mtu_only_loss_shows),
    (
        "finish_over_a_cut_link_names_the_rank_and_the_octets",
        finish_over_a_cut_link_names_the_rank_and_the_octets,
    ),
    ("cut_link_ends_all_sites_and_names_lost_ranks", cut_link_ends_all_sites_and_names_lost_ranks),
];
