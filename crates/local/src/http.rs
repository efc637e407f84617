//! A minimal HTTP server on a loopback port that the system chooses.
//!
//! It uses `hyper` and not a framework for two reasons: a handler must be able to close the connection without an
//! answer (a lost response is the most important fault), and every connection must end when the [`Server`] is
//! dropped, which frameworks that spawn a task for each connection cannot guarantee.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::error::Error;

/// An answer whose body is complete.
pub(crate) type Reply = Response<Full<Bytes>>;

/// A handler returns this to close the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was dropped on purpose")]
pub(crate) struct HangUp;

/// A running server. Dropping it closes the port and every connection.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    accepted: Arc<AtomicU64>,
    _task: Task,
}

impl Server {
    /// Serves `handler` on a free loopback port. A call of it is dropped when its client disconnects.
    pub(crate) async fn start<H, F>(handler: H) -> Result<Self, Error>
    where
        H: Fn(Request<Bytes>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, HangUp>> + Send + 'static,
    {
        let listener = listen().await?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let accepted = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&accepted);
        let task = Task(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                        count.fetch_add(1, Ordering::Relaxed);
                        connections.spawn(converse(stream, handler.clone()));
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        }));
        Ok(Self { address, accepted, _task: task })
    }

    /// How many connections were opened to it.
    pub(crate) fn connections(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
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
    // An error here means that a client disconnected or a handler hung up. Both are expected.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    reply
}

/// A background task that is aborted when its owner is dropped.
#[derive(Debug)]
pub(crate) struct Task(pub(crate) JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
