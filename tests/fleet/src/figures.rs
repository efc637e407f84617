//! What happened in each second.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::time::Micros;

/// The seconds of a simulation. Clones are the same.
#[derive(Clone, Default)]
pub struct Figures(Arc<Mutex<Vec<Second>>>);

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Records that functions received.
    pub received: u64,
    /// Records that were acknowledged for the first time.
    pub acknowledged: u64,
    /// Requests to the table.
    pub requests: u64,
    /// Writes in them.
    pub writes: u64,
    /// Writes that the table throttled.
    pub throttled: u64,
    /// Reads.
    pub reads: u64,
    /// Invocations that ended.
    pub invocations: u64,
    /// Those that were killed or had no time left.
    pub killed: u64,
    /// Polls that found nothing.
    pub idle: u64,
    /// Batches that may be processed at once, at the end of the second.
    pub pollers: u64,
    /// Records that wait in the queue, at the end of the second.
    pub waiting: u64,
    /// Records that were sent, and are neither deleted nor in the dead-letter queue, at the end of the second.
    pub backlog: u64,
    /// Full batches that ended while nothing was going wrong.
    pub full_batches: u64,
    /// How long these took in all, in microseconds.
    pub in_full_batches: Micros,
}

impl Figures {
    /// Counts something that happens now.
    pub fn count(&self, now: Micros, count: impl FnOnce(&mut Second)) {
        let mut seconds = self.lock();
        let second = usize::try_from(now / 1_000_000).unwrap_or(usize::MAX);
        if seconds.len() <= second {
            seconds.resize(second + 1, Second::default());
        }
        count(&mut seconds[second]);
    }

    /// What has been counted in this second so far.
    #[must_use]
    pub fn of(&self, now: Micros) -> Second {
        let second = usize::try_from(now / 1_000_000).unwrap_or(usize::MAX);
        self.lock().get(second).copied().unwrap_or_default()
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Second> {
        self.lock().clone()
    }

    pub(crate) fn requested(&self, now: Micros, writes: usize, throttled: u64) {
        self.count(now, |second| {
            second.requests += 1;
            second.writes += writes as u64;
            second.throttled += throttled;
        });
    }

    pub(crate) fn read(&self, now: Micros, keys: usize) {
        self.count(now, |second| {
            second.requests += 1;
            second.reads += keys as u64;
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Second>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Second {
    /// The sums of these seconds.
    #[must_use]
    pub fn sum(seconds: &[Self]) -> Self {
        seconds.iter().fold(Self::default(), |sum, one| Self {
            received: sum.received + one.received,
            acknowledged: sum.acknowledged + one.acknowledged,
            requests: sum.requests + one.requests,
            writes: sum.writes + one.writes,
            throttled: sum.throttled + one.throttled,
            reads: sum.reads + one.reads,
            invocations: sum.invocations + one.invocations,
            killed: sum.killed + one.killed,
            idle: sum.idle + one.idle,
            pollers: sum.pollers.max(one.pollers),
            waiting: sum.waiting.max(one.waiting),
            backlog: sum.backlog.max(one.backlog),
            full_batches: sum.full_batches + one.full_batches,
            in_full_batches: sum.in_full_batches + one.in_full_batches,
        })
    }
}
