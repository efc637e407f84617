//! Calls of what users gave, and why a part of a record cannot be stored or read now, or at all.

use std::{error::Error, future::Future};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    contained::{Ended, run},
    store::{StoreError, StoreErrorKind},
};

use crate::part::Part;

/// Why a stored part cannot be read, also later. Says what to do, and nothing of the content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(
        "it is in a form that this version does not know; update lambda-idempotency-results in every \
         function that uses the table"
    )]
    UnknownForm,
    #[error("it is damaged: another program has changed it, or it was cut off")]
    Damaged,
    #[error(
        "it is larger than {max_bytes} bytes when it is decompressed; set a higher `max_bytes` if \
         results may be that large"
    )]
    TooLarge { max_bytes: usize },
    #[error(
        "it is encrypted, and this function has no keys; add `decrypt_with` or `encrypt_with` to its store"
    )]
    NoKeys,
    #[error(
        "it is encrypted with a key that the key provider does not have; add the key that was in use when \
         the result was stored"
    )]
    UnknownKey,
    #[error(
        "it cannot be decrypted: it was changed or moved from another record, or its key has the id of \
         another key"
    )]
    NotAuthentic,
    #[error(
        "it is kept elsewhere, and this function does not know where; add `offload_above` to its store"
    )]
    NoResultStore,
}

impl Unreadable {
    /// The idempotency record is there, and stays as it is: its key must not be claimed.
    pub(crate) fn error(self, part: Part) -> StoreError {
        StoreError::new(StoreErrorKind::Corrupt, format!("{}: {self}", part.unread("")))
    }
}

/// A helper that did not answer, or failed. It may succeed later.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Helper {
    Keys,
    Results,
    /// The random numbers of the operating system.
    Randomness,
}

impl Helper {
    /// This part cannot be stored now.
    pub(crate) fn not_stored(self, part: Part, why: Option<BoxError>) -> StoreError {
        self.error(&part.unstored(), why)
    }

    /// This part cannot be read now.
    pub(crate) fn not_read(self, part: Part, why: Option<BoxError>) -> StoreError {
        self.error(&part.unread(" now"), why)
    }

    /// Without `why`, it did not answer in time.
    fn error(self, what: &str, why: Option<BoxError>) -> StoreError {
        let helper = match self {
            Self::Keys => "the key provider",
            Self::Results => "the result store",
            Self::Randomness => "the operating system's source of random numbers",
        };
        let how = if why.is_some() { "failed" } else { "did not answer in time" };
        let error =
            StoreError::new(StoreErrorKind::ResultUnavailable, format!("{what}: {helper} {how}"));
        match why {
            Some(why) => error.with_source(why),
            None => error,
        }
    }
}

/// The result of a call that returns before its deadline. A panic is an error of this result alone: the other records
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

/// The error of a [`KeyProvider`](crate::KeyProvider) or of a [`ResultStore`](crate::ResultStore). Its message must hold
/// neither keys nor results: it is logged where `IDEMPOTENCY_LOG_ERROR_MESSAGES` is `1`.
pub type BoxError = Box<dyn Error + Send + Sync>;
