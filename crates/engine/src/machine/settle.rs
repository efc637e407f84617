//! Begins to write what became of a claim: its settlement.
//!
//! In mutex mode a claim keeps other workers away, and is forgotten when its handler has ended, however that
//! was: its record is deleted. So each delivery calls the handler. A handler that was stopped has not ended: its
//! effect may be on its way, and the key stays held until the lease ends.

use std::sync::Arc;

use super::{
    calls::FIRST_CALL,
    carried::Carried,
    rule::{Next, Step},
    settlements::Settling,
};
use lambda_idempotency_core::{
    admission::{Held, Settlement},
    clock::Timestamp,
    effects::Effects,
    failure::Failure,
    outcome::{NotStarted, Outcome},
};

/// The handler failed, or one of its effects was refused.
pub(super) fn failed(step: &mut Step<'_, '_>, held: Arc<Held>, failure: Failure) -> Next {
    let failed_attempts = held.failed_attempts().saturating_add(1);
    let settlement = settlement_of(step, &failure, failed_attempts);
    let permanent = matches!(settlement, Settlement::FailPermanently { .. });
    settle(step, held, settlement, Outcome::Failed { failure, failed_attempts, permanent })
}

/// How a failure is recorded.
pub(super) fn settlement_of(
    step: &Step<'_, '_>,
    failure: &Failure,
    failed_attempts: u32,
) -> Settlement {
    let error = failure.error_type().into();
    // A mutex keeps no failure. It is permanent only if somebody takes care of the record at once.
    let is_kept = !step.is_mutex() || step.entry.ask().lets_pass;
    let is_permanent = is_kept && step.setting.policy.fails_permanently(failure, failed_attempts);
    if !is_permanent {
        return Settlement::Release { error_type: error };
    }
    let message = serde_json::Value::String(failure.message());
    Settlement::FailPermanently { result: Some(message.to_string().into()), error_type: error }
}

/// A record that was claimed, or needs no claim, does not run after all.
pub(super) fn not_started(step: &mut Step<'_, '_>, why: NotStarted) -> Next {
    let outcome = Outcome::Returned(why);
    match step.entry.held().cloned() {
        Some(held) => settle(step, held, Settlement::Undo, outcome),
        None => Next::End(outcome),
    }
}

/// Settles the claim of a record; then it has this outcome.
pub(super) fn settle(
    step: &mut Step<'_, '_>,
    held: Arc<Held>,
    settlement: Settlement,
    outcome: Outcome,
) -> Next {
    settle_with(step, held, settlement, None, outcome)
}

/// The same, with effects.
pub(super) fn settle_with(
    step: &mut Step<'_, '_>,
    held: Arc<Held>,
    settlement: Settlement,
    effects: Option<Effects>,
    outcome: Outcome,
) -> Next {
    let due = step.now;
    // Messages are marked as sent in a completion that is stored, so nothing is assumed then.
    let is_mark = matches!(settlement, Settlement::MarkSent);
    let assumed = step.entry.assumption().filter(|_| !is_mark);
    let assumed = assumed.cloned().map(Box::new);
    if assumed.is_some()
        && let Some(outcome) = unwritten(&held, &settlement, &outcome, due)
    {
        return Next::End(outcome);
    }
    let settlement = in_its_mode(step, settlement);
    // An optimistic commit records no give-up; reserve no time for it.
    let kept_for = effects.as_ref().filter(|_| assumed.is_none());
    let until = settle_until(step, &settlement, kept_for);
    // Effects that are not committed did not happen, so the next delivery may repeat the work.
    let insists = effects.is_none();
    let Some(key) = step.entry.key().cloned() else { return Next::End(outcome) };
    Next::Settle(Box::new(Settling {
        at: step.at,
        key,
        held,
        settlement,
        effects,
        assumed,
        instead: None,
        outcome: Carried(outcome),
        due,
        begun: due,
        since: due,
        until,
        tries: 0,
        again: 0,
        insists,
        in_doubt: false,
        committed: None,
    }))
}

/// Until when to try a settlement. If it has messages, half of the time is left for sending them. A mark only
/// saves sending them again, so the acknowledgement does not wait long for it.
fn settle_until(
    step: &Step<'_, '_>,
    settlement: &Settlement,
    effects: Option<&Effects>,
) -> Timestamp {
    let (budget, now) = (&step.budget, step.now);
    let until = match effects {
        Some(_) => budget.commit_deadline(now),
        None => budget.settle_deadline(now),
    };
    match settlement {
        Settlement::Complete { outbox: Some(_), .. }
        | Settlement::Commit { outbox: Some(_), .. } => now.plus(until.since(now) / 2),
        Settlement::MarkSent => until.min(now.plus(FIRST_CALL)),
        _ => until,
    }
}

/// What is written instead of this settlement, in the operation's mode.
fn in_its_mode(step: &Step<'_, '_>, settlement: Settlement) -> Settlement {
    match settlement {
        Settlement::Complete { .. }
        | Settlement::Commit { .. }
        | Settlement::FailPermanently { .. }
        | Settlement::Release { .. }
        | Settlement::Decline
            if step.is_mutex() =>
        {
            Settlement::Forget
        }
        settlement => settlement,
    }
}

/// The outcome of an attempt without a claim that writes nothing: it leaves no final record, or has failed permanently
/// after its time. The next attempt may be on its way then, and nothing would keep this one from making it fail.
fn unwritten(
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
