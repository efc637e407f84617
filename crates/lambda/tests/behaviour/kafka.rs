//! Kafka: several partitions in one event, each ordered and with its own checkpoint.

use lambda_idempotency::{
    Call, Function, Operation,
    keys::record,
    source::{Kafka, KeepOrder, RabbitMq, Sqs},
};
use serde_json::{Value, json};

use crate::{
    support::{Noted, World, batch, diagnostic, order, place},
    support_streams::{base64, message, of_rabbit_mq, rabbit_mq, topic},
};

fn indexed(world: &World, source: Kafka) -> Function {
    world.on(source, &by_offset())
}

fn keyed(world: &World, key: &str) -> Function {
    world.on(Kafka::new(), &by_offset().key(key))
}

/// A partial batch response of Kafka: the identifiers are objects.
fn failures(expected: &[(&str, u64)]) -> Value {
    let named = expected.iter().map(|(partition, offset)| {
        json!({ "itemIdentifier": { "partition": partition, "offset": offset } })
    });
    json!({ "batchItemFailures": named.collect::<Vec<_>>() })
}

fn by_offset() -> Operation {
    Operation::new("index")
}

fn partitions() -> Value {
    topic([
        message(0, 15, "a15", ""),
        message(0, 16, "a16", "fail once"),
        message(0, 17, "a17", ""),
        message(1, 7, "b7", ""),
        message(1, 8, "b8", ""),
        message(10, 3, "c3", "fail once"),
    ])
}

#[tokio::test]
async fn each_partition_has_its_checkpoint_and_records_that_were_not_started_are_named() {
    let world = World::new();
    let function = indexed(&world, Kafka::new());
    let answer = world.invoke(&function, &partitions()).await.unwrap();
    assert_eq!(answer, failures(&[("orders-0", 16), ("orders-0", 17), ("orders-10", 3)]));
    world.ledger.assert_each_once(["a15", "b7", "b8"]);
    world.ledger.assert_never("a17");
    assert_eq!(world.invoke(&function, &partitions()).await.unwrap(), failures(&[]));
    world.ledger.assert_each_once(["a15", "a16", "a17", "b7", "b8", "c3"]);
}

/// Lambda calls a function with the records of one event source mapping, so the operation that takes them decides.
#[tokio::test]
async fn the_operation_that_takes_the_records_decides_whether_the_invocation_fails() {
    let world = World::new();
    let whole = Kafka::new().topic("orders").without_partial_responses();
    let function = world.on_both((whole, Operation::new("index")), (Sqs::new(), place()));
    assert!(world.invoke(&function, &topic([message(0, 1, "a", "fail")])).await.is_err());
    assert_eq!(world.returned(&function, &batch([order("m-1", "b", "fail")])).await, ["m-1"]);
}

#[tokio::test]
async fn with_order_by_key_other_keys_of_the_partition_continue() {
    let world = World::new();
    let function = indexed(&world, Kafka::new().order(KeepOrder::Key));
    let mut same_key = message(0, 18, "a18", "");
    same_key["key"] = base64("a16").into();
    let mut event = partitions();
    event["records"]["orders-0"].as_array_mut().unwrap().push(same_key);
    let answer = world.invoke(&function, &event).await.unwrap();
    assert_eq!(answer, failures(&[("orders-0", 16), ("orders-0", 18), ("orders-10", 3)]));
    world.ledger.assert_each_once(["a15", "a17", "b7", "b8"]);
    world.ledger.assert_never("a18");
}

/// Records without a key cannot be assigned to a group, so they wait for each other.
#[tokio::test]
async fn records_without_a_key_keep_the_order_of_their_partition() {
    let world = World::new();
    let function = indexed(&world, Kafka::new().order(KeepOrder::Key));
    let mut records = [message(0, 1, "1", "fail"), message(0, 2, "2", ""), message(1, 1, "3", "")];
    for record in &mut records {
        record["key"] = Value::Null;
    }
    let answer = world.invoke(&function, &topic(records)).await.unwrap();
    assert_eq!(answer, failures(&[("orders-0", 1), ("orders-0", 2)]));
    world.ledger.assert_each_once(["3"]);
    assert_eq!(world.ledger.total(), 1);
}

/// In queue mode the broker counts deliveries. A record that waits could be given up without having been
/// tried.
#[tokio::test]
async fn without_an_order_no_record_waits_for_another() {
    let world = World::new();
    let function = indexed(&world, Kafka::new().order(KeepOrder::None));
    let records = [message(0, 1, "1", "fail"), message(0, 2, "2", ""), message(0, 3, "3", "fail")];
    let answer = world.invoke(&function, &topic(records)).await.unwrap();
    assert_eq!(answer, failures(&[("orders-0", 1), ("orders-0", 3)]));
    world.ledger.assert_each_once(["2"]);
}

#[tokio::test]
async fn bad_records_are_checkpoints_of_their_partition() {
    let world = World::new();
    let function = keyed(&world, "id");
    for value in [json!(base64("not JSON")), json!(base64([0xff])), json!("not base64!"), json!(7)]
    {
        let mut bad = message(0, 2, "x", "");
        bad["value"] = value;
        let event =
            topic([message(0, 1, "a", ""), bad, message(0, 3, "c", ""), message(1, 2, "b", "")]);
        assert_eq!(
            world.invoke(&function, &event).await.unwrap(),
            failures(&[("orders-0", 2), ("orders-0", 3)])
        );
    }
    world.ledger.assert_each_once(["a", "b"]);
    assert_eq!(world.ledger.total(), 2);
}

#[tokio::test]
async fn a_returned_record_that_cannot_be_named_fails_the_invocation() {
    let world = World::new();
    let function = keyed(&world, "id");
    for offset in [Value::Null, json!("2"), json!(-2), json!(1.5)] {
        let mut without_offset = message(0, 2, "x", "fail");
        without_offset["offset"] = offset;
        let event = topic([message(1, 1, "a", ""), without_offset]);
        let text = world.fails(&function, &event, "RecordsReturned").await;
        assert!(text.contains("1 of 2 kafka"), "{text}");
    }
    let mut event = topic([message(1, 1, "a", "")]);
    event["records"]["orders-0"] = json!("not a list");
    let (_, text) = diagnostic(world.invoke(&function, &event).await.unwrap_err());
    assert!(text.contains("kafka record orders-0") && text.contains("1 of 2"), "{text}");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn an_event_without_records_succeeds_and_one_without_partitions_is_unknown() {
    let world = World::new();
    let function = indexed(&world, Kafka::new());
    assert_eq!(world.invoke(&function, &topic([])).await.unwrap(), failures(&[]));
    let mut event = topic([]);
    for records in [Value::Null, json!([]), json!("orders")] {
        event["records"] = records;
        let text = world.fails(&function, &event, "UnknownEvent").await;
        assert!(text.contains("aws:kafka"), "{text}");
    }
}

/// A key of bytes and a key with the base64 text of these bytes are different.
#[tokio::test]
async fn bytes_and_their_base64_text_are_different_keys() {
    let world = World::new();
    let by_key = Kafka::new().key(record("key"));
    let function = world.on(by_key, &Operation::new("by-key"));
    let mut bytes = message(0, 1, "x", "");
    bytes["key"] = base64([0xff, 0xfe]).into();
    let mut text = message(0, 2, "x", "");
    text["key"] = base64(base64([0xff, 0xfe])).into();
    assert_eq!(world.invoke(&function, &topic([bytes, text])).await.unwrap(), failures(&[]));
    assert_eq!(world.ledger.executed("x"), 2);
}

/// With the source's format, the schema's id is nowhere else.
#[tokio::test]
async fn members_that_are_not_known_are_carried_through() {
    let schema = json!({ "dataFormat": "AVRO", "schemaId": "s-1" });
    let mut direct = message(0, 1, "a", "");
    direct["valueSchemaMetadata"] = schema.clone();
    direct["keySchemaMetadata"] = schema.clone();
    let (world, got) = (World::new(), Noted::new());
    let seen = got.handler(|record: Value, call: Call| {
        let raw: Value = serde_json::from_str(call.raw_record().unwrap()).unwrap();
        assert_eq!(raw, record);
        record
    });
    let path = record("[valueSchemaMetadata.schemaId, offset]");
    let source = Kafka::new().whole_record().key(path);
    let function = world.with_handler(source, &Operation::new("a"), seen);
    world.invoke(&function, &topic([direct])).await.unwrap();
    let got = got.take();
    assert_eq!((&got[0]["keySchemaMetadata"], &got[0]["valueSchemaMetadata"]), (&schema, &schema));
    assert!(got[0]["value"].as_str().unwrap().starts_with('{'), "{got:?}");
}

/// What an event contains twice must not count as done.
#[tokio::test]
async fn both_lists_of_a_partition_or_queue_that_is_named_twice_are_processed() {
    let world = World::new();
    let kafka = world.on(Kafka::new(), &Operation::new("a"));
    let rabbit = world.on(RabbitMq::new(), &Operation::new("b").key("id"));
    let twice = |event: Value, name: &str, other: &Value| {
        let text = event.to_string();
        text.replacen(&format!("\"{name}\":["), &format!("\"{name}\":[{other}],\"{name}\":["), 1)
    };
    let event = twice(topic([message(0, 2, "b", "")]), "orders-0", &message(0, 1, "a", ""));
    world.invoke_raw(&kafka, &event).await.unwrap();
    let of = |id: &str| of_rabbit_mq(id, json!({ "id": id }).to_string());
    let event = twice(rabbit_mq([of("d")]), "orders::/", &of("c"));
    world.invoke_raw(&rabbit, &event).await.unwrap();
    for id in ["a", "b", "c", "d"] {
        world.ledger.assert_once(id);
    }
}

/// As the clients of a schema registry write values: as Avro, and as JSON.
#[tokio::test]
async fn a_value_in_the_frame_of_a_schema_registry_is_named_as_such() {
    let world = World::new();
    let source = || Kafka::new().without_partial_responses();
    let function = world.on(source(), &Operation::new("a"));
    for value in [&[0, 0, 0, 0, 1, 0xff, 2][..], b"\0\0\0\0\x01{\"id\":\"a\"}"] {
        let mut framed = message(0, 1, "a", "");
        framed["value"] = base64(value).into();
        let event = topic([framed]);
        let (_, text) = diagnostic(world.invoke(&function, &event).await.unwrap_err());
        assert!(
            text.contains("a schema registry's clients") && text.contains("whole_record"),
            "{text}"
        );
        let name = format!("whole {}", value.len());
        let whole = source().whole_record();
        let whole = world.with_handler(whole, &Operation::new(name), world.raw_handler());
        world.invoke(&whole, &event).await.unwrap();
    }
    assert_eq!(world.ledger.total(), 2);
}
