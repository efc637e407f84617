//! The error of a handler.

use std::{any::Any, convert::Infallible, error::Error, fmt};

use lambda_idempotency_core::{
    contained::caught,
    failure::{BoxError, Failure},
};
use lambda_runtime::Diagnostic;

/// The error of a service, as an [`HttpService`](super::HttpService) around it returns it.
///
/// The key is free again, or has failed permanently if the error is a
/// [`Failure::permanent`](crate::Failure::permanent). `lambda_http::run` reports the error, and the
/// invocation fails. Services of axum have no errors, and neither does this layer around one.
///
/// `Display` and `Debug` show the type of the error, not its message, which may quote the request.
pub struct HandlerError<E> {
    error: E,
    failure: Failure,
}

impl<E: fmt::Display + 'static> HandlerError<E> {
    pub(super) fn new(error: E) -> Self {
        let failure = failure_of(&error);
        Self { error, failure }
    }
}

impl<E> HandlerError<E> {
    /// The error that the service returned.
    pub fn into_inner(self) -> E {
        self.error
    }

    /// What the engine gets.
    pub(super) fn failure(&self) -> Failure {
        self.failure.clone()
    }
}

/// The failure for an error. The error itself is for the caller of the service.
fn failure_of<E: fmt::Display + 'static>(error: &E) -> Failure {
    let any: &dyn Any = error;
    if let Some(failure) = any.downcast_ref::<Failure>() {
        return failure.clone();
    }
    let text = match any.downcast_ref::<BoxError>() {
        Some(boxed) => caught(|| chain(&**boxed)),
        None => caught(|| error.to_string()),
    };
    let text =
        text.unwrap_or_else(|| "its message is not known, because `Display` panicked".into());
    Failure::from(text).of_type::<E>()
}

/// The message of an error and those of its sources.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

impl<E> fmt::Display for HandlerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl<E> fmt::Debug for HandlerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl<E> Error for HandlerError<E> {}

/// For `lambda_http::run`.
impl<E> From<HandlerError<E>> for Diagnostic {
    fn from(error: HandlerError<E>) -> Self {
        let error_message = error.to_string();
        Self { error_type: "Idempotency.HandlerFailed".to_owned(), error_message }
    }
}

/// For axum, whose services have no errors.
impl From<HandlerError<Infallible>> for Infallible {
    fn from(error: HandlerError<Self>) -> Self {
        error.error
    }
}
