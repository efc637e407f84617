//! What the machine asks of its surroundings, and is answered at once.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::DivertReason,
    record::{EntropyError, IdempotencyRecord, Owner, Provenance},
};
use lambda_idempotency_keys::Key;

/// The surroundings of a machine: where tokens come from, what the process shares, which user code
/// there is for a record. A model checker puts its own in place, whose answers are part of the state.
pub trait Host {
    /// A fresh owner token, never handed out before.
    ///
    /// # Errors
    /// There is no randomness.
    fn owner(&mut self) -> Result<Owner, EntropyError>;

    /// Where a claim of record `at` comes from, for people who look at the store.
    fn provenance(&self, at: usize, now: Timestamp) -> Option<Provenance>;

    /// How long handlers of the operation take, as far as was learned.
    fn pace(&self) -> Duration;

    /// A handler has taken this long.
    fn took(&mut self, took: Duration);

    /// Asks for the key of record `at` in this process, until its outcome, and at the latest up to
    /// and including `until`. Who has it already keeps it.
    fn join(&mut self, at: usize, key: &Key, now: Timestamp, until: Timestamp) -> Join;

    /// The store has granted the claim of record `at`: followers may rely on it.
    fn holds(&mut self, at: usize);

    /// Record `at` gives its key up in this process. Its followers are told what it has learned.
    fn leave(&mut self, at: usize);

    /// What was seen in the store under the key of record `at`.
    fn learn(&mut self, at: usize, key: &Key, record: IdempotencyRecord, now: Timestamp);

    /// The completed record of a key, if this process remembers it.
    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>>;

    /// Asks for a place among the invocations of this process, which counts up to and including
    /// `until`; who has it keeps it, with the new end. If it is not free, the invocation waits for it,
    /// up to and including `patience`, and asks again when [`Input::MayEnter`](super::Input::MayEnter)
    /// comes. It has or wants one place at a time: it exits before it asks for another.
    fn enter(&mut self, side: Side, until: Timestamp, patience: Timestamp, now: Timestamp)
    -> Enter;

    /// Gives the place up, whether it was taken or waited for.
    fn exit(&mut self);

    /// Makes the work of putting record `at` aside, as record `aside`; returns its key. `None` if
    /// there is none for the record.
    fn put_aside(
        &mut self,
        at: usize,
        aside: usize,
        reason: DivertReason,
        fence: Option<u64>,
    ) -> Option<Key>;

    /// The lease of record `at` was renewed: its handler may begin up to and including `lease_until`.
    fn renewed(&mut self, at: usize, lease_until: Timestamp);

    /// Takes back the handler of record `at`, unless it was called already. Says whether it did: then it
    /// is not called any more.
    fn withdraw(&mut self, at: usize) -> bool;

    /// Stops the handler of record `at`, which is not polled any more. Says since when it ran, if it
    /// was called.
    fn stop(&mut self, at: usize) -> Option<Timestamp>;
}

/// What asking for a key in this process came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// The record has the key, in this process.
    Leads,
    /// Another one has it. [`Input::LeaderDone`](super::Input::LeaderDone) comes when that is over.
    Follows {
        /// Up to and including when the leader has the key at the latest.
        until: Timestamp,
        /// Whether the leader's claim was granted by the store.
        holds: bool,
    },
}

/// How an invocation takes part in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Others may claim and run meanwhile.
    Shared,
    /// No other one may.
    Isolated,
}

/// What asking for a place among the invocations of this process came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Enter {
    /// It is taken.
    Entered,
    /// Others have to leave first.
    Waits {
        /// Up to and including when they have their places at the latest, as far as is known.
        until: Timestamp,
    },
}
