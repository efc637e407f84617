//! One delivery, and where it stands.

use std::{sync::Arc, time::Duration};

use super::{Aside, Delivery, Divert, Job, Work, handler::Handle};
use crate::{call::RecordId, process::Leader};
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    contained::Contained,
    failure::Failure,
    outcome::{DivertReason, NotStarted, Outcome, Rejected},
    record::Fingerprint,
    store::StoreError,
};
use lambda_idempotency_keys::Key;

/// One delivery and where it stands.
pub(super) struct Entry<'a> {
    pub(super) record: RecordId,
    pub(super) key: Option<Key>,
    /// What stands for the key of a record that has none.
    pub(super) identity: Option<Key>,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) payload: &'a str,
    pub(super) priority: u32,
    pub(super) intake: Intake,
    /// Until it starts. It holds the user's payload.
    pub(super) job: Contained<Job<'a>>,
    /// How the record is put aside, until that begins.
    pub(super) divert: Option<Divert<'a>>,
    /// The fence of the final record of its key that stands in its way: a permanent failure, or the
    /// outcome of another payload. `None` if its own claim failed permanently, or it had none.
    pub(super) final_fence: Option<u64>,
    /// Why it is put aside, from when that begins. In a box, as what follows, since few records have it
    /// and an event can hold very many.
    pub(super) why: Option<Box<Why>>,
    /// Why the store does not know that it was put aside.
    pub(super) unrecorded: Option<Box<StoreError>>,
    /// Whether its job puts a record aside.
    pub(super) is_aside: bool,
    /// The record that this entry puts aside, if that one has an entry of its own.
    pub(super) stands_for: Option<usize>,
    /// From its start to its end.
    pub(super) handler: Option<Handle>,
    pub(super) stage: Stage,
    /// From its claim to its outcome.
    pub(super) lead: Option<Leader>,
    pub(super) held: Option<Arc<Held>>,
    /// Why it runs without a claim.
    pub(super) outage: Option<Box<StoreError>>,
    /// Known, but its turn in the group has not come.
    pub(super) preset: Option<Box<Outcome>>,
    pub(super) outcome: Option<Outcome>,
    pub(super) ran_for: Option<Duration>,
    pub(super) busy_since: Option<Timestamp>,
    pub(super) looks: u32,
}

/// Why a record is put aside.
pub(super) struct Why {
    pub(super) reason: DivertReason,
    /// What its handler said, if it failed in this invocation.
    pub(super) failure: Option<Failure>,
}

pub(super) enum Intake {
    Keyed,
    Unprotected,
    Skip,
    Reject(Rejected),
}

/// What tells copies of a record from others with its key.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Asks<'e> {
    Fingerprint(&'e Fingerprint),
    Payload(&'e str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Behind another of its key or group.
    Waiting,
    /// Its turn has come.
    Moving,
    /// Its claim is on its way.
    Claiming,
    /// Its handler was let go.
    Running,
}

impl<'a> Entry<'a> {
    pub(super) fn new(delivery: Delivery<'a>) -> Self {
        let mut entry = Self {
            record: delivery.record,
            key: None,
            identity: None,
            fingerprint: None,
            payload: "",
            priority: delivery.priority,
            intake: Intake::Keyed,
            job: Contained::none(),
            divert: delivery.divert,
            final_fence: None,
            why: None,
            unrecorded: None,
            is_aside: false,
            stands_for: None,
            handler: None,
            stage: Stage::Waiting,
            lead: None,
            held: None,
            outage: None,
            preset: None,
            outcome: None,
            ran_for: None,
            busy_since: None,
            looks: 0,
        };
        match delivery.work {
            Work::Keyed { key, fingerprint, payload, job } => {
                entry.key = Some(key);
                entry.fingerprint = fingerprint;
                entry.payload = payload;
                entry.job = Contained::new(job);
            }
            Work::Unprotected { identity, job } => {
                entry.identity = Some(identity);
                entry.intake = Intake::Unprotected;
                entry.job = Contained::new(job);
            }
            Work::Skip => entry.intake = Intake::Skip,
            Work::Divert { aside: Aside { key, job }, payload } => {
                entry.key = Some(key);
                entry.payload = payload;
                entry.job = Contained::new(job);
                entry.is_aside = true;
            }
            Work::Reject(rejection) => entry.intake = Intake::Reject(rejection),
        }
        entry
    }

    /// Whether its claim, if it has one, still keeps others out: it may have waited for its turn
    /// for longer than its lease.
    pub(super) fn is_held_at(&self, now: Timestamp) -> bool {
        let lease = self.held.as_ref().and_then(|held| held.record.lease_until);
        lease.is_none_or(|until| now <= until)
    }

    /// Stops its handler, if that has not ended. Says whether it had begun.
    pub(super) fn stop(&mut self, now: Timestamp) -> bool {
        self.stage = Stage::Moving;
        let since = self.handler.take().and_then(|handler| handler.stop());
        self.ran_for = since.map(|since| now.since(since));
        since.is_some()
    }

    /// Whether it had to wait for another worker: the time that is gone was not its own.
    pub(super) fn has_waited(&self) -> bool {
        self.busy_since.is_some()
    }

    /// Whether its key is held for a handler that runs or will.
    pub(super) fn is_kept(&self) -> bool {
        let runs = self.stage == Stage::Running || self.job.get().is_some();
        self.outcome.is_none() && self.held.is_some() && runs
    }

    /// What it asks for. Records of a key for which that is the same are copies: their fingerprints
    /// agree or, where they have none, their payloads.
    pub(super) fn asks(&self) -> Asks<'_> {
        match &self.fingerprint {
            Some(fingerprint) => Asks::Fingerprint(fingerprint),
            None => Asks::Payload(self.payload),
        }
    }

    pub(super) fn into_outcome(self) -> Outcome {
        self.outcome.unwrap_or(Outcome::Returned(NotStarted::Deadline))
    }
}
