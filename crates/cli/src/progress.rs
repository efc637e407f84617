//! Says how far a long run is.

use std::{
    io::IsTerminal as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How often it is said.
const EVERY: Duration = Duration::from_secs(5);

/// Counts what is done.
pub(crate) struct Progress {
    done: AtomicU64,
    total: u64,
    what: &'static str,
}

impl Progress {
    pub(crate) fn new(total: u64, what: &'static str) -> Self {
        Self { done: AtomicU64::new(0), total, what }
    }

    pub(crate) fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Says during `work` how much is done, if stderr is a terminal.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>, hidden: bool) -> T {
        let is_shown = !hidden && std::io::stderr().is_terminal();
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(EVERY, &mut work).await {
                Ok(done) => return done,
                Err(_) if is_shown => {
                    let done = self.done.load(Ordering::Relaxed);
                    eprintln!("{done} of {} {}", self.total, self.what);
                }
                Err(_) => {}
            }
        }
    }
}
