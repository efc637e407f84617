//! Simulates a crash at every await.
//!
//! A worker can die at any await. [`crash_points`] tests each of them: it drops the future after
//! its first poll, after its second, and so on, until the future completes.
//!
//! Put a [`FaultyStore::yielding`](crate::faults::FaultyStore::yielding) underneath: a store in
//! memory answers at once, and a future can be dropped only where it waits. Or use a
//! [`DelayedStore`], whose writes may be applied after their caller is gone.
//!
//! In simulated time, call `drive` around `drop_after`, not inside it:
//! `clock.drive(drop_after(polls, victim))`.
//!
//! ```
//! use lambda_idempotency_testkit::crashing::{crash_points, drop_after};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let points = crash_points(async |polls| {
//!     let mut step = 0;
//!     let ended = drop_after(polls, async {
//!         step = 1;
//!         tokio::task::yield_now().await;
//!         step = 2;
//!     })
//!     .await;
//!     // Assert what must hold after a crash at any await:
//!     assert!(step <= 2);
//!     ended.is_some()
//! })
//! .await;
//! assert_eq!(points, 2, "before it began, and at the one await");
//! # }
//! ```

mod delayed_store;

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

pub use delayed_store::{DelayedStore, DelayedWrites};

/// More awaits than any one test has.
const TOO_MANY: usize = 10_000;

/// Polls `future` at most `polls` times, then drops it. `None` if it had not ended by then.
///
/// With 0 it is dropped before it starts.
pub async fn drop_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // That was the last poll, so no wake-up is needed.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Calls `story` with 0, 1, 2, ... polls until it returns `true`. Returns the number of points at
/// which the worker was dropped.
///
/// `story` prepares the store, runs the worker with [`drop_after`], asserts what must hold after
/// the crash, and returns whether the worker completed.
///
/// # Panics
/// If the worker has not completed after 10,000 polls.
pub async fn crash_points(mut story: impl AsyncFnMut(usize) -> bool) -> usize {
    for polls in 0..TOO_MANY {
        if story(polls).await {
            return polls;
        }
    }
    panic!("after {TOO_MANY} polls the victim still has not ended")
}
