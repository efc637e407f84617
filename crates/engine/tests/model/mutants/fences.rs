//! Fences that do not rise.

use lambda_idempotency_core::{
    admission::{Admission, Claim, Held, Settlement, admit},
    clock::Timestamp,
    record::IdempotencyRecord,
    store::Guard,
};

use crate::protocol::Decisions;

/// Takes each fence from the clock alone.
pub(crate) struct FencesByTheClock;

impl Decisions for FencesByTheClock {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        let mut admission = admit(claim, found, now);
        if let Admission::Try { held, .. } = &mut admission {
            held.record.fence = now.as_millis();
        }
        admission
    }
}

/// Restarts the fence at one with each takeover.
pub(crate) struct FencesFromOne;

impl Decisions for FencesFromOne {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        let mut admission = admit(claim, found, now);
        if let Admission::Try { held, .. } = &mut admission {
            held.record.fence = 1;
        }
        admission
    }
}

/// Releases a key without its fence.
pub(crate) struct ReleasesTheFence;

impl Decisions for ReleasesTheFence {
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let (guard, mut record) = held.write(settlement, now);
        if let (Settlement::Release { .. } | Settlement::Undo, Some(record)) =
            (settlement, &mut record)
        {
            record.fence = 0;
        }
        (guard, record)
    }
}
