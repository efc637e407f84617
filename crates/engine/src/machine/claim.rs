//! A record has its turn to be claimed, and its claim is answered: it is ready, waits, or gets its outcome.
//!
//! As far as this process knows the answer, the store is not asked. The completed keys are what this invocation shares with
//! others of its process.

use std::{sync::Arc, time::Duration};

use super::{
    calls::PATIENCE,
    claims::{Begins, Claimed, WantedKey},
    messages::publish,
    outcome::answer,
    record::{Handling, Stage, Wait},
    rule::{ClaimToken, Decision, Effect, Next, RecordView},
    schedule::pause,
    settle::{failed, undo},
};
use lambda_idempotency_core::{
    admission::{Finding, Held},
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    record::{EntropyError, IdempotencyRecord, Owner},
    store::{StoreError, StoreErrorKind},
};

/// The record is the first of its key and its group: it is looked at, claimed or started, unless its outcome needs none of
/// them.
pub(super) fn begin(view: &RecordView<'_, '_>, looks: bool) -> Next {
    match &view.record.given().handling {
        Handling::Reject(rejection) => Next::End(Outcome::Rejected(rejection.0.clone())),
        _ if view.is_closed => Next::End(Outcome::Returned(NotStarted::Deadline)),
        Handling::Keyed if looks => Next::To(Stage::ToLook),
        Handling::Keyed => Next::To(Stage::ToClaim),
        Handling::Unprotected => Next::To(Stage::Ready),
    }
}

/// Its look or its claim was answered.
pub(super) fn claimed(view: &RecordView<'_, '_>, claimed: Claimed) -> Decision {
    let next = match claimed {
        Claimed::Held(held) => {
            let next = if view.is_closed {
                undo(view, Some(Arc::clone(&held)), NotStarted::Deadline)
            } else if gives_up(view, &held) {
                failed(view, Arc::clone(&held), Failure::lost(held.consecutive_losses()))
            } else {
                Next::To(Stage::Ready)
            };
            return next.with(Effect::Granted(held, None));
        }
        Claimed::Assumed { held, guard } => {
            let next = match view.is_closed {
                // Nothing was written.
                true => Next::End(Outcome::Returned(NotStarted::Deadline)),
                false => Next::To(Stage::Ready),
            };
            return next.with(Effect::Granted(held, Some(guard)));
        }
        Claimed::Unsent(stored) => {
            let (result, completion) =
                (stored.record.result.clone(), Completion::of(&stored.record));
            publish(view, stored, Outcome::Replayed { result, completion })
        }
        Claimed::Found(Finding::Held { until }, _) => {
            return busy(view, until).with(Effect::MetBusy);
        }
        Claimed::Found(finding, completion) => Next::End(answer(view, finding, completion)),
        Claimed::Free { .. } | Claimed::Unseen | Claimed::Suspect { .. } if view.is_closed => {
            Next::End(Outcome::Returned(NotStarted::Deadline))
        }
        Claimed::Free { seen } => {
            return Next::To(Stage::ToClaim).with(Effect::Looked { losses: 0, seen });
        }
        Claimed::Unseen => Next::To(Stage::Unseen),
        Claimed::Suspect { losses, seen } => {
            return Next::To(Stage::Suspected).with(Effect::Looked { losses, seen });
        }
        Claimed::Unavailable(error) => {
            let held_up = view.has_turn.then_some(Effect::HeldUp);
            return match runs_without(view, &error) {
                true => Next::To(Stage::Ready).with(Effect::Outage(error)).and(held_up),
                false => Decision::from(Next::End(Outcome::Unavailable(error))).and(held_up),
            };
        }
    };
    next.into()
}

/// Whether the key has lost so many workers in a row that its handler is not called again. A mutex keeps no
/// failure.
fn gives_up(view: &RecordView<'_, '_>, held: &Held) -> bool {
    !view.is_mutex() && view.setting.policy.gives_up(held.consecutive_losses())
}

/// Whether the policy runs handlers unprotected during an outage.
fn runs_without(view: &RecordView<'_, '_>, error: &StoreError) -> bool {
    let outage = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled);
    outage && view.setting.policy.on_outage.runs_unprotected() && !view.is_closed
}

/// Its key is busy: it waits, if the policy and the time allow that.
fn busy(view: &RecordView<'_, '_>, until: Timestamp) -> Next {
    let now = view.now;
    let since = view.record.busy_since().unwrap_or(now);
    let pause = pause(view.record.looks());
    let limit = view.setting.policy.on_conflict.waits_until(since, until);
    let past = until.plus(Duration::from_millis(1));
    let wake = now.plus(pause).min(past.max(now)).min(limit);
    let in_time = wake < view.budget.stop();
    if view.is_closed || now >= limit || !in_time {
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

/// The answer to the claim of a record whose completion this process remembers; `None` if the store is to be asked.
pub(super) fn known(view: &RecordView<'_, '_>, record: &IdempotencyRecord) -> Option<Claimed> {
    let claim = view.claim_by(Owner::from_bits(0), None);
    let claimed = Claimed::of(&claim, Some(record), view.now);
    claimed.filter(|claimed| match claimed {
        Claimed::Held(_) => false,
        // A cached mismatch would divert the record. If its idempotency record was deleted since, it is to be processed, so
        // the store is asked.
        Claimed::Found(Finding::Mismatch, _) => !view.record.given().lets_pass,
        _ => true,
    })
}

/// The claim has no token.
pub(super) fn without_token(error: &EntropyError) -> Claimed {
    Claimed::Unavailable(StoreError::new(StoreErrorKind::Unavailable, error.to_string()))
}

/// Asks the store for the key, with this token: for a look, or for a claim.
pub(super) fn ask(view: &RecordView<'_, '_>, token: ClaimToken, looks: bool) -> Next {
    let ClaimToken { owner, provenance, pace, seen } = token;
    let Some(key) = view.record.key().cloned() else {
        return Next::End(Outcome::Returned(NotStarted::Deadline));
    };
    let begins = if looks { Begins::Look } else { Begins::Write(seen) };
    let now = view.now;
    let losses = if view.has_turn { view.record.losses() } else { 0 };
    // A claim is useless if its lease has ended when it is granted.
    let lease_until = view.terms.lease_until(now);
    let mut until = view.budget.claim_deadline(now).min(lease_until);
    let mut last = until;
    if !view.setting.is_redelivered {
        // A record that has waited for a busy key is looked up later, too: it may get a result.
        last = view.budget.claim_deadline(now);
        last = last.max(view.budget.last_claim(now, pace));
    }
    if view.setting.claims_to_the_end() {
        until = last;
    }
    if view.has_turn && view.is_beside_others {
        // All others wait for it.
        let soon = now.plus(PATIENCE);
        (until, last) = (until.min(soon), last.min(soon));
    }
    let is_optimistic = !view.setting.policy.mode.claims();
    let claim = view.claim_by(owner, provenance);
    Next::Claim(WantedKey { at: view.at, key, claim, begins, losses, until, last, is_optimistic })
}
