//! What happens in which stage, and the loop that carries it out.

use super::{
    Action, Machine, Present, claim, handlers, lost_leases, messages,
    record::Stage,
    rule::{Event, Next, Step},
    settle, settled, sharing, steps, unsettled,
};
use lambda_idempotency_core::{
    outcome::{NotStarted, Outcome},
    store::Verdict,
};

/// What follows from a step for other records, and is not done yet.
#[derive(Default)]
pub(super) struct Work {
    /// What happens to which record; the last comes first.
    pub(super) open: Vec<(usize, Event)>,
    /// Records that may begin when nothing else is to be done: a record whose group has just failed must not begin.
    pub(super) candidates: Vec<usize>,
}

impl Machine<'_> {
    /// Something happens to a record; does all that follows. Says which stage the record has then.
    pub(super) fn run(&mut self, at: usize, event: Event, present: &mut Present<'_>) -> Stage {
        let mut work = Work::default();
        self.happens(at, event, &mut work, present);
        while let Some((at, event)) = Self::next_event(&mut work) {
            self.happens(at, event, &mut work, present);
        }
        self.records.at(at).stage()
    }

    fn next_event(work: &mut Work) -> Option<(usize, Event)> {
        if let Some(open) = work.open.pop() {
            return Some(open);
        }
        work.candidates.pop().map(|at| (at, Event::Begin { looks: false }))
    }

    fn happens(&mut self, at: usize, event: Event, work: &mut Work, present: &mut Present<'_>) {
        let next = self.step(at, event, present);
        self.enter(at, next, work, present);
    }

    /// What becomes of a record to which this happens.
    fn step(&mut self, at: usize, event: Event, present: &mut Present<'_>) -> Next {
        let mut step = Step {
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
        let (s, leases) = (&mut step, &mut self.leases);
        let next = match (s.entry.stage(), event) {
            (Stage::Queued, Event::Begin { looks }) if self.order.may_go(at) => {
                claim::begin(s, looks && self.starts.has_room_for_looks())
            }
            (Stage::ToLook, Event::Turn) => sharing::turn(s, true),
            (Stage::Unseen | Stage::ToClaim | Stage::Suspected, Event::Turn) => {
                sharing::turn(s, false)
            }
            (Stage::Claiming, Event::Claimed(claimed)) => claim::claimed(s, claimed),
            (Stage::Claiming, Event::Unanswered) => claim::unanswered(),
            (Stage::Waiting(_), Event::Woken) => Next::To(Stage::ToLook),
            (Stage::Ready, Event::Start) => {
                let held = s.entry.held().cloned();
                self.actions.push_back(Action::Start { at, held, stop: s.budget.stop() });
                Next::To(Stage::Running)
            }
            (Stage::Running, Event::Ended(ended, since)) => handlers::ended(s, ended, since),
            (Stage::Running, Event::Stop) => handlers::stopped(s),
            (Stage::Running, Event::Steps(steps)) => steps::ended(s, leases, steps),
            (Stage::Ready | Stage::Running, Event::Renewed { kept, record, verdict }) => {
                lost_leases::renewed(s, leases, kept, record.map(|record| *record), *verdict)
            }
            (Stage::Ready, Event::Lapsed) => settle::not_started(s, NotStarted::Lease),
            (Stage::Running, Event::Lapsed) => lost_leases::lapsed(s),
            (Stage::Settling, Event::Settled { settling, written, verdict }) => {
                let verdict = verdict.map_or(Verdict::Written, |verdict| *verdict);
                settled::answered(s, settling, written, verdict)
            }
            (Stage::Settling, Event::Unsettled(settling)) => {
                unsettled::give_up(s, settling, unsettled::too_late())
            }
            (Stage::Sending, Event::Sent(outbox, answer)) => messages::sent(s, outbox, answer),
            (stage, Event::Close(why)) => match stage {
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
        if step.held_up {
            self.starts.hold_up();
        }
        next
    }

    /// Carries out what becomes of a record.
    fn enter(&mut self, at: usize, next: Next, work: &mut Work, present: &mut Present<'_>) {
        match next {
            Next::Stay => {}
            Next::To(stage) => self.moved(at, stage),
            Next::Suspect(losses) => {
                self.moved(at, Stage::Suspected);
                self.quarantine.add(at, losses, self.records.at(at).ask().receives);
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
        }
    }
}
