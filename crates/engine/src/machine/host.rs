//! Questions of the machine that its surroundings answer at once.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::DivertReason,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance},
    store::StoreError,
};
use lambda_idempotency_keys::Key;

/// The surroundings of a machine: they make tokens, know the other invocations of the process, and call
/// user code. A model checker has its own host, whose answers are part of the state.
pub trait Host {
    /// A fresh owner token, never handed out before.
    ///
    /// # Errors
    /// The operating system returned no random bytes.
    fn owner(&mut self) -> Result<Owner, EntropyError>;

    /// Where a claim of record `at` comes from, for people who look at the store.
    fn provenance(&self, at: usize, now: Timestamp) -> Option<Provenance>;

    /// How long handlers of the operation have taken so far.
    fn pace(&self) -> Duration;

    /// A handler has taken this long.
    fn took(&mut self, took: Duration);

    /// Asks for the lead of the key of record `at` in this process. The lead lasts until the record's
    /// outcome, and at the latest up to and including `until`. A record that leads already stays the
    /// leader.
    fn join(&mut self, at: usize, key: &Key, now: Timestamp, until: Timestamp) -> Join;

    /// The store has granted the claim of record `at`: followers may rely on it while the leader works. What was
    /// learned of the key before is outdated, and no follower gets it.
    fn holds(&mut self, at: usize);

    /// Record `at` is returned to its source: followers must not rely on its claim any more.
    fn returns(&mut self, at: usize);

    /// Record `at` gives up the lead of its key in this process. Its followers get the record that it has
    /// learned since its claim was granted, or without a claim.
    fn leave(&mut self, at: usize);

    /// What was seen in the store under the key of record `at`.
    fn learn(&mut self, at: usize, key: &Key, record: IdempotencyRecord, now: Timestamp);

    /// The completed record of a key, if this process remembers it.
    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>>;

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

    /// The store has these steps of record `at`: what waits for them goes on.
    fn steps_stored(&mut self, at: usize, steps: &Json);

    /// The store refuses to keep the steps of record `at`, and it is of no use to wait: steps that wait end
    /// with this error.
    fn steps_refused(&mut self, at: usize, error: &StoreError);

    /// Takes back the handler of record `at`, unless it was called already. Says whether it did: then it
    /// is not called any more.
    fn withdraw(&mut self, at: usize) -> bool;

    /// Drops the handler of record `at`. Returns when it was called, if it was.
    fn stop(&mut self, at: usize) -> Option<Timestamp>;
}

/// The answer to a record that asks for the lead of its key in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    /// The record has the key, in this process.
    Leads,
    /// Another one has it. [`Input::LeaderDone`](super::Input::LeaderDone) comes when that is over.
    Follows {
        /// The leader has the key until this instant at the latest, inclusive.
        until: Timestamp,
        /// Whether the leader's claim was granted by the store, and the leader may still complete it.
        holds: bool,
    },
}
