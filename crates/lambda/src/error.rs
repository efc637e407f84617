//! The errors of this crate, with the types of their details.

use std::{fmt, sync::Arc};

#[cfg(any(feature = "dynamodb", feature = "postgres"))]
use lambda_idempotency_core::effects::CollectError;
use lambda_idempotency_core::{
    clock::Timestamp, failure::Failure, outbox::SendError, outcome::Foreign, store::StoreError,
};
#[cfg(feature = "dynamodb")]
use lambda_idempotency_dynamodb::{DynamoDbConfigError, DynamoDbEffectError};
#[cfg(feature = "postgres")]
use lambda_idempotency_postgres::{PostgresConfigError, PostgresEffectError};
#[cfg(feature = "redis")]
use lambda_idempotency_redis::RedisConfigError;
use lambda_runtime::Diagnostic;

#[doc(no_inline)]
pub use crate::rejection::Rejection;
pub use lambda_idempotency_core::failure::BoxError;
pub use lambda_idempotency_engine::steps::StepError;
#[doc(no_inline)]
pub use lambda_idempotency_keys::{
    DocumentError, ExpressionError, SecretError, SelectionError,
    producer::{ExpressionUse, KeySpecError},
};

/// Why [`CallExt::transact`](crate::CallExt::transact) did not take an effect. Its text holds no data, and
/// says what to do.
#[cfg(feature = "dynamodb")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError {
    /// The call commits no effects of DynamoDB.
    #[error(transparent)]
    NotCollected(#[from] CollectError),
    /// The effect does not fit into the transaction.
    #[error(transparent)]
    Unfit(#[from] DynamoDbEffectError),
}

/// Why [`CallExt::execute`](crate::CallExt::execute) did not take a statement. Its text holds no data, and
/// says what to do.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The call commits no effects of PostgreSQL.
    #[error(transparent)]
    NotCollected(#[from] CollectError),
    /// The statement cannot be an effect.
    #[error(transparent)]
    Unfit(#[from] PostgresEffectError),
}

/// A mistake in how a function is configured, found when it starts. The text names the operation, says what is wrong, and
/// what to do.
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name of an operation or of an application is not valid, or a name is used for two different things, which would
    /// share keys.
    #[error("{0}")]
    Name(Box<str>),
    /// An expression of a key or a fingerprint has a mistake, or does not tell records apart; or settings of keys exclude
    /// each other.
    #[error("{0}")]
    Key(Box<str>),
    /// A source has a filter, an envelope or a setting with which it could not work, is never reached, or does not fit
    /// another source of the same operation; or the function has none.
    #[error("{0}")]
    Source(Box<str>),
    /// The mode of an operation does not fit its other settings, the store or the entry point.
    #[error("{0}")]
    Mode(Box<str>),
    /// A setting has a value that cannot work, or no effect beside another one.
    #[error("{0}")]
    Setting(Box<str>),
    /// An environment variable has a value that cannot be used.
    #[error("{0}")]
    Environment(Box<str>),
}

macro_rules! made_of_texts {
    ($($make:ident $Kind:ident)*) => {
        impl ConfigError {$(
            pub(crate) fn $make(problem: impl Into<Box<str>>) -> Self {
                Self::$Kind(problem.into())
            }
        )*}
    };
}

made_of_texts! { name Name key Key source Source mode Mode setting Setting environment Environment }

impl From<KeySpecError> for ConfigError {
    fn from(error: KeySpecError) -> Self {
        match error {
            KeySpecError::Name(problem) => Self::Name(problem),
            KeySpecError::Key(problem) => Self::Key(problem),
            other => Self::key(other.to_string()),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of [`Idempotency::from_env`](crate::Idempotency::from_env): no store is named, this function was built
/// without it, or it cannot be used. It never shows the value of `IDEMPOTENCY_STORE`, which may hold a password.
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreConfigError {
    /// The environment names no store.
    #[error(
        "no store is named: set the environment variable IDEMPOTENCY_STORE to dynamodb:TABLE, \
         postgres://USER@HOST/DATABASE or rediss://HOST, or IDEMPOTENCY_TABLE to the name of a DynamoDB table"
    )]
    NotNamed,
    /// An environment variable cannot be read.
    #[error(
        "the environment variable {0} is not valid UTF-8 text: write special characters of a URL percent-encoded"
    )]
    NotText(&'static str),
    /// The variable names no kind of store that this library knows.
    #[error(
        "the environment variable IDEMPOTENCY_STORE names no store: it has to begin with `dynamodb:`, `postgres://`, \
         `redis://` or, for Redis with TLS, `rediss://`"
    )]
    Unknown,
    /// The variables name two stores.
    #[error(
        "the environment variable IDEMPOTENCY_STORE names {store}, and IDEMPOTENCY_TABLE a DynamoDB table; remove the \
         one that is not meant"
    )]
    TwoStores {
        /// The store that `IDEMPOTENCY_STORE` names.
        store: &'static str,
    },
    /// The function was built without this store.
    #[error(
        "the environment variable IDEMPOTENCY_STORE names {store}, and this function was built without it: turn on the \
         feature `{feature}` of the crate `lambda-idempotency`"
    )]
    NotBuilt {
        /// The store.
        store: &'static str,
        /// The feature that has it.
        feature: &'static str,
    },
    /// The store in DynamoDB cannot be built.
    #[cfg(feature = "dynamodb")]
    #[error(transparent)]
    DynamoDb(#[from] DynamoDbConfigError),
    /// The store in PostgreSQL cannot be built, or its server not be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] PostgresConfigError),
    /// The store in Redis cannot be built, or its server not be used.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] RedisConfigError),
}

impl fmt::Debug for StoreConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Their `Debug` also says what the server answered.
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => error.fmt(f),
            #[cfg(feature = "redis")]
            Self::Redis(error) => error.fmt(f),
            other => fmt::Display::fmt(other, f),
        }
    }
}

/// Why [`run`](crate::Idempotency::run) has no result.
///
/// Converts to a [`Diagnostic`] with an `errorType` that alarms can rely on. Return it, or an
/// [`InvocationError`], from the handler: for a boxed error, Lambda reports the type name of the
/// box as `errorType`.
///
/// | error | `errorType` |
/// |---|---|
/// | [`Config`](Self::Config) | `Idempotency.Config` |
/// | [`Failed`](Self::Failed) | `Idempotency.HandlerFailed` |
/// | [`PermanentlyFailed`](Self::PermanentlyFailed) | `Idempotency.PermanentlyFailed` |
/// | [`Busy`](Self::Busy) | `Idempotency.Busy` |
/// | [`Mismatch`](Self::Mismatch) | `Idempotency.Mismatch` |
/// | [`Foreign`](Self::Foreign) | `Idempotency.Foreign` |
/// | [`Nested`](Self::Nested) | `Idempotency.Nested` |
/// | [`Rejected`](Self::Rejected), [`Unserializable`](Self::Unserializable) | `Idempotency.Rejected` |
/// | [`Store`](Self::Store) | `Idempotency.Store` |
/// | [`Unsent`](Self::Unsent) | `Idempotency.Unsent` |
/// | [`OutOfTime`](Self::OutOfTime) | `Idempotency.OutOfTime` |
/// | [`Fenced`](Self::Fenced) | `Idempotency.Fenced` |
/// | [`ResultLost`](Self::ResultLost) | `Idempotency.ResultLost` |
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The operation has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The function failed. Its error is not in the chain of `source()`, because its message may
    /// quote the payload; [`Failure::error`] returns it.
    #[error("{0}")]
    Failed(Failure),
    /// An earlier call failed permanently.
    #[error(
        "an earlier call with this key failed permanently, with {}, and the function is not called \
         again for this key; correct the cause, and use a new key or delete the idempotency record",
        .error_type.as_deref().unwrap_or("an error of unknown type")
    )]
    PermanentlyFailed {
        /// The type of the error.
        error_type: Option<Arc<str>>,
    },
    /// Another worker holds the key.
    #[error(
        "another worker is processing the same key and holds it until {until} at the latest; try \
         again then"
    )]
    Busy {
        /// The key is held up to and including this instant.
        until: Timestamp,
    },
    /// The key was used before with another payload.
    #[error("the key was used before with another payload; use a new key, or the same payload")]
    Mismatch,
    /// The key belongs to another application, with an operation of the same name in the same store.
    #[error(transparent)]
    Foreign(Foreign),
    /// The function called the same operation with the same key, and would wait for itself.
    #[error(
        "operation `{operation}` is called inside itself with the same key and would wait for \
         itself; give the inner work another operation name"
    )]
    Nested {
        /// The operation.
        operation: Arc<str>,
    },
    /// The payload has no key, or does not have the expected form.
    #[error(transparent)]
    Rejected(Rejection),
    /// The payload could not be serialized as JSON, so its key could not be computed.
    #[error(
        "the payload cannot be serialized as JSON, so it has no key; correct its `Serialize`, or \
         use strings as the keys of maps"
    )]
    Unserializable,
    /// The store failed: the key could not be claimed and the function was not called, or its effects were not committed, or
    /// the key could not be read or freed.
    #[error("the store failed: {0}")]
    Store(#[source] StoreError),
    /// The function returned, now or earlier, and a message that it published could not be sent. The same call sends
    /// it again, and gets the result that is stored.
    #[error(
        "the function returned, but its messages are not all sent; call again with the same key to send them: {0}"
    )]
    Unsent(#[source] SendError),
    /// The time did not suffice.
    #[error(
        "the function did not return before the invocation's deadline, or there was no time left \
         to start it"
    )]
    OutOfTime,
    /// The function lost its lease: another worker took the key over, or the lease could not be renewed in time.
    #[error(
        "the lease was lost while the function ran: another worker took it over, or it could not be renewed; \
         the function's result does not count: try again"
    )]
    Fenced,
    /// The work is done, now or by an earlier call, and its result cannot be given to this caller.
    #[error(
        "the work is done, and {0}; it is not done again: look for its result where the handler stored it"
    )]
    ResultLost(ResultLost),
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl RunError {
    /// The kind of error, in one word, for the `errorType`.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Config(_) => "Config",
            Self::Failed(_) => "HandlerFailed",
            Self::PermanentlyFailed { .. } => "PermanentlyFailed",
            Self::Busy { .. } => "Busy",
            Self::Mismatch => "Mismatch",
            Self::Foreign(_) => "Foreign",
            Self::Nested { .. } => "Nested",
            Self::Rejected(_) | Self::Unserializable => "Rejected",
            Self::Store(_) => "Store",
            Self::Unsent(_) => "Unsent",
            Self::OutOfTime => "OutOfTime",
            Self::Fenced => "Fenced",
            Self::ResultLost(_) => "ResultLost",
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::OutOfTime | Self::Fenced | Self::Unsent(_) => true,
            Self::Failed(failure) => !failure.is_permanent(),
            Self::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// Why the result of completed work is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultLost {
    /// The store has no result: it was too large, could not be serialized, or its handler does not
    /// keep results. Or the operation's [`result_retention`](crate::Operation::result_retention) is over.
    NotKept,
    /// The stored result does not have the requested type.
    OtherType,
    /// The result cannot be serialized as JSON.
    Unserializable,
    /// [`Invoke::answer`](crate::source::Invoke::answer) panicked.
    NoAnswer,
    /// The call's outcome is not known.
    Unknown,
}

impl fmt::Display for ResultLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotKept => {
                "its result was not kept: its handler does not keep it, or no longer, or it was too large for a record \
                 (then `Results::offload_above` of lambda-idempotency-results keeps it)"
            }
            Self::OtherType => "its result has another type",
            Self::Unserializable => "its result cannot be serialized as JSON",
            Self::NoAnswer => {
                "the function of `.answer(..)` panicked, so that its result makes no answer"
            }
            Self::Unknown => "its result is not known",
        })
    }
}

/// Why an invocation fails as a whole, so that Lambda or the source retries it.
///
/// Converts to a [`Diagnostic`] with the error's text as `errorMessage` and one of these as
/// `errorType`, which alarms can rely on:
///
/// | error | `errorType` |
/// |---|---|
/// | [`UnknownEvent`](Self::UnknownEvent) | `Idempotency.UnknownEvent` |
/// | [`Json`](Self::Json) | `Idempotency.Json` |
/// | [`Records`](Self::Records) | `Idempotency.RecordsReturned` |
/// | [`Run`](Self::Run) | that of the [`RunError`] |
/// | [`Otherwise`](Self::Otherwise) | `Idempotency.HandlerFailed` |
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvocationError {
    /// The event is not from a source that this function handles.
    #[error(
        "the event is not from a source that this function handles: {found}, and the function \
         handles {expected}; add the source, or a handler for other events with `.otherwise(..)`"
    )]
    UnknownEvent {
        /// The sources that the function handles.
        expected: String,
        /// The event's kind, as a clause.
        found: String,
    },
    /// An answer cannot be written as JSON, or an event cannot be read.
    #[error(transparent)]
    Json(NotJson),
    /// Records must be delivered again. For a source without partial batch responses, an error is
    /// the only way to request that.
    #[error("{failed} of {total} {source_name} record(s) must be delivered again: {problems}")]
    Records {
        /// The source.
        source_name: &'static str,
        /// How many records must be delivered again.
        failed: usize,
        /// How many records the event has.
        total: usize,
        /// The problems of the first few records.
        problems: String,
    },
    /// A direct invocation has no answer.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The handler for other events failed. Its error is not in the chain of `source()`, because
    /// its message may quote the event; [`Failure::error`] returns it.
    #[error("the handler for other events failed: {0}")]
    Otherwise(Failure),
}

/// A value that cannot be represented as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotJson {
    /// The response that tells the source which records to deliver again.
    #[error("the partial batch response cannot be represented as JSON")]
    Response,
    /// The event of [`testing::invoke`](crate::testing::invoke).
    #[error("the event of the test cannot be represented as JSON")]
    Event,
    /// The function's answer to [`testing::invoke`](crate::testing::invoke).
    #[error("the function's answer to the test cannot be represented as JSON")]
    Answer,
}

impl From<InvocationError> for Diagnostic {
    fn from(error: InvocationError) -> Self {
        let kind = match &error {
            InvocationError::UnknownEvent { .. } => "UnknownEvent",
            InvocationError::Json(_) => "Json",
            InvocationError::Records { .. } => "RecordsReturned",
            InvocationError::Run(run) => run.kind(),
            InvocationError::Otherwise(_) => "HandlerFailed",
        };
        Self { error_type: format!("Idempotency.{kind}"), error_message: error.to_string() }
    }
}

/// Gives a handler that returns `Result<_, RunError>` an `errorType` for alarms, as
/// [`InvocationError`] does. For a `Box<dyn Error>`, Lambda would report the type name of the box.
impl From<RunError> for Diagnostic {
    fn from(error: RunError) -> Self {
        InvocationError::Run(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `main` that returns it prints this.
    #[test]
    fn its_debug_is_its_message() {
        let failed = RunError::Failed(Failure::from("s3cr3t"));
        assert_eq!(format!("{failed:?}"), "the handler failed with a text");
    }

    /// Each `errorType` in the code is in the documented tables.
    #[test]
    fn every_error_type_is_documented() {
        let code = include_str!("error.rs").split("#[cfg(test)]").next().unwrap();
        let kinds: Vec<_> = code
            .lines()
            .filter(|line| line.contains("Self::") || line.contains("InvocationError::"))
            .filter_map(|line| line.split("=> \"").nth(1)?.split('"').next())
            .filter(|kind| !kind.contains(' '))
            .collect();
        assert!(kinds.len() >= 17, "{kinds:?}");
        for kind in kinds {
            assert!(code.contains(&format!("| `Idempotency.{kind}` |")), "{kind}");
        }
    }
}
