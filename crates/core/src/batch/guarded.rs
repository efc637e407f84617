//! A handler's call, fenced in: its panics are failures of its record, and harm no other.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use super::Returned;
use crate::{clock::BoxFuture, failure::Failure};

/// Catches what a handler's future throws, also while it is dropped.
pub(super) struct Guarded<'a>(Option<BoxFuture<'a, Result<Returned, Failure>>>);

impl<'a> Guarded<'a> {
    pub(super) fn new(call: BoxFuture<'a, Result<Returned, Failure>>) -> Self {
        Self(Some(call))
    }
}

impl Future for Guarded<'_> {
    type Output = Result<Returned, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.0 else { return Poll::Pending };
        catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)))
            .unwrap_or_else(|_| Poll::Ready(Err(Failure::panicked())))
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        let call = self.0.take();
        // A destructor in a handler may panic; the other records have no part in that.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(call)));
    }
}
