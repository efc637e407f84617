//! Requests that are repeated, for crates that implement a [`Store`](crate::store::Store).
//!
//! A call of a store has a deadline, and may send several requests until then. [`Budget`] limits each of them, and
//! [`Backoff`] pauses between them. Both read the time from the [`Clock`](crate::clock::Clock), so that tests control it.
//! A request that fails becomes a [`RequestFailure`], which says whether another may succeed, and [`Rounds`] keeps the writes
//! of a call until each has its verdict.
//!
//! ```
//! use std::{future::ready, time::Duration};
//!
//! use lambda_idempotency_core::{
//!     clock::{Clock as _, SystemClock},
//!     retry::{Backoff, Budget},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let call_deadline = SystemClock.now().plus(Duration::from_secs(5));
//! let budget = Budget::new(&SystemClock, Duration::from_secs(1), call_deadline);
//! let (first, most) = (Duration::from_millis(25), Duration::from_millis(400));
//! let mut backoff = Backoff::new((first, most), Duration::from_millis(20));
//! let answer = loop {
//!     match budget.attempt(budget.limit(), ready(42)).await {
//!         Ok(answer) => break Some(answer),
//!         Err(_) if backoff.pause(&budget).await => {}
//!         Err(_) => break None,
//!     }
//! };
//! assert_eq!(answer, Some(42));
//! # }
//! ```

mod backoff;
mod budget;
mod failure;
mod rounds;
#[cfg(test)]
mod tests;

pub use self::{
    backoff::Backoff,
    budget::{Budget, TimedOut},
    failure::{RequestFailure, chain, unquoted},
    rounds::{PendingWrite, Rounds},
};
