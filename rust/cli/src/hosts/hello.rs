//! Facts that a launcher and an agent exchange before the ranks start.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The share of a host in the job. It comes over standard input, so that no command line and no environment
/// of a remote shell has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The name of the host, as the user wrote it.
    pub host: String,
    /// Words of `mpjdev run` for the host's ranks.
    pub words: Vec<String>,
    /// Variables for the monitor and the ranks.
    pub variables: Vec<(String, String)>,
    /// The working directory of the launcher.
    pub folder: String,
    /// Files and folders of the class path that exist at the launcher.
    pub class_path: Vec<String>,
    /// Whether the program is started by `java`.
    pub needs_java: bool,
    /// Whether the ranks write profiles, which the agent sends at their end.
    pub profiles: bool,
    /// Number of staged files that follow.
    pub files: u32,
    /// Milliseconds without a frame after which the other end is lost.
    pub silence_ms: u64,
    /// The interface, or the network, whose address the ranks announce.
    pub interface: Option<String>,
    /// Addresses that the ranks may announce; any if empty.
    pub addresses: Vec<IpAddr>,
}

/// A file that the launcher copies to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    /// Its path in the host's temporary folder.
    pub path: String,
    /// Its permission bits.
    pub mode: u32,
    /// Its octets.
    pub len: u64,
}

/// An interface of a host with one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
}

/// The findings of an agent on its host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Identity of the machine and its network, the same for two agents of one machine.
    pub machine: String,
    /// The architecture.
    pub architecture: String,
    /// Path and version of the `java` command, if the program needs one.
    pub java: Option<String>,
    /// Interfaces that other machines may reach.
    pub interfaces: Vec<Interface>,
    /// The address at which the remote shell has reached this host, if it says so.
    pub reached_at: Option<IpAddr>,
    /// Reasons why the host cannot take part.
    pub faults: Vec<String>,
}

/// The request to start the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Addresses of the other hosts, as far as they are known.
    pub peers: Vec<IpAddr>,
    /// Whether all hosts are one machine, whose ranks meet at its loopback interface.
    pub is_one_machine: bool,
}
