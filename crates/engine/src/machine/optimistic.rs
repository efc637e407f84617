//! Completions of keys that were not claimed.
//!
//! In optimistic mode a handler runs as if its key were free. Its completion is inserted together with its
//! effects, under the guard that nothing has changed since: no record, or the expired one that was read.
//! So of concurrent attempts for a key one is committed. The others find its record, apply nothing, and are
//! answered from it. Attempts that fail or are stopped write nothing.

use std::sync::Arc;

use super::{
    messages::publish,
    outcome::{overtaken, recorded},
    rule::{Next, RecordView, Settling},
    settle::{AGAIN, give_up},
};
use lambda_idempotency_core::{
    admission::{Admission, Overtaken, Settled, admit},
    outcome::{Completion, Outcome},
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind},
};

/// A completion was not inserted, because its guard did not hold.
pub(super) fn met(
    view: &mut RecordView<'_, '_>,
    mut settling: Box<Settling>,
    found: Option<IdempotencyRecord>,
) -> Next {
    let now = view.now;
    let settled = settling.held.settled(&settling.settlement, found.as_ref(), now);
    if matches!(settled, Settled::Done) {
        let completion = found.as_ref().and_then(Completion::of);
        return Next::End(recorded(settling.outcome.0, completion));
    }
    let mut unsent = None;
    let by = match admit(&settling.held.claim, found.as_ref(), now) {
        // What was in doubt may have been applied, and have been deleted since.
        Admission::Try { guard, held }
            if settling.again < AGAIN && !(settling.in_doubt && found.is_none()) =>
        {
            settling.held = Arc::new(held);
            settling.assumed = Some(Box::new(guard));
            settling.instead = None;
            settling.again += 1;
            return Next::Settle(settling);
        }
        Admission::Try { .. } | Admission::Won(_) => {
            let error = StoreError::new(
                StoreErrorKind::Contended,
                "the record comes and goes while its completion is being inserted",
            );
            return give_up(view, settling, error);
        }
        Admission::Replay(result) => Overtaken::Completed(result),
        Admission::Unsent(stored) => {
            let result = stored.record.result.clone();
            unsent = Some(Arc::new(stored));
            Overtaken::Completed(result)
        }
        // A next delivery need not look at the record before it runs, so this one gets the answer that a claim gets.
        Admission::PermanentlyFailed { error_type, failed_attempts, .. } => {
            return Next::End(Outcome::PermanentlyFailed { error_type, failed_attempts });
        }
        Admission::Mismatch => Overtaken::Mismatch,
        Admission::Busy { until } => Overtaken::InProgress { until },
        Admission::Foreign { application } => Overtaken::Foreign { application },
    };
    let outcome = match (&by, settling.outcome.0) {
        (Overtaken::Mismatch, Outcome::Executed { .. }) => Outcome::Mismatch,
        (Overtaken::InProgress { until }, Outcome::Executed { .. }) => {
            Outcome::Busy { until: *until }
        }
        (_, ours) => overtaken(by, found.as_ref().and_then(Completion::of), ours, |theirs| {
            view.foreign(theirs)
        }),
    };
    match unsent {
        // Whoever completed it may have died before it sent them, and this delivery is acknowledged.
        Some(stored) if matches!(outcome, Outcome::Superseded { .. }) => {
            publish(view, stored, outcome)
        }
        _ => Next::End(outcome),
    }
}
