//! The layer around a route and around a router of axum.

use std::{sync::atomic::Ordering, time::Duration};

use axum::{
    Extension, Router,
    body::{Body, Bytes, HttpBody as _},
    routing::{get, post},
};
use futures_util::stream;
use lambda_http::{
    Adapter, RequestExt as _,
    http::{Method, Request, StatusCode, header::AUTHORIZATION},
    request::LambdaRequest,
    tower::{Layer as _, ServiceExt as _},
};
use lambda_idempotency::{Call, http::Http};
use lambda_idempotency_core::clock::Clock as _;
use lambda_runtime::LambdaEvent;
use serde_json::json;

use crate::support::{World, charges};

type Response = lambda_http::http::Response<Body>;

/// What a client of a router gets.
#[derive(Debug, PartialEq)]
struct Got {
    status: u16,
    body: String,
    replayed: bool,
}

fn got(status: u16, body: &str, replayed: bool) -> Got {
    Got { status, body: body.to_owned(), replayed }
}

/// A request of Ann.
fn asked(method: Method, path: &str, key: Option<&str>, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header(AUTHORIZATION, "Bearer ann");
    let request =
        key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
    request.body(body.into()).unwrap()
}

async fn sent(world: &World, app: &Router, request: Request<Body>) -> Response {
    let request = request.with_lambda_context(world.context());
    world.clock.drive(app.clone().oneshot(request)).await.unwrap()
}

async fn send(world: &World, app: &Router, request: Request<Body>) -> Got {
    let response = sent(world, app, request).await;
    let (status, replayed) =
        (response.status().as_u16(), response.headers().contains_key("idempotency-replayed"));
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    Got { status, body: String::from_utf8(body.to_vec()).unwrap(), replayed }
}

/// Counts its calls, and answers with their number and the body.
async fn counted(Extension(world): Extension<World>, body: Bytes) -> String {
    let number = world.calls.fetch_add(1, Ordering::Relaxed) + 1;
    format!("{number} {}", String::from_utf8_lossy(&body))
}

/// The same, for a handler that needs the call.
async fn called(call: Extension<Call>, world: Extension<World>, body: Bytes) -> String {
    assert_eq!(call.failed_attempts(), 0);
    counted(world, body).await
}

#[tokio::test]
async fn a_layer_around_one_route_leaves_the_others_as_they_are() {
    let world = World::new();
    let app = Router::new()
        .route("/charges", post(called).layer(world.layer(&charges())).get(counted))
        .route("/search", post(counted))
        .layer(Extension(world.clone()));
    let charge = |body: &'static str| asked(Method::POST, "/charges", Some("k-1"), body);
    assert_eq!(send(&world, &app, charge("5")).await, got(200, "1 5", false));
    assert_eq!(send(&world, &app, charge("5")).await, got(200, "1 5", true));
    assert_eq!(send(&world, &app, charge("6")).await.status, 422);
    let keyless = asked(Method::POST, "/charges", None, "5");
    assert_eq!(send(&world, &app, keyless).await.status, 400);
    for number in 2..4 {
        let search = asked(Method::POST, "/search", Some("k-1"), "5");
        assert_eq!(send(&world, &app, search).await, got(200, &format!("{number} 5"), false));
    }
    let read = asked(Method::GET, "/charges", Some("k-1"), "");
    assert_eq!(send(&world, &app, read).await, got(200, "4 ", false), "no layer is around it");
}

#[tokio::test]
async fn a_layer_around_a_router_asks_for_keys_where_the_application_says() {
    let world = World::new();
    let http = Http::by_header().needs_key(|parts| parts.uri.path().starts_with("/charges"));
    let app = Router::new()
        .route("/charges", post(called).get(counted))
        .route("/search", post(counted))
        .layer(world.layer_with(&charges(), http))
        .layer(Extension(world.clone()));
    for (method, path, key, status, calls) in [
        (Method::POST, "/charges", None, 400, 0),
        (Method::POST, "/search", None, 200, 1),
        (Method::POST, "/charges", Some("k-1"), 200, 2),
        (Method::GET, "/charges", Some("k-2"), 200, 3),
        // Now this one needs a key, too.
        (Method::GET, "/charges", None, 400, 3),
        (Method::OPTIONS, "/search", None, 405, 3),
        // Nothing handles it, and its key stays free.
        (Method::DELETE, "/charges", Some("k-3"), 405, 3),
        (Method::POST, "/charges", Some("k-3"), 200, 4),
        (Method::POST, "/charges/none", Some("k-4"), 404, 4),
        (Method::POST, "/charges", Some("k-4"), 200, 5),
    ] {
        let got = send(&world, &app, asked(method.clone(), path, key, "")).await;
        assert_eq!((got.status, world.calls()), (status, calls), "{method} {path} {key:?}");
    }
}

#[tokio::test]
async fn a_layer_around_the_routes_does_not_see_requests_that_no_route_handles() {
    let world = World::new();
    let app = Router::new()
        .route("/charges", post(called))
        .route("/refunds", post(called))
        .route_layer(world.layer(&charges()))
        .layer(Extension(world.clone()));
    let missing = asked(Method::POST, "/missing", None, "");
    assert_eq!(send(&world, &app, missing).await.status, 404, "and not that it needs a key");
    let charge = || asked(Method::POST, "/charges", Some("k-1"), "5");
    assert_eq!(send(&world, &app, charge()).await, got(200, "1 5", false));
    let refund = asked(Method::POST, "/refunds", Some("k-1"), "5");
    assert_eq!(send(&world, &app, refund).await.status, 422, "the key is of another route");
    assert_eq!(send(&world, &app, charge()).await, got(200, "1 5", true));
}

/// A server that is not Lambda's gets the host of a request in its header.
#[tokio::test]
async fn requests_to_two_hosts_of_a_server_are_told_apart() {
    let world = World::new();
    let app = Router::new()
        .route("/pay", post(called).layer(world.layer(&charges())))
        .layer(Extension(world.clone()));
    let mut answers = Vec::new();
    for host in ["eu.example.com", "us.example.com", "EU.example.com"] {
        let mut request = asked(Method::POST, "/pay", Some("\"k-1\""), "{}");
        request.headers_mut().insert("host", host.parse().unwrap());
        answers.push(sent(&world, &app, request).await.status().as_u16());
    }
    assert_eq!((answers, world.calls()), (vec![200, 422, 200], 1));
}

/// A body in these pieces; after them it fails, if `breaks`.
fn streamed(pieces: &'static [&'static str], breaks: bool) -> Body {
    let pieces = pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
    let end = breaks.then(|| Err(std::io::Error::other("the test has cut the wire")));
    Body::from_stream(stream::iter(pieces.chain(end).collect::<Vec<_>>()))
}

/// A 200 that breaks is recorded, because its work is done; a 429 is not, since the work is still to do.
#[tokio::test]
async fn a_response_that_is_not_kept_is_not_recorded_if_it_breaks() {
    for (first, status, second) in [(429, 500, 200), (200, 409, 409)] {
        let world = World::new();
        let calls = world.calls.clone();
        let breaks = move || {
            let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            let status = StatusCode::from_u16(if is_first { first } else { 200 }).unwrap();
            async move { (status, streamed(&["fi", "ve"], is_first)) }
        };
        let app = Router::new().route("/charges", post(breaks).layer(world.layer(&charges())));
        let charge = || asked(Method::POST, "/charges", Some("k-1"), "");
        assert_eq!(send(&world, &app, charge()).await.status, status, "{first}");
        assert_eq!(send(&world, &app, charge()).await.status, second, "{first}");
    }
}

#[tokio::test]
async fn a_request_that_is_a_stream_is_read_whole_and_compared() {
    let world = World::new();
    let app = Router::new()
        .route("/charges", post(called).layer(world.layer(&charges())))
        .layer(Extension(world.clone()));
    let charge =
        |pieces, breaks| asked(Method::POST, "/charges", Some("k-1"), streamed(pieces, breaks));
    let broken = send(&world, &app, charge(&["fi", "ve"], true)).await;
    assert_eq!((broken.status, world.calls()), (400, 0), "{broken:?}");
    assert_eq!(send(&world, &app, charge(&["fi", "ve"], false)).await, got(200, "1 five", false));
    assert_eq!(
        send(&world, &app, charge(&["f", "", "ive"], false)).await,
        got(200, "1 five", true)
    );
    assert_eq!(send(&world, &app, charge(&["fi", "v"], false)).await.status, 422);
}

#[tokio::test]
async fn a_response_that_is_a_stream_is_kept_whole_and_one_that_breaks_is_not_made_again() {
    let world = World::new();
    let respond = async |Extension(world): Extension<World>, body: String| {
        world.calls.fetch_add(1, Ordering::Relaxed);
        streamed(&["one ", "two"], body == "break")
    };
    let app = Router::new()
        .route("/charges", post(respond).layer(world.layer(&charges())))
        .layer(Extension(world.clone()));
    let charge = |key: &str, body: &'static str| asked(Method::POST, "/charges", Some(key), body);
    assert_eq!(send(&world, &app, charge("k-1", "")).await, got(200, "one two", false));
    assert_eq!(send(&world, &app, charge("k-1", "")).await, got(200, "one two", true));
    for said in ["was processed, but", "was processed before, but"] {
        let lost = send(&world, &app, charge("k-2", "break")).await;
        assert!(lost.body.contains("response-lost") && lost.body.contains(said), "{lost:?}");
        assert_eq!((lost.status, world.calls()), (409, 2), "the work was done, once");
    }
}

/// Its text is decoded once, and then says so: `lambda_http` would decode it again.
#[tokio::test]
async fn text_of_another_charset_is_decoded_once() {
    let world = World::new();
    let app = Router::new().route(
        "/charges",
        post(async || ([("content-type", "text/plain; charset=iso-8859-1")], b"c\xe9".to_vec())),
    );
    let service = world.layer(&charges()).layer(app);
    for _ in 0..2 {
        let response = service.clone().oneshot(crate::support::post("k-1", ""));
        let response = world.clock.drive(response).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        let body: &lambda_http::Body = response.body();
        assert_eq!(body.as_ref(), "cé".as_bytes());
    }
}

/// Outside of Lambda, a client that goes away drops its request.
#[tokio::test]
async fn a_request_that_is_dropped_holds_its_key_for_half_a_minute() {
    let world = World::new();
    let hang_at_first = async |Extension(world): Extension<World>| {
        if world.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            world.clock.sleep(Duration::from_hours(1)).await;
        }
    };
    let app = Router::new()
        .route("/charges", post(hang_at_first).layer(world.layer(&charges())))
        .layer(Extension(world.clone()));
    let charge = || asked(Method::POST, "/charges", Some("k-1"), "");
    let mut dropped = Box::pin(app.clone().oneshot(charge()));
    // Its claim is written, and its handler waits.
    let limit = world.clock.sleep(Duration::from_secs(2));
    let both = futures_util::future::select(&mut dropped, limit);
    drop(world.clock.drive(both).await);
    drop(dropped);
    assert_eq!(send(&world, &app, charge()).await.status, 409);
    world.clock.advance(Duration::from_secs(35));
    assert_eq!(send(&world, &app, charge()).await.status, 200);
}

#[tokio::test]
async fn a_response_to_a_request_without_a_key_stays_a_stream() {
    let world = World::new();
    let app = Router::new()
        .route("/charges", get(async || streamed(&["one"], true)))
        .layer(world.layer(&charges()));
    let response = sent(&world, &app, asked(Method::GET, "/charges", None, "")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.body().size_hint().exact(), None, "nobody has read it");
    assert!(axum::body::to_bytes(response.into_body(), usize::MAX).await.is_err());
}

/// Sends a request of Ann to a REST API, whose stage is a part of the path that services see.
async fn by_rest_api(world: &World, app: &Router, path: &str) -> u64 {
    let event = json!({
        "resource": "/{proxy+}", "path": path, "httpMethod": "POST",
        "headers": { "Host": "api.example.com" },
        "multiValueHeaders": {
            "Host": ["api.example.com"], "Authorization": ["Bearer ann"], "Idempotency-Key": ["k-1"],
        },
        "requestContext": {
            "resourceId": "abc", "stage": "prod", "path": format!("/prod{path}"), "httpMethod": "POST",
            "identity": { "sourceIp": "192.0.2.1" },
        },
        "body": "5", "isBase64Encoded": false,
    });
    let request: LambdaRequest = serde_json::from_value(event).unwrap();
    let event = LambdaEvent::new(request, world.context());
    let answer = world.clock.drive(Adapter::from(app.clone()).oneshot(event)).await.unwrap();
    serde_json::to_value(answer).unwrap()["statusCode"].as_u64().unwrap()
}

/// Axum takes the prefix out of the path that a nested router sees; the event has the whole path.
#[tokio::test]
async fn through_an_api_the_path_of_the_event_is_compared_and_hooks_see_that_of_the_service() {
    let world = World::new();
    let layer = world.layer(&charges());
    let nested = || Router::new().route("/pay", post(called).layer(layer.clone()));
    let app = Router::new()
        .nest("/prod/cards", nested())
        .nest("/prod/wallets", nested())
        .layer(Extension(world.clone()));
    assert_eq!(by_rest_api(&world, &app, "/cards/pay").await, 200);
    assert_eq!(by_rest_api(&world, &app, "/wallets/pay").await, 422);
    assert_eq!((by_rest_api(&world, &app, "/cards/pay").await, world.calls()), (200, 1));

    let http = Http::by_header().needs_key(|parts| {
        assert_eq!(parts.uri.path(), "/prod/search");
        parts.uri.path() != "/prod/search"
    });
    let app = Router::new()
        .route("/prod/search", post(counted))
        .layer(world.layer_with(&charges(), http))
        .layer(Extension(world.clone()));
    for calls in 2..4 {
        assert_eq!((by_rest_api(&world, &app, "/search").await, world.calls()), (200, calls));
    }
}
