//! Datagram offloads of this machine's kernel, found out by trying.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU64;

use super::{Arrived, GsoBatch, LEN_MAX, Obstacle, Part, Run, options, receive, send};

/// Offloads that the kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// It cuts GSO batches that are sent. A path through an interface that cannot compute checksums may still
    /// refuse them ([`Obstacle::NoGso`]).
    pub cuts: bool,
    /// It joins arriving datagrams.
    pub joins: bool,
}

/// Longest delivery time within this machine.
const PATIENCE_MS: libc::c_int = 5000;
/// Segments of the trial GSO batch.
const SEGMENTS: usize = 3;
/// Octets of each.
const SEGMENT: NonZeroU16 = NonZeroU16::new(16).expect("more than none");

impl Offload {
    /// Tries both on this machine's own address of that kind: a GSO batch that is cut arrives as its
    /// datagrams, and as a GSO batch again if the socket asks for it.
    ///
    /// # Errors
    /// The system gives no sockets, or a datagram to itself does not arrive.
    pub fn probe(is_v6: bool) -> io::Result<Offload> {
        let pair = Pair::new(is_v6)?;
        let is_sent = match pair.send_gso_batch() {
            Ok(()) => true,
            Err(Obstacle::System(error)) => return Err(error),
            // A kernel without the option ignores or refuses it.
            Err(_) => false,
        };
        let whole = [SEGMENT.get() as usize; SEGMENTS];
        let cuts = is_sent && pair.arrived()? == whole;
        let mut joins = options::set_gro(pair.receiver.as_fd(), true).is_ok();
        // Without GSO batches to send there is no trial. A socket that asks for GSO batches handles single
        // datagrams anyway.
        if cuts && joins {
            pair.send_gso_batch().map_err(failed)?;
            joins = pair.arrived()? == whole;
        }
        Ok(Offload { cuts, joins })
    }
}

/// Octets that the system charges for a datagram of that length while it waits in a socket's queue. A queue
/// takes as many as fit the grant ([`options::Buffers`]) and one more; it may charge received ones for a
/// quarter of the queue longer.
///
/// # Errors
/// The system gives no sockets, or a datagram to itself does not arrive.
pub fn charge(is_v6: bool, len: usize) -> io::Result<usize> {
    let pair = Pair::new(is_v6)?;
    // Sent datagrams are charged too, and must fit.
    options::set_buffers(pair.sender.as_fd(), 2 * LEN_MAX, 2 * LEN_MAX)?;
    options::set_buffers(pair.receiver.as_fd(), 2 * LEN_MAX, 2 * LEN_MAX)?;
    let octets = vec![0; len];
    send(pair.sender.as_fd(), &[GsoBatch::single(&[Run::from(&octets[..])])]).map_err(failed)?;
    pair.wait()?;
    Ok(options::memory(pair.receiver.as_fd())?.receive_len)
}

/// Two sockets of this machine with no other peers.
struct Pair {
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Pair {
    fn new(is_v6: bool) -> io::Result<Pair> {
        let ip: IpAddr = if is_v6 { [0, 0, 0, 0, 0, 0, 0, 1].into() } else { [127, 0, 0, 1].into() };
        let any = || UdpSocket::bind(SocketAddr::new(ip, 0));
        let (sender, receiver) = (any()?, any()?);
        sender.connect(receiver.local_addr()?)?;
        receiver.connect(sender.local_addr()?)?;
        Ok(Pair { sender, receiver })
    }

    fn send_gso_batch(&self) -> Result<(), Obstacle> {
        let octets = [1; SEGMENTS * SEGMENT.get() as usize];
        let runs = [Run::from(&octets[..])];
        let batch = GsoBatch { to: None, runs: &runs, segment_len: Some(SEGMENT) };
        send(self.sender.as_fd(), &[batch]).map(|_| ())
    }

    /// Lengths of the datagrams that a GSO batch has become.
    fn arrived(&self) -> io::Result<Vec<usize>> {
        const LEN: usize = SEGMENTS * SEGMENT.get() as usize;
        let words: [AtomicU64; LEN / 8] = [const { AtomicU64::new(0) }; LEN / 8];
        let room = [Part::new(&words, 0, LEN)];
        let mut lens = Vec::new();
        while lens.iter().sum::<usize>() < LEN {
            self.wait()?;
            let mut arrived = [Arrived::default()];
            match receive(self.receiver.as_fd(), &[&room], &mut arrived) {
                Ok(_) => lens.extend(arrived[0].datagrams().map(|datagram| datagram.len())),
                Err(Obstacle::Later) => {}
                Err(obstacle) => return Err(failed(obstacle)),
            }
        }
        Ok(lens)
    }

    /// Waits until a datagram has arrived. The kernel thread that delivers it may be busy.
    fn wait(&self) -> io::Result<()> {
        let mut ready = libc::pollfd { fd: self.receiver.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the system reads and writes one entry, to which the pointer leads.
        match unsafe { libc::poll(&raw mut ready, 1, PATIENCE_MS) } {
            0 => Err(io::ErrorKind::TimedOut.into()),
            // After a signal the wait ends: only the trial is lost.
            count if count < 0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn failed(obstacle: Obstacle) -> io::Error {
    match obstacle {
        Obstacle::System(error) => error,
        obstacle => io::Error::other(obstacle),
    }
}
