//! A handler has ended or is stopped, its lease is renewed or lost, or one of its steps has ended.
//!
//! A handler runs only while its worker knows that it has the lease. It is stopped when a renewal finds another owner, or when
//! no renewal succeeded in time. The result of a step is written with a renewal, and the handler goes on when the store has it.
//! The claim knows all steps that have ended, so that each write of it carries them: a release after a failure as well.

use std::sync::Arc;

use super::{
    io::{Collected, HandlerEnd},
    lease::{KeptLease, Leases},
    messages::overtaken_by,
    outcome::{answer, done},
    record::Stage,
    rule::{Next, RecordView},
    settle::{failed, not_started, settle, settle_with, settlement_of},
};
use crate::delivery::Returned;
use lambda_idempotency_core::{
    admission::{Finding, Settled, Settlement},
    clock::Timestamp,
    effects::CollectError,
    failure::Failure,
    outbox::PublishError,
    outcome::{Completion, NotStarted, Outcome},
    record::{IdempotencyRecord, Json},
    store::{StoreError, Verdict},
};

/// The handler has ended. `since` is when it was called, if it was.
pub(super) fn ended(
    view: &mut RecordView<'_, '_>,
    ended: HandlerEnd,
    since: Option<Timestamp>,
) -> Next {
    view.entry.ended(since, view.now);
    match ended {
        HandlerEnd::Through(result) => through(view, result, Collected::default()),
        HandlerEnd::Collected(returned, collected) => through(view, Ok(returned), collected),
        HandlerEnd::NotBegun(why) => not_started(view, why),
    }
}

fn through(
    view: &mut RecordView<'_, '_>,
    result: Result<Returned, Failure>,
    collected: Collected,
) -> Next {
    let Collected { effects, outbox, retention } = collected;
    view.host.took(view.entry.ran_for().unwrap_or_default());
    let Some(held) = view.entry.held().cloned() else {
        // Without a claim there is no completion to commit the effects with, or to store messages with.
        let result = match (effects, outbox) {
            (Some(_), _) => Err(CollectError::NotTransactional.into()),
            (None, Some(_)) => Err(PublishError::Unprotected.into()),
            (None, None) => result,
        };
        return through_unprotected(view, result);
    };
    let outcome = match result {
        Ok(returned) => done(returned),
        Err(failure) => return failed(view, held, failure),
    };
    let held = match retention {
        Some(asked) => Arc::new(held.retained_for(view.setting.policy.retention_for(asked))),
        None => held,
    };
    let result = outcome.result().cloned();
    match (&outcome, effects) {
        (Outcome::Declined, _) => settle(view, held, Settlement::Decline, outcome),
        (_, None) => settle(view, held, Settlement::Complete { result, outbox }, outcome),
        (_, Some(effects)) => {
            let commit = Settlement::Commit { result, outbox };
            settle_with(view, held, commit, Some(effects), outcome)
        }
    }
}

/// It ran without a claim, so nothing is recorded; the rest is the same.
fn through_unprotected(view: &mut RecordView<'_, '_>, result: Result<Returned, Failure>) -> Next {
    match result.map(done) {
        Ok(done) => {
            let result = done.result().cloned();
            Next::End(Outcome::Unprotected { result, outage: view.entry.outage() })
        }
        Err(failure) => {
            let failed_attempts = 1;
            let settlement = settlement_of(view, &failure, failed_attempts);
            // Nothing records it, so without somebody who takes care of the record its next delivery calls the handler.
            let permanent = matches!(settlement, Settlement::FailPermanently { .. })
                && view.entry.given().lets_pass;
            Next::End(Outcome::Failed { failure, failed_attempts, permanent })
        }
    }
}

/// The handler is dropped. Its effect may still happen, so its key is not released: it stays held
/// until the lease ends, and the record says that the process lived; or the key fails permanently.
pub(super) fn stopped(view: &mut RecordView<'_, '_>) -> Next {
    let since = view.host.stop(view.at);
    view.entry.ended(since, view.now);
    if since.is_none() {
        return not_started(view, NotStarted::Deadline);
    }
    // A timeout is permanent only where that is recorded.
    let policy = view.setting.policy;
    let permanent = policy.on_timeout.fails_permanently() && policy.mode.keeps_completions();
    let Some(held) = view.entry.held().cloned() else {
        return Next::End(Outcome::TimedOut { permanent: false });
    };
    let settlement = match permanent {
        true => Settlement::FailPermanently { result: None, error_type: "a timeout".into() },
        false => Settlement::LeaveStanding,
    };
    settle(view, held, settlement, Outcome::TimedOut { permanent })
}

/// A renewal was answered, which wrote this record.
pub(super) fn renewed(
    view: &mut RecordView<'_, '_>,
    leases: &mut Leases,
    kept: KeptLease,
    record: Option<IdempotencyRecord>,
    verdict: Verdict,
) -> Next {
    let now = view.now;
    let (Some(record), Some(held)) = (record, view.entry.held()) else { return Next::Stay };
    match verdict {
        Verdict::Written => extended(view, leases, &record),
        Verdict::Found(found) => {
            let lease_until = record.lease_until.unwrap_or(now);
            match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
                Settled::Done => extended(view, leases, found.as_ref().unwrap_or(&record)),
                Settled::Again { .. } => {
                    if let Some(found) = &found {
                        view.entry.renewed(found);
                    }
                    leases.again(kept, now);
                }
                Settled::Overtaken(by) => return lose(view, by, found),
            }
        }
        // It is tried again until the lease has ended; then the handler is stopped.
        Verdict::EffectRefused(_) => leases.unanswered(kept, now),
        Verdict::Unknown(error) => {
            renewal_refused(view, &error);
            leases.unanswered(kept, now);
        }
    }
    Next::Stay
}

fn extended(view: &mut RecordView<'_, '_>, leases: &mut Leases, record: &IdempotencyRecord) {
    if let Some(lease_until) = record.lease_until {
        view.host.renewed(view.at, lease_until);
    }
    view.entry.renewed(record);
    if let Some(held) = view.entry.held() {
        leases.keep(view.at, held);
    }
    steps_stored(view, leases, record);
}

/// The lease of a running handler was not renewed in time: it is stopped. Another worker may have claimed
/// the key. If none has, the record says that this worker stopped the handler: else its next claim
/// would take that for a loss, as if the process had died.
pub(super) fn lapsed(view: &mut RecordView<'_, '_>) -> Next {
    let since = view.host.stop(view.at);
    view.entry.ended(since, view.now);
    if since.is_none() {
        return not_started(view, NotStarted::Lease);
    }
    match view.entry.held().cloned() {
        Some(held) => settle(view, held, Settlement::LeaveStanding, Outcome::Fenced),
        None => Next::End(Outcome::Fenced),
    }
}

/// The lease is lost: a running handler is dropped, and a waiting record does not start.
fn lose(view: &mut RecordView<'_, '_>, by: Finding, found: Option<IdempotencyRecord>) -> Next {
    let was_started = view.entry.stage() == Stage::Running;
    let since = if was_started { view.host.stop(view.at) } else { None };
    view.entry.ended(since, view.now);
    let running = since.is_some();
    let completion = found.as_ref().and_then(Completion::of);
    let outcome = match by {
        Finding::Completed(result) | Finding::Unsent(result) if running => {
            Outcome::Superseded { result, completion }
        }
        _ if running => Outcome::Fenced,
        Finding::Failed { .. } => Outcome::Returned(NotStarted::Lease),
        by => answer(by, completion, |theirs| view.foreign(theirs)),
    };
    match view.entry.held().cloned() {
        Some(held) => overtaken_by(view, &held, found, outcome),
        None => Next::End(outcome),
    }
}

/// Steps of a running handler have ended; `steps` is the text of all that ended in any attempt.
pub(super) fn step_ended(view: &mut RecordView<'_, '_>, leases: &mut Leases, steps: Json) -> Next {
    view.entry.set_steps(steps);
    if let Some(held) = view.entry.held() {
        leases.write_steps(view.at, held, view.now);
    }
    Next::Stay
}

/// The store has this record: steps that are in it will be known to every later attempt.
fn steps_stored(view: &mut RecordView<'_, '_>, leases: &mut Leases, record: &IdempotencyRecord) {
    if let Some(steps) = &record.steps {
        view.host.steps_stored(view.at, steps);
    }
    if let Some(held) = view.entry.held().filter(|held| held.record.steps != record.steps) {
        leases.write_steps(view.at, held, view.now);
    }
}

/// A renewal was refused. If waiting does not help, steps that wait for it are told so.
fn renewal_refused(view: &mut RecordView<'_, '_>, error: &StoreError) {
    if !error.is_transient() {
        view.host.steps_refused(view.at, error);
    }
}
