//! Forwarding of output. Each stream has a thread of its own, so that a slow reader blocks the writing ranks
//! and not the launcher.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;

/// Maximum pieces in the thread's queue.
const PIECES_MAX: usize = 64;

/// Standard output or error of the launcher.
#[derive(Debug)]
pub struct Sink {
    sender: Option<SyncSender<Bytes>>,
    waiting: VecDeque<Bytes>,
    writer: JoinHandle<()>,
    unread: Arc<AtomicBool>,
}

impl Sink {
    /// A sink that writes to this stream.
    pub fn new(stream: impl Write + Send + 'static) -> Sink {
        let (sender, receiver) = sync_channel(PIECES_MAX);
        let unread = Arc::new(AtomicBool::new(false));
        let written = unread.clone();
        let writer = std::thread::spawn(move || write_all(&receiver, stream, &written));
        Sink { sender: Some(sender), waiting: VecDeque::new(), writer, unread }
    }

    /// Adds a piece of output, which consists of whole lines.
    pub fn put(&mut self, piece: Bytes) {
        if !piece.is_empty() && self.sender.is_some() {
            self.waiting.push_back(piece);
        }
        self.pump();
    }

    /// Moves pieces into the thread's queue; true if none is left and more may be added.
    pub fn pump(&mut self) -> bool {
        while let (Some(sender), Some(piece)) = (&self.sender, self.waiting.pop_front()) {
            if let Err(TrySendError::Full(piece)) = sender.try_send(piece) {
                self.waiting.push_front(piece);
                break;
            }
        }
        self.waiting.is_empty()
    }

    /// Whether all pieces are in the thread's queue.
    pub fn is_free(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the reader has closed the stream.
    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Acquire)
    }

    /// Whether everything is written. After the first call the sink drops further pieces. The caller repeats
    /// the call until it is true.
    pub fn is_done(&mut self) -> bool {
        if self.pump() {
            self.sender = None;
        }
        self.writer.is_finished()
    }
}

/// Writes all pieces. When the reader has closed the stream, the rest is dropped.
fn write_all(pieces: &Receiver<Bytes>, mut stream: impl Write, unread: &AtomicBool) {
    for piece in pieces {
        if !unread.load(Ordering::Relaxed) && stream.write_all(&piece).and_then(|()| stream.flush()).is_err()
        {
            unread.store(true, Ordering::Release);
        }
    }
}
