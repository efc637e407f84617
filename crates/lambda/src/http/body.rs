//! The body of a response, which is complete before it is sent.

use std::{
    fmt,
    ops::Deref,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use lambda_http::Body;

/// The body of a response of [`HttpService`](super::HttpService): all of its bytes, because a
/// response is kept before it is sent.
///
/// [`lambda_http::run`] takes it, and so do layers around this one. `run_with_streaming_response` does not:
///
/// ```compile_fail,E0277
/// # use lambda_http::{Error, Request, service_fn, tower::ServiceBuilder};
/// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
/// # async fn charge(_: Request) -> Result<String, std::io::Error> { Ok(String::new()) }
/// # async fn run() -> Result<(), Error> {
/// let charges = Idempotency::new(MemoryStore::new()).http(Operation::new("charges"))?;
/// let service = ServiceBuilder::new().layer(charges).service(service_fn(charge));
/// // the trait bound `StreamingIsNotSupported: std::error::Error` is not satisfied
/// lambda_http::run_with_streaming_response(service).await
/// # }
/// ```
///
/// ```no_run
/// # use lambda_http::{Error, Request, service_fn, tower::ServiceBuilder};
/// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
/// # async fn charge(_: Request) -> Result<String, std::io::Error> { Ok(String::new()) }
/// # async fn run() -> Result<(), Error> {
/// let charges = Idempotency::new(MemoryStore::new()).http(Operation::new("charges"))?;
/// let service = ServiceBuilder::new().layer(charges).service(service_fn(charge));
/// lambda_http::run(service).await
/// # }
/// ```
///
/// It dereferences to bytes; its `Debug` shows their number.
#[derive(Default)]
pub struct WholeBody(Body);

/// The name in the compiler's message if you try to stream a response. The type has no values.
///
/// It is the error type of [`WholeBody`]. It deliberately does not implement [`std::error::Error`],
/// which `lambda_http::run_with_streaming_response` requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamingIsNotSupported {}

impl From<Body> for WholeBody {
    fn from(body: Body) -> Self {
        Self(body)
    }
}

impl From<WholeBody> for Body {
    fn from(body: WholeBody) -> Self {
        body.0
    }
}

impl Deref for WholeBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WholeBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WholeBody({} bytes)", self.len())
    }
}

impl http_body::Body for WholeBody {
    type Data = Bytes;
    type Error = StreamingIsNotSupported;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamingIsNotSupported>>> {
        let bytes = match std::mem::take(&mut self.0) {
            Body::Text(text) => Bytes::from(text),
            Body::Binary(bytes) => Bytes::from(bytes),
            _ => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Body::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}
