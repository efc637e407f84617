//! Records that wait for a busy key, ordered by wake-up time.

use std::{collections::BTreeSet, time::Duration};

use super::record::Stage;
use lambda_idempotency_core::clock::Timestamp;

/// The first pause between two looks at a busy key; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause before the next look at a busy key, after `looks` earlier ones.
pub(super) fn pause(looks: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << looks.min(8)).min(LONGEST_PAUSE)
}

/// The waiting records, by their wake-up times and positions in the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiting(BTreeSet<(Timestamp, usize)>);

impl Waiting {
    /// Record `at` moves from one stage to another.
    pub(super) fn moved(&mut self, at: usize, was: Stage, to: Stage) {
        if let Stage::Waiting(wait) = was {
            self.0.remove(&(wait.wake, at));
        }
        if let Stage::Waiting(wait) = to {
            self.0.insert((wait.wake, at));
        }
    }

    /// When the next record wakes.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.next().map(|(wake, _)| wake)
    }

    /// When the next record wakes, and which.
    pub(super) fn next(&self) -> Option<(Timestamp, usize)> {
        self.0.first().copied()
    }

    /// The waiting records.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(_, at)| *at)
    }
}
