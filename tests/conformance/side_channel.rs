//! A board on which the ranks of a job inform each other without messages.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::under_mpirun;

/// Path of the file.
#[derive(Debug)]
pub(crate) enum Board {
    /// In memory: the ranks are threads.
    Memory { said: Mutex<HashSet<String>>, news: Condvar },
    /// In a directory, as files that say it by their names: the ranks are processes.
    Directory(PathBuf),
}

impl Board {
    /// That of a job, whose ranks have been connected.
    pub(crate) fn new() -> Board {
        match under_mpirun::directory() {
            None => Board::Memory { said: Mutex::default(), news: Condvar::new() },
            Some(directory) => {
                let directory = directory.join(under_mpirun::job_number().to_string());
                std::fs::create_dir_all(&directory).expect("a directory");
                Board::Directory(directory)
            }
        }
    }

    pub(crate) fn say(&self, what: &str) {
        match self {
            Board::Memory { said, news } => {
                lock(said).insert(what.to_owned());
                news.notify_all();
            }
            Board::Directory(directory) => {
                std::fs::write(directory.join(what.replace('/', "_")), []).expect("a file");
            }
        }
    }

    pub(crate) fn was_said(&self, what: &str) -> bool {
        match self {
            Board::Memory { said, .. } => lock(said).contains(what),
            Board::Directory(directory) => directory.join(what.replace('/', "_")).exists(),
        }
    }

    /// Waits for this, or for other news, or for a moment.
    pub(crate) fn wait(&self, what: &str) {
        match self {
            Board::Memory { said, news } => {
                let said = lock(said);
                if !said.contains(what) {
                    let waited = news.wait_timeout(said, Duration::from_millis(50));
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
            Board::Directory(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Wakes who waits.
    pub(crate) fn wake(&self) {
        if let Board::Memory { news, .. } = self {
            news.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
