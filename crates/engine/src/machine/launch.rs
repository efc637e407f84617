//! Begins what the schedule, the time and quarantine allow.

use lambda_idempotency_core::{clock::Timestamp, outcome::NotStarted};

use super::{Machine, Present, record::Stage, rule::RecordEvent, schedule::Phase};

/// The schedule: starts looks, claims ahead of their handlers, handlers while there is room and time, and quarantine groups when
/// nothing else runs.
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
            self.advance();
            self.start_ready(present);
            again |= self.claim_ahead(present);
            again |= self.admit_group(present);
        }
    }

    /// A record whose wake-up time has come, or whose wait began before the clock stepped back.
    fn next_to_wake(&self, now: Timestamp) -> Option<usize> {
        let (wake, at) = self.waiting.first().copied()?;
        let stepped_back =
            || matches!(self.records.of(at).stage, Stage::Waiting(wait) if wait.since > now);
        (wake <= now || stepped_back()).then_some(at)
    }

    /// Ends the turn of suspects that cannot kill the process any more: their handler has ended, and their
    /// settlement is slow, or their claim had no answer and is undone. The store does not know that yet, so
    /// other processes still suspect them.
    pub(super) fn leave_slow(&mut self, now: Timestamp) {
        if self.starts.turn().is_empty() {
            return;
        }
        self.settlements.slow(now).for_each(|at| self.starts.leave_turn(at));
        for at in self.claims.undone() {
            if self.starts.turn().contains(&at) {
                self.starts.hold_up();
                self.starts.leave_turn(at);
            }
        }
    }

    /// Looks at keys that probably have an idempotency record.
    fn look(&mut self, present: &mut Present<'_>) -> bool {
        if !self.starts.turn().is_empty() {
            return false;
        }
        self.claim(self.starts.next_looks(self.claims.all().count()), present)
    }

    /// Enters the next phase when its time has come: suspects begin once all looks are answered, and other records once the
    /// suspects that go first have gone.
    fn advance(&mut self) {
        if self.starts.has_looks() || self.claims.are_new() || !self.starts.turn().is_empty() {
            return;
        }
        if self.starts.phase == Phase::Looking {
            let receives = self.records.all().iter().map(|record| record.given.receives);
            self.quarantine.choose_side(receives.max().unwrap_or_default());
            self.starts.phase = Phase::Suspects { turn: Vec::new() };
        }
        // A claim that is slow would keep suspects from their turn, and they the others.
        if matches!(self.starts.phase, Phase::Suspects { .. })
            && (self.claims.are_wanted() || self.has_claimed() || !self.quarantine.goes_first())
        {
            let records = &self.records;
            self.starts.open(|at| records.of(at).age());
        }
    }

    /// Whether a record holds a claim that was made because its look failed. It starts at once: a suspect that
    /// kills the process must not take it along.
    fn has_claimed(&self) -> bool {
        self.starts.ready().any(|at| self.records.of(at).held.is_some())
    }

    fn start_ready(&mut self, present: &mut Present<'_>) {
        while let Some(at) = self.starts.next_ready() {
            let held = self.records.of(at).held.as_ref();
            let lease = held.and_then(|held| held.record.lease_until);
            // It may have waited for its turn for longer than its lease.
            let has_lapsed = lease.is_some_and(|until| present.now > until);
            let event = match self.has_time(at, present) {
                _ if has_lapsed => RecordEvent::Close(NotStarted::Lease),
                true => RecordEvent::Start,
                false => RecordEvent::Close(NotStarted::Deadline),
            };
            self.run(at, event, present);
        }
    }

    fn has_time(&self, at: usize, present: &Present<'_>) -> bool {
        self.starts.has_time(self.records.of(at).has_waited(), present.now, present.host.pace())
    }

    fn claim_ahead(&mut self, present: &mut Present<'_>) -> bool {
        if !self.starts.turn().is_empty() || !self.starts.is_open() {
            return false;
        }
        let records = &self.records;
        let waited = |at| records.of(at).has_waited();
        for at in self.starts.late(waited, present.now, present.host.pace()) {
            self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
        }
        self.claim(self.starts.next_claims(self.claims.all().count()), present)
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
            && self.starts.turn().is_empty()
            && self.settlements.are_slow(present.now);
        let is_next = || match self.starts.phase {
            Phase::Looking | Phase::Closed => false,
            Phase::Suspects { .. } => self.quarantine.goes_first(),
            Phase::Open { .. } => self.quarantine.is_waiting(),
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
        let group = self.quarantine.next_group(self.starts.concurrency);
        let is_late = |at: &usize| !self.has_time(*at, present);
        if group.first().is_some_and(is_late) {
            for at in group {
                self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
            }
        } else {
            if let Some(turn) = self.starts.turn_mut() {
                turn.clone_from(&group);
            }
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
