//! Putting aside what will never be processed: permanent failures and mismatches.
//!
//! The permanent failure is recorded first; then the record gets a second entry, whose work is to put
//! it aside and whose key is its own. That one is claimed, run and completed as any other, and gives its
//! outcome to the record. Until then the record has none: its copies and its group wait. If there is no
//! time left, or it cannot be put aside, the record is returned, and its next delivery, which finds the
//! permanent failure recorded, puts it aside.

use super::{Delivery, Work, drive::Drive, entry::Entry, entry::Stage};
use crate::{
    outcome::{DivertReason, Outcome},
    policy::Conflict,
};

impl Drive<'_> {
    /// Begins to put record `at` aside if its outcome is a reason to; otherwise returns the outcome.
    pub(super) fn divert(&mut self, at: usize, outcome: Outcome) -> Option<Outcome> {
        match reason(&outcome) {
            Some(reason) if self.may_divert(at) => {
                self.put_aside(at, reason);
                None
            }
            _ => Some(outcome),
        }
    }

    /// Whether record `at` would be put aside if it had this outcome.
    pub(super) fn is_diverted(&self, at: usize, outcome: &Outcome) -> bool {
        self.may_divert(at) && reason(outcome).is_some()
    }

    /// Whether record `at` can be put aside now.
    pub(super) fn may_divert(&self, at: usize) -> bool {
        let has_sink = self.entries.get(at).is_some_and(|entry| entry.divert.is_some());
        has_sink && self.closed.is_none() && !self.stopped
    }

    pub(super) fn put_aside(&mut self, at: usize, reason: DivertReason) {
        let entry = self.entry(at);
        let Some(divert) = entry.divert.take() else { return };
        entry.stage = Stage::Moving;
        // The record's own key is settled: others of this process need not wait for the rest.
        entry.lead = None;
        let mut aside = Entry::new(Delivery {
            record: entry.record.clone(),
            group: None,
            priority: 0,
            work: Work::Divert { aside: divert(reason), payload: "" },
            divert: None,
        });
        aside.stage = Stage::Moving;
        aside.stands_for = Some(at);
        self.to_claim.push_back(self.entries.len());
        self.entries.push(aside);
        self.open += 1;
    }

    /// What becomes of a delivery whose key is held elsewhere. Nobody else is trusted to put a record
    /// aside: it is acknowledged only when that is done.
    pub(super) fn conflict(&self, at: usize) -> Conflict {
        match self.policy.conflict {
            Conflict::Skip if self.entries.get(at).is_some_and(|entry| entry.is_aside) => {
                Conflict::Retry
            }
            conflict => conflict,
        }
    }
}

/// Why a record with this outcome will never be processed.
fn reason(outcome: &Outcome) -> Option<DivertReason> {
    Some(match outcome {
        Outcome::Failed { failure, failures, parked: true } => {
            let error = Some(failure.class().into());
            DivertReason::PermanentFailure { error, failures: *failures }
        }
        Outcome::Remembered { error, failures, acknowledged: false } => {
            DivertReason::PermanentFailure { error: error.clone(), failures: *failures }
        }
        Outcome::Mismatch => DivertReason::Mismatch,
        _ => return None,
    })
}
