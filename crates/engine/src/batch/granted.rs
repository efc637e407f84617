//! What a claim was answered: the key is held, or what becomes of a record that did not get it.

use std::{sync::Arc, time::Duration};

use super::{
    claims::Claimed,
    drive::Drive,
    entry::{Intake, Stage},
};
use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::{Foreign, Outcome},
    policy::{OnConflict, OnOutage, OnPermanentFailure},
    store::{StoreError, StoreErrorKind},
};

/// What [`OnConflict::Return`] waits for the end of a lease.
const REMAINDER: Duration = Duration::from_secs(2);
/// The first pause between two looks at a busy key; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Drive<'_> {
    pub(super) fn claimed(&mut self, at: usize, claimed: Claimed) {
        self.entry(at).stage = Stage::Moving;
        match claimed {
            Claimed::Held(held) => {
                self.entry(at).held = Some(held);
                self.keep_alive(at, None);
                match self.closed {
                    Some(why) => self.not_started(at, why),
                    None => self.ready.push_back(at),
                }
            }
            Claimed::Replay(outcome) => self.finish(at, Outcome::Replayed { result: outcome }),
            Claimed::PermanentlyFailed { error_type: error, failed_attempts, fence } => {
                self.entry(at).final_fence = Some(fence);
                let acknowledged =
                    self.policy.on_permanent_failure == OnPermanentFailure::Acknowledge;
                self.finish(
                    at,
                    Outcome::PermanentlyFailed { error_type: error, failed_attempts, acknowledged },
                );
            }
            Claimed::Mismatch { fence } => {
                self.entry(at).final_fence = Some(fence);
                self.finish(at, Outcome::Mismatch);
            }
            Claimed::Busy { until } => self.busy(at, until),
            Claimed::Foreign { application } => {
                let foreign = self.foreign(application);
                self.finish(at, Outcome::Foreign(foreign));
            }
            Claimed::Suspect => match self.closed {
                Some(why) => self.finish(at, Outcome::Returned(why)),
                None => {
                    self.entry(at).lead = None;
                    self.suspects.push_back(at);
                }
            },
            Claimed::Unavailable(error) if self.runs_without(&error) => {
                let entry = self.entry(at);
                entry.intake = Intake::Unprotected;
                entry.outage = Some(Box::new(error));
                self.ready.push_back(at);
            }
            Claimed::Unavailable(error) => self.finish(at, Outcome::Unavailable(error)),
        }
    }

    /// What is said of a key that belongs to another application.
    pub(super) fn foreign(&self, theirs: Arc<str>) -> Foreign {
        self.engine.foreign(self.operation, theirs)
    }

    /// Whether the user would rather have the work done twice than not now.
    fn runs_without(&self, error: &StoreError) -> bool {
        let outage =
            matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled);
        outage && self.closed.is_none() && self.policy.on_outage == OnOutage::RunUnprotected
    }

    fn busy(&mut self, at: usize, until: Timestamp) {
        let (now, conflict) = (self.now(), self.conflict(at));
        let entry = self.entry(at);
        let since = *entry.busy_since.get_or_insert(now);
        let doubled = FIRST_PAUSE.saturating_mul(1 << entry.looks.min(8));
        entry.looks += 1;
        let limit = match conflict {
            OnConflict::Skip => return self.finish(at, Outcome::Skipped),
            OnConflict::Wait { up_to } => since.plus(up_to),
            _ if until <= since.plus(REMAINDER) => until.plus(LONGEST_PAUSE),
            _ => since,
        };
        let past = until.plus(Duration::from_millis(1));
        let wake = now.plus(doubled.min(LONGEST_PAUSE)).min(past.max(now)).min(limit);
        let in_time = self.budget.stop().is_none_or(|stop| wake < stop);
        if self.closed.is_some() || now >= limit || !in_time {
            return self.finish(at, Outcome::Busy { until });
        }
        self.asleep.add(at, wake, until);
        if self.alone == Some(at) {
            self.alone = None;
        }
    }
}
