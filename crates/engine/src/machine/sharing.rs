//! Single flight and the cache: what this invocation shares with others of its process.

use std::{sync::Arc, time::Duration};

use super::{Machine, Present, entry::Stage, host::Join, waiting::pause, wanted::Claimed};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::{Claim, admit},
    clock::Timestamp,
    outcome::Outcome,
    record::{IdempotencyRecord, Owner, Provenance},
};

/// What this process knows of a key before it is claimed in the store.
pub(super) enum Shared {
    /// Nothing: the record leads.
    Leads,
    /// There is no need to claim.
    Knows(Claimed),
    /// Another invocation has the key; the record waits, or has its outcome.
    Follows,
}

impl Machine<'_> {
    /// Asks for the key of a record in this process.
    ///
    /// The lead lasts as long as this invocation can hold the key, renewed or not. The cache is read after
    /// that, so that it contains what the last leader learned.
    pub(super) fn share(&mut self, at: usize, present: &mut Present<'_>) -> Shared {
        let now = present.now;
        let Some(key) = self.records.get(at).and_then(|entry| entry.key()) else {
            return Shared::Leads;
        };
        let until = self.leases.terms().end().plus(self.setting.policy.clock_skew);
        if let Join::Follows { until, holds } = present.host.join(at, key, now, until) {
            return self.follow(at, until, holds, present);
        }
        let known = present.host.known(key, now);
        let known = known.and_then(|record| self.judge(at, &record, now));
        // A cached mismatch would put the record aside. If its idempotency record was deleted since,
        // it is to be processed, so the store is asked.
        let can_be_put_aside =
            self.records.get(at).is_some_and(|entry| entry.ask().can_be_put_aside);
        let known = known
            .filter(|claimed| !matches!(claimed, Claimed::Mismatch { .. }) || !can_be_put_aside);
        known.map_or(Shared::Leads, Shared::Knows)
    }

    /// Waits until the leader ends, for as long as the policy allows.
    fn follow(
        &mut self,
        at: usize,
        until: Timestamp,
        holds: bool,
        present: &mut Present<'_>,
    ) -> Shared {
        let now = present.now;
        let conflict = self.conflict(at);
        let entry = self.records.at(at);
        let since = entry.met_busy(now);
        let past = until.plus(Duration::from_millis(1));
        let limit = conflict.follows_until(since);
        let mut wake = past;
        if conflict.skips() && !holds {
            // A leader without a claim may fail to get one, and one that is being returned gives its claim up.
            // If this record were acknowledged because of such a leader, the record could be lost. So it
            // asks again until the leader has a claim.
            if now >= limit {
                self.finish(at, Outcome::Busy { until }, present);
                return Shared::Follows;
            }
            wake = now.plus(pause(0));
        } else if conflict.skips() || now >= limit {
            return Shared::Knows(Claimed::Busy { until, is_given_up: false });
        }
        entry.enter(Stage::Waiting);
        self.quarantine.leave(at);
        self.waiting.add(at, limit.min(wake).min(past), until, now);
        Shared::Follows
    }

    /// The leader has ended: the record is answered from what the leader knew, or is claimed.
    pub(super) fn leader_done(
        &mut self,
        at: usize,
        record: Option<Arc<IdempotencyRecord>>,
        present: &mut Present<'_>,
    ) {
        // A timer may have woken it before, and then it is being claimed already.
        if !self.waiting.remove(at) && keeps(Rule::WakesAFollowerOnce) {
            return;
        }
        self.records.at(at).enter(Stage::Claiming);
        match record.and_then(|record| self.judge(at, &record, present.now)) {
            Some(claimed) => self.claimed(at, claimed, present),
            None => self.starts.add_claim(at),
        }
    }

    /// Passes a record that was read in the store to the other invocations of this process.
    pub(super) fn learn(
        &mut self,
        at: usize,
        seen: Option<IdempotencyRecord>,
        present: &mut Present<'_>,
    ) {
        let key = self.records.get(at).and_then(|entry| entry.key());
        if let (Some(key), Some(record)) = (key, seen) {
            present.host.learn(at, key, record, present.now);
        }
    }

    /// The answer to a claim that finds this record; `None` if the claim has to be sent.
    fn judge(&self, at: usize, record: &IdempotencyRecord, now: Timestamp) -> Option<Claimed> {
        let no_owner = Owner::from_bits(0);
        let admission = admit(&self.claim_by(no_owner, at, now, None), Some(record), now);
        match Claimed::of(admission, Some(record)) {
            Ok(Claimed::Held(_)) | Err(_) => None,
            Ok(claimed) => Some(claimed),
        }
    }

    /// The claim that a record makes now.
    pub(super) fn claim_by(
        &self,
        owner: Owner,
        at: usize,
        now: Timestamp,
        provenance: Option<Provenance>,
    ) -> Claim {
        let ask = self.records.get(at).map(|entry| entry.ask());
        Claim {
            owner,
            lease_until: self.leases.terms().lease_until(now),
            retention: self.setting.policy.retention,
            clock_skew: self.setting.policy.clock_skew,
            fingerprint: ask.and_then(|ask| ask.fingerprint.clone()),
            application: self.setting.application.clone(),
            provenance,
            payload: ask.and_then(|ask| ask.kept.clone()),
        }
    }
}
