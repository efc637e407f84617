//! One call of the store, as observers are told of it.

use std::time::Duration;

use lambda_idempotency_core::{
    record::Status,
    store::{Guard, StoreErrorKind, Verdict, Write},
    usage::Usage,
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
    /// What it consumed, if an observer [wants](super::Observer::wants_usage) to know it.
    pub usage: Option<Usage>,
}

/// What a call of the store is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorePurpose {
    /// To read keys before they are claimed.
    Look,
    /// To claim keys.
    Claim,
    /// To record what became of claims: completions, failures, releases.
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

    /// What these writes are for. All writes of a call are for the same.
    pub(crate) fn of(writes: &[Write]) -> Self {
        let Some(Write { guard: Guard::OwnedBy(owner), record, .. }) = writes.first() else {
            return Self::Claim;
        };
        let renewed = record.as_ref().filter(|record| {
            record.status == Status::InProgress && record.owner.as_ref() == Some(owner)
        });
        if renewed.is_some() { Self::Renew } else { Self::Settle }
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
                Verdict::Written | Verdict::Found(_) => None,
            });
            unknown.collect()
        }
        _ => Vec::new(),
    }
}
