//! Stops handlers whose lease is lost. A handler runs only while its worker knows that it has the lease. It
//! is stopped when a renewal finds another owner, or when no renewal succeeded in time.

use super::{Machine, Present, entry::Stage, leases::Kept};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::{Overtaken, Settled, Settlement},
    outcome::{Completion, NotStarted, Outcome},
    record::IdempotencyRecord,
    store::Verdict,
};

impl Machine<'_> {
    /// Stops handlers whose lease has ended, and records that would start without one. The process was
    /// suspended, its processor was busy, or the lease could not be renewed. A successor may have taken the
    /// key over.
    pub(super) fn stop_overdue(&mut self, present: &mut Present<'_>) {
        if !keeps(Rule::StopsWithoutLease) {
            return;
        }
        let now = present.now;
        if now > self.leases.terms().end() {
            self.stop(present);
        }
        for kept in self.leases.take_lapsed(now) {
            let at = kept.at;
            match self.records.at(at).stage() {
                Stage::Running => self.lapsed(at, present),
                Stage::Ready => {
                    self.starts.remove_ready(at);
                    self.not_started(at, NotStarted::Lease, present);
                }
                _ => {}
            }
        }
    }

    /// A renewal was answered.
    pub(super) fn renewed(
        &mut self,
        kept: Kept,
        record: Option<IdempotencyRecord>,
        verdict: Verdict,
        present: &mut Present<'_>,
    ) {
        let (at, now) = (kept.at, present.now);
        let entry = self.records.at(at);
        let (Some(record), Some(held), true) = (record, entry.held(), entry.is_kept()) else {
            return;
        };
        match verdict {
            Verdict::Written => self.extended(&kept, &record, present),
            Verdict::Found(found) => {
                let lease_until = record.lease_until.unwrap_or(now);
                match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
                    Settled::Done => {
                        self.extended(&kept, found.as_ref().unwrap_or(&record), present);
                    }
                    Settled::Again { .. } => {
                        if let Some(found) = &found {
                            self.records.at(at).renewed(found);
                        }
                        self.leases.again(kept, now);
                    }
                    Settled::Overtaken(by) => self.lose(at, by, found, present),
                }
            }
            // It is tried again until the lease has ended; then the handler is stopped.
            Verdict::EffectRefused(_) => self.leases.unanswered(kept, now),
            Verdict::Unknown(error) => {
                self.steps_refused(at, &error, present);
                self.leases.unanswered(kept, now);
            }
        }
    }

    fn extended(&mut self, kept: &Kept, record: &IdempotencyRecord, present: &mut Present<'_>) {
        if let Some(lease_until) = record.lease_until {
            present.host.renewed(kept.at, lease_until);
        }
        let entry = self.records.at(kept.at);
        entry.renewed(record);
        if let Some(held) = entry.held() {
            self.leases.keep(kept.at, held);
        }
        self.steps_stored(kept.at, record, present);
    }

    /// The lease of a running handler was not renewed in time: it is stopped. Another worker may have claimed
    /// the key. If none has, the record says that this worker stopped the handler: else its next claim
    /// would take that for a loss, as if the process had died.
    fn lapsed(&mut self, at: usize, present: &mut Present<'_>) {
        let since = present.host.stop(at);
        self.records.at(at).ended(since, present.now);
        self.leases.forget(at);
        self.starts.ended(since.is_some());
        if since.is_none() {
            return self.not_started(at, NotStarted::Lease, present);
        }
        match self.records.at(at).held().cloned() {
            Some(held) => {
                self.settle(at, held, Settlement::LeaveStanding, Outcome::Fenced, present);
            }
            None => self.finish(at, Outcome::Fenced, present),
        }
    }

    /// The lease is lost: a running handler is dropped, and a waiting record does not start.
    fn lose(
        &mut self,
        at: usize,
        by: Overtaken,
        found: Option<IdempotencyRecord>,
        present: &mut Present<'_>,
    ) {
        let was_started = self.records.at(at).stage() == Stage::Running;
        let since = if was_started { present.host.stop(at) } else { None };
        if was_started {
            self.starts.ended(since.is_some());
        } else {
            self.starts.remove_ready(at);
        }
        self.leases.forget(at);
        self.records.at(at).ended(since, present.now);
        let running = since.is_some();
        let completion = found.as_ref().and_then(Completion::of);
        let outcome = match by {
            Overtaken::Completed(result) if running => Outcome::Superseded { result, completion },
            Overtaken::Completed(result) => Outcome::Replayed { result, completion },
            _ if running => Outcome::Fenced,
            Overtaken::Foreign { application } => Outcome::Foreign(self.foreign(application)),
            Overtaken::Mismatch { fence } => {
                self.records.at(at).found_final(fence);
                Outcome::Mismatch
            }
            Overtaken::InProgress { until } => Outcome::Busy { until },
            Overtaken::PermanentlyFailed { .. } | Overtaken::Gone => {
                Outcome::Returned(NotStarted::Lease)
            }
        };
        match self.records.at(at).held().cloned() {
            Some(held) => self.finish_overtaken(at, &held, found, outcome, present),
            None => self.finish(at, outcome, present),
        }
    }
}
