//! Checks of a host before its ranks start.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use crate::hosts::addresses;
use crate::hosts::hello::{Hello, Setup, Start};
use crate::hosts::java;

/// The address that the ranks announce.
///
/// # Errors
/// The interface that the host had before is missing.
pub(super) fn announced(setup: &Setup, start: &Start) -> io::Result<IpAddr> {
    let (interface, addresses) = (setup.interface.as_deref(), &setup.addresses);
    if start.is_one_machine && interface.is_none() && addresses.is_empty() {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    addresses::announced(
        &addresses::interfaces(),
        interface,
        addresses,
        reached_at(),
        &start.peers,
        addresses::source,
    )
    .map_err(io::Error::other)
}

/// The address at which sshd has been reached: the third word of SSH_CONNECTION (ssh(1)).
fn reached_at() -> Option<IpAddr> {
    std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok()
}

/// Checks whether this host can take part. Changes to the working directory.
pub(super) fn check(setup: &Setup, staged: Option<&Path>) -> Hello {
    let mut faults = Vec::new();
    let folder = Path::new(&setup.folder);
    let entered = std::env::set_current_dir(folder).or_else(|error| match staged {
        Some(staged) => std::env::set_current_dir(staged),
        None => Err(error),
    });
    if let Err(error) = entered {
        faults.push(format!(
            "the working directory {}: {error}; create it there, or use --stage",
            setup.folder
        ));
    }
    let missing: Vec<&str> = setup
        .class_path
        .iter()
        .map(String::as_str)
        .filter(|path| staged.is_none() && !Path::new(path).exists())
        .collect();
    if !missing.is_empty() {
        faults
            .push(format!("{} is not there; copy it to the same place, or use --stage", missing.join(", ")));
    }
    let variable = |name: &str| {
        let set = setup.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.into());
        set.or_else(|| std::env::var_os(name))
    };
    let java = setup.needs_java.then(|| java::find(variable("JAVA_HOME"), variable("PATH")));
    let java = java.and_then(|found| found.map_err(|why| faults.push(why)).ok());
    let interfaces = addresses::interfaces();
    if let Err(error) = addresses::chosen(&interfaces, setup.interface.as_deref(), &setup.addresses) {
        faults.push(error.to_string());
    }
    Hello {
        machine: machine(),
        architecture: std::env::consts::ARCH.to_owned(),
        java,
        interfaces,
        reached_at: reached_at(),
        faults,
    }
}

/// The identity of this machine's kernel and of this process's network.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), network.display())
}
