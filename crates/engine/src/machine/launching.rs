//! The schedule: starts looks, claims ahead of their handlers, handlers while there is room and time, and quarantine
//! groups when nothing else runs.

use super::{
    Machine, Present,
    record::{BatchRecord, Stage},
    rule::RecordEvent,
    schedule::Turn,
};
use lambda_idempotency_core::{clock::Timestamp, outcome::NotStarted};

impl Machine<'_> {
    /// Begins all that can begin.
    pub(super) fn launch(&mut self, present: &mut Present<'_>) {
        while let Some(at) = self.next_to_wake(present.now) {
            self.run(at, RecordEvent::Woken, present);
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

    /// A record whose wake-up time has come, or whose wait began before the clock stepped back.
    fn next_to_wake(&self, now: Timestamp) -> Option<usize> {
        let (wake, at) = self.waiting.next()?;
        let stepped_back = || match self.records.get(at).map(BatchRecord::stage) {
            Some(Stage::Waiting(wait)) => wait.since > now,
            _ => false,
        };
        (wake <= now || stepped_back()).then_some(at)
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
        if self.quarantine.is_active() {
            return false;
        }
        let again = self.claim(self.starts.next_looks(self.claims.open()), present);
        self.claim(self.starts.next_unseen(self.claims.open()), present) || again
    }

    /// Lets other records be claimed and started once those that go first have gone.
    fn open(&mut self) {
        let looks = self.starts.has_looks() || self.claims.are_new();
        if self.starts.is_open() || looks || self.quarantine.is_active() {
            return;
        }
        let receives = self.records.all().iter().map(|entry| entry.given().receives);
        self.quarantine.choose_side(receives.max().unwrap_or_default());
        // A claim that is slow would keep suspects from their turn, and they the others.
        if self.claims.are_wanted() || self.has_claimed() || !self.quarantine.goes_first() {
            let records = &self.records;
            self.starts.open(|at| records.get(at).map(BatchRecord::age));
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
            let has_lapsed = lease.is_some_and(|until| present.now > until);
            let event = match self.turn(at, present) {
                _ if has_lapsed => RecordEvent::Close(NotStarted::Lease),
                Turn::Start => RecordEvent::Start,
                Turn::Return(why) => RecordEvent::Close(why),
            };
            self.run(at, event, present);
        }
    }

    fn turn(&self, at: usize, present: &Present<'_>) -> Turn {
        let waited = self.records.get(at).is_some_and(BatchRecord::has_waited);
        self.starts.turn(waited, present.now, present.host.pace())
    }

    fn claim_ahead(&mut self, present: &mut Present<'_>) -> bool {
        if self.quarantine.is_active() || !self.starts.is_open() {
            return false;
        }
        let records = &self.records;
        let waited = |at| records.get(at).is_some_and(BatchRecord::has_waited);
        for at in self.starts.late(waited, present.now, present.host.pace()) {
            self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
        }
        self.claim(self.starts.next_claims(self.claims.open()), present)
    }

    /// Whether suspects wait for a claim that has no answer. A slow claim of a record that nothing delivers again may be
    /// tried for minutes, so they do not wait for that: once it is granted, its record waits for them.
    fn claims_hold_up_suspects(&self) -> bool {
        if self.setting.is_redelivered { self.claims.are_wanted() } else { self.claims.are_new() }
    }

    /// Gives a quarantine group its turn when nothing else runs.
    fn admit_group(&mut self, present: &mut Present<'_>) -> bool {
        let is_clear = self.starts.is_idle()
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
        let held_back = self.quarantine.held_back();
        if !held_back.is_empty() {
            for at in held_back {
                self.run(at, RecordEvent::Close(NotStarted::Quarantine), present);
            }
            return true;
        }
        let group = self.quarantine.next_group(self.starts.concurrency());
        let is_late = |at: &usize| self.turn(*at, present) != Turn::Start;
        if group.first().is_some_and(is_late) {
            for at in group {
                self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
            }
        } else {
            self.claim(group, present);
        }
        true
    }

    /// Gives these records their turn to be looked at or claimed. Says whether one needed no call of the store.
    fn claim(&mut self, records: Vec<usize>, present: &mut Present<'_>) -> bool {
        let mut answered = false;
        for at in records {
            answered |= self.run(at, RecordEvent::Turn, present) != Stage::Claiming;
        }
        answered
    }
}
