//! A key that is held, and what is written when it is given up or kept for longer.

use std::sync::Arc;

use super::Claim;
use crate::{
    clock::Timestamp,
    record::{Json, Record, Status},
    store::{Guard, Seen},
};

/// The lease of a released record: long past, and not 0, which some libraries read as "unknown".
const LAPSED: Timestamp = Timestamp::from_millis(1);

/// A claim that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// What was asked.
    pub claim: Claim,
    /// The record as it stands in the store.
    pub record: Record,
}

/// How a held key is given up, or kept for longer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// The handler returned: final.
    Complete {
        /// What it returned, as JSON text, if later deliveries are to have it.
        outcome: Option<Json>,
    },
    /// The handler failed for good: final too, and answered to later deliveries as a failure.
    Remember {
        /// The failure as JSON text.
        outcome: Option<Json>,
        /// The type of the error.
        error: Arc<str>,
    },
    /// The handler failed and shall be called again: the key is free, the failure counted.
    Release {
        /// The type of the error.
        error: Arc<str>,
    },
    /// The handler was never started, or did no work: leaves behind what was known before.
    PutBack,
    /// The handler needs longer.
    Renew {
        /// The new end of the lease.
        lease_until: Timestamp,
    },
}

impl Held {
    /// How often a handler has reported failure for this key before.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.record.failures
    }

    /// How many earlier owners of this key disappeared.
    #[must_use]
    pub const fn vanished(&self) -> u32 {
        self.record.vanished
    }

    /// The conditional write that settles the claim; `None` deletes.
    #[must_use]
    pub fn write(&self, settlement: &Settlement, now: Timestamp) -> (Guard, Option<Record>) {
        let guard = match settlement {
            // Names the lease it extends: a late duplicate must not shorten a newer one.
            Settlement::Renew { .. } => Guard::Seen(Seen::of(&self.record)),
            _ => Guard::Mine(self.claim.owner),
        };
        (guard, self.left_behind(settlement, now))
    }

    /// The record after `settlement`.
    pub(super) fn left_behind(&self, settlement: &Settlement, now: Timestamp) -> Option<Record> {
        let expires_at = now.plus(self.claim.retention);
        let mut record = Record::new(Status::InProgress, expires_at);
        record.owner = Some(self.claim.owner);
        record.failures = self.record.failures;
        record.vanished = self.record.vanished;
        record.fence = self.record.fence;
        record.fingerprint.clone_from(&self.claim.fingerprint);
        record.application.clone_from(&self.claim.application);
        match settlement {
            Settlement::Complete { outcome } => {
                record.status = Status::Completed;
                record.outcome.clone_from(outcome);
            }
            Settlement::Remember { outcome, error } => {
                record.status = Status::Failed;
                record.failures = record.failures.saturating_add(1);
                record.outcome.clone_from(outcome);
                record.error = Some(error.clone());
            }
            Settlement::Release { error } => {
                release(&mut record);
                record.failures = record.failures.saturating_add(1);
                record.error = Some(error.clone());
            }
            Settlement::PutBack if record.failures == 0 && record.vanished == 0 => return None,
            Settlement::PutBack => {
                release(&mut record);
                record.error.clone_from(&self.record.error);
            }
            Settlement::Renew { lease_until } => {
                record.lease_until = Some(*lease_until);
                let expires_at = expires_at.max(lease_until.plus(self.claim.skew));
                record.expires_at = expires_at.ceil_to_second();
            }
        }
        Some(record)
    }
}

fn release(record: &mut Record) {
    record.last_owner = record.owner.take();
    record.lease_until = Some(LAPSED);
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        admission::{Admission, admit},
        record::Owner,
    };

    pub(in crate::admission) fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    pub(in crate::admission) fn claim(owner: u128) -> Claim {
        Claim {
            owner: Owner::from_bits(owner),
            lease_until: at(130),
            retention: Duration::from_secs(3600),
            skew: Duration::from_secs(1),
            fingerprint: None,
            application: None,
        }
    }

    pub(in crate::admission) fn held(owner: u128) -> Held {
        match admit(&claim(owner), None, at(100)) {
            Admission::Try { held, .. } => held,
            other => panic!("{other:?}"),
        }
    }

    pub(in crate::admission) fn complete() -> Settlement {
        Settlement::Complete { outcome: Some("true".into()) }
    }

    pub(in crate::admission) fn release() -> Settlement {
        Settlement::Release { error: "Declined".into() }
    }

    #[test]
    fn completing_is_fenced_and_restarts_the_retention() {
        let (guard, record) = held(1).write(&complete(), at(110));
        let record = record.unwrap();
        assert_eq!(guard, Guard::Mine(Owner::from_bits(1)));
        assert_eq!(record.expires_at, at(3710));
        assert_eq!((record.status, record.lease_until), (Status::Completed, None));
    }

    #[test]
    fn putting_back_leaves_what_was_known_before() {
        assert_eq!(held(1).write(&Settlement::PutBack, at(101)).1, None);
        let (_, released) = held(1).write(&release(), at(101));
        let Admission::Try { held, .. } = admit(&claim(2), released.as_ref(), at(102)) else {
            panic!("a released key is free");
        };
        let back = held.write(&Settlement::PutBack, at(103)).1.unwrap();
        assert_eq!((back.failures, back.vanished), (1, 0));
        assert!(back.is_released());
    }
}
