//! Machines with sshd, simulated by network namespaces that a bridge connects. Each has addresses,
//! keys, a PATH and a folder of temporary files of its own.
//!
//! They need root, `ip` (iproute2) and sshd (openssh-server).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machines::{add_addresses, make_hub, make_machine, name, port, run};

const SSHD: &str = "/usr/sbin/sshd";
/// Maximum time for a server to listen, and for processes to end.
const DEADLINE: Duration = Duration::from_secs(30);
/// The name under which ssh knows the key of all hosts.
const ALIAS: &str = "mpjdev-test-host";

/// One hub, where launchers run, and some hosts. They are removed on drop.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    folder: PathBuf,
    servers: Vec<Child>,
}

impl Cluster {
    /// A cluster of this many hosts, named h0, h1 and so on. A remote shell finds these commands besides
    /// those of a small system.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(hosts: usize, commands: &[&str]) -> Result<Cluster, String> {
        let name = name();
        let folder = std::env::temp_dir().join(&name);
        let mut cluster = Cluster { name, folder, servers: Vec::new() };
        cluster.make(hosts, commands)?;
        Ok(cluster)
    }

    fn make(&mut self, hosts: usize, commands: &[&str]) -> Result<(), String> {
        if !Path::new(SSHD).exists() {
            return Err(format!("no {SSHD} (Debian: apt-get install openssh-server)"));
        }
        let hub = self.hub();
        make_hub(&hub, &["198.18.0.1/24", "fd00:6d70::1/64"])?;
        self.make_keys(hosts, commands)?;
        for host in 0..hosts {
            let machine = self.host(host);
            let addresses = [format!("{}/24", address(host)), format!("fd00:6d70::{}/64", 10 + host)];
            make_machine(&hub, &port(host), &machine, &addresses.each_ref().map(String::as_str))?;
            // A bridge of containers, which no other host reaches.
            run("ip", &["-n", &machine, "link", "add", "docker0", "type", "bridge"])?;
            add_addresses(&machine, "docker0", &["172.17.0.1/16"])?;
            self.start_server(host)?;
        }
        (0..hosts).try_for_each(|host| self.await_server(host))
    }

    /// The keys of server and client, the client's configuration, and a PATH without Java for each host.
    fn make_keys(&self, hosts: usize, commands: &[&str]) -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        fs::create_dir(&self.folder).map_err(failed)?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        for key in ["host", "client"] {
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &self.path(key)])?;
        }
        let read = |name: &str| fs::read_to_string(self.path(name)).map_err(failed);
        fs::write(self.path("known"), format!("{ALIAS} {}", read("host.pub")?)).map_err(failed)?;
        let mut config = format!(
            "Host *\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  HostKeyAlias {ALIAS}\n  \
             StrictHostKeyChecking yes\n  User root\n  LogLevel ERROR\n",
            self.path("client"),
            self.path("known")
        );
        for host in 0..hosts {
            config += &format!("Host h{host}\n  HostName {}\n", address(host));
            config += &format!("Host six{host}\n  HostName fd00:6d70::{}\n", 10 + host);
            fs::write(self.path(&format!("authorized{host}")), read("client.pub")?).map_err(failed)?;
            fs::create_dir(self.path(&format!("tmp{host}"))).map_err(failed)?;
        }
        config += "Host gone\n  HostName 198.18.0.99\n";
        fs::write(self.path("config"), config).map_err(failed)?;
        fs::create_dir(self.folder.join("bin")).map_err(failed)?;
        let system = ["sh", "uname", "mktemp", "mkdir", "head", "chmod", "rm", "cat", "ls", "sleep"];
        for tool in system.iter().chain(commands) {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|file| file.exists()).ok_or_else(|| format!("no {tool}"))?;
            symlink(found, self.folder.join("bin").join(tool)).map_err(failed)?;
        }
        // The folder of sshd's unprivileged part.
        fs::create_dir_all("/run/sshd").map_err(failed)
    }

    fn start_server(&mut self, host: usize) -> Result<(), String> {
        let config = format!(
            "Port 22\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PrintMotd no\nLogLevel ERROR\nUseDNS no\nMaxStartups 100\nSetEnv PATH={} TMPDIR={}\n",
            self.path("host"),
            self.path(&format!("authorized{host}")),
            self.path("bin"),
            self.path(&format!("tmp{host}"))
        );
        let file = self.path(&format!("sshd{host}"));
        fs::write(&file, config).map_err(|error| error.to_string())?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host), SSHD, "-D", "-e", "-f", &file]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.servers.push(command.spawn().map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Waits until the server of a host listens.
    fn await_server(&mut self, host: usize) -> Result<(), String> {
        let begun = Instant::now();
        let listens = || {
            run(
                "ip",
                &["netns", "exec", &self.host(host), "sh", "-c", "grep -q ':0016 .* 0A ' /proc/net/tcp"],
            )
        };
        while let Err(why) = listens() {
            if begun.elapsed() > DEADLINE {
                return Err(format!("sshd of host {host} does not listen: {why}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }

    fn host(&self, host: usize) -> String {
        format!("{}-host-{host}", self.name)
    }

    /// The path of a file of this cluster.
    ///
    /// # Panics
    /// The folder of temporary files has a name that is not UTF-8.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("UTF-8").to_owned()
    }

    /// The command that reaches the hosts.
    #[must_use]
    pub fn shell(&self) -> String {
        format!("ssh -F {}", self.path("config"))
    }

    /// A command on the hub.
    #[must_use]
    pub fn on_hub(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hub()]).arg(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The command of a launcher of ours on the hub, which starts agents by ssh. Options and program follow.
    #[must_use]
    pub fn launcher(&self, program: &Path, hosts: &str) -> Command {
        let mut command = self.on_hub(program);
        command.args(["run", "--launcher", &self.shell(), "--hosts", hosts]);
        command
    }

    /// Cuts the link of a host.
    ///
    /// # Panics
    /// There is no such host.
    pub fn cut(&self, host: usize) {
        run("ip", &["-n", &self.hub(), "link", "set", &port(host), "down"]).expect("it is there");
    }

    /// Refuses the key of the launcher on a host.
    ///
    /// # Panics
    /// There is no such host.
    pub fn refuse_key(&self, host: usize) {
        fs::write(self.path(&format!("authorized{host}")), "").expect("our file");
    }

    /// The command lines of the processes of a host, without the server's.
    ///
    /// # Panics
    /// `ip` cannot be run.
    pub fn processes(&self, host: usize) -> Vec<(i32, String)> {
        let output =
            Command::new("ip").args(["netns", "pids", &self.host(host)]).output().expect("it has run before");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let pids = text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
        let server = self.servers[host].id() as i32;
        let line = |pid: i32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
        };
        pids.filter(|pid| *pid != server)
            .map(|pid| (pid, line(pid)))
            .filter(|(_, line)| !line.is_empty())
            .collect()
    }

    /// Waits until no process is left on any host. Those of sshd itself belong to the host.
    ///
    /// # Panics
    /// Some are left after a deadline.
    pub fn await_end(&self) {
        let begun = Instant::now();
        loop {
            let left: Vec<_> = (0..self.servers.len()).flat_map(|host| self.processes(host)).collect();
            if left.iter().all(|(_, line)| line.starts_with("sshd: ")) {
                return;
            }
            assert!(begun.elapsed() < DEADLINE, "left: {left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
        let hosts = (0..self.servers.len()).map(|host| self.host(host));
        for machine in hosts.chain([self.hub()]) {
            let _ = run("ip", &["netns", "delete", &machine]);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn address(host: usize) -> String {
    format!("198.18.0.{}", 10 + host)
}
