//! An outcome, and what follows from it: for the record's copies, for its group, and for who is next.

use super::{
    AfterFailure,
    answers::shared,
    drive::Drive,
    entry::{Entry, Intake, Stage},
};
use crate::observe::Report;
use lambda_idempotency_core::{
    contained::caught,
    outcome::{NotStarted, Outcome},
};

impl Drive<'_> {
    /// Lets a record go if its turn has come.
    pub(super) fn consider(&mut self, at: usize) {
        if let Some(outcome) = self.set_off(at) {
            self.finish(at, outcome);
        }
    }

    fn set_off(&mut self, at: usize) -> Option<Outcome> {
        if !self.plan.may_go(at) {
            return None;
        }
        let closed = self.closed;
        let entry = self.entry(at);
        if entry.outcome.is_some() || entry.stage != Stage::Waiting {
            return None;
        }
        if let Some(known) = entry.preset.take() {
            return Some(*known);
        }
        match &entry.intake {
            Intake::Skip => return Some(Outcome::Skipped),
            Intake::Reject(rejection) => return Some(Outcome::Rejected(rejection.clone())),
            _ => {}
        }
        if let Some(why) = closed {
            return Some(Outcome::Returned(why));
        }
        let queue = match entry.intake {
            Intake::Unprotected => &mut self.ready,
            _ => &mut self.to_claim,
        };
        queue.push_back(at);
        self.entry(at).stage = Stage::Moving;
        None
    }

    /// Gives a record its outcome, and to those that wait for it what follows from that.
    pub(super) fn finish(&mut self, at: usize, outcome: Outcome) {
        // Mostly it is alone.
        let mut first = Some((at, outcome));
        let (mut open, mut next) = (Vec::new(), Vec::new());
        let mut all_well = true;
        loop {
            while let Some((at, outcome)) = first.take().or_else(|| open.pop()) {
                if self.entry(at).outcome.is_some() {
                    continue;
                }
                if self.alone == Some(at) {
                    self.alone = None;
                }
                let Some(outcome) = self.divert(at, outcome) else { continue };
                next.extend(self.answer_copies(at, &outcome));
                if !outcome.is_acknowledged() {
                    all_well = false;
                    let rest = self.plan.same_group(at).into_iter();
                    open.extend(rest.map(|at| (at, Outcome::Returned(NotStarted::Order))));
                }
                let entry = self.entry(at);
                if let Some(record) = entry.stands_for {
                    let unrecorded = entry.unrecorded.take();
                    self.entry(record).unrecorded = unrecorded;
                    open.push((record, outcome.clone()));
                } else if let Some(entry) = self.entries.get(at) {
                    self.report(entry, &outcome);
                }
                let entry = self.entry(at);
                entry.outcome = Some(outcome);
                entry.lead = None;
                self.open -= 1;
                next.extend(self.plan.leave(at));
            }
            // Only now: a record whose group has just failed must not set off.
            let Some(candidate) = next.pop() else { break };
            open.extend(self.set_off(candidate).map(|outcome| (candidate, outcome)));
        }
        if !all_well && self.after_failure == AfterFailure::Batch {
            self.close(NotStarted::Order);
        }
    }

    /// Copies of the record in the same batch share its outcome, if it has one to share.
    ///
    /// What was put aside is the record's own payload. A copy with another one, which has the same
    /// fingerprint, finds the permanent failure for itself, and is put aside as well.
    fn answer_copies(&mut self, at: usize, outcome: &Outcome) -> Vec<usize> {
        let Some(shared) = shared(outcome) else { return Vec::new() };
        let mut copies = self.plan.copies(at);
        if let Some(Entry { why: Some(_), payload, .. }) = self.entries.get(at)
            && outcome.is_acknowledged()
        {
            let same = |copy: &Entry<'_>| copy.payload == *payload;
            copies.retain(|copy| self.entries.get(*copy).is_some_and(same));
        }
        for copy in &copies {
            self.plan.leave_key(*copy);
            self.entry(*copy).preset = Some(Box::new(shared.clone()));
        }
        copies
    }

    /// Tells the observer. If that panics, the record has its outcome all the same.
    fn report(&self, entry: &Entry<'_>, outcome: &Outcome) {
        let mut report = Report::new(self.operation, &entry.record, entry.key.as_ref(), outcome);
        report.ran_for = entry.ran_for;
        report.unrecorded = entry.unrecorded.as_deref();
        if let Some(why) = &entry.why {
            report.aside = Some(&why.reason);
            report.failure = why.failure.as_ref();
        }
        if let Some(held) = &entry.held {
            report.failed_attempts = held.failed_attempts();
            report.lost_attempts = held.lost_attempts();
        }
        caught(|| self.engine.observer.settled(&report));
    }
}
