//! Inspection shows the records and keys of an event without processing it.

use lambda_idempotency::{
    Operation,
    error::Rejection,
    keys::{
        inspect::{self, AnySource, InspectError, NoKey},
        payload,
    },
    policy::OnMissingKey,
    source::Envelope,
};
use lambda_runtime::Context;
use serde_json::json;

use crate::support::{FIFO, batch, bus_event, grouped, order, with_body};

#[test]
fn without_an_operation_records_are_shown_as_delivered() {
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
fn a_selection_is_shown_and_a_refusal_has_its_reason() {
    let event = batch([with_body("m-1", r#"{"id":7,"b":[1]}"#), with_body("m-2", "not JSON")]);
    let by_both = Operation::new("place").key("[id, b]");
    let records = inspect::event(&event.to_string(), Some(&by_both)).unwrap();
    assert_eq!(records[0].key.as_ref().unwrap().selected.as_deref(), Some("[7,[1]]"));
    let refused = records[1].key.as_ref().unwrap();
    assert!(matches!(refused.key, Err(NoKey::Refused(Rejection::Payload(_)))), "{refused:?}");

    let event = batch([with_body("m-1", "{}")]).to_string();
    let by_id = Operation::new("place").key("id");
    let unprotected = by_id.on_missing_key(OnMissingKey::RunUnprotected);
    let records = inspect::event(&event, Some(&unprotected)).unwrap();
    assert_eq!(records[0].key.as_ref().unwrap().key, Err(NoKey::Unprotected));
}

#[test]
fn key_parts_are_shown_by_name_and_fingerprints_as_hashes() {
    let event = batch([
        with_body("m-1", r#"{"id":7,"amount":5}"#),
        with_body("m-2", r#"{"id":7,"amount":6,"by":"ann"}"#),
        with_body("m-3", r#"{"id":7}"#),
    ])
    .to_string();
    let operation = Operation::new("charge");
    let listed = operation.clone().key(payload("[id, by]").optional(["by"])).fingerprint("amount");
    let named = operation.key(payload("{who: by, what: id}").optional(["who"]));
    let records = inspect::event(&event, Some(&listed)).unwrap();
    let [one, two, three] = [0, 1, 2].map(|at| records[at].key.as_ref().unwrap());
    let part = |name: &str, value| (name.to_owned(), value);
    assert_eq!(one.parts, [part("id", json!(7)), part("by", json!(null))]);
    assert_eq!(one.selected.as_deref(), Some("[7,~]"));
    assert_eq!(two.parts, [part("id", json!(7)), part("by", json!("ann"))]);
    assert_eq!(one.path, Some("[id, by]".into()));
    assert!(one.fingerprint.is_some() && one.fingerprint != two.fingerprint);
    assert!(matches!(three.key, Err(NoKey::Refused(Rejection::Fingerprint { .. }))), "{three:?}");

    let records = inspect::event(&event, Some(&named)).unwrap();
    let parts = &records[1].key.as_ref().unwrap().parts;
    assert_eq!(*parts, [part("who", json!("ann")), part("what", json!(7))]);
}

#[test]
fn request_id_and_tenant_are_part_of_some_keys() {
    let operation = Operation::new("place");
    let key = |event: &str, context: &Context| {
        let records =
            inspect::invocation(event, &AnySource::new(), Some(&operation), context).unwrap();
        records[0].key.as_ref().unwrap().key.clone()
    };
    let mut context = Context::default();
    assert!(matches!(key("{}", &context), Err(NoKey::Refused(Rejection::NoRequestId))));
    context.request_id = "r-1".to_owned();
    let first = key("{}", &context).unwrap();
    assert_eq!(
        key("{}", &context),
        Ok(first.clone()),
        "Lambda tries again with the same request id"
    );
    context.tenant_id = Some("acme".to_owned());
    assert_ne!(key("{}", &context), Ok(first), "tenants do not share keys");
}

#[test]
fn inspection_checks_an_operation_as_a_start_does() {
    let source = AnySource::new();
    assert_eq!(inspect::check(&source, &Operation::new("place")), Ok(()));
    assert!(inspect::check(&source, &Operation::new("place").key("[")).is_err());
}

#[test]
fn inspection_reads_envelopes_as_functions_do() {
    let body = json!({ "MessageId": "n-1", "TopicArn": "t", "Message": "hello" }).to_string();
    let event = batch([with_body("m-1", &body)]).to_string();
    let (inside, place) = (AnySource::new().envelope(Envelope::Sns), Operation::new("place"));
    let records = inspect::invocation(&event, &inside, Some(&place), &Context::default()).unwrap();
    assert_eq!(records[0].payload.as_deref(), Ok("hello"));
    assert_eq!(records[0].identity.as_deref().unwrap(), ["sns", "t", "n-1"]);
    assert_eq!(records[0].id, "m-1", "the id of the message that is returned");
    assert_eq!(
        records[0].identity_parts, "topic ARN, MessageId",
        "the parts of the identity are those of the notification"
    );
    let body = bus_event("e-1", "Placed", &json!({})).to_string();
    let event = batch([with_body("m-1", &body)]).to_string();
    let inside = AnySource::new().envelope(Envelope::EventBridge);
    let records = inspect::invocation(&event, &inside, Some(&place), &Context::default()).unwrap();
    let identity = records[0].identity.as_deref().unwrap();
    assert_eq!(identity, ["eventbridge", "111122223333", "eu-west-1", "shop", "e-1"]);
}

#[test]
fn inspection_errors_name_the_cause_without_the_payload() {
    let error = inspect::event("{s3cr3t", None).unwrap_err();
    assert_eq!(error, InspectError::Json { line: 1, column: 2 });
    assert!(!error.to_string().contains("s3cr3t"));
    let mistaken = Operation::new("place").key("[");
    assert!(matches!(inspect::event("{}", Some(&mistaken)), Err(InspectError::Config(_))));
}
