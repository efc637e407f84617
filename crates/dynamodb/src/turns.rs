//! Lets the connection of a request that has ended come back to the SDK's pool.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

/// Ends when its task has been polled this many times more. Each time is as soon as all others that are ready have been
/// polled; a future that polls many polls the first of them again at once, so two are needed to reach other tasks.
///
/// The executor's own way to yield wakes the task when the executor is idle, and never if its runtime ends before.
pub(crate) fn turns(mut turns: u8) -> impl Future<Output = ()> {
    poll_fn(move |context| {
        if turns == 0 {
            return Poll::Ready(());
        }
        turns = turns.saturating_sub(1);
        context.waker().wake_by_ref();
        Poll::Pending
    })
}
