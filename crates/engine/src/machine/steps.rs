//! What follows when a step of a handler has ended: its result is written with a renewal of the lease, and the
//! handler goes on when the store has it.
//!
//! The claim knows all steps that have ended, so whatever is written of it meanwhile carries them: a release
//! after a failure, or that the handler was stopped.

use super::{
    lease::Leases,
    rule::{Next, Step},
};
use lambda_idempotency_core::{
    record::{IdempotencyRecord, Json},
    store::StoreError,
};

/// Steps of a running handler have ended; `steps` is the text of all that ended in any attempt.
pub(super) fn ended(step: &mut Step<'_, '_>, leases: &mut Leases, steps: Json) -> Next {
    step.entry.set_steps(steps);
    if let Some(held) = step.entry.held() {
        leases.write_steps(step.at, held, step.now);
    }
    Next::Stay
}

/// The store has this record: steps that are in it will be known to every later attempt.
pub(super) fn stored(step: &mut Step<'_, '_>, leases: &mut Leases, record: &IdempotencyRecord) {
    if let Some(steps) = &record.steps {
        step.host.steps_stored(step.at, steps);
    }
    if let Some(held) = step.entry.held().filter(|held| held.record.steps != record.steps) {
        leases.write_steps(step.at, held, step.now);
    }
}

/// A renewal was refused. If waiting does not help, steps that wait for it are told so.
pub(super) fn refused(step: &mut Step<'_, '_>, error: &StoreError) {
    if !error.is_transient() {
        step.host.steps_refused(step.at, error);
    }
}
