//! A record has its turn to be looked at or claimed, and the store answers: it is ready, waits, or gets its outcome.
//!
//! As far as this process knows the answer, the store is not asked. The completed keys are what this invocation shares with
//! others of its process.
//!
//! A claim is one conditional write. If a record is probably stored, its key is read first, and the claim
//! is a separate, later write. New claims share one call. It ends early, so that one slow key does not
//! delay the others; the slow ones are sent again separately, with the same token, while there is time for
//! claiming. The only record of a batch delays no other, so its call has all of that time: where a store makes
//! calls wait, it would lose its turn. A claim that may have been applied and was never answered is undone before its
//! record is returned, so that the next delivery need not wait for the end of an unused lease.

use std::{
    mem::{Discriminant, discriminant},
    sync::Arc,
    time::Duration,
};

use super::{
    calls::{CallId, Calls, PATIENCE, pause},
    io::{Action, Carried, unanswered},
    messages::publish,
    outcome::answer,
    record::{Handling, Stage, Wait},
    rule::{ClaimStep, ClaimToken, Claiming, Decision, Effect, Next, RecordView, Written},
    settle::{failed, settle},
};
use lambda_idempotency_core::{
    admission::{Claim, Finding, Held, Settlement, admit},
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    record::{IdempotencyRecord, Owner},
    store::{Guard, StoreError, StoreErrorKind, Verdict, Write},
};

/// How often a record may change under a claimant before it gives up.
const ROUNDS: u8 = 3;
/// How long the first call of a claim may take, at most.
const FIRST_CLAIM_CALL: Duration = Duration::from_secs(1);

/// The record is the first of its key and its group: it is looked at, claimed or started, unless its outcome needs none of
/// them.
pub(super) fn begin(view: &RecordView<'_, '_>, looks: bool) -> Next {
    match &view.record.given.handling {
        Handling::Reject(rejection) => Next::End(Outcome::Rejected(rejection.0.clone())),
        _ if view.is_closed => Next::End(Outcome::Returned(NotStarted::Deadline)),
        Handling::Keyed if looks => Next::To(Stage::ToLook),
        Handling::Keyed => Next::To(Stage::ToClaim),
        Handling::Unprotected => Next::To(Stage::Ready),
    }
}

/// The outcome of a record whose completion this process remembers; `None` if the store is to be asked.
pub(super) fn known(view: &RecordView<'_, '_>, record: &IdempotencyRecord) -> Option<Outcome> {
    let claim = view.claim_by(Owner::from_bits(0), None);
    match admit(&claim, Some(record), view.now) {
        Finding::Free | Finding::Mine | Finding::Unsent(_) => None,
        // A cached mismatch would divert the record. If its idempotency record was deleted since, it is to be processed, so
        // the store is asked.
        Finding::Mismatch if view.record.given.lets_pass => None,
        finding => Some(answer(view, finding, Completion::of(record))),
    }
}

/// Asks the store for the key, with this token: for a look, or for a claim.
pub(super) fn ask(view: &RecordView<'_, '_>, token: ClaimToken) -> Decision {
    let ClaimToken { owner, provenance, pace, seen } = token;
    let Some(key) = view.record.key().cloned() else {
        return Next::End(Outcome::Returned(NotStarted::Deadline)).into();
    };
    let now = view.now;
    // A claim is useless if its lease has ended when it is granted.
    let lease_until = view.terms.lease_until(now);
    let mut until = view.budget.claim_deadline(now).min(lease_until);
    let mut last = until;
    if !view.setting.is_redelivered {
        // A record that has waited for a busy key is looked up later, too: it may get a result.
        last = view.budget.claim_deadline(now).max(view.budget.last_claim(now, pace));
        // Claiming goes on for as long as a handler could start, unless the record can run without a claim.
        if !view.setting.policy.on_outage.runs_unprotected() {
            until = last;
        }
    }
    if view.has_turn && view.is_beside_others {
        // All others wait for it.
        let soon = now.plus(PATIENCE);
        (until, last) = (until.min(soon), last.min(soon));
    }
    let looks = view.record.stage == Stage::ToLook;
    let claiming = Claiming {
        at: view.at,
        key,
        claim: view.claim_by(owner, provenance),
        step: if looks { ClaimStep::Look } else { ClaimStep::Write(None) },
        losses: if view.has_turn { view.record.losses } else { 0 },
        until,
        last,
        rounds: 0,
        is_slow: false,
        doubt: None,
    };
    match looks {
        true => Next::Claim(claiming).into(),
        false if admit(&claiming.claim, seen.as_deref(), now) == Finding::Free => {
            free(view, claiming, seen)
        }
        false => found(view, claiming, seen.map(|seen| *seen)),
    }
}

/// Its look was answered.
pub(super) fn looked(
    view: &RecordView<'_, '_>,
    claiming: Claiming,
    answer: Result<Option<IdempotencyRecord>, StoreError>,
) -> Decision {
    match answer {
        Ok(seen) => found(view, claiming, seen),
        Err(_) if view.is_closed => Next::End(Outcome::Returned(NotStarted::Deadline)).into(),
        // A read may fail although writes succeed. Without a look, the write of the claim finds out what is stored.
        Err(_) => Next::To(Stage::Unseen).into(),
    }
}

/// Its claim was answered, or the write that undoes it.
pub(super) fn claimed(
    view: &RecordView<'_, '_>,
    mut claiming: Claiming,
    written: Written,
) -> Decision {
    let Written { record, verdict, cut_short } = written;
    // The claim may be undone or not: there is no time to try again.
    if let ClaimStep::Undo(_, error) = claiming.step {
        return unavailable(view, error.0);
    }
    let error = match (verdict, record) {
        (Verdict::Written, Some(record)) => {
            return granted(view, Held { claim: claiming.claim, record }, None);
        }
        (Verdict::Found(seen), _) => {
            // The write that was in doubt is resolved: this record is stored, perhaps by that write.
            claiming.doubt = own(&claiming.claim, seen.as_ref()).map(Box::new);
            claiming.rounds += 1;
            if !view.budget.is_over(view.now) {
                return found(view, claiming, seen);
            }
            let why = "the store did not answer before the time for handlers was over";
            return give_up(view, claiming, StoreError::new(StoreErrorKind::Unavailable, why));
        }
        (Verdict::Unknown(error), record) => {
            if error.may_have_applied() {
                claiming.doubt = record.map(|record| Box::new(claiming.claim.held(record)));
            }
            error
        }
        (Verdict::EffectRefused(refused), _) => refused.into(),
        (Verdict::Written, None) => unanswered(),
    };
    if error.kind() == StoreErrorKind::Contended {
        claiming.until = claiming.last;
    }
    if cut_short && error.is_transient() && view.now < claiming.until {
        claiming.is_slow = true;
        return Next::Claim(claiming).into();
    }
    give_up(view, claiming, error)
}

/// This is stored under its key. So the key can be claimed, is its own already, or the record answers the claim.
fn found(
    view: &RecordView<'_, '_>,
    mut claiming: Claiming,
    seen: Option<IdempotencyRecord>,
) -> Decision {
    let completion = seen.as_ref().and_then(Completion::of);
    match (admit(&claiming.claim, seen.as_ref(), view.now), seen) {
        (Finding::Free, seen) => free(view, claiming, seen.map(Box::new)),
        // An earlier write of this claim was applied, and its answer was lost. Its lease may end before the handler
        // begins, so it is renewed.
        (Finding::Mine, Some(seen)) if claiming.rounds < ROUNDS && is_short(view, &seen) => {
            claiming.step = ClaimStep::Write(Some(Box::new(seen)));
            Next::Claim(claiming).into()
        }
        (Finding::Mine, Some(seen)) => granted(view, claiming.claim.held(seen), None),
        // The work was done, and its messages may not have been sent.
        (Finding::Unsent(result), Some(seen)) => {
            let stored = Arc::new(claiming.claim.held(seen));
            publish(view, stored, Outcome::Replayed { result, completion }).into()
        }
        (Finding::Held { until }, _) => busy(view, until).with(Effect::MetBusy),
        (finding, _) => Next::End(answer(view, finding, completion)).into(),
    }
}

/// Its key is free: the claim is written over the record that was seen. A look ends here; and so does a claim of a
/// record that has its turn at another time, because of its losses.
fn free(
    view: &RecordView<'_, '_>,
    mut claiming: Claiming,
    seen: Option<Box<IdempotencyRecord>>,
) -> Decision {
    let over = |seen| claiming.claim.over(seen, view.now);
    let losses = seen.as_deref().map_or(0, |seen| over(Some(seen)).1.consecutive_losses());
    if losses != claiming.losses || matches!(claiming.step, ClaimStep::Look) {
        let stage = if losses == 0 { Stage::ToClaim } else { Stage::Suspected };
        return match view.is_closed {
            true => Next::End(Outcome::Returned(NotStarted::Deadline)).into(),
            false => Next::To(stage).with(Effect::Looked { losses, seen }),
        };
    }
    if !view.setting.policy.mode.claims() {
        let (guard, held) = over(seen.as_deref());
        return granted(view, held, Some(guard));
    }
    if claiming.rounds >= ROUNDS {
        let why = format!("the record changed {ROUNDS} times while it was being claimed");
        return unavailable(view, StoreError::new(StoreErrorKind::Contended, why));
    }
    claiming.step = ClaimStep::Write(seen);
    Next::Claim(claiming).into()
}

/// The key is held; or it is taken to be free, and its completion is written under the guard that is `assumed`.
fn granted(view: &RecordView<'_, '_>, held: Held, assumed: Option<Guard>) -> Decision {
    let held = Arc::new(held);
    let next = if view.is_closed {
        let returned = Outcome::Returned(NotStarted::Deadline);
        // If it is assumed, nothing was written.
        let held = Some(&held).filter(|_| assumed.is_none()).cloned();
        settle(view, held, Settlement::Undo, returned)
    } else if assumed.is_none() && gives_up(view, &held) {
        failed(view, Some(Arc::clone(&held)), Failure::lost(held.consecutive_losses()))
    } else {
        Next::To(Stage::Ready)
    };
    next.with(Effect::Granted(held, assumed.map(Box::new)))
}

/// Whether the key has lost so many workers in a row that its handler is not called again. A mutex keeps no
/// failure.
fn gives_up(view: &RecordView<'_, '_>, held: &Held) -> bool {
    !view.is_mutex() && view.setting.policy.gives_up(held.consecutive_losses())
}

/// Its key is busy: it waits, if the policy and the time allow that.
fn busy(view: &RecordView<'_, '_>, until: Timestamp) -> Next {
    let now = view.now;
    let since = view.record.busy_since.unwrap_or(now);
    let pause = pause(view.record.looks);
    let limit = view.setting.policy.on_conflict.waits_until(since, until);
    let past = until.plus(Duration::from_millis(1));
    let wake = now.plus(pause).min(past.max(now)).min(limit);
    let in_time = wake < view.budget.stop();
    if view.is_closed || now >= limit || !in_time {
        return Next::End(Outcome::Busy { until });
    }
    Next::To(Stage::Waiting(Wait { wake, until, since: now }))
}

/// Gives up a claim with this error. A claim that may have been written is undone first.
fn give_up(view: &RecordView<'_, '_>, mut claiming: Claiming, error: StoreError) -> Decision {
    let Some(held) = claiming.doubt.take() else { return unavailable(view, error) };
    claiming.step = ClaimStep::Undo(held, Carried(error));
    Next::Claim(claiming).into()
}

/// Its key could be neither looked at nor claimed: it runs without a claim, if the policy says so in an outage.
pub(super) fn unavailable(view: &RecordView<'_, '_>, error: StoreError) -> Decision {
    let is_outage = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled);
    let runs = view.setting.policy.on_outage.runs_unprotected() && !view.is_closed;
    let held_up = view.has_turn.then_some(Effect::HeldUp);
    match is_outage && runs {
        true => Next::To(Stage::Ready).with(Effect::Outage(error)).and(held_up),
        false => Decision::from(Next::End(Outcome::Unavailable(error))).and(held_up),
    }
}

/// The claim, if an earlier write of it has stored this record.
fn own(claim: &Claim, seen: Option<&IdempotencyRecord>) -> Option<Held> {
    let own = seen.filter(|_| Guard::OwnedBy(claim.owner).holds(seen))?;
    Some(claim.held(own.clone()))
}

/// Whether less than half of the lease is left that a claim gets now.
fn is_short(view: &RecordView<'_, '_>, own: &IdempotencyRecord) -> bool {
    let half = view.now.plus(view.terms.lease_until(view.now).since(view.now) / 2);
    own.lease_until.is_some_and(|until| until < half)
}

impl Claiming {
    /// Claims of one kind share a call: looks, writes, undos. Claims whose first call was cut short do
    /// not share a call with new ones.
    const fn kind(&self) -> (Discriminant<ClaimStep>, bool) {
        (discriminant(&self.step), self.is_slow)
    }

    pub(super) const fn is_undone(&self) -> bool {
        matches!(self.step, ClaimStep::Undo(..))
    }

    /// The write of the claim, with a lease that ends at `lease_until`; or the one that undoes it.
    fn write(&mut self, now: Timestamp, lease_until: Timestamp) -> Write {
        let seen = match &self.step {
            // It restores the earlier record, so that earlier failures stay counted.
            ClaimStep::Undo(held, _) => {
                let (guard, record) = held.write(&Settlement::Undo, now);
                return Write::new(self.key.clone(), guard, record);
            }
            ClaimStep::Write(seen) => seen.as_deref(),
            ClaimStep::Look => None,
        };
        self.claim.lease_until = lease_until;
        let (guard, record) = match own(&self.claim, seen) {
            Some(held) => held.write(&Settlement::Renew { lease_until }, now),
            None => {
                let (guard, held) = self.claim.over(seen, now);
                (guard, Some(held.record))
            }
        };
        Write::new(self.key.clone(), guard, record)
    }
}

/// Claims that wait for their next call, and those that wait for its answer.
pub(super) type Claims = Calls<Claiming>;

impl Claims {
    /// Whether one has no answer yet whose first call is not over: others may wait for that call.
    pub(super) fn are_new(&self) -> bool {
        self.all().any(|claiming| !claiming.is_slow && !claiming.is_undone())
    }

    /// Whether one has no answer yet that may still be granted.
    pub(super) fn are_wanted(&self) -> bool {
        self.all().any(|claiming| !claiming.is_undone())
    }

    /// The records whose claims are only undone: they are returned after that.
    pub(super) fn undone(&self) -> impl Iterator<Item = usize> {
        self.all().filter(|claiming| claiming.is_undone()).map(|claiming| claiming.at)
    }

    /// The next call to make. A claim that is sent gets the lease `lease_until`, and undoing ends at `last`. With `is_only`,
    /// the batch has no other record that a slow claim could delay; a look ends early all the same, since writes may succeed
    /// where reads fail.
    pub(super) fn send(
        &mut self,
        call: CallId,
        now: Timestamp,
        (lease_until, last): (Timestamp, Timestamp),
        is_only: bool,
    ) -> Option<Action> {
        let kind = self.waiting.first()?.kind();
        let mut members = self.take(|claiming| claiming.kind() == kind);
        let until = members.iter().map(|claiming| claiming.until).min()?;
        let lease = lease_until.since(now);
        let early = FIRST_CLAIM_CALL.min(until.since(now) / 2);
        let deadline = match &members.first()?.step {
            ClaimStep::Undo(..) => last,
            // Half of the lease is left when the claim is granted. Until then it goes with a later lease again.
            _ if kind.1 => until.min(now.plus(lease / 2)),
            ClaimStep::Write(_) if is_only => now.plus(until.since(now).min(lease / 6)),
            _ => now.plus(early.min(lease / 6)),
        };
        let action = match members.first()?.step {
            ClaimStep::Look => {
                let keys = members.iter().map(|claiming| claiming.key.clone()).collect();
                Action::Read { call, keys, deadline }
            }
            _ => {
                let writes =
                    members.iter_mut().map(|claiming| claiming.write(now, lease_until)).collect();
                Action::Write { call, writes, deadline }
            }
        };
        self.add(call, members, now, deadline, Duration::ZERO);
        Some(action)
    }
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
