//! Answers the machine's questions from the user's code and the state that the process shares.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance, Status},
    store::StoreError,
};
use lambda_idempotency_keys::Key;

use super::Surroundings;
use crate::machine::Host;

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

    fn learn(&mut self, key: &Key, mut record: IdempotencyRecord, now: Timestamp) {
        if record.status == Status::Completed && record.outbox.is_none() {
            // It is not written again, and is kept for long: where its claim came from is for people.
            record.provenance = None;
        }
        self.parts.completed.keep(key, &Arc::new(record), now);
    }

    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        let known = self.parts.completed.get(key, now);
        self.cache_hits += usize::from(known.is_some());
        known
    }

    fn renewed(&mut self, at: usize, lease_until: Timestamp) {
        if let Some(handler) = self.slot(at).handler {
            self.running.renewed(handler, lease_until);
        }
    }

    fn steps_stored(&mut self, at: usize, steps: &Json) {
        if let Some(shared) = &self.slot(at).shared {
            shared.steps_are_in_store(steps);
        }
    }

    fn steps_refused(&mut self, at: usize, error: &StoreError) {
        if let Some(shared) = &self.slot(at).shared {
            shared.steps_are_refused(error);
        }
    }

    fn stop(&mut self, at: usize) -> Option<Timestamp> {
        let handler = self.slot(at).handler.take()?;
        self.running.stop(handler)
    }
}
