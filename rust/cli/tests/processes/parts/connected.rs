//! Parts of ranks that report their connections.

use std::net::Ipv4Addr;

use mpjdev_engine::Uninterruptible;

use super::TestRank;

/// States of a TCP socket as Linux writes them.
const ESTABLISHED: &str = "01";
const LISTENING: &str = "0A";

/// A TCP socket of this process over IPv4: both addresses, its state, and its octets in the send queue
/// (proc(5)).
struct Socket {
    local: Ipv4Addr,
    peer: Ipv4Addr,
    state: String,
    untaken_len: u64,
}

/// The targets of the descriptors of this process.
fn links() -> Vec<String> {
    let files = std::fs::read_dir("/proc/self/fd").expect("/proc").flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

fn sockets() -> Vec<Socket> {
    let links = links();
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("/proc");
    let mut sockets = Vec::new();
    for line in table.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if links.contains(&format!("socket:[{}]", words[9])) {
            let address = |word: &str| {
                let number = u32::from_str_radix(word.split(':').next().expect("an address"), 16);
                Ipv4Addr::from(number.expect("hexadecimal").to_ne_bytes())
            };
            let (local, peer) = (address(words[1]), address(words[2]));
            let untaken = words[4].split(':').next().expect("octets");
            let untaken_len = u64::from_str_radix(untaken, 16).expect("hexadecimal");
            sockets.push(Socket { local, peer, state: words[3].to_owned(), untaken_len });
        }
    }
    sockets
}

/// Octets in the send queues of the connections with this peer address.
pub(super) fn untaken_len(peer: Ipv4Addr) -> u64 {
    sockets().iter().filter(|socket| socket.peer == peer).map(|socket| socket.untaken_len).sum()
}

impl TestRank {
    /// Local and remote addresses of its connections.
    pub(super) fn prints_addresses(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        let list = |address: fn(&Socket) -> Ipv4Addr| {
            let mut all: Vec<Ipv4Addr> =
                sockets().iter().filter(|socket| socket.state == ESTABLISHED).map(address).collect();
            all.sort_unstable();
            all.dedup();
            all.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(", ")
        };
        let (from, to) = (list(|socket| socket.local), list(|socket| socket.peer));
        println!("{}: from {from} to {to}", self.world.rank());
        self.world.barrier(&mut Uninterruptible).expect("barrier");
    }

    /// Inherited descriptors that are still open.
    pub(super) fn prints_open_files(&self) {
        self.world.barrier(&mut Uninterruptible).expect("barrier");
        let count = |state: &str| sockets().iter().filter(|socket| socket.state == state).count();
        let of_world = links().iter().any(|link| link.contains("mpjdev-world"));
        let (connections, listeners) = (count(ESTABLISHED), count(LISTENING));
        let world = if of_world { "the world" } else { "nothing of the world" };
        println!("{connections} connection, {listeners} listen, {world}");
        self.world.barrier(&mut Uninterruptible).expect("barrier");
    }
}
