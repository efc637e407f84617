//! Answers that the proxy makes itself, as DynamoDB would.

use bytes::Bytes;
use hyper::{Response, StatusCode, header};
use serde_json::{Value, json};

/// A transaction that is cancelled because of one member.
pub(super) fn cancelled(members: usize, member: usize, code: &str) -> Response<Bytes> {
    reply(400, &cancellation(members, member, code))
}

fn cancellation(members: usize, member: usize, code: &str) -> Value {
    let member = member.min(members.saturating_sub(1));
    let reason = |position| match position == member {
        true => json!({ "Code": code, "Message": "injected on purpose" }),
        false => json!({ "Code": "None" }),
    };
    let reasons: Vec<Value> = (0..members).map(reason).collect();
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "CancellationReasons": reasons,
        "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
    })
}

pub(super) fn error(status: u16, code: &str) -> Response<Bytes> {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    reply(status, &json!({ "__type": kind, "message": "injected on purpose" }))
}

pub(super) fn reply(status: u16, body: &Value) -> Response<Bytes> {
    let mut reply = Response::new(Bytes::from(body.to_string()));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/x-amz-json-1.0");
    reply.headers_mut().insert(header::CONTENT_TYPE, json);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_transaction_has_a_reason_for_each_member() {
        for (member, position) in [(0, 0), (1, 1), (7, 2)] {
            let answer = cancellation(3, member, "TransactionConflict");
            let codes: Vec<_> = answer["CancellationReasons"]
                .as_array()
                .unwrap()
                .iter()
                .map(|reason| reason["Code"].as_str().unwrap())
                .collect();
            let mut expected = ["None"; 3];
            expected[position] = "TransactionConflict";
            assert_eq!(codes, expected);
        }
    }
}
