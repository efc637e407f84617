//! A record has its turn to be claimed, and its claim is answered: it is ready, waits, or gets its outcome.
//!
//! As far as this process knows the answer, the store is not asked. The completed keys are what this invocation shares with
//! others of its process.

use std::{sync::Arc, time::Duration};

use super::{
    calls::PATIENCE,
    claims::{Begins, Claimed, Wanted},
    messages::publish,
    record::{Stage, Task, Wait},
    rule::{Next, Step},
    schedule::pause,
    settle::{failed, not_started},
};
use lambda_idempotency_core::{
    admission::{Held, admit},
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    record::{IdempotencyRecord, Json, Owner},
    store::{StoreError, StoreErrorKind},
};
use lambda_idempotency_keys::Key;

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

/// Asks for the key of a record, in what the process remembers and then in the store.
pub(super) fn turn(step: &mut Step<'_, '_>, looks: bool) -> Next {
    let Some(key) = step.entry.key().cloned() else {
        return Next::End(Outcome::Returned(NotStarted::Deadline));
    };
    let known = step.host.known(&key, step.now).and_then(|record| judge(step, &record));
    // A cached mismatch would divert the record. If its idempotency record was deleted since,
    // it is to be processed, so the store is asked.
    let lets_pass = step.entry.ask().lets_pass;
    match known {
        Some(known) if !(lets_pass && matches!(known, Claimed::Mismatch)) => claimed(step, known),
        _ => ask(step, key, looks),
    }
}

/// Asks the store for the key.
fn ask(step: &mut Step<'_, '_>, key: Key, looks: bool) -> Next {
    let now = step.now;
    let owner = match step.host.owner() {
        Ok(owner) => owner,
        Err(error) => {
            let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
            return claimed(step, Claimed::Unavailable(error));
        }
    };
    let provenance = step.host.provenance(step.at, now);
    let begins = if looks { Begins::Look } else { Begins::Write(step.entry.take_seen()) };
    let losses = if step.has_turn { step.entry.losses() } else { 0 };
    // A claim is useless if its lease has ended when it is granted.
    let lease_until = step.terms.lease_until(now);
    let mut until = step.budget.claim_deadline(now).min(lease_until);
    let mut last = until;
    if !step.setting.is_redelivered {
        // A record that has waited for a busy key is looked up later, too: it may get a result.
        last = step.budget.claim_deadline(now);
        last = last.max(step.budget.last_claim(now, step.host.pace()));
    }
    if step.setting.claims_to_the_end() {
        until = last;
    }
    if step.has_turn && step.is_beside_others {
        // All others wait for it.
        let soon = now.plus(PATIENCE);
        (until, last) = (until.min(soon), last.min(soon));
    }
    let is_optimistic = !step.setting.policy.mode.claims();
    let claim = step.claim_by(owner, provenance);
    Next::Claim(Wanted { at: step.at, key, claim, begins, losses, until, last, is_optimistic })
}

/// The answer to a claim that finds this record; `None` if the claim has to be sent.
fn judge(step: &Step<'_, '_>, record: &IdempotencyRecord) -> Option<Claimed> {
    let claim = step.claim_by(Owner::from_bits(0), None);
    match Claimed::of(admit(&claim, Some(record), step.now), Some(record)) {
        Ok(Claimed::Held(_)) | Err(_) => None,
        Ok(claimed) => Some(claimed),
    }
}
