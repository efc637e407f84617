//! A record begins, and its claim is answered: it is ready, waits, or gets its outcome.

use std::{sync::Arc, time::Duration};

use super::{
    ask::Task,
    messages::publish,
    record::{Stage, Wait},
    rule::{Next, Step},
    settle::{failed, not_started},
    waiting::pause,
    wanted::Claimed,
};
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    record::Json,
    store::{StoreError, StoreErrorKind},
};

/// The record is the first of its key and its group: it is looked at, claimed or started, unless its outcome is
/// known, or needs none of them.
pub(super) fn begin(step: &mut Step<'_, '_>, looks: bool) -> Next {
    if let Some(known) = step.entry.take_preset() {
        return Next::End(known);
    }
    match (&step.entry.ask().task, step.closed) {
        (Task::Reject(rejection), _) => Next::End(Outcome::Rejected(rejection.0.clone())),
        (Task::Keyed | Task::Unprotected, Some(why)) => Next::End(Outcome::Returned(why)),
        (Task::Keyed, None) if looks => Next::To(Stage::ToLook),
        (Task::Keyed, None) => Next::To(Stage::ToClaim),
        (Task::Unprotected, None) => Next::To(Stage::Ready),
    }
}

/// Its look or its claim was answered.
pub(super) fn claimed(step: &mut Step<'_, '_>, claimed: Claimed) -> Next {
    match claimed {
        Claimed::Held(held) => {
            step.entry.granted(Arc::clone(&held));
            match step.closed {
                Some(why) => not_started(step, why),
                None if gives_up(step, &held) => {
                    let failure = Failure::lost(held.consecutive_losses());
                    failed(step, held, failure)
                }
                None => Next::To(Stage::Ready),
            }
        }
        Claimed::Assumed { held, guard } => {
            step.entry.assumed(held, guard);
            match step.closed {
                Some(why) => not_started(step, why),
                None => Next::To(Stage::Ready),
            }
        }
        Claimed::Replay(result, completion) => Next::End(replayed(step, result, completion)),
        Claimed::Unsent(stored) => {
            let (result, completion) =
                (stored.record.result.clone(), Completion::of(&stored.record));
            let outcome = replayed(step, result, completion);
            publish(step, stored, outcome)
        }
        Claimed::PermanentlyFailed { error_type, failed_attempts } => {
            Next::End(Outcome::PermanentlyFailed { error_type, failed_attempts })
        }
        Claimed::Mismatch => Next::End(Outcome::Mismatch),
        Claimed::Busy { until } => busy(step, until),
        Claimed::Foreign { application } => Next::End(Outcome::Foreign(step.foreign(application))),
        Claimed::Free { .. } | Claimed::Unseen | Claimed::Suspect { .. }
            if step.closed.is_some() =>
        {
            Next::End(Outcome::Returned(step.closed.unwrap_or(NotStarted::Deadline)))
        }
        Claimed::Free { seen } => {
            step.entry.found_free(seen);
            Next::To(Stage::ToClaim)
        }
        Claimed::Unseen => Next::To(Stage::Unseen),
        Claimed::Suspect { losses, seen } => {
            step.entry.suspected(losses, seen);
            Next::Suspect(losses)
        }
        Claimed::Unavailable(error) => {
            step.held_up = step.has_turn;
            if !runs_without(step, &error) {
                return Next::End(Outcome::Unavailable(error));
            }
            step.entry.runs_without_claim(Some(error));
            Next::To(Stage::Ready)
        }
    }
}

/// The answer from a completion: without its result, once that is not given any more.
fn replayed(step: &Step<'_, '_>, result: Option<Json>, completion: Option<Completion>) -> Outcome {
    let result = result.filter(|_| step.setting.policy.gives_result_of(completion, step.now));
    Outcome::Replayed { result, completion }
}

/// Whether the key has lost so many workers in a row that its handler is not called again. A mutex keeps no
/// failure.
fn gives_up(step: &Step<'_, '_>, held: &Held) -> bool {
    !step.is_mutex() && step.setting.policy.gives_up(held.consecutive_losses())
}

/// Whether the policy runs handlers unprotected during an outage.
fn runs_without(step: &Step<'_, '_>, error: &StoreError) -> bool {
    let outage = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled);
    outage && step.setting.policy.on_outage.runs_unprotected() && step.closed.is_none()
}

/// Its key is busy: it waits, if the policy and the time allow that.
fn busy(step: &mut Step<'_, '_>, until: Timestamp) -> Next {
    let now = step.now;
    let since = step.entry.met_busy(now);
    let pause = pause(step.entry.looks());
    step.entry.looked();
    let limit = step.setting.policy.on_conflict.waits_until(since, until);
    let past = until.plus(Duration::from_millis(1));
    let wake = now.plus(pause).min(past.max(now)).min(limit);
    let in_time = wake < step.budget.stop();
    if step.closed.is_some() || now >= limit || !in_time {
        return Next::End(Outcome::Busy { until });
    }
    Next::To(Stage::Waiting(Wait { wake, until, since: now }))
}

/// The response is due, and the claim has no answer.
pub(super) fn unanswered() -> Next {
    Next::End(Outcome::Unavailable(StoreError::new(
        StoreErrorKind::Unavailable,
        "no answer from the store before the invocation's deadline",
    )))
}
