//! Inspection shows the key of a request without processing it.

use lambda_http::tower::{ServiceExt as _, service_fn};
use lambda_http::{Adapter, http::HeaderName, request::LambdaRequest, tower::Layer as _};
use lambda_idempotency::{
    Operation,
    error::Rejection,
    http::{Http, HttpLayer},
    keys::{
        inspect::{InspectError, NoKey},
        powertools::PowertoolsKeys,
    },
    policy::OnMissingKey,
};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};

use crate::support::{World, charges};

/// A request to a load balancer.
fn event(method: &str, key: Option<&str>, body: &str) -> Value {
    let mut event = json!({
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:1:a" } },
        "httpMethod": method, "path": "/charges", "queryStringParameters": {},
        "headers": { "host": "lb.example.com", "authorization": "Bearer s3cr3t" },
        "body": body, "isBase64Encoded": false,
    });
    if let Some(key) = key {
        event["headers"]["idempotency-key"] = key.into();
    }
    event
}

/// Inspects the event and handles it; the store must get the inspected key and fingerprint.
async fn is_the_key_that_is_claimed(operation: Operation, event: Value) {
    let world = World::instant();
    let layer = world.layer(&operation);
    let record = layer.inspect(&event.to_string(), &Context::default()).unwrap().unwrap();
    let request: LambdaRequest = serde_json::from_value(event).unwrap();
    let handler = {
        let world = world.clone();
        service_fn(move |request| world.handle(request))
    };
    let event = LambdaEvent::new(request, Context::default());
    Adapter::from(layer.layer(handler)).oneshot(event).await.unwrap();
    let claimed = format!("{:?}", world.store.history());
    let inspected = record.key.unwrap();
    let key = inspected.key.unwrap();
    assert!(claimed.contains(key.as_str()), "{claimed}");
    let fingerprint = inspected.fingerprint.unwrap();
    assert!(claimed.contains(fingerprint.as_str()), "{claimed}");
}

#[tokio::test]
async fn the_inspected_key_and_fingerprint_are_those_that_are_claimed() {
    is_the_key_that_is_claimed(charges(), event("POST", Some("k-1"), "EUR 5.00")).await;
    let by_body = charges().key("payment.id").fingerprint("amount");
    let body = r#"{"payment":{"id":"p-1"},"amount":5}"#;
    is_the_key_that_is_claimed(by_body, event("POST", None, body)).await;
    // Powertools keys are made from the body, too; callers then share them.
    let shared = PowertoolsKeys::python("charges").accept_collisions();
    let by_body = charges().key("payment.id").powertools(shared);
    is_the_key_that_is_claimed(by_body, event("POST", None, body)).await;
}

#[test]
fn inspection_shows_caller_and_key_without_the_credential() {
    let layer = World::new().layer(&charges());
    let text = event("POST", Some("\"k-1\""), "EUR 5.00").to_string();
    let record = layer.inspect(&text, &Context::default()).unwrap().unwrap();
    let identity = record.identity.unwrap();
    assert_eq!((identity.len(), &*identity[2]), (3, "k-1"));
    assert!(identity[1].starts_with("caller ") && identity[1] != "caller unknown", "{identity:?}");
    assert!(!identity.concat().contains("s3cr3t"));
    assert_eq!(record.payload.as_deref(), Ok("EUR 5.00"));
}

#[test]
fn inspection_of_a_request_without_a_key_shows_the_problem() {
    let inspect = |operation: &Operation, event: &Value| {
        let layer = World::new().layer(operation);
        let record = layer.inspect(&event.to_string(), &Context::default()).unwrap().unwrap();
        record.key.unwrap().key.unwrap_err()
    };
    let none = event("POST", None, "");
    let reason = inspect(&charges(), &none).to_string();
    assert!(reason.contains("400") && reason.contains("`idempotency-key`"), "{reason}");
    let reason = inspect(&charges(), &event("POST", Some("a b"), "")).to_string();
    assert!(reason.contains("is not a valid key") && !reason.contains("a b"), "{reason}");
    let unprotected = charges().on_missing_key(OnMissingKey::RunUnprotected);
    assert_eq!(inspect(&unprotected, &none), NoKey::Unprotected);
    let get = inspect(&charges(), &event("GET", Some("k-1"), ""));
    assert_eq!(get, NoKey::PassesBy("GET".to_owned()));
    let refused = inspect(&charges().key("id"), &event("POST", None, "{}"));
    assert!(matches!(refused, NoKey::Refused(Rejection::Key { .. })), "{refused:?}");
}

#[test]
fn inspection_of_a_request_without_a_caller_shows_the_remedy() {
    let layer = World::new().layer(&charges());
    let mut anonymous = event("POST", Some("k-1"), "");
    anonymous["headers"].as_object_mut().unwrap().remove("authorization");
    let inspect = |layer: &HttpLayer| {
        let record = layer.inspect(&anonymous.to_string(), &Context::default());
        record.unwrap().unwrap().key.unwrap().key
    };
    let reason = inspect(&layer).unwrap_err().to_string();
    assert!(reason.contains("403") && reason.contains("`.caller(..)`"), "{reason}");
    let shared = Http::by_header().all_callers_are_one();
    assert!(inspect(&World::new().layer_with(&charges(), shared)).is_ok());
}

#[test]
fn inspection_uses_the_settings_of_the_layer() {
    let layer = World::new()
        .layer_with(&charges(), Http::by_header().header(HeaderName::from_static("x-key")));
    let mut asked = event("POST", None, "");
    asked["headers"]["x-key"] = "k-1".into();
    let record = layer.inspect(&asked.to_string(), &Context::default()).unwrap().unwrap();
    assert!(record.key.unwrap().key.is_ok());
}

#[test]
fn inspection_returns_none_for_other_events() {
    let layer = World::new().layer(&charges());
    for other in ["{}", "7", r#"{"Records":[]}"#, r#"{"requestContext":7}"#] {
        assert!(layer.inspect(other, &Context::default()).unwrap().is_none(), "{other}");
    }
    assert!(layer.inspect("{", &Context::default()).is_err());
    let mut invalid = event("POST", Some("k-1"), "");
    invalid["headers"]["host"] = "<no host>".into();
    let invalid = layer.inspect(&invalid.to_string(), &Context::default());
    assert_eq!(invalid.unwrap_err(), InspectError::Request, "`lambda_http` panics on this host");
}
