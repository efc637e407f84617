//! A function in Python or TypeScript that uses Powertools for AWS Lambda and shares the table.
//!
//! Its requests are those of Powertools for Python 3.37 and TypeScript 2.35. The claim is one
//! conditional `PutItem`, without clock skew. The completion (`UpdateItem`) and, after a failure, the
//! deletion (`DeleteItem`) have **no condition**: they change any record of the key.

use lambda_idempotency_core::record::{IdempotencyRecord, Status};

use crate::{
    packed::{Cell, TEXT, at},
    state::{Flaw, Stranger},
    step::{Ended, Step},
    witness::Event,
};

/// How the handler of a Powertools function ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It writes the result.
    Completes,
    /// It deletes the record and raises the error.
    Fails,
    /// It is killed, and writes nothing.
    Dies,
}

/// `attribute_not_exists(id) OR expiration < :now OR (status = INPROGRESS AND
/// attribute_exists(in_progress_expiration) AND in_progress_expiration < :now_in_millis)`
fn is_free(found: Option<&IdempotencyRecord>, now: u8) -> bool {
    found.is_none_or(|record| {
        let lapsed = record.lease_until.is_some_and(|lease_until| lease_until < at(now));
        record.expires_at < at(now) || record.status == Status::InProgress && lapsed
    })
}

impl Step<'_> {
    /// Whether taking a delivery now would lead to anything but its return.
    pub(crate) fn stranger_can_take(&self, now: u8) -> bool {
        let found = self.key.store.map(Cell::unpack);
        is_free(found.as_ref(), now) || found.is_some_and(|r| r.status == Status::Completed)
    }

    /// The function takes a delivery, and claims the key or replays its completion.
    pub(crate) fn stranger_takes(&mut self, function: usize, now: u8) {
        self.key.source.queued[0] -= 1;
        let found = self.key.store;
        if !is_free(found.map(Cell::unpack).as_ref(), now) {
            self.setup.witness.saw(Event::StrangerReplayed);
            self.tell(0, Ended::Acknowledged { lost: false });
            return;
        }
        if found.is_some_and(Cell::in_progress) {
            self.setup.witness.saw(Event::StrangerTookOver);
        }
        self.replaces(found);
        let lease = now + self.setup.lease;
        let mut record = IdempotencyRecord::new(Status::InProgress, at(now + self.setup.retention));
        record.lease_until = Some(at(lease));
        self.key.store = Some(Cell::pack(&record));
        self.key.strangers[function] = Some(Stranger { lease });
    }

    /// The handler ends.
    pub(crate) fn stranger_ends(&mut self, function: usize, fate: Fate, now: u8) {
        self.key.strangers[function] = None;
        match fate {
            Fate::Completes => {
                self.overwrites(self.key.store);
                let found = self.key.store.map(Cell::unpack);
                let expires_at = at(now + self.setup.retention);
                let mut record =
                    found.unwrap_or(IdempotencyRecord::new(Status::Completed, expires_at));
                // The update keeps every other attribute, whichever worker wrote it.
                record.status = Status::Completed;
                record.expires_at = expires_at;
                record.result = Some(TEXT.clone().into());
                self.key.store = Some(Cell::pack(&record));
                self.key.effect.add(0);
                self.key.completed.add(0);
                self.key.source.acknowledged += 1;
            }
            Fate::Fails => {
                self.replaces(self.key.store);
                self.key.store = None;
                self.key.source.queued[0] += 1;
            }
            Fate::Dies => self.key.source.queued[0] += 1,
        }
    }

    /// Time has advanced: Lambda kills a function whose deadline has passed.
    pub(crate) fn kill_strangers(&mut self) {
        for function in 0..self.key.strangers.len() {
            let over = self.key.strangers[function].is_some_and(|s| self.time > s.lease);
            if over && !self.setup.powertools.outlive {
                self.stranger_ends(function, Fate::Dies, self.time);
            }
        }
    }

    /// A Powertools function's write changes `old`.
    fn overwrites(&mut self, old: Option<Cell>) {
        if old.is_some_and(|old| !old.in_progress() && self.time <= old.expires()) {
            self.blame(Flaw::OverwrittenByStranger);
        }
    }

    /// A Powertools function's write replaces `old` or deletes it.
    fn replaces(&mut self, old: Option<Cell>) {
        self.overwrites(old);
        let counts =
            |old: Cell| old.in_progress() && (old.failed_attempts() > 0 || old.lost_attempts() > 0);
        if old.is_some_and(counts) {
            self.blame(Flaw::CountsLost);
        }
    }
}
