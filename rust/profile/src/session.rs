//! The profile of the process: the counts of all its threads.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mpjdev_sys::lock_order::{LockRank, Mutex};
use mpjdev_sys::ticks::Moment;

use crate::rank_profile::{ProfileError, RankProfile};
use crate::recorder::Recorder;
use crate::switch;
use crate::totals::{Clock, Totals};
use crate::{EVENTS_MAX, EVENTS_VARIABLE, VARIABLE};

static SESSION: Mutex<Option<Session>> = Mutex::new(LockRank::Leaf, None);

/// The profile since the first init of the process.
struct Session {
    folder: PathBuf,
    rank: u32,
    ranks: u32,
    keeps_events: bool,
    begun: Moment,
    begun_ns: u64,
    threads: u32,
    living: Vec<Arc<Recorder>>,
    /// The counts of threads that have ended.
    ended: Totals,
}

/// Begins to count the calls of this process as this rank, if the environment names a folder. A process that
/// becomes a rank again continues to count.
///
/// # Errors
/// The number of events is not valid. Nothing is counted then.
pub fn start(rank: u32, ranks: u32) -> Result<(), ProfileError> {
    let Some(folder) = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) else { return Ok(()) };
    let events = events_of(env::var_os(EVENTS_VARIABLE))?;
    start_in(folder.into(), (rank, ranks), events);
    Ok(())
}

/// The number of events that the variable asks for.
fn events_of(value: Option<OsString>) -> Result<usize, ProfileError> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(0) };
    let number = value.to_str().and_then(|text| text.parse().ok());
    number
        .filter(|events| (1..=EVENTS_MAX).contains(events))
        .ok_or_else(|| ProfileError::Events { value: value.to_string_lossy().into_owned() })
}

/// Begins to count as [`start`] does, with the file in this folder, and keeps this number of events.
pub fn start_in(folder: PathBuf, (rank, ranks): (u32, u32), events: usize) {
    let mut session = SESSION.lock();
    if session.is_some() {
        return;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    *session = Some(Session {
        folder,
        rank,
        ranks,
        keeps_events: events > 0,
        begun: Moment::now(),
        begun_ns: since.as_nanos() as u64,
        threads: 0,
        living: Vec::new(),
        ended: Totals::default(),
    });
    switch::turn_on(events as u64);
}

/// Pauses the counts, or resumes them, while no thread is in a call. Does nothing without [`start`].
pub fn pause(is_paused: bool) {
    if SESSION.lock().is_some() {
        switch::pause(is_paused);
    }
}

/// A recorder for the calling thread. The thread that has called init counts from its end on, others from
/// their first call on.
pub(crate) fn new_recorder() -> Arc<Recorder> {
    let mut session = SESSION.lock();
    let now = Moment::now().ticks();
    let Some(session) = &mut *session else { return Arc::new(Recorder::new(0, 0, false, now)) };
    let begun = if session.threads == 0 { session.begun.ticks() } else { now };
    let recorder =
        Arc::new(Recorder::new(session.threads, session.ranks as usize, session.keeps_events, begun));
    session.threads += 1;
    session.living.push(recorder.clone());
    recorder
}

/// Keeps the counts of a thread that ends.
pub(crate) fn end_thread(recorder: &Arc<Recorder>) {
    let totals = Totals::of(recorder, Moment::now().ticks());
    let mut session = SESSION.lock();
    if let Some(session) = &mut *session {
        session.living.retain(|living| !Arc::ptr_eq(living, recorder));
        session.ended.merge(totals);
    }
}

/// Writes the file of this rank, with the counts so far. A later call writes the later counts. Without
/// [`start`] nothing happens.
///
/// # Errors
/// The system refuses.
pub fn write() -> Result<(), ProfileError> {
    let Some(snapshot) = Snapshot::take() else { return Ok(()) };
    snapshot.profile().write(&snapshot.folder)
}

/// The session at one moment. Its threads continue to count meanwhile.
struct Snapshot {
    folder: PathBuf,
    rank: u32,
    ranks: u32,
    begun: Moment,
    begun_ns: u64,
    threads: u32,
    living: Vec<Arc<Recorder>>,
    ended: Totals,
}

impl Snapshot {
    fn take() -> Option<Snapshot> {
        let session = SESSION.lock();
        let session = session.as_ref()?;
        Some(Snapshot {
            folder: session.folder.clone(),
            rank: session.rank,
            ranks: session.ranks,
            begun: session.begun,
            begun_ns: session.begun_ns,
            threads: session.threads,
            living: session.living.clone(),
            ended: session.ended.clone(),
        })
    }

    fn profile(&self) -> RankProfile {
        let now = Moment::now();
        let mut totals = self.ended.clone();
        self.living.iter().for_each(|recorder| totals.merge(Totals::of(recorder, now.ticks())));
        let clock = Clock { begun: self.begun.ticks(), tick: now.tick_since(&self.begun) };
        RankProfile {
            rank: self.rank,
            host: host(),
            process: std::process::id(),
            begun_ns: self.begun_ns,
            elapsed_ns: clock.time(now.ticks() - self.begun.ticks()),
            threads: self.threads,
            events_lost: switch::events_lost(),
            ..totals.profile(self.ranks, &clock)
        }
    }
}

/// The name of this machine.
fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;
    use crate::span::{Span, received, sent};

    fn call(call: Call, messages: impl FnOnce()) {
        let span = Span::begin(call);
        messages();
        span.end();
    }

    /// One test for all, because a process has one session.
    #[test]
    fn process_writes_the_calls_of_its_threads() {
        let folder = env::temp_dir().join(format!("mpjdev-profile-test-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        call(Call::Send, || sent(1, || 8));
        assert!(Snapshot::take().is_none(), "nothing is counted before the start");

        start_in(folder.clone(), (0, 4), 3);
        call(Call::Send, || sent(1, || 8));
        call(Call::Sendrecv, || {
            sent(1, || 16);
            received(2, || 24);
        });
        call(Call::Bcast, || {
            sent(1, || 100);
            sent(3, || 100);
        });
        std::thread::spawn(|| call(Call::Test, || {})).join().expect("no panic");
        // A function of the program that makes a call inside of a reduction.
        call(Call::Reduce, || call(Call::Send, || sent(3, || 1)));
        pause(true);
        call(Call::Scan, || sent(2, || 1));
        pause(false);
        write().expect("a file");

        let text = fs::read_to_string(folder.join("rank-0.json")).expect("the file");
        let profile: RankProfile = serde_json::from_str(&text).expect("a profile");
        fs::remove_dir_all(&folder).expect("removed");
        let shown: Vec<_> = profile
            .calls
            .iter()
            .map(|count| (count.call.as_str(), count.peer, count.count, count.sent, count.received))
            .collect();
        let expected = [
            ("Send", Some(1), 1, 8, 0),
            ("Sendrecv", Some(2), 1, 16, 24),
            ("Test", None, 1, 0, 0),
            ("Bcast", None, 1, 200, 0),
            ("Reduce", None, 1, 1, 0),
        ];
        assert_eq!(shown, expected);
        let peers: Vec<_> =
            profile.peers.iter().map(|p| (p.peer, p.messages_sent, p.sent, p.received)).collect();
        assert_eq!(peers, [(1, 3, 124, 0), (2, 0, 0, 24), (3, 2, 101, 0)]);
        assert_eq!(profile.sizes, [0, 1, 0, 0, 1, 1, 0, 2]);
        assert_eq!((profile.threads, profile.events.len(), profile.events_lost), (2, 3, 2));
        assert_eq!(profile.longest.len(), 5);
        let in_calls: u64 = profile.calls.iter().map(|count| count.ns).sum();
        assert!(profile.calls_ns.abs_diff(in_calls) <= 6, "{} and {in_calls}", profile.calls_ns);
        assert!(profile.calls_ns <= profile.thread_ns, "a nested call counts once");
    }

    #[test]
    fn number_of_events_is_refused_unless_it_is_in_range() {
        assert_eq!(events_of(Some("5".into())).ok(), Some(5));
        assert_eq!(events_of(None).ok(), Some(0));
        for value in ["0", "-1", "many", "1000001"] {
            let refused = events_of(Some(value.into())).expect_err("no number of events").to_string();
            assert!(refused.contains(value) && refused.contains("1000000"), "{refused}");
        }
    }
}
