//! The result of work on its way to its caller.

use std::sync::{Arc, Mutex, PoisonError};

use lambda_idempotency_core::{outcome::Outcome, record::Json};
use serde::de::DeserializeOwned;

use crate::{
    decode::{Format, decode},
    error::{ResultLost, RunError},
};

/// Carries what a function returned past the engine, which gets its JSON alone, to the caller of this attempt.
pub(crate) struct Bypass<T>(Arc<Mutex<Option<T>>>);

impl<T> Bypass<T> {
    pub(crate) fn put(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// The value, if the function was called and ended.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Default for Bypass<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Bypass<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The result of work that is done, as JSON text, if there is one.
pub(crate) enum ResultFrom {
    /// The handler returned it in this call.
    Now(Option<Json>),
    /// It was kept.
    Earlier(Option<Json>),
}

/// The result for the caller of this outcome, or why there is none.
pub(crate) fn result_of(outcome: Option<Outcome>) -> Result<ResultFrom, RunError> {
    Err(match outcome {
        Some(
            Outcome::Executed { result, .. }
            | Outcome::Unprotected { result, .. }
            | Outcome::CompletionLost { result, .. },
        ) => return Ok(ResultFrom::Now(result)),
        Some(
            Outcome::Replayed { result, .. }
            | Outcome::Superseded { result, .. }
            | Outcome::Coalesced { result, .. },
        ) => return Ok(ResultFrom::Earlier(result)),
        Some(Outcome::Failed { failure, .. }) => RunError::Failed(failure),
        Some(Outcome::PermanentlyFailed { error_type, .. }) => {
            RunError::PermanentlyFailed { error_type }
        }
        Some(Outcome::Busy { until }) => RunError::Busy { until },
        Some(Outcome::Mismatch) => RunError::Mismatch,
        Some(Outcome::Foreign(foreign)) => RunError::Foreign(foreign),
        Some(Outcome::Rejected(rejected)) => RunError::Rejected(rejected.into()),
        Some(Outcome::Unavailable(error) | Outcome::Uncommitted { error }) => {
            RunError::Store(error)
        }
        Some(Outcome::Unsent { error, .. }) => RunError::Unsent(error),
        Some(Outcome::Fenced) => RunError::Fenced,
        Some(Outcome::TimedOut { .. } | Outcome::Returned(_)) | None => RunError::OutOfTime,
        Some(_) => RunError::ResultLost(ResultLost::Unknown),
    })
}

/// Decodes a result that an earlier call kept.
pub(crate) fn decoded<R: DeserializeOwned>(result: Option<Json>) -> Result<R, RunError> {
    let json = result.ok_or(RunError::ResultLost(ResultLost::NotKept))?;
    decode(&json, Format::Json).map_err(|_| RunError::ResultLost(ResultLost::OtherType))
}
