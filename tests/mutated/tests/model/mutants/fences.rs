//! Fences that do not rise.

use lambda_idempotency_core::admission::{Admission, Settlement, admit};

use crate::protocol::{Protocol, REAL};

/// Takes each fence from the clock alone.
pub(crate) const FENCES_BY_THE_CLOCK: Protocol = Protocol {
    admit: |claim, found, now| {
        let mut admission = admit(claim, found, now);
        if let Admission::Try { held, .. } = &mut admission {
            held.record.fence = now.as_millis();
        }
        admission
    },
    ..REAL
};

/// Restarts the fence at one with each takeover.
pub(crate) const FENCES_FROM_ONE: Protocol = Protocol {
    admit: |claim, found, now| {
        let mut admission = admit(claim, found, now);
        if let Admission::Try { held, .. } = &mut admission {
            held.record.fence = 1;
        }
        admission
    },
    ..REAL
};

/// Releases a key without its fence.
pub(crate) const RELEASES_THE_FENCE: Protocol = Protocol {
    write: |held, settlement, now| {
        let (guard, mut record) = held.write(settlement, now);
        if let (Settlement::Release { .. } | Settlement::Undo, Some(record)) =
            (settlement, &mut record)
        {
            record.fence = 0;
        }
        (guard, record)
    },
    ..REAL
};
