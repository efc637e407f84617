//! Bad records can be diverted, so that they do not block other records.

use lambda_idempotency::{
    Operation,
    error::Rejection,
    source::{DivertReason, Kinesis, Sqs},
};
use serde_json::{Value, json};

use crate::{
    diverting_failures::Taken,
    support::{World, batch, ids, order, with_body, without},
    support_streams::{put, with_data},
};

type IsExpected = fn(&Rejection) -> bool;

/// Bad records of each kind, with the expected rejection.
fn bad() -> Vec<(Value, IsExpected)> {
    vec![
        (with_data(2, "a", "not JSON"), |why| matches!(why, Rejection::Payload(_))),
        (with_data(3, "a", r#"{"id":null}"#), |why| matches!(why, Rejection::Key { .. })),
        (with_data(4, "a", [0xff]), |why| matches!(why, Rejection::NotText(_))),
        (with_data(5, "a", r#"{"id":7,"n":"x"}"#), |why| matches!(why, Rejection::Decode { .. })),
    ]
}

#[derive(serde::Deserialize)]
struct Order {
    id: Value,
    #[serde(default)]
    #[expect(dead_code, reason = "a record with a string here does not fit the type")]
    n: u32,
}

fn function(world: &World, taken: &Taken) -> lambda_idempotency::Function {
    let handler = world.handler();
    let typed = move |order: Order, call| handler(json!({ "id": order.id }), call);
    let operation = Operation::new("index").key("id");
    world.with_handler(Kinesis::new().divert_bad_records(taken.sink()), &operation, typed)
}

#[tokio::test]
async fn a_bad_record_is_diverted_and_the_shard_continues() {
    let world = World::new();
    let taken = Taken::default();
    let function = function(&world, &taken);
    let records = bad();
    let mut event = vec![put(1, "a", "a", "")];
    event.extend(records.iter().map(|(record, _)| record.clone()));
    event.push(put(6, "a", "b", ""));
    for _ in 0..2 {
        let answer = world.invoke(&function, &batch(event.clone())).await.unwrap();
        assert!(ids(&answer).is_empty(), "{answer}");
    }
    world.ledger.assert_each_once(["a", "b"]);
    assert_eq!(world.store.inner().len(), 2, "bad records need no store");
    let diverted = taken.records();
    assert_eq!(diverted.len(), 2 * records.len(), "at each delivery,");
    assert_eq!(taken.ids(), records.len(), "with the same ids");
    for (found, (record, is_expected)) in diverted.iter().zip(records.iter().cycle()) {
        assert_eq!(serde_json::from_str::<Value>(&found.raw).unwrap(), *record);
        let DivertReason::BadRecord(why) = &found.reason else { panic!("{found:?}") };
        assert!(is_expected(&Rejection::from(why.clone())), "{why:?}");
        assert_eq!((&*found.operation, found.record.source), ("index", "kinesis"));
    }
}

/// Copies of a message have one key or identity and one content.
#[tokio::test]
async fn copies_in_an_event_are_diverted_together() {
    let (world, taken) = (World::new(), Taken::default());
    let operation = Operation::new("index").key("id");
    let function = world.on(Sqs::new().divert(taken.sink()), &operation);
    let event = batch([
        with_body("m-1", "not JSON"),
        order("m-2", "a", "give up"),
        with_body("m-1", "not JSON"),
        order("m-3", "a", "give up"),
    ]);
    taken.refuse(1);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!((taken.records().len(), taken.ids()), (3, 2));
}

/// On a queue, even a message that the answer could not name can be diverted.
#[tokio::test]
async fn a_message_without_an_id_can_be_diverted() {
    let world = World::new();
    let taken = Taken::default();
    let operation = Operation::new("index").key("id");
    let function = world.on(Sqs::new().divert_bad_records(taken.sink()), &operation);
    let event = batch([
        order("m-1", "a", ""),
        without(order("m-2", "b", ""), "messageId"),
        with_body("m-3", "not JSON"),
        order("m-4", "d", "fail"),
        with_body("m-5", "not JSON"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-4"], "a failure is not a bad record");
    assert_eq!(taken.records().len(), 3, "also the second one with the same body");
    world.ledger.assert_each_once(["a"]);
}
