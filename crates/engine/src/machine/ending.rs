//! A record has its outcome, and what follows for others: its copies are answered, its group stops if it is returned, and
//! the records that are next begin.

use super::{
    Action, Machine, Present, RecordOutcome,
    carried::Carried,
    outcome::shared,
    record::{Entry, Stage},
    rule::Event,
    table::Work,
};
use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
};

impl Machine<'_> {
    /// Gives a record its outcome.
    pub(super) fn end(
        &mut self,
        at: usize,
        outcome: Outcome,
        work: &mut Work,
        present: &mut Present<'_>,
    ) {
        let outcome = self.given(outcome, present.now);
        self.moved(at, Stage::Done);
        self.answer_copies(at, &outcome, work);
        let entry = self.records.at(at);
        // Its sink is called once the batch has its outcomes.
        let passes = entry.ask().lets_pass && outcome.is_final();
        self.quarantine.ended(passes || outcome.is_acknowledged());
        if !outcome.is_acknowledged() && !passes {
            // The rest of the group: the source delivers it again, in order.
            let rest = self.order.same_group(at).into_iter();
            work.open.extend(rest.map(|at| (at, Event::Close(NotStarted::Order))));
        }
        self.actions.push_back(Action::Report(record_outcome(at, entry, outcome)));
        self.records.done(at);
        work.candidates.extend(self.order.leave(at));
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
    fn answer_copies(&mut self, at: usize, outcome: &Outcome, work: &mut Work) {
        let Some(shared) = shared(outcome) else { return };
        let copies = self.order.copies(at);
        for copy in &copies {
            self.order.leave_key(*copy);
            self.records.at(*copy).preset(shared.clone());
        }
        work.candidates.extend(copies);
    }
}

fn record_outcome(at: usize, entry: &mut Entry<'_>, outcome: Outcome) -> RecordOutcome {
    RecordOutcome {
        at,
        outcome: Carried(outcome),
        unrecorded: entry.take_unrecorded().map(|error| Box::new(Carried(error))),
        ran_for: entry.ran_for(),
        held: entry.held().cloned(),
    }
}
