//! A settlement was answered: the record has its outcome, or its messages are sent first, or another worker has taken
//! its key over.

use super::{
    messages::{overtaken_by, publish},
    optimistic::met,
    outcome::{overtaken, recorded},
    rule::{Next, Step},
    settle::failed,
    settlements::{AGAIN, Settling, Written},
    unsettled::{give_up, unsettled},
};
use lambda_idempotency_core::{
    admission::{Overtaken, Settled, Settlement},
    effects::RefusalReason,
    failure::Failure,
    outcome::Completion,
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind, Verdict, Write},
};
use std::sync::Arc;

/// A settlement was answered.
pub(super) fn answered(
    step: &mut Step<'_, '_>,
    mut settling: Box<Settling>,
    written: Written,
    verdict: Verdict,
) -> Next {
    let Written { unsent, completion } = written;
    let found = match verdict {
        Verdict::Written => return in_store(step, settling, unsent, completion),
        // The next call has more time for it.
        Verdict::EffectRefused(refused)
            if refused.reason() == RefusalReason::TooSlow
                && settling.is_retried(&refused.clone().into(), step.now) =>
        {
            return Next::Settle(settling);
        }
        // Without a claim, nothing keeps an earlier request without an answer from being applied yet.
        Verdict::EffectRefused(refused) if settling.assumed.is_some() && settling.in_doubt => {
            return give_up(step, settling, refused.into());
        }
        Verdict::EffectRefused(refused) if settling.effects.is_some() => {
            return failed(step, settling.held, Failure::refused(refused));
        }
        Verdict::EffectRefused(refused) => return unsettled(step, settling, refused.into()),
        Verdict::Unknown(error) => return unsettled(step, settling, error),
        Verdict::Found(found) if settling.assumed.is_some() => return met(step, settling, found),
        Verdict::Found(found) => found,
    };
    let completion = found.as_ref().and_then(Completion::of);
    match settling.held.settled(&settling.settlement, found.as_ref(), step.now) {
        Settled::Done => in_store(step, settling, found.map(Box::new), completion),
        // The commit had no answer, and was applied.
        Settled::Overtaken(Overtaken::Completed(_)) if settling.is_committed(found.as_ref()) => {
            settling.outcome = settling.committed.take().unwrap_or(settling.outcome);
            in_store(step, settling, found.map(Box::new), completion)
        }
        Settled::Overtaken(by) => {
            let ours = settling.outcome.0;
            let outcome = overtaken(by, completion, ours, |theirs| step.foreign(theirs));
            overtaken_by(step, &settling.held, found, outcome)
        }
        Settled::Again { .. } if settling.again >= AGAIN => {
            let error = StoreError::new(
                StoreErrorKind::Contended,
                "the record comes and goes while it is being completed",
            );
            give_up(step, settling, error)
        }
        Settled::Again { guard, record } => {
            // A commit is the same write each time.
            if settling.effects.is_none() {
                settling.instead = Some(Box::new((guard, record)));
            }
            settling.again += 1;
            Next::Settle(settling)
        }
    }
}

/// A settlement is recorded, and `record` is stored now. If that has messages, they are sent; otherwise the
/// record has its outcome.
fn in_store(
    step: &mut Step<'_, '_>,
    settling: Box<Settling>,
    record: Option<Box<IdempotencyRecord>>,
    completion: Option<Completion>,
) -> Next {
    let is_mark = matches!(settling.settlement, Settlement::MarkSent);
    match record.filter(|record| record.outbox.is_some() && !is_mark) {
        Some(record) => {
            let stored = Arc::new(settling.held.with_record(*record));
            publish(step, stored, recorded(settling.settled(), completion))
        }
        // It was said when the completion was recorded.
        None if is_mark => Next::End(settling.settled()),
        None => Next::End(recorded(settling.settled(), completion)),
    }
}

/// The record that the store holds after a write, if the verdict says so.
pub(super) fn stored(write: Write, verdict: &Verdict) -> Option<IdempotencyRecord> {
    match verdict {
        Verdict::Written => write.record,
        Verdict::Found(found) => found.clone(),
        // Its claim stands, as before.
        Verdict::EffectRefused(_) => None,
        // The write may have been applied or not: other invocations must not answer from it.
        Verdict::Unknown(_) => None,
    }
}
