//! What is begun, and when: claims ahead of their handlers, handlers as far as there is room and time.

use std::sync::Arc;

use futures_util::future;

use super::{
    claims::{self, Answer, Claimed, Wanted},
    drive::Drive,
    entry::{Entry, Stage},
    handler::{Due, Handler, Latest},
    sharing::Boarded,
};
use crate::call::{Call, History, Subject};
use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    record::Owner,
    store::{StoreError, StoreErrorKind},
};

/// How many claims may be on their way or wait for their handler: enough for four full calls of
/// DynamoDB, few enough not to hold keys that will not be used.
const CLAIM_AHEAD: usize = 100;

impl Drive<'_> {
    /// Starts all that can be started.
    pub(super) fn launch(&mut self) {
        let now = self.now();
        if !self.stopped && self.budget.is_over(now) {
            self.stop();
        }
        self.beat(now);
        self.wake(now);
        while self.alone.is_none_or(|alone| self.ready.front() == Some(&alone))
            && self.running.len() < self.policy.concurrency.max(1)
            && let Some(at) = self.ready.pop_front()
        {
            if !self.entry(at).is_held_at(now) {
                self.not_started(at, NotStarted::Lease);
            } else if self.may_start(at, now) {
                self.start(at);
            } else {
                self.not_started(at, NotStarted::Deadline);
            }
        }
        if self.alone.is_none() {
            self.claim_ready(now);
        }
        while self.is_idle()
            && let Some(at) = self.suspects.pop_front()
        {
            if self.may_start(at, now) {
                self.alone = Some(at);
                self.claim(vec![at], now);
            } else {
                self.finish(at, Outcome::Returned(NotStarted::Deadline));
            }
        }
    }

    fn wake(&mut self, now: Timestamp) {
        while let Some(at) = self.asleep.pop_due(now) {
            self.to_claim.push_back(at);
        }
    }

    /// Whether nothing is under way but waiting.
    fn is_idle(&self) -> bool {
        self.alone.is_none()
            && self.running.is_empty()
            && self.claims == 0
            && self.ready.is_empty()
            && self.to_claim.is_empty()
            && self.settles.is_empty()
    }

    /// Whether a record may start now. The first one always may: otherwise one that is expected to
    /// take long never would. Not so after a wait for another worker: next time it need not wait,
    /// and would only be cut off now, with its key locked.
    fn may_start(&self, at: usize, now: Timestamp) -> bool {
        let waited = self.entries.get(at).is_some_and(Entry::has_waited);
        let in_time = match (self.starts, waited) {
            (0, false) => true,
            (0, true) => self.budget.allows_late(now, self.pace),
            _ => self.budget.allows(now, self.pace),
        };
        self.closed.is_none() && in_time
    }

    fn claim_ready(&mut self, now: Timestamp) {
        if self.starts > 0 && !self.budget.allows(now, self.pace) {
            // Who waits for another worker's result can have it still.
            let (waited, fresh): (Vec<_>, Vec<_>) = std::mem::take(&mut self.to_claim)
                .into_iter()
                .partition(|at| self.entries.get(*at).is_some_and(Entry::has_waited));
            self.to_claim = waited.into();
            for at in fresh {
                self.finish(at, Outcome::Returned(NotStarted::Deadline));
            }
        }
        // Again, because those who follow another invocation take no room.
        while !self.to_claim.is_empty() {
            let room = CLAIM_AHEAD.saturating_sub(self.claims + self.ready.len());
            // Of many, not one at a time as room comes free.
            if room < self.to_claim.len().min(CLAIM_AHEAD / 2) {
                return;
            }
            let next = self.to_claim.drain(..room.min(self.to_claim.len())).collect();
            self.claim(next, now);
        }
    }

    fn claim(&mut self, records: Vec<usize>, now: Timestamp) {
        let mut wanted = Vec::with_capacity(records.len());
        let mut known = Vec::new();
        for at in records {
            let alone = self.alone == Some(at);
            let Some(key) = self.entry(at).key.clone() else { continue };
            match (self.join(at, &key, now), Owner::random()) {
                (Boarded::Follows, _) => continue,
                (Boarded::Knows(claimed), _) => known.push(Answer { at, claimed, seen: None }),
                (Boarded::Leads, Ok(owner)) => {
                    let claim = self.claim_by(owner, at, now);
                    let look_first = alone || self.entry(at).looks > 0;
                    wanted.push(Wanted { at, key, claim, look_first, from_lost_attempt: alone });
                }
                (Boarded::Leads, Err(error)) => {
                    let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
                    let claimed = Claimed::Unavailable(error);
                    known.push(Answer { at, claimed, seen: None });
                }
            }
            self.entry(at).stage = Stage::Claiming;
        }
        self.claims += wanted.len() + known.len();
        if !known.is_empty() {
            self.claiming.push(Box::pin(future::ready(known)));
        }
        if !wanted.is_empty() {
            let deadline = self.budget.claim_deadline(now);
            let last = self.budget.doubt_deadline(deadline);
            let (store, clock) = (Arc::clone(&self.engine.store), Arc::clone(&self.engine.clock));
            self.claiming.push(Box::pin(claims::claim(store, clock, wanted, deadline, last)));
        }
    }

    fn start(&mut self, at: usize) {
        let stop = self.budget.stop();
        let clock = Arc::clone(&self.engine.clock);
        let entry = self.entry(at);
        let Some(job) = entry.job.take() else { return };
        let record = entry.held.as_ref().map(|held| &held.record);
        let history = record.map_or_else(|| History::none(clock.now()), History::of);
        let lease = record.and_then(|record| record.lease_until);
        let subject = Subject { key: entry.key.clone(), identity: entry.identity.clone() };
        let call = Call::new(subject, entry.record.clone(), history, stop, Arc::clone(&clock));
        let due = Due { job, call, latest: Latest { lease, stop }, clock };
        let (handler, handle) = Handler::new(at, due);
        entry.handler = Some(handle);
        entry.stage = Stage::Running;
        self.starts += 1;
        self.running.push(handler);
    }
}
