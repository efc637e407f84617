//! The source of the key, and the answers to requests without a valid one.

use std::time::Duration;

use lambda_http::http::{HeaderName, Method};
use lambda_idempotency::{
    ConfigError, Failure, Idempotency, MemoryStore, OnConflict, OnMissingKey, Operation,
    observe::TracingObserver,
    powertools::PowertoolsKeys,
    record,
    source::{AfterFailure, Envelope, KeepOrder},
};

use crate::{
    secrets_capture::Captured,
    support::{World, charges, post, request},
};

#[tokio::test]
async fn a_request_without_a_key_gets_a_problem_that_names_the_header() {
    let world = World::new();
    let layer = world.layer(&charges());
    for method in [Method::POST, Method::PATCH] {
        let answer = world.answer(&layer, request(method, "/charges", None, "s3cr3t")).await;
        assert_eq!((answer.status, answer.kind()), (400, "key"));
        assert!(answer.body.contains("idempotency-key") && !answer.body.contains("s3cr3t"));
    }
    assert_eq!(world.calls(), 0);
}

#[tokio::test]
async fn an_invalid_header_is_refused_and_not_quoted() {
    let world = World::new();
    let layer = world.layer(&charges());
    for value in ["", "\"s3cr3t", "s3cr3t s3cr3t", &"s3cr3t".repeat(50)] {
        let answer = world.answer(&layer, post(value, "")).await;
        assert_eq!((answer.status, answer.kind()), (400, "key"), "{value}");
        assert!(!answer.body.contains("s3cr3t"), "{}", answer.body);
    }
    assert_eq!(world.calls(), 0);
}

/// Requests have no envelopes, filters or batches, and a client must not get a success for a request
/// that was skipped because it has no key.
#[test]
fn a_setting_without_an_effect_is_refused() {
    type Set = fn(Operation) -> Operation;
    let settings: [(&str, Set); 11] = [
        ("queue", |o| o.queue("orders")),
        ("detail_type", |o| o.detail_type("Placed")),
        ("order", |o| o.order(KeepOrder::Key)),
        ("after_failure", |o| o.after_failure(AfterFailure::Batch)),
        ("concurrency", |o| o.concurrency(1)),
        ("envelope", |o| o.envelope(Envelope::Sns)),
        ("whole_record", Operation::whole_record),
        ("on_bad_record", |o| o.on_bad_record(OnBadRecord::divert(async |_| Ok::<_, Failure>(())))),
        ("on_busy", |o| o.on_busy(async |_| ())),
        ("on_permanent_failure", |o| o.on_permanent_failure(OnPermanentFailure::Acknowledge)),
        ("on_missing_key", |o| o.on_missing_key(OnMissingKey::Skip)),
    ];
    let idempotency = Idempotency::new(MemoryStore::new());
    for (setting, set) in settings {
        let error = idempotency.http(set(charges())).expect_err(setting);
        let ConfigError::Misplaced { setting: found, .. } = &error else { panic!("{error}") };
        assert_eq!(*found, setting);
        assert!(error.to_string().contains("`.http(..)`"), "{error}");
    }
    for operation in [
        charges().retention(Duration::from_hours(1)).on_conflict(OnConflict::Skip),
        charges()
            .fingerprint("amount")
            .max_failed_attempts(2)
            .on_missing_key(OnMissingKey::RunUnprotected),
    ] {
        let _ = Idempotency::new(MemoryStore::new()).http(operation).unwrap();
    }
}

/// Each request would be refused.
#[test]
fn powertools_keys_that_cannot_contain_the_caller_are_refused_when_the_layer_is_built() {
    let keys = PowertoolsKeys::python("charge");
    let http =
        |keys| Idempotency::new(MemoryStore::new()).http(charges().key("id").powertools(keys));
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
    let by_header = idempotency.http(charges()).unwrap();
    let by_body = idempotency.http(Operation::new("by-body").key("payment.id")).unwrap();
    for (layer, request, line) in [
        (
            &by_header,
            request(Method::POST, "/charges", None, ""),
            "request refused: 400 The request has no",
        ),
        (&by_header, post("a b", ""), "request refused: 400 The idempotency key is not valid"),
        (&by_body, post("k-1", "{}"), "correct the producer or the expression"),
        (&by_body, post("k-1", "no JSON"), "take the key from the raw record"),
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

/// A request has no record around its body: such an expression would search the body for headers.
#[test]
fn a_record_expression_is_refused() {
    let idempotency = Idempotency::new(MemoryStore::new());
    let powertools = PowertoolsKeys::python("charge");
    for (operation, what) in [
        (charges().key(record("headers.\"x-order-id\"")), "key"),
        (charges().key("id").fingerprint(record("headers.tenant")), "fingerprint"),
        (charges().key(record("id")).powertools(powertools.clone()), "key"),
        (charges().key("id").fingerprint(record("amount")).powertools(powertools), "fingerprint"),
    ] {
        let error = idempotency.http(operation).expect_err(what);
        let ConfigError::NoRecord { what: found, .. } = &error else { panic!("{error}") };
        assert_eq!(found.to_string(), what);
        assert!(error.to_string().contains("`.http(..)`"), "{error}");
    }
}

#[tokio::test]
async fn a_key_with_and_without_quotes_is_the_same() {
    let world = World::new();
    let layer = world.layer(&charges());
    world.answer(&layer, post("\"k-1\"", "")).await;
    assert!(world.answer(&layer, post("k-1", "")).await.replayed);
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
    let layer = world.layer(&charges()).header(HeaderName::from_static("x-request-id")).unwrap();
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
fn settings_of_the_layer_that_have_no_effect_are_refused() {
    let world = World::new();
    let says = |error: ConfigError, text: &str| {
        assert_eq!(
            error.to_string(),
            format!(
                "operation `charges` has an HTTP layer with a setting that cannot be used: {text}"
            )
        );
    };
    let in_body = world.layer(&charges().key("payment.id"));
    says(
        in_body.header(HeaderName::from_static("x-request-id")).unwrap_err(),
        "`.header(..)` has no effect, because the operation takes its key from the body; remove it, \
         or the operation's `.key(..)`",
    );
    says(
        world.layer(&charges()).one_key_for_each_path().unwrap_err(),
        "`.one_key_for_each_path(..)` has no effect, because clients choose the keys in the header, \
         and choose another key for another path; remove it, or take the key from the body with the \
         operation's `.key(..)`",
    );
    let powertools =
        charges().key("id").powertools(PowertoolsKeys::python("charge").accept_collisions());
    says(
        world.layer(&powertools).one_key_for_each_path().unwrap_err(),
        "`.one_key_for_each_path(..)` has no effect, because Powertools keys cannot contain a path; \
         remove it, or `.powertools(..)`",
    );
    says(
        world.layer(&charges()).methods([]).unwrap_err(),
        "`.methods(..)` names no method, so no request would be deduplicated; name one, or leave \
         the layer out",
    );
}

#[tokio::test]
async fn the_key_can_be_in_the_body() {
    let world = World::new();
    let layer = world.layer(&Operation::new("charges").key("payment.id"));
    let sent = |body: &str| request(Method::POST, "/charges", None, body);
    world.answer(&layer, sent(r#"{"payment":{"id":"p-1"}}"#)).await;
    assert!(world.answer(&layer, sent(r#"{"payment":{"id":"p-1"}}"#)).await.replayed);
    let changed = world.answer(&layer, sent(r#"{"payment":{"id":"p-1"},"x":1}"#)).await;
    assert_eq!(changed.status, 422, "the whole body is compared");
    for body in ["{}", "not JSON"] {
        assert_eq!(world.answer(&layer, sent(body)).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn a_key_from_the_body_ignores_the_header() {
    let world = World::new();
    let layer = world.layer(&Operation::new("charges").key("payment.id"));
    let body = r#"{"payment":{"id":"p-1"}}"#;
    assert_eq!(world.answer(&layer, post("not a key", body)).await.status, 201);
    assert!(world.answer(&layer, request(Method::POST, "/charges", None, body)).await.replayed);
}
