//! Renewing short leases: one call of the store at a time unless it takes long, and in it all that is
//! due.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::calls::{Answered, Calls, FIRST_CALL, PATIENCE, ends};
use lambda_idempotency_core::{
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, Store, Write},
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
    pub(super) instead: Option<Box<(Guard, IdempotencyRecord)>>,
    /// How often it had no answer.
    pub(super) tries: u32,
}

/// The leases that are kept alive.
#[derive(Default)]
pub(super) struct Heartbeat {
    beats: Vec<Beat>,
    calls: Calls<Beat>,
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

    /// Takes what is due, unless a call is on its way that may be back soon.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Beat> {
        if self.calls.next(now) > now {
            return Vec::new();
        }
        self.beats.extract_if(.., |beat| beat.due <= now).collect()
    }

    /// Renews leases of this `length`. What is due has two thirds of it left: a sixth at most is spent
    /// waiting for the call before, a sixth on the first try, two on the second.
    pub(super) fn send(
        &mut self,
        store: &Arc<dyn Store>,
        beats: Vec<Beat>,
        writes: Vec<Write>,
        now: Timestamp,
        length: Duration,
    ) {
        let Some(lapse) = beats.iter().map(|beat| beat.lease_until).min() else { return };
        let tries = beats.iter().map(|beat| beat.tries).max().unwrap_or_default();
        let deadline = lapse.min(ends(now, FIRST_CALL.min(length / 6), tries));
        self.calls.send(store, beats, writes, deadline, now.plus(PATIENCE.min(length / 6)));
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<Answered<Beat>>> {
        self.calls.poll(context)
    }

    /// When something has to be done: a renewal, or giving up a lease that has not lapsed at `now`.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let standing = self.all().filter(|beat| now <= beat.lease_until);
        let lapses = standing.map(|beat| beat.lease_until.plus(Duration::from_millis(1)));
        let due = self.beats.iter().map(|beat| self.calls.next(beat.due));
        lapses.chain(due).min()
    }

    fn all(&self) -> impl Iterator<Item = &Beat> {
        self.beats.iter().chain(self.calls.members())
    }
}
