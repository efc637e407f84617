//! SQS: invalid records do not affect other records.

use lambda_idempotency::{Call, Failure, policy::OnMissingKey, source::Sqs};
use serde_json::{Value, json};

use crate::support::{World, batch, order, place, with_body, without};

#[tokio::test]
async fn without_a_message_id_the_others_are_processed_and_the_invocation_fails() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    for without_id in [without(order("", "a", ""), "messageId"), order("", "a", "")] {
        let event = batch([order("m-1", "b", ""), without_id, order("m-2", "c", "")]);
        let text = world.fails(&function, &event, "RecordsReturned").await;
        assert!(text.contains("1 of 3") && text.contains("messageId"), "{text}");
        assert!(text.contains("no. 2"), "its position is named: {text}");
    }
    world.ledger.assert_each_once(["b", "c"]);
}

#[tokio::test]
async fn records_of_another_format_fail_alone() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let mut odd_body = order("m-1", "a", "");
    odd_body["body"] = json!({ "id": "a" });
    let mut odd_attributes = order("m-2", "b", "");
    odd_attributes["attributes"] = json!("none");
    let mut odd_queue = order("m-4", "d", "");
    odd_queue["eventSourceARN"] = json!(7);
    let event = batch([
        order("m-0", "z", ""),
        odd_body,
        odd_attributes,
        without(order("m-3", "c", ""), "body"),
        odd_queue,
        without(order("m-5", "e", ""), "attributes"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-3"]);
    world.ledger.assert_each_once(["z", "b", "d", "e"]);
}

/// Bodies in which `id` has no value that could be a key.
const NO_KEY: [&str; 6] =
    ["{}", "null", r#"{"id":null}"#, r#"{"id":""}"#, r#"{"id":[]}"#, r#"{"id":{}}"#];

async fn without_key(policy: Option<OnMissingKey>) -> (World, Vec<String>) {
    let world = World::new();
    let operation = policy.map_or_else(place, |policy| place().on_missing_key(policy));
    let function = world.on(Sqs::new(), &operation);
    let records = NO_KEY.iter().enumerate().map(|(at, body)| with_body(&format!("m-{at}"), body));
    let returned = world.returned(&function, &batch(records)).await;
    (world, returned)
}

#[tokio::test]
async fn a_record_without_a_key_is_returned_by_default() {
    for policy in [None, Some(OnMissingKey::Return)] {
        let (world, returned) = without_key(policy).await;
        assert_eq!(returned, ["m-0", "m-1", "m-2", "m-3", "m-4", "m-5"]);
        assert_eq!(world.ledger.total(), 0);
    }
}

#[tokio::test]
async fn a_record_without_a_key_can_run_unprotected() {
    let (world, returned) = without_key(Some(OnMissingKey::RunUnprotected)).await;
    assert!(returned.is_empty());
    assert_eq!(world.ledger.total(), NO_KEY.len());
    assert!(world.store.inner().is_empty());
}

/// The policy is for missing keys, not for keys that cannot be used.
#[tokio::test]
async fn no_policy_for_missing_keys_accepts_an_ambiguous_key() {
    let world = World::new();
    let operation = place().on_missing_key(OnMissingKey::RunUnprotected);
    let function = world.on(Sqs::new(), &operation);
    let event = batch([
        with_body("m-1", r#"{"id":0.1000000000000000055}"#),
        with_body("m-2", r#"{"id":9007199254740993.0}"#),
        with_body("m-3", "not JSON"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-2", "m-3"]);
    assert_eq!(world.ledger.total(), 0);
}

/// A handler may also panic before it returns its future.
#[tokio::test]
async fn a_panic_outside_the_future_fails_only_its_message() {
    let world = World::new();
    let handler = |payload: Value, _| {
        assert!(payload["id"] != "a", "not this one");
        std::future::ready(Ok::<_, std::io::Error>(()))
    };
    let function = world.with_handler(Sqs::new(), &place(), handler);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
}

/// A type whose `Deserialize` panics for the order `boom`.
struct Panicking;

impl<'de> serde::Deserialize<'de> for Panicking {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let order = Value::deserialize(deserializer)?;
        assert_ne!(order["id"], "boom", "deliberate");
        Ok(Self)
    }
}

#[tokio::test]
async fn a_type_that_panics_while_it_is_decoded_fails_its_record_alone() {
    let world = World::new();
    let handler = |_: Panicking, _: Call| async { Ok::<_, Failure>(()) };
    let function = world.with_handler(Sqs::new(), &place(), handler);
    let event = batch([order("m-1", "a", ""), order("m-2", "boom", ""), order("m-3", "c", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
}
