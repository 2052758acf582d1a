//! A relay between the sockets of two ranks, which tampers with their datagrams.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::*;

/// The datagrams that a peer receives in place of one datagram of this rank.
pub(super) type Tamper = Box<dyn FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send>;

/// A relay between ranks 0 and 1.
pub(super) struct Relay {
    /// By rank: the socket at which the other rank reaches it.
    fronts: [Arc<UdpSocket>; 2],
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    tamper: Mutex<Tamper>,
    /// The address of each rank.
    ranks: Mutex<[SocketAddr; 2]>,
    is_over: AtomicBool,
}

impl Relay {
    /// Starts a relay between the ranks of a job of two.
    pub(super) fn between(jobs: &mut [Job], tamper: Tamper) -> Relay {
        let front = || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
            options::set_buffers(socket.as_fd(), 4 << 20, 4 << 20).expect("buffers");
            Arc::new(socket)
        };
        let fronts = [front(), front()];
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let shared = Arc::new(Shared {
            tamper: Mutex::new(tamper),
            ranks: Mutex::new([nowhere; 2]),
            is_over: AtomicBool::new(false),
        });
        let mut relay = Relay { fronts, shared, threads: Vec::new() };
        relay.connect_to(jobs);
        for from in 0..2 {
            let (shared, fronts) = (relay.shared.clone(), relay.fronts.clone());
            relay.threads.push(std::thread::spawn(move || shared.carry(from, &fronts)));
        }
        relay
    }

    /// Relays between these ranks from now on.
    pub(super) fn connect_to(&self, jobs: &mut [Job]) {
        let mut ranks = self.shared.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        for (rank, job) in jobs.iter_mut().enumerate() {
            ranks[rank] = job.socket.local_addr().expect("bound");
            let other = job.members[1 - rank].as_mut().expect("two ranks");
            other.address = self.fronts[1 - rank].local_addr().expect("bound");
        }
    }

    /// Tampers with further datagrams in another way.
    pub(super) fn tamper(&self, tamper: Tamper) {
        *self.shared.tamper.lock().unwrap_or_else(PoisonError::into_inner) = tamper;
    }

    /// Sends a rank a datagram from the address of the other rank.
    pub(super) fn send(&self, to: usize, octets: &[u8]) {
        let address = self.shared.ranks.lock().unwrap_or_else(PoisonError::into_inner)[to];
        self.fronts[1 - to].send_to(octets, address).expect("sent");
    }
}

impl Shared {
    fn carry(&self, from: usize, fronts: &[Arc<UdpSocket>; 2]) {
        let mut octets = vec![0; 1 << 16];
        while !self.is_over.load(Relaxed) {
            // A timeout: the test may be over.
            let Ok(len) = fronts[1 - from].recv(&mut octets) else { continue };
            let datagrams = {
                let mut tamper = self.tamper.lock().unwrap_or_else(PoisonError::into_inner);
                tamper(from, octets[..len].to_vec())
            };
            let to = self.ranks.lock().unwrap_or_else(PoisonError::into_inner)[1 - from];
            for datagram in datagrams {
                // The rank may have ended.
                let _ = fronts[from].send_to(&datagram, to);
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let result = thread.join();
            assert!(result.is_ok() || std::thread::panicking(), "a relay has failed");
        }
    }
}
