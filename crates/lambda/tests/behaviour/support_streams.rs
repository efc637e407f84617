//! Events of streams and topics.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

pub(crate) const STREAM: &str = "arn:aws:kinesis:eu-west-1:111122223333:stream/orders";
pub(crate) const TABLE_STREAM: &str =
    "arn:aws:dynamodb:eu-west-1:111122223333:table/orders/stream/2026-01-01T00:00:00.000";
pub(crate) const CLUSTER: &str = "arn:aws:kafka:eu-west-1:111122223333:cluster/shop/3f2a-4";

pub(crate) fn base64(text: impl AsRef<[u8]>) -> String {
    STANDARD.encode(text)
}

/// A Kinesis record with this number, whose data is an order with this id; the handler does `action`.
pub(crate) fn put(number: u32, key: &str, id: &str, action: &str) -> Value {
    with_data(number, key, json!({ "id": id, "do": action }).to_string())
}

pub(crate) fn with_data(number: u32, key: &str, data: impl AsRef<[u8]>) -> Value {
    json!({
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": key,
            "sequenceNumber": sequence(number),
            "data": base64(data),
            "approximateArrivalTimestamp": 1545084650.987,
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": format!("shardId-000000000006:{}", sequence(number)),
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": "arn:aws:iam::111122223333:role/orders",
        "awsRegion": "eu-west-1",
        "eventSourceARN": STREAM,
    })
}

/// A sequence number, too long for any integer type, as Kinesis's are.
pub(crate) fn sequence(number: u32) -> String {
    format!("4959033827149025660855969253836157109592157598913{number:07}")
}

/// A change of the item with this key, which is now an order with this id.
pub(crate) fn change(number: u32, item: &str, id: &str, action: &str) -> Value {
    json!({
        "eventID": format!("e-{number}"),
        "eventName": "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-west-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1480642020,
            "Keys": { "pk": { "S": item }, "n": { "N": "1" } },
            "NewImage": {
                "pk": { "S": item }, "n": { "N": "1" }, "id": { "S": id }, "do": { "S": action },
            },
            "SequenceNumber": sequence(number),
            "SizeBytes": 54,
            "StreamViewType": "NEW_IMAGE",
        },
        "eventSourceARN": TABLE_STREAM,
    })
}

/// A Kafka record whose value is an order with this id; the handler does `action`.
pub(crate) fn message(partition: u32, offset: u64, id: &str, action: &str) -> Value {
    let value = json!({ "id": id, "do": action }).to_string();
    json!({
        "topic": "orders",
        "partition": partition,
        "offset": offset,
        "timestamp": 1_545_084_650_987_u64 + offset,
        "timestampType": "CREATE_TIME",
        "key": base64(id),
        "value": base64(value),
        "headers": [],
    })
}

/// An event of Amazon MSK with these records in their partitions.
pub(crate) fn topic(records: impl IntoIterator<Item = Value>) -> Value {
    let mut partitions = serde_json::Map::new();
    for record in records {
        let partition = format!("orders-{}", record["partition"]);
        let list = partitions.entry(partition).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(record);
    }
    json!({
        "eventSource": "aws:kafka",
        "eventSourceArn": CLUSTER,
        "bootstrapServers": "b-2.shop:9092,b-1.shop:9092",
        "records": partitions,
    })
}

pub(crate) const DOCUMENTS: &str = "arn:aws:rds:eu-west-1:111122223333:cluster:shop";

/// A change of the document with this key, which is now an order with this id.
pub(crate) fn document(number: u32, key: &str, id: &str, action: &str) -> Value {
    json!({
        "event": {
            "_id": { "_data": format!("0163eeb6e7{number:08x}0100000009000041e1") },
            "clusterTime": { "$timestamp": { "t": 1_676_588_775, "i": number } },
            "documentKey": { "_id": { "$oid": key } },
            "fullDocument": { "_id": { "$oid": key }, "id": id, "do": action },
            "ns": { "db": "shop", "coll": "orders" },
            "operationType": "insert",
        }
    })
}

/// An event of a DocumentDB change stream.
pub(crate) fn collection(changes: impl IntoIterator<Item = Value>) -> Value {
    let changes: Vec<Value> = changes.into_iter().collect();
    json!({ "eventSourceArn": DOCUMENTS, "events": changes, "eventSource": "aws:docdb" })
}

pub(crate) const BROKER: &str = "arn:aws:mq:eu-west-1:111122223333:broker:shop:b-1";

/// A message of ActiveMQ.
pub(crate) fn of_active_mq(id: &str, data: impl AsRef<[u8]>) -> Value {
    json!({
        "messageID": id, "messageType": "jms/text-message", "redelivered": false,
        "data": base64(data), "destination": { "physicalName": "orders" }, "properties": null,
    })
}

pub(crate) fn active_mq(messages: impl IntoIterator<Item = Value>) -> Value {
    let messages: Vec<Value> = messages.into_iter().collect();
    json!({ "eventSource": "aws:mq", "eventSourceArn": BROKER, "messages": messages })
}

/// A message of RabbitMQ; producers may set an id.
pub(crate) fn of_rabbit_mq(id: impl Into<Value>, data: impl AsRef<[u8]>) -> Value {
    json!({
        "basicProperties": { "messageId": id.into(), "headers": {} },
        "redelivered": false, "data": base64(data),
    })
}

pub(crate) fn rabbit_mq(messages: impl IntoIterator<Item = Value>) -> Value {
    let messages: Vec<Value> = messages.into_iter().collect();
    let queues = json!({ "orders::/": messages });
    json!({ "eventSource": "aws:rmq", "eventSourceArn": BROKER, "rmqMessagesByQueue": queues })
}

/// A notification of S3 for an object.
pub(crate) fn uploaded(key: &str, sequencer: &str) -> Value {
    json!({
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1",
        "eventTime": "2026-01-01T00:00:00.000Z", "eventName": "ObjectCreated:Put",
        "responseElements": { "x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMy" },
        "s3": {
            "s3SchemaVersion": "1.0", "configurationId": "c",
            "bucket": { "name": "uploads", "arn": "arn:aws:s3:::uploads" },
            "object": { "key": key, "size": 7, "eTag": "d41d", "sequencer": sequencer },
        },
    })
}
