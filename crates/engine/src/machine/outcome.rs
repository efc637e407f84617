//! Which outcome follows from a result, an error or a stored record.

use std::sync::Arc;

use super::rule::{RecordView, Settling};
use crate::delivery::Returned;
use lambda_idempotency_core::{
    admission::{Finding, Settlement},
    outcome::{Completion, Foreign, NotStarted, Outcome, ResultKept},
    store::{StoreError, StoreErrorKind},
};

/// The outcome of the copies of a record. `None` if the record was never started: its copies are then
/// processed separately.
pub(super) fn shared(outcome: &Outcome) -> Option<Outcome> {
    match outcome {
        Outcome::Executed { result, .. }
        | Outcome::CompletionLost { result, .. }
        | Outcome::Superseded { result, .. } => {
            let (result, completion) = (result.clone(), outcome.completion());
            Some(Outcome::Coalesced { result, completion })
        }
        Outcome::Returned(_) | Outcome::Rejected(_) | Outcome::Unprotected { .. } => None,
        other => Some(other.clone()),
    }
}

/// The outcome of a record whose handler returned, after the result is recorded.
pub(super) fn done(returned: Returned) -> Outcome {
    let (outcome, kept) = match returned {
        Returned::Value(value) => (Some(value), ResultKept::Whole),
        Returned::Nothing => (None, ResultKept::Whole),
        Returned::Unserializable => (None, ResultKept::Unserializable),
        Returned::Declined => return Outcome::Declined,
    };
    Outcome::Executed { result: outcome, kept, completion: None }
}

/// The same outcome, now that this is recorded of it.
pub(super) fn recorded(outcome: Outcome, completion: Option<Completion>) -> Outcome {
    match outcome {
        Outcome::Executed { result, kept, .. } => Outcome::Executed { result, kept, completion },
        outcome => outcome,
    }
}

/// The outcome of a record whose handler was not called, because this was found under its key. `completion` is what the record
/// says of its work.
pub(super) fn answer(
    view: &RecordView<'_, '_>,
    finding: Finding,
    completion: Option<Completion>,
) -> Outcome {
    match finding {
        Finding::Completed(result) | Finding::Unsent(result) => {
            Outcome::Replayed { result, completion }
        }
        Finding::Failed { error_type, failed_attempts, .. } => {
            Outcome::PermanentlyFailed { error_type, failed_attempts }
        }
        Finding::Mismatch => Outcome::Mismatch,
        Finding::Held { until } => Outcome::Busy { until },
        Finding::Foreign { application } => Outcome::Foreign(foreign(view, application)),
        Finding::Free | Finding::Mine => Outcome::Returned(NotStarted::Lease),
    }
}

/// Describes the other application that owns a key.
fn foreign(view: &RecordView<'_, '_>, theirs: Arc<str>) -> Foreign {
    Foreign::new(view.setting.operation, theirs, view.setting.application.clone())
}

/// The outcome of a record that would have had the outcome `ours`, if this was found instead of its claim.
pub(super) fn overtaken(
    view: &RecordView<'_, '_>,
    by: Finding,
    completion: Option<Completion>,
    ours: Outcome,
) -> Outcome {
    match (by, ours) {
        (_, ours @ Outcome::Returned(_)) => ours,
        (Finding::Completed(result) | Finding::Unsent(result), _) => {
            Outcome::Superseded { result, completion }
        }
        (Finding::Foreign { application }, _) => Outcome::Foreign(foreign(view, application)),
        (_, Outcome::Executed { .. }) => Outcome::Fenced,
        (Finding::Failed { .. }, ours) => ours,
        // A successor has the key and may succeed, so our failure is not permanent.
        (_, ours) => not_permanent(ours),
    }
}

/// The same outcome, where no record says that a failure or a timeout is permanent.
pub(super) fn not_permanent(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { failure, failed_attempts, .. } => {
            Outcome::Failed { failure, failed_attempts, permanent: false }
        }
        Outcome::TimedOut { .. } => Outcome::TimedOut { permanent: false },
        other => other,
    }
}

/// Leaves the result out of what is recorded, if this error says that the result cannot be stored, or may say so;
/// false if it says something else, or there is no result.
pub(super) fn shrink(settling: &mut Settling, error: &StoreError) -> bool {
    let reason = match error.kind() {
        StoreErrorKind::TooLarge => ResultKept::TooLarge,
        StoreErrorKind::ResultUnavailable => ResultKept::Unavailable,
        // Perhaps because of the result. The first refusal is tried again, since an error that passes is answered like that,
        // too; a commit is not. A commit that may have been applied with the result is not repeated without it.
        StoreErrorKind::Refused
            if !error.may_have_applied()
                && !settling.in_doubt
                && (settling.tries > 0 || settling.effects.is_some()) =>
        {
            ResultKept::Refused
        }
        _ => return false,
    };
    let (Settlement::Complete { result: outcome, .. }
    | Settlement::Commit { result: outcome, .. }
    | Settlement::FailPermanently { result: outcome, .. }) = &mut settling.settlement
    else {
        return false;
    };
    if outcome.take().is_none() {
        return false;
    }
    if let Some((_, record)) = settling.instead.as_deref_mut() {
        record.result = None;
    }
    if let Outcome::Executed { kept, .. } = &mut settling.outcome.0 {
        *kept = reason;
    }
    true
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::outbox::SendError;

    use super::*;

    /// Copies of a record that was never started run themselves.
    #[test]
    fn copies_are_answered_as_the_record_is_that_ran() {
        let is_acknowledged = |outcome| shared(&outcome).map(|shared| shared.is_acknowledged());
        let lost = || StoreError::new(StoreErrorKind::Unavailable, "no answer");
        assert_eq!(is_acknowledged(done(Returned::Nothing)), Some(true));
        assert_eq!(is_acknowledged(Outcome::Uncommitted { error: lost() }), Some(false));
        let error = SendError::new("no answer");
        assert_eq!(is_acknowledged(Outcome::Unsent { result: None, error }), Some(false));
        assert_eq!(is_acknowledged(Outcome::Unprotected { result: None, outage: None }), None);
        assert_eq!(is_acknowledged(Outcome::Returned(NotStarted::Order)), None);
    }
}
