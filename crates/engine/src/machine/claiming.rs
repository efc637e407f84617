//! Handles the answer to a claim: the record is ready, waits, or gets its outcome.

use std::{sync::Arc, time::Duration};

use super::{Machine, Present, entry::Stage, waiting::pause, wanted::Claimed};
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, NotStarted, Outcome},
    policy::OnConflict,
    record::Json,
    store::{StoreError, StoreErrorKind},
};

impl Machine<'_> {
    pub(super) fn claimed(&mut self, at: usize, claimed: Claimed, present: &mut Present<'_>) {
        if matches!(claimed, Claimed::Unavailable(_)) && self.quarantine.has_turn(at) {
            self.starts.hold_up();
        }
        let closed = self.closed(at);
        match claimed {
            Claimed::Held(held) => {
                self.leases.keep(at, &held);
                self.records.at(at).granted(Arc::clone(&held));
                present.host.holds(at);
                match closed {
                    Some(why) => self.not_started(at, why, present),
                    None if self.gives_up(at, &held) => {
                        self.leases.forget(at);
                        let failure = Failure::lost(held.consecutive_losses());
                        self.failed(at, held, failure, present);
                    }
                    None => self.starts.add_ready(at),
                }
            }
            Claimed::Assumed { held, guard } => {
                self.leases.keep(at, &held);
                self.records.at(at).assumed(held, guard);
                match closed {
                    Some(why) => self.not_started(at, why, present),
                    None => self.starts.add_ready(at),
                }
            }
            Claimed::Replay(result, completion) => {
                let outcome = self.replayed(result, completion, present.now);
                self.finish(at, outcome, present);
            }
            Claimed::Unsent(stored) => {
                let (result, completion) =
                    (stored.record.result.clone(), Completion::of(&stored.record));
                let outcome = self.replayed(result, completion, present.now);
                self.publish(at, stored, outcome, present);
            }
            Claimed::PermanentlyFailed { error_type, failed_attempts, fence } => {
                self.records.at(at).found_final(fence);
                self.finish(
                    at,
                    Outcome::PermanentlyFailed { error_type, failed_attempts },
                    present,
                );
            }
            Claimed::Mismatch { fence } => {
                self.records.at(at).found_final(fence);
                self.finish(at, Outcome::Mismatch, present);
            }
            Claimed::Busy { until, is_given_up } => {
                let conflict = self.conflict(at);
                let conflict = if is_given_up { conflict.or_return() } else { conflict };
                self.busy(at, until, conflict, present);
            }
            Claimed::Foreign { application } => {
                let foreign = self.foreign(application);
                self.finish(at, Outcome::Foreign(foreign), present);
            }
            Claimed::Free { .. } | Claimed::Unseen | Claimed::Suspect { .. }
                if closed.is_some() =>
            {
                let why = closed.unwrap_or(NotStarted::Deadline);
                self.finish(at, Outcome::Returned(why), present);
            }
            Claimed::Free { seen } => {
                // Other records may have to start first, and this one must not delay them meanwhile.
                present.host.leave(at);
                self.quarantine.leave(at);
                self.records.at(at).found_free(seen);
                self.starts.add_claim(at);
            }
            Claimed::Unseen => {
                present.host.leave(at);
                self.quarantine.leave(at);
                self.starts.add_unseen(at);
            }
            Claimed::Suspect { attempts, seen } => {
                // While it waits for its turn, it holds neither its key in this process nor a claim.
                present.host.leave(at);
                let entry = self.records.at(at);
                entry.quarantined(attempts.losses(), seen);
                let receives = entry.ask().receives;
                self.quarantine.leave(at);
                self.quarantine.add(at, attempts, receives);
            }
            Claimed::Unavailable(error) if self.runs_without(at, &error) => {
                self.records.at(at).runs_without_claim(Some(error));
                self.starts.add_ready(at);
            }
            Claimed::Unavailable(error) => self.finish(at, Outcome::Unavailable(error), present),
        }
    }

    /// The answer from a completion: without its result, once that is not given any more.
    fn replayed(
        &self,
        result: Option<Json>,
        completion: Option<Completion>,
        now: Timestamp,
    ) -> Outcome {
        let result = result.filter(|_| self.setting.policy.gives_result_of(completion, now));
        Outcome::Replayed { result, completion }
    }

    /// Whether the key has lost so many workers in a row that its handler is not called again. A sink is tried
    /// again all the same, and a mutex keeps no failure.
    fn gives_up(&self, at: usize, held: &Held) -> bool {
        let is_aside = self.records.get(at).is_some_and(|entry| entry.ask().is_aside);
        let keeps_failures = !is_aside && !self.is_mutex(at);
        keeps_failures && self.setting.policy.gives_up(held.consecutive_losses())
    }

    /// Whether the policy runs handlers unprotected during an outage.
    fn runs_without(&self, at: usize, error: &StoreError) -> bool {
        let outage =
            matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled);
        let chosen = self.setting.policy.on_outage.runs_unprotected();
        outage && chosen && self.closed(at).is_none()
    }

    fn busy(
        &mut self,
        at: usize,
        until: Timestamp,
        conflict: OnConflict,
        present: &mut Present<'_>,
    ) {
        let now = present.now;
        let entry = self.records.at(at);
        let since = entry.met_busy(now);
        let pause = pause(entry.looks());
        entry.looked();
        if conflict.skips() {
            return self.finish(at, Outcome::Skipped, present);
        }
        let limit = conflict.waits_until(since, until);
        let past = until.plus(Duration::from_millis(1));
        let wake = now.plus(pause).min(past.max(now)).min(limit);
        let in_time = wake < self.starts.budget().stop();
        if self.closed(at).is_some() || now >= limit || !in_time {
            return self.finish(at, Outcome::Busy { until }, present);
        }
        self.records.at(at).enter(Stage::Waiting);
        self.waiting.add(at, wake, until, now);
        self.quarantine.leave(at);
    }
}
