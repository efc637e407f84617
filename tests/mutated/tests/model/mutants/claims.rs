//! Claims with a mistake.

use std::time::Duration;

use lambda_idempotency_core::{
    admission::{Admission, Claim, admit},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion},
};

use crate::protocol::{Protocol, REAL};

/// Takes over as soon as the lease has expired by its own clock.
pub(crate) const NO_CLOCK_SKEW: Protocol = Protocol {
    admit: |claim, found, now| {
        let hasty = Claim { clock_skew: Duration::ZERO, ..claim.clone() };
        with_claim(claim, admit(&hasty, found, now))
    },
    ..REAL
};

/// Takes over at the last instant of the lease, clock skew included, instead of after it.
pub(crate) const LAST_INSTANT: Protocol = Protocol {
    admit: |claim, found, now| match admit(claim, found, now) {
        Admission::Busy { until } if now == until => {
            admit(claim, found, now.plus(Duration::from_millis(1)))
        }
        other => other,
    },
    ..REAL
};

/// Does not recognise its own token.
pub(crate) const IGNORES_ITS_TOKEN: Protocol = Protocol {
    admit: |claim, found, now| {
        let stranger = Claim { owner: Owner::from_bits(u128::MAX), ..claim.clone() };
        match admit(&stranger, found, now) {
            Admission::Try { .. } => admit(claim, found, now),
            other => other,
        }
    },
    ..REAL
};

/// Sets a record's expiry from the retention alone, however long the lease.
pub(crate) const EXPIRES_BEFORE_ITS_LEASE: Protocol = Protocol {
    admit: |claim, found, now| {
        with_record(admit(claim, found, now), |record| {
            record.expires_at = now.plus(claim.retention);
        })
    },
    ..REAL
};

/// Lets a record expire with its lease: a server whose clock is ahead collects it too soon.
pub(crate) const EXPIRES_WITH_ITS_LEASE: Protocol = Protocol {
    admit: |claim, found, now| {
        with_record(admit(claim, found, now), |record| {
            record.expires_at = now.plus(claim.retention).max(claim.lease_until);
        })
    },
    ..REAL
};

/// Writes no lease: the key is locked until the record expires.
pub(crate) const LOCKS_UNTIL_EXPIRY: Protocol = Protocol {
    admit: |claim, found, now| {
        with_record(admit(claim, found, now), |record| record.lease_until = None)
    },
    ..REAL
};

/// Sets the count of failed attempts to zero in a takeover.
pub(crate) const FORGETS_FAILED_ATTEMPTS: Protocol = Protocol {
    admit: |claim, found, now| {
        with_record(admit(claim, found, now), |record| record.failed_attempts = 0)
    },
    ..REAL
};

/// Does not count an owner that disappeared.
pub(crate) const FORGETS_LOST_ATTEMPTS: Protocol = Protocol {
    admit: |claim, found, now| {
        with_record(admit(claim, found, now), |record| record.lost_attempts = 0)
    },
    ..REAL
};

/// Claims a key anew although it is completed.
pub(crate) const RUNS_COMPLETED_AGAIN: Protocol = Protocol {
    admit: |claim, found, now| match (found, admit(claim, found, now)) {
        (Some(found), Admission::Replay(_)) if found.status == Status::Completed => {
            let Admission::Try { held, .. } = admit(claim, None, now) else {
                unreachable!("without a record, a claim is always tried");
            };
            Admission::Try { guard: Guard::Unchanged(RecordVersion::of(found)), held }
        }
        (_, other) => other,
    },
    ..REAL
};

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
