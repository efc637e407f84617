//! Renewing short leases: which are due, and the one call on its way.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use crate::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::Record,
    store::{Guard, Store, Verdict, Write, each, unanswered},
};

/// The next renewal of a lease.
pub(super) struct Beat {
    /// The record's place in the batch.
    pub(super) at: usize,
    /// Not before this instant.
    pub(super) due: Timestamp,
    /// When the lease ends if it is not renewed.
    pub(super) lease_until: Timestamp,
    /// Beyond this instant the lease is not renewed.
    pub(super) ceiling: Timestamp,
    /// What to write instead of the renewal that follows from the record as we know it.
    pub(super) instead: Option<(Guard, Record)>,
}

/// A renewal on its way, and what it writes.
pub(super) struct Renewal {
    pub(super) beat: Beat,
    pub(super) record: Record,
}

/// The leases that are kept alive.
#[derive(Default)]
pub(super) struct Heartbeat {
    beats: Vec<Beat>,
    sent: Vec<Renewal>,
    call: Option<BoxFuture<'static, Vec<Verdict>>>,
}

impl Heartbeat {
    pub(super) fn add(&mut self, beat: Beat) {
        self.beats.push(beat);
    }

    /// Forgets the leases that are not to be kept any more.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.beats.retain(|beat| keep(beat.at));
    }

    /// The records whose lease has run out.
    pub(super) fn lapsed(&self, now: Timestamp) -> Vec<usize> {
        self.all().filter(|beat| now > beat.lease_until).map(|beat| beat.at).collect()
    }

    /// Takes what is due, unless a call is on its way already.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Beat> {
        if self.call.is_some() {
            return Vec::new();
        }
        self.beats.extract_if(.., |beat| beat.due <= now).collect()
    }

    pub(super) fn send(
        &mut self,
        store: Arc<dyn Store>,
        renewals: Vec<(Renewal, Key, Guard)>,
        deadline: Timestamp,
    ) {
        let mut writes = Vec::with_capacity(renewals.len());
        for (renewal, key, guard) in renewals {
            writes.push(Write { key, guard, record: Some(renewal.record.clone()) });
            self.sent.push(renewal);
        }
        if !writes.is_empty() {
            self.call = Some(Box::pin(async move { store.write(&writes, deadline).await }));
        }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<(Renewal, Verdict)>> {
        match &mut self.call {
            Some(call) => call.as_mut().poll(context).map(|verdicts| {
                self.call = None;
                let verdicts = each(verdicts, Verdict::Unknown(unanswered()));
                std::mem::take(&mut self.sent).into_iter().zip(verdicts).collect()
            }),
            None => Poll::Pending,
        }
    }

    /// When something has to be done: a renewal, or giving up a lease that has not lapsed at `now`.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let standing = self.all().filter(|beat| now <= beat.lease_until);
        let lapses = standing.map(|beat| beat.lease_until.plus(Duration::from_millis(1)));
        let idle = self.call.is_none();
        let due = self.beats.iter().filter(|_| idle).map(|beat| beat.due);
        lapses.chain(due).min()
    }

    fn all(&self) -> impl Iterator<Item = &Beat> {
        self.beats.iter().chain(self.sent.iter().map(|renewal| &renewal.beat))
    }
}
