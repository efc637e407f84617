//! A crash at every await.
//!
//! A worker can die wherever it waits. [`crash_points`] tries each of those places: it drops the
//! future after its first poll, after its second, and so on, until it lives to its end.
//!
//! Put a [`FaultyStore::yielding`](crate::faults::FaultyStore::yielding) underneath: a store in
//! memory answers at once, and only what waits can be dropped. Or an [`DelayedStore`], whose writes may
//! land when their sender is long gone.
//!
//! In simulated time, drive what is dropped, not the other way round:
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
//!     // Whatever must hold after a crash anywhere:
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
/// With 0 it is dropped before it has begun.
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
            // The last poll has been: nobody need wake us for another.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Calls `story` with 0, 1, 2, ... polls until it says that its victim lived to its end. Returns at
/// how many points it was dropped.
///
/// `story` prepares the scene, runs the victim by [`drop_after`], checks what must hold after it,
/// and says whether it ended.
///
/// # Panics
/// If the victim has not ended after 10,000 polls.
pub async fn crash_points(mut story: impl AsyncFnMut(usize) -> bool) -> usize {
    for polls in 0..TOO_MANY {
        if story(polls).await {
            return polls;
        }
    }
    panic!("after {TOO_MANY} polls the victim still has not ended")
}
