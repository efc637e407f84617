//! Polls a future of the user whose panic must not end the invocation.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use lambda_idempotency_core::{
    clock::BoxFuture,
    contained::{Contained, discard},
    failure::Failure,
};

/// What the future gives that `call` makes, or how either panicked.
pub(crate) async fn guarded<T>(call: impl FnOnce() -> BoxFuture<'static, T>) -> Result<T, Failure> {
    let begun = catch_unwind(AssertUnwindSafe(call));
    let ended = match begun {
        Ok(running) => AssertUnwindSafe(Running(Contained::new(running))).catch_unwind().await,
        Err(thrown) => Err(thrown),
    };
    ended.map_err(|thrown| {
        let failure = Failure::panicked(&*thrown);
        discard(thrown);
        failure
    })
}

/// A future whose destructor may panic, too.
struct Running<T>(Contained<BoxFuture<'static, T>>);

impl<T> Future for Running<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.0.get_mut().map_or(Poll::Pending, |running| running.poll_unpin(context))
    }
}
