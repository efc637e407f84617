//! What begins: claims ahead of their handlers, handlers as far as there is room and time.

use super::{
    Action, Machine, Present,
    claims::{Answer, Claimed, Request, Wanted},
    records::{Entry, Stage},
    sharing::Shared,
    starts::Turn,
};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    store::{StoreError, StoreErrorKind},
};

impl Machine<'_> {
    /// Begins all that can begin.
    pub(super) fn launch(&mut self, present: &mut Present<'_>) {
        while let Some(at) = self.waiting.pop_due(present.now) {
            self.records.at(at).enter(Stage::Claiming);
            self.starts.add_claim(at);
        }
        loop {
            self.start_ready(present);
            if !self.quarantine.is_active() || !keeps(Rule::QuarantineStopsClaims) {
                self.claim_ahead(present);
                self.release_quarantined(present);
            }
            if !self.send_claims(present) {
                return;
            }
        }
    }

    fn start_ready(&mut self, present: &mut Present<'_>) {
        while let Some(at) = self.starts.next_ready(|at| self.quarantine.admits(at)) {
            let lease = self.records.at(at).held().and_then(|held| held.record.lease_until);
            // It may have waited for its turn for longer than its lease.
            if lease.is_some_and(|until| present.now > until) {
                self.not_started(at, NotStarted::Lease, present);
                continue;
            }
            match self.turn(at, present) {
                Turn::Start => self.start(at, present.now),
                Turn::Return(why) => self.not_started(at, why, present),
            }
        }
    }

    fn turn(&self, at: usize, present: &Present<'_>) -> Turn {
        let waited = self.records.get(at).is_some_and(Entry::has_waited);
        self.starts.turn(waited, present.now, present.host.pace())
    }

    fn start(&mut self, at: usize, now: Timestamp) {
        let entry = self.records.at(at);
        entry.enter(Stage::Running);
        let held = entry.held().cloned();
        if held.is_none() {
            self.leases.keep_unclaimed(at, now);
        }
        self.starts.started();
        let stop = self.starts.budget().stop();
        self.actions.push_back(Action::Start { at, held, stop });
    }

    fn claim_ahead(&mut self, present: &mut Present<'_>) {
        let records = &self.records;
        let waited = |at| records.get(at).is_some_and(Entry::has_waited);
        let late = self.starts.take_late(waited, present.now, present.host.pace());
        for at in late {
            self.finish(at, Outcome::Returned(NotStarted::Deadline), present);
        }
        // Again, because those who follow another invocation take no room.
        while let Some(records) = self.starts.take_claims(self.claims.open()) {
            self.claim(records, present);
        }
    }

    /// Gives a quarantined record its turn when nothing else is under way.
    fn release_quarantined(&mut self, present: &mut Present<'_>) {
        while (self.starts.is_idle() || !keeps(Rule::QuarantineWaitsForTheOthers))
            && self.claims.open() == 0
            && self.settlements.is_empty()
            && !self.quarantine.is_active()
        {
            let Some(at) = self.quarantine.next() else { return };
            if self.turn(at, present) == Turn::Start {
                self.records.at(at).enter(Stage::Claiming);
                self.claim(vec![at], present);
            } else {
                self.finish(at, Outcome::Returned(NotStarted::Deadline), present);
            }
        }
    }

    /// Claims these records, as far as this process does not know the answer.
    fn claim(&mut self, records: Vec<usize>, present: &mut Present<'_>) {
        let mut known = Vec::new();
        for at in records {
            match self.share(at, present) {
                Shared::Follows => {}
                Shared::Knows(claimed) => known.push(Answer { at, claimed, seen: None }),
                Shared::Leads => match self.wanted(at, present) {
                    Some(Ok(wanted)) => self.claims.add(wanted),
                    Some(Err(error)) => {
                        let claimed = Claimed::Unavailable(error);
                        known.push(Answer { at, claimed, seen: None });
                    }
                    None => {}
                },
            }
        }
        self.answered(known, present);
    }

    fn wanted(
        &mut self,
        at: usize,
        present: &mut Present<'_>,
    ) -> Option<Result<Wanted, StoreError>> {
        let quarantined = self.quarantine.has_turn(at);
        let entry = self.records.get(at)?;
        let key = entry.key()?.clone();
        let owner = match present.host.owner() {
            Ok(owner) => owner,
            Err(error) => {
                let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
                return Some(Err(error));
            }
        };
        Some(Ok(Wanted {
            at,
            key,
            claim: self.claim_by(owner, at, present.now),
            look_first: quarantined || entry.looks() > 0,
            from_lost: quarantined,
            until: self.starts.budget().claim_deadline(present.now),
        }))
    }

    /// Sends the claims that are to be sent. Says whether one was answered without the store: then
    /// more may begin.
    fn send_claims(&mut self, present: &mut Present<'_>) -> bool {
        let mut answered = false;
        loop {
            let (now, mut answers) = (present.now, Vec::new());
            let call = self.call_ids.next();
            let lease_until = self.leases.terms().lease_until(now);
            let last = self.starts.budget().doubt_deadline(now);
            let sent = self.claims.send(call, now, lease_until, last, &mut answers);
            answered |= !answers.is_empty();
            self.answered(answers, present);
            match sent {
                Some((Request::Read(keys), deadline)) => {
                    self.call_ids.sent();
                    self.actions.push_back(Action::Read { call, keys, deadline });
                }
                Some((Request::Write(writes), deadline)) => {
                    self.call_ids.sent();
                    self.actions.push_back(Action::Write { call, writes, deadline });
                }
                None => return answered,
            }
        }
    }

    /// Renews the leases that are due.
    pub(super) fn renew(&mut self, now: Timestamp) {
        let records = &self.records;
        let held = |at| {
            let entry = records.get(at).filter(|entry| entry.is_kept())?;
            Some((entry.key()?, entry.held()?))
        };
        let call = self.call_ids.next();
        if let Some((writes, deadline)) = self.leases.send(call, now, held) {
            self.call_ids.sent();
            self.actions.push_back(Action::Write { call, writes, deadline });
        }
    }
}
