//! Why an invocation fails as a whole.

use lambda_idempotency_core::failure::Failure;
use lambda_runtime::Diagnostic;

use super::RunError;

/// Why an invocation as a whole fails, so that Lambda or the source tries it again.
///
/// Converts to a [`Diagnostic`]. Its `errorMessage` is the text of the error, and its `errorType` one of
/// these, which alarms can rely on:
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
    /// The event is of no source that this function handles.
    #[error(
        "the event is from no source that this function handles ({expected}): {found}; \
         add the source, or a handler for other events with `.otherwise(..)`"
    )]
    UnknownEvent {
        /// What the function handles.
        expected: String,
        /// What the event looks like.
        found: String,
    },
    /// An answer cannot be written, or an event not be read, as JSON.
    #[error("{what} cannot be represented as JSON")]
    Json {
        /// Which.
        what: &'static str,
    },
    /// Records have to come again, and this is how their source is told.
    #[error("{failed} of {total} {source_name} record(s) must be delivered again: {problems}")]
    Records {
        /// The source.
        source_name: &'static str,
        /// How many.
        failed: usize,
        /// Of how many.
        total: usize,
        /// The first few, with what is wrong with each.
        problems: String,
    },
    /// The wrapped event could not be processed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The handler for other events failed. What its error says is not part of the chain of sources,
    /// because it may quote the event: [`Failure::error`] has it.
    #[error("the handler for other events failed: {0}")]
    Otherwise(Failure),
}

impl From<InvocationError> for Diagnostic {
    fn from(error: InvocationError) -> Self {
        let kind = match &error {
            InvocationError::UnknownEvent { .. } => "UnknownEvent",
            InvocationError::Json { .. } => "Json",
            InvocationError::Records { .. } => "RecordsReturned",
            InvocationError::Run(run) => run.kind(),
            InvocationError::Otherwise(_) => "HandlerFailed",
        };
        Self { error_type: format!("Idempotency.{kind}"), error_message: error.to_string() }
    }
}
