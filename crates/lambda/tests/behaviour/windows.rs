//! Tumbling windows of streams: the function returns the state unchanged.

use lambda_idempotency::{
    Operation,
    source::{DynamoDbStream, Kinesis, Sqs},
};
use serde_json::{Value, json};

use crate::{
    support::{World, batch},
    support_streams::{STREAM, TABLE_STREAM, change, put, sequence},
};

fn windowed(mut event: Value, arn: &str, last: bool) -> Value {
    let more = json!({
        "window": { "start": "2026-12-09T07:04:00Z", "end": "2026-12-09T07:06:00Z" },
        "state": { "1": 282, "2": "715" },
        "shardId": "shardId-000000000006",
        "eventSourceARN": arn,
        "isFinalInvokeForWindow": last,
        "isWindowTerminatedEarly": false,
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

#[tokio::test]
async fn the_state_is_returned_unchanged() {
    let world = World::new();
    let function = world.on(Kinesis::new(), &Operation::new("sum").key("id"));
    let event = windowed(batch([put(1, "a", "a", ""), put(2, "b", "b", "fail")]), STREAM, false);
    let answer = world.invoke(&function, &event).await.unwrap();
    let failures = json!([{ "itemIdentifier": sequence(2) }]);
    let expected = json!({ "state": { "1": 282, "2": "715" }, "batchItemFailures": failures });
    assert_eq!(answer, expected);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn the_end_of_a_window_has_no_records_and_calls_no_handler() {
    let world = World::new();
    let (sums, counts) = (Operation::new("sum").key("id"), Operation::new("count"));
    let function = world.on_both((Kinesis::new(), sums), (DynamoDbStream::new(), counts));
    for arn in [STREAM, TABLE_STREAM] {
        let event = windowed(batch([]), arn, true);
        let answer = world.invoke(&function, &event).await.unwrap();
        let expected = json!({ "state": { "1": 282, "2": "715" }, "batchItemFailures": [] });
        assert_eq!(answer, expected);
    }
    assert!(world.store.history().is_empty(), "no request to the store");
    let change = windowed(batch([change(1, "a", "a", "")]), TABLE_STREAM, false);
    assert_eq!(world.invoke(&function, &change).await.unwrap()["batchItemFailures"], json!([]));
}

/// An empty batch has no records, so only the ARN of the event names its stream.
#[tokio::test]
async fn the_end_of_a_window_goes_to_its_own_stream() {
    let world = World::new();
    let [a, b] = ["a", "b"].map(Operation::new);
    let function = world.on_both((Kinesis::new().stream("other"), a), (Sqs::new(), b));
    assert!(world.invoke(&function, &windowed(batch([]), STREAM, true)).await.is_err());
}
