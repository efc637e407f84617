//! The responses that clients get instead of the handler's response: `application/problem+json`.
//!
//! <https://www.rfc-editor.org/rfc/rfc9457>

use std::{any::Any, convert::Infallible, error::Error, fmt};

use lambda_http::{
    Body,
    http::{
        HeaderValue, Response, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
};
use lambda_idempotency_core::{
    clock::Timestamp,
    contained::caught,
    failure::{BoxError, Failure},
    outcome::Outcome,
    store::StoreErrorKind,
};
use lambda_runtime::Diagnostic;
use serde_json::json;

use super::caller::UnknownCaller;
use crate::rejection::Rejection;

/// The page that explains the problems.
const TYPES: &str =
    "https://docs.rs/lambda-idempotency/latest/lambda_idempotency/guide/sources/http/index.html";

/// The longest `Retry-After`, in seconds, for a request that is being processed. Most requests
/// finish long before their lease ends.
const LONGEST_WAIT: u64 = 2;

/// One kind of problem.
pub(super) struct Problem {
    status: StatusCode,
    /// The anchor in the page that explains it.
    name: &'static str,
    title: &'static str,
    detail: String,
    /// The cause, for the developer; it is not sent to the client.
    why: Option<String>,
    /// Seconds after which the same request may succeed.
    retry_after: Option<u64>,
}

impl Problem {
    /// The key is missing or invalid.
    pub(super) fn key(title: &'static str, detail: String) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            name: "key",
            title,
            detail,
            why: None,
            retry_after: None,
        }
    }

    fn new(status: StatusCode, name: &'static str, title: &'static str, detail: &str) -> Self {
        Self { status, name, title, detail: detail.to_owned(), why: None, retry_after: None }
    }

    const fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The caller is not known. It is a server error only if the cause is the function or its API:
    /// a client that omits its credentials must not cause alarms.
    pub(super) fn caller(unknown: &UnknownCaller) -> Self {
        let problem = if unknown.is_server_error() {
            Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "caller",
                "The request was not processed",
                "The service cannot determine who sent it. Its log contains the reason.",
            )
        } else {
            Self::new(
                StatusCode::FORBIDDEN,
                "caller",
                "The request does not identify its caller",
                "Send it with your credentials.",
            )
        };
        Self { why: Some(unknown.to_string()), ..problem }
    }

    /// The problem for an outcome; `None` if the client gets the handler's response.
    pub(super) fn of(outcome: &Outcome, now: Timestamp) -> Option<Self> {
        Some(match outcome {
            Outcome::Busy { until } => Self::new(
                StatusCode::CONFLICT,
                "in-progress",
                "A request with this key is being processed",
                "Send the same request again later to get its response.",
            )
            .after(until.since(now).as_secs().clamp(1, LONGEST_WAIT)),
            Outcome::Fenced => Self::new(
                StatusCode::CONFLICT,
                "in-progress",
                "This request was interrupted; another one may have taken over",
                "Send the same request again later to get its response.",
            )
            .after(1),
            Outcome::Mismatch => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "mismatch",
                "The key was used with another request",
                "Use a new key for a new request, or send the first request unchanged.",
            ),
            // The other application's name is for the operator only, who finds it in the log.
            Outcome::Foreign(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "foreign",
                "The request was not processed",
                "The server's configuration does not allow it to determine whether it was \
                 processed before.",
            ),
            // The reason is for the developer, who finds it in the log.
            Outcome::Rejected(rejection) => {
                let is_key =
                    !matches!(rejection.reason(), Some(Rejection::Fingerprint { .. }));
                let (title, detail) = if is_key {
                    (
                        "The request has no usable idempotency key",
                        "The service takes it from the body, which does not have it in the expected form.",
                    )
                } else {
                    (
                        "The request cannot be compared with others of its key",
                        "The service compares a part of the body, which is missing or not in the expected form.",
                    )
                };
                Self { why: Some(rejection.to_string()), ..Self::key(title, detail.to_owned()) }
            }
            // Another key would have the work done twice, so the client must not believe that it was not done.
            Outcome::Unavailable(error) if error.kind() == StoreErrorKind::ResultUnavailable => {
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "response-unavailable",
                    "The request was processed before, but its response cannot be read at present",
                    "It is not processed again. Send the same request again later, with the same key, \
                     to get its response.",
                )
                .after(1)
            }
            Outcome::Unavailable(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The request was not processed",
                "The server cannot determine at present whether it was processed before. Send it \
                 again later.",
            )
            .after(1),
            Outcome::Returned(_) => Self::no_time(),
            // The client must not get the handler's response: what it says may not have been done.
            Outcome::Uncommitted { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "It is not known whether the request was processed",
                "All of it was done, or nothing. Send the same request again with the same key.",
            )
            .after(2),
            // The client would not send the request again, and nothing else sends the messages.
            Outcome::Unsent { .. } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unsent",
                "The request was processed, but messages that belong to it could not be sent",
                "Send the same request again with the same key: it sends them, and gets the response.",
            )
            .after(1),
            // With this key it is not tried again.
            Outcome::TimedOut { permanent: true } => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                "timed-out",
                "The request was not finished in time",
                "Some of it may have been done. It is not tried again. Use a new key for a new attempt.",
            ),
            Outcome::TimedOut { permanent: false } => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                "timed-out",
                "The request was not finished in time",
                "Some of it may have been done. Send the same request again with the same key.",
            )
            .after(2),
            Outcome::PermanentlyFailed { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "permanently-failed",
                "A request with this key failed permanently",
                "It is not tried again. Use a new key for a new attempt.",
            ),
            _ => return None,
        })
    }

    /// The request was not processed, and may be sent again.
    pub(super) fn no_time() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "The request was not processed",
            "There was too little time left. Send it again.",
        )
        .after(1)
    }

    /// The handler panicked, or one of its effects was refused.
    pub(super) fn failed() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            "The request failed",
            "Some of it may have been done. Send the same request again with the same key.",
        )
    }

    /// The body ended with an error.
    pub(super) fn body() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "body",
            "The body of the request could not be read",
            "Send the request again.",
        )
    }

    /// An earlier request did the work, but its response was not kept.
    pub(super) fn lost() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "response-lost",
            "The request was processed before, but its response is not available",
            "It is not processed again. Look up its effects instead.",
        )
    }

    /// The handler's response could not be read.
    pub(super) fn unread() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "response-lost",
            "The request was processed, but its response is not available",
            "It is not processed again with the same key. Look up its effects instead.",
        )
    }

    /// The problem in one line, for a developer.
    pub(super) fn describe(&self) -> String {
        let detail = self.why.as_ref().unwrap_or(&self.detail);
        format!("{} {}: {detail}", self.status.as_u16(), self.title)
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let body = json!({
            "type": format!("{TYPES}#{}", self.name),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = Response::new(Body::Text(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

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
