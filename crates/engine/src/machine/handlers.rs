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
    rule::{Decision, DropReason, Effect, Next, RecordView, Written},
    settle::{failed, not_started, settle, settle_with},
};
use lambda_idempotency_core::{
    admission::{Finding, Settled, Settlement},
    effects::CollectError,
    outbox::PublishError,
    outcome::{Completion, NotStarted, Outcome},
    record::IdempotencyRecord,
    store::Verdict,
};

/// The handler has ended.
pub(super) fn ended(view: &RecordView<'_, '_>, ended: HandlerEnd) -> Next {
    match ended {
        HandlerEnd::Through(Ok((result, collected))) => returned(view, done(result), collected),
        HandlerEnd::Through(Err(failure)) => failed(view, view.record.held.clone(), failure),
        HandlerEnd::NotBegun(why) => not_started(view, why),
    }
}

/// The handler returned, and its call collected something: both are recorded, if there is a claim.
fn returned(view: &RecordView<'_, '_>, outcome: Outcome, collected: Collected) -> Next {
    let Collected { effects, outbox, retention } = collected;
    let result = outcome.result().cloned();
    let Some(held) = view.record.held.clone() else {
        // There is no completion to commit effects with, or to store messages with.
        let refused = match (effects, outbox) {
            (Some(_), _) => CollectError::NotTransactional.into(),
            (None, Some(_)) => PublishError::Unprotected.into(),
            (None, None) => {
                let outage = view.record.outage.as_ref().map(|error| error.0.clone());
                return Next::End(Outcome::Unprotected { result, outage });
            }
        };
        return failed(view, None, refused);
    };
    let held = Some(match retention {
        Some(asked) => Arc::new(held.retained_for(view.setting.policy.retention_for(asked))),
        None => held,
    });
    match (&outcome, effects) {
        (Outcome::Declined, _) => settle(view, held, Settlement::Decline, outcome),
        (_, None) => settle(view, held, Settlement::Complete { result, outbox }, outcome),
        (_, Some(effects)) => {
            let commit = Settlement::Commit { result, outbox };
            settle_with(view, held, commit, Some(effects), outcome)
        }
    }
}

/// The handler was dropped for this reason, which `ran` or was not called yet.
pub(super) fn dropped(view: &RecordView<'_, '_>, why: DropReason, ran: bool) -> Next {
    match why {
        DropReason::Lost(by, found) => lost(view, by, found, ran),
        DropReason::Deadline if ran => stopped(view),
        DropReason::Deadline => not_started(view, NotStarted::Deadline),
        // Another worker may have claimed the key. If none has, the record says that this worker stopped the handler: else its
        // next claim would take that for a loss, as if the process had died.
        DropReason::Lapsed if ran => {
            settle(view, view.record.held.clone(), Settlement::LeaveStanding, Outcome::Fenced)
        }
        DropReason::Lapsed => not_started(view, NotStarted::Lease),
    }
}

/// The time for handlers is over. The effect of a dropped handler may still happen, so its key is not released: it
/// stays held until the lease ends, and the record says that the process lived; or the key fails permanently.
fn stopped(view: &RecordView<'_, '_>) -> Next {
    // A timeout is permanent only where that is recorded.
    let (policy, held) = (view.setting.policy, view.record.held.clone());
    let keeps = policy.mode.keeps_completions() && held.is_some();
    let permanent = policy.on_timeout.fails_permanently() && keeps;
    let settlement = match permanent {
        true => Settlement::FailPermanently { result: None, error_type: "a timeout".into() },
        false => Settlement::LeaveStanding,
    };
    settle(view, held, settlement, Outcome::TimedOut { permanent })
}

/// A renewal was answered.
pub(super) fn renewed(
    view: &RecordView<'_, '_>,
    kept: KeptLease,
    Written { record, verdict, .. }: Written,
) -> Decision {
    let now = view.now;
    let (Some(record), Some(held)) = (record, &view.record.held) else { return Next::Stay.into() };
    let found = match verdict {
        Verdict::Written => return Next::Stay.with(Effect::Extended(Box::new(record))),
        Verdict::Found(found) => found,
        // It is tried again until the lease has ended; then the handler is stopped.
        Verdict::EffectRefused(_) => return Next::Stay.with(Effect::Renew(kept.later(now), None)),
        Verdict::Unknown(error) => {
            // If waiting does not help, steps that wait for the renewal are told so.
            let refused = (!error.is_transient()).then_some(Effect::StepsRefused(error));
            return Next::Stay.with(Effect::Renew(kept.later(now), None)).and(refused);
        }
    };
    let lease_until = record.lease_until.unwrap_or(now);
    match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
        Settled::Done => Next::Stay.with(Effect::Extended(Box::new(found.unwrap_or(record)))),
        Settled::Again { .. } => {
            Next::Stay.with(Effect::Renew(kept.at_once(now), found.map(Box::new)))
        }
        Settled::Overtaken(by) if view.record.stage == Stage::Running => {
            Next::Drop(DropReason::Lost(by, found.map(Box::new))).into()
        }
        Settled::Overtaken(by) => lost(view, by, found.map(Box::new), false).into(),
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
    match &view.record.held {
        Some(held) => overtaken_by(view, held, found, outcome),
        None => Next::End(outcome),
    }
}
