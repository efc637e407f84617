//! Events can be looked at without being processed.

use lambda_idempotency::{
    Envelope, MissingKey, Operation, Rejection,
    inspect::{self, InspectError, NoKey},
};
use serde_json::json;

use crate::{
    support::{FIFO, World, batch, grouped, notification, order, with_body},
    support_streams::{message, topic},
};

#[tokio::test]
async fn the_key_is_the_one_that_a_function_claims() {
    let world = World::new();
    for operation in [Operation::new("place"), Operation::new("place").key("[id, do]")] {
        let function = world.idempotency().sqs(operation.clone(), world.handler()).unwrap();
        let event = batch([order("m-1", "a", "x")]);
        world.invoke(&function, &event).await.unwrap();
        let records = inspect::event(&event.to_string(), Some(&operation)).unwrap();
        let key = records[0].key.as_ref().unwrap().key.as_ref().unwrap();
        let claimed = world.store.history();
        assert!(format!("{claimed:?}").contains(key.as_str()), "{claimed:?}");
    }
}

#[test]
fn without_an_operation_records_are_as_they_are_delivered() {
    let event = batch([grouped(order("m-1", "a", ""), FIFO, "g")]).to_string();
    let records = inspect::event(&event, None).unwrap();
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!((record.source, &*record.id, record.arn.as_deref()), ("sqs", "m-1", Some(FIFO)));
    assert_eq!(record.payload.as_deref().unwrap(), r#"{"do":"","id":"a"}"#);
    assert_eq!(record.identity.as_deref().unwrap(), ["sqs", FIFO, "m-1"]);
    assert_eq!(record.group.as_deref(), Some("g"));
    assert!(record.misses.contains("dead-letter") && !record.catches.is_empty());
    assert!(record.key.is_none());
}

#[test]
fn a_selection_is_shown_and_a_refusal_says_why() {
    let event = batch([with_body("m-1", r#"{"id":7,"b":[1]}"#), with_body("m-2", "no JSON")]);
    let by_both = Operation::new("place").key("[id, b]");
    let records = inspect::event(&event.to_string(), Some(&by_both)).unwrap();
    assert_eq!(records[0].key.as_ref().unwrap().selected.as_deref(), Some("[7,[1]]"));
    let refused = records[1].key.as_ref().unwrap();
    assert!(matches!(refused.key, Err(NoKey::Refused(Rejection::Payload(_)))), "{refused:?}");

    let event = batch([with_body("m-1", "{}")]).to_string();
    for (policy, reason) in
        [(MissingKey::RunUnprotected, NoKey::Unprotected), (MissingKey::Skip, NoKey::Skipped)]
    {
        let operation = Operation::new("place").key("id").on_missing_key(policy);
        let records = inspect::event(&event, Some(&operation)).unwrap();
        assert_eq!(records[0].key.as_ref().unwrap().key, Err(reason));
    }
}

#[test]
fn every_kind_of_event_is_known() {
    for (event, source) in [
        (notification("n-1", "m"), "sns"),
        (topic([message(0, 1, "a", "")]), "kafka"),
        (json!([order("m-1", "a", "")]), "pipe"),
        (json!({ "orderId": "o-1" }), "invoke"),
    ] {
        let records = inspect::event(&event.to_string(), None).unwrap();
        assert_eq!(records[0].source, source);
    }
    let records = inspect::event("7", None).unwrap();
    assert!(matches!(records[0].identity, Err(Rejection::NoIdentity(_))), "it has no request");
}

#[test]
fn envelopes_are_taken_off_as_a_function_does() {
    let body = json!({ "MessageId": "n-1", "TopicArn": "t", "Message": "hello" }).to_string();
    let event = batch([with_body("m-1", &body)]).to_string();
    let inside = Operation::new("place").envelope(Envelope::Sns);
    let records = inspect::event(&event, Some(&inside)).unwrap();
    assert_eq!(records[0].payload.as_deref(), Ok("hello"));
    assert_eq!(records[0].identity.as_deref().unwrap(), ["sns", "t", "n-1"]);
    assert_eq!(records[0].id, "m-1", "it is still this message that goes back");
}

#[test]
fn what_cannot_be_looked_at_says_why() {
    let error = inspect::event("{s3cr3t", None).unwrap_err();
    assert_eq!(error, InspectError::Json { line: 1, column: 2 });
    assert!(!error.to_string().contains("s3cr3t"));
    let mistaken = Operation::new("place").key("[");
    assert!(matches!(inspect::event("{}", Some(&mistaken)), Err(InspectError::Config(_))));
}
