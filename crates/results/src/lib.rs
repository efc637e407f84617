//! Stores the results of idempotent work compressed, encrypted or elsewhere. [`Results`] is a store around another,
//! so it works with every store.
//!
//! `run`, direct invocations and HTTP keep the result of the work as JSON text in the idempotency record, and so do
//! records with `keep_result`. That makes records large, each duplicate is billed by the size of the record that it
//! finds, and everybody who can read the table can read the results.
//!
//! | setting | for |
//! |---|---|
//! | [`compress_above`](Results::compress_above) | results of more than a kilobyte or so |
//! | [`encrypt_with`](Results::encrypt_with) | results with personal data; keys from a [`KeyProvider`] |
//! | [`offload_above`](Results::offload_above) | results that no record can hold; kept in a [`ResultStore`] |
//! | [`status_only`](Results::status_only) | results that no later call needs |
//!
//! A result is compressed, then encrypted, and if it is still large, kept elsewhere. The rest of a record (results
//! of finished steps, messages that are not sent yet, a payload) is encrypted if results are, compressed before that, and
//! always kept in the record.
//!
//! ```
//! use lambda_idempotency_core::{
//!     clock::{Clock, SystemClock}, key::Key, memory::MemoryStore, record::{IdempotencyRecord, Status},
//!     store::{Guard, Store, Write},
//! };
//! use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};
//!
//! # fn secret() -> Vec<u8> { vec![7; 32] }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = LocalKeys::new(EncryptionKey::new("2026-11", &secret())?);
//! let store = Results::new(MemoryStore::new()).compress_above(1024).encrypt_with(keys);
//!
//! let (key, soon) = (Key::from_text("report#1"), SystemClock.now().plus(std::time::Duration::from_secs(5)));
//! let mut done = IdempotencyRecord::new(Status::Completed, soon);
//! done.result = Some(format!("[{}0]", "0,".repeat(10_000)).into());
//! store.write(&[Write::new(key.clone(), Guard::Absent, Some(done.clone()))], soon).await;
//!
//! let stored = store.store().read(&[key.clone()], soon).await.remove(0)?.expect("a record");
//! let stored = stored.result.expect("a result");
//! assert!(stored.starts_with("\"lambda-idempotency:1 zlib,aes-256-gcm=2026-11 ") && stored.len() < 200);
//! assert_eq!(store.read(&[key], soon).await.remove(0)?, Some(done));
//! # Ok(())
//! # }
//! ```
//!
//! # Large results
//!
//! are kept by a [`ResultStore`], a type of yours with the methods `put` and `get` ([for a bucket][bucket]):
//!
//! ```
//! use lambda_idempotency::{Failure, Idempotency, MemoryStore, Operation, RunContext};
//! use lambda_idempotency_results::{MemoryResults, Results};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let elsewhere = MemoryResults::default();
//! let store = Results::new(MemoryStore::new()).offload_above(100_000, elsewhere.clone());
//! let idempotency = Idempotency::new(store);
//! let render = async |_| Ok::<_, Failure>("page ".repeat(50_000));
//! let context = RunContext::without_deadline();
//! idempotency.run(&Operation::new("render"), "report-17", &context, render).await?;
//! assert_eq!(elsewhere.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! [bucket]: https://github.com/lambda-idempotency/lambda-idempotency/blob/main/docs/examples/s3-results/src/bucket.rs
//!
//! # Rules
//!
//! 1. Records without such texts pass through unchanged, and so does what the inner store can do.
//! 2. A stored form is a JSON string, so every store can keep it. It begins with `lambda-idempotency:` and a
//!    version. A result of yours that looks like it is stored in such a form too, so that the two are never confused.
//! 3. A result that cannot be stored, because a key provider or a result store does not answer, is left out. Half of the
//!    time of the call remains for the completion without it. It is never stored unencrypted instead. Nothing else is left
//!    out: a record whose steps, messages or payload cannot be encrypted is not written.
//! 4. A result that cannot be read is an error, never a record that is not there: work that was done is not done
//!    again, whatever [`OnOutage`](https://docs.rs/lambda-idempotency/latest/lambda_idempotency/enum.OnOutage.html) says.
//!    The error is [`ResultUnavailable`](lambda_idempotency_core::store::StoreErrorKind::ResultUnavailable) if it may be
//!    read later, and [`Corrupt`](lambda_idempotency_core::store::StoreErrorKind::Corrupt) if something has to be
//!    corrected. Only a result that is not in the result store any more counts as not kept. After its expiry, a record
//!    can be claimed again, whether its result can be read or not.
//! 5. An encrypted result belongs to the key and the claim of its record, and so do messages; steps and a payload belong to
//!    the key, because later claims carry them on. Nobody who can write to the table can move it to
//!    another record. That does not protect what is not encrypted: the status, and results in plain text, which are
//!    read too. Nor is it bound to its table, so that a table that was restored under another name can be read: use keys
//!    of its own for each table.
//! 6. No write waits for the key, the upload or the long compression of another. A key provider or a result store that panics has failed for
//!    that result only.
//! 7. A write that carries a text on (a renewal, a takeover, the mark that messages are sent) leaves it as it is stored,
//!    whatever the settings of this store are.
//!
//! Functions that share a table share its forms. A program that does not know them takes them for results: before one
//! function uses a setting, give all of them `Results::new`, with [`decrypt_with`](Results::decrypt_with) and
//! [`offload_above`](Results::offload_above) if they are to be used. Do not use this crate in a table that you share with
//! Powertools, which cannot read these forms.
//!
//! A page of [`Browse`](lambda_idempotency_core::browse::Browse) has no results. A [`Relay`](lambda_idempotency_core::outbox::Relay) needs this store if messages are encrypted; it
//! reads no results.
//!
//! The completed keys in a process's memory (`Idempotency::with_cache`) are decoded: it is in memory only.

mod codec;
mod compression;
mod encryption;
mod envelope;
mod forms;
mod key_provider;
mod part;
mod result_name;
mod result_store;
mod results;
mod store;
mod unreadable;

pub use lambda_idempotency_core::clock::{BoxFuture, Timestamp};

pub use self::{
    encryption::{EncryptionKey, InvalidEncryptionKey},
    key_provider::{KeyProvider, LocalKeys},
    result_name::ResultName,
    result_store::{MemoryResults, ResultStore},
    results::Results,
    unreadable::BoxError,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
