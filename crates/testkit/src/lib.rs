//! Tools for tests of idempotency.
//!
//! | to test | use |
//! |---|---|
//! | a store of your own | [`store_conformance!`], one test for each scenario of [`conformance`] |
//! | timeouts, leases, expiry | [`clock::ManualClock`]: an hour in a millisecond |
//! | what happens when the store fails | [`faults::FaultyStore`] around any store |
//! | the deadlines of calls of the store | [`deadlines::Deadlines`] around any store |
//! | "once", "not twice", "not lost" | [`ledger::Ledger`] |
//! | a server that is slow, silent or cut off | [`tcp::TcpProxy`] before it |
//! | a worker that dies anywhere | [`crashing::crash_points`], over [`crashing::DelayedStore`] |
//!
//! # Test that a store conforms
//!
//! ```
//! mod my_store {
//!     use lambda_idempotency_core::memory::MemoryStore;
//!
//!     async fn make() -> MemoryStore {
//!         MemoryStore::new()
//!     }
//!
//!     lambda_idempotency_testkit::store_conformance!(make);
//! }
//! ```
//!
//! # Test that a handler runs once despite store faults
//!
//! ```
//! use std::time::Duration;
//! use lambda_idempotency_core::{
//!     admission::Claim,
//!     clock::{Clock, Timestamp},
//!     key::Key,
//!     memory::MemoryStore,
//!     record::Owner,
//!     store::{Store, Verdict, Write},
//! };
//! use lambda_idempotency_testkit::{
//!     clock::ManualClock,
//!     faults::{Fault, FaultyStore, GuardKind},
//!     ledger::Ledger,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let clock = ManualClock::new(Timestamp::from_secs(1_000));
//! let store = FaultyStore::new(MemoryStore::new());
//! let ledger = Ledger::new();
//! // The network delivers the claim, delays the response, and then delivers the claim again.
//! store.inject(Fault::delay_answer(clock.clone(), Duration::from_secs(3)));
//! store.inject(Fault::duplicate(1));
//!
//! clock
//!     .drive(async {
//!         for attempt in ["first", "second"] {
//!             let claim = Claim {
//!                 owner: Owner::random().unwrap(),
//!                 lease_until: clock.now().plus(Duration::from_secs(60)),
//!                 retention: Duration::from_secs(3600),
//!                 clock_skew: Duration::from_secs(1),
//!                 fingerprint: None,
//!                 application: None,
//!                 provenance: None,
//!                 payload: None,
//!             };
//!             let (guard, held) = claim.over(None, clock.now());
//!             let key = Key::from_text("order-1");
//!             let write = Write::new(key, guard, Some(held.record));
//!             let verdicts = store.write(&[write], claim.lease_until).await;
//!             if matches!(verdicts[..], [Verdict::Written]) {
//!                 ledger.record("order-1", attempt);
//!             }
//!         }
//!     })
//!     .await;
//!
//! ledger.assert_once("order-1");
//! assert_eq!(clock.now(), Timestamp::from_secs(1_003));
//! # }
//! ```

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test library: a panic is how it reports a failure"
)]

pub mod clock;
pub mod conformance;
pub mod crashing;
pub mod deadlines;
pub mod faults;
pub mod ledger;
pub mod tcp;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
