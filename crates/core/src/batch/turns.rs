//! What each event means for a record: the decisions of [`Drive`], without its plumbing.

use std::time::Duration;

use super::{
    AfterFailure, Returned,
    answers::{done, overtaken, shared, shrink},
    claims::Claimed,
    drive::{Asleep, Drive},
    entry::{Intake, Stage},
    settles::Settle,
};
use crate::{
    admission::{Held, Settled, Settlement},
    clock::Timestamp,
    failure::Failure,
    outcome::{NotStarted, Outcome},
    policy::{Conflict, OnFailure, OnOutage, OnTimeout, Remembered},
    store::{StoreError, StoreErrorKind, Verdict},
};

/// What [`Conflict::Retry`] waits for the end of a lease.
const REMAINDER: Duration = Duration::from_secs(2);
/// The first pause between two looks at a busy key; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often a completion whose record is gone is written anew.
const AGAIN: u32 = 3;

impl Drive<'_> {
    /// Lets a record go if its turn has come.
    pub(super) fn consider(&mut self, at: usize) {
        if let Some(outcome) = self.set_off(at) {
            self.finish(at, outcome);
        }
    }

    fn set_off(&mut self, at: usize) -> Option<Outcome> {
        if !self.plan.may_go(at) {
            return None;
        }
        let closed = self.closed;
        let entry = self.entry(at);
        if entry.outcome.is_some() || entry.stage != Stage::Waiting {
            return None;
        }
        if let Some(known) = entry.preset.take() {
            return Some(known);
        }
        match &entry.intake {
            Intake::Skip => return Some(Outcome::Skipped),
            Intake::Reject(rejection) => return Some(Outcome::Rejected(rejection.clone())),
            _ => {}
        }
        if let Some(why) = closed {
            return Some(Outcome::Returned(why));
        }
        let queue = match entry.intake {
            Intake::Unprotected => &mut self.ready,
            _ => &mut self.to_claim,
        };
        queue.push_back(at);
        self.entry(at).stage = Stage::Moving;
        None
    }

    /// Gives a record its outcome, and to those that wait for it what follows from that.
    pub(super) fn finish(&mut self, at: usize, outcome: Outcome) {
        let mut open = vec![(at, outcome)];
        let mut next = Vec::new();
        let mut all_well = true;
        loop {
            while let Some((at, outcome)) = open.pop() {
                if self.entry(at).outcome.is_some() {
                    continue;
                }
                if self.alone == Some(at) {
                    self.alone = None;
                }
                next.extend(self.answer_copies(at, &outcome));
                if !outcome.is_acknowledged() {
                    all_well = false;
                    let rest = self.plan.same_group(at).into_iter();
                    open.extend(rest.map(|at| (at, Outcome::Returned(NotStarted::Order))));
                }
                if let Some(entry) = self.entries.get(at) {
                    self.report(entry, &outcome);
                }
                let entry = self.entry(at);
                entry.outcome = Some(outcome);
                entry.lead = None;
                self.open -= 1;
                next.extend(self.plan.leave(at));
            }
            // Only now: a record whose group has just failed must not set off.
            let Some(candidate) = next.pop() else { break };
            open.extend(self.set_off(candidate).map(|outcome| (candidate, outcome)));
        }
        if !all_well && self.after_failure == AfterFailure::Batch {
            self.close(NotStarted::Order);
        }
    }

    /// Copies of the record in the same batch share its outcome, if it has one to share.
    fn answer_copies(&mut self, at: usize, outcome: &Outcome) -> Vec<usize> {
        let Some(shared) = shared(outcome) else { return Vec::new() };
        let mut copies = self.plan.same_key(at);
        copies.retain(|other| match (self.entries.get(at), self.entries.get(*other)) {
            (Some(first), Some(other)) => other.is_copy_of(first),
            _ => false,
        });
        for copy in &copies {
            self.plan.leave_key(*copy);
            self.entry(*copy).preset = Some(shared.clone());
        }
        copies
    }

    pub(super) fn claimed(&mut self, at: usize, claimed: Claimed) {
        self.entry(at).stage = Stage::Moving;
        match claimed {
            Claimed::Held(held) => {
                self.entry(at).held = Some(held);
                self.keep_alive(at, None);
                match self.closed {
                    Some(why) => self.not_started(at, why),
                    None => self.ready.push_back(at),
                }
            }
            Claimed::Replay(outcome) => self.finish(at, Outcome::Replayed { outcome }),
            Claimed::Remembered { error } => {
                let acknowledged = self.policy.remembered == Remembered::Acknowledge;
                self.finish(at, Outcome::Remembered { error, acknowledged });
            }
            Claimed::Mismatch => self.finish(at, Outcome::Mismatch),
            Claimed::Busy { until } => self.busy(at, until),
            Claimed::Suspect => match self.closed {
                Some(why) => self.finish(at, Outcome::Returned(why)),
                None => {
                    self.entry(at).lead = None;
                    self.suspects.push_back(at);
                }
            },
            Claimed::Unavailable(error) if self.runs_without(&error) => {
                let entry = self.entry(at);
                entry.intake = Intake::Unprotected;
                entry.outage = Some(error);
                self.ready.push_back(at);
            }
            Claimed::Unavailable(error) => self.finish(at, Outcome::Unavailable(error)),
        }
    }

    /// Whether the user would rather have the work done twice than not now.
    fn runs_without(&self, error: &StoreError) -> bool {
        let outage =
            matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled);
        outage && self.closed.is_none() && self.policy.on_outage == OnOutage::RunUnprotected
    }

    fn busy(&mut self, at: usize, until: Timestamp) {
        let now = self.now();
        let entry = self.entry(at);
        let since = *entry.busy_since.get_or_insert(now);
        let doubled = FIRST_PAUSE.saturating_mul(1 << entry.looks.min(8));
        entry.looks += 1;
        let limit = match self.policy.conflict {
            Conflict::Skip => return self.finish(at, Outcome::Skipped),
            Conflict::Retry if until <= since.plus(REMAINDER) => until.plus(LONGEST_PAUSE),
            Conflict::Retry => since,
            Conflict::Wait { up_to } => since.plus(up_to),
        };
        let past = until.plus(Duration::from_millis(1));
        let wake = now.plus(doubled.min(LONGEST_PAUSE)).min(past.max(now)).min(limit);
        let in_time = self.budget.stop().is_none_or(|stop| wake < stop);
        if self.closed.is_some() || now >= limit || !in_time {
            return self.finish(at, Outcome::Busy { until });
        }
        self.asleep.push(Asleep { at, wake, until });
        if self.alone == Some(at) {
            self.alone = None;
        }
    }

    pub(super) fn finished(&mut self, at: usize, result: Result<Returned, Failure>) {
        let now = self.now();
        let entry = self.entry(at);
        entry.stage = Stage::Moving;
        let took = entry.started.map(|started| now.since(started)).unwrap_or_default();
        entry.ran_for = Some(took);
        entry.handler = None;
        let (held, outage) = (entry.held.clone(), entry.outage.clone());
        self.pace.learn(took);
        let Some(held) = held else {
            let outcome = match result {
                Ok(returned) => {
                    Outcome::Unprotected { outcome: done(returned).value().cloned(), outage }
                }
                Err(failure) => Outcome::Failed { failure, failures: 1, parked: false },
            };
            return self.finish(at, outcome);
        };
        let (settlement, outcome) = match result {
            Ok(returned) => {
                let outcome = done(returned);
                (Settlement::Complete { outcome: outcome.value().cloned() }, outcome)
            }
            Err(failure) => {
                let failures = held.failures().saturating_add(1);
                let settlement = self.settlement_of(&failure, failures);
                let parked = matches!(settlement, Settlement::Remember { .. });
                (settlement, Outcome::Failed { failure, failures, parked })
            }
        };
        if !outcome.is_acknowledged() && self.after_failure == AfterFailure::Batch {
            // Its outcome waits for the store, and nothing must start meanwhile.
            self.close(NotStarted::Order);
        }
        self.settle(at, held, settlement, outcome);
    }

    fn settlement_of(&self, failure: &Failure, failures: u32) -> Settlement {
        let error = failure.class().into();
        let exhausted = self.policy.max_failures.is_some_and(|most| failures >= most);
        let retried = match self.policy.on_failure {
            OnFailure::Release => failure.is_retried(),
            OnFailure::Remember => failure.is_retry_asked_for(),
        };
        if retried && !exhausted {
            return Settlement::Release { error };
        }
        let message = serde_json::Value::String(failure.error().to_string());
        Settlement::Remember { outcome: Some(message.to_string().into()), error }
    }

    /// A record that was claimed, or needs no claim, does not run after all.
    pub(super) fn not_started(&mut self, at: usize, why: NotStarted) {
        let outcome = Outcome::Returned(why);
        let entry = self.entry(at);
        entry.job = None;
        match entry.held.clone() {
            Some(held) => self.settle(at, held, Settlement::PutBack, outcome),
            None => self.finish(at, outcome),
        }
    }

    fn settle(&mut self, at: usize, held: Box<Held>, settlement: Settlement, outcome: Outcome) {
        let due = self.now();
        let until = self.budget.settle_deadline(due);
        let Some(key) = self.entry(at).key.clone() else { return self.finish(at, outcome) };
        self.settles.add(Settle {
            at,
            key,
            held,
            settlement,
            instead: None,
            record: None,
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
                        self.finish(settle.at, overtaken(by, settle.outcome));
                    }
                    Settled::Again { .. } if settle.again >= AGAIN => {
                        let error = StoreError::new(
                            StoreErrorKind::Contended,
                            "the record comes and goes while it is being completed",
                        );
                        self.give_up(settle, error);
                    }
                    Settled::Again { guard, record } => {
                        settle.instead = Some((guard, record));
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
    fn give_up(&mut self, settle: Settle, error: StoreError) {
        let outcome = match settle.outcome {
            Outcome::Executed { outcome, .. } => Outcome::CompletionLost { outcome, error },
            Outcome::Diverted(_) => Outcome::CompletionLost { outcome: None, error },
            Outcome::Failed { failure, failures, .. } => {
                Outcome::Failed { failure, failures, parked: false }
            }
            Outcome::TimedOut { .. } => Outcome::TimedOut { parked: false },
            other => other,
        };
        self.finish(settle.at, outcome);
    }

    pub(super) fn tick(&mut self) {
        let now = self.now();
        if self.budget.reply().is_some_and(|reply| now >= reply) {
            self.stop();
            self.abandon();
        }
    }

    /// Ends the time of the handlers: what runs is dropped and keeps its lease, nothing else starts.
    pub(super) fn stop(&mut self) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        for at in self.drop_running() {
            self.timed_out(at);
        }
        self.close(NotStarted::Deadline);
    }

    /// The handler was dropped. Its effect may be on its way, so its key is not given free: the lease
    /// stands, or the key is parked.
    fn timed_out(&mut self, at: usize) {
        let now = self.now();
        let entry = self.entry(at);
        entry.stage = Stage::Moving;
        entry.handler = None;
        entry.ran_for = entry.started.map(|started| now.since(started));
        match (entry.held.clone(), self.policy.on_timeout) {
            (Some(held), OnTimeout::Park) => {
                let error = "a timeout".into();
                let settlement = Settlement::Remember { outcome: None, error };
                self.settle(at, held, settlement, Outcome::TimedOut { parked: true });
            }
            (_, OnTimeout::Park | OnTimeout::Retry) => {
                self.finish(at, Outcome::TimedOut { parked: false });
            }
        }
    }

    /// Starts nothing any more: what is claimed is put back, what waits goes back.
    fn close(&mut self, why: NotStarted) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(why);
        for asleep in std::mem::take(&mut self.asleep) {
            self.finish(asleep.at, Outcome::Busy { until: asleep.until });
        }
        let unclaimed = std::mem::take(&mut self.to_claim).into_iter();
        for at in unclaimed.chain(std::mem::take(&mut self.suspects)) {
            self.finish(at, Outcome::Returned(why));
        }
        for at in std::mem::take(&mut self.ready) {
            self.not_started(at, why);
        }
    }

    /// Ends everything: the answer is due.
    fn abandon(&mut self) {
        let error = || {
            StoreError::new(
                StoreErrorKind::Unavailable,
                "no answer from the store before the invocation's deadline",
            )
        };
        for at in self.drop_claims() {
            self.finish(at, Outcome::Unavailable(error()));
        }
        for settle in self.settles.abandon() {
            self.give_up(settle, error());
        }
    }
}
