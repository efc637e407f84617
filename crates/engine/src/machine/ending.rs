//! A record has its outcome, and what follows for others: its copies are answered, its group stops if it is returned, and the records that are next begin.
//!
//! What will never be processed, permanent failures and mismatches, is put aside. The permanent failure is recorded
//! first; then the record gets a second entry, whose work is to put it aside and whose key is its own. That one is
//! claimed, run and completed as any other (without a claim, if the record ran without one), and gives its outcome to
//! the record. Until then the record has none: its copies and its group wait. If there is no time left, or it cannot
//! be put aside, the record is returned, and its next delivery, which finds the permanent failure recorded, puts it
//! aside.

use super::{
    Action, Machine, Present, RecordOutcome,
    carried::Carried,
    entry::{Entry, Stage},
    outcomes::{Why, shared},
    step::Event,
    table::Work,
};
use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
};

impl Machine<'_> {
    /// Gives a record its outcome, or puts it aside because of that.
    pub(super) fn end(
        &mut self,
        at: usize,
        outcome: Outcome,
        work: &mut Work,
        present: &mut Present<'_>,
    ) {
        let outcome = self.given(outcome, present.now);
        match Why::of(&outcome) {
            Some(why) if self.can_put_aside(at) => self.put_aside(at, why, work, present),
            _ => self.ended(at, outcome, work),
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

    fn ended(&mut self, at: usize, outcome: Outcome, work: &mut Work) {
        self.moved(at, Stage::Done);
        self.answer_copies(at, &outcome, work);
        if !outcome.is_acknowledged() {
            // The rest of the group: the source delivers it again, in order.
            let rest = self.order.same_group(at).into_iter();
            work.open.extend(rest.map(|at| (at, Event::Close(NotStarted::Order))));
        }
        let entry = self.records.at(at);
        if let Some(record) = entry.stands_for() {
            let unrecorded = entry.take_unrecorded();
            self.records.at(record).set_unrecorded(unrecorded);
            work.open.push((record, Event::Aside(outcome)));
        } else {
            let ended = record_outcome(at, entry, outcome);
            self.actions.push_back(Action::Report(ended));
        }
        self.records.done(at);
        work.candidates.extend(self.order.leave(at));
    }

    /// Copies of the record in the same batch share its outcome, if it has one to share.
    ///
    /// The sink got the payload of this record. A copy may have another payload with the same fingerprint.
    /// It then reads the permanent failure from the store, and is put aside as well.
    fn answer_copies(&mut self, at: usize, outcome: &Outcome, work: &mut Work) {
        let Some(shared) = shared(outcome) else { return };
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
        work.candidates.extend(copies);
    }

    /// Whether record `at` can be put aside now.
    fn can_put_aside(&self, at: usize) -> bool {
        let has_sink = self.records.get(at).is_some_and(|entry| entry.ask().can_be_put_aside);
        let is_closed = self.starts.closed().is_some();
        has_sink && !is_closed && !self.starts.is_stopped()
    }

    /// Begins to put record `at` aside.
    pub(super) fn put_aside(
        &mut self,
        at: usize,
        why: Why,
        work: &mut Work,
        present: &mut Present<'_>,
    ) {
        self.moved(at, Stage::Aside);
        let entry = self.records.at(at);
        let (fence, outage) = (entry.fence(), entry.outage());
        let reason = why.reason.clone();
        entry.put_aside(why);
        let aside = self.records.next();
        let Some(key) = present.host.put_aside(at, aside, reason, fence) else { return };
        self.records.add_aside(at, key);
        if fence.is_none() {
            // A redelivery cannot be told apart from a record that was sent again after a failure. If the
            // latter were acknowledged without the sink, it would be lost.
            self.records.at(aside).runs_without_claim(outage);
        }
        work.open.push((aside, Event::Begin { looks: false }));
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
