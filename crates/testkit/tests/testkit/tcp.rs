//! The proxy of TCP, before a server that answers what it gets.

#![allow(clippy::indexing_slicing, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "the server ends with its test")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// A server that answers what it gets with the same bytes, and keeps it.
struct Echo {
    proxy: TcpProxy,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let proxy = TcpProxy::start(listener.local_addr().unwrap()).await.unwrap();
        let got = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&got);
        tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let kept = Arc::clone(&kept);
                connections.spawn(async move {
                    let mut bytes = [0; 100];
                    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                        kept.lock().unwrap().extend(&bytes[..count]);
                        let _ = stream.write_all(&bytes[..count]).await;
                    }
                });
            }
        });
        Self { proxy, got }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.proxy.address()).await.unwrap()
    }

    fn got(&self) -> String {
        String::from_utf8(self.got.lock().unwrap().clone()).unwrap()
    }
}

/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(20);

/// Sends a request. The answer, or `closed`.
async fn ask(stream: &mut TcpStream, request: &str) -> String {
    answer(stream, request, LONG).await
}

/// Sends a request, and fails if there is an answer.
async fn ask_in_vain(stream: &mut TcpStream, request: &str) {
    assert_eq!(answer(stream, request, Duration::from_millis(300)).await, "silent");
}

async fn answer(stream: &mut TcpStream, request: &str, patience: Duration) -> String {
    let _ = stream.write_all(request.as_bytes()).await;
    let mut bytes = [0; 100];
    match tokio::time::timeout(patience, stream.read(&mut bytes)).await {
        Err(_) => "silent".to_owned(),
        Ok(Ok(0) | Err(_)) => "closed".to_owned(),
        Ok(Ok(count)) => String::from_utf8(bytes[..count].to_vec()).unwrap(),
    }
}

/// Waits for what the proxy or the server does.
async fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG);
        sleep(Duration::from_millis(1)).await;
    }
}

/// It comes in several pieces.
#[tokio::test]
async fn a_large_request_counts_once() {
    const SIZE: usize = 1_000_000;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let proxy = TcpProxy::start(listener.local_addr().unwrap()).await.unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; SIZE];
        while stream.read_exact(&mut bytes).await.is_ok() {
            let _ = stream.write_all(b"!").await;
        }
    });
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    for count in 1..=3 {
        client.write_all(&vec![0; SIZE]).await.unwrap();
        client.read_u8().await.unwrap();
        assert_eq!(proxy.requests(), count);
    }
}

#[tokio::test]
async fn a_request_is_cut_before_the_server_or_after_it() {
    let echo = Echo::start().await;
    let id = echo.proxy.faults().add(TcpFault::cut().times(1));
    assert_eq!(ask(&mut echo.connect().await, "a").await, "closed");
    assert_eq!((echo.got(), echo.proxy.faults().injected(id)), (String::new(), 1));
    echo.proxy.faults().add(TcpFault::lose_answer().times(1));
    assert_eq!(ask(&mut echo.connect().await, "b").await, "closed");
    assert_eq!(echo.got(), "b");
    let mut healed = echo.connect().await;
    assert_eq!(ask(&mut healed, "c").await, "c");
    assert_eq!((echo.proxy.connections(), echo.proxy.requests()), (3, 3));
    echo.proxy.cut();
    assert_eq!(ask(&mut healed, "d").await, "closed");
}

#[tokio::test]
async fn a_delayed_request_reaches_the_server_when_its_client_has_gone() {
    let echo = Echo::start().await;
    let delay = Duration::from_millis(500);
    echo.proxy.faults().add(TcpFault::delay(delay).times(1));
    let mut client = echo.connect().await;
    let start = Instant::now();
    client.write_all(b"late").await.unwrap();
    until(|| echo.proxy.requests() == 1).await;
    drop(client);
    until(|| echo.got() == "late").await;
    assert!(start.elapsed() >= delay);
}

#[tokio::test]
async fn nothing_passes_during_a_silence_and_no_connection_lasts_during_an_outage() {
    let echo = Echo::start().await;
    let mut client = echo.connect().await;
    let silence = echo.proxy.faults().add(TcpFault::silence());
    ask_in_vain(&mut client, "a").await;
    until(|| echo.proxy.faults().injected(silence) == 1).await;
    echo.proxy.faults().remove(silence);
    ask_in_vain(&mut client, "after bytes that were lost").await;
    assert_eq!(ask(&mut echo.connect().await, "new").await, "new");
    let outage = echo.proxy.faults().add(TcpFault::refuse());
    assert_eq!(ask(&mut client, "b").await, "closed");
    assert_eq!(ask(&mut echo.connect().await, "c").await, "closed");
    assert_eq!((echo.got(), echo.proxy.faults().injected(outage)), ("new".to_owned(), 2));
    echo.proxy.faults().clear();
    assert_eq!(ask(&mut echo.connect().await, "d").await, "d");
}

#[tokio::test]
async fn answers_are_lost_or_come_late() {
    let echo = Echo::start().await;
    let mut client = echo.connect().await;
    assert_eq!(ask(&mut client, "BEGIN").await, "BEGIN");
    let lost = echo.proxy.faults().add(TcpFault::swallow_answers());
    ask_in_vain(&mut client, "COMMIT").await;
    until(|| echo.proxy.faults().injected(lost) == 1).await;
    assert_eq!(echo.got(), "BEGINCOMMIT");
    echo.proxy.faults().remove(lost);
    // TCP loses no bytes between others: this answer would be taken for that of the COMMIT.
    ask_in_vain(&mut client, "SELECT").await;
    until(|| echo.got() == "BEGINCOMMITSELECT").await;
    echo.proxy.faults().add(TcpFault::delay_answers(Duration::from_millis(100)));
    let start = Instant::now();
    assert_eq!(ask(&mut echo.connect().await, "e").await, "e");
    assert!(start.elapsed() >= Duration::from_millis(100));
}
