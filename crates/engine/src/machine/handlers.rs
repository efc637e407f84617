//! A handler has ended or is stopped, its lease is renewed or lost, or one of its steps has ended.
//!
//! A handler runs only while its worker knows that it has the lease. It is stopped when a renewal finds another owner, or when
//! no renewal succeeded in time. The result of a step is written with a renewal, and the handler goes on when the store has it.
//! The claim knows all steps that have ended, so that each write of it carries them: a release after a failure as well.

use std::sync::Arc;

use super::{
    io::{Collected, HandlerEnd},
    lease::KeptLease,
    messages::overtaken_by,
    outcome::{answer, done},
    record::Stage,
    rule::{Decision, DropReason, Effect, Next, RecordView},
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
    record::IdempotencyRecord,
    store::Verdict,
};

/// The handler has ended. `since` is when it was called, if it was.
pub(super) fn ended(
    view: &RecordView<'_, '_>,
    ended: HandlerEnd,
    since: Option<Timestamp>,
) -> Decision {
    let next = match ended {
        HandlerEnd::Through(result) => through(view, result, Collected::default()),
        HandlerEnd::Collected(returned, collected) => through(view, Ok(returned), collected),
        HandlerEnd::NotBegun(why) => return not_started(view, why).with(Effect::Ran(since)),
    };
    let took = since.map(|since| view.now.since(since)).unwrap_or_default();
    next.with(Effect::Ran(since)).and(Some(Effect::Took(took)))
}

fn through(
    view: &RecordView<'_, '_>,
    result: Result<Returned, Failure>,
    collected: Collected,
) -> Next {
    let Collected { effects, outbox, retention } = collected;
    let Some(held) = view.record.held().cloned() else {
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
fn through_unprotected(view: &RecordView<'_, '_>, result: Result<Returned, Failure>) -> Next {
    match result.map(done) {
        Ok(done) => {
            let result = done.result().cloned();
            Next::End(Outcome::Unprotected { result, outage: view.record.outage() })
        }
        Err(failure) => {
            let failed_attempts = 1;
            let settlement = settlement_of(view, &failure, failed_attempts);
            // Nothing records it, so without somebody who takes care of the record its next delivery calls the handler.
            let permanent = matches!(settlement, Settlement::FailPermanently { .. })
                && view.record.given().lets_pass;
            Next::End(Outcome::Failed { failure, failed_attempts, permanent })
        }
    }
}

/// The handler was dropped for this reason; `since` is when it was called, if it was.
pub(super) fn dropped(
    view: &RecordView<'_, '_>,
    why: DropReason,
    since: Option<Timestamp>,
) -> Decision {
    let next = match (why, since) {
        (DropReason::Lost(by, found), since) => lost(view, by, found, since.is_some()),
        (DropReason::Deadline, None) => not_started(view, NotStarted::Deadline),
        (DropReason::Lapsed, None) => not_started(view, NotStarted::Lease),
        (DropReason::Deadline, Some(_)) => stopped(view),
        (DropReason::Lapsed, Some(_)) => lapsed(view),
    };
    next.with(Effect::Ran(since))
}

/// The time for handlers is over. The effect of a dropped handler may still happen, so its key is not released: it
/// stays held until the lease ends, and the record says that the process lived; or the key fails permanently.
fn stopped(view: &RecordView<'_, '_>) -> Next {
    // A timeout is permanent only where that is recorded.
    let policy = view.setting.policy;
    let permanent = policy.on_timeout.fails_permanently() && policy.mode.keeps_completions();
    let Some(held) = view.record.held().cloned() else {
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
    view: &RecordView<'_, '_>,
    kept: KeptLease,
    record: Option<Box<IdempotencyRecord>>,
    verdict: Verdict,
) -> Decision {
    let now = view.now;
    let (Some(record), Some(held)) = (record, view.record.held()) else { return Next::Stay.into() };
    match verdict {
        Verdict::Written => Next::Stay.with(Effect::Extended(record)),
        Verdict::Found(found) => {
            let lease_until = record.lease_until.unwrap_or(now);
            match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
                Settled::Done => {
                    let stored = found.map_or(record, Box::new);
                    Next::Stay.with(Effect::Extended(stored))
                }
                Settled::Again { .. } => {
                    Next::Stay.with(Effect::RenewAgain(kept, found.map(Box::new)))
                }
                Settled::Overtaken(by) if view.record.stage() == Stage::Running => {
                    Next::Drop(DropReason::Lost(by, found.map(Box::new))).into()
                }
                Settled::Overtaken(by) => lost(view, by, found.map(Box::new), false).into(),
            }
        }
        // It is tried again until the lease has ended; then the handler is stopped.
        Verdict::EffectRefused(_) => Next::Stay.with(Effect::RenewLater(kept)),
        Verdict::Unknown(error) => {
            // If waiting does not help, steps that wait for the renewal are told so.
            let refused = (!error.is_transient()).then_some(Effect::StepsRefused(error));
            Next::Stay.with(Effect::RenewLater(kept)).and(refused)
        }
    }
}

/// The lease of a running handler was not renewed in time: it is stopped. Another worker may have claimed
/// the key. If none has, the record says that this worker stopped the handler: else its next claim
/// would take that for a loss, as if the process had died.
fn lapsed(view: &RecordView<'_, '_>) -> Next {
    match view.record.held().cloned() {
        Some(held) => settle(view, held, Settlement::LeaveStanding, Outcome::Fenced),
        None => Next::End(Outcome::Fenced),
    }
}

/// The lease is lost: a handler that ran was dropped, and another record does not start.
fn lost(
    view: &RecordView<'_, '_>,
    by: Finding,
    found: Option<Box<IdempotencyRecord>>,
    running: bool,
) -> Next {
    let found = found.map(|found| *found);
    let completion = found.as_ref().and_then(Completion::of);
    let outcome = match by {
        Finding::Completed(result) | Finding::Unsent(result) if running => {
            Outcome::Superseded { result, completion }
        }
        _ if running => Outcome::Fenced,
        Finding::Failed { .. } => Outcome::Returned(NotStarted::Lease),
        by => answer(view, by, completion),
    };
    match view.record.held().cloned() {
        Some(held) => overtaken_by(view, &held, found, outcome),
        None => Next::End(outcome),
    }
}
