//! The proxy of TCP, before a server that answers what it gets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
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

/// Sends a request. The answer, `closed`, or `silent` after some time without either.
async fn ask(stream: &mut TcpStream, request: &str) -> String {
    let _ = stream.write_all(request.as_bytes()).await;
    let mut bytes = [0; 100];
    match tokio::time::timeout(Duration::from_millis(300), stream.read(&mut bytes)).await {
        Err(_) => "silent".to_owned(),
        Ok(Ok(0) | Err(_)) => "closed".to_owned(),
        Ok(Ok(count)) => String::from_utf8(bytes[..count].to_vec()).unwrap(),
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
    echo.proxy.faults().add(TcpFault::delay(Duration::from_millis(500)).times(1));
    let mut client = echo.connect().await;
    assert_eq!(ask(&mut client, "late").await, "silent");
    drop(client);
    assert_eq!(echo.got(), "");
    let start = Instant::now();
    while echo.got().is_empty() && start.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(echo.got(), "late");
}

#[tokio::test]
async fn nothing_passes_during_a_silence_and_no_connection_lasts_during_an_outage() {
    let echo = Echo::start().await;
    let mut client = echo.connect().await;
    let silence = echo.proxy.faults().add(TcpFault::silence());
    assert_eq!(ask(&mut client, "a").await, "silent");
    echo.proxy.faults().remove(silence);
    assert_eq!(ask(&mut client, "after bytes that were lost").await, "silent");
    assert_eq!(ask(&mut echo.connect().await, "new").await, "new");
    let outage = echo.proxy.faults().add(TcpFault::refuse());
    assert_eq!(ask(&mut client, "b").await, "closed");
    assert_eq!(ask(&mut echo.connect().await, "c").await, "closed");
    assert_eq!((echo.got(), echo.proxy.faults().injected(outage)), ("new".to_owned(), 2));
    echo.proxy.faults().clear();
    assert_eq!(ask(&mut echo.connect().await, "d").await, "d");
}

#[tokio::test]
async fn answers_are_lost_from_a_certain_request_on_or_come_late() {
    let echo = Echo::start().await;
    let mut client = echo.connect().await;
    let lost = echo.proxy.faults().add(TcpFault::swallow_answers().after("COMMIT"));
    assert_eq!(ask(&mut client, "BEGIN").await, "BEGIN");
    assert_eq!(ask(&mut client, "COMMIT").await, "silent");
    assert_eq!(echo.got(), "BEGINCOMMIT");
    echo.proxy.faults().remove(lost);
    // TCP loses no bytes between others: this answer would be taken for that of the COMMIT.
    assert_eq!(ask(&mut client, "SELECT").await, "silent");
    assert_eq!(echo.got(), "BEGINCOMMITSELECT");
    echo.proxy.faults().add(TcpFault::delay_answers(Duration::from_millis(100)));
    let start = Instant::now();
    assert_eq!(ask(&mut echo.connect().await, "e").await, "e");
    assert!(start.elapsed() >= Duration::from_millis(100));
}
