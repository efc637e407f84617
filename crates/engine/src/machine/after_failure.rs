//! Stops a group, or the whole batch, behind a record that failed.

use super::{Action, Machine, Present, entry::Stage};
use crate::delivery::AfterFailure;
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::outcome::{NotStarted, Outcome};

impl Machine<'_> {
    /// The rest of the group of a record that is returned, with its outcome: the source delivers it again, in
    /// order.
    pub(super) fn stop_group_behind(
        &self,
        at: usize,
    ) -> impl Iterator<Item = (usize, Outcome)> + use<> {
        let rest = self.order.same_group(at).into_iter();
        rest.map(|at| (at, Outcome::Returned(NotStarted::Order)))
    }

    /// Starts nothing any more behind record `at`, which is returned, if that is how the batch is treated.
    /// What comes before it in the event goes on: otherwise a bad record would keep the records before
    /// it from being tried at every delivery.
    pub(super) fn stop_batch_behind(&mut self, at: usize, present: &mut Present<'_>) {
        let failed = self.records.position(at);
        let is_whole =
            self.setting.after_failure == AfterFailure::Batch && keeps(Rule::ClosesBehindAFailure);
        if !is_whole || !self.starts.close_behind(failed) {
            return;
        }
        self.return_waiting(failed + 1, NotStarted::Order, present);
        // Handlers that were started may not have been called yet.
        for at in self.records.in_stage(Stage::Running) {
            if self.records.position(at) > failed && self.withdraw(at, present) {
                self.records.at(at).ended(None, present.now);
                self.leases.forget(at);
                self.starts.ended(false);
                self.not_started(at, NotStarted::Order, present);
            }
        }
    }

    /// Takes a handler back that was not called yet: the host may not even have got the action that starts it.
    fn withdraw(&mut self, at: usize, present: &mut Present<'_>) -> bool {
        let is_start =
            |action: &Action| matches!(action, Action::Start { at: other, .. } if *other == at);
        match self.actions.iter().position(is_start) {
            Some(index) => self.actions.remove(index).is_some(),
            None => present.host.withdraw(at),
        }
    }
}
