//! Calls of the store. One that panics fails its own members only: the store's author has made a mistake,
//! but the other records of the batch are not to blame.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    contained::{Contained, caught},
    record::IdempotencyRecord,
    store::{Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// What was found under a key.
pub(crate) type Found = Result<Option<IdempotencyRecord>, StoreError>;

/// Writes. A record whose payload leaves no room for the rest is written without it, and later writes carry none on: it is
/// then not recoverable, which is what it would be without the setting.
pub(crate) async fn write(
    store: &dyn Store,
    writes: &mut [Write],
    deadline: Timestamp,
) -> Vec<Verdict> {
    let mut verdicts = write_once(store, writes, deadline).await;
    let too_large = writes.iter_mut().zip(&mut verdicts).filter_map(|(write, verdict)| {
        *write = without_payload(write, verdict)?;
        Some((verdict, write.clone()))
    });
    let (refused, smaller): (Vec<_>, Vec<_>) = too_large.unzip();
    if !smaller.is_empty() {
        let answers = write_once(store, &smaller, deadline).await;
        refused.into_iter().zip(answers).for_each(|(refused, answer)| *refused = answer);
    }
    verdicts
}

/// The same write without the payload, if it was too large with it.
fn without_payload(write: &Write, verdict: &Verdict) -> Option<Write> {
    let Verdict::Unknown(error) = verdict else { return None };
    if error.kind() != StoreErrorKind::TooLarge {
        return None;
    }
    let mut smaller = write.clone();
    smaller.record.as_mut()?.payload.take()?;
    tracing::warn!(
        key = %write.key,
        %error,
        "a record is processed, but the store has no room to keep it with its claim: if its worker dies and nothing \
         delivers it again, it cannot be recovered; lower the limit of `.recoverable(..)`"
    );
    Some(smaller)
}

/// After a panic, nothing is known of any of the writes.
async fn write_once(store: &dyn Store, writes: &[Write], deadline: Timestamp) -> Vec<Verdict> {
    match contained(|| store.write(writes, deadline)).await {
        Some(verdicts) => verdicts,
        None => writes.iter().map(|_| Verdict::Unknown(panicked())).collect(),
    }
}

/// Reads; after a panic, each key has an error.
pub(crate) async fn read(store: &dyn Store, keys: &[Key], deadline: Timestamp) -> Vec<Found> {
    match contained(|| store.read(keys, deadline)).await {
        Some(found) => found,
        None => keys.iter().map(|_| Err(panicked())).collect(),
    }
}

/// Makes a call. `None` if it panicked.
async fn contained<'a, T>(call: impl FnOnce() -> BoxFuture<'a, T> + Send) -> Option<T> {
    let mut running = Contained::new(caught(call)?);
    poll_fn(move |context: &mut Context<'_>| {
        let Some(call) = running.get_mut() else { return Poll::Ready(None) };
        match caught(|| call.as_mut().poll(context)) {
            Some(polled) => polled.map(Some),
            None => Poll::Ready(None),
        }
    })
    .await
}

fn panicked() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the store panicked; the message of the panic is in the function's log",
    )
}
