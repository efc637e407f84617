//! Starts looks, claims ahead of their handlers, handlers while there is room and time, and quarantine
//! groups when nothing else runs.

use super::{
    Action, Machine, Present,
    calls::PATIENCE,
    claims::Request,
    entry::{Entry, Stage},
    sharing::Shared,
    starts::Turn,
    wanted::{Answer, Begins, Claimed, Wanted},
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
            self.starts.add_look(at);
        }
        // Again, because records that are answered without the store make room for others.
        let mut again = true;
        while again {
            again = self.look(present);
            self.open();
            self.start_ready(present);
            again |= self.claim_ahead(present);
            again |= self.admit_group(present);
            again |= self.send_claims(present);
        }
    }

    /// Ends the turn of suspects that cannot kill the process any more: their handler has ended, and their
    /// settlement is slow, or their claim had no answer and is undone. The store does not know that yet, so
    /// other processes still suspect them.
    pub(super) fn leave_slow(&mut self, now: Timestamp) {
        if !self.quarantine.is_active() {
            return;
        }
        self.settlements.slow(now).for_each(|at| self.quarantine.leave(at));
        for at in self.claims.undone() {
            if self.quarantine.has_turn(at) {
                self.starts.hold_up();
                self.quarantine.leave(at);
            }
        }
    }

    /// Looks at keys that probably have an idempotency record.
    fn look(&mut self, present: &mut Present<'_>) -> bool {
        if self.is_kept_clear() {
            return false;
        }
        let records = self.starts.take_looks(self.claims.open());
        let again = self.claim(records, true, present);
        let unseen = self.starts.take_unseen(self.claims.open());
        self.claim(unseen, false, present) || again
    }

    /// Whether the quarantine group that has its turn forbids other claims.
    fn is_kept_clear(&self) -> bool {
        self.quarantine.is_active() && keeps(Rule::QuarantineStopsClaims)
    }

    /// Lets other records be claimed and started once those that go first have gone.
    fn open(&mut self) {
        let looks = self.starts.has_looks() || self.claims.are_new();
        if self.starts.is_open() || looks || self.quarantine.is_active() {
            return;
        }
        self.quarantine.choose_side();
        // A claim that is slow would keep suspects from their turn, and they the others.
        if self.claims.are_wanted() || self.has_claimed() || !self.quarantine.goes_first() {
            let records = &self.records;
            self.starts.open(|at| records.get(at).map(Entry::age));
        }
    }

    /// Whether a record holds a claim that was made because its look failed. It starts at once: a suspect that
    /// kills the process must not take it along.
    fn has_claimed(&self) -> bool {
        let mut ready = self.starts.ready().filter_map(|at| self.records.get(at));
        ready.any(|entry| entry.held().is_some())
    }

    fn start_ready(&mut self, present: &mut Present<'_>) {
        let is_open = self.starts.is_open();
        while let Some(at) = self.starts.next_ready(|at| {
            if self.quarantine.is_active() { self.quarantine.has_turn(at) } else { is_open }
        }) {
            let lease = self.records.at(at).held().and_then(|held| held.record.lease_until);
            // It may have waited for its turn for longer than its lease.
            if lease.is_some_and(|until| present.now > until) {
                self.not_started(at, NotStarted::Lease, present);
                continue;
            }
            match self.turn(at, present) {
                Turn::Start => self.start(at),
                Turn::Return(why) => self.not_started(at, why, present),
            }
        }
    }

    fn turn(&self, at: usize, present: &Present<'_>) -> Turn {
        let waited = self.records.get(at).is_some_and(Entry::has_waited);
        self.starts.turn(waited, present.now, present.host.pace())
    }

    fn start(&mut self, at: usize) {
        let entry = self.records.at(at);
        entry.enter(Stage::Running);
        let held = entry.held().cloned();
        self.starts.started();
        let stop = self.starts.budget().stop();
        self.actions.push_back(Action::Start { at, held, stop });
    }

    fn claim_ahead(&mut self, present: &mut Present<'_>) -> bool {
        if self.is_kept_clear() || !self.starts.is_open() {
            return false;
        }
        let records = &self.records;
        let waited = |at| records.get(at).is_some_and(Entry::has_waited);
        let late = self.starts.take_late(waited, present.now, present.host.pace());
        for at in late {
            self.finish(at, Outcome::Returned(NotStarted::Deadline), present);
        }
        match self.starts.take_claims(self.claims.open()) {
            Some(records) => self.claim(records, false, present),
            None => false,
        }
    }

    /// Whether suspects wait for a claim that has no answer. A slow claim of a record that nothing delivers again may be
    /// tried for minutes, so they do not wait for that: once it is granted, its record waits for them.
    fn claims_hold_up_suspects(&self) -> bool {
        if self.setting.is_redelivered { self.claims.are_wanted() } else { self.claims.are_new() }
    }

    /// Gives a quarantine group its turn when nothing else runs.
    fn admit_group(&mut self, present: &mut Present<'_>) -> bool {
        let is_clear = (self.starts.is_idle() || !keeps(Rule::QuarantineWaitsForTheOthers))
            && !self.claims_hold_up_suspects()
            && !self.quarantine.is_active()
            && self.settlements.are_slow(present.now);
        let is_next = || match self.starts.is_open() {
            true => self.quarantine.is_waiting(),
            false => self.quarantine.goes_first(),
        };
        if !is_clear || !is_next() {
            return false;
        }
        let group = self.quarantine.next_group(self.starts.concurrency());
        let is_late = |at: &usize| self.turn(*at, present) != Turn::Start;
        if group.first().is_some_and(is_late) {
            for at in group {
                self.finish(at, Outcome::Returned(NotStarted::Deadline), present);
            }
            return true;
        }
        for at in &group {
            self.records.at(*at).enter(Stage::Claiming);
        }
        self.claim(group, false, present);
        true
    }

    /// Claims these records, as far as this process does not know the answer, or only looks at them.
    /// Says whether one needed no call of the store.
    fn claim(&mut self, records: Vec<usize>, looks: bool, present: &mut Present<'_>) -> bool {
        let (mut known, mut follows) = (Vec::new(), false);
        let mut records = records.into_iter();
        while let Some(at) = records.next() {
            match self.share(at, present) {
                Shared::Follows => follows = true,
                Shared::Knows(claimed) => known.push(Answer::new(at, claimed)),
                Shared::Leads => match self.wanted(at, looks, present) {
                    Some(Ok(wanted)) => {
                        self.claims.reserve(records.len() + 1);
                        self.claims.add(wanted);
                    }
                    Some(Err(error)) => known.push(Answer::new(at, Claimed::Unavailable(error))),
                    None => {}
                },
            }
        }
        let answered = follows || !known.is_empty();
        self.answered(known, present);
        answered
    }

    fn wanted(
        &mut self,
        at: usize,
        looks: bool,
        present: &mut Present<'_>,
    ) -> Option<Result<Wanted, StoreError>> {
        let key = self.records.get(at)?.key()?.clone();
        let owner = match present.host.owner() {
            Ok(owner) => owner,
            Err(error) => {
                let error = StoreError::new(StoreErrorKind::Unavailable, error.to_string());
                return Some(Err(error));
            }
        };
        let provenance = present.host.provenance(at, present.now);
        let is_beside_others = self.records.open() > 1;
        let entry = self.records.at(at);
        let begins = if looks { Begins::Look } else { Begins::Write(entry.take_seen()) };
        let has_turn = self.quarantine.has_turn(at);
        let losses = if has_turn { entry.losses() } else { 0 };
        let budget = self.starts.budget();
        // A claim is useless if its lease has ended when it is granted.
        let lease_until = self.leases.terms().lease_until(present.now);
        let mut until = budget.claim_deadline(present.now).min(lease_until);
        let mut last = until;
        if !self.setting.is_redelivered {
            // A record that has waited for a busy key is looked up later, too: it may get a result.
            last = budget.claim_deadline(present.now);
            last = last.max(budget.last_claim(present.now, present.host.pace()));
        }
        if self.setting.claims_to_the_end() {
            until = last;
        }
        if has_turn && is_beside_others {
            // All others wait for it.
            let soon = present.now.plus(PATIENCE);
            (until, last) = (until.min(soon), last.min(soon));
        }
        let is_optimistic =
            !self.setting.policy.mode.claims() && !self.records.at(at).ask().is_aside;
        Some(Ok(Wanted {
            at,
            key,
            is_optimistic,
            claim: self.claim_by(owner, at, present.now, provenance),
            begins,
            losses,
            until,
            last,
        }))
    }

    /// Sends the claims that are to be sent. Says whether one was answered without the store: then
    /// more may begin.
    pub(super) fn send_claims(&mut self, present: &mut Present<'_>) -> bool {
        let mut answered = false;
        loop {
            let (now, mut answers) = (present.now, Vec::new());
            let call = self.call_ids.next();
            let lease_until = self.leases.terms().lease_until(now);
            let ends = (lease_until, self.starts.budget().doubt_deadline(now));
            let is_only = self.records.all().len() == 1;
            let sent = self.claims.send(call, now, ends, is_only, &mut answers);
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
        if let Some((writes, deadline)) =
            self.leases.send(call, now, self.starts.budget().reply(), held)
        {
            self.call_ids.sent();
            self.actions.push_back(Action::Write { call, writes, deadline });
        }
    }
}
