//! Why an invocation fails as a whole.

use lambda_idempotency_core::failure::Failure;
use lambda_runtime::Diagnostic;

use super::RunError;

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
        /// What the function handles.
        expected: String,
        /// What the event is, as a clause.
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

/// What cannot be represented as JSON.
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
