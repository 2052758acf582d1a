//! Where forwarded output goes: a thread of its own for each stream, so that a reader that is slow stops the ranks that write
//! and not the launcher.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Pieces that wait for the thread.
const PIECES_MAX: usize = 64;

/// One stream of the launcher.
#[derive(Debug)]
pub struct Sink {
    sender: Option<SyncSender<Vec<u8>>>,
    waiting: VecDeque<Vec<u8>>,
    writer: JoinHandle<()>,
    unread: Arc<AtomicBool>,
}

impl Sink {
    /// A sink to this stream.
    pub fn new(stream: impl Write + Send + 'static) -> Sink {
        let (sender, receiver) = sync_channel(PIECES_MAX);
        let unread = Arc::new(AtomicBool::new(false));
        let told = unread.clone();
        let writer = std::thread::spawn(move || write_all(&receiver, stream, &told));
        Sink { sender: Some(sender), waiting: VecDeque::new(), writer, unread }
    }

    /// Takes a piece of output, whole lines.
    pub fn put(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() && self.sender.is_some() {
            self.waiting.push_back(piece);
        }
        self.pump();
    }

    /// Hands on what the thread has room for; true when nothing waits, and more may be put.
    pub fn pump(&mut self) -> bool {
        while let (Some(sender), Some(piece)) = (&self.sender, self.waiting.pop_front()) {
            if let Err(TrySendError::Full(piece)) = sender.try_send(piece) {
                self.waiting.push_front(piece);
                break;
            }
        }
        self.waiting.is_empty()
    }

    /// Whether nothing waits for the thread.
    pub fn is_free(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether it was noticed that nobody will ever read the stream any more.
    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Acquire)
    }

    /// Whether everything is written, after which nothing more is taken; to be asked again until it is.
    pub fn is_done(&mut self) -> bool {
        if self.pump() {
            self.sender = None;
        }
        self.writer.is_finished()
    }
}

/// Writes until nothing more comes. When nobody reads, the rest is dropped.
fn write_all(pieces: &Receiver<Vec<u8>>, mut stream: impl Write, unread: &AtomicBool) {
    for piece in pieces {
        if !unread.load(Ordering::Relaxed) && stream.write_all(&piece).and_then(|()| stream.flush()).is_err()
        {
            unread.store(true, Ordering::Release);
        }
    }
}
