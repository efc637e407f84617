//! Orders, and events that carry them.

#![allow(clippy::indexing_slicing, reason = "the events have a known format")]

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:111122223333:orders";
const TOPIC: &str = "arn:aws:sns:eu-west-1:111122223333:orders";

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
    json!({
        "messageId": id,
        "receiptHandle": "handle",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1795251600579",
            "SenderId": "AROAEXAMPLE",
            "ApproximateFirstReceiveTimestamp": "1795251600585",
        },
        "messageAttributes": {},
        "md5OfBody": "00000000000000000000000000000000",
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE,
        "awsRegion": "eu-west-1",
    })
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
    json!({ "Records": [{
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": format!("{TOPIC}:412b940d"),
        "Sns": {
            "Type": "Notification",
            "MessageId": id,
            "TopicArn": TOPIC,
            "Subject": null,
            "Message": order.to_string(),
            "Timestamp": "2026-11-21T09:07:12.418Z",
            "SignatureVersion": "1",
            "Signature": "EXAMPLE",
            "MessageAttributes": {},
        },
    }] })
}

/// An event of the bus.
#[must_use]
pub fn event(id: &str, order: &Value) -> Value {
    json!({
        "version": "0",
        "id": id,
        "detail-type": "OrderPlaced",
        "source": "orders.example",
        "account": "111122223333",
        "time": "2026-11-21T09:07:12Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": order,
    })
}

/// A message of a FIFO queue, in a group.
#[must_use]
pub fn message_in_group(id: &str, group: &str, order: &Value) -> Value {
    let mut message = message(id, order);
    message["eventSourceARN"] = json!(format!("{QUEUE}.fifo"));
    message["attributes"]["MessageGroupId"] = json!(group);
    message["attributes"]["MessageDeduplicationId"] = json!(id);
    message["attributes"]["SequenceNumber"] = json!("18849496460467696128");
    message
}

/// The event that the event source mapping of a Kinesis stream sends: for each record its shard, sequence
/// number, partition key and order.
#[must_use]
pub fn kinesis<'r>(records: impl IntoIterator<Item = (u8, u32, &'r str, Value)>) -> Value {
    batch(records.into_iter().map(|(shard, sequence, key, order)| {
        let sequence = format!("4954511523366184356{sequence:010}");
        json!({
            "kinesis": {
                "kinesisSchemaVersion": "1.0", "partitionKey": key, "sequenceNumber": sequence,
                "data": BASE64_STANDARD.encode(order.to_string()),
                "approximateArrivalTimestamp": 1_607_497_475.0,
            },
            "eventSource": "aws:kinesis", "eventVersion": "1.0", "eventName": "aws:kinesis:record",
            "eventID": format!("shardId-00000000000{shard}:{sequence}"),
            "invokeIdentityArn": "arn:aws:iam::111122223333:role/orders", "awsRegion": "eu-west-1",
            "eventSourceARN": "arn:aws:kinesis:eu-west-1:111122223333:stream/orders",
        })
    }))
}

/// The event that the event source mapping of a table's stream sends: orders that were inserted.
#[must_use]
pub fn inserted<'r>(orders: impl IntoIterator<Item = &'r str>) -> Value {
    batch(orders.into_iter().enumerate().map(|(at, order)| {
        json!({
            "eventID": format!("{at:032}"), "eventName": "INSERT", "eventVersion": "1.1",
            "eventSource": "aws:dynamodb", "awsRegion": "eu-west-1",
            "dynamodb": {
                "ApproximateCreationDateTime": 1_607_497_475.0,
                "Keys": { "orderId": { "S": order } },
                "NewImage": {
                    "orderId": { "S": order }, "customer": { "S": "c-17" },
                    "sku": { "S": "mug-blue" }, "quantity": { "N": "1" },
                },
                "SequenceNumber": format!("4421584500000000017450{at:04}"),
                "SizeBytes": 59, "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
            "eventSourceARN":
                "arn:aws:dynamodb:eu-west-1:111122223333:table/o/stream/2026-06-10T19:26:16.525",
        })
    }))
}

/// The event that the event source mapping of a Kafka topic sends: the orders of each partition, from
/// offset 0.
#[must_use]
pub fn kafka<'r>(partitions: impl IntoIterator<Item = (&'r str, Vec<Value>)>) -> Value {
    let record = |partition: &str, offset: usize, order: &Value| {
        let (topic, number) = partition.rsplit_once('-').unwrap_or((partition, "0"));
        json!({
            "topic": topic, "partition": number.parse::<u64>().unwrap_or_default(),
            "offset": offset, "timestamp": 1_545_084_650_987_u64, "timestampType": "CREATE_TIME",
            "key": null, "value": BASE64_STANDARD.encode(order.to_string()), "headers": [],
        })
    };
    let records: serde_json::Map<_, _> = partitions
        .into_iter()
        .map(|(partition, orders)| {
            let records = orders.iter().enumerate();
            let records = records.map(|(offset, order)| record(partition, offset, order)).collect();
            (partition.to_owned(), Value::Array(records))
        })
        .collect();
    json!({
        "eventSource": "aws:kafka",
        "eventSourceArn": "arn:aws:kafka:eu-west-1:111122223333:cluster/orders/abcd",
        "bootstrapServers": "b-1.example:9092", "records": records,
    })
}

/// A bucket's notification of an object.
#[must_use]
pub fn stored(key: &str) -> Value {
    batch([json!({
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1",
        "eventTime": "2026-09-03T19:37:27.192Z", "eventName": "ObjectCreated:Put",
        "responseElements": { "x-amz-request-id": "D82B88E5F771F645" },
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": { "name": "orders", "arn": "arn:aws:s3:::orders" },
            "object": { "key": key, "size": 17, "eTag": "b21b84d6", "sequencer": "0C0F6F405D6ED209E1" },
        },
    })])
}

/// The event that the event source mapping of a DocumentDB change stream sends: new documents.
#[must_use]
pub fn document_db<'r>(orders: impl IntoIterator<Item = (&'r str, Value)>) -> Value {
    let changes = orders.into_iter().map(|(token, order)| {
        json!({
            "event": {
                "_id": { "_data": token }, "operationType": "insert",
                "clusterTime": { "$timestamp": { "t": 1_676_588_775, "i": 9 } },
                "documentKey": { "_id": { "$oid": token } }, "fullDocument": order,
                "ns": { "db": "shop", "coll": "orders" },
            }
        })
    });
    json!({
        "eventSource": "aws:docdb",
        "eventSourceArn": "arn:aws:rds:eu-west-1:111122223333:cluster:orders",
        "events": changes.collect::<Vec<_>>(),
    })
}

/// The event that the event source mapping of an ActiveMQ broker sends.
#[must_use]
pub fn active_mq<'r>(orders: impl IntoIterator<Item = (&'r str, Value)>) -> Value {
    let messages = orders.into_iter().map(|(id, order)| {
        json!({
            "messageID": id, "messageType": "jms/text-message", "redelivered": false,
            "destination": { "physicalName": "orders" },
            "data": BASE64_STANDARD.encode(order.to_string()),
        })
    });
    json!({
        "eventSource": "aws:mq",
        "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:orders:b-1",
        "messages": messages.collect::<Vec<_>>(),
    })
}

/// The event that the event source mapping of a RabbitMQ broker sends.
#[must_use]
pub fn rabbit_mq<'r>(orders: impl IntoIterator<Item = (&'r str, Value)>) -> Value {
    let messages = orders.into_iter().map(|(id, order)| {
        json!({
            "basicProperties": { "messageId": id, "contentType": "text/plain", "headers": {} },
            "redelivered": false, "data": BASE64_STANDARD.encode(order.to_string()),
        })
    });
    json!({
        "eventSource": "aws:rmq",
        "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:orders:b-2",
        "rmqMessagesByQueue": { "orders::/": messages.collect::<Vec<_>>() },
    })
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

/// A broker's batch as a pipe sends it: a list, in which each message names the broker.
#[must_use]
pub fn from_broker_in_a_pipe(mut batch: Value) -> Value {
    let mut messages = batch["messages"].take();
    for message in messages.as_array_mut().into_iter().flatten() {
        message["eventSource"] = json!("aws:amq");
        message["eventSourceArn"] = batch["eventSourceArn"].clone();
    }
    messages
}

/// The event of a schedule: an order, and the scheduled time.
#[must_use]
pub fn scheduled(time: &str, order: &Value) -> Value {
    let mut input = order.clone();
    input["scheduleArn"] =
        json!("arn:aws:scheduler:eu-west-1:111122223333:schedule/default/orders");
    input["scheduledTime"] = json!(time);
    input
}

/// A request to an HTTP API, with a credential that is not checked, and an idempotency key.
#[must_use]
pub fn request(key: Option<&str>, body: &Value) -> Value {
    let mut request = json!({
        "version": "2.0", "routeKey": "POST /orders", "rawPath": "/orders", "rawQueryString": "",
        "headers": {
            "authorization": "Bearer a-token", "content-type": "application/json",
            "host": "api.example.com",
        },
        "requestContext": {
            "accountId": "111122223333", "apiId": "api", "domainName": "api.example.com",
            "domainPrefix": "api", "requestId": "r-1", "routeKey": "POST /orders",
            "stage": "$default", "time": "12/Mar/2026:19:03:58 +0000",
            "timeEpoch": 1_773_342_238_000_i64,
            "http": {
                "method": "POST", "path": "/orders", "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1", "userAgent": "test",
            },
        },
        "body": body.to_string(), "isBase64Encoded": false,
    });
    if let Some(key) = key {
        request["headers"]["idempotency-key"] = json!(key);
    }
    request
}
