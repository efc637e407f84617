//! Completions of keys that were not claimed.
//!
//! In optimistic mode a handler runs as if its key were free. Its completion is inserted together with its
//! effects, under the guard that nothing has changed since: no record, or the expired one that was read.
//! So of concurrent attempts for a key one is committed. The others find its record, apply nothing, and are
//! answered from it. Attempts that fail or are stopped write nothing.

use std::sync::Arc;

use super::{
    Machine, Present,
    outcomes::{overtaken, recorded},
    settlements::{AGAIN, Settling},
    wanted::Claimed,
};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::{Admission, Held, Overtaken, Settled, Settlement, admit},
    clock::Timestamp,
    outcome::{Completion, Outcome},
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, StoreError, StoreErrorKind},
};

/// The outcome of an attempt that writes nothing: it leaves no final record, or has failed permanently after its time.
/// The next attempt may be on its way then, and nothing would keep this one from making it fail.
pub(super) fn unwritten(
    held: &Held,
    settlement: &Settlement,
    outcome: &Outcome,
    now: Timestamp,
) -> Option<Outcome> {
    if settlement.gives_up() {
        return Some(outcome.clone());
    }
    let is_late = held.record.lease_until.is_some_and(|until| now > until);
    match (settlement, outcome.clone()) {
        (Settlement::FailPermanently { .. }, outcome) if is_late => Some(match outcome {
            Outcome::Failed { failure, failed_attempts, .. } => {
                Outcome::Failed { failure, failed_attempts, permanent: false }
            }
            Outcome::TimedOut { .. } => Outcome::TimedOut { permanent: false },
            other => other,
        }),
        _ => None,
    }
}

impl Machine<'_> {
    /// A completion was not inserted, because its guard did not hold.
    pub(super) fn met(
        &mut self,
        mut settling: Settling,
        found: Option<IdempotencyRecord>,
        present: &mut Present<'_>,
    ) {
        let (at, now) = (settling.at, present.now);
        let settled = settling.held.settled(&settling.settlement, found.as_ref(), now);
        if matches!(settled, Settled::Done) {
            let completion = found.as_ref().and_then(Completion::of);
            return self.finish(at, recorded(settling.outcome.0, completion), present);
        }
        let mut admission = admit(&settling.held.claim, found.as_ref(), now);
        if let Some(found) = &found
            && !keeps(Rule::AnswersFromWhatItMeets)
        {
            let (guard, held) =
                (Guard::Unchanged(RecordVersion::of(found)), (*settling.held).clone());
            admission = Admission::Try { guard, held };
        }
        let mut unsent = None;
        let by = match admission {
            // What was in doubt may have been applied, and have been deleted since.
            Admission::Try { guard, held }
                if settling.again < AGAIN && !(settling.in_doubt && found.is_none()) =>
            {
                settling.held = Arc::new(held);
                settling.assumed = Some(Box::new(guard));
                settling.instead = None;
                settling.again += 1;
                return self.settlements.add(settling);
            }
            Admission::Try { .. } | Admission::Won(_) => {
                let error = StoreError::new(
                    StoreErrorKind::Contended,
                    "the record comes and goes while its completion is being inserted",
                );
                return self.give_up(settling, error, present);
            }
            Admission::Replay(result) => Overtaken::Completed(result),
            Admission::Unsent(stored) => {
                let result = stored.record.result.clone();
                unsent = Some(Arc::new(stored));
                Overtaken::Completed(result)
            }
            // A next delivery need not look at the record before it runs, so this one gets the answer that a claim gets.
            Admission::PermanentlyFailed { error_type, failed_attempts, fence, .. } => {
                let claimed = Claimed::PermanentlyFailed { error_type, failed_attempts, fence };
                return self.claimed(at, claimed, present);
            }
            Admission::Mismatch { fence } => {
                self.records.at(at).found_final(fence);
                Overtaken::Mismatch { fence }
            }
            Admission::Busy { until } => Overtaken::InProgress { until },
            Admission::Foreign { application } => Overtaken::Foreign { application },
        };
        let outcome = match (&by, settling.outcome.0) {
            (Overtaken::Mismatch { .. }, Outcome::Executed { .. }) => Outcome::Mismatch,
            (Overtaken::InProgress { until }, Outcome::Executed { .. }) => {
                Outcome::Busy { until: *until }
            }
            (_, ours) => overtaken(by, found.as_ref().and_then(Completion::of), ours, |theirs| {
                self.foreign(theirs)
            }),
        };
        match unsent {
            // Whoever completed it may have died before it sent them, and this delivery is acknowledged.
            Some(stored) if matches!(outcome, Outcome::Superseded { .. }) => {
                self.publish(at, stored, outcome, present);
            }
            _ => self.finish(at, outcome, present),
        }
    }
}
