//! The host of a machine: tokens, the state that its process shares, and the stop of handlers.
//!
//! The invocations of a process share the completed keys, as `engine::completed` has them.

use std::{sync::Arc, time::Duration};

use crate::core::{
    clock::Timestamp,
    key::Key,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance, Status},
    store::StoreError,
};

use crate::{
    machine::Host,
    setup::Setup,
    world::{Own, Step, World},
};

/// The surroundings of one machine.
pub(crate) struct Surroundings<'w> {
    pub(crate) setup: &'w Setup,
    pub(crate) world: &'w mut World,
    pub(crate) own: &'w mut Own,
}

impl Host for Surroundings<'_> {
    fn owner(&mut self) -> Result<Owner, EntropyError> {
        Ok(self.own.token())
    }

    /// Nothing depends on it, so it is not part of the state.
    fn provenance(&self, _: usize, _: Timestamp) -> Option<Provenance> {
        None
    }

    fn pace(&self) -> Duration {
        self.setup.takes
    }

    fn took(&mut self, _: Duration) {}

    fn learn(&mut self, key: &Key, record: &IdempotencyRecord, _: Timestamp) {
        if record.status == Status::Completed && record.outbox.is_none() {
            let key = self.setup.key(key);
            self.world.processes[self.own.process].completed[key] = Some(Arc::new(record.clone()));
        }
    }

    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        let known = self.world.processes[self.own.process].completed[self.setup.key(key)].clone();
        known.filter(|record| now <= record.expires_at)
    }

    fn renewed(&mut self, at: usize, lease_until: Timestamp) {
        if let Some(handler) = self.own.running.iter_mut().find(|handler| handler.at == at) {
            handler.lease = Some(lease_until);
        }
    }

    fn steps_stored(&mut self, at: usize, _: &Json) {
        if let Some(handler) = self.own.running.iter_mut().find(|handler| handler.at == at) {
            handler.step = Step::Stored;
            let key = self.setup.messages[self.own.records[at]].key;
            self.world.steps_relied_on[key] = true;
        }
    }

    fn steps_refused(&mut self, _: usize, _: &StoreError) {
        // The store of the model throttles, which is tried again.
    }

    fn stop(&mut self, at: usize) -> Option<Timestamp> {
        let place = self.own.running.iter().position(|handler| handler.at == at)?;
        let handler = self.own.running.remove(place);
        self.setup.witness.saw("stopped handler");
        if let Some(held) = &handler.held {
            let key = self.setup.messages[self.own.records[at]].key;
            // The lease may have been renewed since.
            let stored = self.world.store[key].as_ref();
            let renewed = stored.filter(|record| record.owner == Some(held.claim.owner));
            let lease = renewed.unwrap_or(&held.record).lease_until.unwrap_or(Timestamp::EPOCH);
            let lingering = &mut self.world.lingering[key];
            *lingering = lease.max(*lingering);
        }
        Some(handler.since)
    }
}
