//! The conformance suite: what every store has to do, as plain async functions.
//!
//! [`store_conformance!`](crate::store_conformance) makes a test of each; or call them yourself:
//!
//! ```
//! use lambda_idempotency_core::memory::MemoryStore;
//! use lambda_idempotency_testkit::conformance::claiming;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = MemoryStore::new();
//! claiming::absent_key_is_written_and_read_back(&store).await;
//! # }
//! ```
//!
//! Each scenario panics with what it expected, what it got and why it matters. Each uses keys of
//! its own that nothing else has, so all of them can run at once against one table, many times
//! over; they leave their records behind, which expire within an hour or two.
//!
//! # What a store may rely on
//!
//! * Deadlines are two minutes ahead of the real time; nothing asserts how long a call takes.
//! * Records expire in the future, except where a scenario is about an expired one: that one
//!   expired ten seconds ago. A store whose server removes records by itself must set that removal
//!   later than `expires_at` by a margin (a minute is plenty): the server's clock is not ours, and
//!   within the clock skew a record still counts.

mod kit;
mod protocol;
mod scenarios;

pub mod ambiguity;
pub mod batches;
pub mod boundaries;
pub mod claiming;
pub mod contention;
pub mod fencing;
pub mod fields;

pub use scenarios::{SCENARIOS, Scenario};
