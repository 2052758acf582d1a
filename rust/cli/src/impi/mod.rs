//! IMPI's start-up over TCP: what the pure machines of `mpjdev_proto::impi::startup` say is carried here.
//!
//! [`server`] is the startup server of a job, [`client`] a site's connection to it, [`auth`] what both take from their
//! environment, [`penalty`] how long a wrong key makes wait.

pub mod auth;
pub mod client;
pub mod penalty;
pub mod server;

use std::time::Duration;

use rustix::net::sockopt;

/// How long a connection may be silent before the system asks whether the other side is there.
const SILENCE: Duration = Duration::from_secs(60);
/// How long it waits between asking again.
const ASK_EVERY: Duration = Duration::from_secs(15);
/// How often it asks.
const ASKED_MAX: u32 = 4;

/// What both sides want of their connection, which is silent for as long as the job runs: small messages at once, and to know
/// when the other machine is gone. Whoever cannot have that does without.
fn set_options(stream: &std::net::TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, SILENCE);
    let _ = sockopt::set_tcp_keepintvl(stream, ASK_EVERY);
    let _ = sockopt::set_tcp_keepcnt(stream, ASKED_MAX);
}
