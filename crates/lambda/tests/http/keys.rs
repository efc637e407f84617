//! The source of the key, and the answers to requests without a valid one.

use lambda_http::{
    Body,
    http::{HeaderName, Method},
};
use lambda_idempotency::{
    ConfigError, Idempotency, MemoryStore, Operation, RunError,
    http::{Http, HttpLayer},
    keys::powertools::PowertoolsKeys,
    observe::{Freed, TracingObserver},
    policy::OnMissingKey,
};

use crate::{
    capture::Captured,
    support::{World, charges, post, request},
};

#[tokio::test]
async fn a_missing_or_invalid_header_is_refused_and_neither_it_nor_the_body_is_quoted() {
    let world = World::new();
    let layer = world.layer(&charges());
    let long = "s3cr3t".repeat(50);
    for (method, key) in [
        (Method::POST, None),
        (Method::PATCH, None),
        (Method::POST, Some("")),
        (Method::POST, Some("\"s3cr3t")),
        (Method::POST, Some("s3cr3t s3cr3t")),
        (Method::POST, Some(&*long)),
    ] {
        let answer = world.answer(&layer, request(method, "/charges", key, "s3cr3t")).await;
        assert_eq!((answer.status, answer.kind()), (400, "key"), "{key:?}");
        assert!(!answer.body.contains("s3cr3t"), "{}", answer.body);
        assert!(key.is_some() || answer.body.contains("idempotency-key"), "{}", answer.body);
    }
    assert_eq!(world.calls(), 0);
}

/// They count for one caller, whom no payload names.
#[tokio::test]
async fn keys_of_requests_cannot_be_freed_by_a_payload() {
    let idempotency = World::instant().idempotency();
    let charges = Operation::new("charges").key("id");
    let payload = serde_json::json!({ "id": "a" });
    assert_eq!(idempotency.free(&charges, &payload).await.unwrap(), Freed::WasFree);
    let _layer = idempotency.http(&charges, Http::by_body()).unwrap();
    let refused = idempotency.free(&charges, &payload).await.unwrap_err();
    assert!(matches!(refused, RunError::Config(ConfigError::Name(_))), "{refused}");
    assert!(refused.to_string().contains("records free"), "{refused}");
}

/// Each request would be refused.
#[test]
fn powertools_keys_that_cannot_contain_the_caller_are_refused_when_the_layer_is_built() {
    let keys = PowertoolsKeys::python("charge");
    let idempotency = Idempotency::new(MemoryStore::new());
    let http = |keys| idempotency.http(&charges().key("id").powertools(keys), Http::by_body());
    let error = http(keys.clone()).unwrap_err().to_string();
    assert!(error.contains("accept_collisions") && error.contains("caller"), "{error}");
    let _ = http(keys.accept_collisions()).unwrap();
}

/// What a developer has to do is no advice to a client, and a request that is refused leaves a line.
#[tokio::test]
async fn a_problem_with_the_key_says_to_the_client_what_clients_can_do_and_the_rest_to_the_log() {
    let (world, captured) = (World::new(), Captured::default());
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let by_header = idempotency.http(&charges(), Http::by_header()).unwrap();
    let by_body =
        idempotency.http(&Operation::new("by-body").key("payment.id"), Http::by_body()).unwrap();
    let mut compressed = post("k-1", "");
    *compressed.body_mut() = Body::Binary(vec![0x1f, 0x8b, 8, 0]);
    for (layer, request, line) in [
        (
            &by_header,
            request(Method::POST, "/charges", None, ""),
            "request refused: 400 The request has no",
        ),
        (&by_header, post("a b", ""), "request refused: 400 The idempotency key is not valid"),
        (&by_body, post("k-1", "{}"), "correct the producer or the expression"),
        (&by_body, post("k-1", "no JSON"), "let clients choose the key of each request"),
        (&by_body, compressed, "send JSON that is not compressed"),
    ] {
        let answer = world.answer(layer, request).await;
        assert_eq!((answer.status, answer.kind()), (400, "key"));
        for advice in ["producer", "`record(", "policy", "operation", "expression"] {
            assert!(!answer.body.contains(advice), "{}", answer.body);
        }
        assert!(captured.text().contains(line), "{line}: {}", captured.text());
    }
    drop(guard);
}

#[tokio::test]
async fn a_request_without_a_key_can_run_unprotected() {
    let world = World::new();
    let layer = world.layer(&charges().on_missing_key(OnMissingKey::RunUnprotected));
    for _ in 0..2 {
        let answer = world.answer(&layer, request(Method::POST, "/charges", None, "")).await;
        assert_eq!((answer.status, answer.replayed), (201, false));
    }
    world.answer(&layer, post("k-1", "")).await;
    assert!(
        world.answer(&layer, post("k-1", "")).await.replayed,
        "a request with a key is protected"
    );
}

#[tokio::test]
async fn the_key_can_be_in_another_header() {
    let world = World::new();
    let layer = world
        .layer_with(&charges(), Http::by_header().header(HeaderName::from_static("x-request-id")));
    let sent = || {
        let mut request = request(Method::POST, "/charges", None, "");
        request.headers_mut().insert("x-request-id", "r-1".parse().unwrap());
        request
    };
    world.answer(&layer, sent()).await;
    assert!(world.answer(&layer, sent()).await.replayed);
    assert_eq!(world.answer(&layer, post("k-1", "")).await.status, 400);
}

#[test]
fn a_layer_that_would_not_do_what_it_is_asked_for_is_refused() {
    let idempotency = World::new().idempotency();
    let says = |refused: Result<HttpLayer, ConfigError>, text: &str| {
        let error = refused.unwrap_err().to_string();
        let expected = format!("operation `charges` cannot have its HTTP layer: {text}");
        assert!(error.starts_with(&expected), "{error}");
    };
    says(
        idempotency.http(&charges().key("payment.id"), Http::by_header()),
        "it has a key in the body, which `Http::by_header()` does not read",
    );
    says(
        idempotency.http(&charges(), Http::by_body()),
        "`Http::by_body()` needs the place of the key in the body",
    );
    let powertools =
        charges().key("id").powertools(PowertoolsKeys::python("charge").accept_collisions());
    says(
        idempotency.http(&powertools, Http::by_body().one_key_for_each_path()),
        "`.one_key_for_each_path()` has no effect, because Powertools keys cannot contain a path",
    );
}
