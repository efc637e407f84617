//! Completions of keys that were not claimed.
//!
//! In optimistic mode a handler runs as if its key were free. Its completion is inserted together with its
//! effects, under the guard that nothing has changed since: no record, or the expired one that was read.
//! So of concurrent attempts for a key one is committed. The others find its record, apply nothing, and are
//! answered from it. Attempts that fail or are stopped write nothing.

use std::sync::Arc;

use super::{
    io::Carried,
    messages::overtaken_by,
    outcome::{answer, overtaken, recorded},
    rule::{Next, RecordView, Settling},
    settle::{AGAIN, give_up},
};
use lambda_idempotency_core::{
    admission::{Finding, Settled, admit},
    outcome::{Completion, Outcome},
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind},
};

/// A completion was not inserted, because its guard did not hold.
pub(super) fn met(
    view: &RecordView<'_, '_>,
    mut settling: Box<Settling>,
    found: Option<IdempotencyRecord>,
) -> Next {
    let now = view.now;
    let settled = settling.held.settled(&settling.settlement, found.as_ref(), now);
    if matches!(settled, Settled::Done) {
        let completion = found.as_ref().and_then(Completion::of);
        return Next::End(recorded(settling.outcome.0, completion));
    }
    let finding = admit(&settling.held.claim, found.as_ref(), now);
    match (finding, settling.outcome.0) {
        // A commit in doubt may have been applied, and its record have been deleted since.
        (Finding::Free, outcome)
            if settling.again < AGAIN && !(settling.in_doubt && found.is_none()) =>
        {
            let (guard, held) = settling.held.claim.over(found.as_ref(), now);
            settling.outcome = Carried(outcome);
            settling.held = Arc::new(held);
            settling.assumed = Some(Box::new(guard));
            settling.instead = None;
            settling.again += 1;
            Next::Settle(settling)
        }
        (Finding::Free | Finding::Mine, outcome) => {
            settling.outcome = Carried(outcome);
            let error = StoreError::new(
                StoreErrorKind::Contended,
                "the record comes and goes while its completion is being inserted",
            );
            give_up(view, settling, error)
        }
        // A next delivery need not look at the record before it runs, so this one gets the answer that a claim gets.
        (finding @ Finding::Failed { .. }, _)
        | (finding @ (Finding::Mismatch | Finding::Held { .. }), Outcome::Executed { .. }) => {
            Next::End(answer(view, finding, None))
        }
        (finding, ours) => {
            let completion = found.as_ref().and_then(Completion::of);
            let outcome = overtaken(view, finding, completion, ours);
            // The worker that completed it may have died before it sent its messages, and this delivery is acknowledged.
            overtaken_by(view, &settling.held, found, outcome)
        }
    }
}
