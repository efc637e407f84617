//! The client of the embedded database.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

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
