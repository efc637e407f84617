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
    rule::{Next, RecordView},
    schedule::pause,
    settle::{failed, not_started},
};
use lambda_idempotency_core::{
    admission::{Finding, Held},
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    record::{IdempotencyRecord, Json, Owner},
    store::{StoreError, StoreErrorKind},
};
use lambda_idempotency_keys::Key;

/// The record is the first of its key and its group: it is looked at, claimed or started, unless its outcome is
/// known, or needs none of them.
pub(super) fn begin(view: &mut RecordView<'_, '_>, looks: bool) -> Next {
    if let Some(known) = view.entry.take_preset() {
        return Next::End(known);
    }
    match &view.entry.given().handling {
        Handling::Reject(rejection) => Next::End(Outcome::Rejected(rejection.0.clone())),
        _ if view.is_closed => Next::End(Outcome::Returned(NotStarted::Deadline)),
        Handling::Keyed if looks => Next::To(Stage::ToLook),
        Handling::Keyed => Next::To(Stage::ToClaim),
        Handling::Unprotected => Next::To(Stage::Ready),
    }
}

/// Its look or its claim was answered.
pub(super) fn claimed(view: &mut RecordView<'_, '_>, claimed: Claimed) -> Next {
    match claimed {
        Claimed::Held(held) => {
            view.entry.granted(Arc::clone(&held));
            if view.is_closed {
                return not_started(view, NotStarted::Deadline);
            }
            if gives_up(view, &held) {
                let failure = Failure::lost(held.consecutive_losses());
                return failed(view, held, failure);
            }
            Next::To(Stage::Ready)
        }
        Claimed::Assumed { held, guard } => {
            view.entry.assumed(held, guard);
            match view.is_closed {
                true => not_started(view, NotStarted::Deadline),
                false => Next::To(Stage::Ready),
            }
        }
        Claimed::Unsent(stored) => {
            let (result, completion) =
                (stored.record.result.clone(), Completion::of(&stored.record));
            let outcome = replayed(view, result, completion);
            publish(view, stored, outcome)
        }
        Claimed::Found(Finding::Held { until }, _) => busy(view, until),
        Claimed::Found(Finding::Completed(result), completion) => {
            Next::End(replayed(view, result, completion))
        }
        Claimed::Found(finding, completion) => {
            Next::End(answer(finding, completion, |theirs| view.foreign(theirs)))
        }
        Claimed::Free { .. } | Claimed::Unseen | Claimed::Suspect { .. } if view.is_closed => {
            Next::End(Outcome::Returned(NotStarted::Deadline))
        }
        Claimed::Free { seen } => {
            view.entry.found_free(seen);
            Next::To(Stage::ToClaim)
        }
        Claimed::Unseen => Next::To(Stage::Unseen),
        Claimed::Suspect { losses, seen } => {
            view.entry.suspected(losses, seen);
            Next::Suspect(losses)
        }
        Claimed::Unavailable(error) => {
            view.held_up = view.has_turn;
            if !runs_without(view, &error) {
                return Next::End(Outcome::Unavailable(error));
            }
            view.entry.runs_without_claim(Some(error));
            Next::To(Stage::Ready)
        }
    }
}

/// The answer from a completion: without its result, once that is not given any more.
fn replayed(
    view: &RecordView<'_, '_>,
    result: Option<Json>,
    completion: Option<Completion>,
) -> Outcome {
    let result = result.filter(|_| view.setting.policy.gives_result_of(completion, view.now));
    Outcome::Replayed { result, completion }
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
fn busy(view: &mut RecordView<'_, '_>, until: Timestamp) -> Next {
    let now = view.now;
    let since = view.entry.met_busy(now);
    let pause = pause(view.entry.looks());
    view.entry.looked();
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

/// Asks for the key of a record, in what the process remembers and then in the store.
pub(super) fn turn(view: &mut RecordView<'_, '_>, looks: bool) -> Next {
    let Some(key) = view.entry.key().cloned() else {
        return Next::End(Outcome::Returned(NotStarted::Deadline));
    };
    let known = view.host.known(&key, view.now).and_then(|record| judge(view, &record));
    // A cached mismatch would divert the record. If its idempotency record was deleted since,
    // it is to be processed, so the store is asked.
    let lets_pass = view.entry.given().lets_pass;
    match known {
        Some(known) if !(lets_pass && matches!(known, Claimed::Found(Finding::Mismatch, _))) => {
            claimed(view, known)
        }
        _ => ask(view, key, looks),
    }
}

/// Asks the store for the key.
fn ask(view: &mut RecordView<'_, '_>, key: Key, looks: bool) -> Next {
    let now = view.now;
    let owner = match view.host.owner() {
        Ok(owner) => owner,
        Err(error) => {
            let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
            return claimed(view, Claimed::Unavailable(error));
        }
    };
    let provenance = view.host.provenance(view.at, now);
    let begins = if looks { Begins::Look } else { Begins::Write(view.entry.take_seen()) };
    let losses = if view.has_turn { view.entry.losses() } else { 0 };
    // A claim is useless if its lease has ended when it is granted.
    let lease_until = view.terms.lease_until(now);
    let mut until = view.budget.claim_deadline(now).min(lease_until);
    let mut last = until;
    if !view.setting.is_redelivered {
        // A record that has waited for a busy key is looked up later, too: it may get a result.
        last = view.budget.claim_deadline(now);
        last = last.max(view.budget.last_claim(now, view.host.pace()));
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

/// The answer to a claim that finds this record; `None` if the claim has to be sent.
fn judge(view: &RecordView<'_, '_>, record: &IdempotencyRecord) -> Option<Claimed> {
    let claim = view.claim_by(Owner::from_bits(0), None);
    let claimed = Claimed::of(&claim, Some(record), view.now);
    claimed.filter(|claimed| !matches!(claimed, Claimed::Held(_)))
}
