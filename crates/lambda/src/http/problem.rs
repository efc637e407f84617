//! The responses that clients get instead of the handler's response: `application/problem+json`.
//!
//! <https://www.rfc-editor.org/rfc/rfc9457>

use std::{any::Any, borrow::Cow, convert::Infallible, error::Error, fmt};

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

/// The parts that all problems of a kind share.
pub(super) struct ProblemKind {
    status: StatusCode,
    /// The anchor in the page that explains it.
    anchor: &'static str,
    title: &'static str,
    detail: &'static str,
    /// Seconds after which the same request may succeed; 0 if it will not.
    retry_after: u64,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $status:ident $anchor:literal retry $after:literal $title:literal $detail:literal)*) => {
        $($(#[$doc])* pub(super) static $name: ProblemKind = ProblemKind {
            status: StatusCode::$status, anchor: $anchor, title: $title, detail: $detail, retry_after: $after,
        };)*
    };
}

kinds! {
    KEY = BAD_REQUEST "key" retry 0 "The request has no usable idempotency key"
        "The service takes it from the body, which does not have it in the expected form."
    NOT_COMPARED = BAD_REQUEST "key" retry 0 "The request cannot be compared with others of its key"
        "The service compares a part of the body, which is missing or not in the expected form."
    /// The body ended with an error.
    BODY = BAD_REQUEST "body" retry 0 "The body of the request could not be read"
        "Send the request again."
    CALLER = FORBIDDEN "caller" retry 0 "The request does not identify its caller"
        "Send it with your credentials."
    NO_CALLER = INTERNAL_SERVER_ERROR "caller" retry 0 "The request was not processed"
        "The service cannot determine who sent it. Its log contains the reason."
    BUSY = CONFLICT "in-progress" retry 1 "A request with this key is being processed"
        "Send the same request again later to get its response."
    INTERRUPTED = CONFLICT "in-progress" retry 1 "This request was interrupted; another one may have taken over"
        "Send the same request again later to get its response."
    MISMATCH = UNPROCESSABLE_ENTITY "mismatch" retry 0 "The key was used with another request"
        "Use a new key for a new request, or send the first request unchanged."
    /// The other application's name is for the operator only, who finds it in the log.
    FOREIGN = INTERNAL_SERVER_ERROR "foreign" retry 0 "The request was not processed"
        "The server's configuration does not allow it to determine whether it was processed before."
    /// Another key would have the work done twice, so the client must not believe that it was not done.
    RESULT_UNAVAILABLE = SERVICE_UNAVAILABLE "response-unavailable" retry 1 "The request was processed before, but its response cannot be read at present"
        "It is not processed again. Send the same request again later, with the same key, to get its response."
    UNAVAILABLE = SERVICE_UNAVAILABLE "unavailable" retry 1 "The request was not processed"
        "The server cannot determine at present whether it was processed before. Send it again later."
    /// It may be sent again.
    NO_TIME = SERVICE_UNAVAILABLE "unavailable" retry 1 "The request was not processed"
        "There was too little time left. Send it again."
    /// The client must not get the handler's response: what it says may not have been done.
    UNCOMMITTED = SERVICE_UNAVAILABLE "unavailable" retry 2 "It is not known whether the request was processed"
        "All of it was done, or nothing. Send the same request again with the same key."
    /// The client would not send the request again, and nothing else sends the messages.
    UNSENT = SERVICE_UNAVAILABLE "unsent" retry 1 "The request was processed, but messages that belong to it could not be sent"
        "Send the same request again with the same key: it sends them, and gets the response."
    TIMED_OUT = GATEWAY_TIMEOUT "timed-out" retry 2 "The request was not finished in time"
        "Some of it may have been done. Send the same request again with the same key."
    /// With this key it is not tried again.
    TIMED_OUT_FOR_EVER = GATEWAY_TIMEOUT "timed-out" retry 0 "The request was not finished in time"
        "Some of it may have been done. It is not tried again. Use a new key for a new attempt."
    FAILED_FOR_EVER = INTERNAL_SERVER_ERROR "permanently-failed" retry 0 "A request with this key failed permanently"
        "It is not tried again. Use a new key for a new attempt."
    /// The handler panicked, or one of its effects was refused.
    FAILED = INTERNAL_SERVER_ERROR "failed" retry 0 "The request failed"
        "Some of it may have been done. Send the same request again with the same key."
    /// An earlier request did the work, but its response was not kept.
    LOST = CONFLICT "response-lost" retry 0 "The request was processed before, but its response is not available"
        "It is not processed again. Look up its effects instead."
    /// The handler's response could not be read.
    UNREAD = CONFLICT "response-lost" retry 0 "The request was processed, but its response is not available"
        "It is not processed again with the same key. Look up its effects instead."
}

/// A response that a client gets instead of the handler's.
pub(super) struct Problem {
    kind: &'static ProblemKind,
    title: &'static str,
    detail: Cow<'static, str>,
    /// The cause, for the developer; it is not sent to the client.
    why: Option<String>,
    retry_after: u64,
}

impl Problem {
    pub(super) const fn new(kind: &'static ProblemKind) -> Self {
        let (title, detail) = (kind.title, Cow::Borrowed(kind.detail));
        Self { kind, title, detail, why: None, retry_after: kind.retry_after }
    }

    /// The key is missing or invalid.
    pub(super) fn key(title: &'static str, detail: String) -> Self {
        Self { title, detail: detail.into(), ..Self::new(&KEY) }
    }

    /// The caller is not known. It is a server error only if the cause is the function or its API:
    /// a client that omits its credentials must not cause alarms.
    pub(super) fn caller(unknown: &UnknownCaller) -> Self {
        let kind = if unknown.is_server_error() { &NO_CALLER } else { &CALLER };
        Self { why: Some(unknown.to_string()), ..Self::new(kind) }
    }

    /// The problem for an outcome; `None` if the client gets the handler's response.
    pub(super) fn of(outcome: &Outcome, now: Timestamp) -> Option<Self> {
        let kind = match outcome {
            Outcome::Busy { until } => {
                let retry_after = until.since(now).as_secs().clamp(1, LONGEST_WAIT);
                return Some(Self { retry_after, ..Self::new(&BUSY) });
            }
            // The reason is for the developer, who finds it in the log.
            Outcome::Rejected(rejection) => {
                let is_fingerprint =
                    matches!(rejection.reason(), Some(Rejection::Fingerprint { .. }));
                let kind = if is_fingerprint { &NOT_COMPARED } else { &KEY };
                return Some(Self { why: Some(rejection.to_string()), ..Self::new(kind) });
            }
            Outcome::Fenced => &INTERRUPTED,
            Outcome::Mismatch => &MISMATCH,
            Outcome::Foreign(_) => &FOREIGN,
            Outcome::Unavailable(error) if error.kind() == StoreErrorKind::ResultUnavailable => {
                &RESULT_UNAVAILABLE
            }
            Outcome::Unavailable(_) => &UNAVAILABLE,
            Outcome::Returned(_) => &NO_TIME,
            Outcome::Uncommitted { .. } => &UNCOMMITTED,
            Outcome::Unsent { .. } => &UNSENT,
            Outcome::TimedOut { permanent: true } => &TIMED_OUT_FOR_EVER,
            Outcome::TimedOut { permanent: false } => &TIMED_OUT,
            Outcome::PermanentlyFailed { .. } => &FAILED_FOR_EVER,
            _ => return None,
        };
        Some(Self::new(kind))
    }

    /// The problem in one line, for a developer.
    pub(super) fn describe(&self) -> String {
        let detail = self.why.as_deref().unwrap_or(&self.detail);
        format!("{} {}: {detail}", self.kind.status.as_u16(), self.title)
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let ProblemKind { status, anchor, .. } = *self.kind;
        let body = json!({
            "type": format!("{TYPES}#{anchor}"),
            "title": self.title,
            "status": status.as_u16(),
            "detail": self.detail,
        });
        let mut response = Response::new(Body::Text(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.retry_after > 0 {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
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

    /// The failure, for the engine.
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
