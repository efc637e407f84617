//! Orders, and events that carry them: the samples of `events/`, with other orders.

#![allow(clippy::indexing_slicing, clippy::panic, reason = "the events have a known format")]

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// The sample of this name.
macro_rules! sample {
    ($name:literal) => {
        parsed(include_str!(concat!("../../events/", $name, ".json")))
    };
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The value with others at these pointers.
fn with<const N: usize>(mut value: Value, changes: [(&str, Value); N]) -> Value {
    for (pointer, other) in changes {
        *value.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = other;
    }
    value
}

fn base64(order: &Value) -> Value {
    BASE64_STANDARD.encode(order.to_string()).into()
}

/// An order for one thing.
#[must_use]
pub fn order(id: &str) -> Value {
    json!({ "orderId": id, "customer": "c-17", "sku": "mug-blue", "quantity": 1 })
}

/// An order with other or further members, such as `{"failTimes": 1}`.
#[must_use]
pub fn order_with(id: &str, members: Value) -> Value {
    let mut order = order(id);
    if let (Value::Object(order), Value::Object(members)) = (&mut order, members) {
        order.extend(members);
    }
    order
}

/// A message of the queue.
#[must_use]
pub fn message(id: &str, order: &Value) -> Value {
    message_of_text(id, &order.to_string())
}

/// A message of the queue, whatever its body.
#[must_use]
pub fn message_of_text(id: &str, body: &str) -> Value {
    let message = sample!("sqs")["Records"][0].take();
    with(message, [("/messageId", id.into()), ("/body", body.into())])
}

/// The event that the queue's poller sends.
#[must_use]
pub fn batch(records: impl IntoIterator<Item = Value>) -> Value {
    json!({ "Records": records.into_iter().collect::<Vec<_>>() })
}

/// A batch with one message for each order: message `m-x` for order `x`.
#[must_use]
pub fn batch_of(orders: impl IntoIterator<Item = Value>) -> Value {
    batch(orders.into_iter().map(|order| {
        let id = order.get("orderId").and_then(Value::as_str).unwrap_or("?").to_owned();
        message(&format!("m-{id}"), &order)
    }))
}

/// A notification of the topic.
#[must_use]
pub fn notification(id: &str, order: &Value) -> Value {
    let (id, message) = (id.into(), order.to_string().into());
    with(sample!("sns"), [("/Records/0/Sns/MessageId", id), ("/Records/0/Sns/Message", message)])
}

/// An event of the bus.
#[must_use]
pub fn event(id: &str, order: &Value) -> Value {
    with(sample!("eventbridge"), [("/id", id.into()), ("/detail", order.clone())])
}

/// A message of a FIFO queue, in a group.
#[must_use]
pub fn message_in_group(id: &str, group: &str, order: &Value) -> Value {
    let message = sample!("sqs-fifo")["Records"][0].take();
    let changes = [
        ("/messageId", id.into()),
        ("/body", order.to_string().into()),
        ("/attributes/MessageGroupId", group.into()),
        ("/attributes/MessageDeduplicationId", id.into()),
    ];
    with(message, changes)
}

/// The event that the event source mapping of a Kinesis stream sends: for each record its shard, sequence
/// number, partition key and order.
#[must_use]
pub fn kinesis<'r>(records: impl IntoIterator<Item = (u8, u32, &'r str, Value)>) -> Value {
    batch(records.into_iter().map(|(shard, sequence, key, order)| {
        let sequence = format!("4954511523366184356{sequence:010}");
        let changes = [
            ("/eventID", format!("shardId-00000000000{shard}:{sequence}").into()),
            ("/kinesis/partitionKey", key.into()),
            ("/kinesis/sequenceNumber", sequence.into()),
            ("/kinesis/data", base64(&order)),
        ];
        with(sample!("kinesis")["Records"][0].take(), changes)
    }))
}

/// The event that the event source mapping of a Kafka topic sends: the orders of each partition, from
/// offset 0.
#[must_use]
pub fn kafka<'r>(partitions: impl IntoIterator<Item = (&'r str, Vec<Value>)>) -> Value {
    let record = |partition: &str, offset: usize, order: &Value| {
        let (topic, number) = partition.rsplit_once('-').unwrap_or((partition, "0"));
        let changes = [
            ("/topic", topic.into()),
            ("/partition", number.parse::<u64>().unwrap_or_default().into()),
            ("/offset", offset.into()),
            ("/value", base64(order)),
        ];
        with(sample!("kafka")["records"]["orders-0"][0].take(), changes)
    };
    let records = partitions.into_iter().map(|(partition, orders)| {
        let records = orders.iter().enumerate();
        let records = records.map(|(offset, order)| record(partition, offset, order)).collect();
        (partition.to_owned(), Value::Array(records))
    });
    with(sample!("kafka"), [("/records", Value::Object(records.collect::<Map<_, _>>()))])
}

/// A batch of messages or records as a pipe sends it: a list, with the members of `kinesis`
/// at the top level of each record.
#[must_use]
pub fn in_a_pipe(mut batch: Value) -> Value {
    let mut records = batch["Records"].take();
    for record in records.as_array_mut().into_iter().flatten() {
        if let Some(record) = record.as_object_mut()
            && let Some(Value::Object(data)) = record.remove("kinesis")
        {
            record.extend(data);
        }
    }
    records
}
