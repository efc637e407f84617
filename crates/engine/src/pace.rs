//! How long the handlers of an operation take.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How long the handlers of an operation take, learned from their calls. Shared by all invocations.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Follows slow calls at once and fast ones slowly: a start too many costs more than one too
    /// few.
    pub(crate) fn learn(&self, took: Duration) {
        // 0 means that nothing is known.
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let known = self.0.load(Ordering::Relaxed);
        let next = took.max(known.saturating_sub(known / 8).saturating_add(took / 8));
        self.0.store(next, Ordering::Relaxed);
    }

    pub(crate) fn estimate(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_rises_at_once_and_falls_slowly() {
        let pace = Pace::default();
        pace.learn(Duration::from_millis(800));
        pace.learn(Duration::ZERO);
        assert_eq!(pace.estimate(), Duration::from_millis(700));
    }
}
