//! The conformance suite: scenarios that every store has to pass, as plain async functions.
//!
//! [`store_conformance!`](crate::store_conformance) makes a test of each. You can also call them:
//!
//! ```
//! use lambda_idempotency_core::memory::MemoryStore;
//! use lambda_idempotency_testkit::conformance::claiming;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = MemoryStore::new();
//! claiming::absent_finds_any_record(&store).await;
//! # }
//! ```
//!
//! A scenario of a store that does not conform panics with the expected value, the actual value and the
//! reason. Each scenario makes fresh keys, so all of them can run concurrently and repeatedly
//! with one table. Their records remain in the table, and expire within two hours.
//!
//! # Conditions for the store
//!
//! * Call deadlines are two minutes ahead of the real time. No scenario tests how long a call takes.
//! * Records expire in the future, except in scenarios with an expired record, which expired ten
//!   seconds ago. If the store's server removes expired records, it must remove them later than
//!   `expires_at` by a margin (a minute is enough), because the server's clock differs and a record
//!   still counts within the clock skew.

mod kit;
mod protocol;
mod scenarios;

pub mod ambiguity;
pub mod batches;
pub mod boundaries;
pub mod browsing;
pub mod capabilities;
pub mod claiming;
pub mod contention;
pub mod effects;
pub mod fencing;
pub mod fields;

pub use scenarios::{SCENARIOS, Scenario};
