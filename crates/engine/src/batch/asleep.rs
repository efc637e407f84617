//! Records whose key is busy, by when they are looked at again.

use std::collections::{BTreeMap, HashMap};

use lambda_idempotency_core::clock::Timestamp;

/// Who is asleep. Each event of a batch asks who wakes next, however many there are.
#[derive(Default)]
pub(super) struct Asleep {
    /// By when they wake, and their place in the batch: until when the key is known to be busy.
    by_wake: BTreeMap<(Timestamp, usize), Timestamp>,
    wakes: HashMap<usize, Timestamp>,
}

impl Asleep {
    /// Record `at` sleeps until `wake`; its key is busy until `until`.
    pub(super) fn add(&mut self, at: usize, wake: Timestamp, until: Timestamp) {
        self.wakes.insert(at, wake);
        self.by_wake.insert((wake, at), until);
    }

    /// Wakes record `at` early. Says whether it was asleep.
    pub(super) fn remove(&mut self, at: usize) -> bool {
        let wake = self.wakes.remove(&at);
        wake.is_some_and(|wake| self.by_wake.remove(&(wake, at)).is_some())
    }

    /// When the next one wakes.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.by_wake.first_key_value().map(|((wake, _), _)| *wake)
    }

    /// Wakes one that has slept long enough.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<usize> {
        if self.next_due()? > now {
            return None;
        }
        self.pop().map(|(at, _)| at)
    }

    /// Wakes one: its place in the batch, and until when its key is busy.
    pub(super) fn pop(&mut self) -> Option<(usize, Timestamp)> {
        let ((_, at), until) = self.by_wake.pop_first()?;
        self.wakes.remove(&at);
        Some((at, until))
    }
}
