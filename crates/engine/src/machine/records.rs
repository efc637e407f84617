//! The records of the batch: what each asks for, and which stage it has reached.

use std::{sync::Arc, time::Duration};

use super::{carried::Carried, outcomes::Why};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    outcome::{Outcome, Rejected},
    record::{Fingerprint, IdempotencyRecord},
    store::StoreError,
};
use lambda_idempotency_keys::Key;

/// What is to be done with a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Its handler is called once per key.
    Keyed,
    /// Its handler is called at every delivery.
    Unprotected,
    /// Nothing; it is acknowledged.
    Skip,
    /// Nothing; it is returned, since it cannot be processed.
    Reject(Carried<Rejected>),
}

/// One record, as the machine has to know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask<'a> {
    /// Its idempotency key.
    pub key: Option<Key>,
    /// What must agree with other deliveries of the key.
    pub fingerprint: Option<Fingerprint>,
    /// The payload, which tells copies from others where there is no fingerprint.
    pub payload: &'a str,
    /// Its order group.
    pub group: Option<Arc<str>>,
    /// Records of higher priority start first.
    pub priority: u32,
    /// What is to be done.
    pub task: Task,
    /// Whether the host can put it aside if it fails permanently.
    pub can_be_put_aside: bool,
    /// Whether its handler puts a record aside.
    pub is_aside: bool,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Behind another record of its key or group.
    Queued,
    /// It is about to be claimed, or its claim is on its way.
    Claiming,
    /// Its key is busy; it is looked at again.
    Waiting,
    /// Its key may have killed a process; it waits for its turn in quarantine.
    Quarantined,
    /// It may start when there is room.
    Ready,
    /// Its handler was started.
    Running,
    /// Its handler has ended or is not called; the outcome waits for the store or for what puts the
    /// record aside.
    Ending,
    /// It has its outcome.
    Done,
}

/// What tells copies of a record from others with its key.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Asks<'e> {
    Fingerprint(&'e Fingerprint),
    Payload(&'e str),
}

/// One record and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry<'a> {
    ask: Ask<'a>,
    stage: Stage,
    held: Option<Arc<Held>>,
    /// Why it runs without a claim. In a box, as what follows, since few records have it and an
    /// event can hold very many.
    outage: Option<Box<Carried<StoreError>>>,
    /// Its outcome is known, but its turn in the group has not come.
    preset: Option<Box<Carried<Outcome>>>,
    /// The fence of the final record that was found under its key.
    final_fence: Option<u64>,
    /// Why it is put aside, from when that begins.
    why: Option<Box<Carried<Why>>>,
    /// The record that this one puts aside, if that has an entry of its own.
    stands_for: Option<usize>,
    /// Why the store does not know that it was put aside.
    unrecorded: Option<Box<Carried<StoreError>>>,
    ran_for: Option<Duration>,
    busy_since: Option<Timestamp>,
    looks: u32,
}

impl<'a> Entry<'a> {
    fn new(ask: Ask<'a>) -> Self {
        Self {
            ask,
            stage: Stage::Queued,
            held: None,
            outage: None,
            preset: None,
            final_fence: None,
            why: None,
            stands_for: None,
            unrecorded: None,
            ran_for: None,
            busy_since: None,
            looks: 0,
        }
    }

    /// The work of putting record `of` aside, under `key`.
    fn aside(of: usize, key: Key) -> Self {
        let ask = Ask {
            key: Some(key),
            fingerprint: None,
            payload: "",
            group: None,
            priority: 0,
            task: Task::Keyed,
            can_be_put_aside: false,
            is_aside: true,
        };
        Self { stands_for: Some(of), ..Self::new(ask) }
    }

    pub(super) const fn ask(&self) -> &Ask<'a> {
        &self.ask
    }

    pub(super) const fn key(&self) -> Option<&Key> {
        self.ask.key.as_ref()
    }

    pub(super) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(super) const fn held(&self) -> Option<&Arc<Held>> {
        self.held.as_ref()
    }

    /// Whether its key is held for a handler that runs or will.
    pub(super) fn is_kept(&self) -> bool {
        self.held.is_some() && matches!(self.stage, Stage::Ready | Stage::Running)
    }

    pub(super) fn outage(&self) -> Option<StoreError> {
        self.outage.as_ref().map(|error| error.0.clone())
    }

    /// The fence of what stands in its way permanently, or else of its own claim.
    pub(super) fn fence(&self) -> Option<u64> {
        self.final_fence.or(self.held.as_ref().map(|held| held.record.fence))
    }

    pub(super) fn why(&self) -> Option<&Why> {
        self.why.as_ref().map(|why| &why.0)
    }

    pub(super) const fn stands_for(&self) -> Option<usize> {
        self.stands_for
    }

    pub(super) const fn ran_for(&self) -> Option<Duration> {
        self.ran_for
    }

    /// Whether it had to wait for another worker: the time that is gone was not its own.
    pub(super) const fn has_waited(&self) -> bool {
        self.busy_since.is_some()
    }

    pub(super) const fn looks(&self) -> u32 {
        self.looks
    }

    /// What it asks for. Records of a key for which that is the same are copies: their fingerprints
    /// agree or, where they have none, their payloads.
    pub(super) fn asks(&self) -> Asks<'_> {
        match &self.ask.fingerprint {
            _ if !keeps(Rule::CopiesAskForTheSame) => Asks::Payload(""),
            Some(fingerprint) => Asks::Fingerprint(fingerprint),
            None => Asks::Payload(self.ask.payload),
        }
    }

    pub(super) const fn enter(&mut self, stage: Stage) {
        self.stage = stage;
    }

    /// Its claim was granted.
    pub(super) fn granted(&mut self, held: Arc<Held>) {
        self.held = Some(held);
        self.stage = Stage::Ready;
    }

    /// Its lease was renewed: this is the record now.
    pub(super) fn renewed(&mut self, record: IdempotencyRecord) {
        if let Some(held) = &mut self.held {
            Arc::make_mut(held).record = record;
        }
    }

    /// It runs without a claim, because of this error.
    pub(super) fn runs_without_claim(&mut self, error: Option<StoreError>) {
        self.ask.task = Task::Unprotected;
        self.outage = error.map(|error| Box::new(Carried(error)));
        self.stage = Stage::Ready;
    }

    /// Its key was found busy. Returns since when it is.
    pub(super) fn met_busy(&mut self, now: Timestamp) -> Timestamp {
        *self.busy_since.get_or_insert(now)
    }

    /// It has looked at a busy key once more.
    pub(super) const fn looked(&mut self) {
        self.looks += 1;
    }

    /// Its handler is over. `since` says when it began, if it did.
    pub(super) fn ended(&mut self, since: Option<Timestamp>, now: Timestamp) {
        self.stage = Stage::Ending;
        self.ran_for = since.map(|since| now.since(since));
    }

    pub(super) const fn found_final(&mut self, fence: u64) {
        self.final_fence = Some(fence);
    }

    /// Its outcome, for when its turn comes.
    pub(super) fn preset(&mut self, outcome: Outcome) {
        self.preset = Some(Box::new(Carried(outcome)));
    }

    pub(super) fn take_preset(&mut self) -> Option<Outcome> {
        self.preset.take().map(|preset| preset.0)
    }

    /// It is put aside from now on.
    pub(super) fn put_aside(&mut self, why: Why) {
        self.ask.can_be_put_aside = false;
        self.why = Some(Box::new(Carried(why)));
        self.stage = Stage::Ending;
    }

    pub(super) fn set_unrecorded(&mut self, error: Option<StoreError>) {
        self.unrecorded = error.map(|error| Box::new(Carried(error)));
    }

    pub(super) fn take_unrecorded(&mut self) -> Option<StoreError> {
        self.unrecorded.take().map(|error| error.0)
    }

    pub(super) fn take_why(&mut self) -> Option<Why> {
        self.why.take().map(|why| why.0)
    }
}

/// The records of a batch, and what puts some of them aside. They are numbered in the order of the
/// event; what is added later comes behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Records<'a> {
    entries: Vec<Entry<'a>>,
    /// How many of them have no outcome yet.
    open: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(asks: impl Iterator<Item = Ask<'a>>) -> Self {
        let entries: Vec<_> = asks.map(Entry::new).collect();
        Self { open: entries.len(), entries }
    }

    pub(super) fn all(&self) -> &[Entry<'a>] {
        &self.entries
    }

    pub(super) fn get(&self, at: usize) -> Option<&Entry<'a>> {
        self.entries.get(at)
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn at(&mut self, at: usize) -> &mut Entry<'a> {
        &mut self.entries[at]
    }

    /// Adds the work of putting record `of` aside; returns its number.
    pub(super) fn add_aside(&mut self, of: usize, key: Key) -> usize {
        self.entries.push(Entry::aside(of, key));
        self.open += 1;
        self.entries.len() - 1
    }

    /// The number that the next one will have that is added.
    pub(super) const fn next(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn open(&self) -> usize {
        self.open
    }

    /// Record `at` has its outcome.
    pub(super) fn done(&mut self, at: usize) {
        self.at(at).stage = Stage::Done;
        self.open -= 1;
    }

    /// The records that have reached this stage.
    pub(super) fn in_stage(&self, stage: Stage) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| entry.stage == stage).map(|(at, _)| at).collect()
    }
}
