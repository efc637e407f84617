//! Streams of Kinesis, DynamoDB and DocumentDB: order by key, and a checkpoint for records that are returned.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use lambda_idempotency::{
    Function, Operation,
    keys::{
        inspect::{self, AnySource},
        record,
    },
    source::{DynamoDbStream, KeepOrder, Kinesis, Pipe},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    pipes::flat,
    support::{World, batch, diagnostic, ids},
    support_streams::{change, collection, document, put, sequence, with_data},
};

fn index() -> Operation {
    Operation::new("index")
}

/// Makes a record from a number, a partition key, an order's id and the handler's action.
type MakeRecord = fn(u32, &str, &str, &str) -> Value;

/// Functions of both kinds of stream, with handlers that do what the payload says.
fn streams(world: &World, operation: &Operation) -> [(Function, MakeRecord); 2] {
    let (kinesis, dynamodb) = (Kinesis::new(), DynamoDbStream::new());
    let handler = world.handler();
    let image = move |change: Value, call| handler(change["newImage"].clone(), call);
    // A process refuses two handlers for one name, so each function has its own process.
    let kinesis = world.idempotency().on(kinesis, operation, world.handler());
    let dynamodb = world.idempotency().on(dynamodb, operation, image);
    [(kinesis.unwrap(), put), (dynamodb.unwrap(), change)]
}

/// Each key keeps its order, and other keys continue. The checkpoint is the first failed record; the
/// answer also names each later one that failed or was not started.
#[tokio::test]
async fn the_checkpoint_is_the_first_failure_and_other_keys_continue() {
    for at in [0, 1] {
        let world = World::new();
        let (function, record) = &streams(&world, &index())[at];
        let event = batch([
            record(1, "a", "a1", ""),
            record(2, "b", "b1", "fail once"),
            record(3, "a", "a2", "fail once"),
            record(4, "b", "b2", ""),
            record(5, "c", "c1", ""),
            record(6, "a", "a3", ""),
        ]);
        assert_eq!(world.returned(function, &event).await, [2, 3, 4, 6].map(sequence));
        world.ledger.assert_each_once(["a1", "c1"]);
        assert_eq!(world.ledger.total(), 2, "nothing of a key is started after its failure");

        // Lambda delivers again from the checkpoint on; processed records are replayed.
        let rest = batch(event["Records"].as_array().unwrap()[1..].iter().cloned());
        assert!(world.returned(function, &rest).await.is_empty());
        world.ledger.assert_each_once(["a1", "a2", "a3", "b1", "b2", "c1"]);
    }
}

/// All returned records are named, so the source can take the lowest number even if the numbers are not
/// in order.
#[tokio::test]
async fn no_record_is_lost_if_sequence_numbers_are_not_in_order() {
    let world = World::new();
    let function = world.on(Kinesis::new(), &index());
    let event = batch([
        put(20, "a", "1", "fail"),
        put(30, "b", "2", "fail"),
        put(3, "c", "3", "fail"),
        put(10, "d", "4", "fail"),
    ]);
    assert_eq!(world.returned(&function, &event).await, [20, 30, 3, 10].map(sequence));
}

#[tokio::test]
async fn a_bad_record_is_a_checkpoint_and_the_others_are_processed() {
    let world = World::new();
    let function = world.on(Kinesis::new(), &index().key("id"));
    let mut no_data = put(3, "c", "", "");
    no_data["kinesis"].as_object_mut().unwrap().remove("data");
    for bad in [
        with_data(3, "c", "not JSON"),
        with_data(3, "c", [0xff, 0xfe]),
        with_data(3, "c", r#"{"id":null}"#),
        with_data(3, "c", "[]"),
        no_data,
    ] {
        let event = batch([put(2, "a", "a", ""), bad, put(4, "b", "b", "")]);
        assert_eq!(world.returned(&function, &event).await, [sequence(3)]);
    }
    world.ledger.assert_each_once(["a", "b"]);
}

/// The answer cannot name such a record, so the source would count it as processed.
#[tokio::test]
async fn a_failure_without_a_sequence_number_fails_the_invocation() {
    let world = World::new();
    for (function, record) in streams(&world, &index()) {
        let mut unnamed = record(2, "b", "b", "fail");
        for part in ["kinesis", "dynamodb"] {
            if let Some(part) = unnamed[part].as_object_mut() {
                part.remove("sequenceNumber");
                part.insert("SequenceNumber".to_owned(), "".into());
            }
        }
        let event = batch([record(1, "a", "a", ""), unnamed.clone(), record(3, "c", "c", "")]);
        let text = world.fails(&function, &event, "RecordsReturned").await;
        assert!(text.contains("1 of 3") && text.contains("no. 2 of the batch"), "{text}");
    }
}

#[tokio::test]
async fn json_that_is_not_a_record_is_returned() {
    let world = World::new();
    let function = world.on(Kinesis::new(), &index());
    for bad in [json!(7), json!(null), json!({ "kinesis": 7 }), json!([put(1, "a", "a", "")])] {
        let event = batch([put(1, "a", "a", ""), bad]);
        let (_, text) = diagnostic(world.invoke(&function, &event).await.unwrap_err());
        assert!(text.contains("no. 2 of the batch") && text.contains("kinesis.data"), "{text}");
    }
    world.ledger.assert_once("a");
}

/// The handler gets a change in plain JSON, with all digits of its numbers.
#[tokio::test]
async fn the_handler_gets_a_change_in_plain_json() {
    let world = World::new();
    let function = world.with_handler(DynamoDbStream::new(), &index(), world.raw_handler());
    let mut event = change(1, "a", "x", "");
    event["dynamodb"]["NewImage"] = json!({
        "n": { "N": "12345678901234567890.5" }, "l": { "L": [{ "BOOL": true }, { "NULL": true }] },
    });
    event["userIdentity"] = json!({ "principalId": "dynamodb.amazonaws.com", "type": "Service" });
    assert!(world.returned(&function, &batch([event.clone()])).await.is_empty());
    world.ledger.assert_once(
        r#"{"eventName":"MODIFY","keys":{"n":1,"pk":"a"},"newImage":{"l":[true,null],"n":12345678901234567890.5},"userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"}}"#,
    );

    event["eventID"] = "e-2".into();
    event["dynamodb"]["NewImage"]["l"] = json!({ "L": 7 });
    assert_eq!(world.returned(&function, &batch([event])).await, [sequence(1)]);
    assert_eq!(world.ledger.total(), 1, "the handler is not called for an invalid image");
}

/// The order of members and spaces in `Keys` make no difference.
#[tokio::test]
async fn changes_of_one_item_are_grouped_however_its_key_is_written() {
    let world = World::new();
    let (function, _) = &streams(&world, &index())[1];
    let first = change(1, "a", "a1", "fail").to_string();
    let second = change(2, "a", "a2", "").to_string().replace(
        r#""Keys":{"n":{"N":"1"},"pk":{"S":"a"}}"#,
        r#""Keys":{ "pk" : {"S":"a"}, "n":{"N": "1"}}"#,
    );
    let event = format!(r#"{{"Records":[{first},{second}]}}"#);
    assert!(event.contains(r#""pk" : "#), "{event}");
    let answer = world.invoke_raw(function, &event).await.unwrap();
    assert_eq!(ids(&answer), [1, 2].map(sequence));
    world.ledger.assert_never("a2");
}

/// Otherwise the handler would get a change without images.
#[tokio::test]
async fn a_record_whose_change_is_not_an_object_is_bad() {
    let world = World::new();
    for not_a_change in [json!(59), json!("text"), json!([]), Value::Null] {
        let mut record = change(1, "k", "a", "");
        record["dynamodb"] = not_a_change;
        let function = world.on(DynamoDbStream::new(), &index());
        let error = world.invoke(&function, &batch([record])).await.unwrap_err();
        assert!(error.to_string().contains("has no valid `dynamodb`"), "{error}");
    }
    assert_eq!(world.ledger.total(), 0);
}

/// By these messages CloudWatch Logs tests that it reaches a stream. They have no lines, and would block their shard.
#[tokio::test]
async fn a_control_message_of_cloudwatch_logs_calls_no_handler() {
    let logs = |kind: &str, id: &str| {
        let json = json!({
            "messageType": kind, "owner": "CloudwatchLogs", "logGroup": "", "logStream": "",
            "subscriptionFilters": [],
            "logEvents": [{ "id": id, "timestamp": 1_510_254_469_274_u64, "message": "CWL" }],
        });
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(json.to_string().as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let world = World::new();
    let path = record("json(base64_gzip(kinesis.data)).logEvents[*].id");
    let of_pipe = record("json(base64_gzip(data)).logEvents[*].id");
    let source = Kinesis::new().whole_record();
    let (direct, piped) = (source.clone().key(path), Pipe::of(source.key(of_pipe)));
    let direct = world.with_handler(direct, &Operation::new("a"), world.raw_handler());
    let piped = world.with_handler(piped, &Operation::new("b"), world.raw_handler());
    let control = with_data(1, "k", logs("CONTROL_MESSAGE", ""));
    let data = with_data(2, "k", logs("DATA_MESSAGE", "l-1"));
    assert!(world.returned(&direct, &batch([control.clone(), data.clone()])).await.is_empty());
    assert_eq!(world.ledger.total(), 1);
    let event = json!([flat(control), flat(data)]);
    assert!(world.returned(&piped, &event).await.is_empty());
    assert_eq!(world.ledger.total(), 2);
}

/// A dropped collection: this change has no document.
fn dropped(number: u32) -> Value {
    let mut change = document(number, "", "", "");
    let event = change["event"].as_object_mut().unwrap();
    event.retain(|name, _| !["documentKey", "fullDocument"].contains(&name.as_str()));
    event["operationType"] = "drop".into();
    change
}

#[test]
fn changes_of_one_document_wait_for_each_other() {
    let mut spaced = document(2, "", "b", "");
    spaced["event"]["documentKey"] = json!({ "_id": { "$oid": "d-1" } });
    let event = collection([document(1, "d-1", "a", ""), spaced, document(3, "d-2", "c", "")]);
    let groups = |event: &Value, source: &AnySource| -> Vec<_> {
        let none = Context::default();
        let records = inspect::invocation(&event.to_string(), source, None, &none).unwrap();
        records.into_iter().map(|record| record.group.unwrap()).collect()
    };
    let by_document = groups(&event, &AnySource::new());
    assert_eq!(by_document[0], by_document[1]);
    assert_ne!(by_document[0], by_document[2]);
    let all = groups(&event, &AnySource::new().order(KeepOrder::Shard));
    assert!(all.iter().all(|group| *group == all[0]), "{all:?}");
    // A change of the collection concerns all of its documents.
    let with_drop =
        collection([document(1, "d-1", "a", ""), dropped(2), document(3, "d-2", "c", "")]);
    let all = groups(&with_drop, &AnySource::new());
    assert!(all.iter().all(|group| *group == all[0]), "{all:?}");
}

/// A handler of whole records can take bytes that are not UTF-8.
#[tokio::test]
async fn payloads_that_are_not_utf8_are_accepted() {
    let world = World::new();
    let event = batch([with_data(1, "k", [0xff, 0x00])]);
    let text = world.with_handler(Kinesis::new(), &Operation::new("a"), world.raw_handler());
    assert_eq!(world.returned(&text, &event).await.len(), 1);
    let (whole, operation) = (Kinesis::new().whole_record(), Operation::new("b"));
    let whole = world.with_handler(whole, &operation, world.raw_handler());
    assert!(world.returned(&whole, &event).await.is_empty());
    assert_eq!(world.ledger.total(), 1);
}
