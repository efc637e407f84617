//! One call of the store, as it is reported to observers.

use std::time::Duration;

use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::{StoreErrorKind, Verdict, Write},
};

use crate::machine::Input;

/// A call of the store that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StoreCall<'a> {
    /// The operation whose records it was for.
    pub operation: &'a str,
    /// The source of the records.
    pub source: &'static str,
    /// What it was for.
    pub purpose: StorePurpose,
    /// How many keys it read, or records it wrote.
    pub members: usize,
    /// How long it took.
    pub took: Duration,
    /// The errors of those that failed.
    pub errors: &'a [StoreErrorKind],
}

/// What a call of the store is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorePurpose {
    /// To read keys before they are claimed.
    Look,
    /// To claim keys.
    Claim,
    /// To record how claims ended: completions, failures, releases.
    Settle,
    /// To extend leases.
    Renew,
}

impl StorePurpose {
    /// A stable word for logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::Renew => "renew",
        }
    }

    /// The purpose of these writes. All writes of a call have one, except that a call of claims may also renew a claim
    /// that was applied before and whose answer was lost.
    ///
    /// Only a claim or a renewal leaves a record that is in progress and has an owner.
    pub(crate) fn of(writes: &[Write]) -> Self {
        let leaves_a_claim = |record: &IdempotencyRecord| {
            record.status == Status::InProgress && record.owner.is_some()
        };
        match writes.first() {
            Some(_) if writes.iter().any(Write::is_claim) => Self::Claim,
            Some(write) if write.record.as_ref().is_some_and(leaves_a_claim) => Self::Renew,
            _ => Self::Settle,
        }
    }
}

/// The errors in an answer of the store.
pub(crate) fn errors(answer: &Input) -> Vec<StoreErrorKind> {
    match answer {
        Input::Read { found, .. } => {
            found.iter().filter_map(|found| Some(found.as_ref().err()?.kind())).collect()
        }
        Input::Written { verdicts, .. } => {
            let unknown = verdicts.iter().filter_map(|verdict| match verdict {
                Verdict::Unknown(error) => Some(error.kind()),
                Verdict::Written | Verdict::Found(_) | Verdict::EffectRefused(_) => None,
            });
            unknown.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::{
        clock::Timestamp,
        record::Owner,
        store::{Guard, RecordVersion},
    };
    use lambda_idempotency_keys::Key;

    use super::*;

    fn record(status: Status, owner: Option<u128>) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(status, Timestamp::from_secs(9));
        record.owner = owner.map(Owner::from_bits);
        record
    }

    fn write(guard: Guard, record: Option<IdempotencyRecord>) -> Write {
        Write::new(Key::from_text("a#1"), guard, record)
    }

    #[test]
    fn each_kind_of_write_has_its_purpose() {
        let held = |owner| record(Status::InProgress, Some(owner));
        let seen = |owner| Guard::Unchanged(RecordVersion::of(&held(owner)));
        let mine = || Guard::OwnedBy(Owner::from_bits(1));
        let completed = || Some(record(Status::Completed, Some(1)));
        for (guard, record, expected) in [
            (Guard::Absent, Some(held(1)), StorePurpose::Claim),
            (seen(2), Some(held(1)), StorePurpose::Claim),
            (seen(1), Some(held(1)), StorePurpose::Renew),
            (mine(), completed(), StorePurpose::Settle),
            (Guard::Absent, completed(), StorePurpose::Settle),
            (mine(), Some(record(Status::InProgress, None)), StorePurpose::Settle),
            (mine(), None, StorePurpose::Settle),
        ] {
            let purpose = StorePurpose::of(&[write(guard.clone(), record)]);
            assert_eq!(purpose, expected, "{guard:?}");
        }
        let renewal = write(seen(1), Some(held(1)));
        let beside = StorePurpose::of(&[renewal, write(Guard::Absent, Some(held(2)))]);
        assert_eq!(beside, StorePurpose::Claim);
    }
}
