//! One record of each source, and what expressions read of it.

use lambda_idempotency::{
    keys::{KeyPath, payload, record},
    source::Envelope,
};
use serde_json::{Value, json};

use super::nested;
use crate::{
    support::{FIFO, batch, bus_event, grouped, notification, with_body},
    support_streams,
    support_streams::{
        active_mq, base64, change, collection, document, message, put, rabbit_mq, sequence, topic,
    },
};

/// An event of one record.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Such as `sqs`, or `pipe of sqs`.
    pub(super) source: &'static str,
    /// Around the payload, outermost first.
    pub(super) envelopes: Vec<Envelope>,
    pub(super) event: Value,
    /// The record that `record(..)` reads.
    pub(super) record: Value,
    /// The payload that other expressions read and the handler gets.
    pub(super) payload: Payload,
    /// Some paths, and the values that they select.
    pub(super) sees: Vec<(KeyPath, Value)>,
}

pub(super) enum Payload {
    Json(Value),
    /// Text that is not JSON: only for handlers of `String`; expressions cannot read it.
    Text(&'static str),
}

pub(super) fn rows() -> Vec<Row> {
    [queues(), notifications(), streams(), brokers(), events(), nested::rows()]
        .into_iter()
        .flatten()
        .collect()
}

/// The payload of all records.
pub(super) fn order() -> Value {
    json!({ "orderId": "o-1", "amount": 4.5 })
}

pub(super) fn text() -> String {
    order().to_string()
}

/// A record whose payload is the order, in its event.
pub(super) fn row(name: &'static str, source: &'static str, event: Value, record: &Value) -> Row {
    Row {
        name,
        source,
        envelopes: Vec::new(),
        event,
        record: record.clone(),
        payload: Payload::Json(order()),
        sees: Vec::new(),
    }
}

impl Row {
    pub(super) fn payload(mut self, payload: Value) -> Self {
        self.payload = Payload::Json(payload);
        self
    }

    pub(super) fn within(mut self, envelopes: impl IntoIterator<Item = Envelope>) -> Self {
        self.envelopes = envelopes.into_iter().collect();
        self
    }

    /// The source that outcomes name.
    pub(super) fn reported_source(&self) -> &'static str {
        self.source.split(' ').next().unwrap()
    }

    /// Whether the message may contain several records.
    pub(super) fn is_of_several(&self) -> bool {
        self.name.starts_with("S3 in")
    }

    pub(super) fn sees(mut self, path: impl Into<KeyPath>, value: impl Into<Value>) -> Self {
        self.sees.push((path.into(), value.into()));
        self
    }
}

/// A message with attributes of both types.
pub(super) fn sent(body: &str) -> Value {
    let mut message = with_body("m-1", body);
    message["messageAttributes"] = json!({
        "tenant": { "stringValue": "acme", "dataType": "String" },
        "digest": { "binaryValue": "3q2+7w==", "dataType": "Binary" },
    });
    message
}

/// The same message in a FIFO queue.
pub(super) fn sent_in_order(body: &str) -> Value {
    let mut message = grouped(sent(body), FIFO, "customer-7");
    message["attributes"]["MessageDeduplicationId"] = "d-1".into();
    message["attributes"]["SequenceNumber"] = "18849496460467696128".into();
    message
}

fn queues() -> Vec<Row> {
    let (standard, fifo, plain) = (sent(&text()), sent_in_order(&text()), sent("Test message."));
    vec![
        row("a message of SQS", "sqs", batch([standard.clone()]), &standard)
            .sees("orderId", "o-1")
            .sees(record("messageAttributes.tenant.stringValue"), "acme")
            .sees(record("messageAttributes.digest.binaryValue"), "3q2+7w==")
            .sees(record("body"), text())
            .sees(record("json(body).amount"), 4.5),
        row("a message of a FIFO queue", "sqs", batch([fifo.clone()]), &fifo)
            .sees("amount", 4.5)
            .sees(record("attributes.MessageDeduplicationId"), "d-1")
            .sees(record("attributes.MessageGroupId"), "customer-7")
            .sees(record("attributes.SequenceNumber"), "18849496460467696128"),
        Row {
            payload: Payload::Text("Test message."),
            ..row("a message that is not JSON", "sqs", batch([plain.clone()]), &plain)
        }
        .sees(record("body"), "Test message.")
        .sees(record("messageAttributes.tenant.stringValue"), "acme"),
    ]
}

/// A notification of SNS with an attribute.
pub(super) fn published(message: &str) -> Value {
    let mut published = notification("n-1", message)["Records"][0].take();
    published["Sns"]["Subject"] = "Placed".into();
    published["Sns"]["MessageAttributes"] =
        json!({ "tenant": { "Type": "String", "Value": "acme" } });
    published
}

/// Names of objects are URL-encoded.
pub(super) fn uploaded() -> Value {
    support_streams::uploaded("a+b.pdf", "0C0F")
}
fn notifications() -> Vec<Row> {
    let (published, uploaded) = (published(&text()), uploaded());
    vec![
        row("a notification of SNS", "sns", batch([published.clone()]), &published)
            .sees("orderId", "o-1")
            .sees(record("Sns.MessageAttributes.tenant.Value"), "acme")
            .sees(record("Sns.Subject"), "Placed")
            .sees(record("Sns.MessageId"), "n-1")
            .sees(record("json(Sns.Message).amount"), 4.5),
        row("a notification of S3", "s3", batch([uploaded.clone()]), &uploaded)
            .payload(uploaded)
            .sees("s3.object.key", "a+b.pdf")
            .sees(record("s3.object.sequencer"), "0C0F"),
    ]
}

/// A Kafka record as it is delivered, and as expressions read it: key, value and headers as text.
pub(super) fn produced() -> (Value, Value) {
    let mut delivered = message(0, 15, "o-1", "");
    delivered["value"] = base64(text()).into();
    delivered["headers"] = json!([
        { "idempotency-key": [107, 45, 49] },
        { "via": [97] },
        { "via": [98] },
        { "bytes": [-1, 0] },
        { "odd": [1000] },
        { "text": "a" },
        { "name": [103, 114, -61, -74, -61, -97, 101] },
    ]);
    let mut seen = delivered.clone();
    seen["key"] = "o-1".into();
    seen["value"] = text().into();
    seen["headers"] = json!({ "idempotency-key": "k-1", "via": ["a", "b"], "bytes": [-1, 0],
        "odd": [1000], "text": "a", "name": "größe" });
    (delivered, seen)
}

pub(super) fn data(mut record: Value) -> Value {
    record["kinesis"]["data"] = base64(text()).into();
    record
}

pub(super) fn changed() -> Value {
    json!({
        "eventName": "MODIFY", "keys": { "pk": "i-1", "n": 1 },
        "newImage": { "pk": "i-1", "n": 1, "id": "o-1", "do": "" },
    })
}

fn streams() -> Vec<Row> {
    let (kinesis, dynamodb) = (data(put(1, "customer-7", "", "")), change(1, "i-1", "o-1", ""));
    let (delivered, seen) = produced();
    let document = document(1, "d-1", "o-1", "");
    vec![
        row("a record of Kinesis", "kinesis", batch([kinesis.clone()]), &kinesis)
            .sees("orderId", "o-1")
            .sees(record("kinesis.partitionKey"), "customer-7")
            .sees(record("kinesis.sequenceNumber"), sequence(1))
            .sees(record("kinesis.data"), base64(text()))
            .sees(record("json(base64(kinesis.data)).amount"), 4.5),
        row("a change of DynamoDB", "dynamodb", batch([dynamodb.clone()]), &dynamodb)
            .payload(changed())
            .sees("newImage.id", "o-1")
            .sees("keys.n", 1)
            .sees(record("dynamodb.Keys.n.N"), "1")
            .sees(record("dynamodb.NewImage.id"), json!({ "S": "o-1" })),
        row("a change of DocumentDB", "documentdb", collection([document.clone()]), &document)
            .payload(document["event"].clone())
            .sees("fullDocument.id", "o-1")
            .sees(r#"documentKey._id."$oid""#, "d-1")
            .sees(record("event.ns.coll"), "orders"),
        row("a record of Kafka", "kafka", topic([delivered]), &seen)
            .sees("orderId", "o-1")
            .sees(record("key"), "o-1")
            .sees(record("value"), text())
            .sees(record("json(value).amount"), 4.5)
            .sees(record(r#"headers."idempotency-key""#), "k-1")
            .sees(record("headers.via"), json!(["a", "b"]))
            .sees(record("offset"), 15),
    ]
}

pub(super) fn of_active_mq() -> Value {
    let mut message = support_streams::of_active_mq("ID:1", text());
    message["properties"] = json!({ "tenant": "acme" });
    message
}
pub(super) fn of_rabbit_mq() -> Value {
    let mut message = support_streams::of_rabbit_mq("r-1", text());
    message["basicProperties"]["headers"] =
        json!({ "tenant": { "bytes": [97, 99, 109, 101] }, "try": 2 });
    message
}
fn brokers() -> Vec<Row> {
    let (active, rabbit) = (of_active_mq(), of_rabbit_mq());
    let (actives, rabbits) = (active_mq([active.clone()]), rabbit_mq([rabbit.clone()]));
    vec![
        row("a message of ActiveMQ", "activemq", actives, &active)
            .sees("orderId", "o-1")
            .sees(record("properties.tenant"), "acme")
            .sees(record("data"), base64(text()))
            .sees(record("json(base64(data)).amount"), 4.5),
        row("a message of RabbitMQ", "rabbitmq", rabbits, &rabbit)
            .sees("orderId", "o-1")
            .sees(record("basicProperties.messageId"), "r-1")
            .sees(record("basicProperties.headers.tenant.bytes"), json!([97, 99, 109, 101]))
            .sees(record("basicProperties.headers.try"), 2)
            .sees(record("json(base64(data)).amount"), 4.5),
    ]
}

fn events() -> Vec<Row> {
    let event = bus_event("e-1", "OrderPlaced", &order());
    let mut scheduled = order();
    scheduled["scheduleArn"] =
        "arn:aws:scheduler:eu-west-1:111122223333:schedule/default/nightly".into();
    scheduled["scheduledTime"] = "2026-01-01T00:00:00Z".into();
    vec![
        row("an event of EventBridge", "eventbridge", event.clone(), &event)
            .sees("orderId", "o-1")
            .sees(record("id"), "e-1")
            .sees(record(r#""detail-type""#), "OrderPlaced")
            .sees(record("detail.amount"), 4.5),
        row("an event in the list of a bus", "eventbridge", json!([event]), &event)
            .sees("orderId", "o-1")
            .sees(record("source"), "shop"),
        row("an event of a schedule", "scheduler", scheduled.clone(), &scheduled)
            .payload(scheduled)
            .sees("orderId", "o-1")
            .sees("scheduledTime", "2026-01-01T00:00:00Z")
            .sees(record("amount"), 4.5),
        row("an event of a caller", "invoke", order(), &order())
            .sees(payload("orderId"), "o-1")
            .sees(record("orderId"), "o-1"),
    ]
}
