//! Machines that network namespaces simulate: a hub with a bridge, and machines behind its ports.
//!
//! They need root and `ip` (iproute2).

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Runs a command to its end.
///
/// # Errors
/// The system refuses.
pub fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let line = || format!("{program} {}", words.join(" "));
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error} (Debian: apt-get install iproute2)", line()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{}: {}", line(), said.trim())) }
}

/// The port of a hub for the machine with this number.
#[must_use]
pub fn port(site: usize) -> String {
    format!("port{site}")
}

/// Makes a machine with a bridge, which has these addresses.
///
/// # Errors
/// The system refuses.
pub fn make_hub(hub: &str, addresses: &[&str]) -> Result<(), String> {
    remove_left_ones();
    run("ip", &["netns", "add", hub])?;
    let in_hub = |words: &[&str]| run("ip", &[&["-n", hub], words].concat());
    in_hub(&["link", "set", "lo", "up"])?;
    in_hub(&["link", "add", "bridge", "type", "bridge"])?;
    add_addresses(hub, "bridge", addresses)
}

/// Makes a machine behind this port of a hub. Its interface `eth` has these addresses.
///
/// # Errors
/// The system refuses.
pub fn make_machine(hub: &str, port: &str, machine: &str, addresses: &[&str]) -> Result<(), String> {
    run("ip", &["netns", "add", machine])?;
    let pair = ["link", "add", port, "type", "veth", "peer", "name", "eth", "netns", machine];
    run("ip", &[&["-n", hub], &pair[..]].concat())?;
    run("ip", &["-n", hub, "link", "set", port, "master", "bridge", "up"])?;
    run("ip", &["-n", machine, "link", "set", "lo", "up"])?;
    add_addresses(machine, "eth", addresses)
}

/// Gives an interface addresses, and enables it.
///
/// # Errors
/// The system refuses.
pub fn add_addresses(machine: &str, interface: &str, addresses: &[&str]) -> Result<(), String> {
    for address in addresses {
        // An address of IPv6 is used at once, without a search for duplicates.
        let nodad: &[&str] = if address.contains(':') { &["nodad"] } else { &[] };
        run("ip", &[&["-n", machine, "address", "add", address, "dev", interface], nodad].concat())?;
    }
    run("ip", &["-n", machine, "link", "set", interface, "up"])
}

/// The beginning of the names of new machines.
#[must_use]
pub fn name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("mpjdev-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed))
}

/// Machines of a test that was killed.
fn remove_left_ones() {
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("mpjdev-test-").and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = run("ip", &["netns", "delete", &name]);
        }
    }
}
