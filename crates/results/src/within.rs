//! Calls of what users gave: a key provider, a result store.

use std::future::Future;

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    contained::{Ended, run},
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
    match run(|| Box::pin(call), late).await {
        Ended::Through(answer) => Some(answer),
        Ended::Panicked => {
            Some(Err("it panicked; the message of the panic is in the function's log".into()))
        }
        Ended::Late => None,
    }
}
