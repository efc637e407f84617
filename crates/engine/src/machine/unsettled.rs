//! A settlement that the store did not apply, or of which that is not known.

use super::{
    carried::Carried,
    messages::{self, send, unsent},
    outcome::shrink,
    rule::{Next, Step},
    settle::settle,
    settlements::Settling,
};
use lambda_idempotency_core::{
    admission::Settlement,
    failure::Failure,
    outcome::Outcome,
    store::{StoreError, StoreErrorKind},
};

/// Tries it again, or ends it without.
pub(super) fn unsettled(
    step: &mut Step<'_, '_>,
    mut settling: Box<Settling>,
    error: StoreError,
) -> Next {
    settling.in_doubt |= settling.effects.is_some() && error.may_have_applied();
    let shrunk = shrink(&mut settling, &error);
    if shrunk || settling.is_retried(&error, step.now) {
        Next::Settle(settling)
    } else if settling.effects.is_some() && !settling.in_doubt && !error.is_transient() {
        refused(step, settling, error)
    } else if settling.effects.is_some() && !step.is_reply_due() {
        leave_uncommitted(step, settling, error)
    } else {
        give_up(step, settling, error)
    }
}

/// Ends a commit that has no answer in time. The idempotency record says that the process lives, so the
/// record is not quarantined; and a commit that is still on its way applies nothing after that.
fn leave_uncommitted(step: &mut Step<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    let until = step.budget.settle_deadline(step.now);
    let is_late = until <= step.now;
    if settling.assumed.is_some() || is_late {
        return give_up(step, settling, error);
    }
    let outcome = Outcome::Uncommitted { error: error.with_doubt(settling.in_doubt) };
    Next::Settle(Box::new(Settling {
        settlement: Settlement::LeaveStanding,
        effects: None,
        instead: None,
        outcome: Carried(outcome),
        due: step.now,
        since: step.now,
        until,
        tries: 0,
        again: 0,
        committed: Some(settling.outcome),
        ..*settling
    }))
}

/// The store refused a commit: nothing was applied, and it will not be. The key is free for the next
/// delivery. The failure is the store's, so it is not permanent, whatever the policies say of the
/// handler's.
fn refused(step: &mut Step<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    let held = settling.held;
    let failed_attempts = held.failed_attempts().saturating_add(1);
    let failure = Failure::from(error);
    let settlement = Settlement::Release { error_type: failure.error_type().into() };
    let outcome = Outcome::Failed { failure, failed_attempts, permanent: false };
    settle(step, held, settlement, outcome)
}

/// A settlement that cannot be recorded. The key stays held until the lease ends.
pub(super) fn give_up(step: &mut Step<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    // The outcome needs neither: messages that are not marked are sent again with the same ids, and the key of
    // what was to be forgotten is free when the lease ends.
    match settling.settlement {
        Settlement::MarkSent => {
            step.entry.set_unrecorded(Some(error));
            return Next::End(settling.outcome.0);
        }
        Settlement::Forget => return Next::End(settling.outcome.0),
        _ => {}
    }
    Next::End(match settling.outcome.0 {
        Outcome::Executed { .. } if settling.effects.is_some() => {
            let in_doubt = settling.in_doubt || error.may_have_applied();
            Outcome::Uncommitted { error: error.with_doubt(in_doubt) }
        }
        Outcome::Executed { .. } => return unrecorded(step, settling, error),
        Outcome::Failed { failure, failed_attempts, .. } => {
            Outcome::Failed { failure, failed_attempts, permanent: false }
        }
        Outcome::TimedOut { .. } => Outcome::TimedOut { permanent: false },
        other => other,
    })
}

/// The completion could not be recorded. The handler has done its work, so its messages are sent all the same:
/// if it runs again, they have the same ids.
fn unrecorded(step: &mut Step<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    let Settling { held, settlement, outcome, .. } = *settling;
    let outcome = Outcome::CompletionLost { result: outcome.0.result().cloned(), error };
    match held.write(&settlement, step.now).1 {
        Some(record) if record.outbox.is_some() => {
            if step.is_reply_due() {
                return unsent(&outcome, messages::too_late());
            }
            send(step, &record, None, outcome)
        }
        _ => Next::End(outcome),
    }
}

/// The response is due, and the settlement has no answer.
pub(super) fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "no answer from the store before the invocation's deadline",
    )
}
