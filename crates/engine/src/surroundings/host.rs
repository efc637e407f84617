//! Answers the machine's questions from the user's code and the state that the process shares.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    contained::Contained,
    outcome::DivertReason,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance, Status},
    store::StoreError,
};
use lambda_idempotency_keys::Key;

use super::{Slot, Surroundings};
use crate::{
    machine::{Host, Join},
    process::Joined,
};

impl Host for Surroundings<'_> {
    fn owner(&mut self) -> Result<Owner, EntropyError> {
        Owner::random()
    }

    fn provenance(&self, at: usize, now: Timestamp) -> Option<Provenance> {
        let record = &self.slots.get(at)?.record;
        let provenance = Provenance::new(now, Arc::clone(&self.worker));
        Some(provenance.with_record(record.source, Arc::clone(record.shown())))
    }

    fn pace(&self) -> Duration {
        self.pace.estimate()
    }

    fn took(&mut self, took: Duration) {
        self.pace.learn(took);
    }

    fn join(&mut self, at: usize, key: &Key, now: Timestamp, until: Timestamp) -> Join {
        if self.slot(at).leader.is_some() {
            return Join::Leads;
        }
        match self.parts.single_flight.join(key, now, until) {
            Joined::Leader(leader) => {
                self.slot(at).leader = Some(leader);
                Join::Leads
            }
            Joined::Follower(follower) => {
                let (until, holds) = (follower.until(), follower.leader_holds());
                let done = async move { (at, follower.finished().await) };
                self.following.get_or_insert_default().push(Box::pin(done));
                Join::Follows { until, holds }
            }
        }
    }

    fn holds(&mut self, at: usize) {
        if let Some(leader) = &mut self.slot(at).leader {
            leader.holds();
        }
    }

    fn returns(&mut self, at: usize) {
        if let Some(leader) = &self.slot(at).leader {
            leader.returns();
        }
    }

    fn leave(&mut self, at: usize) {
        self.slot(at).leader = None;
    }

    fn learn(&mut self, at: usize, key: &Key, mut record: IdempotencyRecord, now: Timestamp) {
        if record.status == Status::Completed && record.outbox.is_none() {
            // It is not written again, and is kept for long: where its claim came from is for people.
            record.provenance = None;
        }
        let record = Arc::new(record);
        self.parts.completed.keep(key, &record, now);
        // The result could not be read now. Its writer has it, and who waits for the key asks the store.
        let is_whole = record.unread_result.is_none();
        let is_known = is_whole && !self.parts.completed.is_freed(key, &record);
        if let Some(leader) = self.slot(at).leader.as_mut().filter(|_| is_known) {
            leader.learn(record);
        }
    }

    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        let known = self.parts.completed.get(key, now);
        self.cache_hits += usize::from(known.is_some());
        known
    }

    fn put_aside(
        &mut self,
        at: usize,
        aside: usize,
        reason: DivertReason,
        fence: Option<u64>,
    ) -> Option<Key> {
        debug_assert_eq!(
            aside,
            self.slots.len(),
            "the slot of a record that is put aside is added last"
        );
        let slot = self.slot(at);
        let work = (slot.divert.take()?)(reason, fence);
        let (record, delivered) = (slot.record.clone(), slot.delivered.clone());
        let key = work.key.clone();
        self.slots.push(Slot {
            record,
            delivered,
            key: Some(work.key),
            identity: None,
            job: Contained::new(work.job),
            divert: None,
            is_aside: true,
            handler: None,
            times: (None, None),
            leader: None,
            outcome: None,
        });
        Some(key)
    }

    fn renewed(&mut self, at: usize, lease_until: Timestamp) {
        if let Some(handler) = self.slot(at).handler {
            self.running.renewed(handler, lease_until);
        }
    }

    fn steps_stored(&mut self, at: usize, steps: &Json) {
        if let Some(shared) = &self.shared {
            shared.steps_are_in_store(at, steps);
        }
    }

    fn steps_refused(&mut self, at: usize, error: &StoreError) {
        if let Some(shared) = &self.shared {
            shared.steps_are_refused(at, error);
        }
    }

    fn withdraw(&mut self, at: usize) -> bool {
        let Some(handler) = self.slot(at).handler else { return false };
        let withdrawn = self.running.withdraw(handler);
        if withdrawn {
            self.slot(at).handler = None;
        }
        withdrawn
    }

    fn stop(&mut self, at: usize) -> Option<Timestamp> {
        let handler = self.slot(at).handler.take()?;
        self.running.stop(handler)
    }
}
