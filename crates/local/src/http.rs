//! The smallest HTTP server that will do, on a loopback port of the system's choosing.
//!
//! Written on `hyper` rather than on a framework for two reasons: a handler must be able to hang up without answering
//! (a lost response is the most interesting fault), and every connection must end when the [`Server`] is dropped, which
//! frameworks that spawn a task per connection cannot promise.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::Error;

/// An answer whose body is already there.
pub(crate) type Reply = Response<Full<Bytes>>;

/// The handler's way of closing the connection without a word.
#[derive(Debug, thiserror::Error)]
#[error("the connection was dropped on purpose")]
pub(crate) struct HangUp;

/// A running server. Dropping it closes the port and every connection.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    _task: Task,
}

impl Server {
    /// Serves `handler` on a free loopback port. It is dropped when its client goes away.
    pub(crate) async fn start<H, F>(handler: H) -> Result<Self, Error>
    where
        H: Fn(Request<Bytes>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, HangUp>> + Send + 'static,
    {
        let listener = listen().await?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let task = Task(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        connections.spawn(converse(stream, handler.clone()));
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        }));
        Ok(Self { address, _task: task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Opens a free loopback port.
pub(crate) async fn listen() -> Result<TcpListener, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::Listen)
}

async fn converse<H, F>(stream: TcpStream, handler: H)
where
    H: Fn(Request<Bytes>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, HangUp>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let handler = handler.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|_| HangUp)?.to_bytes();
            handler(Request::from_parts(head, body)).await
        }
    });
    // An error here is a client that left or a handler that hung up: both are everyday life.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    reply
}

/// A background task that ends with its owner.
#[derive(Debug)]
pub(crate) struct Task(pub(crate) JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
