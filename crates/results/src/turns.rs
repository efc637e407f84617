//! Compressing a long result occupies the processor, and a completion that is ready must not wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;

/// How many bytes are compressed before what is ready is sent. A processor compresses them in about ten milliseconds.
const AT_A_TIME: usize = 256 * 1024;

/// The results of one call that are to be compressed. Short ones are compressed at once, long ones one after the other.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The bytes that were compressed since what is ready was sent.
    bytes: AtomicUsize,
    turn: Mutex<()>,
}

impl Turns {
    /// Waits until a result of so many bytes may be compressed: before a long one, all that is ready leaves the process.
    pub(crate) async fn wait(&self, bytes: usize) {
        let sum = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if sum <= AT_A_TIME {
            self.bytes.store(sum, Ordering::Relaxed);
            return;
        }
        let _turn = self.turn.lock().await;
        tokio::task::yield_now().await;
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}
