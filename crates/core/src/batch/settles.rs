//! Settling claims: one call of the store at a time, and in it all that is due.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    admission::{Held, Settlement},
    clock::{BoxFuture, Timestamp},
    key::Key,
    outcome::Outcome,
    record::Record,
    store::{Guard, Store, Verdict, Write, each, unanswered},
};

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
    sent: Vec<Settle>,
    call: Option<BoxFuture<'static, Vec<Verdict>>>,
}

impl Settles {
    pub(super) fn add(&mut self, settle: Settle) {
        self.waiting.push(settle);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.call.is_none()
    }

    /// When the next one is due, if none is on its way.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        if self.call.is_some() {
            return None;
        }
        self.waiting.iter().map(|settle| settle.due).min()
    }

    /// Sends all that is due, unless a call is on its way already.
    pub(super) fn send(&mut self, store: &Arc<dyn Store>, now: Timestamp) {
        if self.call.is_some() {
            return;
        }
        let mut due: Vec<Settle> =
            self.waiting.extract_if(.., |settle| settle.due <= now).collect();
        let Some(deadline) = due.iter().map(|settle| settle.until).min() else { return };
        let writes: Vec<Write> = due.iter().map(|settle| settle.write(now)).collect();
        for (settle, write) in due.iter_mut().zip(&writes) {
            settle.record.clone_from(&write.record);
        }
        let store = Arc::clone(store);
        self.sent = due;
        self.call = Some(Box::pin(async move { store.write(&writes, deadline).await }));
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<(Settle, Verdict)>> {
        match &mut self.call {
            Some(call) => call.as_mut().poll(context).map(|verdicts| {
                self.call = None;
                let sent = std::mem::take(&mut self.sent);
                let verdicts = each(verdicts, Verdict::Unknown(unanswered()));
                sent.into_iter().zip(verdicts).collect()
            }),
            None => Poll::Pending,
        }
    }

    /// Gives up all, on their way or not.
    pub(super) fn abandon(&mut self) -> Vec<Settle> {
        self.call = None;
        let mut all = std::mem::take(&mut self.sent);
        all.append(&mut self.waiting);
        all
    }
}
