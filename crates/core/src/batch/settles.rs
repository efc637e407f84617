//! Settling claims: one call of the store at a time, and in it all that is due.
//!
//! Unless it takes long: a call ends with the slowest of its members, and one that is throttled must
//! not hold up the completions of all others until the invocation is over.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use crate::{
    admission::{Held, Settlement},
    clock::{BoxFuture, Timestamp},
    key::Key,
    outcome::Outcome,
    record::Record,
    store::{Guard, Store, Verdict, Write, each, unanswered},
};

/// How long the next call waits for the last one.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a call may take at first; twice as long after each failure. Who shares a call with one
/// that hangs has its own answer then.
const FIRST_CALL: Duration = Duration::from_secs(5);

/// One claim to be settled.
pub(super) struct Settle {
    /// The record's place in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) held: Box<Held>,
    pub(super) settlement: Settlement,
    /// What to write instead of the settlement's own write.
    pub(super) instead: Option<(Guard, Record)>,
    /// What the write on its way puts there.
    pub(super) record: Option<Record>,
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
        let (guard, record) = match &self.instead {
            Some((guard, record)) => (guard.clone(), Some(record.clone())),
            None => self.held.write(&self.settlement, now),
        };
        Write { key: self.key.clone(), guard, record }
    }

    /// The record that is in the store now, as far as `verdict` tells.
    pub(super) fn left(&self, verdict: &Verdict) -> Option<Record> {
        match verdict {
            Verdict::Written => self.record.clone(),
            Verdict::Found(found) => found.clone(),
            Verdict::Unknown(_) => None,
        }
    }
}

/// Settlements that wait, and those on their way.
#[derive(Default)]
pub(super) struct Settles {
    waiting: Vec<Settle>,
    calls: Vec<Sent>,
}

/// One call on its way.
struct Sent {
    settles: Vec<Settle>,
    since: Timestamp,
    call: BoxFuture<'static, Vec<Verdict>>,
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
        let due = self.waiting.iter().map(|settle| settle.due).min()?;
        Some(self.free_from().map_or(due, |free| due.max(free)))
    }

    /// From when on the next call need not wait for the last one.
    fn free_from(&self) -> Option<Timestamp> {
        self.calls.last().map(|last| last.since.plus(PATIENCE))
    }

    /// Sends all that is due, unless a call is on its way that may be back soon.
    pub(super) fn send(&mut self, store: &Arc<dyn Store>, now: Timestamp) {
        if self.free_from().is_some_and(|free| now < free) {
            return;
        }
        let mut settles: Vec<Settle> =
            self.waiting.extract_if(.., |settle| settle.due <= now).collect();
        let Some(until) = settles.iter().map(|settle| settle.until).min() else { return };
        let tries = settles.iter().map(|settle| settle.tries).max().unwrap_or_default();
        let deadline = until.min(now.plus(FIRST_CALL.saturating_mul(1 << tries.min(8))));
        let writes: Vec<Write> = settles.iter().map(|settle| settle.write(now)).collect();
        for (settle, write) in settles.iter_mut().zip(&writes) {
            settle.record.clone_from(&write.record);
        }
        let store = Arc::clone(store);
        let call = Box::pin(async move { store.write(&writes, deadline).await });
        self.calls.push(Sent { settles, since: now, call });
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<(Settle, Verdict)>> {
        for place in 0..self.calls.len() {
            let Some(sent) = self.calls.get_mut(place) else { break };
            if let Poll::Ready(verdicts) = sent.call.as_mut().poll(context) {
                let verdicts = each(verdicts, Verdict::Unknown(unanswered()));
                let settles = self.calls.remove(place).settles;
                return Poll::Ready(settles.into_iter().zip(verdicts).collect());
            }
        }
        Poll::Pending
    }

    /// Gives up all, on their way or not.
    pub(super) fn abandon(&mut self) -> Vec<Settle> {
        let sent = std::mem::take(&mut self.calls).into_iter().flat_map(|sent| sent.settles);
        sent.chain(std::mem::take(&mut self.waiting)).collect()
    }
}
