//! A handler has ended or is stopped, its lease is renewed or lost, or one of its steps has ended.
//!
//! A handler runs only while its worker knows that it has the lease. It is stopped when a renewal finds another owner, or when
//! no renewal succeeded in time. The result of a step is written with a renewal, and the handler goes on when the store has it.
//! The claim knows all steps that have ended, so that each write of it carries them: a release after a failure as well.

use std::sync::Arc;

use super::{
    io::{Collected, Ended},
    lease::{Kept, Leases},
    messages::overtaken_by,
    outcome::done,
    record::Stage,
    rule::{Next, Step},
    settle::{failed, not_started, settle, settle_with, settlement_of},
};
use crate::delivery::Returned;
use lambda_idempotency_core::{
    admission::{Overtaken, Settled, Settlement},
    clock::Timestamp,
    effects::CollectError,
    failure::Failure,
    outbox::PublishError,
    outcome::{Completion, NotStarted, Outcome},
    record::{IdempotencyRecord, Json},
    store::{StoreError, Verdict},
};

/// The handler has ended. `since` is when it was called, if it was.
pub(super) fn ended(step: &mut Step<'_, '_>, ended: Ended, since: Option<Timestamp>) -> Next {
    step.entry.ended(since, step.now);
    match ended {
        Ended::Through(result) => through(step, result, Collected::default()),
        Ended::Collected(returned, collected) => through(step, Ok(returned), collected),
        Ended::NotBegun(why) => not_started(step, why),
    }
}

fn through(
    step: &mut Step<'_, '_>,
    result: Result<Returned, Failure>,
    collected: Collected,
) -> Next {
    let Collected { effects, outbox, retention } = collected;
    step.host.took(step.entry.ran_for().unwrap_or_default());
    let Some(held) = step.entry.held().cloned() else {
        // Without a claim there is no completion to commit the effects with, or to store messages with.
        let result = match (effects, outbox) {
            (Some(_), _) => Err(CollectError::NotTransactional.into()),
            (None, Some(_)) => Err(PublishError::Unprotected.into()),
            (None, None) => result,
        };
        return through_unprotected(step, result);
    };
    let outcome = match result {
        Ok(returned) => done(returned),
        Err(failure) => return failed(step, held, failure),
    };
    let held = match retention {
        Some(asked) => Arc::new(held.retained_for(step.setting.policy.retention_for(asked))),
        None => held,
    };
    let result = outcome.result().cloned();
    match (&outcome, effects) {
        (Outcome::Declined, _) => settle(step, held, Settlement::Decline, outcome),
        (_, None) => settle(step, held, Settlement::Complete { result, outbox }, outcome),
        (_, Some(effects)) => {
            let commit = Settlement::Commit { result, outbox };
            settle_with(step, held, commit, Some(effects), outcome)
        }
    }
}

/// It ran without a claim, so nothing is recorded; the rest is the same.
fn through_unprotected(step: &mut Step<'_, '_>, result: Result<Returned, Failure>) -> Next {
    match result.map(done) {
        Ok(done) => {
            let result = done.result().cloned();
            Next::End(Outcome::Unprotected { result, outage: step.entry.outage() })
        }
        Err(failure) => {
            let failed_attempts = 1;
            let settlement = settlement_of(step, &failure, failed_attempts);
            // Nothing records it, so without somebody who takes care of the record its next delivery calls the handler.
            let permanent = matches!(settlement, Settlement::FailPermanently { .. })
                && step.entry.ask().lets_pass;
            Next::End(Outcome::Failed { failure, failed_attempts, permanent })
        }
    }
}

/// The handler is dropped. Its effect may still happen, so its key is not released: it stays held
/// until the lease ends, and the record says that the process lived; or the key fails permanently.
pub(super) fn stopped(step: &mut Step<'_, '_>) -> Next {
    let since = step.host.stop(step.at);
    step.entry.ended(since, step.now);
    if since.is_none() {
        return not_started(step, NotStarted::Deadline);
    }
    // A timeout is permanent only where that is recorded.
    let policy = step.setting.policy;
    let permanent = policy.on_timeout.fails_permanently() && policy.mode.keeps_completions();
    let Some(held) = step.entry.held().cloned() else {
        return Next::End(Outcome::TimedOut { permanent: false });
    };
    let settlement = match permanent {
        true => Settlement::FailPermanently { result: None, error_type: "a timeout".into() },
        false => Settlement::LeaveStanding,
    };
    settle(step, held, settlement, Outcome::TimedOut { permanent })
}

/// A renewal was answered, which wrote this record.
pub(super) fn renewed(
    step: &mut Step<'_, '_>,
    leases: &mut Leases,
    kept: Kept,
    record: Option<IdempotencyRecord>,
    verdict: Verdict,
) -> Next {
    let now = step.now;
    let (Some(record), Some(held)) = (record, step.entry.held()) else { return Next::Stay };
    match verdict {
        Verdict::Written => extended(step, leases, &record),
        Verdict::Found(found) => {
            let lease_until = record.lease_until.unwrap_or(now);
            match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
                Settled::Done => extended(step, leases, found.as_ref().unwrap_or(&record)),
                Settled::Again { .. } => {
                    if let Some(found) = &found {
                        step.entry.renewed(found);
                    }
                    leases.again(kept, now);
                }
                Settled::Overtaken(by) => return lose(step, by, found),
            }
        }
        // It is tried again until the lease has ended; then the handler is stopped.
        Verdict::EffectRefused(_) => leases.unanswered(kept, now),
        Verdict::Unknown(error) => {
            renewal_refused(step, &error);
            leases.unanswered(kept, now);
        }
    }
    Next::Stay
}

fn extended(step: &mut Step<'_, '_>, leases: &mut Leases, record: &IdempotencyRecord) {
    if let Some(lease_until) = record.lease_until {
        step.host.renewed(step.at, lease_until);
    }
    step.entry.renewed(record);
    if let Some(held) = step.entry.held() {
        leases.keep(step.at, held);
    }
    steps_stored(step, leases, record);
}

/// The lease of a running handler was not renewed in time: it is stopped. Another worker may have claimed
/// the key. If none has, the record says that this worker stopped the handler: else its next claim
/// would take that for a loss, as if the process had died.
pub(super) fn lapsed(step: &mut Step<'_, '_>) -> Next {
    let since = step.host.stop(step.at);
    step.entry.ended(since, step.now);
    if since.is_none() {
        return not_started(step, NotStarted::Lease);
    }
    match step.entry.held().cloned() {
        Some(held) => settle(step, held, Settlement::LeaveStanding, Outcome::Fenced),
        None => Next::End(Outcome::Fenced),
    }
}

/// The lease is lost: a running handler is dropped, and a waiting record does not start.
fn lose(step: &mut Step<'_, '_>, by: Overtaken, found: Option<IdempotencyRecord>) -> Next {
    let was_started = step.entry.stage() == Stage::Running;
    let since = if was_started { step.host.stop(step.at) } else { None };
    step.entry.ended(since, step.now);
    let running = since.is_some();
    let completion = found.as_ref().and_then(Completion::of);
    let outcome = match by {
        Overtaken::Completed(result) if running => Outcome::Superseded { result, completion },
        Overtaken::Completed(result) => Outcome::Replayed { result, completion },
        _ if running => Outcome::Fenced,
        Overtaken::Foreign { application } => Outcome::Foreign(step.foreign(application)),
        Overtaken::Mismatch => Outcome::Mismatch,
        Overtaken::InProgress { until } => Outcome::Busy { until },
        Overtaken::PermanentlyFailed { .. } | Overtaken::Gone => {
            Outcome::Returned(NotStarted::Lease)
        }
    };
    match step.entry.held().cloned() {
        Some(held) => overtaken_by(step, &held, found, outcome),
        None => Next::End(outcome),
    }
}

/// Steps of a running handler have ended; `steps` is the text of all that ended in any attempt.
pub(super) fn step_ended(step: &mut Step<'_, '_>, leases: &mut Leases, steps: Json) -> Next {
    step.entry.set_steps(steps);
    if let Some(held) = step.entry.held() {
        leases.write_steps(step.at, held, step.now);
    }
    Next::Stay
}

/// The store has this record: steps that are in it will be known to every later attempt.
fn steps_stored(step: &mut Step<'_, '_>, leases: &mut Leases, record: &IdempotencyRecord) {
    if let Some(steps) = &record.steps {
        step.host.steps_stored(step.at, steps);
    }
    if let Some(held) = step.entry.held().filter(|held| held.record.steps != record.steps) {
        leases.write_steps(step.at, held, step.now);
    }
}

/// A renewal was refused. If waiting does not help, steps that wait for it are told so.
fn renewal_refused(step: &mut Step<'_, '_>, error: &StoreError) {
    if !error.is_transient() {
        step.host.steps_refused(step.at, error);
    }
}
