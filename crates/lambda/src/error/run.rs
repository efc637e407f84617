//! Why a call of a function has no result.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::{
    clock::Timestamp, failure::Failure, outcome::Foreign, store::StoreError,
};
use lambda_runtime::Diagnostic;

use super::{ConfigError, InvocationError};
use crate::rejection::Rejection;

/// Why [`run`](crate::Idempotency::run) has no result.
///
/// Converts to a [`Diagnostic`] with an `errorType` that alarms can rely on. Let the handler return it, or an
/// [`InvocationError`]: of a boxed error the `errorType` would be the name of the box.
///
/// | error | `errorType` |
/// |---|---|
/// | [`Config`](Self::Config) | `Idempotency.Config` |
/// | [`Failed`](Self::Failed) | `Idempotency.HandlerFailed` |
/// | [`PermanentlyFailed`](Self::PermanentlyFailed) | `Idempotency.PermanentlyFailed` |
/// | [`Busy`](Self::Busy) | `Idempotency.InProgress` |
/// | [`Mismatch`](Self::Mismatch) | `Idempotency.Mismatch` |
/// | [`Foreign`](Self::Foreign) | `Idempotency.Foreign` |
/// | [`Nested`](Self::Nested) | `Idempotency.Nested` |
/// | [`Rejected`](Self::Rejected), [`Unserializable`](Self::Unserializable) | `Idempotency.Rejected` |
/// | [`Store`](Self::Store) | `Idempotency.Store` |
/// | [`OutOfTime`](Self::OutOfTime) | `Idempotency.OutOfTime` |
/// | [`Fenced`](Self::Fenced) | `Idempotency.Fenced` |
/// | [`Skipped`](Self::Skipped) | `Idempotency.Skipped` |
/// | [`ResultLost`](Self::ResultLost) | `Idempotency.ResultLost` |
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The operation has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The function failed. What its error says is not part of the chain of sources, because it may quote
    /// the payload: [`Failure::error`] has it.
    #[error("{0}")]
    Failed(Failure),
    /// An earlier call failed permanently.
    #[error("an earlier call with this key failed permanently, with {}", .error_type.as_deref().unwrap_or("an error"))]
    PermanentlyFailed {
        /// The type of the error.
        error_type: Option<Arc<str>>,
    },
    /// Another worker holds the key.
    #[error(
        "another worker is processing the same key, until {until} at the latest; try again then"
    )]
    Busy {
        /// Up to and including this instant.
        until: Timestamp,
    },
    /// The key was used with another payload.
    #[error("the key was used before with another payload; use a new key, or the same payload")]
    Mismatch,
    /// The key belongs to another application, with an operation of the same name in the same store.
    #[error(transparent)]
    Foreign(Foreign),
    /// The call was made by the function of the same operation for the same key, and would wait for
    /// itself.
    #[error(
        "operation `{operation}` is called inside itself for the same key, and would wait for itself; \
         give the inner work another operation name"
    )]
    Nested {
        /// The operation.
        operation: Arc<str>,
    },
    /// The payload has no key, or cannot be read.
    #[error(transparent)]
    Rejected(Rejection),
    /// The payload could not be turned into JSON to find its key in.
    #[error(
        "the payload cannot be serialized as JSON to find its key in; \
         correct its `Serialize`, or give maps keys that are texts"
    )]
    Unserializable,
    /// The store did not let the key be claimed; the function was not called.
    #[error("the key could not be claimed, and the function was not called: {0}")]
    Store(#[source] StoreError),
    /// There was too little time.
    #[error(
        "the invocation's deadline came before the function returned, or left no time to start it"
    )]
    OutOfTime,
    /// The function returned, but lost its lease to another worker meanwhile.
    #[error(
        "the lease was lost to another worker while the function ran; its result does not count"
    )]
    Fenced,
    /// Another worker holds the key, or there is none, and the policy says to skip the call then.
    #[error("the function was not called, as the operation's policy says")]
    Skipped,
    /// The work was done by an earlier call, whose result was not kept or has another type.
    #[error(
        "the work was done by an earlier call, and {0}; \
         it is not done again, and its result has to be found where the earlier call left it"
    )]
    ResultLost(ResultLost),
}

impl RunError {
    /// One word for the kind of error.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Config(_) => "Config",
            Self::Failed(_) => "HandlerFailed",
            Self::PermanentlyFailed { .. } => "PermanentlyFailed",
            Self::Busy { .. } => "InProgress",
            Self::Mismatch => "Mismatch",
            Self::Foreign(_) => "Foreign",
            Self::Nested { .. } => "Nested",
            Self::Rejected(_) | Self::Unserializable => "Rejected",
            Self::Store(_) => "Store",
            Self::OutOfTime => "OutOfTime",
            Self::Fenced => "Fenced",
            Self::Skipped => "Skipped",
            Self::ResultLost(_) => "ResultLost",
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::OutOfTime | Self::Fenced => true,
            Self::Failed(failure) => !failure.is_permanent(),
            Self::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// Why the result of work that is done cannot be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultLost {
    /// The store has none: it was too large or could not be serialized, or its handler keeps none.
    NotKept,
    /// It is not of the type that was asked for.
    OtherType,
    /// What became of the call is not known.
    Unknown,
}

impl fmt::Display for ResultLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotKept => "its result was not kept",
            Self::OtherType => "its result has another type",
            Self::Unknown => "its result is not known",
        })
    }
}

/// So that a handler which returns `Result<_, RunError>` has an `errorType` to alarm on, as
/// [`InvocationError`] has. In a `Box<dyn Error>` it would be the name of the box.
impl From<RunError> for Diagnostic {
    fn from(error: RunError) -> Self {
        InvocationError::Run(error).into()
    }
}

#[cfg(test)]
mod tests {
    /// Each `errorType` that the code makes is in the tables that users read.
    #[test]
    fn every_error_type_is_documented() {
        for source in [include_str!("run.rs"), include_str!("invocation.rs")] {
            let code = source.split("#[cfg(test)]").next().unwrap();
            let kinds: Vec<_> = code
                .lines()
                .filter(|line| line.contains("Self::") || line.contains("InvocationError::"))
                .filter_map(|line| line.split("=> \"").nth(1)?.split('"').next())
                .filter(|kind| !kind.contains(' '))
                .collect();
            assert!(kinds.len() >= 4, "{kinds:?}");
            for kind in kinds {
                assert!(code.contains(&format!("| `Idempotency.{kind}` |")), "{kind}");
            }
        }
    }
}
