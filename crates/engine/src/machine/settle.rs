//! Writes what became of a claim: its settlement.
//!
//! In mutex mode a claim keeps other workers away, and is forgotten when its handler has ended, however that
//! was: its record is deleted. So each delivery calls the handler. A handler that was stopped has not ended: its
//! effect may be on its way, and the key stays held until the lease ends.
//!
//! In optimistic mode a handler runs as if its key were free. Its completion is inserted together with its
//! effects, under the guard that nothing has changed since: no record, or the expired one that was read.
//! So of concurrent attempts for a key one is committed. The others find its record, apply nothing, and are
//! answered from it. Attempts that fail or are stopped write nothing.
//!
//! Settlements that are due share one call of the store. The next call waits for the one before, unless that takes long.

use std::{sync::Arc, time::Duration};

use super::{
    calls::{CallId, Calls, FIRST_CALL, PATIENCE, ends, pause},
    io::{Action, Carried},
    messages::{self, overtaken_by, publish, send, unsent},
    outcome::{answer, not_permanent, overtaken, recorded, shrink},
    rule::{Next, RecordView, Settling, Written},
};
use lambda_idempotency_core::{
    admission::{Finding, Held, Settled, Settlement, admit},
    clock::Timestamp,
    effects::{Effects, RefusalReason},
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind, Verdict, Write},
};

/// The pause after an answer that a retry may not change, such as refused permissions. A failed refresh of
/// credentials gets the same answer, and a retry may succeed.
const REFUSED_PAUSE: Duration = Duration::from_secs(2);
/// How long a refusal is retried: it may be a failed refresh of credentials.
const REFUSED_PATIENCE: Duration = Duration::from_secs(30);
/// How often a completion whose record is gone is written anew.
const AGAIN: u32 = 3;

/// The handler failed, or one of its effects was refused.
pub(super) fn failed(view: &RecordView<'_, '_>, held: Option<Arc<Held>>, failure: Failure) -> Next {
    let failed_attempts = held.as_ref().map_or(0, |held| held.failed_attempts()).saturating_add(1);
    // A mutex keeps no failure, and without a claim nothing does: it is permanent only if somebody takes care of the
    // record at once.
    let is_kept = (held.is_some() && !view.is_mutex()) || view.record.given.lets_pass;
    let permanent = is_kept && view.setting.policy.fails_permanently(&failure, failed_attempts);
    let error_type = failure.error_type().into();
    let settlement = match permanent {
        true => {
            let message = serde_json::Value::String(failure.message());
            Settlement::FailPermanently { result: Some(message.to_string().into()), error_type }
        }
        false => Settlement::Release { error_type },
    };
    settle(view, held, settlement, Outcome::Failed { failure, failed_attempts, permanent })
}

/// A record that was claimed, or needs no claim, does not run after all.
pub(super) fn not_started(view: &RecordView<'_, '_>, why: NotStarted) -> Next {
    settle(view, view.record.held.clone(), Settlement::Undo, Outcome::Returned(why))
}

/// Settles the claim of a record, if it has one; then it has this outcome.
pub(super) fn settle(
    view: &RecordView<'_, '_>,
    held: Option<Arc<Held>>,
    settlement: Settlement,
    outcome: Outcome,
) -> Next {
    settle_with(view, held, settlement, None, outcome)
}

/// The same, with effects.
pub(super) fn settle_with(
    view: &RecordView<'_, '_>,
    held: Option<Arc<Held>>,
    settlement: Settlement,
    effects: Option<Effects>,
    outcome: Outcome,
) -> Next {
    let (Some(held), Some(key)) = (held, view.record.key().cloned()) else {
        return Next::End(outcome);
    };
    let due = view.now;
    // Messages are marked as sent in a completion that is stored, so nothing is assumed then.
    let is_mark = matches!(settlement, Settlement::MarkSent);
    let assumed = view.record.assumed.clone().filter(|_| !is_mark);
    if assumed.is_some()
        && let Some(outcome) = unwritten(&held, &settlement, &outcome, due)
    {
        return Next::End(outcome);
    }
    let settlement = in_its_mode(view, settlement);
    // An optimistic commit records no give-up; reserve no time for it.
    let kept_for = effects.as_ref().filter(|_| assumed.is_none());
    let until = settle_until(view, &settlement, kept_for);
    // Effects that are not committed did not happen, so the next delivery may repeat the work.
    let insists = effects.is_none();
    Next::Settle(Box::new(Settling {
        at: view.at,
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
    view: &RecordView<'_, '_>,
    settlement: &Settlement,
    effects: Option<&Effects>,
) -> Timestamp {
    let (budget, now) = (&view.budget, view.now);
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

/// The settlement that is written instead of this one, in the operation's mode.
fn in_its_mode(view: &RecordView<'_, '_>, settlement: Settlement) -> Settlement {
    match settlement {
        Settlement::Complete { .. }
        | Settlement::Commit { .. }
        | Settlement::FailPermanently { .. }
        | Settlement::Release { .. }
        | Settlement::Decline
            if view.is_mutex() =>
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
    let fails = matches!(settlement, Settlement::FailPermanently { .. });
    (fails && is_late).then(|| not_permanent(outcome.clone()))
}

/// A settlement was answered.
pub(super) fn answered(
    view: &RecordView<'_, '_>,
    mut settling: Box<Settling>,
    Written { record, verdict, .. }: Written,
) -> Next {
    let found = match verdict {
        Verdict::Written => return in_store(view, settling, record),
        // The next call has more time for it.
        Verdict::EffectRefused(refused)
            if refused.reason() == RefusalReason::TooSlow
                && settling.is_retried(&refused.clone().into(), view.now) =>
        {
            return Next::Settle(settling);
        }
        // Without a claim, nothing keeps an earlier request without an answer from being applied yet.
        Verdict::EffectRefused(refused) if settling.assumed.is_some() && settling.in_doubt => {
            return give_up(view, settling, refused.into());
        }
        Verdict::EffectRefused(refused) if settling.effects.is_some() => {
            return failed(view, Some(settling.held), Failure::refused(refused));
        }
        Verdict::EffectRefused(refused) => return unsettled(view, settling, refused.into()),
        Verdict::Unknown(error) => return unsettled(view, settling, error),
        Verdict::Found(found) if settling.assumed.is_some() => return met(view, settling, found),
        Verdict::Found(found) => found,
    };
    match settling.held.settled(&settling.settlement, found.as_ref(), view.now) {
        Settled::Done => in_store(view, settling, found),
        // The commit had no answer, and was applied.
        Settled::Overtaken(Finding::Completed(_) | Finding::Unsent(_))
            if settling.is_committed(found.as_ref()) =>
        {
            settling.outcome = settling.committed.take().unwrap_or(settling.outcome);
            in_store(view, settling, found)
        }
        Settled::Overtaken(by) => {
            let completion = found.as_ref().and_then(Completion::of);
            let outcome = overtaken(view, by, completion, settling.outcome.0);
            overtaken_by(view, &settling.held, found, outcome)
        }
        Settled::Again { .. } if settling.again >= AGAIN => {
            let error = StoreError::new(
                StoreErrorKind::Contended,
                "the record comes and goes while it is being completed",
            );
            give_up(view, settling, error)
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

/// A completion was not inserted, because its guard did not hold.
fn met(
    view: &RecordView<'_, '_>,
    mut settling: Box<Settling>,
    found: Option<IdempotencyRecord>,
) -> Next {
    let now = view.now;
    let settled = settling.held.settled(&settling.settlement, found.as_ref(), now);
    if matches!(settled, Settled::Done) {
        return in_store(view, settling, found);
    }
    let finding = admit(&settling.held.claim, found.as_ref(), now);
    match (finding, settling.outcome.0) {
        // A commit in doubt may have been applied, and its record have been deleted since.
        (Finding::Free, outcome)
            if settling.again < AGAIN && !(settling.in_doubt && found.is_none()) =>
        {
            let (guard, held) = settling.held.claim.over(found.as_ref(), now);
            settling.outcome = Carried(outcome);
            settling.held = Arc::new(held);
            settling.assumed = Some(Box::new(guard));
            settling.instead = None;
            settling.again += 1;
            Next::Settle(settling)
        }
        (Finding::Free | Finding::Mine, outcome) => {
            settling.outcome = Carried(outcome);
            let error = StoreError::new(
                StoreErrorKind::Contended,
                "the record comes and goes while its completion is being inserted",
            );
            give_up(view, settling, error)
        }
        // A next delivery need not look at the record before it runs, so this one gets the answer that a claim gets.
        (finding @ Finding::Failed { .. }, _)
        | (finding @ (Finding::Mismatch | Finding::Held { .. }), Outcome::Executed { .. }) => {
            Next::End(answer(view, finding, None))
        }
        (finding, ours) => {
            let completion = found.as_ref().and_then(Completion::of);
            let outcome = overtaken(view, finding, completion, ours);
            // The worker that completed it may have died before it sent its messages, and this delivery is acknowledged.
            overtaken_by(view, &settling.held, found, outcome)
        }
    }
}

/// A settlement is recorded, and `record` is stored now. If that has messages, they are sent; otherwise the
/// record has its outcome.
fn in_store(
    view: &RecordView<'_, '_>,
    settling: Box<Settling>,
    record: Option<IdempotencyRecord>,
) -> Next {
    if matches!(settling.settlement, Settlement::MarkSent) {
        // The completion was reported when it was written; the mark adds nothing to report.
        return Next::End(settling.settled());
    }
    let completion = record.as_ref().and_then(Completion::of);
    match record.filter(|record| record.outbox.is_some()) {
        Some(record) => {
            let stored = Arc::new(settling.held.with_record(record));
            publish(view, stored, recorded(settling.settled(), completion))
        }
        None => Next::End(recorded(settling.settled(), completion)),
    }
}

/// The record that the store holds after a write, if the answer says so.
pub(super) fn stored(written: &Written) -> Option<&IdempotencyRecord> {
    match (&written.verdict, &written.record) {
        (Verdict::Written, ours) => ours.as_ref(),
        // A store may leave out the result of other work, which answers nobody here.
        (Verdict::Found(Some(found)), Some(ours)) => {
            let is_ours =
                found.fingerprint == ours.fingerprint && found.application == ours.application;
            Some(found).filter(|_| is_ours)
        }
        (Verdict::Found(_), _) => None,
        // Its claim stands, as before.
        (Verdict::EffectRefused(_), _) => None,
        // The write may have been applied or not: other invocations must not answer from it.
        (Verdict::Unknown(_), _) => None,
    }
}

/// Tries it again, or ends it without.
fn unsettled(view: &RecordView<'_, '_>, mut settling: Box<Settling>, error: StoreError) -> Next {
    settling.in_doubt |= settling.effects.is_some() && error.may_have_applied();
    let shrunk = shrink(&mut settling, &error);
    if shrunk || settling.is_retried(&error, view.now) {
        Next::Settle(settling)
    } else if settling.effects.is_some() && !settling.in_doubt && !error.is_transient() {
        refused(view, settling, error)
    } else if settling.effects.is_some() && !view.budget.is_reply_due(view.now) {
        leave_uncommitted(view, settling, error)
    } else {
        give_up(view, settling, error)
    }
}

/// Ends a commit that has no answer in time. The idempotency record says that the process lives, so the
/// record is not quarantined; and a commit that is still on its way applies nothing after that.
fn leave_uncommitted(
    view: &RecordView<'_, '_>,
    settling: Box<Settling>,
    error: StoreError,
) -> Next {
    let until = view.budget.settle_deadline(view.now);
    let is_late = until <= view.now;
    if settling.assumed.is_some() || is_late {
        return give_up(view, settling, error);
    }
    let outcome = Outcome::Uncommitted { error: error.with_doubt(settling.in_doubt) };
    Next::Settle(Box::new(Settling {
        settlement: Settlement::LeaveStanding,
        effects: None,
        instead: None,
        outcome: Carried(outcome),
        due: view.now,
        since: view.now,
        until,
        tries: 0,
        again: 0,
        committed: Some(settling.outcome),
        ..*settling
    }))
}

/// The store refused a commit: nothing was applied, and it will not be. The key is free for the next
/// delivery. The failure is the store's, so it is not permanent, whatever the policies say of the
/// handler's.
fn refused(view: &RecordView<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    let held = settling.held;
    let failed_attempts = held.failed_attempts().saturating_add(1);
    let failure = Failure::from(error);
    let settlement = Settlement::Release { error_type: failure.error_type().into() };
    let outcome = Outcome::Failed { failure, failed_attempts, permanent: false };
    settle(view, Some(held), settlement, outcome)
}

/// A settlement that cannot be recorded. The key stays held until the lease ends.
fn give_up(view: &RecordView<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    // The outcome needs neither: messages that are not marked are sent again with the same ids, and the key of
    // what was to be forgotten is free when the lease ends.
    match settling.settlement {
        Settlement::MarkSent => return Next::EndUnmarked(settling.outcome.0, error),
        Settlement::Forget => return Next::End(settling.outcome.0),
        _ => {}
    }
    Next::End(match settling.outcome.0 {
        Outcome::Executed { .. } if settling.effects.is_some() => {
            let in_doubt = settling.in_doubt || error.may_have_applied();
            Outcome::Uncommitted { error: error.with_doubt(in_doubt) }
        }
        Outcome::Executed { .. } => return unrecorded(view, settling, error),
        outcome => not_permanent(outcome),
    })
}

/// The completion could not be recorded. The handler has done its work, so its messages are sent all the same:
/// if it runs again, they have the same ids.
fn unrecorded(view: &RecordView<'_, '_>, settling: Box<Settling>, error: StoreError) -> Next {
    let Settling { held, settlement, outcome, .. } = *settling;
    let outcome = Outcome::CompletionLost { result: outcome.0.result().cloned(), error };
    match held.write(&settlement, view.now).1 {
        Some(record) if record.outbox.is_some() => {
            if view.budget.is_reply_due(view.now) {
                return unsent(&outcome, messages::too_late());
            }
            send(view, &record, None, outcome)
        }
        _ => Next::End(outcome),
    }
}

impl Settling {
    fn write(&mut self, now: Timestamp) -> Write {
        let (guard, record) = match self.instead.as_deref().cloned() {
            Some((guard, record)) => (guard, Some(record)),
            None => {
                let (guard, record) = self.held.write(&self.settlement, now);
                (self.assumed.as_deref().cloned().unwrap_or(guard), record)
            }
        };
        // A store recognises a transaction that is sent again if it is the same each time.
        if self.effects.is_some()
            && self.instead.is_none()
            && let Some(record) = &record
        {
            self.instead = Some(Box::new((guard.clone(), record.clone())));
        }
        Write::new(self.key.clone(), guard, record).with_effects(self.effects.clone())
    }

    /// Whether it takes so long that nothing else of its process waits for it any more. Its handler has
    /// ended, so it cannot kill the process.
    fn is_slow(&self, now: Timestamp) -> bool {
        now >= self.slow_from() || now < self.begun
    }

    /// The outcome, now that the settlement is recorded. A commit that was given up before can be applied no
    /// more.
    pub(super) fn settled(self) -> Outcome {
        match self.outcome.0 {
            Outcome::Uncommitted { error } => {
                Outcome::Uncommitted { error: error.with_doubt(false) }
            }
            outcome => outcome,
        }
    }

    /// Whether `found` says that its commit was applied after all.
    pub(super) fn is_committed(&self, found: Option<&IdempotencyRecord>) -> bool {
        let owner = Some(self.held.claim.owner);
        self.committed.is_some() && found.is_some_and(|found| found.owner == owner)
    }

    fn slow_from(&self) -> Timestamp {
        self.begun.plus(PATIENCE)
    }

    /// When it is to be written. A clock that has stepped back must not make the pause longer.
    fn due(&self, now: Timestamp) -> Timestamp {
        if now < self.since { now } else { self.due }
    }

    /// Schedules its next try after this error. Returns whether there is one.
    pub(super) fn is_retried(&mut self, error: &StoreError, now: Timestamp) -> bool {
        let pause = if error.is_transient() { pause(self.tries) } else { REFUSED_PAUSE };
        (self.since, self.due) = (now, now.plus(pause));
        self.tries += 1;
        // Waiting changes neither the record's size nor the record under its key.
        let hopeless = matches!(error.kind(), StoreErrorKind::TooLarge | StoreErrorKind::Corrupt);
        let retried = error.is_transient() || (self.insists && !hopeless);
        let patience = self.begun.plus(REFUSED_PATIENCE);
        let until = if error.is_transient() { self.until } else { self.until.min(patience) };
        retried && self.due < until
    }
}

/// Settlements that wait, and those that were sent.
pub(super) type Settlements = Calls<Box<Settling>>;

impl Settlements {
    /// When the next call is to go.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let first = self.waiting.iter().map(|settling| settling.due(now)).min();
        first.map(|due| self.next(due, now))
    }

    /// The records whose settlement is slow: nothing waits for them any more.
    pub(super) fn slow(&self, now: Timestamp) -> impl Iterator<Item = usize> {
        self.all().filter(move |settling| settling.is_slow(now)).map(|settling| settling.at)
    }

    /// Whether all settlements are slow.
    pub(super) fn are_slow(&self, now: Timestamp) -> bool {
        self.all().all(|settling| settling.is_slow(now))
    }

    /// When the next one becomes slow.
    pub(super) fn next_slow(&self, now: Timestamp) -> Option<Timestamp> {
        let others = self.all().filter(|settling| !settling.is_slow(now));
        others.map(|settling| settling.slow_from()).min()
    }

    /// Whether one has been due since before `now`, and could be sent.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.next_due(now).is_some_and(|due| due < now)
    }

    /// Takes all settlements that are due: the writes, and the call deadline. It waits for an earlier call
    /// that may be answered soon, unless they must leave now.
    pub(super) fn send(
        &mut self,
        call: CallId,
        must_flush: bool,
        now: Timestamp,
    ) -> Option<Action> {
        if self.waiting.is_empty() || (!must_flush && self.next(now, now) > now) {
            return None;
        }
        let mut members = self.take(|settling| settling.due(now) <= now);
        let until = members.iter().map(|settling| settling.until).min()?;
        let tries = members.iter().map(|settling| settling.tries).max().unwrap_or_default();
        let deadline = until.min(ends(now, FIRST_CALL, tries));
        let writes = members.iter_mut().map(|settling| settling.write(now)).collect();
        self.add(call, members, now, deadline, PATIENCE);
        Some(Action::Write { call, writes, deadline })
    }
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
