//! A proxy of TCP between a store and its server: connections are cut, answers are lost or late, nothing passes.
//!
//! The proxy knows no protocol. What a client sends at once is a request to it, and what the server sends is an answer.
//! The stores for PostgreSQL and Redis send the writes of a call at once.

#![allow(clippy::disallowed_methods, reason = "its task ends with the proxy")]

mod fault;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use fault::{OnAnswer, OnRequest};
pub use fault::{TcpFault, TcpFaultId, TcpFaults};

/// The most bytes that are one request.
const CHUNK: usize = 64 * 1024;

/// A proxy before a server. Dropping it closes its port and all connections.
///
/// ```
/// # use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let proxy = TcpProxy::start(([127, 0, 0, 1], 5432).into()).await?;
/// let url = format!("postgres://tests@{}/postgres", proxy.address());
/// // The next request is carried out, and its answer is lost.
/// proxy.faults().add(TcpFault::lose_answer().times(1));
/// # let _ = url;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    state: Arc<State>,
    cut: watch::Sender<()>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    faults: TcpFaults,
    connections: AtomicU64,
    requests: AtomicU64,
}

impl TcpProxy {
    /// Opens a loopback port, behind which is this server. The server need not run yet.
    ///
    /// # Errors
    /// No loopback port can be opened.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::<State>::default();
        let (cut, end) = watch::channel(());
        let shared = Arc::clone(&state);
        // Its connections end with it.
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let (state, mut end) = (Arc::clone(&shared), end.clone());
                end.mark_unchanged();
                connections.spawn(async move {
                    tokio::select! {
                        () = converse(client, server, &state) => {}
                        _ = end.changed() => {}
                    }
                });
            }
        });
        Ok(Self { address, state, cut, task })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The faults that it injects.
    pub fn faults(&self) -> &TcpFaults {
        &self.state.faults
    }

    /// Closes all connections, to both sides.
    pub fn cut(&self) {
        self.cut.send_replace(());
    }

    /// How many connections clients have opened since the start.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// How many requests have come since the start: how often a client sent something after the server had answered. A large
    /// request counts twice if the server answers its first part.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what both sides send, until one of them or a fault ends the connection.
async fn converse(client: TcpStream, server: SocketAddr, state: &State) {
    if state.faults.refuses() {
        return;
    }
    // Who cannot reach the server loses the connection.
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    let (is_lost, is_answered) = (AtomicBool::new(false), AtomicBool::new(true));
    let requests = async {
        if requests(from_client, to_server, state, (&is_lost, &is_answered)).await {
            // The server carries out what it has got, and nobody waits for the answers.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = requests => {}
        () = answers(from_server, to_client, state, (&is_lost, &is_answered)) => {}
    }
}

/// Passes requests on. Returns whether answers are still wanted of the server, by the client or by nobody.
async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    (is_lost, is_answered): (&AtomicBool, &AtomicBool),
) -> bool {
    let mut bytes = vec![0; CHUNK];
    // A connection never loses bytes between others: what comes after lost ones is lost, too.
    let mut is_silent = false;
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let Some(request) = bytes.get(..count) else { return false };
        if is_answered.swap(false, Ordering::Relaxed) {
            state.requests.fetch_add(1, Ordering::Relaxed);
        }
        match state.faults.on_request() {
            OnRequest::Cut => return false,
            OnRequest::Swallow => is_silent = true,
            _ if is_silent => {}
            OnRequest::Pass => {}
            OnRequest::Delay(delay) => sleep(delay).await,
            OnRequest::LoseAnswer => {
                is_lost.store(true, Ordering::Relaxed);
                return to.write_all(request).await.is_ok();
            }
        }
        if is_silent {
            continue;
        }
        if to.write_all(request).await.is_err() {
            return false;
        }
    }
    true
}

async fn answers(
    mut from: OwnedReadHalf,
    to: OwnedWriteHalf,
    state: &State,
    (is_lost, is_answered): (&AtomicBool, &AtomicBool),
) {
    let mut to = Some(to);
    let mut bytes = vec![0; CHUNK];
    // As for requests. The next answer would be taken for that of an earlier request.
    let mut is_silent = false;
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        is_answered.store(true, Ordering::Relaxed);
        if is_lost.load(Ordering::Relaxed) {
            to = None; // the client is told that the connection is closed
            continue;
        }
        match state.faults.on_answer() {
            OnAnswer::Swallow => is_silent = true,
            _ if is_silent => {}
            OnAnswer::Pass => {}
            OnAnswer::Delay(delay) => sleep(delay).await,
        }
        if is_silent {
            continue;
        }
        let (Some(to), Some(answer)) = (&mut to, bytes.get(..count)) else { continue };
        if to.write_all(answer).await.is_err() {
            return;
        }
    }
}
