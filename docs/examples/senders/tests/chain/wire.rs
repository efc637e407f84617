//! What stands between a function and SQS: passes requests on, and injects faults where they are sent.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, Uri, body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpListener;

/// What happens to a request that sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    None,
    /// The function's process dies before SQS has the messages.
    DiesBefore,
    /// The process dies after SQS has stored the messages, and before it learns that.
    DiesAfter,
    /// SQS gets the request twice.
    SentTwice,
    /// SQS stores the messages, and its answer is an error.
    AnswerLost,
}

/// The faults of the requests, one after the other, and then from the first again.
const ROUND: [Fault; 8] = [
    Fault::DiesBefore,
    Fault::None,
    Fault::DiesAfter,
    Fault::None,
    Fault::SentTwice,
    Fault::None,
    Fault::AnswerLost,
    Fault::None,
];

/// The proxy. It ends with the program.
pub struct Wire {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    to: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
    kill: Box<dyn Fn() + Send + Sync>,
    faults: Mutex<Vec<Fault>>,
    requests: AtomicUsize,
    injected: Mutex<Vec<Fault>>,
}

impl Wire {
    /// A proxy of `to`. `kill` kills the processes of the function.
    pub async fn start(to: &str, kill: impl Fn() + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            to: to.parse().expect("a URL"),
            client: Client::builder(TokioExecutor::new()).build_http(),
            kill: Box::new(kill),
            faults: Mutex::new(ROUND.to_vec()),
            requests: AtomicUsize::new(0),
            injected: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                let service = service_fn(move |request| pass(Arc::clone(&shared), request));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(connection), service));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on, each request gets these, one after the other.
    pub fn inject(&self, faults: &[Fault]) {
        *self.shared.faults.lock().expect("faults") = faults.to_vec();
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let injected = self.shared.injected.lock().expect("faults");
        let count = |fault| injected.iter().filter(|one| **one == fault).count();
        write!(
            f,
            "{} deaths before sending, {} after it, {} requests sent twice, {} answers lost",
            count(Fault::DiesBefore),
            count(Fault::DiesAfter),
            count(Fault::SentTwice),
            count(Fault::AnswerLost)
        )
    }
}

impl Shared {
    fn next(&self) -> Fault {
        let nth = self.requests.fetch_add(1, Ordering::SeqCst);
        let faults = self.faults.lock().expect("faults");
        let fault = faults[nth % faults.len()];
        self.injected.lock().expect("faults").push(fault);
        fault
    }
}

async fn pass(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper_util::client::legacy::Error> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let sends = target.is_some_and(|target| target.ends_with(".SendMessageBatch"));
    let fault = if sends { shared.next() } else { Fault::None };
    let mut to = shared.to.clone().into_parts();
    to.path_and_query = parts.uri.path_and_query().cloned();
    parts.uri = Uri::from_parts(to).expect("a URI");
    let dies = async || {
        (shared.kill)();
        std::future::pending::<()>().await;
    };
    if fault == Fault::DiesBefore {
        dies().await;
    }
    let send =
        || shared.client.request(Request::from_parts(parts.clone(), Full::new(body.clone())));
    let mut answer = send().await?;
    match fault {
        Fault::None | Fault::DiesBefore => {}
        Fault::DiesAfter => dies().await,
        Fault::SentTwice => answer = send().await?,
        Fault::AnswerLost => *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Ok(Response::from_parts(parts, Full::new(body)))
}
