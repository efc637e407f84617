//! The types for writing your own store.
//!
//! A [`Store`] applies conditional writes. For each write it reports whether it was written, or
//! which record it found instead. It takes no decisions: the library decides what the answer means,
//! the same for all stores. Test your store with the conformance suite of
//! `lambda-idempotency-testkit`, against a real server: `store_conformance!(make)` makes a test of
//! each scenario.
//!
//! ```
//! use std::{collections::HashMap, sync::{Mutex, PoisonError}};
//! use lambda_idempotency::{Idempotency, clock::Timestamp, store::*};
//!
//! /// Records of one process, as `MemoryStore` keeps them.
//! #[derive(Default)]
//! struct Shelf(Mutex<HashMap<Key, IdempotencyRecord>>);
//!
//! impl Store for Shelf {
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::NONE // no transactions: it refuses effects
//!     }
//!
//!     fn write<'a>(&'a self, writes: &'a [Write], _: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
//!         Box::pin(async move {
//!             let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
//!             let mut apply = |write: &Write| {
//!                 if write.effects.is_some() {
//!                     return StoreError::without_effects(write).into();
//!                 }
//!                 let found = records.get(&write.key);
//!                 if !write.applies(found) {
//!                     return Verdict::Found(found.cloned());
//!                 }
//!                 match &write.record {
//!                     Some(record) => records.insert(write.key.clone(), record.clone()),
//!                     None => records.remove(&write.key),
//!                 };
//!                 Verdict::Written
//!             };
//!             writes.iter().map(&mut apply).collect()
//!         })
//!     }
//!
//!     fn read<'a>(&'a self, keys: &'a [Key], _: Timestamp)
//!         -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>>
//!     {
//!         Box::pin(async move {
//!             let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
//!             keys.iter().map(|key| Ok(records.get(key).cloned())).collect()
//!         })
//!     }
//! }
//!
//! let idempotency = Idempotency::new(Shelf::default());
//! ```

pub use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::BoxFuture,
    effects::{CollectError, Collector, Effects, EffectsKind, RefusalReason, RefusedEffect},
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Status},
    store::{Guard, RecordVersion, Store, StoreError, StoreErrorKind, Verdict, Write},
};
pub use lambda_idempotency_engine::process::Cache;
pub use lambda_idempotency_keys::Key;
