//! What a client is told that gets no response of the handler: `application/problem+json`.
//!
//! <https://www.rfc-editor.org/rfc/rfc9457>

use lambda_http::{
    Body,
    http::{
        HeaderValue, Response, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
};
use lambda_idempotency_core::{clock::Timestamp, outcome::Outcome};
use serde_json::json;

use super::caller::Unknown;

/// Where the problems are explained.
const TYPES: &str =
    "https://docs.rs/lambda-idempotency/latest/lambda_idempotency/guide/sources/http/index.html";

/// The most seconds that a client is asked to wait for a request that is being processed: most are done
/// long before their lease ends.
const LONGEST_WAIT: u64 = 2;

/// One kind of problem.
pub(super) struct Problem {
    status: StatusCode,
    /// The anchor in the page that explains it.
    name: &'static str,
    title: &'static str,
    detail: String,
    /// What the developer is told, and the client is not.
    why: Option<String>,
    /// Seconds after which the same request may succeed.
    retry_after: Option<u64>,
}

impl Problem {
    /// The key is missing, or not one.
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

    /// Nobody knows whose request it is. Only what the function or its front door lacks is an error of the
    /// server: a client that leaves its credentials out must not set off alarms.
    pub(super) fn caller(unknown: &Unknown) -> Self {
        let told = if unknown.is_the_functions() {
            Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "caller",
                "The request was not processed",
                "The service cannot tell who sent it. Its log says why.",
            )
        } else {
            Self::new(
                StatusCode::FORBIDDEN,
                "caller",
                "The request does not say who sends it",
                "Send it with your credentials.",
            )
        };
        Self { why: Some(unknown.to_string()), ..told }
    }

    /// What an outcome means to a client; `None` if the handler's response is what it gets.
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
                "Another request with this key has taken over",
                "Send the same request again later to get its response.",
            )
            .after(1),
            Outcome::Mismatch => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "mismatch",
                "The key was used with another request",
                "Use a new key for a new request, or send the first request unchanged.",
            ),
            // Whose key it is concerns the operator, who finds it in the log.
            Outcome::Foreign(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "foreign",
                "The request was not processed",
                "The server is set up in a way in which it cannot tell whether it was processed before.",
            ),
            Outcome::Rejected(rejection) => {
                Self::key("The request has no usable idempotency key", rejection.to_string())
            }
            Outcome::Unavailable(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The request was not processed",
                "Whether it was processed before cannot be found out now. Send it again later.",
            )
            .after(1),
            Outcome::Returned(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The request was not processed",
                "Too little time was left. Send it again.",
            )
            .after(1),
            Outcome::TimedOut { .. } => Self::new(
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
            Outcome::Skipped => Self::new(
                StatusCode::CONFLICT,
                "in-progress",
                "The request was not processed",
                "A request with this key is being processed, or the request has none.",
            ),
            _ => return None,
        })
    }

    /// The work was done by an earlier request, whose response was not kept.
    pub(super) fn lost() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "response-lost",
            "The request was processed before, and its response is not available",
            "It is not processed again. Look up what it did where it did it.",
        )
    }

    /// What it says, in a line, to a developer.
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
