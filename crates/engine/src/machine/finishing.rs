//! Gives a record its outcome: answers its copies, stops its group if it is returned, and starts the records
//! that are next.

use super::{
    Action, Machine, Present, RecordOutcome,
    ask::Task,
    carried::Carried,
    entry::{Entry, Stage},
    outcomes::shared,
};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{clock::Timestamp, outcome::Outcome};

impl Machine<'_> {
    /// Begins a record if it is the first of its key and its group, with a look if it `looks`. One whose
    /// outcome is known already, or that needs no handler, is finished.
    pub(super) fn begin_if_first(&mut self, at: usize, looks: bool, present: &mut Present<'_>) {
        if let Some(outcome) = self.try_begin(at, looks) {
            self.finish(at, outcome, present);
        }
    }

    /// Queues a record for its look, its claim or its handler if it is the first of its key and its
    /// group; returns the outcome of one that needs none of them.
    fn try_begin(&mut self, at: usize, looks: bool) -> Option<Outcome> {
        let entry = self.records.at(at);
        if entry.stage() != Stage::Queued || !self.order.may_go(at) {
            return None;
        }
        if let Some(known) = entry.take_preset() {
            return Some(known);
        }
        let is_keyed = match &entry.ask().task {
            Task::Skip => return Some(Outcome::Skipped),
            Task::Reject(rejection) => return Some(Outcome::Rejected(rejection.0.clone())),
            Task::Keyed => true,
            Task::Unprotected => false,
        };
        if let Some(why) = self.closed(at) {
            return Some(Outcome::Returned(why));
        }
        let entry = self.records.at(at);
        if is_keyed {
            entry.enter(Stage::Claiming);
            if looks && self.starts.has_room_for_looks() {
                self.starts.add_look(at);
            } else {
                self.starts.add_claim(at);
            }
        } else {
            entry.enter(Stage::Ready);
            self.starts.add_ready(at);
        }
        None
    }

    /// Gives a record its outcome, and continues with the records that wait for it.
    pub(super) fn finish(&mut self, at: usize, outcome: Outcome, present: &mut Present<'_>) {
        // Most records have no copies and no group.
        let mut first = Some((at, self.given(outcome, present.now)));
        let (mut open, mut next) = (Vec::new(), Vec::new());
        let mut failed = None;
        loop {
            while let Some((at, outcome)) = first.take().or_else(|| open.pop()) {
                if self.records.at(at).is_done() {
                    continue;
                }
                self.quarantine.leave(at);
                let Some(outcome) = self.divert(at, outcome, present) else { continue };
                next.extend(self.answer_copies(at, &outcome));
                if !outcome.is_acknowledged() && keeps(Rule::StopsTheGroup) {
                    failed = Some(failed.map_or(at, |before: usize| before.min(at)));
                    open.extend(self.stop_group_behind(at));
                }
                let entry = self.records.at(at);
                if let Some(record) = entry.stands_for() {
                    let unrecorded = entry.take_unrecorded();
                    self.records.at(record).set_unrecorded(unrecorded);
                    open.push((record, outcome));
                } else {
                    let ended = record_outcome(at, entry, outcome);
                    self.actions.push_back(Action::Report(ended));
                }
                present.host.leave(at);
                self.records.done(at);
                next.extend(self.order.leave(at));
            }
            // This comes last, because a record whose group has just failed must not begin.
            let Some(candidate) = next.pop() else { break };
            open.extend(self.try_begin(candidate, false).map(|outcome| (candidate, outcome)));
        }
        if let Some(failed) = failed {
            self.stop_batch_behind(failed, present);
        }
    }

    /// The answer of an attempt that finds its key completed by another worker. It has no result if the time for which results
    /// are given is over: an attempt without a claim may find a completion of long ago.
    fn given(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        match outcome {
            Outcome::Superseded { result, completion } => {
                let result =
                    result.filter(|_| self.setting.policy.gives_result_of(completion, now));
                Outcome::Superseded { result, completion }
            }
            outcome => outcome,
        }
    }

    /// Copies of the record in the same batch share its outcome, if it has one to share.
    ///
    /// The sink got the payload of this record. A copy may have another payload with the same fingerprint.
    /// It then reads the permanent failure from the store, and is put aside as well.
    fn answer_copies(&mut self, at: usize, outcome: &Outcome) -> Vec<usize> {
        let Some(shared) = shared(outcome) else { return Vec::new() };
        let mut copies = self.order.copies(at);
        if let Some(entry) = self.records.get(at)
            && entry.why().is_some()
            && outcome.is_acknowledged()
        {
            let payload = entry.ask().payload;
            let same = |copy: &Entry<'_>| copy.ask().payload == payload;
            copies.retain(|copy| self.records.get(*copy).is_some_and(same));
        }
        for copy in &copies {
            self.order.leave_key(*copy);
            self.records.at(*copy).preset(shared.clone());
        }
        copies
    }
}

fn record_outcome(at: usize, entry: &mut Entry<'_>, outcome: Outcome) -> RecordOutcome {
    RecordOutcome {
        at,
        outcome: Carried(outcome),
        why: entry.take_why().map(|why| Box::new(Carried(why))),
        unrecorded: entry.take_unrecorded().map(|error| Box::new(Carried(error))),
        ran_for: entry.ran_for(),
        held: entry.held().cloned(),
    }
}
