//! The IMPI clients of a job with foreign ranks.

use std::ops::Range;

use mpjdev_proto::impi::barrier::Masters;

/// The ranks of each client of IMPI, as seen by a rank of this project.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The first ranks of all clients.
    pub masters: Masters,
    /// The number of masters up to which their barrier is linear.
    pub maxlinear: u32,
    /// The ranks of this rank's client. All of them belong to this project.
    pub own: Range<u32>,
}

impl Clients {
    /// The clients as seen by `rank`. `clients` names the client of each rank of the world; the ranks of a
    /// client are contiguous (IMPI 5.5). `maxlinear` is the job's C_COLL_MAXLINEAR.
    ///
    /// # Panics
    /// The world has no such rank.
    #[must_use]
    pub fn new(rank: u32, clients: &[u32], maxlinear: u32) -> Clients {
        let client = clients[rank as usize];
        let first = clients.iter().position(|other| *other == client).unwrap_or(0) as u32;
        let count = clients.iter().filter(|other| **other == client).count() as u32;
        Clients {
            masters: Masters::of_clients(clients.iter().copied()),
            maxlinear,
            own: first..first + count,
        }
    }
}
