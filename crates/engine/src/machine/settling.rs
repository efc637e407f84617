//! Writes the settlement when a handler has ended, and handles the answer.

use std::sync::Arc;

use super::{
    Collected, Ended, Machine, Present,
    calls::FIRST_CALL,
    carried::Carried,
    entry::Stage,
    optimistic::unwritten,
    outcomes::{Why, done, overtaken},
    settlements::{AGAIN, Settling},
};
use crate::delivery::Returned;
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::{Held, Overtaken, Settled, Settlement},
    clock::Timestamp,
    effects::{CollectError, Effects, RefusalReason},
    failure::Failure,
    outbox::PublishError,
    outcome::{Completion, NotStarted, Outcome},
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind, Verdict},
};

impl Machine<'_> {
    pub(super) fn ended(
        &mut self,
        at: usize,
        ended: Ended,
        since: Option<Timestamp>,
        present: &mut Present<'_>,
    ) {
        // It may have been stopped just now.
        if self.records.at(at).stage() != Stage::Running {
            return;
        }
        self.records.at(at).ended(since, present.now);
        self.leases.forget(at);
        self.starts.ended(!matches!(ended, Ended::NotBegun(_)));
        match ended {
            Ended::Through(result) => self.through(at, result, Collected::default(), present),
            Ended::Collected(returned, collected) => {
                self.through(at, Ok(returned), collected, present);
            }
            Ended::NotBegun(why) => self.not_started(at, why, present),
        }
    }

    fn through(
        &mut self,
        at: usize,
        result: Result<Returned, Failure>,
        collected: Collected,
        present: &mut Present<'_>,
    ) {
        let Collected { effects, outbox, retention } = collected;
        let entry = self.records.at(at);
        let result = if entry.ask().is_aside {
            result.map_err(Failure::of_sink)
        } else {
            present.host.took(entry.ran_for().unwrap_or_default());
            result
        };
        let Some(held) = entry.held().cloned() else {
            // Without a claim there is no completion to commit the effects with, or to store messages with.
            let result = match (effects, outbox) {
                (Some(_), _) => Err(CollectError::NotTransactional.into()),
                (None, Some(_)) => Err(PublishError::Unprotected.into()),
                (None, None) => result,
            };
            return self.through_unprotected(at, result, present);
        };
        let outcome = match result {
            Ok(returned) => done(returned),
            Err(failure) => return self.failed(at, held, failure, present),
        };
        let held = match retention {
            Some(asked) => Arc::new(held.retained_for(self.setting.policy.retention_for(asked))),
            None => held,
        };
        let result = outcome.result().cloned();
        let effects = effects.filter(|_| keeps(Rule::CommitsEffects));
        match (&outcome, effects) {
            (Outcome::Declined, _) => self.settle(at, held, Settlement::Decline, outcome, present),
            (_, None) => {
                let complete = Settlement::Complete { result, outbox };
                if !keeps(Rule::SendsAfterTheCompletion) {
                    return self.send_at_once(at, &held, &complete, outcome, present);
                }
                self.settle(at, held, complete, outcome, present);
            }
            (_, Some(effects)) => {
                let commit = Settlement::Commit { result, outbox };
                self.settle_with(at, held, commit, Some(effects), outcome, present);
            }
        }
    }

    /// The handler failed, or one of its effects was refused.
    pub(super) fn failed(
        &mut self,
        at: usize,
        held: Arc<Held>,
        failure: Failure,
        present: &mut Present<'_>,
    ) {
        let failed_attempts = held.failed_attempts().saturating_add(1);
        let settlement = self.settlement_of(at, &failure, failed_attempts);
        let permanent = matches!(settlement, Settlement::FailPermanently { .. });
        let outcome = Outcome::Failed { failure, failed_attempts, permanent };
        self.settle(at, held, settlement, outcome, present);
    }

    /// It ran without a claim, so nothing is recorded; the rest is the same.
    fn through_unprotected(
        &mut self,
        at: usize,
        result: Result<Returned, Failure>,
        present: &mut Present<'_>,
    ) {
        let outcome = match result {
            Ok(returned) => match done(returned) {
                diverted @ Outcome::Diverted(_) => {
                    let outage = self.records.at(at).outage();
                    self.records.at(at).set_unrecorded(outage);
                    diverted
                }
                done => {
                    let outcome = done.result().cloned();
                    Outcome::Unprotected { result: outcome, outage: self.records.at(at).outage() }
                }
            },
            Err(failure) => {
                let failed_attempts = 1;
                let settlement = self.settlement_of(at, &failure, failed_attempts);
                if matches!(settlement, Settlement::FailPermanently { .. })
                    && self.can_put_aside(at)
                {
                    return self.put_aside(at, Why::failed(failure, failed_attempts), present);
                }
                Outcome::Failed { failure, failed_attempts, permanent: false }
            }
        };
        self.finish(at, outcome, present);
    }

    fn settlement_of(&mut self, at: usize, failure: &Failure, failed_attempts: u32) -> Settlement {
        let error = failure.error_type().into();
        if self.records.at(at).ask().is_aside {
            return Settlement::Release { error_type: error };
        }
        // A mutex keeps no failure. It is permanent for a sink only, which takes the record at once.
        let is_kept = !self.is_mutex(at) || self.can_put_aside(at);
        if !is_kept || !self.setting.policy.fails_permanently(failure, failed_attempts) {
            return Settlement::Release { error_type: error };
        }
        let message = serde_json::Value::String(failure.message());
        Settlement::FailPermanently { result: Some(message.to_string().into()), error_type: error }
    }

    /// A record that was claimed, or needs no claim, does not run after all.
    pub(super) fn not_started(&mut self, at: usize, why: NotStarted, present: &mut Present<'_>) {
        self.leases.forget(at);
        let outcome = Outcome::Returned(why);
        match self.records.at(at).held().cloned() {
            Some(held) if keeps(Rule::UndoesUnstartedClaims) => {
                self.settle(at, held, Settlement::Undo, outcome, present);
            }
            _ => self.finish(at, outcome, present),
        }
    }

    /// Settles the claim of a record; then it has this outcome.
    pub(super) fn settle(
        &mut self,
        at: usize,
        held: Arc<Held>,
        settlement: Settlement,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) {
        self.settle_with(at, held, settlement, None, outcome, present);
    }

    /// The same, with effects.
    fn settle_with(
        &mut self,
        at: usize,
        held: Arc<Held>,
        settlement: Settlement,
        effects: Option<Effects>,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) {
        // Messages are marked as sent in a completion that is stored, so nothing is assumed then.
        let is_mark = matches!(settlement, Settlement::MarkSent);
        let assumed = self.records.at(at).assumption().filter(|_| !is_mark);
        let assumed = assumed.cloned().map(Box::new);
        if assumed.is_some()
            && let Some(outcome) = unwritten(&held, &settlement, &outcome, present.now)
        {
            return self.finish(at, outcome, present);
        }
        let settlement = self.in_its_mode(at, settlement);
        let due = present.now;
        // An optimistic commit records no give-up; reserve no time for it.
        let kept_for = effects.as_ref().filter(|_| assumed.is_none());
        let until = self.settle_until(&settlement, kept_for, due);
        let entry = self.records.at(at);
        entry.enter(Stage::Ending);
        // What was not committed was not done, so the next delivery may do it.
        let insists = !entry.ask().is_aside && effects.is_none();
        let Some(key) = entry.key().cloned() else { return self.finish(at, outcome, present) };
        let goes_back = !outcome.is_acknowledged() && !self.is_put_aside(at, &outcome);
        self.settlements.add(Settling {
            at,
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
        });
        if goes_back {
            present.host.returns(at);
            // Its outcome waits for the store, and no later record of its group may start meanwhile.
            self.stop_batch_behind(at, present);
        }
    }

    /// Until when to try a settlement. If it has messages, half of the time is left for sending them. A mark only
    /// saves sending them again, so the acknowledgement does not wait long for it.
    fn settle_until(
        &self,
        settlement: &Settlement,
        effects: Option<&Effects>,
        now: Timestamp,
    ) -> Timestamp {
        let budget = self.starts.budget();
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

    /// A settlement was answered. `written` is the record of its write, if that has messages, and `completion` what its
    /// write says.
    pub(super) fn settled(
        &mut self,
        mut settling: Settling,
        written: Option<IdempotencyRecord>,
        completion: Option<Completion>,
        verdict: Verdict,
        present: &mut Present<'_>,
    ) {
        let found = match verdict {
            Verdict::Written => return self.recorded(settling, written, completion, present),
            Verdict::EffectRefused(_) if !keeps(Rule::RefusedEffectsFail) => {
                return self.finish(settling.at, settling.outcome.0, present);
            }
            // The next call has more time for it.
            Verdict::EffectRefused(refused)
                if refused.reason() == RefusalReason::TooSlow
                    && settling.is_retried(&refused.clone().into(), present.now) =>
            {
                return self.settlements.add(settling);
            }
            // Without a claim, nothing keeps an earlier request without an answer from being applied yet.
            Verdict::EffectRefused(refused) if settling.assumed.is_some() && settling.in_doubt => {
                return self.give_up(settling, refused.into(), present);
            }
            Verdict::EffectRefused(refused) if settling.effects.is_some() => {
                let failure = Failure::refused(refused);
                return self.failed(settling.at, settling.held, failure, present);
            }
            Verdict::EffectRefused(refused) => {
                return self.unsettled(settling, refused.into(), present);
            }
            Verdict::Unknown(error) => return self.unsettled(settling, error, present),
            Verdict::Found(found) if settling.assumed.is_some() => {
                return self.met(settling, found, present);
            }
            Verdict::Found(found) => found,
        };
        let completion = found.as_ref().and_then(Completion::of);
        match settling.held.settled(&settling.settlement, found.as_ref(), present.now) {
            Settled::Done => self.recorded(settling, found, completion, present),
            // The commit had no answer, and was applied.
            Settled::Overtaken(Overtaken::Completed(_))
                if settling.is_committed(found.as_ref()) =>
            {
                settling.outcome = settling.committed.take().unwrap_or(settling.outcome);
                self.recorded(settling, found, completion, present);
            }
            Settled::Overtaken(by) => {
                if let Overtaken::PermanentlyFailed { fence, .. } = by {
                    self.records.at(settling.at).found_final(fence);
                }
                let ours = settling.outcome.0;
                let outcome = overtaken(by, completion, ours, |theirs| self.foreign(theirs));
                self.finish_overtaken(settling.at, &settling.held, found, outcome, present);
            }
            Settled::Again { .. } if settling.again >= AGAIN => {
                let error = StoreError::new(
                    StoreErrorKind::Contended,
                    "the record comes and goes while it is being completed",
                );
                self.give_up(settling, error, present);
            }
            Settled::Again { guard, record } => {
                // A commit is the same write each time.
                if settling.effects.is_none() {
                    settling.instead = Some(Box::new((guard, record)));
                }
                settling.again += 1;
                self.settlements.add(settling);
            }
        }
    }
}
