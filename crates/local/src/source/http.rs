//! HTTP: a client that waits for the answer, and retries as the `Idempotency-Key` header allows.
//!
//! API Gateway does not retry; clients do. This client follows the draft of the `Idempotency-Key` header: after a
//! conflict, a server error or no answer, it sends the same request again.

use std::time::Duration;

use serde_json::Value;

use crate::InvocationResult;

/// Settings of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// How long to wait before each further attempt. There are as many as delays.
    pub retry_delays: Vec<Duration>,
}

impl Default for HttpConfig {
    /// Four further attempts, after 200 ms, 400 ms, 800 ms and 1.6 s.
    fn default() -> Self {
        Self { retry_delays: [200, 400, 800, 1600].map(Duration::from_millis).into() }
    }
}

/// Whether the client accepts the answer as final.
pub(crate) fn is_final(result: &InvocationResult) -> bool {
    let InvocationResult::Response(response) = result else { return false };
    match response.get("statusCode").and_then(Value::as_u64) {
        Some(status) => status < 500 && !matches!(status, 409 | 425 | 429),
        // API Gateway takes an answer without a status as the body of a 200.
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conflicts_and_server_errors_are_sent_again() {
        let ends =
            |status: u16| is_final(&InvocationResult::Response(json!({ "statusCode": status })));
        for status in [200, 201, 303, 400, 404, 422] {
            assert!(ends(status), "{status}");
        }
        for status in [409, 429, 500, 502, 503, 504] {
            assert!(!ends(status), "{status}");
        }
        assert!(!is_final(&InvocationResult::TimedOut));
        assert!(is_final(&InvocationResult::Response(json!("text"))));
    }
}
