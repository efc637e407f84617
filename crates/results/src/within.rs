//! Calls of what users gave: a key provider, a result store.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    contained::{Contained, caught},
};

use crate::box_error::BoxError;

/// What a call returns, if it does so before its deadline. A panic is an error of this result alone: the other records
/// of the call are not to blame.
pub(crate) async fn within<T>(
    clock: &dyn Clock,
    deadline: Timestamp,
    call: impl Future<Output = Result<T, BoxError>> + Send,
) -> Option<Result<T, BoxError>> {
    let late = clock.sleep(deadline.since(clock.now()));
    let mut running = Contained::new(Box::pin(call));
    let answer = poll_fn(move |context| {
        let polled = running.get_mut().and_then(|call| caught(|| call.as_mut().poll(context)));
        polled.unwrap_or_else(|| {
            let why = "it panicked; the message of the panic is in the function's log";
            Poll::Ready(Err(why.into()))
        })
    });
    match select(pin!(answer), late).await {
        Either::Left((answer, _)) => Some(answer),
        Either::Right(_) => None,
    }
}
