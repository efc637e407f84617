//! Messages of queues, topics and brokers.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use super::shared::{REGION, arn};
use crate::event::Stamp;

pub(super) fn sqs(body: &str, stamp: &mut Stamp) -> Value {
    let digest = Md5::digest(body.as_bytes());
    let md5: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let now = stamp.now_ms;
    json!({
        "messageId": stamp.id(),
        "receiptHandle": format!("AQEB{}", BASE64_STANDARD.encode(stamp.sequence().to_string())),
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": now.to_string(),
            "SenderId": "AROAEXAMPLEWEBSHOPSEND:checkout",
            "ApproximateFirstReceiveTimestamp": (now + 6).to_string(),
        },
        "messageAttributes": {},
        "md5OfBody": md5,
        "eventSource": "aws:sqs",
        "eventSourceARN": arn("sqs", "orders"),
        "awsRegion": REGION,
    })
}

pub(super) fn fifo(body: &str, stamp: &mut Stamp) -> Value {
    let mut message = sqs(body, stamp);
    let (deduplication, sequence) = (stamp.id(), format!("1887{:016}", stamp.sequence()));
    if let Value::Object(message) = &mut message {
        message.insert("eventSourceARN".to_owned(), json!(arn("sqs", "orders.fifo")));
        if let Some(Value::Object(attributes)) = message.get_mut("attributes") {
            attributes.insert("MessageGroupId".to_owned(), json!("customer-1"));
            attributes.insert("MessageDeduplicationId".to_owned(), json!(deduplication));
            attributes.insert("SequenceNumber".to_owned(), json!(sequence));
        }
    }
    message
}

/// What SNS sends to Lambda, and to a queue with small differences in the names of two members.
pub(super) fn notification(message: &str, stamp: &mut Stamp) -> Value {
    json!({
        "Type": "Notification",
        "MessageId": stamp.id(),
        "TopicArn": arn("sns", "orders"),
        "Message": message,
        "Timestamp": stamp.time(),
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-EXAMPLE.pem",
        "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
    })
}

pub(super) fn sns(message: &str, stamp: &mut Stamp) -> Value {
    let mut sns = notification(message, stamp);
    if let Value::Object(members) = &mut sns {
        for (in_queue, in_lambda) in
            [("SigningCertURL", "SigningCertUrl"), ("UnsubscribeURL", "UnsubscribeUrl")]
        {
            let value = members.remove(in_queue).unwrap_or_default();
            members.insert(in_lambda.to_owned(), value);
        }
        members.insert("Subject".to_owned(), Value::Null);
        members.insert("MessageAttributes".to_owned(), json!({}));
    }
    json!({
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": arn("sns", "orders:412b940d-e083-4c3c-af7b-36ea3211780f"),
        "Sns": sns,
    })
}

pub(super) fn active_mq(data: &str, stamp: &mut Stamp) -> Value {
    let now = stamp.now_ms;
    json!({
        "messageID": format!("ID:b-9bcfa592-423a-4942-879d-eb284b418fc8-1.mq.eu-west-1.amazonaws.com-{}", stamp.id()),
        "messageType": "jms/text-message",
        "deliveryMode": 1,
        "replyTo": null,
        "type": null,
        "expiration": 0,
        "priority": 4,
        "correlationId": "",
        "redelivered": false,
        "destination": { "physicalName": "orders" },
        "data": BASE64_STANDARD.encode(data),
        "timestamp": now,
        "brokerInTime": now,
        "brokerOutTime": now + 1,
        "properties": {},
    })
}

pub(super) fn rabbit_mq(data: &str, stamp: &mut Stamp) -> Value {
    json!({
        "basicProperties": {
            "contentType": "application/json",
            "contentEncoding": null,
            "headers": {},
            "deliveryMode": 2,
            "priority": null,
            "correlationId": null,
            "replyTo": null,
            "expiration": null,
            "messageId": stamp.id(),
            "timestamp": null,
            "type": null,
            "userId": null,
            "appId": null,
            "clusterId": null,
            "bodySize": data.len(),
        },
        "redelivered": false,
        "data": BASE64_STANDARD.encode(data),
    })
}
