//! The table of which rule handles which event in which stage, and the loop that carries it out.
//!
//! Only the table lets a record enter a stage; the lists of the record follow from that. A record that has its outcome
//! decides for others: its copies are answered, its group stops if it is returned, and the records that are next begin.

use super::{
    Machine, Present, claim, handlers,
    io::{Action, Carried, RecordOutcome},
    messages, optimistic,
    outcome::shared,
    record::{BatchRecord, Stage},
    rule::{ClaimToken, Decision, DropReason, Effect, Next, RecordEvent, RecordView},
    settle,
};
use lambda_idempotency_core::{
    admission::Settlement,
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    store::Verdict,
};

/// Events of other records that follow from one, and are not handled yet.
#[derive(Default)]
struct FollowUps {
    /// Records and their events; the last comes first.
    open: Vec<(usize, RecordEvent)>,
    /// Records that may begin when nothing else is to be done: a record whose group has just failed must not begin.
    candidates: Vec<usize>,
}

impl FollowUps {
    fn next(&mut self) -> Option<(usize, RecordEvent)> {
        let begin = |at| (at, RecordEvent::Begin { looks: false });
        self.open.pop().or_else(|| self.candidates.pop().map(begin))
    }
}

/// The row of the table for an event in a stage: what follows, without a question to the host.
fn follow(view: &RecordView<'_, '_>, stage: Stage, event: RecordEvent) -> Decision {
    let next = match (stage, event) {
        (Stage::Queued, RecordEvent::Begin { looks }) => claim::begin(view, looks),
        (Stage::Queued, RecordEvent::Preset(outcome)) => Next::End(outcome),
        (Stage::ToLook, RecordEvent::Token(token)) => claim::ask(view, token, true),
        (Stage::Unseen | Stage::ToClaim | Stage::Suspected, RecordEvent::Token(token)) => {
            claim::ask(view, token, false)
        }
        (
            Stage::ToLook | Stage::Unseen | Stage::ToClaim | Stage::Suspected | Stage::Claiming,
            RecordEvent::Claimed(claimed),
        ) => return claim::claimed(view, claimed),
        (Stage::Claiming, RecordEvent::Unanswered) => claim::unanswered(),
        (Stage::Waiting(_), RecordEvent::Woken) => Next::To(Stage::ToLook),
        (Stage::Ready, RecordEvent::Start) => Next::Start,
        (Stage::Ready, RecordEvent::Lapsed) => settle::not_started(view, NotStarted::Lease),
        (Stage::Ready | Stage::Running, RecordEvent::Renewed { kept, record, verdict }) => {
            return handlers::renewed(view, kept, record, *verdict);
        }
        (Stage::Running, RecordEvent::Ended(ended, since)) => {
            return handlers::ended(view, ended, since);
        }
        (Stage::Running, RecordEvent::Steps(steps)) => {
            return Next::Stay.with(Effect::Steps(steps));
        }
        (Stage::Running, RecordEvent::Lapsed) => Next::Drop(DropReason::Lapsed),
        (Stage::Running, RecordEvent::Stop) => Next::Drop(DropReason::Deadline),
        (Stage::Running, RecordEvent::Dropped(why, since)) => {
            return handlers::dropped(view, why, since);
        }
        (Stage::Settling, RecordEvent::Settled { settling, written, verdict }) => {
            match verdict.map_or(Verdict::Written, |verdict| *verdict) {
                Verdict::Found(found) if settling.assumed.is_some() => {
                    optimistic::met(view, settling, found)
                }
                verdict => settle::answered(view, settling, written, verdict),
            }
        }
        (Stage::Settling, RecordEvent::Unsettled(settling)) => {
            settle::give_up(view, settling, settle::too_late())
        }
        (Stage::Sending, RecordEvent::Sent(outbox, answer)) => messages::sent(outbox, answer),
        (_, RecordEvent::AllSent(stored, outcome)) => {
            settle::settle(view, stored, Settlement::MarkSent, outcome)
        }
        (stage, RecordEvent::Close(why)) => match stage {
            Stage::Queued | Stage::ToLook | Stage::Unseen | Stage::ToClaim | Stage::Suspected => {
                Next::End(Outcome::Returned(why))
            }
            Stage::Waiting(wait) => Next::End(Outcome::Busy { until: wait.until }),
            Stage::Ready => settle::not_started(view, why),
            _ => Next::Stay,
        },
        // A late answer, or a second reason to stop.
        _ => Next::Stay,
    };
    next.into()
}

impl<'a> Machine<'a> {
    /// Something happens to a record; does all that follows. Says which stage the record has then.
    pub(super) fn run(
        &mut self,
        first: usize,
        event: RecordEvent,
        present: &mut Present<'_>,
    ) -> Stage {
        let mut work = FollowUps::default();
        let mut next = Some((first, event));
        while let Some((at, event)) = next {
            let decision = self.decide(at, event, present);
            for effect in decision.effects.into_iter().flatten() {
                self.apply(at, effect, present);
            }
            self.enter(at, decision.next, &mut work, present);
            next = work.next();
        }
        self.records.of(first).stage()
    }

    fn view(&self, at: usize, now: Timestamp) -> RecordView<'_, 'a> {
        RecordView {
            at,
            record: self.records.of(at),
            now,
            setting: &self.setting,
            budget: *self.starts.budget(),
            terms: *self.leases.terms(),
            is_closed: self.starts.is_closed(),
            has_turn: self.starts.turn().contains(&at),
            is_beside_others: self.records.open() > 1,
        }
    }

    /// Decides what becomes of a record to which this happens. The host is asked before for all that a row has to know.
    fn decide(&mut self, at: usize, event: RecordEvent, present: &mut Present<'_>) -> Decision {
        let (now, stage) = (present.now, self.records.of(at).stage());
        let event = match (stage, event) {
            (Stage::Queued, RecordEvent::Begin { .. }) if !self.order.may_go(at) => {
                return Next::Stay.into();
            }
            (Stage::Queued, RecordEvent::Begin { looks }) => {
                match self.records.at(at).take_preset() {
                    Some(outcome) => RecordEvent::Preset(outcome),
                    None => RecordEvent::Begin { looks: looks && self.starts.has_room_for_looks() },
                }
            }
            (
                Stage::ToLook | Stage::Unseen | Stage::ToClaim | Stage::Suspected,
                RecordEvent::Turn,
            ) => self.turn(at, present),
            (_, event) => event,
        };
        let mut decision = follow(&self.view(at, now), stage, event);
        if let Next::Drop(why) = decision.next {
            let event = RecordEvent::Dropped(why, present.host.stop(at));
            decision = follow(&self.view(at, now), stage, event);
        }
        if let Next::Mark(stored, outcome) = decision.next {
            let event = RecordEvent::AllSent(stored, outcome);
            decision.next = follow(&self.view(at, now), stage, event).next;
        }
        decision
    }

    /// A record has its turn to be looked at or claimed. As far as this process knows the answer, the store is not asked.
    fn turn(&mut self, at: usize, present: &mut Present<'_>) -> RecordEvent {
        let (now, host) = (present.now, &mut *present.host);
        let view = self.view(at, now);
        let known = view.record.key().and_then(|key| host.known(key, now));
        if let Some(known) = known.and_then(|record| claim::known(&view, &record)) {
            return RecordEvent::Claimed(known);
        }
        match host.owner() {
            Ok(owner) => RecordEvent::Token(ClaimToken {
                owner,
                provenance: host.provenance(at, now),
                pace: host.pace(),
                seen: self.records.at(at).take_seen(),
            }),
            Err(error) => RecordEvent::Claimed(claim::without_token(&error)),
        }
    }

    /// Carries out an effect of a rule.
    fn apply(&mut self, at: usize, effect: Effect, present: &mut Present<'_>) {
        let (now, host) = (present.now, &mut *present.host);
        let record = self.records.at(at);
        match effect {
            Effect::Granted(held, assumed) => record.granted(held, assumed),
            Effect::Looked { losses, seen } => record.looked(losses, seen),
            Effect::Outage(error) => record.runs_without_claim(error),
            Effect::HeldUp => self.starts.hold_up(),
            Effect::MetBusy => record.met_busy(now),
            Effect::Ran(since) => record.ended(since, now),
            Effect::Took(took) => host.took(took),
            Effect::Steps(steps) => {
                record.set_steps(steps);
                if let Some(held) = record.held() {
                    self.leases.write_steps(at, held, now);
                }
            }
            Effect::Extended(stored) => {
                if let Some(lease_until) = stored.lease_until {
                    host.renewed(at, lease_until);
                }
                record.renewed(&stored);
                // Steps that are stored will be known to every later attempt.
                if let Some(steps) = &stored.steps {
                    host.steps_stored(at, steps);
                }
                if let Some(held) = record.held() {
                    self.leases.keep(at, held);
                    if held.record.steps != stored.steps {
                        self.leases.write_steps(at, held, now);
                    }
                }
            }
            Effect::RenewAgain(kept, found) => {
                if let Some(found) = found {
                    record.renewed(&found);
                }
                self.leases.again(kept, now);
            }
            Effect::RenewLater(kept) => self.leases.unanswered(kept, now),
            Effect::StepsRefused(error) => host.steps_refused(at, &error),
        }
    }

    /// Carries out what becomes of a record.
    fn enter(&mut self, at: usize, next: Next, work: &mut FollowUps, present: &mut Present<'_>) {
        match next {
            Next::Stay => {}
            Next::To(stage) => self.moved(at, stage),
            Next::Claim(wanted) => {
                self.moved(at, Stage::Claiming);
                self.claims.reserve(self.starts.most_claims());
                self.claims.add(wanted);
            }
            Next::Settle(settling) => {
                self.moved(at, Stage::Settling);
                self.settlements.waiting.push(settling);
            }
            Next::Send(outbox) => {
                self.moved(at, Stage::Sending);
                self.outboxes.waiting.push(outbox);
            }
            Next::Start => {
                let held = self.records.of(at).held().cloned();
                let stop = self.starts.budget().stop();
                self.actions.push_back(Action::Start { at, held, stop });
                self.moved(at, Stage::Running);
            }
            Next::End(outcome) => self.end(at, outcome, work, present),
            Next::EndUnmarked(outcome, error) => {
                self.records.at(at).set_unrecorded(error);
                self.end(at, outcome, work, present);
            }
            // The table has decided what becomes of it.
            Next::Drop(_) | Next::Mark(..) => {}
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
        if to == Stage::Suspected {
            self.quarantine.add(at, entry.losses(), entry.given().receives);
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
    fn end(
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

    /// The answer from a completion: without its result, once that is not given any more.
    fn given(&self, mut outcome: Outcome, now: Timestamp) -> Outcome {
        if let Outcome::Superseded { result, completion } | Outcome::Replayed { result, completion } =
            &mut outcome
            && !self.setting.policy.gives_result_of(*completion, now)
        {
            *result = None;
        }
        outcome
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

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
