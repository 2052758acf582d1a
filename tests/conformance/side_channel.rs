//! Notes that the ranks of a job exchange beside their messages.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::under_mpirun;

/// The notes of one job.
#[derive(Debug)]
pub(crate) enum SideChannel {
    /// The ranks are threads.
    Memory { notes: Mutex<HashSet<String>>, news: Condvar },
    /// The ranks are processes: each note is an empty file named by its text.
    Directory(PathBuf),
}

impl SideChannel {
    /// The notes of a job whose ranks are connected.
    pub(crate) fn new() -> SideChannel {
        match under_mpirun::directory() {
            None => SideChannel::Memory { notes: Mutex::default(), news: Condvar::new() },
            Some(directory) => {
                let directory = directory.join(under_mpirun::job_number().to_string());
                std::fs::create_dir_all(&directory).expect("a directory");
                SideChannel::Directory(directory)
            }
        }
    }

    pub(crate) fn post(&self, what: &str) {
        match self {
            SideChannel::Memory { notes, news } => {
                lock(notes).insert(what.to_owned());
                news.notify_all();
            }
            SideChannel::Directory(directory) => {
                std::fs::write(directory.join(what.replace('/', "_")), []).expect("a file");
            }
        }
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        match self {
            SideChannel::Memory { notes, .. } => lock(notes).contains(what),
            SideChannel::Directory(directory) => directory.join(what.replace('/', "_")).exists(),
        }
    }

    /// Waits for this note, another note, or a short time.
    pub(crate) fn wait(&self, what: &str) {
        match self {
            SideChannel::Memory { notes, news } => {
                let guard = lock(notes);
                if !guard.contains(what) {
                    let waited = news.wait_timeout(guard, Duration::from_millis(50));
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
            SideChannel::Directory(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Wakes all waiting ranks.
    pub(crate) fn wake(&self) {
        if let SideChannel::Memory { news, .. } = self {
            news.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
