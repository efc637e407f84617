//! Settlements to send. All that are due share one call of the store. The next call waits for the one
//! before, unless that takes long.
#![expect(clippy::vec_box, reason = "they go from record to list to call and back, and are large")]

use std::{sync::Arc, time::Duration};

use super::calls::{CallId, Calls, FIRST_CALL, PATIENCE, ends};
use lambda_idempotency_core::{
    admission::{Held, Settlement},
    clock::Timestamp,
    effects::Effects,
    outcome::{Completion, Outcome},
    record::IdempotencyRecord,
    store::{Guard, StoreError, StoreErrorKind, Write},
};
use lambda_idempotency_keys::Key;

use super::carried::Carried;

/// The first pause before a settlement is tried again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The pause after an answer that a retry may not change, such as refused permissions. A failed refresh of
/// credentials gets the same answer, and a retry may succeed.
const REFUSED_PAUSE: Duration = Duration::from_secs(2);
/// How long such an answer is not believed.
const REFUSED_PATIENCE: Duration = Duration::from_secs(30);
/// How often a completion whose record is gone is written anew.
pub(super) const AGAIN: u32 = 3;

/// One claim to be settled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Settling {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) held: Arc<Held>,
    pub(super) settlement: Settlement,
    /// What is committed with the settlement.
    pub(super) effects: Option<Effects>,
    /// What it is written under, if the key was not claimed.
    pub(super) assumed: Option<Box<Guard>>,
    /// What to write instead of the settlement's own write.
    pub(super) instead: Option<Box<(Guard, IdempotencyRecord)>>,
    /// The delivery's outcome if this succeeds.
    pub(super) outcome: Carried<Outcome>,
    /// Not before this instant, unless the clock steps back behind `since`.
    pub(super) due: Timestamp,
    /// When its handler ended, or it was decided that it is not called.
    pub(super) begun: Timestamp,
    /// When `due` was decided.
    pub(super) since: Timestamp,
    /// Not after this one.
    pub(super) until: Timestamp,
    pub(super) tries: u32,
    /// How often it found no record, or its own record again.
    pub(super) again: u32,
    /// Whether an answer that a retry may not change is retried all the same.
    pub(super) insists: bool,
    /// Whether one of its writes had no answer, if it has effects.
    pub(super) in_doubt: bool,
    /// The outcome if its commit was applied after all, once that is given up.
    pub(super) committed: Option<Carried<Outcome>>,
}

impl Settling {
    fn write(&mut self, now: Timestamp) -> Write {
        let (guard, record) = match self.instead.as_deref().cloned() {
            Some((guard, record)) => (guard, Some(record)),
            None => {
                let (guard, record) = self.held.write(&self.settlement, now);
                (self.assumed.as_deref().cloned().unwrap_or(guard), record)
            }
        };
        // A store recognises a transaction that is sent again if it is the same each time.
        if self.effects.is_some()
            && self.instead.is_none()
            && let Some(record) = &record
        {
            self.instead = Some(Box::new((guard.clone(), record.clone())));
        }
        Write::new(self.key.clone(), guard, record).with_effects(self.effects.clone())
    }

    /// Whether it takes so long that nothing else of its process waits for it any more. Its handler has
    /// ended, so it cannot kill the process.
    fn is_slow(&self, now: Timestamp) -> bool {
        now >= self.slow_from() || now < self.begun
    }

    /// The outcome, now that the settlement is recorded. A commit that was given up before can be applied no
    /// more.
    pub(super) fn settled(self) -> Outcome {
        match self.outcome.0 {
            Outcome::Uncommitted { error } => {
                Outcome::Uncommitted { error: error.with_doubt(false) }
            }
            outcome => outcome,
        }
    }

    /// Whether `found` says that its commit was applied after all.
    pub(super) fn is_committed(&self, found: Option<&IdempotencyRecord>) -> bool {
        let owner = Some(self.held.claim.owner);
        self.committed.is_some() && found.is_some_and(|found| found.owner == owner)
    }

    fn slow_from(&self) -> Timestamp {
        self.begun.plus(PATIENCE)
    }

    /// When it is to be written. A clock that has stepped back must not make the pause longer.
    fn due(&self, now: Timestamp) -> Timestamp {
        if now < self.since { now } else { self.due }
    }

    /// Schedules its next try after this error. Returns whether there is one.
    pub(super) fn is_retried(&mut self, error: &StoreError, now: Timestamp) -> bool {
        let pause = if error.is_transient() {
            FIRST_PAUSE.saturating_mul(1 << self.tries.min(8)).min(LONGEST_PAUSE)
        } else {
            REFUSED_PAUSE
        };
        (self.since, self.due) = (now, now.plus(pause));
        self.tries += 1;
        // Waiting changes neither the record's size nor the record under its key.
        let hopeless = matches!(error.kind(), StoreErrorKind::TooLarge | StoreErrorKind::Corrupt);
        let retried = error.is_transient() || (self.insists && !hopeless);
        let patience = self.begun.plus(REFUSED_PATIENCE);
        let until = if error.is_transient() { self.until } else { self.until.min(patience) };
        retried && self.due < until
    }
}

/// What a settlement writes.
pub(super) struct Written {
    /// The record, if it has messages: they are sent next.
    pub(super) unsent: Option<Box<IdempotencyRecord>>,
    pub(super) completion: Option<Completion>,
}

impl Written {
    pub(super) fn of(write: &Write) -> Self {
        let record = write.record.as_ref();
        let unsent = record.filter(|record| record.outbox.is_some()).cloned().map(Box::new);
        Self { unsent, completion: record.and_then(Completion::of) }
    }
}

/// Settlements that wait, and those that were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Settlements {
    waiting: Vec<Box<Settling>>,
    calls: Calls<Box<Settling>>,
}

impl Settlements {
    pub(super) fn add(&mut self, settling: Box<Settling>) {
        if self.waiting.capacity() == 0 {
            // As with calls: a list would make room for four.
            self.waiting.reserve_exact(1);
        }
        self.waiting.push(settling);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.calls.is_empty()
    }

    /// When the next call is to go.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let first = self.waiting.iter().map(|settling| settling.due(now)).min();
        first.map(|due| self.calls.next(due, now))
    }

    /// The records whose settlement is slow: nothing waits for them any more.
    pub(super) fn slow(&self, now: Timestamp) -> impl Iterator<Item = usize> {
        self.all().filter(move |settling| settling.is_slow(now)).map(|settling| settling.at)
    }

    /// Whether all settlements are slow.
    pub(super) fn are_slow(&self, now: Timestamp) -> bool {
        self.all().all(|settling| settling.is_slow(now))
    }

    /// When the next one becomes slow.
    pub(super) fn next_slow(&self, now: Timestamp) -> Option<Timestamp> {
        let others = self.all().filter(|settling| !settling.is_slow(now));
        others.map(|settling| settling.slow_from()).min()
    }

    fn all(&self) -> impl Iterator<Item = &Box<Settling>> {
        self.waiting.iter().chain(self.calls.members())
    }

    /// Whether one has been due since before `now`, and could be sent.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.next_due(now).is_some_and(|due| due < now)
    }

    /// Takes all settlements that are due: the writes, and the call deadline. It waits for an earlier call
    /// that may be answered soon, unless the settlements are urgent.
    pub(super) fn send(
        &mut self,
        call: CallId,
        presses: bool,
        now: Timestamp,
    ) -> Option<(Vec<Write>, Timestamp)> {
        if self.waiting.is_empty() || (!presses && self.calls.next(now, now) > now) {
            return None;
        }
        let is_due = |settling: &Settling| settling.due(now) <= now;
        let mut members = if self.waiting.iter().all(|settling| is_due(settling)) {
            std::mem::take(&mut self.waiting)
        } else {
            self.waiting.extract_if(.., |settling| is_due(settling)).collect()
        };
        let until = members.iter().map(|settling| settling.until).min()?;
        let tries = members.iter().map(|settling| settling.tries).max().unwrap_or_default();
        let deadline = until.min(ends(now, FIRST_CALL, tries));
        let writes = members.iter_mut().map(|settling| settling.write(now)).collect();
        self.calls.add(call, members, now, deadline, PATIENCE);
        Some((writes, deadline))
    }

    /// A call was answered. `None` if it is not one of settlements.
    pub(super) fn written(&mut self, call: CallId, now: Timestamp) -> Option<Vec<Box<Settling>>> {
        Some(self.calls.answered(call, now)?.members)
    }

    /// Gives up all settlements, sent or not.
    pub(super) fn abandon(&mut self) -> Vec<Box<Settling>> {
        self.calls.abandon().chain(std::mem::take(&mut self.waiting)).collect()
    }
}

#[cfg(test)]
#[path = "settlements_tests.rs"]
mod tests;
