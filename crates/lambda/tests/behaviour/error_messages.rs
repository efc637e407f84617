//! The message of a handler's error is logged only if the user enables it.

use lambda_idempotency::{Call, Failure, Operation, observe::TracingObserver, source::Sqs};
use serde_json::Value;

use crate::{
    secrets_capture::Captured,
    support::{World, batch, order},
};

#[derive(Debug, thiserror::Error)]
#[error("payment declined")]
struct Declined(#[source] std::io::Error);

async fn pay(order: Value, _: Call) -> Result<(), Failure> {
    match order["do"].as_str() {
        Some("panic") => panic!("out of {}", order["id"]),
        _ => Err(Declined(std::io::Error::other("connection reset")).into()),
    }
}

/// The log of one order that fails and one that panics.
async fn logged(observer: TracingObserver) -> String {
    let (world, captured) = (World::new(), Captured::default());
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(observer);
    let function = idempotency.on(Sqs::new(), &Operation::new("pay").key("id"), pay).unwrap();
    let event = batch([order("m-1", "a", ""), order("m-2", "tea", "panic")]);
    assert_eq!(world.returned(&function, &event).await.len(), 2);
    drop(guard);
    captured.text()
}

#[tokio::test]
async fn by_default_only_the_type_is_logged() {
    let log = logged(TracingObserver::new()).await;
    assert!(log.contains("the handler failed with") && log.contains("Declined"), "{log}");
    assert!(log.contains("a panic"), "{log}");
    for part in ["payment declined", "connection reset", "out of", "error_message="] {
        assert!(!log.contains(part), "{log}");
    }
}

#[tokio::test]
async fn if_enabled_messages_of_all_sources_and_of_panics_are_logged() {
    let log = logged(TracingObserver::new().showing_error_messages()).await;
    assert!(log.contains(r#"error_message="payment declined: connection reset""#), "{log}");
    assert!(log.contains(r#"out of \"tea\""#), "{log}");
}
