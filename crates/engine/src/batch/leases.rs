//! How long keys are held: the lease of a claim, its renewal, and what follows when it is lost.
//!
//! A short lease frees the key of a worker that died long before its invocation would have ended. It
//! costs a renewal a third of its length after each write, while the handler runs or waits for its
//! turn, and never beyond the end of the invocation. A handler runs only while its lease is known to
//! stand: when a renewal finds another owner, or none could be made in time, it is dropped.

use std::{sync::Arc, time::Duration};

use super::{
    calls::Answered,
    drive::Drive,
    entry::{Entry, Stage},
    heartbeat::Beat,
};
use lambda_idempotency_core::{
    admission::{Overtaken, Settled, Settlement},
    clock::Timestamp,
    contained::Contained,
    outcome::{NotStarted, Outcome},
    policy::Lease,
    record::IdempotencyRecord,
    store::{Verdict, Write},
};

/// The pause after a renewal without an answer.
const PAUSE: Duration = Duration::from_millis(200);

impl Drive<'_> {
    /// When a claim made now ends, renewed or not.
    pub(super) fn ceiling(&self, now: Timestamp) -> Timestamp {
        let end = self.budget.end();
        end.map_or(now.plus(self.policy.fallback_lease), |end| end.plus(self.policy.lease_grace))
    }

    /// The end of the lease of a claim made now.
    pub(super) fn lease_until(&self, now: Timestamp) -> Timestamp {
        match self.policy.lease {
            Lease::Renewed { length } => self.ceiling(now).min(now.plus(length)),
            _ => self.ceiling(now),
        }
    }

    /// Sees to it that the lease of a record is renewed, if it can end before the handler must.
    pub(super) fn keep_alive(&mut self, at: usize, ceiling: Option<Timestamp>) {
        let Lease::Renewed { length } = self.policy.lease else { return };
        let ceiling = ceiling.unwrap_or(self.ceiling(self.now()));
        let Some(held) = &self.entry(at).held else { return };
        let Some(lease_until) = held.record.lease_until.filter(|until| *until < ceiling) else {
            return;
        };
        let due = lease_until.minus(length - length / 3);
        self.heartbeat.add(Beat { at, due, lease_until, ceiling, instead: None, tries: 0 });
    }

    /// Renews what is due, and stops what runs without a lease.
    pub(super) fn beat(&mut self, now: Timestamp) {
        let Lease::Renewed { length } = self.policy.lease else { return };
        for at in self.heartbeat.lapsed(now) {
            let entry = self.entry(at);
            if !entry.is_kept() {
                continue;
            }
            if entry.stage == Stage::Running {
                self.lose(at, Overtaken::Gone);
            } else {
                self.ready.retain(|other| *other != at);
                self.not_started(at, NotStarted::Lease);
            }
        }
        let entries = &self.entries;
        self.heartbeat.retain(|at| entries.get(at).is_some_and(Entry::is_kept));
        let (mut beats, mut writes) = (Vec::new(), Vec::new());
        for mut beat in self.heartbeat.take_due(now) {
            let lease_until = beat.ceiling.min(now.plus(length));
            let entry = self.entry(beat.at);
            let (Some(key), Some(held)) = (&entry.key, &entry.held) else { continue };
            let (guard, record) = match beat.instead.take() {
                Some(instead) => (instead.0, Some(instead.1)),
                None => held.write(&Settlement::Renew { lease_until }, now),
            };
            writes.push(Write { key: key.clone(), guard, record });
            beats.push(beat);
        }
        self.heartbeat.send(&self.engine.store, beats, writes, now, length);
    }

    pub(super) fn renewed(&mut self, renewal: Answered<Beat>) {
        let Answered { member: beat, record: Some(record), verdict } = renewal else { return };
        let (at, ceiling) = (beat.at, beat.ceiling);
        if !self.entry(at).is_kept() {
            return;
        }
        match verdict {
            Verdict::Written => self.extended(at, record, ceiling),
            Verdict::Found(found) => {
                let now = self.now();
                let lease_until = record.lease_until.unwrap_or(now);
                let Some(held) = &self.entry(at).held else { return };
                match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
                    Settled::Done => self.extended(at, found.unwrap_or(record), ceiling),
                    Settled::Again { guard, record } => {
                        let instead = Some(Box::new((guard, record)));
                        self.heartbeat.add(Beat { due: now, instead, ..beat });
                    }
                    Settled::Overtaken(by) => self.lose(at, by),
                }
            }
            // Until the lease has run out: then the handler is stopped.
            Verdict::Unknown(_) => {
                let (due, tries) = (self.now().plus(PAUSE), beat.tries + 1);
                self.heartbeat.add(Beat { due, tries, ..beat });
            }
        }
    }

    fn extended(&mut self, at: usize, record: IdempotencyRecord, ceiling: Timestamp) {
        if let Some(held) = &mut self.entry(at).held {
            Arc::make_mut(held).record = record;
        }
        self.keep_alive(at, Some(ceiling));
    }

    /// The lease is lost: a handler that runs is dropped, one that waits does not start.
    fn lose(&mut self, at: usize, by: Overtaken) {
        let now = self.now();
        let entry = self.entry(at);
        let running = entry.stop(now);
        entry.job = Contained::none();
        self.ready.retain(|other| *other != at);
        let outcome = match by {
            Overtaken::Completed(outcome) if running => Outcome::Superseded { result: outcome },
            Overtaken::Completed(outcome) => Outcome::Replayed { result: outcome },
            _ if running => Outcome::Fenced,
            Overtaken::Foreign { application } => Outcome::Foreign(self.foreign(application)),
            Overtaken::Mismatch { fence } => {
                self.entry(at).final_fence = Some(fence);
                Outcome::Mismatch
            }
            Overtaken::InProgress { until } => Outcome::Busy { until },
            Overtaken::PermanentlyFailed { .. } | Overtaken::Gone => {
                Outcome::Returned(NotStarted::Lease)
            }
        };
        self.finish(at, outcome);
    }
}
