//! The envelopes of all sources. The shapes are those of AWS's documentation; a test compares them with its samples.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};

use super::{Source, Stamp};

const ACCOUNT: &str = "111122223333";
const REGION: &str = "eu-west-1";

fn arn(service: &str, rest: &str) -> String {
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}")
}

/// An event of this source with a record for each payload.
///
/// # Errors
/// A payload that the source cannot carry: several where it sends one, or not JSON where it sends JSON.
pub(crate) fn event(
    source: Source,
    payloads: &[String],
    stamp: &mut Stamp,
) -> Result<Value, String> {
    let mut records = |record: fn(&str, &mut Stamp) -> Result<Value, String>| {
        payloads.iter().map(|payload| record(payload, stamp)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match source {
        Source::Sqs => json!({ "Records": records(|body, stamp| Ok(sqs(body, stamp)))? }),
        Source::SqsFifo => json!({ "Records": records(|body, stamp| Ok(fifo(body, stamp)))? }),
        Source::Sns => json!({ "Records": records(|message, stamp| Ok(sns(message, stamp)))? }),
        Source::SnsInSqs => json!({ "Records": records(|message, stamp| {
            Ok(sqs(&notification(message, stamp).to_string(), stamp))
        })? }),
        Source::EventBridge => {
            let mut events = records(event_bridge)?;
            match (events.len(), events.pop()) {
                (1, Some(one)) => one,
                (_, last) => events.into_iter().chain(last).collect(),
            }
        }
        Source::Kinesis => json!({ "Records": records(|data, stamp| Ok(kinesis(data, stamp)))? }),
        Source::DynamoDb => json!({ "Records": records(dynamodb)? }),
        Source::S3 => json!({ "Records": records(|key, stamp| Ok(s3(key, stamp)))? }),
        Source::DocumentDb => json!({
            "eventSourceArn": arn("rds", "cluster:shop"),
            "events": records(documentdb)?,
            "eventSource": "aws:docdb",
        }),
        Source::Kafka => json!({
            "eventSource": "aws:kafka",
            "eventSourceArn": arn("kafka", "cluster/shop/3f2a1b00-4c5d-4e6f-8a9b-0c1d2e3f4a5b-4"),
            "bootstrapServers": "b-1.shop.example.kafka.eu-west-1.amazonaws.com:9092",
            "records": { "orders-0": records(|value, stamp| Ok(kafka(value, stamp)))? },
        }),
        Source::ActiveMq => json!({
            "eventSource": "aws:mq",
            "eventSourceArn": arn("mq", "broker:shop:b-9bcfa592-423a-4942-879d-eb284b418fc8"),
            "messages": records(|data, stamp| Ok(active_mq(data, stamp)))?,
        }),
        Source::RabbitMq => json!({
            "eventSource": "aws:rmq",
            "eventSourceArn": arn("mq", "broker:shop:b-9bcfa592-423a-4942-879d-eb284b418fc8"),
            "rmqMessagesByQueue": { "orders::/": records(|data, stamp| Ok(rabbit_mq(data, stamp)))? },
        }),
        Source::Pipe => records(|body, stamp| Ok(sqs(body, stamp)))?.into(),
        Source::Scheduler => scheduler(only(payloads)?, stamp)?,
        Source::Http => http(only(payloads)?, stamp),
        Source::Direct => json_of(only(payloads)?)?,
    })
}

fn only(payloads: &[String]) -> Result<&str, String> {
    match payloads {
        [one] => Ok(one),
        _ => Err("this source sends one payload in an event: give `--body` once".to_owned()),
    }
}

fn json_of(payload: &str) -> Result<Value, String> {
    serde_json::from_str(payload).map_err(|error| {
        format!("this source sends JSON, and the payload is not valid JSON: {error}")
    })
}

fn sqs(body: &str, stamp: &mut Stamp) -> Value {
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

fn fifo(body: &str, stamp: &mut Stamp) -> Value {
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
fn notification(message: &str, stamp: &mut Stamp) -> Value {
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

fn sns(message: &str, stamp: &mut Stamp) -> Value {
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

fn event_bridge(detail: &str, stamp: &mut Stamp) -> Result<Value, String> {
    Ok(json!({
        "version": "0",
        "id": stamp.id(),
        "detail-type": "OrderPlaced",
        "source": "orders.example",
        "account": ACCOUNT,
        "time": stamp.time(),
        "region": REGION,
        "resources": [],
        "detail": json_of(detail)?,
    }))
}

/// The input of a schedule, with the two members that say which occurrence of the schedule this is.
fn scheduler(input: &str, stamp: &Stamp) -> Result<Value, String> {
    let mut input = json_of(input)?;
    let Value::Object(members) = &mut input else {
        return Err(
            "the input of a schedule has to be a JSON object, because it holds the schedule's ARN"
                .to_owned(),
        );
    };
    let second = stamp.time().split('.').next().unwrap_or_default().to_owned();
    members.insert("scheduleArn".to_owned(), json!(arn("scheduler", "schedule/default/nightly")));
    members.insert("scheduledTime".to_owned(), json!(format!("{second}Z")));
    Ok(input)
}

fn kinesis(data: &str, stamp: &mut Stamp) -> Value {
    let sequence = format!("4964{:052}", stamp.sequence());
    let sequence = stamp.given().unwrap_or(sequence);
    json!({
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": "customer-1",
            "sequenceNumber": sequence,
            "data": BASE64_STANDARD.encode(data),
            "approximateArrivalTimestamp": stamp.now_ms as f64 / 1000.0,
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": format!("shardId-000000000000:{sequence}"),
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": format!("arn:aws:iam::{ACCOUNT}:role/orders"),
        "awsRegion": REGION,
        "eventSourceARN": arn("kinesis", "stream/orders"),
    })
}

fn dynamodb(item: &str, stamp: &mut Stamp) -> Result<Value, String> {
    let Value::Object(item) = json_of(item)? else {
        return Err("the payload of a DynamoDB record is an item: a JSON object".to_owned());
    };
    let image: Map<String, Value> =
        item.into_iter().map(|(name, value)| (name, attribute(value))).collect();
    let keys: Map<String, Value> = image.clone().into_iter().take(1).collect();
    Ok(json!({
        "eventID": stamp.id().replace('-', ""),
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "dynamodb": {
            "ApproximateCreationDateTime": (stamp.now_ms / 1000) as f64,
            "Keys": keys,
            "SizeBytes": Value::Object(image.clone()).to_string().len(),
            "NewImage": image,
            "SequenceNumber": format!("1{:024}", stamp.sequence()),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": arn("dynamodb", "table/orders/stream/2026-01-01T00:00:00.000"),
    }))
}

/// A value as an attribute of an item.
fn attribute(value: Value) -> Value {
    match value {
        Value::String(text) => json!({ "S": text }),
        Value::Number(number) => json!({ "N": number.to_string() }),
        Value::Bool(bool) => json!({ "BOOL": bool }),
        Value::Null => json!({ "NULL": true }),
        Value::Array(list) => json!({ "L": list.into_iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(map) => {
            let map = map.into_iter().map(|(name, value)| (name, attribute(value)));
            json!({ "M": map.collect::<Map<_, _>>() })
        }
    }
}

fn s3(key: &str, stamp: &mut Stamp) -> Value {
    json!({
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": REGION,
        "eventTime": stamp.time(),
        "eventName": "ObjectCreated:Put",
        "userIdentity": { "principalId": "AWS:AIDAEXAMPLE" },
        "requestParameters": { "sourceIPAddress": "192.0.2.17" },
        "responseElements": { "x-amz-request-id": "D82B88E5F771F645", "x-amz-id-2": "EXAMPLE" },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "828aa6fc-f7b5-4305-8584-487c791949c1",
            "bucket": {
                "name": "orders-example",
                "ownerIdentity": { "principalId": "A3EXAMPLE" },
                "arn": "arn:aws:s3:::orders-example",
            },
            "object": {
                "key": key,
                "size": 1024,
                "eTag": "b21b84d653bb07b05b1e6b33684dc11b",
                "sequencer": format!("00{:016X}", stamp.sequence()),
            },
        },
    })
}

fn documentdb(document: &str, stamp: &mut Stamp) -> Result<Value, String> {
    let mut document = json_of(document)?;
    let id = json!({ "$oid": format!("{:024x}", stamp.sequence()) });
    if let Value::Object(members) = &mut document {
        members.insert("_id".to_owned(), id.clone());
    }
    Ok(json!({ "event": {
        "_id": { "_data": format!("01{:036x}", stamp.sequence()) },
        "clusterTime": { "$timestamp": { "t": stamp.now_ms / 1000, "i": 1 } },
        "documentKey": { "_id": id },
        "fullDocument": document,
        "ns": { "db": "shop", "coll": "orders" },
        "operationType": "insert",
    }}))
}

fn kafka(value: &str, stamp: &mut Stamp) -> Value {
    json!({
        "topic": "orders",
        "partition": 0,
        "offset": stamp.sequence(),
        "timestamp": stamp.now_ms,
        "timestampType": "CREATE_TIME",
        "key": BASE64_STANDARD.encode("customer-1"),
        "value": BASE64_STANDARD.encode(value),
        "headers": [],
    })
}

fn active_mq(data: &str, stamp: &mut Stamp) -> Value {
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

fn rabbit_mq(data: &str, stamp: &mut Stamp) -> Value {
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

fn http(body: &str, stamp: &mut Stamp) -> Value {
    let host = "abcdefgh.lambda-url.eu-west-1.on.aws";
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {
            "authorization": "Bearer a-token-of-ann",
            "content-length": body.len().to_string(),
            "content-type": "application/json",
            "host": host,
            "idempotency-key": stamp.id(),
            "x-forwarded-for": "192.0.2.17",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abcdefgh",
            "domainName": host,
            "domainPrefix": "abcdefgh",
            "http": {
                "method": "POST",
                "path": "/orders",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.17",
                "userAgent": "example/1.0",
            },
            "requestId": stamp.id(),
            "routeKey": "$default",
            "stage": "$default",
            "time": stamp.time(),
            "timeEpoch": stamp.now_ms,
        },
        "body": body,
        "isBase64Encoded": false,
    })
}
