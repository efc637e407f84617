//! Ends the time for handlers, or the whole invocation.

use super::{Machine, Present, entry::Stage};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::Settlement,
    outcome::{NotStarted, Outcome},
    store::{StoreError, StoreErrorKind},
};

impl Machine<'_> {
    /// Stops the handlers: none starts any more. A running handler is dropped and its claim stays
    /// until the lease ends; a record whose handler has not begun is returned to its source.
    pub(super) fn stop(&mut self, present: &mut Present<'_>) {
        if !self.starts.stop() {
            return;
        }
        for at in self.records.in_stage(Stage::Running) {
            // One before it may have had it withdrawn.
            if self.records.at(at).stage() == Stage::Running {
                self.stop_one(at, present);
            }
        }
        self.close(NotStarted::Deadline, present);
    }

    /// Stops one handler.
    pub(super) fn stop_one(&mut self, at: usize, present: &mut Present<'_>) {
        let since = present.host.stop(at);
        self.records.at(at).ended(since, present.now);
        self.leases.forget(at);
        self.starts.ended(since.is_some());
        if since.is_some() {
            self.timed_out(at, present);
        } else {
            self.not_started(at, NotStarted::Deadline, present);
        }
    }

    /// The handler was dropped. Its effect may still happen, so its key is not released: it stays held
    /// until the lease ends, and the record says that the process lived; or the key fails permanently.
    fn timed_out(&mut self, at: usize, present: &mut Present<'_>) {
        let entry = self.records.at(at);
        // A sink that times out is tried again: only a record's handler can fail permanently, and only where
        // that is recorded.
        let is_recorded = !entry.ask().is_aside && self.setting.policy.mode.keeps_completions();
        let permanent = self.setting.policy.on_timeout.fails_permanently() && is_recorded;
        let Some(held) = entry.held().cloned() else {
            return self.finish(at, Outcome::TimedOut { permanent: false }, present);
        };
        let settlement = match permanent {
            _ if !keeps(Rule::StoppedKeepsItsLease) => Settlement::Undo,
            true => Settlement::FailPermanently { result: None, error_type: "a timeout".into() },
            false if !keeps(Rule::RecordsThatItStopped) => {
                return self.finish(at, Outcome::TimedOut { permanent: false }, present);
            }
            false => Settlement::LeaveStanding,
        };
        let permanent = matches!(settlement, Settlement::FailPermanently { .. });
        self.settle(at, held, settlement, Outcome::TimedOut { permanent }, present);
    }

    /// Starts nothing any more: claims whose handler has not begun are undone, and records that wait are
    /// returned to their source.
    pub(super) fn close(&mut self, why: NotStarted, present: &mut Present<'_>) {
        if self.starts.close(why) {
            self.return_waiting(0, why, present);
        }
    }

    /// Returns the records that wait, from this position of the event on.
    pub(super) fn return_waiting(
        &mut self,
        from: usize,
        why: NotStarted,
        present: &mut Present<'_>,
    ) {
        let records = &self.records;
        let which = |at| records.position(at) >= from;
        let waiting = self.waiting.take(which);
        let (mut unclaimed, ready) = self.starts.take(which);
        unclaimed.extend(self.quarantine.take_waiting(which));
        for (at, until) in waiting {
            self.finish(at, Outcome::Busy { until }, present);
        }
        for at in unclaimed {
            self.finish(at, Outcome::Returned(why), present);
        }
        for at in ready {
            self.not_started(at, why, present);
        }
    }

    /// Ends claiming with the time for handlers: a claim in doubt is undone as long as there is time.
    pub(super) fn end_claims(&mut self, present: &mut Present<'_>) {
        let answers = self.claims.stop();
        self.answered(answers, present);
        self.send_claims(present);
    }

    /// Ends the invocation: its response is due.
    pub(super) fn abandon(&mut self, present: &mut Present<'_>) {
        self.stop(present);
        let error = || {
            StoreError::new(
                StoreErrorKind::Unavailable,
                "no answer from the store before the invocation's deadline",
            )
        };
        for at in self.claims.abandon() {
            self.finish(at, Outcome::Unavailable(error()), present);
        }
        self.abandon_messages(present);
        for settling in self.settlements.abandon() {
            self.give_up(settling, error(), present);
        }
    }
}
