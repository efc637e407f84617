//! Why a call of a store failed, and whether it may have been applied all the same.

use std::{error::Error, fmt, sync::Arc};

use super::write::Write;
use crate::effects::{RefusalReason, RefusedEffect};

/// Why a call of a store failed.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    in_doubt: bool,
    context: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The classes of [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No response, or a server error: the store is unreachable or broken, perhaps briefly.
    Unavailable,
    /// The store throttled every request until the deadline.
    Throttled,
    /// Others were in the way: other workers kept changing the record between the requests, or other calls of this process
    /// had all connections while the server answered. It is no outage, and may succeed later.
    Contended,
    /// The caller lacks credentials or permissions.
    Denied,
    /// The table, or other place of the records, does not exist or has the wrong schema.
    Misconfigured,
    /// The record is larger than the store can hold.
    TooLarge,
    /// The stored item cannot be read as a record.
    Corrupt,
    /// The record can be stored or read, but not its result: what keeps results apart from their records, or
    /// has the keys that they are encrypted with, does not answer, perhaps briefly. A key that is completed
    /// stays completed.
    ResultUnavailable,
    /// The store refused the request for another reason.
    Refused,
}

impl StoreError {
    /// An error of this kind. `context` says what failed and what to do; it must not hold a payload
    /// or a raw key.
    #[must_use]
    pub fn new(kind: StoreErrorKind, context: impl Into<Arc<str>>) -> Self {
        let in_doubt = matches!(kind, StoreErrorKind::Unavailable);
        Self { kind, in_doubt, context: context.into(), source: None }
    }

    /// Sets whether the write [may have been applied](Self::may_have_applied) despite the error. A
    /// store sets it whenever it knows: a request that was never sent was not applied, and a
    /// request without a response may have been applied, whatever a later request returned.
    /// Default: `true` for [`Unavailable`](StoreErrorKind::Unavailable), `false` for other kinds.
    #[must_use]
    pub const fn with_doubt(mut self, in_doubt: bool) -> Self {
        self.in_doubt = in_doubt;
        self
    }

    /// The error of a store that cannot commit the effects of a write: it has no transactions, the
    /// effects are of another type than the store's, or they are beside a deletion.
    #[must_use]
    pub fn without_effects(write: &Write) -> Self {
        let kind = write.effects.as_ref().map_or("?", |effects| effects.kind().name());
        let context = format!(
            "a write with effects of type `{kind}`, which this store cannot commit; nothing was \
             applied. Use a store that states them in its capabilities"
        );
        Self::new(StoreErrorKind::Refused, context)
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The class of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later without any change.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unavailable
                | StoreErrorKind::Throttled
                | StoreErrorKind::Contended
                | StoreErrorKind::ResultUnavailable
        )
    }

    /// Whether the write may have been applied, or may still be applied, because its response was
    /// lost. A worker whose claim failed in this way has to undo the claim.
    #[must_use]
    pub const fn may_have_applied(&self) -> bool {
        self.in_doubt
    }
}

/// The error where a refused effect is not the failure of a handler.
impl From<RefusedEffect> for StoreError {
    fn from(refused: RefusedEffect) -> Self {
        let kind = match refused.reason() {
            RefusalReason::TooSlow => StoreErrorKind::Unavailable,
            _ => StoreErrorKind::Refused,
        };
        Self::new(kind, refused.to_string()).with_doubt(false)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StoreErrorKind::Unavailable => "store unavailable",
            StoreErrorKind::Throttled => "store throttled",
            StoreErrorKind::Contended => "contended",
            StoreErrorKind::Denied => "access to the store denied",
            StoreErrorKind::Misconfigured => "store misconfigured",
            StoreErrorKind::TooLarge => "record too large",
            StoreErrorKind::Corrupt => "stored record unreadable",
            StoreErrorKind::ResultUnavailable => "result unavailable",
            StoreErrorKind::Refused => "refused by the store",
        };
        write!(f, "{kind}: {}", self.context)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|e| &**e as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_source() {
        let error = StoreError::new(StoreErrorKind::Unavailable, "claiming 3 keys")
            .with_source(std::io::Error::other("reset"));
        assert!(error.is_transient() && error.may_have_applied());
        assert_eq!(error.to_string(), "store unavailable: claiming 3 keys");
        assert_eq!(error.source().unwrap().to_string(), "reset");
    }

    #[test]
    fn in_doubt_overrides_the_default_of_the_kind() {
        for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Throttled] {
            let error = StoreError::new(kind, "claiming");
            assert_eq!(error.may_have_applied(), kind == StoreErrorKind::Unavailable);
            assert!(error.clone().with_doubt(true).may_have_applied());
            assert!(!error.with_doubt(false).may_have_applied());
        }
    }
}
