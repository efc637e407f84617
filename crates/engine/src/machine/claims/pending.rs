//! One claim without an answer: its next step, and how a record that was read answers it.

use super::super::{
    carried::Carried,
    wanted::{Answer, Begins, Claimed, Wanted},
};
use lambda_idempotency_core::{
    admission::{Held, admit},
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, StoreError},
};

/// A claim that has no answer yet, and its next step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PendingClaim {
    pub(super) wanted: Wanted,
    pub(super) step: Step,
    /// How many of its writes failed because the record had changed.
    pub(super) rounds: u8,
    /// Whether the deadline ended its first call: the next call has all the time that is left.
    pub(super) is_slow: bool,
    /// The claim that a call without an answer may have written.
    pub(super) doubt: Option<Box<Held>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// Read the record.
    Look,
    /// Write the claim over the record that was read.
    Write(Option<IdempotencyRecord>),
    /// The write was sent over the record that was read. What it writes comes back with its answer.
    Writing(Option<IdempotencyRecord>),
    /// Undo the write that may have been applied; then the record gets this error.
    Undo(Carried<StoreError>),
}

impl PendingClaim {
    pub(super) fn new(mut wanted: Wanted) -> Self {
        let step = match &mut wanted.begins {
            Begins::Look => Step::Look,
            Begins::Write(seen) => Step::Write(seen.take().map(|seen| *seen)),
        };
        Self { wanted, step, rounds: 0, is_slow: false, doubt: None }
    }

    /// Claims of one kind share a call: looks, writes, undos. Claims whose first call was cut short do
    /// not share a call with new ones.
    pub(super) const fn kind(&self) -> (u8, bool) {
        let step = match self.step {
            Step::Look => 0,
            Step::Write(_) | Step::Writing(_) => 1,
            Step::Undo(_) => 2,
        };
        (step, self.is_slow)
    }
}

/// A key that can be claimed.
pub(super) struct Free {
    pub(super) guard: Guard,
    pub(super) held: Held,
    /// What the claim is written over.
    pub(super) seen: Option<IdempotencyRecord>,
}

/// What was seen leaves a claim to be written, or answers it.
#[expect(clippy::result_large_err, reason = "no error: not worth a box")]
pub(super) fn judge(
    wanted: &Wanted,
    seen: Option<IdempotencyRecord>,
    now: Timestamp,
) -> Result<Free, Answer> {
    let at = wanted.at;
    match Claimed::of(admit(&wanted.claim, seen.as_ref(), now), seen.as_ref()) {
        Ok(claimed) => Err(Answer { at, claimed, seen }),
        Err((guard, held)) if held.consecutive_losses() == wanted.losses => {
            Ok(Free { guard, held, seen })
        }
        Err((_, held)) => {
            let losses = held.consecutive_losses();
            let seen = seen.map(Box::new);
            Err(Answer::new(
                at,
                if losses == 0 {
                    Claimed::Free { seen }
                } else {
                    Claimed::Suspect { losses, seen }
                },
            ))
        }
    }
}
