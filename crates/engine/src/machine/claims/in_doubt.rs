//! Claims in doubt: a write of theirs may have been applied, and its answer is missing.
//!
//! The same claim, with the same token, is sent again while there is time for claiming: its answer says what is stored. After
//! that it is undone, before its record is returned, so that the next delivery need not wait for the end of
//! an unused lease.

use super::{
    super::{
        carried::Carried,
        wanted::{Answer, Claimed},
    },
    Claims,
    pending::{PendingClaim, Step},
};
use lambda_idempotency_core::{
    admission::Settlement,
    clock::Timestamp,
    store::{StoreError, StoreErrorKind, Write},
};

impl Claims {
    /// Handles a claim without an answer: it is sent again if its deadline ended the call and there is
    /// time, else undone if it may have been applied, else given up.
    pub(super) fn failed(
        &mut self,
        mut pending: PendingClaim,
        error: StoreError,
        cut_short: bool,
        now: Timestamp,
        answers: &mut Vec<Answer>,
    ) {
        if error.kind() == StoreErrorKind::Contended {
            pending.wanted.until = pending.wanted.last;
        }
        if cut_short && error.is_transient() && now < pending.wanted.until {
            pending.is_slow = true;
            self.to_send.push(pending);
        } else if pending.doubt.is_some() {
            pending.step = Step::Undo(Carried(error));
            self.to_send.push(pending);
        } else {
            self.answer(Answer::new(pending.wanted.at, Claimed::Unavailable(error)), answers);
        }
    }

    /// Sends no more claims, since the time for handlers is over. Claims in doubt are undone; others that
    /// are not being sent get no answer.
    pub(in super::super) fn stop(&mut self) -> Vec<Answer> {
        let error = || {
            let why = "the store did not answer before the time for handlers was over";
            StoreError::new(StoreErrorKind::Unavailable, why)
        };
        let mut answers = Vec::new();
        for mut pending in std::mem::take(&mut self.to_send) {
            match pending.step {
                Step::Undo(_) => self.to_send.push(pending),
                _ if pending.doubt.is_some() => {
                    pending.step = Step::Undo(Carried(error()));
                    self.to_send.push(pending);
                }
                _ => {
                    let claimed = Claimed::Unavailable(error());
                    self.answer(Answer::new(pending.wanted.at, claimed), &mut answers);
                }
            }
        }
        answers
    }
}

impl PendingClaim {
    /// The write that undoes the claim. It restores the earlier record, so that earlier failures stay
    /// counted.
    pub(super) fn undo(&self, now: Timestamp) -> Option<Write> {
        let held = self.doubt.as_deref()?;
        let (guard, record) = held.write(&Settlement::Undo, now);
        Some(Write::new(self.wanted.key.clone(), guard, record))
    }
}
