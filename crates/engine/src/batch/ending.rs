//! The end: of the time for handlers, of the whole invocation, or of what may begin after a failure.

use super::{drive::Drive, entry::Stage};
use lambda_idempotency_core::{
    admission::Settlement,
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    policy::OnTimeout,
    store::{StoreError, StoreErrorKind},
};

impl Drive<'_> {
    pub(super) fn tick(&mut self) {
        let now = self.now();
        if self.budget.reply().is_some_and(|reply| now >= reply) {
            self.stop();
            self.abandon();
        }
    }

    /// Stops who has lost its lease while nobody looked: the process was stopped and continued, or
    /// its processor was busy. A successor may be at work by now. Says whether that was the outcome
    /// of any record.
    pub(super) fn stop_overdue(&mut self, now: Timestamp) -> bool {
        let open = self.open;
        if self.budget.end().is_some_and(|end| now > end.plus(self.policy.lease_grace)) {
            self.stop();
        }
        self.beat(now);
        self.open < open
    }

    /// Ends the time of the handlers: nothing starts any more. What runs is dropped and keeps its
    /// lease; what was let go and has not begun goes back.
    pub(super) fn stop(&mut self) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        let now = self.now();
        for at in self.in_stage(Stage::Running) {
            if self.entry(at).stop(now) {
                self.timed_out(at);
            } else {
                self.not_started(at, NotStarted::Deadline);
            }
        }
        self.running.clear();
        self.close(NotStarted::Deadline);
    }

    /// The handler was dropped. Its effect may be on its way, so its key is not given free: the lease
    /// stands, or the key fails permanently.
    fn timed_out(&mut self, at: usize) {
        let entry = self.entry(at);
        // Putting a record aside is tried again, whatever becomes of its own work.
        let held = entry.held.clone().filter(|_| !entry.is_aside);
        match (held, self.policy.on_timeout) {
            (Some(held), OnTimeout::FailPermanently) => {
                let error = "a timeout".into();
                let settlement = Settlement::FailPermanently { result: None, error_type: error };
                self.settle(at, held, settlement, Outcome::TimedOut { permanent: true });
            }
            _ => {
                self.finish(at, Outcome::TimedOut { permanent: false });
            }
        }
    }

    /// Starts nothing any more: what is claimed is put back, what waits goes back.
    pub(super) fn close(&mut self, why: NotStarted) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(why);
        while let Some((at, until)) = self.asleep.pop() {
            self.finish(at, Outcome::Busy { until });
        }
        let unclaimed = std::mem::take(&mut self.to_claim).into_iter();
        for at in unclaimed.chain(std::mem::take(&mut self.suspects)) {
            self.finish(at, Outcome::Returned(why));
        }
        for at in std::mem::take(&mut self.ready) {
            self.not_started(at, why);
        }
    }

    /// Ends everything: the answer is due.
    fn abandon(&mut self) {
        let error = || {
            StoreError::new(
                StoreErrorKind::Unavailable,
                "no answer from the store before the invocation's deadline",
            )
        };
        self.claiming.clear();
        self.claims = 0;
        for at in self.in_stage(Stage::Claiming) {
            self.finish(at, Outcome::Unavailable(error()));
        }
        for settle in self.settles.abandon() {
            self.give_up(settle, error());
        }
    }
    fn in_stage(&self, stage: Stage) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter(|(_, entry)| entry.stage == stage && entry.outcome.is_none())
            .map(|(at, _)| at)
            .collect()
    }
}
