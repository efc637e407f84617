//! Answers to HTTP requests: their status, and why the library answered in place of the handler.

use lambda_idempotency_local::{
    DeliveryReport, Disposition, InvocationReport, InvocationResult, Source,
};
use serde_json::Value;

/// What the `type` of a problem begins with that the library made.
const LIBRARY: &str = "https://docs.rs/lambda-idempotency/";

/// `200`, or `422 The key was used with another request`; `None` if this is not an answer to a request.
pub(super) fn answer(report: &InvocationReport) -> Option<String> {
    let response = response(report)?;
    let status = response.get("statusCode").and_then(Value::as_u64).unwrap_or(200);
    match problem(response) {
        Some(problem) => {
            let title = problem.get("title").and_then(Value::as_str).unwrap_or_default();
            Some(format!("{status} {title}"))
        }
        None => Some(status.to_string()),
    }
}

/// Whether the refusal is final: the client does not send the request again.
pub(super) fn has_refused(report: &DeliveryReport) -> bool {
    report.invocations.iter().any(|report| {
        let is_done = report.records.iter().any(|one| one.disposition == Disposition::Done);
        is_done && response(report).is_some_and(|response| problem(response).is_some())
    })
}

fn response(report: &InvocationReport) -> Option<&Value> {
    match &report.invocation.result {
        InvocationResult::Response(response) if report.source == Source::Http => Some(response),
        _ => None,
    }
}

/// The problem in the body, if the library made it.
fn problem(response: &Value) -> Option<Value> {
    let body: Value = serde_json::from_str(response.get("body")?.as_str()?).ok()?;
    let kind = body.get("type")?.as_str()?;
    kind.starts_with(LIBRARY).then_some(body)
}
