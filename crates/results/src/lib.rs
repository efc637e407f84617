//! Compresses the results that an idempotency store keeps, or leaves them out. [`Results`] is a store around
//! another, so it works with every store.
//!
//! `run`, whole events and HTTP keep the result of the work as JSON text in the idempotency record, and so do
//! records with `keep_result`. That makes records large, and each duplicate is billed by the size of the record
//! that it finds.
//!
//! ```
//! use lambda_idempotency_core::{
//!     clock::Timestamp, key::Key, memory::MemoryStore, record::{IdempotencyRecord, Status},
//!     store::{Guard, Store, StoreError, Write},
//! };
//! use lambda_idempotency_results::Results;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! let store = Results::new(MemoryStore::new()).compress_above(1024);
//!
//! let (key, soon) = (Key::from_text("report#1"), Timestamp::from_secs(5));
//! let mut done = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(60));
//! done.result = Some(format!("[{}0]", "0,".repeat(10_000)).into());
//! store.write(&[Write::new(key.clone(), Guard::Absent, Some(done.clone()))], soon).await;
//!
//! let stored = store.store().read(&[key.clone()], soon).await.remove(0)?.expect("a record");
//! assert!(stored.result.expect("a result").len() < 200);
//! assert_eq!(store.read(&[key], soon).await.remove(0)?, Some(done));
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! 1. Records without a result pass through unchanged.
//! 2. A stored form is a JSON string, so every store can keep it. It begins with `lambda-idempotency:` and a
//!    version. A result of yours that looks like it is stored in such a form too, so that the two are never confused.
//! 3. A record whose result cannot be read is an error of the kind
//!    [`Corrupt`](lambda_idempotency_core::store::StoreErrorKind::Corrupt), and never a record that is not there: work
//!    that was done is not done again.
//! 4. A program that does not know these forms takes them for results. Put `Results::new` around the store of all
//!    functions that share a table before one of them uses a setting. Do not use this crate in a table that you
//!    share with Powertools.

mod codec;
mod compression;
mod encryption;
mod envelope;
mod key_provider;
mod result_name;
mod result_store;
mod results;
mod store;
mod unreadable;

pub use self::{
    encryption::{EncryptionKey, InvalidEncryptionKey},
    key_provider::{BoxError, KeyProvider, LocalKeys},
    result_name::ResultName,
    result_store::{MemoryResults, ResultStore},
    results::Results,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
