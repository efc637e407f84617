//! The stores that are there, with their settings, and the types for writing your own.
//!
//! A [`Store`] applies conditional writes. For each write it reports whether it was written, or
//! which record it found instead. It takes no decisions: the library decides what the answer means,
//! the same for all stores. Test your store with the conformance suite of
//! `lambda-idempotency-testkit`, against a real server: `store_conformance!(make)` makes a test of
//! each scenario. [The guide](crate::guide::own_store) has the rules.
//!
//! A store for a server whose values have revisions, without the connection and the text of a record:
//!
//! ```
//! use std::{collections::BTreeMap, sync::{Mutex, PoisonError}, time::Duration};
//! use lambda_idempotency::{clock::{Clock, SystemClock, Timestamp}, store::*};
//!
//! /// A value and its revision; 0 where there is none.
//! type Stored = (u64, Option<IdempotencyRecord>);
//!
//! /// In place of the server and its client.
//! #[derive(Default)]
//! struct Server(Mutex<BTreeMap<Key, Stored>>);
//!
//! impl Server {
//!     async fn get(&self, key: &Key) -> Stored {
//!         let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
//!         values.get(key).cloned().unwrap_or_default()
//!     }
//!
//!     /// Stores the value if the revision is still this one, in one step; says whether it did.
//!     async fn put_if(&self, key: &Key, revision: u64, value: Option<IdempotencyRecord>) -> bool {
//!         let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
//!         let stored = values.entry(key.clone()).or_default();
//!         if stored.0 != revision {
//!             return false;
//!         }
//!         *stored = (revision + 1, value);
//!         true
//!     }
//! }
//!
//! #[derive(Default)]
//! struct RevisionStore(Server);
//!
//! impl RevisionStore {
//!     async fn apply(&self, write: &Write, call_deadline: Timestamp) -> Verdict {
//!         if write.effects.is_some() {
//!             return StoreError::without_effects(write).into();
//!         }
//!         let clock = SystemClock;
//!         while clock.now() < call_deadline {
//!             let (revision, found) = self.0.get(&write.key).await;
//!             // Whether the guard holds, and a deletion of what is gone.
//!             if !write.applies(found.as_ref()) {
//!                 return Verdict::Found(found);
//!             }
//!             // Compares with what was read just now, so nothing can come in between.
//!             if self.0.put_if(&write.key, revision, write.record.clone()).await {
//!                 return Verdict::Written;
//!             }
//!             // Another worker was faster: look again. A real store waits longer each time.
//!             clock.sleep(Duration::from_millis(1)).await;
//!         }
//!         StoreError::new(StoreErrorKind::Contended, "a record that others kept changing").into()
//!     }
//! }
//!
//! impl Store for RevisionStore {
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::NONE
//!     }
//!
//!     fn write<'a>(&'a self, writes: &'a [Write], call_deadline: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
//!         Box::pin(async move {
//!             let mut verdicts = Vec::new();
//!             for write in writes {
//!                 // A real store sends them together: a batch of a hundred should not take a hundred round trips.
//!                 verdicts.push(self.apply(write, call_deadline).await);
//!             }
//!             verdicts
//!         })
//!     }
//!
//!     fn read<'a>(
//!         &'a self,
//!         keys: &'a [Key],
//!         _call_deadline: Timestamp,
//!     ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
//!         Box::pin(async move {
//!             let mut found = Vec::new();
//!             for key in keys {
//!                 found.push(Ok(self.0.get(key).await.1));
//!             }
//!             found
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use lambda_idempotency_testkit::conformance::SCENARIOS;
//!
//! let store = RevisionStore::default();
//! for scenario in SCENARIOS {
//!     (scenario.run)(&store).await; // panics, and says what was expected and why
//! }
//! # }
//! ```

pub use lambda_idempotency_core::{
    clock::BoxFuture,
    effects::{CollectError, Collector, Effects, EffectsKind, RefusalReason, RefusedEffect},
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Status},
    store::{
        Capabilities, Extent, Guard, RecordVersion, Store, StoreError, StoreErrorKind, Verdict,
        Write,
    },
};
#[cfg(feature = "dynamodb")]
pub use lambda_idempotency_dynamodb as dynamodb;
pub use lambda_idempotency_engine::completed::Cache;
pub use lambda_idempotency_keys::Key;
#[cfg(feature = "postgres")]
pub use lambda_idempotency_postgres as postgres;
#[cfg(feature = "redis")]
pub use lambda_idempotency_redis as redis;
