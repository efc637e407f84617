//! The database behind a proxy, and the answers that a proxy gives in its place.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, Uri, header};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

use crate::http::HangUp;

/// The way to dynoxide's own server.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    client: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
}

impl Upstream {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        // Without idle connections, the pool holds no connection after its last request.
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .build(connector);
        Self { client, address }
    }

    /// Passes a request on, with another body, and waits for the whole answer.
    pub(super) async fn send(
        &self,
        mut head: hyper::http::request::Parts,
        body: Bytes,
    ) -> Result<Response<Bytes>, HangUp> {
        head.uri = Uri::builder()
            .scheme("http")
            .authority(self.address.to_string())
            .path_and_query(head.uri.path())
            .build()
            .map_err(|_| HangUp)?;
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.remove(header::TRANSFER_ENCODING);
        head.headers.remove(header::HOST);
        let answer = self
            .client
            .request(Request::from_parts(head, Full::new(body)))
            .await
            .map_err(|_| HangUp)?;
        let (head, body) = answer.into_parts();
        Ok(Response::from_parts(head, body.collect().await.map_err(|_| HangUp)?.to_bytes()))
    }
}

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
