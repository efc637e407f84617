use std::{net::TcpListener, time::Instant};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region, timeout::TimeoutConfig},
};
use aws_smithy_http_client::tls::TrustStore;
use aws_smithy_runtime_api::{
    client::{orchestrator::HttpResponse, result::ConnectorError},
    http::Headers,
};
use aws_smithy_types::body::SdkBody;
use futures_util::future::join_all;
use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock},
    key::Key,
    store::{Guard, Store as _, StoreErrorKind, Verdict, Write},
};

use self::server::{Fate, Observed, Proxy, ROOT, Server};
use super::*;
use crate::{roots, store::DynamoDbStore};

#[path = "https_server.rs"]
mod server;

/// For connections that open, on a busy machine.
const LONG: Duration = Duration::from_secs(10);

/// Trusts the authority of the tests' servers.
fn ours() -> TlsContext {
    let roots = TrustStore::empty().with_pem_certificate(ROOT);
    TlsContext::builder().with_trust_store(roots).build().unwrap()
}

fn amazons() -> TlsContext {
    roots::amazon().unwrap()
}

fn trusting_within(connect: Duration, first: TlsContext, others: TlsContext) -> Trusting {
    let settings = HttpConnectorSettings::builder().connect_timeout(connect).build();
    Trusting::new(&Roots { first, others: Some(others) }, &settings)
}

fn trusting(first: TlsContext, others: TlsContext) -> Trusting {
    trusting_within(LONG, first, others)
}

fn has_read_the_others(connector: &Trusting) -> bool {
    connector.others.as_ref().is_some_and(|others| others.connector.get().is_some())
}

fn request(url: &str, body: impl Into<SdkBody>) -> HttpRequest {
    let mut request = HttpRequest::new(body.into());
    request.set_method("POST").unwrap();
    request.set_uri(url).unwrap();
    request
}

async fn send(connector: &Trusting, url: &str, body: &str) -> Result<HttpResponse, ConnectorError> {
    connector.call(request(url, body.to_owned())).await
}

fn observed(connections: usize, handshakes: usize, requests: &[&str]) -> Observed {
    let requests = requests.iter().map(|&body| body.to_owned()).collect();
    Observed { connections, handshakes, requests }
}

#[test]
fn there_is_one_connector_for_the_same_time_limits() {
    let connect = Duration::from_secs(1);
    let client = Https::new(Roots::from_env()).ready(connect);
    let count = || client.connectors.lock().unwrap().len();
    assert_eq!(count(), 1, "made before the first request");
    let settings = || HttpConnectorSettings::builder().connect_timeout(connect);
    client.connector(&settings().build());
    assert_eq!(count(), 1, "that of the store's requests");
    client.connector(&settings().read_timeout(connect).build());
    assert_eq!(count(), 2, "a credentials provider may have limits of its own");
}

#[tokio::test]
async fn a_server_that_only_the_others_know_gets_each_request_once() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = trusting(amazons(), ours());
    assert!(send(&connector, &server.url, "one").await.unwrap().status().is_success());
    assert_eq!(server.seen(), observed(2, 1, &["one"]), "the first handshake was refused");
    send(&connector, &server.url, "two").await.unwrap();
    assert_eq!(server.seen(), observed(3, 2, &["one", "two"]), "and it is not tried again");
}

#[tokio::test]
async fn the_first_are_tried_again_until_the_others_have_reached_a_server() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = trusting(ours(), amazons());
    // Its certificate is not for this name, whoever signed it.
    let unnamed = server.url.replace("localhost", "127.0.0.1");
    send(&connector, &unnamed, "one").await.unwrap_err();
    assert!(has_read_the_others(&connector));
    send(&connector, &server.url, "two").await.unwrap();
    assert_eq!(server.seen().requests, ["two"]);
}

#[tokio::test]
async fn requests_at_once_are_each_sent_once() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = &trusting(amazons(), ours());
    let bodies: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    let sent = join_all(bodies.iter().map(|body| send(connector, &server.url, body))).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    let mut seen = server.seen();
    seen.requests.sort();
    assert_eq!((seen.handshakes, seen.requests), (10, bodies));
}

#[tokio::test]
async fn for_a_server_that_the_first_know_the_others_are_never_read() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = trusting(ours(), amazons());
    for _ in 0..2 {
        send(&connector, &server.url, "one").await.unwrap();
    }
    assert_eq!(server.seen(), observed(2, 2, &["one", "one"]));
    assert!(!has_read_the_others(&connector));
}

/// No copy of a request is made for them then.
#[tokio::test]
async fn once_the_first_have_reached_a_server_the_others_are_for_the_request_after_a_refusal() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = trusting(ours(), ours());
    send(&connector, &server.url, "one").await.unwrap();
    let unnamed = server.url.replace("localhost", "127.0.0.1");
    let error = send(&connector, &unnamed, "two").await.unwrap_err();
    assert!(is_untrusted(&error), "so the store sends it again: {error:?}");
    assert!(has_read_the_others(&connector));
    assert_eq!(server.seen(), observed(2, 1, &["one"]));
    send(&connector, &unnamed, "three").await.unwrap_err();
    assert_eq!(server.seen(), observed(4, 1, &["one"]), "both");
    send(&connector, &server.url, "four").await.unwrap();
    assert_eq!(server.seen(), observed(5, 2, &["one", "four"]));
}

#[tokio::test]
async fn a_server_that_the_first_do_not_know_any_more_is_reached_with_the_next_request() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = trusting(amazons(), ours());
    connector.others.as_ref().unwrap().first_are_right.store(true, Ordering::Relaxed);
    send(&connector, &server.url, "one").await.unwrap_err();
    send(&connector, &server.url, "two").await.unwrap();
    assert_eq!(server.seen(), observed(3, 1, &["two"]));
}

/// The environment names the proxy, so the test is run once more in a process of its own.
#[tokio::test]
async fn through_a_proxy_it_is_the_same() {
    let proxy = Proxy::start().await;
    let test = "https::tests::a_server_that_only_the_others_know_gets_each_request_once";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact"]).env("HTTPS_PROXY", &proxy.url);
    again.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = tokio::task::spawn_blocking(move || again.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
    assert_eq!(proxy.tunnels(), 3);
}

/// A certificate in the chain that expired hides, from whoever does not know the root, that the root is what is missing.
#[tokio::test]
async fn whatever_the_first_find_wrong_the_others_decide() {
    let server = Server::start(&[Fate::Expired]).await;
    let error = send(&trusting(amazons(), amazons()), &server.url, "one").await.unwrap_err();
    let chain = lambda_idempotency_core::retry::chain(&error);
    assert!(chain.contains("certificate expired"), "{chain}");
    send(&trusting(amazons(), ours()), &server.url, "one").await.unwrap();
    assert_eq!(server.seen().requests, ["one"]);
}

#[tokio::test]
async fn what_fails_for_another_reason_is_not_sent_again() {
    let short = Duration::from_millis(200);
    for (fate, connect, saw) in [
        (Fate::Closed, LONG, observed(1, 1, &["one"])),
        (Fate::Silent, short, observed(1, 0, &[])),
        (Fate::Nonsense, LONG, observed(1, 0, &[])),
    ] {
        let server = Server::start(&[fate]).await;
        let connector = trusting_within(connect, ours(), amazons());
        send(&connector, &server.url, "one").await.unwrap_err();
        assert_eq!(server.seen(), saw);
        assert!(!has_read_the_others(&connector));
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let connector = trusting(ours(), amazons());
    send(&connector, &format!("https://localhost:{port}"), "one").await.unwrap_err();
    assert!(!has_read_the_others(&connector));
}

#[tokio::test]
async fn a_server_that_neither_know_gets_no_request() {
    let server = Server::start(&[Fate::Answered]).await;
    let connector = trusting(amazons(), amazons());
    let error = send(&connector, &server.url, "one").await.unwrap_err();
    assert!(is_untrusted(&error), "{error:?}");
    assert_eq!(server.seen(), observed(2, 0, &[]));
    send(&connector, &server.url, "one").await.unwrap_err();
    assert_eq!(server.seen(), observed(4, 0, &[]), "both again: the others have reached no server");
}

/// The request that is sent over the second connection was sent: it is not sent over a third.
#[tokio::test]
async fn after_the_others_were_read_nothing_is_sent_again() {
    let server = Server::start(&[Fate::Closed]).await;
    send(&trusting(amazons(), ours()), &server.url, "one").await.unwrap_err();
    assert_eq!(server.seen(), observed(2, 1, &["one"]));
}

#[tokio::test]
async fn each_connection_has_to_be_open_in_time() {
    let server = Server::start(&[Fate::Answered, Fate::Silent]).await;
    let connect = Duration::from_secs(1);
    let connector = trusting_within(connect, amazons(), ours());
    let began = Instant::now();
    let error = send(&connector, &server.url, "one").await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!((connect..connect * 3).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(has_read_the_others(&connector), "the next request has them");
}

#[test]
fn a_copy_has_all_of_the_request_and_a_stream_has_none() {
    let mut original = request("https://localhost/", "body");
    original.headers_mut().insert("authorization", "signed");
    original.add_extension(CaptureSmithyConnection::new());
    let copy = copied(&original).unwrap();
    assert_eq!((copy.method(), copy.uri()), ("POST", "https://localhost/"));
    let text = |headers: &Headers| headers.get("authorization").map(str::to_owned);
    assert_eq!(text(copy.headers()), text(original.headers()));
    assert_eq!(copy.body().bytes(), Some(&b"body"[..]));
    assert!(copy.extension::<CaptureSmithyConnection>().is_some());
    let stream = SdkBody::from_body_1_x(http_body_util::Empty::new());
    assert!(copied(&request("https://localhost/", stream)).is_none());
}

/// A store with this time limit for a request. The others know its server.
fn store(url: &str, limit: Duration) -> DynamoDbStore {
    let roots = Roots { first: amazons(), others: Some(ours()) };
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
        .timeout_config(TimeoutConfig::builder().connect_timeout(LONG).build())
        .endpoint_url(url)
        .http_client(Https::new(roots).ready(LONG));
    let client = Client::from_conf(config.build());
    DynamoDbStore::builder(client, "orders").attempt_timeout(limit).build().unwrap()
}

async fn write(store: &DynamoDbStore, within: Duration) -> Verdict {
    let key = Key::from_text("k");
    let write = Write { key, guard: Guard::Absent, record: None, effects: None };
    store.write(&[write], SystemClock.now().plus(within)).await.pop().unwrap()
}

#[tokio::test]
async fn a_write_to_a_server_that_only_the_others_know_is_one_request() {
    let server = Server::start(&[Fate::Answered]).await;
    let verdict = write(&store(&server.url, LONG), LONG).await;
    assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
    let Observed { connections, requests, .. } = server.seen();
    assert_eq!((connections, requests.len()), (2, 1));
}

#[tokio::test]
async fn the_time_limit_of_a_request_of_the_store_includes_both_handshakes() {
    let server = Server::start(&[Fate::Answered, Fate::Silent]).await;
    let within = Duration::from_millis(500);
    let began = Instant::now();
    let verdict = write(&store(&server.url, within / 2), within).await;
    assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
    let Verdict::Unknown(error) = verdict else { panic!("{verdict:?}") };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}
