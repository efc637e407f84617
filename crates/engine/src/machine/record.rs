//! The records of the batch: what each asks for, which stage it has reached, and what is known of it.

use std::{sync::Arc, time::Duration};

use super::io::Carried;
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    outcome::{Outcome, Rejected},
    record::{Fingerprint, IdempotencyRecord, Json},
    store::{Guard, StoreError},
};
use lambda_idempotency_keys::Key;

/// How a record is handled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handling {
    /// Its handler is called once per key.
    Keyed,
    /// Its handler is called at every delivery.
    Unprotected,
    /// Nothing; it is returned, since it cannot be processed.
    Reject(Carried<Rejected>),
}

/// A record as the machine is given it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewRecord<'a> {
    /// Its idempotency key.
    pub key: Option<Key>,
    /// The fingerprint, which must agree with other deliveries of the key.
    pub fingerprint: Option<Fingerprint>,
    /// The payload. Without a fingerprint, records of a key are copies if their payloads are equal.
    pub payload: Option<&'a str>,
    /// Its order group.
    pub group: Option<Arc<str>>,
    /// How often it was received, this time included; 0 if its source does not count that.
    pub receives: u32,
    /// How it is handled.
    pub handling: Handling,
    /// Whether somebody takes care of it if it will never be processed, so that its group need not wait.
    pub lets_pass: bool,
    /// The text that its claim keeps, to do the work again where nothing redelivers it.
    pub kept: Option<Json>,
}

/// The content that copies have in common, besides the key.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Same<'e> {
    Fingerprint(&'e Fingerprint),
    Payload(Option<&'e str>),
}

impl<'a> NewRecord<'a> {
    /// A record that asks for its key alone.
    #[cfg(test)]
    pub(super) const fn keyed(key: Key) -> Self {
        Self {
            key: Some(key),
            fingerprint: None,
            payload: None,
            group: None,
            receives: 0,
            handling: Handling::Keyed,
            lets_pass: false,
            kept: None,
        }
    }

    /// Its content. Records of a key with the same content are copies: they have equal fingerprints
    /// or, without fingerprints, equal payloads.
    pub(super) fn same(&self) -> Same<'_> {
        match &self.fingerprint {
            Some(fingerprint) => Same::Fingerprint(fingerprint),
            None => Same::Payload(self.payload),
        }
    }
}

/// The stage that a record has reached. It says in which list the record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Behind another record of its key or group.
    Queued,
    /// Its key probably has an idempotency record, which has to be read before it is claimed.
    ToLook,
    /// Its look failed. Its claim comes before those of others, because it shows whether the record is a suspect.
    Unseen,
    /// It is to be claimed.
    ToClaim,
    /// Its key may have killed a process; it waits for its turn in quarantine.
    Suspected,
    /// Its look or its claim is due or on its way.
    Claiming,
    /// Its key is busy; it is looked at again.
    Waiting(Wait),
    /// It may start when there is room.
    Ready,
    /// Its handler was started.
    Running,
    /// Its settlement is due, or on its way.
    Settling,
    /// Its messages are to be sent, or on their way.
    Sending,
    /// It has its outcome.
    Done,
}

/// The wait for a busy key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wait {
    pub(super) wake: Timestamp,
    /// Until when the key is known to be busy.
    pub(super) until: Timestamp,
    pub(super) since: Timestamp,
}

impl Stage {
    /// Whether it waits for a busy key, for its claim, for its turn in quarantine, or for its handler.
    pub(super) const fn has_not_begun(self) -> bool {
        let is_wanted =
            matches!(self, Self::ToLook | Self::Unseen | Self::ToClaim | Self::Suspected);
        is_wanted || matches!(self, Self::Waiting(_) | Self::Ready)
    }

    /// Whether its lease, if it has one, is kept for a handler that runs or will.
    pub(super) const fn is_kept(self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }
}

/// One record and its stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchRecord<'a> {
    ask: NewRecord<'a>,
    stage: Stage,
    held: Option<Arc<Held>>,
    /// The guard of its completion, if its key was not claimed but taken to be free.
    assumed: Option<Box<Guard>>,
    /// The record that was found under its key, if its claim replaces it.
    seen: Option<Box<IdempotencyRecord>>,
    /// How many of its attempts were lost in a row, if it is in quarantine.
    losses: u32,
    /// Why it runs without a claim.
    outage: Option<Box<Carried<StoreError>>>,
    /// Its outcome is known, but its turn in the group has not come.
    preset: Option<Box<Carried<Outcome>>>,
    /// Why the store does not know that its messages were sent.
    unrecorded: Option<Box<Carried<StoreError>>>,
    ran_for: Option<Duration>,
    busy_since: Option<Timestamp>,
    looks: u32,
}

impl<'a> BatchRecord<'a> {
    pub(super) fn new(ask: NewRecord<'a>) -> Self {
        Self {
            ask,
            stage: Stage::Queued,
            held: None,
            assumed: None,
            seen: None,
            losses: 0,
            outage: None,
            preset: None,
            unrecorded: None,
            ran_for: None,
            busy_since: None,
            looks: 0,
        }
    }

    pub(super) const fn given(&self) -> &NewRecord<'a> {
        &self.ask
    }

    pub(super) const fn key(&self) -> Option<&Key> {
        self.ask.key.as_ref()
    }

    pub(super) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(super) const fn held(&self) -> Option<&Arc<Held>> {
        self.held.as_ref()
    }

    pub(super) fn outage(&self) -> Option<StoreError> {
        self.outage.as_ref().map(|error| error.0.clone())
    }

    pub(super) const fn ran_for(&self) -> Option<Duration> {
        self.ran_for
    }

    /// Whether it had to wait for another worker, which used up time of the invocation.
    pub(super) const fn has_waited(&self) -> bool {
        self.busy_since.is_some()
    }

    pub(super) const fn looks(&self) -> u32 {
        self.looks
    }

    /// How many of its attempts were lost in a row, if it is in quarantine.
    pub(super) const fn losses(&self) -> u32 {
        self.losses
    }

    /// The record that was found under its key, which its claim replaces.
    pub(super) const fn take_seen(&mut self) -> Option<Box<IdempotencyRecord>> {
        self.seen.take()
    }

    /// The order of the records that are not suspects: by the receives without an attempt, as far as they are known, and then by
    /// all receives.
    pub(super) fn age(&self) -> (u32, u32) {
        let tried =
            |seen: &IdempotencyRecord| seen.failed_attempts.saturating_add(seen.lost_attempts);
        let tried = self.seen.as_deref().map_or(0, tried);
        (self.ask.receives.saturating_sub(tried), self.ask.receives)
    }

    /// Its key was looked at, and is free. Its last `losses` attempts were lost.
    pub(super) fn looked(&mut self, losses: u32, seen: Option<Box<IdempotencyRecord>>) {
        (self.losses, self.seen) = (losses, seen);
    }

    /// Enters a stage; returns the one before. Only the machine does this, which keeps the lists.
    pub(super) const fn enter(&mut self, stage: Stage) -> Stage {
        std::mem::replace(&mut self.stage, stage)
    }

    /// It has its outcome. Its claim is dropped now and not with the batch: an event can hold very many records.
    pub(super) fn done(&mut self) {
        (self.ask.key, self.ask.kept) = (None, None);
        (self.held, self.assumed, self.seen, self.losses) = (None, None, None, 0);
    }

    /// Its claim was granted; or no claim was written, and its completion is written under the guard that is `assumed`.
    pub(super) fn granted(&mut self, held: Arc<Held>, assumed: Option<Box<Guard>>) {
        (self.held, self.assumed) = (Some(held), assumed);
    }

    /// The guard of its completion, if its key was not claimed.
    pub(super) fn assumption(&self) -> Option<&Guard> {
        self.assumed.as_deref()
    }

    /// Its lease was renewed: this is the record now. Steps that are not stored yet stay known.
    pub(super) fn renewed(&mut self, record: &IdempotencyRecord) {
        if let Some(held) = &mut self.held {
            let held = Arc::make_mut(held);
            held.record = held.on_top_of(record);
        }
    }

    /// Steps of its handler have ended; these are all of them.
    pub(super) fn set_steps(&mut self, steps: Json) {
        if let Some(held) = &mut self.held {
            Arc::make_mut(held).record.steps = Some(steps);
        }
    }

    /// It runs without a claim, because of this error.
    pub(super) fn runs_without_claim(&mut self, error: StoreError) {
        self.ask.handling = Handling::Unprotected;
        self.outage = Some(Box::new(Carried(error)));
    }

    /// When its key was found busy first.
    pub(super) const fn busy_since(&self) -> Option<Timestamp> {
        self.busy_since
    }

    /// Its key was found busy, once more or for the first time.
    pub(super) fn met_busy(&mut self, now: Timestamp) {
        self.busy_since.get_or_insert(now);
        self.looks += 1;
    }

    /// Its handler has ended. `since` is when it was called, if it was.
    pub(super) fn ended(&mut self, since: Option<Timestamp>, now: Timestamp) {
        self.ran_for = since.map(|since| now.since(since));
    }

    /// Its outcome, for when its turn comes.
    pub(super) fn preset(&mut self, outcome: Outcome) {
        self.preset = Some(Box::new(Carried(outcome)));
    }

    pub(super) fn take_preset(&mut self) -> Option<Outcome> {
        self.preset.take().map(|preset| preset.0)
    }

    pub(super) fn set_unrecorded(&mut self, error: StoreError) {
        self.unrecorded = Some(Box::new(Carried(error)));
    }

    pub(super) fn take_unrecorded(&mut self) -> Option<StoreError> {
        self.unrecorded.take().map(|error| error.0)
    }
}

/// The records of a batch, numbered in the order of the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Records<'a> {
    entries: Vec<BatchRecord<'a>>,
    /// How many of them have no outcome yet.
    open: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(asks: impl Iterator<Item = NewRecord<'a>>) -> Self {
        let entries: Vec<_> = asks.map(BatchRecord::new).collect();
        Self { open: entries.len(), entries }
    }

    pub(super) fn all(&self) -> &[BatchRecord<'a>] {
        &self.entries
    }

    pub(super) fn get(&self, at: usize) -> Option<&BatchRecord<'a>> {
        self.entries.get(at)
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn at(&mut self, at: usize) -> &mut BatchRecord<'a> {
        &mut self.entries[at]
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn of(&self, at: usize) -> &BatchRecord<'a> {
        &self.entries[at]
    }

    pub(super) const fn open(&self) -> usize {
        self.open
    }

    /// Record `at` has its outcome.
    pub(super) fn done(&mut self, at: usize) {
        self.at(at).done();
        self.open -= 1;
    }

    /// The records that have reached this stage.
    pub(super) fn in_stage(&self, stage: Stage) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| entry.stage() == stage).map(|(at, _)| at).collect()
    }
}

/// Instants, and claims that were granted, for the unit tests of several parts.
#[cfg(test)]
pub(super) mod testing {
    use std::{sync::Arc, time::Duration};

    use lambda_idempotency_core::{
        admission::{Claim, Held},
        clock::Timestamp,
        record::Owner,
    };

    use super::super::{
        calls::{CallId, CallIds},
        io::Action,
    };

    pub(in super::super) const START: Timestamp = Timestamp::from_secs(1_000);

    /// After so many milliseconds.
    pub(in super::super) fn after(ms: u64) -> Timestamp {
        START.plus(Duration::from_millis(ms))
    }

    /// A claim of a record's key for so many milliseconds.
    pub(in super::super) fn claim(at: usize, lease: u64) -> Claim {
        Claim {
            owner: Owner::from_bits(at as u128 + 1),
            lease_until: after(lease),
            retention: Duration::from_hours(1),
            clock_skew: Duration::ZERO,
            fingerprint: None,
            application: None,
            provenance: None,
            payload: None,
        }
    }

    /// A claim that was granted for so many milliseconds.
    pub(in super::super) fn held(lease: u64) -> Arc<Held> {
        Arc::new(claim(0, lease).over(None, START).1)
    }

    /// The deadline of a call.
    pub(in super::super) fn deadline(call: &Action) -> Timestamp {
        match call {
            Action::Read { deadline, .. }
            | Action::Write { deadline, .. }
            | Action::Send { deadline, .. } => *deadline,
            _ => unreachable!("no call"),
        }
    }

    /// The number of a call, where one at a time is on its way.
    pub(in super::super) fn call() -> CallId {
        CallIds::default().next()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{START, after, held},
        *,
    };

    #[test]
    fn a_record_that_met_a_busy_key_has_waited_since_the_first_time() {
        let mut entry = BatchRecord::new(NewRecord::keyed(Key::from_text("op#a")));
        assert!(!entry.has_waited());
        entry.met_busy(START);
        entry.met_busy(after(100));
        assert_eq!((entry.busy_since(), entry.looks()), (Some(START), 2));
        assert!(entry.has_waited());
    }

    #[test]
    fn a_record_with_its_outcome_keeps_nothing_of_its_claim() {
        let ask = NewRecord { kept: Some("{}".into()), ..NewRecord::keyed(Key::from_text("op#a")) };
        let mut entry = BatchRecord::new(ask);
        entry.granted(held(1_000), Some(Box::new(Guard::Absent)));
        assert!(entry.key().is_some() && entry.held().is_some() && entry.assumption().is_some());
        assert_eq!((entry.enter(Stage::Done), entry.stage()), (Stage::Queued, Stage::Done));
        entry.done();
        assert!(entry.key().is_none() && entry.held().is_none() && entry.assumption().is_none());
        assert_eq!(entry.given().kept, None, "with its form in a store that encrypts");
    }

    #[test]
    fn a_record_is_done_when_it_has_its_outcome() {
        let asks = ["op#a", "op#b"].map(|key| NewRecord::keyed(Key::from_text(key)));
        let mut records = Records::new(asks.into_iter());
        assert_eq!(records.open(), 2);
        records.done(1);
        assert_eq!(records.open(), 1);
    }
}
