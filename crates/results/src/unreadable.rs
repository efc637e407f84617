//! Why a stored result cannot be read.

use lambda_idempotency_core::store::{StoreError, StoreErrorKind};

/// Why a stored result cannot be read. Says what to do, and nothing of the content.
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
}

/// The idempotency record is there, and stays as it is: its key must not be claimed.
impl From<Unreadable> for StoreError {
    fn from(unreadable: Unreadable) -> Self {
        let context = format!(
            "the result of a settled record cannot be read, and the work is not done again: {unreadable}"
        );
        Self::new(StoreErrorKind::Corrupt, context)
    }
}
