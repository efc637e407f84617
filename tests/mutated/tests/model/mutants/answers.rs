//! Answers that come too early, or from another payload or application.

use lambda_idempotency_core::{
    admission::{Admission, admit},
    record::{IdempotencyRecord, Status},
};

use crate::protocol::{Protocol, REAL};

/// Takes a key for completed because another worker holds it.
pub(crate) const ACKNOWLEDGES_BUSY: Protocol = Protocol {
    admit: |claim, found, now| match admit(claim, found, now) {
        Admission::Busy { .. } => Admission::Replay(None),
        other => other,
    },
    ..REAL
};

/// Tells a waiting worker that the key is free when the lease ends, without the clock skew.
pub(crate) const PROMISES_TOO_SOON: Protocol = Protocol {
    admit: |claim, found, now| match (admit(claim, found, now), found) {
        (Admission::Busy { .. }, Some(IdempotencyRecord { lease_until: Some(until), .. })) => {
            Admission::Busy { until: *until }
        }
        (other, _) => other,
    },
    ..REAL
};

/// Answers a delivery from the record of its key, whatever payload that was completed with.
pub(crate) const ANSWERS_ANY_PAYLOAD: Protocol = Protocol {
    admit: |claim, found, now| match (admit(claim, found, now), found) {
        (Admission::Mismatch { .. }, Some(found)) => Admission::Replay(found.result.clone()),
        (other, _) => other,
    },
    ..REAL
};

/// Takes a successor's result for its own, although it is the result of another payload.
pub(crate) const TAKES_ANY_RESULT: Protocol = Protocol {
    settled: |held, settlement, found, now| {
        let mut held = held.clone();
        held.claim.fingerprint = found.and_then(|found| found.fingerprint.clone());
        held.settled(settlement, found, now)
    },
    ..REAL
};

/// Answers a delivery from the record of its key, whichever application owns that record.
pub(crate) const ANSWERS_ANY_APPLICATION: Protocol = Protocol {
    admit: |claim, found, now| match (admit(claim, found, now), found) {
        (Admission::Foreign { .. }, Some(found)) if found.status == Status::Completed => {
            Admission::Replay(found.result.clone())
        }
        (other, _) => other,
    },
    ..REAL
};

/// Takes the result of another application's claim for its own.
pub(crate) const TAKES_ANY_APPLICATIONS_RESULT: Protocol = Protocol {
    settled: |held, settlement, found, now| {
        let mut held = held.clone();
        held.claim.application = found.and_then(|found| found.application.clone());
        held.settled(settlement, found, now)
    },
    ..REAL
};

/// Counts an owner that disappeared as a failure, which can fail the key permanently.
pub(crate) const BLAMES_LOST_ATTEMPTS: Protocol = Protocol {
    admit: |claim, found, now| {
        let mut admission = admit(claim, found, now);
        if let (Admission::Try { held, .. }, Some(found)) = (&mut admission, found) {
            held.record.failed_attempts +=
                held.record.lost_attempts.saturating_sub(found.lost_attempts);
        }
        admission
    },
    ..REAL
};
