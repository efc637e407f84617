//! What becomes of a key that was claimed: what is written of it, and what follows from the answer.

use std::{sync::Arc, time::Duration};

use super::{
    AfterFailure, Returned,
    answers::{done, overtaken, shrink},
    drive::Drive,
    entry::Why,
    handler::Ended,
    settles::Settle,
};
use lambda_idempotency_core::{
    admission::{Held, Overtaken, Settled, Settlement},
    clock::Timestamp,
    contained::Contained,
    failure::Failure,
    outcome::{NotStarted, Outcome},
    policy::OnFailure,
    store::{StoreError, StoreErrorKind, Verdict},
};

/// The first pause before a settlement is tried again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often a completion whose record is gone is written anew.
const AGAIN: u32 = 3;

impl Drive<'_> {
    pub(super) fn ended(&mut self, at: usize, ended: Ended) {
        let now = self.now();
        self.entry(at).stop(now);
        match ended {
            Ended::Through(result) => self.finished(at, result),
            Ended::NotBegun(why) => {
                self.starts = self.starts.saturating_sub(1);
                self.not_started(at, why);
            }
        }
    }

    fn finished(&mut self, at: usize, result: Result<Returned, Failure>) {
        let entry = self.entry(at);
        let took = entry.ran_for.unwrap_or_default();
        let (held, outage) = (entry.held.clone(), entry.outage.clone());
        let result = if entry.is_aside {
            result.map_err(Failure::of_sink)
        } else {
            self.pace.learn(took);
            result
        };
        let Some(held) = held else {
            return match result {
                Ok(returned) => {
                    let outcome = match done(returned) {
                        diverted @ Outcome::Diverted(_) => {
                            self.entry(at).unrecorded = outage;
                            diverted
                        }
                        done => {
                            let outcome = done.result().cloned();
                            Outcome::Unprotected {
                                result: outcome,
                                outage: outage.map(|error| *error),
                            }
                        }
                    };
                    self.finish(at, outcome);
                }
                Err(failure) => self.failed_unprotected(at, failure),
            };
        };
        let (settlement, outcome) = match result {
            Ok(returned) => {
                let outcome = done(returned);
                let settlement = match &outcome {
                    Outcome::Declined => Settlement::Undo,
                    outcome => Settlement::Complete { result: outcome.result().cloned() },
                };
                (settlement, outcome)
            }
            Err(failure) => {
                let failed_attempts = held.failed_attempts().saturating_add(1);
                let settlement = self.settlement_of(at, &failure, failed_attempts);
                let permanent = matches!(settlement, Settlement::FailPermanently { .. });
                (settlement, Outcome::Failed { failure, failed_attempts, permanent })
            }
        };
        let goes_back = !outcome.is_acknowledged() && !self.is_diverted(at, &outcome);
        if goes_back && self.after_failure == AfterFailure::Batch {
            // Its outcome waits for the store, and nothing must start meanwhile.
            self.close(NotStarted::Order);
        }
        self.settle(at, held, settlement, outcome);
    }

    /// No claim says that it failed, so nothing is recorded; what follows is the same.
    fn failed_unprotected(&mut self, at: usize, failure: Failure) {
        let failed_attempts = 1;
        let settlement = self.settlement_of(at, &failure, failed_attempts);
        match settlement {
            Settlement::FailPermanently { .. } if self.may_divert(at) => {
                self.put_aside(at, Why::failed(failure, failed_attempts));
            }
            _ => self.finish(at, Outcome::Failed { failure, failed_attempts, permanent: false }),
        }
    }

    fn settlement_of(&mut self, at: usize, failure: &Failure, failed_attempts: u32) -> Settlement {
        let error = failure.class().into();
        if self.entry(at).is_aside {
            return Settlement::Release { error_type: error };
        }
        let exhausted = self.policy.max_failed_attempts.is_some_and(|most| failed_attempts >= most);
        let retried = match self.policy.on_failure {
            OnFailure::FailPermanently => failure.is_declared_transient(),
            _ => !failure.is_permanent(),
        };
        if retried && !exhausted {
            return Settlement::Release { error_type: error };
        }
        let message = serde_json::Value::String(failure.message());
        Settlement::FailPermanently { result: Some(message.to_string().into()), error_type: error }
    }

    /// A record that was claimed, or needs no claim, does not run after all.
    pub(super) fn not_started(&mut self, at: usize, why: NotStarted) {
        let outcome = Outcome::Returned(why);
        let entry = self.entry(at);
        entry.job = Contained::none();
        match entry.held.clone() {
            Some(held) => self.settle(at, held, Settlement::Undo, outcome),
            None => self.finish(at, outcome),
        }
    }

    pub(super) fn settle(
        &mut self,
        at: usize,
        held: Arc<Held>,
        settlement: Settlement,
        outcome: Outcome,
    ) {
        let due = self.now();
        let until = self.budget.settle_deadline(due);
        let Some(key) = self.entry(at).key.clone() else { return self.finish(at, outcome) };
        self.settles.add(Settle {
            at,
            key,
            held,
            settlement,
            instead: None,
            outcome,
            due,
            until,
            tries: 0,
            again: 0,
        });
    }

    pub(super) fn settled(&mut self, mut settle: Settle, verdict: Verdict) {
        let now = self.now();
        match verdict {
            Verdict::Written => self.finish(settle.at, settle.outcome),
            Verdict::Found(found) => {
                match settle.held.settled(&settle.settlement, found.as_ref(), now) {
                    Settled::Done => self.finish(settle.at, settle.outcome),
                    Settled::Overtaken(by) => {
                        if let Overtaken::PermanentlyFailed { fence, .. } = by {
                            self.entry(settle.at).final_fence = Some(fence);
                        }
                        let outcome = overtaken(by, settle.outcome, |theirs| self.foreign(theirs));
                        self.finish(settle.at, outcome);
                    }
                    Settled::Again { .. } if settle.again >= AGAIN => {
                        let error = StoreError::new(
                            StoreErrorKind::Contended,
                            "the record comes and goes while it is being completed",
                        );
                        self.give_up(settle, error);
                    }
                    Settled::Again { guard, record } => {
                        settle.instead = Some(Box::new((guard, record)));
                        settle.again += 1;
                        self.settles.add(settle);
                    }
                }
            }
            Verdict::Unknown(error) => self.settle_failed(settle, error, now),
        }
    }

    fn settle_failed(&mut self, mut settle: Settle, error: StoreError, now: Timestamp) {
        if error.kind() == StoreErrorKind::TooLarge && shrink(&mut settle) {
            return self.settles.add(settle);
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << settle.tries.min(8)).min(LONGEST_PAUSE);
        settle.due = now.plus(pause);
        settle.tries += 1;
        if error.is_transient() && settle.due < settle.until {
            self.settles.add(settle);
        } else {
            self.give_up(settle, error);
        }
    }

    /// A settlement that cannot be recorded. The lease stands until it lapses.
    pub(super) fn give_up(&mut self, settle: Settle, error: StoreError) {
        let outcome = match settle.outcome {
            Outcome::Executed { result: outcome, .. } => {
                Outcome::CompletionLost { result: outcome, error }
            }
            // The sink has it: to return it would only put it aside again.
            diverted @ Outcome::Diverted(_) => {
                self.entry(settle.at).unrecorded = Some(Box::new(error));
                diverted
            }
            Outcome::Failed { failure, failed_attempts, .. } => {
                Outcome::Failed { failure, failed_attempts, permanent: false }
            }
            Outcome::TimedOut { .. } => Outcome::TimedOut { permanent: false },
            other => other,
        };
        self.finish(settle.at, outcome);
    }
}
