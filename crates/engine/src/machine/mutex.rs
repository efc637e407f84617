//! Operations whose keys only exclude each other.
//!
//! In mutex mode a claim keeps other workers away, and is forgotten when its handler has ended, however that
//! was: its record is deleted. So each delivery calls the handler. A handler that was stopped has not ended: its
//! effect may be on its way, and the key stays held until the lease ends.

use super::Machine;
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::admission::Settlement;

impl Machine<'_> {
    /// Whether nothing is kept of the attempts of record `at`. What puts a record aside is done once.
    pub(super) fn is_mutex(&self, at: usize) -> bool {
        let is_aside = self.records.get(at).is_some_and(|entry| entry.ask().is_aside);
        !self.setting.policy.mode.keeps_completions() && !is_aside
    }

    /// What is written instead of this settlement, in this mode.
    pub(super) fn in_its_mode(&self, at: usize, settlement: Settlement) -> Settlement {
        match settlement {
            Settlement::Complete { .. }
            | Settlement::Commit { .. }
            | Settlement::FailPermanently { .. }
            | Settlement::Release { .. }
            | Settlement::Decline
                if self.is_mutex(at) && keeps(Rule::ForgetsWhatHasEnded) =>
            {
                Settlement::Forget
            }
            settlement => settlement,
        }
    }
}
