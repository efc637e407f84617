//! A server for tests, whose certificate is of an authority of its own. The files of `https_server` are that authority, the
//! server's certificate for `localhost`, and an expired one that another authority gave to this one.
#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test serves connections at the same time"
)]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

pub(super) const ROOT: &str = include_str!("https_server/root.pem");
const CERTIFICATE: &str = include_str!("https_server/server.pem");
const KEY: &str = include_str!("https_server/server.key");
const EXPIRED: &str = include_str!("https_server/expired.pem");

/// What becomes of a connection.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    /// One request is answered, and the connection is closed.
    Answered,
    /// As `Answered`. The server sends its authority's expired certificate besides its own.
    Expired,
    /// It is closed when a request was received.
    Closed,
    /// Nothing is ever said.
    Silent,
    /// What is said is not TLS.
    Nonsense,
}

/// What the server saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) connections: usize,
    pub(super) handshakes: usize,
    /// The bodies of the requests.
    pub(super) requests: Vec<String>,
}

pub(super) struct Server {
    pub(super) url: String,
    seen: Arc<Mutex<Observed>>,
}

impl Server {
    /// A server that does so with its first connections, and with the others as with the last of these.
    pub(super) async fn start(fates: &[Fate]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let seen = Arc::new(Mutex::new(Observed::default()));
        let (fates, counted) = (fates.to_vec(), Arc::clone(&seen));
        tokio::spawn(async move {
            for n in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let fate = fates.get(n).or(fates.last()).copied().unwrap();
                counted.lock().unwrap().connections += 1;
                tokio::spawn(serve(stream, fate, Arc::clone(&counted)));
            }
        });
        Self { url, seen }
    }

    pub(super) fn seen(&self) -> Observed {
        self.seen.lock().unwrap().clone()
    }
}

/// A proxy that hands on what is said, both ways.
pub(super) struct Proxy {
    pub(super) url: String,
    tunnels: Arc<AtomicUsize>,
}

impl Proxy {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let tunnels = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tunnels);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(tunnel(stream));
            }
        });
        Self { url, tunnels }
    }

    /// How many connections it was asked for.
    pub(super) fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }
}

async fn tunnel(mut stream: TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_buf(&mut request).await.unwrap();
    }
    let request = String::from_utf8(request).unwrap();
    let target = request.split(' ').nth(1).unwrap();
    let mut server = TcpStream::connect(target).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    tokio::io::copy_bidirectional(&mut stream, &mut server).await.ok();
}

async fn serve(mut stream: TcpStream, fate: Fate, seen: Arc<Mutex<Observed>>) {
    match fate {
        Fate::Silent => return std::future::pending().await,
        Fate::Nonsense => {
            stream.write_all(b"220 this is not TLS\r\n").await.unwrap();
            return;
        }
        Fate::Answered | Fate::Expired | Fate::Closed => {}
    }
    let Ok(mut stream) = acceptor(matches!(fate, Fate::Expired)).accept(stream).await else {
        return;
    };
    seen.lock().unwrap().handshakes += 1;
    let mut request = Vec::new();
    let body = loop {
        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
            return;
        }
        if let Some(body) = body(&String::from_utf8_lossy(&request)) {
            break body;
        }
    };
    seen.lock().unwrap().requests.push(body);
    if matches!(fate, Fate::Answered | Fate::Expired) {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.ok();
    }
}

/// The body of a request, if all of it is there.
fn body(request: &str) -> Option<String> {
    let (head, body) = request.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    (body.len() == length.parse::<usize>().unwrap()).then(|| body.to_owned())
}

fn acceptor(sends_expired: bool) -> TlsAcceptor {
    let pem =
        if sends_expired { format!("{CERTIFICATE}{EXPIRED}") } else { CERTIFICATE.to_owned() };
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).map(|der| der.unwrap()).collect();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
