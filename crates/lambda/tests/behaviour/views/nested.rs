//! Records inside others: in a pipe's list, and in envelopes.

use lambda_idempotency::{keys::record, source::Envelope};
use serde_json::{Value, json};

use super::rows::{
    Row, changed, data, of_active_mq, of_rabbit_mq, order, produced, published, row, sent,
    sent_in_order, text, uploaded,
};
use crate::{
    pipes::{flat, from_broker},
    support::{TOPIC, batch, bus_event},
    support_streams::{BROKER, CLUSTER, change, put},
};

pub(super) fn rows() -> Vec<Row> {
    [pipes(), envelopes()].into_iter().flatten().collect()
}

/// Records of each source, in a pipe's list.
fn pipes() -> Vec<Row> {
    let (fifo, kinesis) = (sent_in_order(&text()), flat(data(put(1, "customer-7", "", ""))));
    let dynamodb = change(1, "i-1", "o-1", "");
    let (delivered, seen) = produced();
    let kafka = from_broker(delivered, "aws:kafka", CLUSTER);
    let active = from_broker(of_active_mq(), "aws:amq", BROKER);
    let mut rabbit = from_broker(of_rabbit_mq(), "aws:rmq", BROKER);
    rabbit["eventSourceKey"] = "orders::/".into();
    let row = |name, source, record: &Value| row(name, source, json!([record]), record);
    vec![
        row("SQS through a pipe", "pipe of sqs", &fifo)
            .sees("orderId", "o-1")
            .sees(record("attributes.MessageDeduplicationId"), "d-1")
            .sees(record("messageAttributes.tenant.stringValue"), "acme"),
        row("Kinesis through a pipe", "pipe of kinesis", &kinesis)
            .sees("orderId", "o-1")
            .sees(record("partitionKey"), "customer-7")
            .sees(record("json(base64(data)).amount"), 4.5),
        row("DynamoDB through a pipe", "pipe of dynamodb", &dynamodb)
            .payload(changed())
            .sees("newImage.id", "o-1")
            .sees(record("dynamodb.NewImage.id.S"), "o-1"),
        Row {
            record: from_broker(seen, "aws:kafka", CLUSTER),
            ..row("Kafka through a pipe", "pipe of kafka", &kafka)
        }
        .sees("orderId", "o-1")
        .sees(record("key"), "o-1")
        .sees(record(r#"headers."idempotency-key""#), "k-1"),
        row("ActiveMQ through a pipe", "pipe of activemq", &active)
            .sees("orderId", "o-1")
            .sees(record("properties.tenant"), "acme"),
        row("RabbitMQ through a pipe", "pipe of rabbitmq", &rabbit)
            .sees("orderId", "o-1")
            .sees(record("basicProperties.headers.try"), 2)
            .sees(record("eventSourceKey"), "orders::/"),
    ]
}

/// An SNS notification in the format that queues get.
fn announced(message: &str) -> String {
    json!({
        "Type": "Notification", "MessageId": "n-1", "TopicArn": TOPIC, "Message": message,
        "MessageAttributes": { "tenant": { "Type": "String", "Value": "acme" } },
    })
    .to_string()
}

/// Expressions read the innermost payload; `record(..)` reads the outermost record.
fn envelopes() -> Vec<Row> {
    let uploads = batch([uploaded()]).to_string();
    let sns = sent_in_order(&announced(&text()));
    let bus = sent(&bus_event("e-1", "OrderPlaced", &order()).to_string());
    let (s3, three) = (sent(&uploads), sent(&announced(&uploads)));
    let topic = published(&uploads);
    let piped = sent(&announced(&text()));
    vec![
        row("SNS in SQS", "sqs", batch([sns.clone()]), &sns)
            .within([Envelope::Sns])
            .sees("orderId", "o-1")
            .sees(record("attributes.MessageDeduplicationId"), "d-1")
            .sees(record("json(body).MessageId"), "n-1")
            .sees(record("json(body).MessageAttributes.tenant.Value"), "acme")
            .sees(record("json(json(body).Message).amount"), 4.5),
        row("EventBridge in SQS", "sqs", batch([bus.clone()]), &bus)
            .within([Envelope::EventBridge])
            .sees("orderId", "o-1")
            .sees(record("json(body).id"), "e-1")
            .sees(record(r#"json(body)."detail-type""#), "OrderPlaced")
            .sees(record("messageAttributes.tenant.stringValue"), "acme"),
        row("S3 in SQS", "sqs", batch([s3.clone()]), &s3)
            .within([Envelope::S3])
            .payload(uploaded())
            .sees("s3.object.key", "a+b.pdf")
            .sees(record("json(body).Records[0].s3.object.sequencer"), "0C0F"),
        row("S3 in SNS in SQS", "sqs", batch([three.clone()]), &three)
            .within([Envelope::Sns, Envelope::S3])
            .payload(uploaded())
            .sees("s3.object.key", "a+b.pdf")
            .sees(record("messageId"), "m-1")
            .sees(record("json(body).MessageId"), "n-1")
            .sees(record("json(json(body).Message).Records[0].s3.object.size"), 7),
        row("S3 in SNS", "sns", batch([topic.clone()]), &topic)
            .within([Envelope::S3])
            .payload(uploaded())
            .sees("s3.object.key", "a+b.pdf")
            .sees(record("Sns.MessageId"), "n-1"),
        row("SNS in SQS through a pipe", "pipe of sqs", json!([piped]), &piped)
            .within([Envelope::Sns])
            .sees("orderId", "o-1")
            .sees(record("json(body).MessageAttributes.tenant.Value"), "acme"),
    ]
}
