//! Why a record was not processed, or not to its end.

use std::{error::Error, fmt, sync::Arc};

/// A key that belongs to another application, which has an operation of the same name in the same
/// store. `Display` says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreign {
    /// The operation.
    pub operation: Arc<str>,
    /// The application that owns the key.
    pub theirs: Arc<str>,
    /// The application that found the key; `None` if it has no name.
    pub ours: Option<Arc<str>>,
}

impl Foreign {
    /// The key of `operation` belongs to `theirs`, as an application named `ours` has found.
    #[must_use]
    pub fn new(
        operation: impl Into<Arc<str>>,
        theirs: impl Into<Arc<str>>,
        ours: Option<Arc<str>>,
    ) -> Self {
        Self { operation: operation.into(), theirs: theirs.into(), ours }
    }
}

impl std::error::Error for Foreign {}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, theirs, ours } = self;
        match ours {
            Some(ours) => write!(
                f,
                "the key belongs to application `{theirs}`, and this is application `{ours}`: both \
                 have an operation `{operation}` in one table. If that is different work, give one \
                 of them another operation name or table; if it is the same work (a function that \
                 was renamed or replaced, a second one beside it), let this one have the other's name: \
                 `.application(\"{theirs}\")` or IDEMPOTENCY_APPLICATION"
            ),
            None => write!(
                f,
                "the key belongs to application `{theirs}`, and this is an application without a \
                 name: both have an operation `{operation}` in one table. If that is different \
                 work, give one of them another operation name or table; if it is the same work, \
                 let this one have the other's name: `.application(\"{theirs}\")` or \
                 IDEMPOTENCY_APPLICATION"
            ),
        }
    }
}

/// Why a handler was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// Too little time was left in the invocation.
    #[error("too little time was left in the invocation")]
    Deadline,
    /// Its lease ended before the handler could start.
    #[error("its lease ended before its turn came")]
    Lease,
    /// Its last attempts were lost, so it may be what kills its process, and other records of the invocation are
    /// acknowledged.
    #[error(
        "its last attempts were lost with their workers, and it does not start in an invocation that acknowledges other records"
    )]
    Quarantine,
    /// An earlier record of its group failed.
    #[error("a record before it in its group returns to its source")]
    Order,
}

/// Why a record cannot be processed as it is. The reason is an opaque error to the protocol;
/// `lambda-idempotency` uses its `Rejection`.
///
/// ```
/// use lambda_idempotency_core::outcome::Rejected;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("the record has no body")]
/// struct NoBody;
///
/// let rejected = Rejected::new(NoBody);
/// assert_eq!(rejected.to_string(), "the record has no body");
/// assert!(rejected.reason::<NoBody>().is_some());
/// ```
#[derive(Clone)]
pub struct Rejected(Arc<dyn Error + Send + Sync>);

impl Rejected {
    /// A rejection with this reason. Its `Display` and `Debug` are logged, so neither may show a
    /// payload.
    #[must_use]
    pub fn new(reason: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(reason))
    }

    /// The reason, if it is of this type.
    #[must_use]
    pub fn reason<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

/// Two rejections are equal if their texts are equal.
impl PartialEq for Rejected {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Rejected {}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Rejected {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
