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
    /// Whether its key is to be looked at or claimed when it has its turn.
    pub(super) const fn is_wanted(self) -> bool {
        matches!(self, Self::ToLook | Self::Unseen | Self::ToClaim | Self::Suspected)
    }

    /// Whether it waits for a busy key, for its claim, for its turn in quarantine, or for its handler.
    pub(super) const fn has_not_begun(self) -> bool {
        self.is_wanted() || matches!(self, Self::Waiting(_) | Self::Ready)
    }

    /// Whether its lease, if it has one, is kept for a handler that runs or will.
    pub(super) const fn is_kept(self) -> bool {
        matches!(self, Self::Ready | Self::Running)
    }
}

/// One record and its stage. Rules only read it; the table changes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchRecord<'a> {
    pub(super) given: NewRecord<'a>,
    pub(super) stage: Stage,
    pub(super) held: Option<Arc<Held>>,
    /// The guard of its completion, if its key was not claimed but taken to be free.
    pub(super) assumed: Option<Box<Guard>>,
    /// The record that was found under its key, if its claim replaces it.
    pub(super) seen: Option<Box<IdempotencyRecord>>,
    /// How many of its attempts were lost in a row, if it is in quarantine.
    pub(super) losses: u32,
    /// Why it runs without a claim.
    pub(super) outage: Option<Box<Carried<StoreError>>>,
    /// Its outcome is known, but its turn in the group has not come.
    pub(super) preset: Option<Box<Carried<Outcome>>>,
    /// Why the store does not know that its messages were sent.
    pub(super) unrecorded: Option<Box<Carried<StoreError>>>,
    /// How long its handler ran, if it was called and has ended.
    pub(super) ran_for: Option<Duration>,
    /// When its key was found busy first.
    pub(super) busy_since: Option<Timestamp>,
    /// How often its key was found busy.
    pub(super) looks: u32,
}

impl<'a> BatchRecord<'a> {
    pub(super) fn new(given: NewRecord<'a>) -> Self {
        Self {
            given,
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

    pub(super) const fn key(&self) -> Option<&Key> {
        self.given.key.as_ref()
    }

    /// Whether it had to wait for another worker, which used up time of the invocation.
    pub(super) const fn has_waited(&self) -> bool {
        self.busy_since.is_some()
    }

    /// The order of the records that are not suspects: by the receives without an attempt, as far as they are known, and then by
    /// all receives.
    pub(super) fn age(&self) -> (u32, u32) {
        let tried =
            |seen: &IdempotencyRecord| seen.failed_attempts.saturating_add(seen.lost_attempts);
        let tried = self.seen.as_deref().map_or(0, tried);
        (self.given.receives.saturating_sub(tried), self.given.receives)
    }

    /// Its lease was renewed: this is the record now. Steps that are not stored yet stay known.
    pub(super) fn renewed(&mut self, record: &IdempotencyRecord) {
        if let Some(held) = &mut self.held {
            let held = Arc::make_mut(held);
            held.record = held.on_top_of(record);
        }
    }
}

/// The records of a batch, numbered in the order of the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Records<'a> {
    entries: Vec<BatchRecord<'a>>,
    /// How many of them have no outcome yet.
    pub(super) open: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(given: impl Iterator<Item = NewRecord<'a>>) -> Self {
        let entries: Vec<_> = given.map(BatchRecord::new).collect();
        Self { open: entries.len(), entries }
    }

    pub(super) fn all(&self) -> &[BatchRecord<'a>] {
        &self.entries
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn at(&mut self, at: usize) -> &mut BatchRecord<'a> {
        &mut self.entries[at]
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn of(&self, at: usize) -> &BatchRecord<'a> {
        &self.entries[at]
    }

    /// Record `at` has its outcome. Its claim is dropped now and not with the batch: an event can hold very many records.
    pub(super) fn done(&mut self, at: usize) {
        let record = self.at(at);
        (record.given.key, record.given.kept) = (None, None);
        (record.held, record.assumed, record.seen, record.losses) = (None, None, None, 0);
        self.open -= 1;
    }

    /// The records in such a stage.
    pub(super) fn in_stage(&self, is: fn(Stage) -> bool) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, record)| is(record.stage)).map(|(at, _)| at).collect()
    }
}

/// Instants, and claims that were granted, for the unit tests of several parts.
#[cfg(test)]
pub(super) mod testing {
    use lambda_idempotency_core::{admission::Claim, record::Owner};

    use super::{
        super::{
            calls::{CallId, CallIds},
            io::Action,
        },
        *,
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

    /// Two records with this claim.
    pub(in super::super) fn records(held: Arc<Held>) -> Records<'static> {
        let given = |key| NewRecord::keyed(Key::from_text(key));
        let mut records = Records::new(["op#a", "op#b"].map(given).into_iter());
        (records.at(0).held, records.at(1).held) = (Some(Arc::clone(&held)), Some(held));
        records
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
    use super::{testing::held, *};

    #[test]
    fn a_record_with_its_outcome_keeps_nothing_of_its_claim() {
        let with_key = |key| NewRecord::keyed(Key::from_text(key));
        let asks = [NewRecord { kept: Some("{}".into()), ..with_key("op#a") }, with_key("op#b")];
        let mut records = Records::new(asks.into_iter());
        let record = records.at(0);
        (record.held, record.assumed) = (Some(held(1_000)), Some(Box::new(Guard::Absent)));
        assert_eq!(records.open, 2);
        records.done(0);
        assert_eq!(records.open, 1);
        let record = records.of(0);
        assert!(record.key().is_none() && record.held.is_none() && record.assumed.is_none());
        assert_eq!(record.given.kept, None, "with its form in a store that encrypts");
    }
}
