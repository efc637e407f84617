//! What this invocation has in common with others of its process: see [`process`](crate::process).

use std::{sync::Arc, time::Duration};

use super::{claims::Claimed, drive::Drive, entry::Stage};
use crate::process::{Follower, Joined};
use lambda_idempotency_core::{
    admission::{Claim, admit},
    clock::Timestamp,
    policy::OnConflict,
    record::{IdempotencyRecord, Owner},
};
use lambda_idempotency_keys::Key;

/// How long [`OnConflict::Return`] follows another invocation of this process.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who followed, and what its leader knew.
pub(super) type Landed = (usize, Option<Arc<IdempotencyRecord>>);

/// What stands before a claim in the store.
pub(super) enum Boarded {
    /// Nothing: the record leads.
    Leads,
    /// There is no need to claim.
    Knows(Claimed),
    /// Another invocation has the key; the record is asleep.
    Follows,
}

impl Drive<'_> {
    /// Boards the key of a record that is about to be claimed.
    ///
    /// The place it gets lasts as long as this invocation can hold the key, renewed or not. Memory is
    /// asked only then: what the last leader learned is there by now.
    pub(super) fn join(&mut self, at: usize, key: &Key, now: Timestamp) -> Boarded {
        let engine = self.engine;
        if self.entry(at).lead.is_none() {
            let until = self.ceiling(now).plus(self.policy.clock_skew);
            match engine.single_flight.join(key, now, until) {
                Joined::Leader(lead) => self.entry(at).lead = Some(lead),
                Joined::Follower(follow) => return self.follow(at, follow, now),
            }
        }
        let known = engine.completed.get(key, now);
        let known = known.and_then(|record| self.judge(at, &record, now));
        // By this it would be acknowledged; whoever has deleted the record since wants it processed.
        let known = known.filter(|claimed| {
            !matches!(claimed, Claimed::Mismatch { .. }) || self.entry(at).divert.is_none()
        });
        known.map_or(Boarded::Leads, Boarded::Knows)
    }

    /// Lies down until the leader is through, for as long as the policy allows.
    fn follow(&mut self, at: usize, follow: Follower, now: Timestamp) -> Boarded {
        let until = follow.until();
        let entry = self.entry(at);
        entry.stage = Stage::Moving;
        let since = *entry.busy_since.get_or_insert(now);
        let limit = match self.conflict(at) {
            OnConflict::Skip => now,
            OnConflict::Wait { up_to } => since.plus(up_to),
            _ => since.plus(PATIENCE),
        };
        if now >= limit {
            return Boarded::Knows(Claimed::Busy { until });
        }
        if self.alone == Some(at) {
            self.alone = None;
        }
        let wake = limit.min(until.plus(Duration::from_millis(1)));
        self.asleep.add(at, wake, until);
        self.following.push(Box::pin(async move { (at, follow.finished().await) }));
        Boarded::Follows
    }

    /// The leader is through: the record is answered by what that one knew, or tries for itself.
    pub(super) fn landed(&mut self, at: usize, record: Option<Arc<IdempotencyRecord>>) {
        // The clock may have been first.
        if !self.asleep.remove(at) {
            return;
        }
        match record.and_then(|record| self.judge(at, &record, self.now())) {
            Some(claimed) => self.claimed(at, claimed),
            None => self.to_claim.push_back(at),
        }
    }

    /// What was seen in the store, for the others of this process.
    pub(super) fn learn(&mut self, at: usize, seen: Option<IdempotencyRecord>) {
        let (engine, now) = (self.engine, self.now());
        let entry = self.entry(at);
        let (Some(key), Some(record)) = (&entry.key, seen.map(Arc::new)) else { return };
        engine.completed.keep(key, &record, now);
        if let Some(lead) = &mut entry.lead {
            lead.learn(record);
        }
    }

    /// What a claim would be answered by this record, as if it had just been read; `None` if it would
    /// have to be tried.
    fn judge(&self, at: usize, record: &IdempotencyRecord, now: Timestamp) -> Option<Claimed> {
        let nobody = Owner::from_bits(0);
        match Claimed::of(admit(&self.claim_by(nobody, at, now), Some(record), now)) {
            Ok(Claimed::Held(_)) | Err(_) => None,
            Ok(claimed) => Some(claimed),
        }
    }

    /// The claim that a record makes now.
    pub(super) fn claim_by(&self, owner: Owner, at: usize, now: Timestamp) -> Claim {
        Claim {
            owner,
            lease_until: self.lease_until(now),
            retention: self.policy.retention,
            clock_skew: self.policy.clock_skew,
            fingerprint: self.entries.get(at).and_then(|entry| entry.fingerprint.clone()),
            application: self.engine.application.clone(),
        }
    }
}
