//! Compressing a long result occupies the processor, and a completion that is ready must not wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

/// How many bytes are compressed before what is ready is sent. A processor compresses them in about ten milliseconds.
const AT_A_TIME: usize = 256 * 1024;

/// The results of one call that are to be compressed. Short ones are compressed at once; others when they have their turn.
#[derive(Debug)]
pub(crate) struct Turns {
    turns: Semaphore,
    waiting: AtomicUsize,
    /// The bytes that were compressed since the last turn.
    bytes: AtomicUsize,
}

impl Turns {
    pub(crate) const fn new() -> Self {
        Self {
            turns: Semaphore::const_new(0),
            waiting: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Waits until a result of so many bytes may be compressed.
    pub(crate) async fn wait(&self, bytes: usize) {
        let before = self.bytes.load(Ordering::Relaxed);
        if before.saturating_add(bytes) <= AT_A_TIME {
            self.bytes.store(before.saturating_add(bytes), Ordering::Relaxed);
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // It is never closed.
        if let Ok(turn) = self.turns.acquire().await {
            turn.forget();
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether one waits for its turn.
    pub(crate) fn are_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives one its turn.
    pub(crate) fn give(&self) {
        self.turns.add_permits(1);
    }
}
