//! HTTP: a client that waits for the answer, and sends the same request again where that may help.
//!
//! API Gateway does not retry; clients do. This one does as the draft of the `Idempotency-Key` header has it: after a
//! conflict, an error of the server or no answer at all it sends the very same request again.

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

/// Whether the client takes the answer for final.
pub(crate) fn is_final(result: &InvocationResult) -> bool {
    let InvocationResult::Response(response) = result else { return false };
    match response.get("statusCode").and_then(Value::as_u64) {
        Some(status) => status < 500 && !matches!(status, 409 | 425 | 429),
        // Whatever is no response with a status is the body of a 200.
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_help_to_be_sent_again_is() {
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
