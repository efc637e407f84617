//! A handler has ended, or is stopped with the time for handlers.

use std::sync::Arc;

use super::{
    Collected, Ended,
    outcome::done,
    rule::{Next, Step},
    settle::{failed, not_started, settle, settle_with, settlement_of},
};
use crate::delivery::Returned;
use lambda_idempotency_core::{
    admission::Settlement,
    clock::Timestamp,
    effects::CollectError,
    failure::Failure,
    outbox::PublishError,
    outcome::{NotStarted, Outcome},
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
