//! EventBridge Pipes: lists of records, answered as their own source expects.

use lambda_idempotency::{
    Function, Operation,
    source::{DynamoDbStream, Kinesis, Pipe, Piped, Sqs},
};
use serde_json::{Value, json};

use crate::{
    support::{FIFO, World, diagnostic, grouped, order, without},
    support_streams::{change, put, sequence},
};

fn piped(world: &World) -> Function {
    piped_from(world, Sqs::new())
}

fn piped_from(world: &World, source: impl Piped) -> Function {
    world.on(Pipe::of(source), &Operation::new("a"))
}

/// A pipe delivers the members of `kinesis` as members of the record.
pub(crate) fn flat(mut record: Value) -> Value {
    let data = record.as_object_mut().unwrap().remove("kinesis").unwrap();
    record.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    record
}

/// A pipe delivers the members of a broker's event as members of each record.
pub(crate) fn from_broker(mut record: Value, source: &str, arn: &str) -> Value {
    record["eventSource"] = source.into();
    record["eventSourceArn"] = arn.into();
    record
}

#[tokio::test]
async fn failed_and_not_started_stream_records_are_named_by_event_id() {
    let world = World::new();
    let list = json!([
        flat(put(1, "a", "a1", "")),
        flat(put(2, "b", "b1", "fail")),
        flat(put(3, "b", "b2", "")),
        flat(put(4, "c", "c1", "fail")),
    ]);
    let named = [2, 3, 4].map(|n| format!("shardId-000000000006:{}", sequence(n)));
    assert_eq!(world.returned(&piped_from(&world, Kinesis::new()), &list).await, named);
    world.ledger.assert_each_once(["a1"]);
    let handler = world.handler();
    let image = move |change: Value, call| handler(change["newImage"].clone(), call);
    let changes = Pipe::of(DynamoDbStream::new());
    let function = world.with_handler(changes, &Operation::new("b"), image);
    let list = json!([change(1, "x", "x1", "fail"), change(2, "y", "y1", "")]);
    assert_eq!(world.returned(&function, &list).await, ["e-1"]);
    world.ledger.assert_each_once(["a1", "y1"]);
}

/// A pipe does not find a record by its sequence number, and would count it as processed.
#[tokio::test]
async fn a_record_of_a_stream_without_an_event_id_fails_the_invocation() {
    let world = World::new();
    let function = piped_from(&world, Kinesis::new());
    let without_id = without(flat(put(2, "b", "b", "fail")), "eventID");
    let list = json!([flat(put(1, "a", "a", "")), without_id]);
    let text = world.fails(&function, &list, "RecordsReturned").await;
    assert!(text.contains("1 of 2 pipe"), "{text}");
    world.ledger.assert_each_once(["a"]);
}

#[tokio::test]
async fn lists_that_are_not_from_a_pipe_are_unknown_events() {
    let world = World::new();
    let function = piped(&world);
    let empty = world.invoke(&function, &json!([])).await.unwrap();
    assert_eq!(empty, json!({ "batchItemFailures": [] }));
    for list in [json!([7]), json!([{ "id": "a" }]), json!([{ "eventSource": "aws:ec2" }])] {
        world.fails(&function, &list, "UnknownEvent").await;
    }
    // If the first record is recognised, one that is not is returned.
    let list = json!([order("m-1", "a", ""), { "id": "b" }]);
    let (_, text) = diagnostic(world.invoke(&function, &list).await.unwrap_err());
    assert!(text.contains("pipe record no. 2 of the batch"), "{text}");
    world.ledger.assert_once("a");
}

/// Without its ARN nothing tells that a queue is a FIFO queue, so the messages of a group wait for each other in any case.
#[tokio::test]
async fn a_queue_whose_arn_was_dropped_keeps_its_order_and_has_no_identity() {
    let world = World::new();
    let of_group = |id, body, action, group| {
        without(grouped(order(id, body, action), FIFO, group), "eventSourceARN")
    };
    let list = json!([
        of_group("m-1", "a", "fail", "g"),
        of_group("m-2", "b", "", "g"),
        of_group("m-3", "c", "", "h"),
    ]);
    let keyed = world.idempotency().on(
        Pipe::of(Sqs::new()),
        &Operation::new("a").key("id"),
        world.handler(),
    );
    assert_eq!(world.returned(&keyed.unwrap(), &list).await, ["m-1", "m-2"]);
    world.ledger.assert_each_once(["c"]);
    let plain = World::new();
    assert_eq!(plain.returned(&piped(&plain), &list).await, ["m-1", "m-2", "m-3"]);
    assert_eq!(plain.ledger.total(), 0);
}

/// A pipe has one source: another one's records are not taken, whatever their form.
#[tokio::test]
async fn a_pipe_takes_no_records_of_another_source() {
    let world = World::new();
    let (kind, text) = diagnostic(
        world.invoke(&piped(&world), &json!([flat(put(1, "k", "x", ""))])).await.unwrap_err(),
    );
    assert_eq!(kind, "Idempotency.UnknownEvent");
    assert!(text.contains("pipe of sqs") && text.contains("aws:kinesis"), "{text}");
    let [a, b] = ["a", "b"].map(Operation::new);
    let both = world.on_both((Pipe::of(Sqs::new()), a), (Pipe::of(Kinesis::new()), b));
    world.invoke(&both, &json!([flat(put(1, "k", "x", ""))])).await.unwrap();
    world.ledger.assert_once("x");
}
