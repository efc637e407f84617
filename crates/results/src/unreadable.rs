//! Why a part of a record cannot be stored or read now, or at all.

use lambda_idempotency_core::store::{StoreError, StoreErrorKind};

use crate::{box_error::BoxError, part::Part};

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
        StoreError::new(StoreErrorKind::Corrupt, format!("{}: {self}", part.unreadable()))
    }
}

/// What did not answer, or failed. It may succeed later.
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
        self.error(part.unstored(), why)
    }

    /// This part cannot be read now.
    pub(crate) fn not_read(self, part: Part, why: Option<BoxError>) -> StoreError {
        self.error(part.unread(), why)
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
