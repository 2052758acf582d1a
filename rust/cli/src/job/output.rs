//! Where forwarded output goes: a thread of its own for each stream, so that a reader that is slow stops the ranks that write
//! and not the launcher.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pieces that wait for the thread.
const PIECES_MAX: usize = 64;
/// How long what is left may take at the end of the job, when nobody reads.
const LAST_MAX: Duration = Duration::from_secs(5);

/// One stream of the launcher.
#[derive(Debug)]
pub struct Sink {
    sender: Option<SyncSender<Vec<u8>>>,
    waiting: VecDeque<Vec<u8>>,
    writer: Option<JoinHandle<()>>,
}

impl Sink {
    /// A sink to this stream.
    pub fn new(stream: impl Write + Send + 'static) -> Sink {
        let (sender, receiver) = sync_channel(PIECES_MAX);
        let writer = std::thread::spawn(move || write_all(&receiver, stream));
        Sink { sender: Some(sender), waiting: VecDeque::new(), writer: Some(writer) }
    }

    /// Takes a piece of output, whole lines.
    pub fn put(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() {
            self.waiting.push_back(piece);
        }
        self.pump();
    }

    /// Hands on what the thread has room for; true when nothing waits, and more may be put.
    pub fn pump(&mut self) -> bool {
        while let (Some(piece), Some(sender)) = (self.waiting.pop_front(), &self.sender) {
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

    /// Waits for everything to be written, for a bounded time.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + LAST_MAX;
        while !self.pump() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.sender = None;
        let Some(writer) = self.writer.take() else { return };
        while !writer.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Writes until nothing more comes. When nobody reads, the rest is dropped.
fn write_all(pieces: &Receiver<Vec<u8>>, mut stream: impl Write) {
    let mut is_open = true;
    for piece in pieces {
        is_open = is_open && stream.write_all(&piece).and_then(|()| stream.flush()).is_ok();
    }
}
