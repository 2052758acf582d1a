//! `mpjdev run`, also called `mpjrun`: the launcher of a program's ranks as processes of this machine.

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use mpjdev_bootstrap::job::world::{Carrier, Datagrams};
use mpjdev_proto::impi::startup::layout::CLIENTS_MAX;
use mpjdev_transport::tcp::Terms;
use thiserror::Error;

use super::host_options::{HostOptions, HostsError, Request};
use super::machine::{LIBRARY_JAR, Machine, own_file};
use super::output::print;
use super::profile::ProfileOptions;
use super::values::{seconds, variable};
use super::{Text, words};
use crate::hosts::{self, plan::HostsPlan};
use crate::impi::auth;
use crate::job::host_site::HostPlan;
use crate::job::network::{self, Network, VariableError};
use crate::job::plan::{Plan, SitesPlan};
use crate::job::site::SitePlan;
use crate::job::target::{Start, Target, TargetError, resolve};
use crate::job::{launcher, monitor};

/// Arguments of `mpjdev run`.
#[derive(Args, Debug)]
#[command(
    override_usage = "mpjrun -n N [OPTIONS] [JVM OPTIONS] <COMMAND | CLASS | FILE.jar> [ARGUMENTS]\n       \
                      mpjrun --hosts A:4,B:4 [-n N] [OPTIONS] ...\n       \
                      mpjrun -client RANK HOST:PORT -n N [OPTIONS] ...\n       \
                      mpjrun --sites N -n N [OPTIONS] ...",
    after_help = "\
PROGRAM is a command if it has a slash or is on the PATH, a jar if its name ends in .jar, and else the name \
of a class. mpjrun starts jars and classes with java: -cp, -D, -X and other options of the JVM before \
PROGRAM go to java, and mpjdev's own jar is added to the class path.

  mpjrun -n 4 java -cp app.jar:mpjdev.jar Main
  mpjrun -n 4 -cp classes -Xmx1g Main
  mpjrun -n 4 app.jar

Rank 0 reads standard input. Output is forwarded line by line. SIGINT, SIGTERM and SIGHUP end the job; a \
second one ends it at once. SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded to the ranks; SIGTSTP stops the job \
and SIGCONT continues it.

Jobs of several sites (IMPI). A site is the ranks of one mpjrun, or of another implementation. The sites of \
a job meet at a startup server:

  mpjdev impi-server -server 2                            # prints ADDRESS:PORT
  mpjrun -client 0 ADDRESS:PORT -n 4 -cp classes Main     # ranks 0 to 3 of 6
  mpjrun -client 1 ADDRESS:PORT -n 2 -cp classes Main     # ranks 4 and 5, on another machine

  mpjrun --sites 2 -n 2 -cp classes Main                  # server and both sites on this machine, 4 ranks

The ranks of one site communicate through shared memory and with other sites over TCP; with --transport tcp \
all ranks use TCP. Each rank listens at an address of --address, or at the address from which this machine \
reaches the server. Addresses other than loopback need a key: set IMPI_AUTH_KEY, or IMPI_AUTH_KEY_FILE to \
the name of a file that holds it, alike for the server and all sites (see mpjdev impi-server --help). \
mpjdev's ranks prove to each other that they have the key. The server may start after a site, which retries \
for --connect-timeout. A site joins once: Comm.init cannot be called again after Comm.finish. The site \
reports success to the server when all its ranks have succeeded. If the server or another site is lost, the \
job fails.

These variables set what a site announces, also with --transport tcp: IMPI_C_DATALEN (maximum octets of data \
in a packet), IMPI_H_ACKMARK and IMPI_H_HIWATER (packets that one ProtoAck acknowledges; maximum \
unacknowledged packets), IMPI_COLL_XSIZE and IMPI_COLL_MAXLINEAR (must be equal at all sites), \
IMPI_PORT_RANGE (as --ports).

mpjrun sets these variables for each rank:
  MPJDEV_RANK       number of the rank on this machine, from 0; Comm.WORLD.id() is its number in the job
  MPJDEV_SIZE       number of ranks of this mpjrun on this machine
  MPJDEV_WORLD_RANK and MPJDEV_WORLD_SIZE  number of the rank in the job, and number of all ranks; not with \
-client and --sites
  MPJDEV_JOB        name of the job: mpjdev- and the process id of the parent of its ranks
  MPJDEV_TRANSPORT  value of --transport
  MPJDEV_CONTROL    number of an open socket, on which Comm.init receives the memory that the ranks share; \
/proc/PID/fd shows it as memfd:mpjdev-rank-0 and so on
  MPJDEV_LIBRARY    native library of mpjrun's jar, as CRC-32:PATH, so that ranks need not unpack it; a rank \
with another version of the jar prints a note and unpacks its own

With MPJDEV_STATS=1 in its environment (exported, or by -x MPJDEV_STATS=1) a rank prints its statistics on \
standard error when it finishes or fails; with MPJDEV_STATS=json as one line of JSON. Over UDP these are \
messages, packets, acks, retransmissions, dropped datagrams, round-trip time, system calls and copies of \
user data, in sum and for each peer; the other transports count completed requests and unexpected messages \
only.

Exit status: that of the first rank that fails (128 + n for signal n), with --sites among all sites. If a \
rank had seen another one fail over TCP or UDP, the other one counts as the first. 124 after --timeout, 1 if \
the sites of a job do not meet or lose each other, 2 for wrong usage."
)]
pub struct Run {
    /// Number of ranks (also -np) [default with hosts: their slots]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=RANKS_MAX))]
    ranks: Option<u32>,

    #[command(flatten)]
    hosts: HostOptions,

    #[command(flatten)]
    profile: ProfileOptions,

    /// Begin each line of output with its rank in brackets
    #[arg(long)]
    tag_output: bool,

    /// Bind each rank to a processor of its own
    #[arg(long, value_enum, default_value_t = Bind::None)]
    bind: Bind,

    /// End the job after this time, with status 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Seconds between SIGTERM and SIGKILL when a job ends early
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "3")]
    grace: Duration,

    /// Seconds after the first Comm.init until a warning names the ranks that have not called it
    #[arg(long, alias = "init-wait", value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    init_timeout: Duration,

    /// Set an environment variable for all ranks; without VALUE, that of this environment
    #[arg(short = 'x', value_name = "NAME[=VALUE]", value_parser = variable)]
    export: Vec<(OsString, OsString)>,

    /// End all ranks when one fails (the default)
    #[arg(long, conflicts_with = "keep_going")]
    kill_on_failure: bool,

    /// Let the other ranks continue when one fails
    #[arg(long)]
    keep_going: bool,

    /// Run the ranks of a class or jar with package mpi as threads of one JVM
    #[arg(long, conflicts_with_all = ["client", "sites", "transport"])]
    threads: bool,

    /// Arguments before those of a class or jar with package mpi
    #[arg(long, value_enum, value_name = "FORM")]
    args: Option<Prefix>,

    /// Transport between ranks
    #[arg(long, value_enum, default_value_t = Transport::Auto)]
    transport: Transport,

    /// Join the job of a startup server as this client (also -client)
    #[arg(long, num_args = 2, value_names = ["RANK", "HOST:PORT"], conflicts_with = "sites")]
    client: Vec<String>,

    /// Start N sites of as many ranks as -n states, and their startup server
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    sites: Option<u32>,

    /// Version of the IMPI specification that all sites follow [default: final]
    #[arg(long, value_enum)]
    dialect: Option<Text>,

    /// World rank of the first rank, given by the launcher that starts all sites
    #[arg(long, hide = true)]
    first_rank: Option<u32>,

    /// Name of the host of these ranks, given by an agent
    #[arg(long, hide = true, requires_all = ["first_rank", "world_size"], conflicts_with_all = ["client", "sites", "threads"])]
    of_host: Option<String>,

    /// Number of ranks of the job, given by an agent
    #[arg(long, hide = true)]
    world_size: Option<u32>,

    /// Pipe for reports of failed ranks, given by the launcher that starts all sites
    #[arg(long, hide = true)]
    report_pipe: Option<PathBuf>,

    /// Addresses that ranks listen at, in turn [default: 127.0.0.1, or as below]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = network::address)]
    address: Vec<IpAddr>,

    /// Ports that ranks listen at [default: IMPI_PORT_RANGE, or any free port]
    #[arg(long, value_name = "FIRST:LAST", value_parser = network::ports)]
    ports: Option<RangeInclusive<u16>>,

    /// Seconds to make all connections between ranks, and for a site to reach the startup server [default:
    /// 30]
    #[arg(long, value_name = "SECONDS", value_parser = network::connect_time)]
    connect_timeout: Option<Duration>,

    /// Seconds without an acknowledgement or answer from a peer until it counts as failed; over UDP a
    /// stopped rank that others wait for fails as well [default: 60]
    #[arg(long, alias = "silence", value_name = "SECONDS", value_parser = network::peer_timeout)]
    peer_timeout: Option<Duration>,

    /// Rate of a link without other traffic, such as 10gbit, with --transport udp: datagrams are sent at this
    /// rate regardless of loss [default: congestion control as in TCP]
    #[arg(long, value_name = "RATE", value_parser = network::rate)]
    link_rate: Option<NonZeroU32>,

    /// Maximum octets of a datagram with --transport udp, 84 to 65507 [default: path MTU, and up to 65504
    /// within a machine]
    #[arg(long, value_name = "OCTETS", value_parser = network::datagram_len)]
    datagram_len: Option<NonZeroU32>,

    /// Add a CRC32C checksum to every datagram, with --transport udp
    #[arg(long)]
    checksum: bool,

    /// Program, after options of its JVM
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The reason why a command line cannot be run.
#[derive(Debug, Error)]
enum RunError {
    /// Nothing says how many ranks.
    #[error("-n N is needed: the number of ranks; or --hosts or --hostfile with slots")]
    NoRanks,
    /// The hosts or an option for them.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The dialect is for sites.
    #[error("--dialect is for sites of a job: with -client or --sites")]
    Dialect,
    /// Options of datagrams without datagrams.
    #[error(
        "--link-rate, --datagram-len and --checksum are for ranks that send datagrams: with --transport udp"
    )]
    Datagrams,
    /// Options of connections without connections.
    #[error(
        "--address, --ports, --connect-timeout and --peer-timeout are for ranks that connect: with \
         --transport tcp or udp, -client, --sites or --hosts"
    )]
    Connections,
    /// A variable is not valid.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The key is unusable.
    #[error(transparent)]
    Auth(#[from] auth::AuthError),
    /// There is no such program.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The rank of the client is no number of a client.
    #[error("-client {client}: a client's rank is a number from 0 to {most}", most = CLIENTS_MAX - 1)]
    Client {
        /// The text in place of the rank.
        client: String,
    },
    /// The address of the startup server has no port.
    #[error("-client {client} {server}: the startup server is HOST:PORT, as its first line of output states")]
    Server {
        /// The rank of the client.
        client: u32,
        /// The text in place of the address.
        server: String,
    },
}

/// Time of the launcher of all sites beyond the sites' own time of grace.
const SITE_GRACE: Duration = Duration::from_secs(1);
/// More ranks than one machine can run.
const RANKS_MAX: i64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bind {
    /// Any processor
    None,
    /// One processor for each rank
    Core,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// Shared memory within the site, TCP to ranks of other sites
    Auto,
    /// As auto
    Shm,
    /// TCP connections between all ranks, also of one machine
    Tcp,
    /// UDP datagrams between all ranks, also of one machine; TCP connections for setup and liveness
    Udp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Prefix {
    /// Rank, number of ranks and "multicore", as MPJ Express passes; MPI.Init removes them
    Mpje,
}

impl Run {
    /// Runs the job or its monitor, and returns the exit status. `args` is the command line of both.
    pub fn run(&self, args: &[OsString], is_monitor: bool) -> ExitCode {
        let planned = self.plan_any(args).map_err(|error| (super::UNUSABLE, error.to_string()));
        let result = planned.and_then(|plan| {
            let result = match plan {
                AnyPlan::Hosts(plan) if self.hosts.dry_run => return Ok(print(&plan.shown())),
                AnyPlan::Hosts(plan) if is_monitor => hosts::monitor::run(*plan),
                AnyPlan::Ranks(plan) if is_monitor => monitor::run(*plan),
                AnyPlan::Hosts(_) | AnyPlan::Ranks(_) => {
                    self.profile.prepare().map_err(|error| (super::UNUSABLE, error.to_string()))?;
                    let result = launcher::run(args);
                    self.profile.report();
                    result
                }
            };
            result.map_err(|error| (1, error.to_string()))
        });
        match result {
            Ok(status) => ExitCode::from(status),
            Err((status, why)) => {
                let host = self.of_host.as_ref().map(|host| format!("host {host}: ")).unwrap_or_default();
                eprintln!("mpjrun: {host}{why}");
                ExitCode::from(status)
            }
        }
    }

    /// The plan of this machine's ranks, or of several hosts.
    fn plan_any(&self, args: &[OsString]) -> Result<AnyPlan, RunError> {
        let is_other =
            self.threads || self.sites.is_some() || !self.client.is_empty() || self.of_host.is_some();
        let Some(hosts) = self.hosts.hosts(is_other)? else {
            return Ok(AnyPlan::Ranks(Box::new(self.plan(args)?)));
        };
        // Also here, or each host would refuse it.
        self.check_dialect()?;
        self.network(true)?;
        let request = Request {
            ranks: self.ranks,
            program: &self.program,
            exports: &self.export,
            profile: &self.profile,
            addresses: &self.address,
            words: self.words_for_host(),
            connect_time: self.connect_timeout.unwrap_or(network::CONNECT_TIME),
            peer_timeout: self.peer_timeout.unwrap_or(network::PEER_TIMEOUT),
            timeout: self.timeout,
            grace: self.grace,
            init_timeout: self.init_timeout,
            keep_going: self.keep_going,
        };
        Ok(AnyPlan::Hosts(Box::new(self.hosts.plan(hosts, request, &Machine)?)))
    }

    /// The options of a host's monitor, in the words of `mpjdev run`.
    fn words_for_host(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add =
            |name: &str, value: Option<String>| words.extend([name.to_owned()].into_iter().chain(value));
        let seconds = |time: Duration| Some(time.as_secs_f64().to_string());
        let name =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        for (option, is_set) in [
            ("--tag-output", self.tag_output),
            ("--keep-going", self.keep_going),
            ("--checksum", self.checksum),
        ] {
            if is_set {
                add(option, None);
            }
        }
        if self.bind != Bind::None {
            add("--bind", name(self.bind.to_possible_value()));
        }
        if self.transport != Transport::Auto {
            add("--transport", name(self.transport.to_possible_value()));
        }
        if let Some(form) = self.args {
            add("--args", name(Prefix::to_possible_value(&form)));
        }
        add("--grace", seconds(self.grace));
        add("--init-timeout", seconds(self.init_timeout));
        if let Some(ports) = &self.ports {
            add("--ports", Some(format!("{}:{}", ports.start(), ports.end())));
        }
        for (option, time) in
            [("--connect-timeout", self.connect_timeout), ("--peer-timeout", self.peer_timeout)]
        {
            if let Some(time) = time {
                add(option, seconds(time));
            }
        }
        if let Some(rate) = self.link_rate {
            add("--link-rate", Some(format!("{rate}kbit")));
        }
        if let Some(len) = self.datagram_len {
            add("--datagram-len", Some(len.to_string()));
        }
        words
    }

    fn plan(&self, args: &[OsString]) -> Result<Plan, RunError> {
        let ranks = self.ranks.ok_or(RunError::NoRanks)?;
        let is_of_sites = self.sites.is_some();
        self.check_dialect()?;
        let network = self.network(self.of_host.is_some())?;
        // Also in a launcher of sites, which would only see them fail.
        let has_prefix = self.args.is_some();
        let start = Start { threads: self.threads.then_some(ranks), has_prefix };
        let Target { words: program, args_len } = resolve(&self.program, start, &Machine)?;
        let grace = if is_of_sites { self.grace.saturating_add(SITE_GRACE) } else { self.grace };
        Ok(Plan {
            ranks: if self.threads { 1 } else { self.sites.unwrap_or(ranks) },
            // Ranks that are threads get the prefix from the class that starts them.
            prefix_at: (has_prefix && !self.threads).then(|| program.len() - args_len),
            program,
            jar: own_file(LIBRARY_JAR).filter(|_| !is_of_sites),
            job: format!("mpjdev-{}", std::process::id()),
            tag_output: self.tag_output && !is_of_sites,
            bind: matches!(self.bind, Bind::Core) && !is_of_sites,
            timeout: self.timeout,
            grace,
            init_timeout: self.init_timeout,
            keep_going: self.keep_going,
            transport: self
                .transport
                .to_possible_value()
                .map_or_else(String::new, |v| v.get_name().to_owned()),
            network: network.filter(|_| !is_of_sites),
            site: self.site()?,
            host: self.host(),
            sites: self.sites.map(|_| self.sites_plan(ranks, args)),
            report_pipe: self.report_pipe.clone(),
            exports: self.export.iter().cloned().chain(self.profile.variables()).collect(),
        })
    }

    /// Checks that the dialect is not given without sites.
    fn check_dialect(&self) -> Result<(), RunError> {
        let is_for_sites = self.sites.is_some() || !self.client.is_empty();
        if self.dialect.is_some() && !is_for_sites { Err(RunError::Dialect) } else { Ok(()) }
    }

    /// The network settings, if ranks listen.
    fn network(&self, is_on_hosts: bool) -> Result<Option<Network>, RunError> {
        let is_over_datagrams = self.transport == Transport::Udp;
        let datagrams =
            Datagrams { rate_kbit: self.link_rate, len_max: self.datagram_len, are_checked: self.checksum };
        if datagrams != Datagrams::default() && !is_over_datagrams {
            return Err(RunError::Datagrams);
        }
        let is_over_network = is_over_datagrams || self.transport == Transport::Tcp;
        if !is_over_network && self.client.is_empty() && self.sites.is_none() && !is_on_hosts {
            let times = [self.connect_timeout, self.peer_timeout];
            let none_given = self.address.is_empty() && self.ports.is_none() && times == [None; 2];
            return if none_given { Ok(None) } else { Err(RunError::Connections) };
        }
        let dialect = self.dialect.unwrap_or(Text::Final).into();
        let terms = match self.client[..] {
            [] => Terms::of_one_site(dialect),
            _ => Terms { dialect, ..Terms::default() },
        };
        let network = Network::from_environment(self.address.clone(), self.ports.clone(), terms)?;
        let connect_time = self.connect_timeout.unwrap_or(network.connect_time);
        let peer_timeout = self.peer_timeout.unwrap_or(network.peer_timeout);
        let carrier = match is_over_datagrams {
            true => Carrier::Udp(datagrams),
            false => Carrier::Tcp,
        };
        Ok(Some(Network { carrier, connect_time, peer_timeout, ..network }))
    }

    /// The plan of this site in a job of sites, if it is one.
    fn site(&self) -> Result<Option<SitePlan>, RunError> {
        let [client, server] = &self.client[..] else { return Ok(None) };
        let number = client.parse().ok().filter(|client| *client < CLIENTS_MAX);
        let client = number.ok_or_else(|| RunError::Client { client: client.clone() })?;
        let is_address = server
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
        if !is_address {
            return Err(RunError::Server { client, server: server.clone() });
        }
        Ok(Some(SitePlan {
            client,
            server: server.clone(),
            auth: auth::from_environment(|why| eprintln!("mpjrun: {why}"))?,
            shares_memory: matches!(self.transport, Transport::Auto | Transport::Shm),
            first: self.first_rank,
        }))
    }

    /// The host of these ranks, if an agent has started this monitor.
    fn host(&self) -> Option<HostPlan> {
        let name = self.of_host.clone()?;
        let shares_memory = matches!(self.transport, Transport::Auto | Transport::Shm);
        Some(HostPlan { name, first: self.first_rank?, size: self.world_size?, shares_memory })
    }

    fn sites_plan(&self, ranks: u32, args: &[OsString]) -> SitesPlan {
        let dialect = if self.dialect == Some(Text::Draft) { "draft" } else { "final" };
        let words = self.profile.words_for_site().into_iter().chain(words::of_site(args));
        SitesPlan { ranks, dialect, words: words.collect() }
    }
}

/// A plan.
#[derive(Debug)]
enum AnyPlan {
    /// Of ranks of this machine, or of sites.
    Ranks(Box<Plan>),
    /// Of ranks on several hosts.
    Hosts(Box<HostsPlan>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        run: Run,
    }

    /// A foreign site may have memory for few packets of the length that it settles with this one.
    #[test]
    fn packets_are_longer_in_a_job_without_sites() {
        for (words, maxdatalen) in [
            ("--transport tcp Main", (4 << 20) + (1 << 10)),
            ("--client 0 127.0.0.1:5000 Main", 256 << 10),
            ("--client 0 127.0.0.1:5000 --transport tcp Main", 256 << 10),
        ] {
            let line = ["mpjrun"].into_iter().chain(words.split(' '));
            let run = <Line as clap::Parser>::parse_from(line).run;
            let network = run.network(false).expect("sound options").expect("ranks listen");
            assert_eq!(network.terms.maxdatalen, maxdatalen, "{words}");
        }
    }

    /// Proves that no option of a job on several hosts is lost on the way to them.
    #[test]
    fn every_option_reaches_the_monitors_of_hosts_or_is_the_launchers_own() {
        use clap::CommandFactory;

        let forwarded = [
            ("tag_output", "--tag-output"),
            ("keep_going", "--keep-going"),
            ("checksum", "--checksum"),
            ("bind", "--bind core"),
            ("transport", "--transport udp"),
            ("args", "--args mpje"),
            ("grace", "--grace 7"),
            ("init_timeout", "--init-timeout 7"),
            ("ports", "--ports 5000:5009"),
            ("connect_timeout", "--connect-timeout 7"),
            ("peer_timeout", "--peer-timeout 7"),
            ("link_rate", "--link-rate 100kbit"),
            ("datagram_len", "--datagram-len 1000"),
        ];
        // Those that decide which hosts run what, and those that other jobs have.
        let own = [
            "ranks",
            "hosts",
            "hostfile",
            "map_by",
            "launcher",
            "stage",
            "interface",
            "at_once",
            "profile",
            "trace",
            "dry_run",
            "verbose",
            "timeout",
            "export",
            "kill_on_failure",
            "threads",
            "client",
            "sites",
            "dialect",
            "first_rank",
            "of_host",
            "world_size",
            "report_pipe",
            "address",
            "program",
            "help",
        ];
        for (_, words) in forwarded {
            let line = ["mpjrun"].into_iter().chain(words.split(' ')).chain(["Main"]);
            let run = <Line as clap::Parser>::parse_from(line).run;
            let found = run.words_for_host().join(" ");
            assert!(found.contains(words), "{words} is not in {found}");
        }
        for arg in Line::command().get_arguments() {
            let id = arg.get_id().as_str();
            let is_known = own.contains(&id) || forwarded.iter().any(|(known, _)| *known == id);
            assert!(is_known, "add {id} to Run::words_for_host and to this test, or to the launcher's own");
        }
    }
}
