//! Claims with a mistake.

use std::time::Duration;

use lambda_idempotency_core::{
    admission::{Admission, Claim, admit},
    clock::Timestamp,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion},
};

use crate::protocol::Decisions;

/// Takes over as soon as the lease has expired by its own clock.
pub(crate) struct NoClockSkew;

impl Decisions for NoClockSkew {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        let hasty = Claim { clock_skew: Duration::ZERO, ..claim.clone() };
        with_claim(claim, admit(&hasty, found, now))
    }
}

/// Takes over at the last instant of the lease, clock skew included, instead of after it.
pub(crate) struct LastInstant;

impl Decisions for LastInstant {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        match admit(claim, found, now) {
            Admission::Busy { until } if now == until => {
                admit(claim, found, now.plus(Duration::from_millis(1)))
            }
            other => other,
        }
    }
}

/// Does not recognise its own token.
pub(crate) struct IgnoresItsToken;

impl Decisions for IgnoresItsToken {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        let stranger = Claim { owner: Owner::from_bits(u128::MAX), ..claim.clone() };
        match admit(&stranger, found, now) {
            Admission::Try { .. } => admit(claim, found, now),
            other => other,
        }
    }
}

/// Sets a record's expiry from the retention alone, however long the lease.
pub(crate) struct ExpiresBeforeItsLease;

impl Decisions for ExpiresBeforeItsLease {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        with_record(admit(claim, found, now), |record| {
            record.expires_at = now.plus(claim.retention);
        })
    }
}

/// Lets a record expire with its lease: a server whose clock is ahead collects it too soon.
pub(crate) struct ExpiresWithItsLease;

impl Decisions for ExpiresWithItsLease {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        with_record(admit(claim, found, now), |record| {
            record.expires_at = now.plus(claim.retention).max(claim.lease_until);
        })
    }
}

/// Writes no lease: the key is locked until the record expires.
pub(crate) struct LocksUntilExpiry;

impl Decisions for LocksUntilExpiry {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        with_record(admit(claim, found, now), |record| record.lease_until = None)
    }
}

/// Sets the count of failed attempts to zero in a takeover.
pub(crate) struct ForgetsFailedAttempts;

impl Decisions for ForgetsFailedAttempts {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        with_record(admit(claim, found, now), |record| record.failed_attempts = 0)
    }
}

/// Does not count an owner that disappeared.
pub(crate) struct ForgetsLostAttempts;

impl Decisions for ForgetsLostAttempts {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        with_record(admit(claim, found, now), |record| record.lost_attempts = 0)
    }
}

/// Claims a key anew although it is completed.
pub(crate) struct RunsCompletedAgain;

impl Decisions for RunsCompletedAgain {
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        match (found, admit(claim, found, now)) {
            (Some(found), Admission::Replay(_)) if found.status == Status::Completed => {
                let Admission::Try { held, .. } = admit(claim, None, now) else {
                    unreachable!("without a record, a claim is always tried");
                };
                Admission::Try { guard: Guard::Unchanged(RecordVersion::of(found)), held }
            }
            (_, other) => other,
        }
    }
}

fn with_record(mut admission: Admission, change: impl FnOnce(&mut IdempotencyRecord)) -> Admission {
    if let Admission::Try { held, .. } = &mut admission {
        change(&mut held.record);
    }
    admission
}

fn with_claim(claim: &Claim, mut admission: Admission) -> Admission {
    if let Admission::Try { held, .. } | Admission::Won(held) = &mut admission {
        held.claim = claim.clone();
    }
    admission
}
