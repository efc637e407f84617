//! The request of a record for its key, and the answer.

use std::sync::Arc;

use lambda_idempotency_core::{
    admission::{Admission, Claim, Held},
    clock::Timestamp,
    outcome::Completion,
    record::{IdempotencyRecord, Json},
    store::{Guard, StoreError},
};
use lambda_idempotency_keys::Key;

/// A key that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) claim: Claim,
    /// How claiming begins.
    pub(super) begins: Begins,
    /// How many losses in a row the claim takes over: 0, or in quarantine those that are known. A
    /// record with another number has its turn at another time.
    pub(super) losses: u32,
    /// When claiming is given up.
    pub(super) until: Timestamp,
    /// When it is given up while the store answers, and only other calls are in the way.
    pub(super) last: Timestamp,
    /// Whether the key is only taken to be free, and no claim is written.
    pub(super) is_optimistic: bool,
}

/// How claiming a key begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Begins {
    /// With a look, and it ends there if the key is free: there is probably an idempotency record, and its
    /// contents decide when the record may be claimed.
    Look,
    /// With a write that replaces the known record, or that expects none.
    Write(Option<Box<IdempotencyRecord>>),
}

/// The answer for a key.
pub(super) enum Claimed {
    /// The key is held.
    Held(Arc<Held>),
    /// The key is taken to be free, and nothing was written. Its completion is written under this guard.
    Assumed { held: Arc<Held>, guard: Box<Guard> },
    /// The work was done.
    Replay(Option<Json>, Option<Completion>),
    /// The work was done, and its messages may not have been sent.
    Unsent(Arc<Held>),
    /// The work failed permanently.
    PermanentlyFailed { error_type: Option<Arc<str>>, failed_attempts: u32 },
    /// The key was used with another payload.
    Mismatch,
    /// The key is held.
    Busy { until: Timestamp },
    /// The key belongs to another application.
    Foreign { application: Arc<str> },
    /// The answer to a look: the key can be claimed outside of quarantine, replacing the record that was
    /// read.
    Free { seen: Option<Box<IdempotencyRecord>> },
    /// The look failed, so nothing is known.
    Unseen,
    /// Its last attempts were lost. The key is not claimed: that is done just before the record runs, in
    /// quarantine.
    Suspect { losses: u32, seen: Option<Box<IdempotencyRecord>> },
    /// The store did not answer.
    Unavailable(StoreError),
}

impl Claimed {
    /// The answer, if it is known without a write; otherwise the write. The decision is about `found`.
    #[expect(clippy::result_large_err, reason = "no error, and the usual case: not worth a box")]
    pub(super) fn of(
        admission: Admission,
        found: Option<&IdempotencyRecord>,
    ) -> Result<Self, (Guard, Held)> {
        Ok(match admission {
            Admission::Try { guard, held } => return Err((guard, held)),
            Admission::Won(held) => Self::Held(Arc::new(held)),
            Admission::Unsent(held) => Self::Unsent(Arc::new(held)),
            Admission::Replay(result) => Self::Replay(result, found.and_then(Completion::of)),
            Admission::PermanentlyFailed { error_type, failed_attempts, .. } => {
                Self::PermanentlyFailed { error_type, failed_attempts }
            }
            Admission::Mismatch => Self::Mismatch,
            Admission::Busy { until } => Self::Busy { until },
            Admission::Foreign { application } => Self::Foreign { application },
        })
    }
}

/// The answer for one key.
pub(super) struct Answer {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) claimed: Claimed,
    /// The record that says so, if one was seen.
    pub(super) seen: Option<IdempotencyRecord>,
}

impl Answer {
    /// An answer without a stored record.
    pub(super) const fn new(at: usize, claimed: Claimed) -> Self {
        Self { at, claimed, seen: None }
    }
}
