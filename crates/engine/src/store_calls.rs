//! Calls of the store. One that panics fails its own members only: the store's author has made a mistake,
//! but the other records of the batch are not to blame.

use std::future::pending;

use lambda_idempotency_core::{
    clock::Timestamp,
    contained::{Ended, run},
    record::IdempotencyRecord,
    store::{Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// The answer to a read of a key.
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
    match run(|| store.write(writes, deadline), pending()).await {
        Ended::Through(verdicts) => verdicts,
        _ => writes.iter().map(|_| Verdict::Unknown(panicked())).collect(),
    }
}

/// Reads; after a panic, each key has an error.
pub(crate) async fn read(store: &dyn Store, keys: &[Key], deadline: Timestamp) -> Vec<Found> {
    match run(|| store.read(keys, deadline), pending()).await {
        Ended::Through(found) => found,
        _ => keys.iter().map(|_| Err(panicked())).collect(),
    }
}

fn panicked() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the store panicked; the message of the panic is in the function's log",
    )
}
