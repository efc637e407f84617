//! What happens in which stage, and the loop that carries it out.
//!
//! Only the table lets a record enter a stage; the lists of the record follow from that. A record that has its outcome
//! decides for others: its copies are answered, its group stops if it is returned, and the records that are next begin.

use super::{
    Machine, Present, claim, handlers,
    io::{Action, Carried, RecordOutcome},
    messages, optimistic,
    outcome::shared,
    quarantine::Quarantine,
    record::{BatchRecord, Stage},
    rule::{Next, RecordEvent, RecordView},
    settle,
};
use lambda_idempotency_core::{
    admission::Settlement,
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    store::Verdict,
};

/// What follows from a step for other records, and is not done yet.
#[derive(Default)]
pub(super) struct FollowUps {
    /// What happens to which record; the last comes first.
    pub(super) open: Vec<(usize, RecordEvent)>,
    /// Records that may begin when nothing else is to be done: a record whose group has just failed must not begin.
    pub(super) candidates: Vec<usize>,
}

impl Machine<'_> {
    /// Something happens to a record; does all that follows. Says which stage the record has then.
    pub(super) fn run(
        &mut self,
        at: usize,
        event: RecordEvent,
        present: &mut Present<'_>,
    ) -> Stage {
        let mut work = FollowUps::default();
        self.happens(at, event, &mut work, present);
        while let Some((at, event)) = Self::next_event(&mut work) {
            self.happens(at, event, &mut work, present);
        }
        self.records.at(at).stage()
    }

    fn next_event(work: &mut FollowUps) -> Option<(usize, RecordEvent)> {
        if let Some(open) = work.open.pop() {
            return Some(open);
        }
        work.candidates.pop().map(|at| (at, RecordEvent::Begin { looks: false }))
    }

    fn happens(
        &mut self,
        at: usize,
        event: RecordEvent,
        work: &mut FollowUps,
        present: &mut Present<'_>,
    ) {
        let next = self.step(at, event, present);
        self.enter(at, next, work, present);
    }

    /// What becomes of a record to which this happens.
    fn step(&mut self, at: usize, event: RecordEvent, present: &mut Present<'_>) -> Next {
        let mut view = RecordView {
            at,
            now: present.now,
            host: &mut *present.host,
            setting: &self.setting,
            budget: *self.starts.budget(),
            terms: *self.leases.terms(),
            closed: self.starts.closed(),
            has_turn: self.quarantine.has_turn(at),
            is_beside_others: self.records.open() > 1,
            held_up: false,
            entry: self.records.at(at),
        };
        let (s, leases) = (&mut view, &mut self.leases);
        let next = match (s.entry.stage(), event) {
            (Stage::Queued, RecordEvent::Begin { looks }) if self.order.may_go(at) => {
                claim::begin(s, looks && self.starts.has_room_for_looks())
            }
            (Stage::ToLook, RecordEvent::Turn) => claim::turn(s, true),
            (Stage::Unseen | Stage::ToClaim | Stage::Suspected, RecordEvent::Turn) => {
                claim::turn(s, false)
            }
            (Stage::Claiming, RecordEvent::Claimed(claimed)) => claim::claimed(s, claimed),
            (Stage::Claiming, RecordEvent::Unanswered) => claim::unanswered(),
            (Stage::Waiting(_), RecordEvent::Woken) => Next::To(Stage::ToLook),
            (Stage::Ready, RecordEvent::Start) => {
                let held = s.entry.held().cloned();
                self.actions.push_back(Action::Start { at, held, stop: s.budget.stop() });
                Next::To(Stage::Running)
            }
            (Stage::Running, RecordEvent::Ended(ended, since)) => handlers::ended(s, ended, since),
            (Stage::Running, RecordEvent::Stop) => handlers::stopped(s),
            (Stage::Running, RecordEvent::Steps(steps)) => handlers::step_ended(s, leases, steps),
            (Stage::Ready | Stage::Running, RecordEvent::Renewed { kept, record, verdict }) => {
                handlers::renewed(s, leases, kept, record.map(|record| *record), *verdict)
            }
            (Stage::Ready, RecordEvent::Lapsed) => settle::not_started(s, NotStarted::Lease),
            (Stage::Running, RecordEvent::Lapsed) => handlers::lapsed(s),
            (Stage::Settling, RecordEvent::Settled { settling, written, verdict }) => {
                match verdict.map_or(Verdict::Written, |verdict| *verdict) {
                    Verdict::Found(found) if settling.assumed.is_some() => {
                        optimistic::met(s, settling, found)
                    }
                    verdict => settle::answered(s, settling, written, verdict),
                }
            }
            (Stage::Settling, RecordEvent::Unsettled(settling)) => {
                settle::give_up(s, settling, settle::too_late())
            }
            (Stage::Sending, RecordEvent::Sent(outbox, answer)) => messages::sent(outbox, answer),
            (stage, RecordEvent::Close(why)) => match stage {
                Stage::Queued
                | Stage::ToLook
                | Stage::Unseen
                | Stage::ToClaim
                | Stage::Suspected => Next::End(Outcome::Returned(why)),
                Stage::Waiting(wait) => Next::End(Outcome::Busy { until: wait.until }),
                Stage::Ready => settle::not_started(s, why),
                _ => Next::Stay,
            },
            // A late answer, or a second reason to stop.
            _ => Next::Stay,
        };
        let next = match next {
            Next::Mark(stored, outcome) => settle::settle(s, stored, Settlement::MarkSent, outcome),
            next => next,
        };
        if view.held_up {
            self.starts.hold_up();
        }
        next
    }

    /// Carries out what becomes of a record.
    fn enter(&mut self, at: usize, next: Next, work: &mut FollowUps, present: &mut Present<'_>) {
        match next {
            Next::Stay => {}
            Next::To(stage) => self.moved(at, stage),
            Next::Suspect(losses) => {
                self.moved(at, Stage::Suspected);
                self.quarantine.add(at, losses, self.records.at(at).given().receives);
            }
            Next::Claim(wanted) => {
                self.moved(at, Stage::Claiming);
                self.claims.reserve(self.starts.most_claims());
                self.claims.add(wanted);
            }
            Next::Settle(settling) => {
                self.moved(at, Stage::Settling);
                self.settlements.add(settling);
            }
            Next::Send(outbox) => {
                self.moved(at, Stage::Sending);
                self.outboxes.add(outbox);
            }
            Next::End(outcome) => self.end(at, outcome, work, present),
            // The table has made a settlement of it.
            Next::Mark(..) => {}
        }
    }
}

impl Machine<'_> {
    /// Record `at` enters this stage: it leaves the lists of the stage before, and joins those of the new one.
    pub(super) fn moved(&mut self, at: usize, to: Stage) {
        let entry = self.records.at(at);
        let was = entry.enter(to);
        self.starts.moved(at, was, to, entry.ran_for().is_some());
        self.waiting.moved(at, was, to);
        if was == Stage::Suspected {
            self.quarantine.remove(at);
        }
        if !Quarantine::keeps_turn(to) {
            self.quarantine.leave(at);
        }
        match (was.is_kept(), to.is_kept()) {
            (false, true) => {
                if let Some(held) = entry.held() {
                    self.leases.keep(at, held);
                }
            }
            (true, false) => self.leases.forget(at),
            _ => {}
        }
    }

    /// The records that wait: for a busy key, for their claim, for their turn in quarantine, for their handler.
    pub(super) fn not_begun(&self) -> Vec<usize> {
        let unclaimed = self.starts.unclaimed().chain(self.quarantine.waiting());
        self.waiting.all().chain(unclaimed).chain(self.starts.ready()).collect()
    }

    /// Whether each record is in the list of its stage, and in no other; not checked in batches that are large, since
    /// it is asked often.
    pub(super) fn lists_follow(&self) -> bool {
        if self.records.all().len() > 20 {
            return true;
        }
        let mut listed = self.not_begun();
        listed.sort_unstable();
        let all = self.records.all().iter().map(BatchRecord::stage).enumerate();
        let not_begun = all.clone().filter(|(_, stage)| stage.has_not_begun()).map(|(at, _)| at);
        let in_stage = |is: fn(Stage) -> bool| all.clone().filter(|(_, stage)| is(*stage)).count();
        not_begun.eq(listed)
            && self.starts.running() == in_stage(|stage| stage == Stage::Running)
            && self.records.open() == in_stage(|stage| stage != Stage::Done)
    }
}

impl Machine<'_> {
    /// Gives a record its outcome.
    pub(super) fn end(
        &mut self,
        at: usize,
        outcome: Outcome,
        work: &mut FollowUps,
        present: &mut Present<'_>,
    ) {
        let outcome = self.given(outcome, present.now);
        self.moved(at, Stage::Done);
        self.answer_copies(at, &outcome, work);
        let entry = self.records.at(at);
        // Its sink is called once the batch has its outcomes.
        let passes = entry.given().lets_pass && outcome.is_final();
        self.quarantine.ended(passes || outcome.is_acknowledged());
        if !outcome.is_acknowledged() && !passes {
            // The rest of the group: the source delivers it again, in order.
            let rest = self.order.same_group(at).into_iter();
            work.open.extend(rest.map(|at| (at, RecordEvent::Close(NotStarted::Order))));
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
    fn answer_copies(&mut self, at: usize, outcome: &Outcome, work: &mut FollowUps) {
        let Some(shared) = shared(outcome) else { return };
        let copies = self.order.copies(at);
        for copy in &copies {
            self.order.leave_key(*copy);
            self.records.at(*copy).preset(shared.clone());
        }
        work.candidates.extend(copies);
    }
}

fn record_outcome(at: usize, entry: &mut BatchRecord<'_>, outcome: Outcome) -> RecordOutcome {
    RecordOutcome {
        at,
        outcome: Carried(outcome),
        unrecorded: entry.take_unrecorded().map(|error| Box::new(Carried(error))),
        ran_for: entry.ran_for(),
        held: entry.held().cloned(),
    }
}
