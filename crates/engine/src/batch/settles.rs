//! Settling claims: one call of the store at a time unless it takes long, and in it all that is due.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use super::calls::{Answered, Calls, FIRST_CALL, PATIENCE, ends};
use lambda_idempotency_core::{
    admission::{Held, Settlement},
    clock::Timestamp,
    outcome::Outcome,
    record::IdempotencyRecord,
    store::{Guard, Store, Write},
};
use lambda_idempotency_keys::Key;

/// One claim to be settled.
pub(super) struct Settle {
    /// The record's place in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) held: Arc<Held>,
    pub(super) settlement: Settlement,
    /// What to write instead of the settlement's own write.
    pub(super) instead: Option<Box<(Guard, IdempotencyRecord)>>,
    /// The delivery's outcome if this succeeds.
    pub(super) outcome: Outcome,
    /// Not before this instant.
    pub(super) due: Timestamp,
    /// Not after this one.
    pub(super) until: Timestamp,
    pub(super) tries: u32,
    /// How often it met a record that was not there, or ours again.
    pub(super) again: u32,
}

impl Settle {
    fn write(&self, now: Timestamp) -> Write {
        let (guard, record) = match self.instead.as_deref().cloned() {
            Some((guard, record)) => (guard, Some(record)),
            None => self.held.write(&self.settlement, now),
        };
        Write { key: self.key.clone(), guard, record }
    }
}

/// Settlements that wait, and those on their way.
#[derive(Default)]
pub(super) struct Settles {
    waiting: Vec<Settle>,
    calls: Calls<Settle>,
}

impl Settles {
    pub(super) fn add(&mut self, settle: Settle) {
        self.waiting.push(settle);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.calls.is_empty()
    }

    /// When the next call is to go.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.waiting.iter().map(|settle| settle.due).min().map(|due| self.calls.next(due))
    }

    /// Sends all that is due, unless a call is on its way that may be back soon.
    pub(super) fn send(&mut self, store: &Arc<dyn Store>, now: Timestamp) {
        if self.calls.next(now) > now {
            return;
        }
        let settles: Vec<Settle> =
            self.waiting.extract_if(.., |settle| settle.due <= now).collect();
        let Some(until) = settles.iter().map(|settle| settle.until).min() else { return };
        let tries = settles.iter().map(|settle| settle.tries).max().unwrap_or_default();
        let deadline = until.min(ends(now, FIRST_CALL, tries));
        let writes = settles.iter().map(|settle| settle.write(now)).collect();
        self.calls.send(store, settles, writes, deadline, now.plus(PATIENCE));
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<Answered<Settle>>> {
        self.calls.poll(context)
    }

    /// Gives up all, on their way or not.
    pub(super) fn abandon(&mut self) -> Vec<Settle> {
        self.calls.abandon().chain(std::mem::take(&mut self.waiting)).collect()
    }
}
