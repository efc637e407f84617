//! What follows when a step of a handler has ended: its result is written with a renewal of the lease, and the
//! handler goes on when the store has it.
//!
//! The claim knows all steps that have ended, so whatever is written of it meanwhile carries them: a release
//! after a failure, or that the handler was stopped.

use super::{Machine, Present, entry::Stage};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    record::{IdempotencyRecord, Json},
    store::StoreError,
};

impl Machine<'_> {
    /// Steps of a running handler have ended; `steps` is the text of all that ended in any attempt.
    pub(super) fn steps_ended(&mut self, at: usize, steps: Json, present: &mut Present<'_>) {
        let entry = self.records.at(at);
        // It may have been stopped just now.
        if entry.stage() != Stage::Running {
            return;
        }
        if !keeps(Rule::StepsWaitForTheStore) {
            present.host.steps_stored(at, &steps);
        }
        entry.set_steps(steps);
        if let Some(held) = entry.held() {
            self.leases.write_steps(at, held, present.now);
        }
    }

    /// The store has this record: steps that are in it will be known to every later attempt.
    pub(super) fn steps_stored(
        &mut self,
        at: usize,
        record: &IdempotencyRecord,
        present: &mut Present<'_>,
    ) {
        if let Some(steps) = &record.steps {
            present.host.steps_stored(at, steps);
        }
        let held = self.records.get(at).and_then(|entry| entry.held());
        if let Some(held) = held.filter(|held| held.record.steps != record.steps) {
            self.leases.write_steps(at, held, present.now);
        }
    }

    /// A renewal was refused. If waiting does not help, steps that wait for it are told so.
    pub(super) fn steps_refused(
        &mut self,
        at: usize,
        error: &StoreError,
        present: &mut Present<'_>,
    ) {
        if !error.is_transient() {
            present.host.steps_refused(at, error);
        }
    }
}
