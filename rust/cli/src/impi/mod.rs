//! Start-up of IMPI over TCP: sockets for the pure machines of `mpjdev_proto::impi::startup`.
//!
//! [`server`] is the startup server of a job, and [`client`] a site's connection to it. [`auth`] reads the
//! keys of both from the environment. [`penalty`] delays the answers to wrong keys.

pub mod auth;
pub mod client;
pub mod penalty;
pub mod server;

use std::time::Duration;

use rustix::net::sockopt;

/// Idle time after which the system probes a connection.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time between two probes.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// Number of probes without an answer after which the connection is dead.
const ASKED_MAX: u32 = 4;

/// Sets the options of a connection that is idle while the job runs: no delay for small messages, and
/// keepalive probes. Refused options are left out.
fn set_options(stream: &std::net::TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE);
    let _ = sockopt::set_tcp_keepintvl(stream, ASK_EVERY);
    let _ = sockopt::set_tcp_keepcnt(stream, ASKED_MAX);
}
