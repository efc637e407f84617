//! Putting aside what will never be processed: permanent failures and mismatches.
//!
//! The permanent failure is recorded first; then the record gets a second entry, whose work is to put
//! it aside and whose key is its own. That one is claimed, run and completed as any other (without a
//! claim, if the record ran without one), and gives its outcome to the record. Until then the record has
//! none: its copies and its group wait. If there is no time left, or it cannot be put aside, the record
//! is returned, and its next delivery, which finds the permanent failure recorded, puts it aside.

use super::{Machine, Present, entry::Stage, outcomes::Why};
use lambda_idempotency_core::{outcome::Outcome, policy::OnConflict};

impl Machine<'_> {
    /// Starts to put record `at` aside if its outcome is a reason for that; otherwise returns the outcome.
    pub(super) fn divert(
        &mut self,
        at: usize,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) -> Option<Outcome> {
        match Why::of(&outcome) {
            Some(why) if self.can_put_aside(at) => {
                self.put_aside(at, why, present);
                None
            }
            _ => Some(outcome),
        }
    }

    /// Whether record `at` would be put aside if it had this outcome.
    pub(super) fn is_put_aside(&self, at: usize, outcome: &Outcome) -> bool {
        self.can_put_aside(at) && Why::of(outcome).is_some()
    }

    /// Whether record `at` can be put aside now.
    pub(super) fn can_put_aside(&self, at: usize) -> bool {
        let has_sink = self.records.get(at).is_some_and(|entry| entry.ask().can_be_put_aside);
        has_sink && self.closed(at).is_none() && !self.starts.is_stopped()
    }

    pub(super) fn put_aside(&mut self, at: usize, why: Why, present: &mut Present<'_>) {
        self.quarantine.leave(at);
        // The record's own key is settled, so other invocations of this process need not wait until it is
        // put aside.
        present.host.leave(at);
        let entry = self.records.at(at);
        let (fence, outage) = (entry.fence(), entry.outage());
        let reason = why.reason.clone();
        entry.put_aside(why);
        let aside = self.records.next();
        let Some(key) = present.host.put_aside(at, aside, reason, fence) else { return };
        self.records.add_aside(at, key);
        let entry = self.records.at(aside);
        if fence.is_some() {
            entry.enter(Stage::Claiming);
            self.starts.add_claim(aside);
        } else {
            // A redelivery cannot be told apart from a record that was sent again after a failure. If the
            // latter were acknowledged without the sink, it would be lost.
            entry.runs_without_claim(outage);
            self.starts.add_ready(aside);
        }
    }

    /// The outcome of a delivery whose key another worker holds. That worker may fail to put the record
    /// aside, so the delivery is acknowledged only after the record was put aside.
    pub(super) fn conflict(&self, at: usize) -> OnConflict {
        let conflict = self.setting.policy.on_conflict;
        let is_aside = self.records.get(at).is_some_and(|entry| entry.ask().is_aside);
        if is_aside { conflict.or_return() } else { conflict }
    }
}
