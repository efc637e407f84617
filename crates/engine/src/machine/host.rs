//! Questions of the machine that its surroundings answer at once.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance},
    store::StoreError,
};
use lambda_idempotency_keys::Key;

/// The surroundings of a machine: they make tokens, remember completed keys, and call user code. A model checker has its own host, whose answers are part of the state.
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

    /// What was seen in the store under this key.
    fn learn(&mut self, key: &Key, record: IdempotencyRecord, now: Timestamp);

    /// The completed record of a key, if this process remembers it.
    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>>;

    /// The lease of record `at` was renewed: its handler may begin up to and including `lease_until`.
    fn renewed(&mut self, at: usize, lease_until: Timestamp);

    /// The store has these steps of record `at`: what waits for them goes on.
    fn steps_stored(&mut self, at: usize, steps: &Json);

    /// The store refuses to keep the steps of record `at`, and it is of no use to wait: steps that wait end
    /// with this error.
    fn steps_refused(&mut self, at: usize, error: &StoreError);

    /// Drops the handler of record `at`. Returns when it was called, if it was.
    fn stop(&mut self, at: usize) -> Option<Timestamp>;
}
