//! What becomes of a key that is held.

use std::sync::Arc;

use super::{Claim, held_until};
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
    /// The handler was never started: leaves behind what was known before.
    PutBack,
    /// The handler needs longer.
    Renew {
        /// The new end of the lease.
        lease_until: Timestamp,
    },
}

/// What it means that a settling write did not find our claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "looked at once and dropped, never kept in bulk")]
pub enum Settled {
    /// An earlier try of the same write was applied, or nothing is left to be done.
    Done,
    /// Write this instead: the record is gone, and with it whoever could object; or it is ours
    /// all the same, since an earlier write of ours landed late.
    Again {
        /// The condition.
        guard: Guard,
        /// The record.
        record: Record,
    },
    /// The lease was lost, and someone else's word stands.
    Overtaken(Overtaken),
}

/// What stands in the place of a claim that lost its lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Overtaken {
    /// A successor completed the key.
    Completed(Option<Json>),
    /// A successor's failure is remembered.
    Failed {
        /// The type of the error.
        error: Option<Arc<str>>,
    },
    /// A successor holds the key, or has given it up for the next one.
    InProgress {
        /// Up to and including this instant; in the past if it was given up.
        until: Timestamp,
    },
    /// A successor settled the key for another payload: its word says nothing about ours.
    Mismatch,
    /// There is no record, and what was to be settled leaves none.
    Gone,
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
    fn left_behind(&self, settlement: &Settlement, now: Timestamp) -> Option<Record> {
        let expires_at = now.plus(self.claim.retention);
        let mut record = Record::new(Status::InProgress, expires_at);
        record.owner = Some(self.claim.owner);
        record.failures = self.record.failures;
        record.vanished = self.record.vanished;
        record.fence = self.record.fence;
        record.fingerprint.clone_from(&self.claim.fingerprint);
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

    /// What it means that the write of `settlement` found `found` instead of our claim.
    #[must_use]
    pub fn settled(
        &self,
        settlement: &Settlement,
        found: Option<&Record>,
        now: Timestamp,
    ) -> Settled {
        let Some(found) = found else {
            return match (settlement, self.left_behind(settlement, now)) {
                (Settlement::Complete { .. } | Settlement::Remember { .. }, Some(record)) => {
                    Settled::Again { guard: Guard::Absent, record }
                }
                _ => Settled::Overtaken(Overtaken::Gone),
            };
        };
        if self.is_own_work(settlement, found) {
            return Settled::Done;
        }
        let mine = Guard::Mine(self.claim.owner);
        if mine.holds(Some(found))
            && let Some(record) = self.left_behind(settlement, now)
        {
            // A write that we took for lost has landed since: a renewal, which this one extends,
            // or after a sweep a copy of the claim.
            let renews = matches!(settlement, Settlement::Renew { .. });
            let guard = if renews { Guard::Seen(Seen::of(found)) } else { mine };
            return Settled::Again { guard, record };
        }
        Settled::Overtaken(match found.status {
            Status::Completed | Status::Failed if self.claim.disagrees_with(found) => {
                Overtaken::Mismatch
            }
            Status::Completed => Overtaken::Completed(found.outcome.clone()),
            Status::Failed => Overtaken::Failed { error: found.error.clone() },
            Status::InProgress => {
                Overtaken::InProgress { until: held_until(found, self.claim.skew) }
            }
        })
    }

    /// Whether `found` is what this very settlement writes: its answer was lost.
    fn is_own_work(&self, settlement: &Settlement, found: &Record) -> bool {
        let mine = Some(self.claim.owner);
        match settlement {
            Settlement::Complete { .. } => found.status == Status::Completed && found.owner == mine,
            Settlement::Remember { .. } => found.status == Status::Failed && found.owner == mine,
            Settlement::Release { .. } | Settlement::PutBack => {
                found.is_released() && found.last_owner == mine
            }
            // Or an earlier one that reaches further, by a clock that has stepped back since.
            Settlement::Renew { lease_until } => {
                found.status == Status::InProgress
                    && found.owner == mine
                    && found.lease_until >= Some(*lease_until)
            }
        }
    }
}

fn release(record: &mut Record) {
    record.last_owner = record.owner.take();
    record.lease_until = Some(LAPSED);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        admission::{Admission, admit},
        record::{Fingerprint, Owner},
    };

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn claim(owner: u128) -> Claim {
        Claim {
            owner: Owner::from_bits(owner),
            lease_until: at(130),
            retention: Duration::from_secs(3600),
            skew: Duration::from_secs(1),
            fingerprint: None,
        }
    }

    fn held(owner: u128) -> Held {
        match admit(&claim(owner), None, at(100)) {
            Admission::Try { held, .. } => held,
            other => panic!("{other:?}"),
        }
    }

    fn complete() -> Settlement {
        Settlement::Complete { outcome: Some("true".into()) }
    }

    fn release() -> Settlement {
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
    fn a_completion_whose_answer_was_lost_is_recognised() {
        let held = held(1);
        let (_, record) = held.write(&complete(), at(110));
        assert_eq!(held.settled(&complete(), record.as_ref(), at(111)), Settled::Done);
    }

    #[test]
    fn a_release_whose_answer_was_lost_is_recognised() {
        let held = held(1);
        let (_, record) = held.write(&release(), at(110));
        assert_eq!(held.settled(&release(), record.as_ref(), at(111)), Settled::Done);
    }

    #[test]
    fn a_late_release_cannot_pass_for_success_after_completion() {
        let held = held(1);
        let (_, record) = held.write(&complete(), at(110));
        assert!(!Guard::Mine(Owner::from_bits(1)).holds(record.as_ref()));
        assert_eq!(
            held.settled(&release(), record.as_ref(), at(111)),
            Settled::Overtaken(Overtaken::Completed(Some("true".into())))
        );
    }

    #[test]
    fn a_completion_that_finds_nothing_is_written_under_absent() {
        match held(1).settled(&complete(), None, at(110)) {
            Settled::Again { guard: Guard::Absent, record } => {
                assert_eq!(record.status, Status::Completed);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(held(1).settled(&release(), None, at(110)), Settled::Overtaken(Overtaken::Gone));
    }

    #[test]
    fn the_successor_stands() {
        let successor = held(2);
        let found = Some(&successor.record);
        assert_eq!(
            held(1).settled(&complete(), found, at(110)),
            Settled::Overtaken(Overtaken::InProgress { until: at(131) })
        );
        let (_, done) = successor.write(&complete(), at(111));
        assert_eq!(
            held(1).settled(&complete(), done.as_ref(), at(112)),
            Settled::Overtaken(Overtaken::Completed(Some("true".into())))
        );
    }

    #[test]
    fn a_successor_with_another_payload_answers_for_itself_alone() {
        let with =
            |owner, payload| Claim { fingerprint: Some(Fingerprint::new(payload)), ..claim(owner) };
        let held = |claim: Claim| match admit(&claim, None, at(100)) {
            Admission::Try { held, .. } => held,
            other => panic!("{other:?}"),
        };
        let (ours, theirs) = (held(with(1, "a")), held(with(2, "b")));
        for settlement in [complete(), Settlement::Remember { outcome: None, error: "E".into() }] {
            let (_, found) = theirs.write(&settlement, at(111));
            for mine in [complete(), release(), Settlement::Renew { lease_until: at(9000) }] {
                assert_eq!(
                    ours.settled(&mine, found.as_ref(), at(112)),
                    Settled::Overtaken(Overtaken::Mismatch)
                );
            }
            assert_ne!(
                held(with(3, "b")).settled(&release(), found.as_ref(), at(112)),
                Settled::Overtaken(Overtaken::Mismatch)
            );
        }
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

    #[test]
    fn a_renewal_names_the_lease_it_extends() {
        let held = held(1);
        let renew = Settlement::Renew { lease_until: at(9000) };
        let (guard, record) = held.write(&renew, at(110));
        let record = record.unwrap();
        assert!(guard.holds(Some(&held.record)));
        assert!(!guard.holds(Some(&record)), "a late duplicate must miss");
        assert!(record.expires_at >= at(9001));
        assert_eq!(held.settled(&renew, Some(&record), at(111)), Settled::Done);
    }
    #[test]
    fn a_renewal_goes_on_from_an_earlier_one_that_was_taken_for_lost() {
        let held = held(1);
        let renew = |secs| Settlement::Renew { lease_until: at(secs) };
        let (_, found) = held.write(&renew(200), at(110));
        let Settled::Again { guard, record } = held.settled(&renew(210), found.as_ref(), at(111))
        else {
            panic!("the record is still ours");
        };
        assert!(guard.holds(found.as_ref()));
        assert_eq!(record.lease_until, Some(at(210)));
        assert_eq!(held.settled(&renew(190), found.as_ref(), at(111)), Settled::Done);
    }

    #[test]
    fn a_completion_that_finds_its_own_claim_landing_late_settles_that() {
        let held = held(1);
        assert!(matches!(held.settled(&complete(), None, at(140)), Settled::Again { .. }));
        let Settled::Again { guard, record } =
            held.settled(&complete(), Some(&held.record), at(140))
        else {
            panic!("the record is ours");
        };
        assert!(guard.holds(Some(&held.record)));
        assert_eq!(record.status, Status::Completed);
    }
}
