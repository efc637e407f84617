//! Answers that come too early, or from another payload or application.

use lambda_idempotency_core::{
    admission::{Admission, Claim, Held, Settled, Settlement, admit},
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};

use crate::protocol::Decisions;

/// Tells a waiting worker that the key is free when the lease ends, without the clock skew.
pub(crate) struct PromisesTooSoon;

impl Decisions for PromisesTooSoon {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        match (admit(claim, found, now), found) {
            (Admission::Busy { .. }, Some(IdempotencyRecord { lease_until: Some(until), .. })) => {
                Admission::Busy { until: *until }
            }
            (other, _) => other,
        }
    }
}

/// Answers a delivery from the record of its key, whatever payload that was completed with.
pub(crate) struct AnswersAnyPayload;

impl Decisions for AnswersAnyPayload {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        match (admit(claim, found, now), found) {
            (Admission::Mismatch { .. }, Some(found)) => Admission::Replay(found.result.clone()),
            (other, _) => other,
        }
    }
}

/// Takes a successor's result for its own, although it is the result of another payload.
pub(crate) struct TakesAnyResult;

impl Decisions for TakesAnyResult {
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        let mut held = held.clone();
        held.claim.fingerprint = found.and_then(|found| found.fingerprint.clone());
        held.settled(settlement, found, now)
    }
}

/// Answers a delivery from the record of its key, whichever application owns that record.
pub(crate) struct AnswersAnyApplication;

impl Decisions for AnswersAnyApplication {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        match (admit(claim, found, now), found) {
            (Admission::Foreign { .. }, Some(found)) if found.status == Status::Completed => {
                Admission::Replay(found.result.clone())
            }
            (other, _) => other,
        }
    }
}

/// Takes the result of another application's claim for its own.
pub(crate) struct TakesAnyApplicationsResult;

impl Decisions for TakesAnyApplicationsResult {
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        let mut held = held.clone();
        held.claim.application = found.and_then(|found| found.application.clone());
        held.settled(settlement, found, now)
    }
}

/// Counts an owner that disappeared as a failure, which can fail the key permanently.
pub(crate) struct BlamesLostAttempts;

impl Decisions for BlamesLostAttempts {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        let mut admission = admit(claim, found, now);
        if let (Admission::Try { held, .. }, Some(found)) = (&mut admission, found) {
            held.record.failed_attempts +=
                held.record.lost_attempts.saturating_sub(found.lost_attempts);
        }
        admission
    }
}
