//! Records that wait for a busy key, ordered by wake-up time.

use std::{collections::BTreeMap, time::Duration};

use lambda_idempotency_core::clock::Timestamp;

/// The first pause between two looks at a busy key; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause before the next look at a busy key, after `looks` earlier ones.
pub(super) fn pause(looks: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << looks.min(8)).min(LONGEST_PAUSE)
}

/// The wait of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Wait {
    /// Until when the key is known to be busy.
    until: Timestamp,
    since: Timestamp,
}

/// The waiting records, in an order that makes it cheap to find the one that wakes next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    /// By the wake-up time and the position in the batch.
    by_wake: BTreeMap<(Timestamp, usize), Wait>,
    wakes: BTreeMap<usize, Timestamp>,
}

impl Waiting {
    /// Record `at` waits from `now` until `wake`; its key is busy until `until`.
    pub(super) fn add(&mut self, at: usize, wake: Timestamp, until: Timestamp, now: Timestamp) {
        self.wakes.insert(at, wake);
        self.by_wake.insert((wake, at), Wait { until, since: now });
    }

    /// Wakes record `at` early. Says whether it was waiting.
    pub(super) fn remove(&mut self, at: usize) -> bool {
        let wake = self.wakes.remove(&at);
        wake.is_some_and(|wake| self.by_wake.remove(&(wake, at)).is_some())
    }

    /// When the next record wakes.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.by_wake.first_key_value().map(|((wake, _), _)| *wake)
    }

    /// Wakes a record whose wake-up time has come, or whose wait began before the clock stepped back.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<usize> {
        let ((wake, at), wait) = self.by_wake.first_key_value()?;
        if *wake > now && wait.since <= now {
            return None;
        }
        let at = *at;
        self.remove(at);
        Some(at)
    }

    /// Wakes those of these records that wait: their positions in the batch, and until when each key is busy.
    pub(super) fn take(&mut self, which: impl Fn(usize) -> bool) -> Vec<(usize, Timestamp)> {
        let taken = self.by_wake.extract_if(.., |(_, at), _| which(*at));
        let taken: Vec<_> = taken.map(|((_, at), wait)| (at, wait.until)).collect();
        self.wakes.retain(|at, _| !which(*at));
        taken
    }
}
