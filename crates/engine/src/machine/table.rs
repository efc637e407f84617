//! The table of which rule handles which event in which stage, and the loop that carries it out.
//!
//! Only the table lets a record enter a stage; the lists of the record follow from that. A record that has its outcome
//! decides for others: its copies are answered, its group stops if it is returned, and the records that are next begin.

use std::sync::Arc;

use super::{
    Machine, Present, claim, handlers,
    io::{Action, Carried, RecordOutcome},
    messages,
    outcome::shared,
    record::Stage,
    rule::{ClaimToken, Decision, DropReason, Effect, Next, RecordEvent, RecordView},
    settle,
};
use lambda_idempotency_core::{
    admission::Settlement,
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    store::{StoreError, StoreErrorKind},
};

/// Other records to which something follows from an event, and has not been done yet.
#[derive(Default)]
struct FollowUps {
    /// Records whose group stops before them; the last comes first.
    stopped: Vec<usize>,
    /// Records that may begin when nothing else is to be done: a record whose group has just failed must not begin.
    candidates: Vec<usize>,
}

impl FollowUps {
    fn next(&mut self) -> Option<(usize, RecordEvent)> {
        let close = |at| (at, RecordEvent::Close(NotStarted::Order));
        let begin = |at| (at, RecordEvent::Begin { looks: false });
        self.stopped.pop().map(close).or_else(|| self.candidates.pop().map(begin))
    }
}

/// The row of the table for an event in a stage: what follows, without a question to the host.
fn follow(view: &RecordView<'_, '_>, stage: Stage, event: RecordEvent) -> Decision {
    let next = match (stage, event) {
        (Stage::Queued, RecordEvent::Begin { looks }) => claim::begin(view, looks),
        (Stage::Queued, RecordEvent::Known(outcome)) => Next::End(outcome),
        (stage, RecordEvent::Known(outcome)) if stage.is_wanted() => Next::End(outcome),
        (stage, RecordEvent::Token(token)) if stage.is_wanted() => return claim::ask(view, token),
        (stage, RecordEvent::Unavailable(error))
            if stage.is_wanted() || stage == Stage::Claiming =>
        {
            return claim::unavailable(view, error);
        }
        (Stage::Claiming, RecordEvent::Looked(claiming, answer)) => {
            return claim::looked(view, claiming, answer);
        }
        (Stage::Claiming, RecordEvent::Claimed(claiming, written)) => {
            return claim::claimed(view, claiming, written);
        }
        (Stage::Waiting(_), RecordEvent::Woken) => Next::To(Stage::ToLook),
        (Stage::Ready, RecordEvent::Start) => Next::Start,
        (Stage::Ready, RecordEvent::Lapsed) => settle::not_started(view, NotStarted::Lease),
        (Stage::Ready | Stage::Running, RecordEvent::Renewed(kept, written)) => {
            return handlers::renewed(view, kept, written);
        }
        (Stage::Running, RecordEvent::Ended(ended)) => handlers::ended(view, ended),
        (Stage::Running, RecordEvent::Steps(steps)) => {
            return Next::Stay.with(Effect::Steps(steps));
        }
        (Stage::Running, RecordEvent::Lapsed) => Next::Drop(DropReason::Lapsed),
        (Stage::Running, RecordEvent::Stop) => Next::Drop(DropReason::Deadline),
        (Stage::Running, RecordEvent::Dropped(why, ran)) => handlers::dropped(view, why, ran),
        (Stage::Settling, RecordEvent::Settled(settling, written)) => {
            settle::answered(view, settling, written)
        }
        (Stage::Sending, RecordEvent::Sent(outbox, answer)) => messages::sent(outbox, answer),
        (Stage::Queued, RecordEvent::Close(why)) => Next::End(Outcome::Returned(why)),
        (stage, RecordEvent::Close(why)) if stage.is_wanted() => Next::End(Outcome::Returned(why)),
        (Stage::Waiting(wait), RecordEvent::Close(_)) => {
            Next::End(Outcome::Busy { until: wait.until })
        }
        (Stage::Ready, RecordEvent::Close(why)) => settle::not_started(view, why),
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
        self.carry_out(first, event, &mut work, present);
        while let Some((at, event)) = work.next() {
            self.carry_out(at, event, &mut work, present);
        }
        self.records.of(first).stage
    }

    /// Does what follows for the record itself.
    fn carry_out(
        &mut self,
        at: usize,
        event: RecordEvent,
        work: &mut FollowUps,
        present: &mut Present<'_>,
    ) {
        let decision = self.decide(at, event, present);
        for effect in decision.effects.into_iter().flatten() {
            self.apply(at, effect, present);
        }
        self.enter(at, decision.next, work, present);
    }

    fn view(&self, at: usize, now: Timestamp) -> RecordView<'_, 'a> {
        RecordView {
            at,
            record: self.records.of(at),
            now,
            setting: &self.setting,
            budget: self.starts.budget,
            terms: self.leases.terms,
            is_closed: self.starts.is_closed(),
            has_turn: self.starts.turn().contains(&at),
            is_beside_others: self.records.open > 1,
        }
    }

    /// Decides what becomes of a record to which this happens. The host is asked before for all that a row has to know.
    fn decide(&mut self, at: usize, mut event: RecordEvent, present: &mut Present<'_>) -> Decision {
        let now = present.now;
        let record = self.records.at(at);
        let stage = record.stage;
        // In place: events are large.
        match event {
            RecordEvent::Begin { .. } if stage == Stage::Queued && !self.order.may_go(at) => {
                return Next::Stay.into();
            }
            RecordEvent::Begin { looks } if stage == Stage::Queued => {
                event = match record.preset.take() {
                    Some(outcome) => RecordEvent::Known(outcome.0),
                    None => RecordEvent::Begin { looks: looks && self.starts.has_room_for_looks() },
                };
            }
            RecordEvent::Turn if stage.is_wanted() => event = self.turn(at, present),
            _ => {}
        }
        let mut decision = follow(&self.view(at, now), stage, event);
        if let Next::Drop(why) = decision.next {
            let since = present.host.stop(at);
            self.records.at(at).ran_for = since.map(|since| now.since(since));
            let event = RecordEvent::Dropped(why, since.is_some());
            decision = follow(&self.view(at, now), stage, event);
        }
        if let Next::Mark(stored, outcome) = decision.next {
            let (view, stored) = (self.view(at, now), Some(stored));
            decision.next = settle::settle(&view, stored, Settlement::MarkSent, outcome);
        }
        decision
    }

    /// A record has its turn to be looked at or claimed. As far as this process knows the answer, the store is not asked.
    fn turn(&mut self, at: usize, present: &mut Present<'_>) -> RecordEvent {
        let (now, host) = (present.now, &mut *present.host);
        let view = self.view(at, now);
        let known = view.record.key().and_then(|key| host.known(key, now));
        if let Some(outcome) = known.and_then(|record| claim::known(&view, &record)) {
            return RecordEvent::Known(outcome);
        }
        match host.owner() {
            Ok(owner) => RecordEvent::Token(ClaimToken {
                owner,
                provenance: host.provenance(at, now),
                pace: host.pace(),
                seen: self.records.at(at).seen.take(),
            }),
            Err(error) => RecordEvent::Unavailable(StoreError::new(
                StoreErrorKind::Unavailable,
                error.to_string(),
            )),
        }
    }

    /// Carries out an effect of a rule.
    fn apply(&mut self, at: usize, effect: Effect, present: &mut Present<'_>) {
        let (now, host) = (present.now, &mut *present.host);
        let record = self.records.at(at);
        match effect {
            Effect::Granted(held, assumed) => (record.held, record.assumed) = (Some(held), assumed),
            Effect::Looked { losses, seen } => (record.losses, record.seen) = (losses, seen),
            Effect::Outage(error) => record.outage = Some(Box::new(Carried(error))),
            Effect::HeldUp => self.starts.hold_up(),
            Effect::MetBusy => {
                record.busy_since.get_or_insert(now);
                record.looks += 1;
            }
            Effect::Steps(steps) => {
                if let Some(held) = &mut record.held {
                    Arc::make_mut(held).record.steps = Some(steps);
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
                if let Some(held) = &record.held {
                    self.leases.keep(at, held);
                    if held.record.steps != stored.steps {
                        self.leases.write_steps(at, held, now);
                    }
                }
            }
            Effect::Renew(kept, found) => {
                if let Some(found) = found {
                    record.renewed(&found);
                }
                self.leases.add(kept);
            }
            Effect::StepsRefused(error) => host.steps_refused(at, &error),
        }
    }

    /// Carries out what becomes of a record.
    fn enter(&mut self, at: usize, next: Next, work: &mut FollowUps, present: &mut Present<'_>) {
        match next {
            Next::Stay => {}
            Next::To(stage) => self.moved(at, stage),
            Next::Claim(claiming) => {
                self.moved(at, Stage::Claiming);
                if self.claims.waiting.capacity() == 0 {
                    self.claims.waiting.reserve_exact(self.starts.most_claims());
                }
                self.claims.waiting.push(claiming);
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
                let held = self.records.of(at).held.clone();
                let stop = self.starts.budget.stop();
                self.actions.push_back(Action::Start { at, held, stop });
                self.moved(at, Stage::Running);
            }
            Next::End(outcome) => self.end(at, outcome, work, present),
            Next::EndUnmarked(outcome, error) => {
                self.records.at(at).unrecorded = Some(Box::new(Carried(error)));
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
        let record = self.records.at(at);
        let was = std::mem::replace(&mut record.stage, to);
        self.starts.moved(at, was, to, record.ran_for.is_some());
        if let Stage::Waiting(wait) = was {
            self.waiting.remove(&(wait.wake, at));
        }
        if let Stage::Waiting(wait) = to {
            self.waiting.insert((wait.wake, at));
        }
        if was == Stage::Suspected {
            self.quarantine.remove(at);
        }
        if to == Stage::Suspected {
            self.quarantine.add(at, record.losses, record.given.receives);
        }
        match (&record.held, was.is_kept(), to.is_kept()) {
            (Some(held), false, true) => self.leases.keep(at, held),
            (_, true, false) => self.leases.forget(at),
            _ => {}
        }
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
        let record = self.records.at(at);
        // Its sink is called once the batch has its outcomes.
        let passes = record.given.lets_pass && outcome.is_final();
        self.quarantine.ended(passes || outcome.is_acknowledged());
        if !outcome.is_acknowledged() && !passes {
            // The rest of the group: the source delivers it again, in order.
            work.stopped.extend(self.order.same_group(at));
        }
        self.actions.push_back(Action::Report(RecordOutcome {
            at,
            outcome: Carried(outcome),
            unrecorded: record.unrecorded.take(),
            ran_for: record.ran_for,
            held: record.held.clone(),
        }));
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
            self.records.at(*copy).preset = Some(Box::new(Carried(shared.clone())));
        }
        work.candidates.extend(copies);
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
