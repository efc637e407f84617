//! Putting aside what will never be processed: permanent failures and mismatches.
//!
//! The permanent failure is recorded first; then the record gets a second entry, whose work is to put
//! it aside and whose key is its own. That one is claimed, run and completed as any other (without a
//! claim, if the record ran without one), and gives its outcome to the record. Until then the record has
//! none: its copies and its group wait. If there is no time left, or it cannot be put aside, the record
//! is returned, and its next delivery, which finds the permanent failure recorded, puts it aside.

use super::{
    Delivery, Work,
    drive::Drive,
    entry::{Entry, Intake, Stage, Why},
};
use lambda_idempotency_core::{
    failure::Failure,
    outcome::{DivertReason, Outcome},
    policy::OnConflict,
};

impl Drive<'_> {
    /// Begins to put record `at` aside if its outcome is a reason to; otherwise returns the outcome.
    pub(super) fn divert(&mut self, at: usize, outcome: Outcome) -> Option<Outcome> {
        match why(&outcome) {
            Some(why) if self.may_divert(at) => {
                self.put_aside(at, why);
                None
            }
            _ => Some(outcome),
        }
    }

    /// Whether record `at` would be put aside if it had this outcome.
    pub(super) fn is_diverted(&self, at: usize, outcome: &Outcome) -> bool {
        self.may_divert(at) && why(outcome).is_some()
    }

    /// Whether record `at` can be put aside now.
    pub(super) fn may_divert(&self, at: usize) -> bool {
        let has_sink = self.entries.get(at).is_some_and(|entry| entry.divert.is_some());
        has_sink && self.closed.is_none() && !self.stopped
    }

    pub(super) fn put_aside(&mut self, at: usize, why: Why) {
        if self.alone == Some(at) {
            self.alone = None;
        }
        let entry = self.entry(at);
        let Some(divert) = entry.divert.take() else { return };
        entry.stage = Stage::Moving;
        // The record's own key is settled: others of this process need not wait for the rest.
        entry.lead = None;
        let fence = entry.final_fence.or(entry.held.as_ref().map(|held| held.record.fence));
        let outage = entry.outage.clone();
        let aside = divert(why.reason.clone(), fence);
        entry.why = Some(Box::new(why));
        let mut aside = Entry::new(Delivery {
            record: entry.record.clone(),
            group: None,
            priority: 0,
            work: Work::Divert { aside, payload: "" },
            divert: None,
        });
        aside.stage = Stage::Moving;
        aside.stands_for = Some(at);
        if fence.is_some() {
            self.to_claim.push_back(self.entries.len());
        } else {
            // Nothing tells a redelivery from one that was sent again because the first had failed:
            // taken for done, the latter would be lost.
            aside.intake = Intake::Unprotected;
            aside.outage = outage;
            self.ready.push_back(self.entries.len());
        }
        self.entries.push(aside);
        self.open += 1;
    }

    /// What becomes of a delivery whose key is held elsewhere. Nobody else is trusted to put a record
    /// aside: it is acknowledged only when that is done.
    pub(super) fn conflict(&self, at: usize) -> OnConflict {
        match self.policy.on_conflict {
            OnConflict::Skip if self.entries.get(at).is_some_and(|entry| entry.is_aside) => {
                OnConflict::Return
            }
            conflict => conflict,
        }
    }
}

/// Why a record with this outcome will never be processed.
fn why(outcome: &Outcome) -> Option<Why> {
    match outcome {
        Outcome::Failed { failure, failed_attempts, permanent: true } => {
            Some(Why::failed(failure.clone(), *failed_attempts))
        }
        Outcome::PermanentlyFailed { error_type: error, failed_attempts, acknowledged: false } => {
            let (error, failed_attempts) = (error.clone(), *failed_attempts);
            let reason = DivertReason::PermanentFailure { error_type: error, failed_attempts };
            Some(Why { reason, failure: None })
        }
        Outcome::Mismatch => Some(Why { reason: DivertReason::Mismatch, failure: None }),
        _ => None,
    }
}

impl Why {
    /// Its handler has just failed permanently.
    pub(super) fn failed(failure: Failure, failed_attempts: u32) -> Self {
        let error = Some(failure.class().into());
        let reason = DivertReason::PermanentFailure { error_type: error, failed_attempts };
        Self { reason, failure: Some(failure) }
    }
}
