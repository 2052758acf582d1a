//! Liveness connections: the TCP connections of the setup stay open beside the datagrams, and
//! carry no data.
//!
//! The system closes a connection when the process at its other end ends, for whatever reason. TCP keepalive
//! ends it when the other machine is unreachable. Datagrams that have arrived before are handled first: a
//! rank that had finished has not failed.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use mpjdev_sys::sync::{LockRank, Mutex};

/// Connections handled at a time. The system reports the others again.
const EVENTS: usize = 16;

/// Time by which the end of a connection may overtake earlier datagrams, also within one machine.
const OVERTAKEN: Duration = Duration::from_millis(20);

/// A connection that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// The rank at its other end.
    pub(super) rank: u32,
    /// The reason of failure, unless the rank had finished.
    pub(super) why: String,
    /// Whether the system has timed out the other machine.
    pub(super) is_unreachable: bool,
    /// The time at which the end was seen.
    at: Instant,
}

impl Ended {
    /// Whether earlier datagrams must have arrived as well: the end of a connection may overtake datagrams.
    pub(super) fn is_certain(&self) -> bool {
        self.at.elapsed() >= OVERTAKEN
    }
}

/// The liveness connections of a rank.
#[derive(Debug)]
pub(super) struct LivenessConnections {
    epoll: OwnedFd,
    state: Mutex<State>,
    /// Some connections have ended, and no thread has taken them.
    has_ended: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// By rank; `None` without a connection, or after its end.
    sockets: Vec<Option<OwnedFd>>,
    ended: Vec<Ended>,
}

impl LivenessConnections {
    /// The liveness connections of a rank, by the other rank.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn new(sockets: Vec<Option<OwnedFd>>) -> io::Result<LivenessConnections> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (rank, socket) in (0..).zip(&sockets) {
            if let Some(socket) = socket {
                epoll::add(&epoll, socket, EventData::new_u64(rank), EventFlags::IN)?;
            }
        }
        let state = Mutex::new(LockRank::Leaf, State { sockets, ended: Vec::new() });
        Ok(LivenessConnections { epoll, state, has_ended: AtomicBool::new(false) })
    }

    /// A descriptor that becomes readable when a connection ends that [`poll`](Self::poll) has not seen.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Whether connections have ended, according to the last poll.
    #[inline]
    pub(super) fn have_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    /// Polls the connections. Returns whether some have ended. Never blocks.
    pub(super) fn poll(&self) -> bool {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS];
        let mut state = self.state.lock();
        // The next poll makes up for an interrupted one.
        if let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default())) {
            for event in events {
                state.check(event.data.u64() as usize, &self.epoll);
            }
        }
        let has_ended = !state.ended.is_empty();
        self.has_ended.store(has_ended, SeqCst);
        has_ended
    }

    /// The connections that have ended, each once.
    pub(super) fn take_ended(&self) -> Vec<Ended> {
        if !self.have_ended() {
            return Vec::new();
        }
        let mut state = self.state.lock();
        self.has_ended.store(false, SeqCst);
        std::mem::take(&mut state.ended)
    }

    /// Closes the connection to this rank, which the process at the other end notices.
    pub(super) fn end(&self, rank: u32) {
        let mut state = self.state.lock();
        if let Some(socket) = state.sockets.get_mut(rank as usize).and_then(Option::take) {
            let _ = epoll::delete(&self.epoll, &socket);
        }
    }

    /// Takes these back for later, because a packet from before their end was not passed on yet.
    pub(super) fn put_back(&self, ended: Vec<Ended>) {
        if !ended.is_empty() {
            self.state.lock().ended.extend(ended);
            self.has_ended.store(true, SeqCst);
        }
    }
}

impl State {
    fn check(&mut self, rank: usize, epoll: &OwnedFd) {
        let Some(place) = self.sockets.get_mut(rank) else { return };
        let Some(socket) = place else { return };
        let mut is_unreachable = false;
        let why = match recv(&*socket, &mut [0; 1], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((0, _)) | Err(Errno::CONNRESET) => {
                "its connection has ended before it had finished".to_owned()
            }
            Ok(_) => "it violates the protocol: octets beside its datagrams".to_owned(),
            Err(error) => {
                is_unreachable = true;
                format!("its connection is broken: {}", io::Error::from(error))
            }
        };
        let _ = epoll::delete(epoll, &*socket);
        *place = None;
        self.ended.push(Ended { rank: rank as u32, why, is_unreachable, at: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> [TcpStream; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
        [one, listener.accept().expect("a connection").0]
    }

    /// Result of a poll of the connection to rank 2 after this action at its other end.
    fn after(what: impl FnOnce(TcpStream)) -> String {
        let [own, other] = pair();
        let liveness = LivenessConnections::new(vec![None, None, Some(own.into())]).expect("an epoll");
        assert!(!liveness.poll() && liveness.take_ended().is_empty(), "nothing was done to it");
        what(other);
        let begun = Instant::now();
        while !liveness.poll() {
            assert!(begun.elapsed() < Duration::from_secs(20), "not seen");
        }
        assert!(liveness.have_ended());
        let ended = liveness.take_ended();
        assert!(!liveness.have_ended() && !liveness.poll(), "reported once");
        liveness.put_back(ended.clone());
        assert_eq!((liveness.have_ended(), liveness.take_ended()), (true, ended.clone()));
        let [Ended { rank: 2, why, is_unreachable: false, .. }] = &ended[..] else { panic!("{ended:?}") };
        why.clone()
    }

    #[test]
    fn end_of_a_liveness_connection_and_octets_on_it_are_reported_once() {
        let ended = "its connection has ended before it had finished";
        assert_eq!(after(drop), ended);
        let reset = |stream: TcpStream| rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        assert_eq!(after(|stream| reset(stream).expect("an option")), ended);
        let octets = |mut stream: TcpStream| stream.write_all(b"?").expect("sent");
        assert_eq!(after(octets), "it violates the protocol: octets beside its datagrams");
    }
}
