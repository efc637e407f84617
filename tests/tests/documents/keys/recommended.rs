//! The expressions, and the events that each could confuse.

use lambda_idempotency::{Operation, inspect::AnySource, keys::Functions, payload};
use serde_json::{Value, json};

/// How an expression is tested.
pub(super) enum Checked {
    /// A field or a list of fields of the payload, with ids that an application gives.
    Fields,
    /// Payloads of one key, and payloads of different ones.
    Payloads(fn(Operation) -> Operation, Samples, Samples),
    /// Events with one record: deliveries of one record, and of different ones.
    Events(Adjust, Samples, Samples),
    /// It is shown as a mistake, or as a key that misses duplicates.
    Mistake,
}

type Adjust = fn(AnySource) -> AnySource;
type Samples = Vec<Value>;

use Checked::{Fields, Mistake};

const AS_IT_IS: Adjust = |source| source;
const PLAIN: fn(Operation) -> Operation = |operation| operation;
const WHOLE: Adjust = AnySource::whole_record;

/// A message of SQS: its queue, id, number of receives, and other members.
fn sqs(queue: &str, id: &str, receives: u32, more: Value) -> Value {
    let mut message = json!({
        "messageId": id, "receiptHandle": format!("handle-{receives}"), "body": "{}",
        "eventSource": "aws:sqs", "messageAttributes": {},
        "eventSourceARN": format!("arn:aws:sqs:eu-west-1:111122223333:{queue}"),
        "attributes": { "ApproximateReceiveCount": receives.to_string() },
    });
    merge(&mut message, more);
    json!({ "Records": [message] })
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(members), Value::Object(more)) => {
            for (name, value) in more {
                merge(members.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// A message of a group of a FIFO queue.
fn in_group(queue: &str, group: &str, deduplication: &str, receives: u32) -> Value {
    let ids = json!({ "MessageGroupId": group, "MessageDeduplicationId": deduplication });
    let id = format!("{queue}-{group}-{deduplication}");
    sqs(queue, &id, receives, json!({ "attributes": ids }))
}

fn with_body(body: &str, id: &str, receives: u32) -> Value {
    sqs("orders", id, receives, json!({ "body": body }))
}

fn with_attribute(name: &str, value: &str, id: &str, receives: u32) -> Value {
    let attribute = json!({ name: { "stringValue": value, "dataType": "String" } });
    sqs("parcels", id, receives, json!({ "messageAttributes": attribute }))
}

fn sns(topic: &str, id: &str, attributes: Value) -> Value {
    json!({ "Records": [{ "EventSource": "aws:sns", "EventVersion": "1.0",
        "Sns": { "Type": "Notification", "MessageId": id, "Message": "{}",
            "TopicArn": format!("arn:aws:sns:eu-west-1:111122223333:{topic}"),
            "MessageAttributes": attributes } }] })
}

fn sns_attribute(name: &str, value: &str, id: &str) -> Value {
    sns("orders", id, json!({ name: { "Type": "String", "Value": value } }))
}

/// A change of an item: the table's stream, the event's id and name, and the images.
fn change(stream: &str, id: &str, name: &str, change: Value) -> Value {
    let mut dynamodb = json!({ "SequenceNumber": id, "StreamViewType": "NEW_AND_OLD_IMAGES" });
    merge(&mut dynamodb, change);
    json!({ "Records": [{ "eventID": id, "eventName": name, "eventSource": "aws:dynamodb",
        "eventSourceARN": format!("arn:aws:dynamodb:eu-west-1:111122223333:table/orders/stream/{stream}"),
        "dynamodb": dynamodb }] })
}

/// A change to this version of an item.
fn version(stream: &str, event: &str, name: &str, id: &str, version: u32) -> Value {
    let version = version.to_string();
    let images = json!({ "Keys": { "id": { "S": id } },
        "NewImage": { "id": { "S": id }, "version": { "N": version } } });
    change(stream, event, name, images)
}

/// An order in this status.
fn status(event: &str, name: &str, id: &str, status: &str, note: &str) -> Value {
    let images = json!({ "Keys": { "orderId": { "S": id } },
        "NewImage": { "orderId": { "S": id }, "status": { "S": status }, "note": { "S": note } } });
    change("2026", event, name, images)
}

/// A change of a document: its collection, id and resume token.
fn document(collection: &str, id: &str, token: &str) -> Value {
    json!({ "eventSource": "aws:docdb",
        "eventSourceArn": "arn:aws:rds:eu-west-1:111122223333:cluster:shop",
        "events": [{ "event": { "_id": { "_data": token }, "operationType": "update",
            "ns": { "db": "shop", "coll": collection },
            "documentKey": { "_id": { "$oid": id } } } }] })
}

/// A notification of S3: the bucket, the object's key and eTag, and the sequencer.
fn upload(bucket: &str, key: &str, tag: &str, sequencer: &str) -> Value {
    json!({ "Records": [{ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
        "eventTime": "2026-01-01T00:00:00.000Z",
        "s3": { "bucket": { "name": bucket, "arn": format!("arn:aws:s3:::{bucket}") },
            "object": { "key": key, "eTag": tag, "sequencer": sequencer, "size": 1 } } }] })
}

/// A received mail: its id of SES, and something else.
fn mail(id: &str, more: &str) -> Value {
    json!({ "Records": [{ "eventSource": "aws:ses",
        "ses": { "mail": { "messageId": id, "commonHeaders": { "messageId": "same" } },
            "receipt": more } }] })
}

/// A message of a WebSocket API: who sent it, the client's id in it, and the API's.
fn message(who: &str, request: &str, id: &str) -> Value {
    json!({ "body": json!({ "requestId": request }).to_string(),
        "requestContext": { "connectionId": "c-1", "eventType": "MESSAGE", "messageId": id,
            "authorizer": { "principalId": who } } })
}

/// A mutation of AppSync: its field, who asks for it, for which order, and a header that differs for each attempt.
fn mutation(field: &str, who: &str, order: &str, trace: &str) -> Value {
    json!({ "identity": { "sub": who }, "arguments": { "orderId": order },
        "request": { "headers": { "x-amzn-trace-id": trace } },
        "info": { "parentTypeName": "Mutation", "fieldName": field } })
}

/// Events that a client has published to a channel of AppSync.
fn published(channel: &str, ids: &[&str]) -> Value {
    let events: Vec<_> = ids.iter().map(|id| json!({ "id": id, "payload": {} })).collect();
    json!({ "info": { "channel": { "path": channel }, "operation": "PUBLISH" }, "events": events })
}

fn kinesis(stream: &str, shard: &str, number: &str) -> Value {
    json!({ "Records": [{ "eventID": format!("{shard}:{number}"), "eventSource": "aws:kinesis",
        "eventName": "aws:kinesis:record", "eventVersion": "1.0",
        "eventSourceARN": format!("arn:aws:kinesis:eu-west-1:111122223333:stream/{stream}"),
        "kinesis": { "partitionKey": "k", "sequenceNumber": number, "data": "e30=",
            "approximateArrivalTimestamp": 1_767_225_600.0 } }] })
}

/// A Kafka record: its offset, and a header as Lambda delivers it, as bytes.
fn kafka(offset: u32, header: &str) -> Value {
    json!({ "eventSource": "aws:kafka", "bootstrapServers": "b-1:9092",
        "eventSourceArn": "arn:aws:kafka:eu-west-1:111122223333:cluster/shop/3f2a-4",
        "records": { "orders-0": [{ "topic": "orders", "partition": 0, "offset": offset,
            "timestamp": 1_767_225_600_000_u64, "timestampType": "CREATE_TIME", "value": "e30=",
            "headers": [{ "idempotency-key": header.as_bytes() }] }] } })
}

/// A message on the queue of an ActiveMQ broker.
fn active_mq(queue: &str, id: &str, data: &str, redelivered: bool) -> Value {
    json!({ "eventSource": "aws:mq",
        "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:shop:b-1",
        "messages": [{ "messageID": id, "messageType": "jms/text-message", "data": data,
            "redelivered": redelivered, "destination": { "physicalName": queue },
            "brokerOutTime": if redelivered { 2 } else { 1 } }] })
}

fn event_bridge(id: &str, resource: &str) -> Value {
    json!({ "version": "0", "id": id, "source": "orders", "detail-type": "OrderPlaced",
        "account": "111122223333", "region": "eu-west-1", "time": "2026-01-01T00:00:00Z",
        "resources": [resource, "arn:aws:s3:::another"], "detail": {} })
}

/// Lines of a log: the first two are compressed in two ways and equal.
const LOGS: [&str; 7] = [
    "H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawGN5vR+UAAAAA==",
    "H4sIAE0AAAAE/6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawGN5vR+UAAAAA==",
    "H4sIAAAAAAACA6tWyi/PSy1SslIyAQJTIDADAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKUBhQ6Xa2FoAsapiIlAAAAA=",
    "H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEwGhBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawHyihwiUAAAAA==",
    "H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkl0D4rmWpeSXFSlbR1UqZKSADlGpjawHeFf16UAAAAA==",
    "H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKUBhI6Xa2FoAXZxUOVAAAAA=",
    "H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGp1oEwjpdrYWgBRDmq0WwAAAA==",
];

fn logs(at: usize) -> Value {
    json!({ "awslogs": { "data": LOGS[at] } })
}

fn lower(operation: Operation) -> Operation {
    operation.key_functions(Functions::standard().with("lower", 1, |arguments| match arguments {
        [Value::String(text)] => Ok(text.to_lowercase().into()),
        _ => Err("it takes one text"),
    }))
}

type Row = (&'static str, Checked);

fn payloads(
    expression: &'static str,
    adjust: fn(Operation) -> Operation,
    same: impl Into<Samples>,
    distinct: impl Into<Samples>,
) -> Row {
    (expression, Checked::Payloads(adjust, same.into(), distinct.into()))
}

fn events(
    expression: &'static str,
    adjust: Adjust,
    same: impl Into<Samples>,
    distinct: impl Into<Samples>,
) -> Row {
    (expression, Checked::Events(adjust, same.into(), distinct.into()))
}

pub(super) fn expressions() -> Vec<Row> {
    vec![
        ("Details.ContactData.ContactId", Fields),
        ("[customer, month]", Fields),
        ("[customer, orderId]", Fields),
        ("[deliveryStreamArn, recordId]", Fields),
        ("[tenant, id]", Fields),
        ("[a, b]", Fields),
        ("[id, coupon]", Fields),
        ("[tenant, order.id]", Fields),
        ("[tenant, orderId]", Fields),
        ("[userPoolId, request.userAttributes.sub, triggerSource]", Fields),
        ("[userPoolId, userName, triggerSource]", Fields),
        ("bookingId", Fields),
        ("data", Fields),
        ("depositId", Fields),
        ("documentId", Fields),
        ("email", Fields),
        ("exportId", Fields),
        ("id", Fields),
        ("mailId", Fields),
        ("month", Fields),
        ("order", Fields),
        ("order.id", Fields),
        ("orderId", Fields),
        ("order_id", Fields),
        ("paymentId", Fields),
        ("payoutId", Fields),
        ("requestId", Fields),
        ("resultToken", Fields),
        ("sku", Fields),
        ("tenant", Fields),
        ("'orderId'", Mistake),
        ("payment.", Mistake),
        ("record:@", Mistake),
        ("record:messageId", Mistake),
        payloads(
            "[order.id, coupon]",
            |operation| operation.key(payload("[order.id, coupon]").optional(["coupon"])),
            [
                json!({ "order": { "id": 7 } }),
                json!({ "order": { "id": 7 }, "coupon": null }),
                json!({ "order": { "id": 7, "note": "again" } }),
            ],
            [
                json!({ "order": { "id": 7 } }),
                json!({ "order": { "id": 8 } }),
                json!({ "order": { "id": 7 }, "coupon": "~" }),
                json!({ "order": { "id": 7 }, "coupon": "SPRING" }),
                json!({ "order": { "id": 8 }, "coupon": "SPRING" }),
            ],
        ),
        payloads(
            "json(body).orderId",
            PLAIN,
            [json!({ "body": "{\"orderId\":7}" }), json!({ "body": "{ \"orderId\": 7 }" })],
            [
                json!({ "body": "{\"orderId\":7}" }),
                json!({ "body": "{\"orderId\":\"7\"}" }),
                json!({ "body": "{\"orderId\":8}" }),
            ],
        ),
        payloads(
            "lower(email)",
            lower,
            [json!({ "email": "Ann@b.c" }), json!({ "email": "ann@B.C" })],
            [json!({ "email": "ann@b.c" }), json!({ "email": "an@nb.c" })],
        ),
        // A task of S3 Batch Operations: its ids are of one job.
        payloads(
            "[job.id, tasks[0].taskId]",
            PLAIN,
            {
                let task = |invocation: &str| json!({ "invocationId": invocation, "job": { "id": "j-1" }, "tasks": [{ "taskId": "t-1" }] });
                [task("i-1"), task("i-2")]
            },
            {
                let task = |job: &str, task: &str| json!({ "job": { "id": job }, "tasks": [{ "taskId": task }] });
                [task("j-1", "t-1"), task("j-1", "t-2"), task("j-2", "t-1")]
            },
        ),
        payloads(
            "\"CodePipeline.job\".id",
            PLAIN,
            [json!({ "CodePipeline.job": { "id": "j-1" } })],
            ["j-1", "j-2"].map(|id| json!({ "CodePipeline.job": { "id": id } })),
        ),
        payloads(
            "Records[0].ses.mail.messageId",
            PLAIN,
            [mail("m-1", "subject"), mail("m-1", "receipt")],
            [mail("m-1", "subject"), mail("m-2", "subject")],
        ),
        // What a client sends again has new ids, and another client may choose the same.
        payloads(
            "[requestContext.authorizer.principalId, json(body).requestId]",
            PLAIN,
            [message("ann", "r-1", "m-1"), message("ann", "r-1", "m-2")],
            [
                message("ann", "r-1", "m-1"),
                message("ann", "r-2", "m-1"),
                message("bob", "r-1", "m-1"),
            ],
        ),
        payloads(
            "[info.parentTypeName, info.fieldName, identity.sub, arguments.orderId]",
            PLAIN,
            ["t-1", "t-2"].map(|trace| mutation("place", "ann", "o-1", trace)),
            [
                mutation("place", "ann", "o-1", "t-1"),
                mutation("place", "ann", "o-2", "t-1"),
                mutation("place", "bob", "o-1", "t-1"),
                mutation("cancel", "ann", "o-1", "t-1"),
            ],
        ),
        payloads(
            "[info.channel.path, events[*].id]",
            PLAIN,
            [1, 2].map(|_| published("/a", &["e-1", "e-2"])),
            [
                published("/a", &["e-1", "e-2"]),
                published("/a", &["e-3"]),
                published("/b", &["e-1", "e-2"]),
            ],
        ),
        payloads(
            "json(base64_gzip(awslogs.data)).[owner, logGroup, logStream, logEvents[*].id]",
            PLAIN,
            [logs(0), logs(1)],
            (1..LOGS.len()).map(logs).collect::<Vec<_>>(),
        ),
        // SQS compares deduplication ids within a queue, or within a group of it.
        events(
            "record:[eventSourceARN, attributes.MessageGroupId, attributes.MessageDeduplicationId]",
            AS_IT_IS,
            [in_group("a.fifo", "g", "d", 1), in_group("a.fifo", "g", "d", 2)],
            [
                in_group("a.fifo", "g", "d", 1),
                in_group("a.fifo", "g", "e", 1),
                in_group("a.fifo", "h", "d", 1),
                in_group("b.fifo", "g", "d", 1),
            ],
        ),
        events(
            "record:messageAttributes.\"idempotency-key\".stringValue",
            AS_IT_IS,
            // A relay sends a message twice.
            ["m-1", "m-2"].map(|id| with_attribute("idempotency-key", "k-1", id, 1)),
            ["k-1", "k-2"].map(|key| with_attribute("idempotency-key", key, "m-1", 1)),
        ),
        // Messages whose body is a text: equal texts are one work.
        events(
            "record:body",
            AS_IT_IS,
            [1, 2].map(|receives| with_body("A17", "m-1", receives)),
            ["A17", "17", " 17"].map(|body| with_body(body, "m-1", 1)),
        ),
        events(
            "record:powertools_json(body).orderId",
            AS_IT_IS,
            {
                let body = r#"{"orderId":"o-1"}"#;
                [with_body(body, "m-1", 1), with_body(body, "m-2", 1)]
            },
            [r#"{"orderId":"o-1"}"#, r#"{"orderId":"o-2"}"#, r#"{"orderId":1}"#]
                .map(|body| with_body(body, "m-1", 1)),
        ),
        // An id of SQS is unique over all queues.
        events(
            "messageId",
            WHOLE,
            [1, 2].map(|receives| sqs("a", "m-1", receives, json!({}))),
            ["m-1", "m-2"].map(|id| sqs("a", id, 1, json!({}))),
        ),
        events(
            "messageAttributes.order.stringValue",
            WHOLE,
            [1, 2].map(|receives| with_attribute("order", "o-1", "m-1", receives)),
            ["o-1", "o-2"].map(|order| with_attribute("order", order, "m-1", 1)),
        ),
        // An id of SNS is unique over all topics.
        events(
            "record:Sns.MessageId",
            AS_IT_IS,
            [sns("a", "m-1", json!({})), sns("a", "m-1", json!({}))],
            [sns("a", "m-1", json!({})), sns("a", "m-2", json!({})), sns("b", "m-3", json!({}))],
        ),
        events(
            "record:[Sns.MessageAttributes.tenant.Value, Sns.MessageId]",
            AS_IT_IS,
            [sns_attribute("tenant", "a", "m-1"), sns_attribute("tenant", "a", "m-1")],
            [
                sns_attribute("tenant", "a", "m-1"),
                sns_attribute("tenant", "a", "m-2"),
                sns_attribute("tenant", "b", "m-1"),
            ],
        ),
        events(
            "record:Sns.MessageAttributes.orderId.Value",
            AS_IT_IS,
            ["m-1", "m-2"].map(|id| sns_attribute("orderId", "o-1", id)),
            ["o-1", "o-2"].map(|order| sns_attribute("orderId", order, "m-1")),
        ),
        events(
            "record:Sns.MessageAttributes.\"idempotency-key\".Value",
            AS_IT_IS,
            ["m-1", "m-2"].map(|id| sns_attribute("idempotency-key", "k-1", id)),
            ["k-1", "k-2"].map(|key| sns_attribute("idempotency-key", key, "m-1")),
        ),
        events(
            "record:resources[0]",
            AS_IT_IS,
            ["e-1", "e-2"].map(|id| event_bridge(id, "k-1")),
            ["k-1", "k-2"].map(|key| event_bridge("e-1", key)),
        ),
        events(
            "record:headers.\"idempotency-key\"",
            AS_IT_IS,
            [kafka(1, "k-1"), kafka(2, "k-1")],
            [kafka(1, "k-1"), kafka(1, "k-2")],
        ),
        events(
            "record:[eventSourceARN, eventID]",
            AS_IT_IS,
            [kinesis("a", "shard-1", "7"), kinesis("a", "shard-1", "7")],
            [
                kinesis("a", "shard-1", "7"),
                kinesis("a", "shard-1", "8"),
                kinesis("a", "shard-2", "7"),
                kinesis("b", "shard-1", "7"),
            ],
        ),
        // All changes of an item, and the same change in two streams of the table.
        events(
            "[keys.id, newImage.version]",
            AS_IT_IS,
            [version("2026", "e-1", "MODIFY", "i", 2), version("2027", "e-9", "MODIFY", "i", 2)],
            [
                version("2026", "e-1", "INSERT", "i", 1),
                version("2026", "e-2", "MODIFY", "i", 2),
                version("2026", "e-3", "MODIFY", "i", 3),
                version("2026", "e-4", "INSERT", "j", 1),
            ],
        ),
        // One receipt for each status of an order: a note is no reason for another.
        events(
            "[newImage.orderId, newImage.status]",
            AS_IT_IS,
            [
                status("e-2", "MODIFY", "o-1", "paid", ""),
                status("e-3", "MODIFY", "o-1", "paid", "n"),
            ],
            [
                status("e-1", "INSERT", "o-1", "new", ""),
                status("e-2", "MODIFY", "o-1", "paid", ""),
                status("e-4", "MODIFY", "o-1", "sent", ""),
                status("e-5", "INSERT", "o-2", "new", ""),
            ],
        ),
        events(
            "[ns, documentKey._id.\"$oid\", _id._data]",
            AS_IT_IS,
            [document("orders", "d-1", "t-1"), document("orders", "d-1", "t-1")],
            [
                document("orders", "d-1", "t-1"),
                document("orders", "d-1", "t-2"),
                document("orders", "d-2", "t-1"),
                document("bills", "d-1", "t-1"),
            ],
        ),
        // Once for each content of an object.
        events(
            "[s3.bucket.name, s3.object.key, s3.object.eTag]",
            AS_IT_IS,
            [upload("a", "k", "t-1", "01"), upload("a", "k", "t-1", "02")],
            [
                upload("a", "k", "t-1", "01"),
                upload("a", "k", "t-2", "02"),
                upload("a", "l", "t-1", "01"),
                upload("b", "k", "t-1", "01"),
            ],
        ),
        events(
            "[destination.physicalName, messageID, data]",
            WHOLE,
            [active_mq("a", "m-1", "e30=", false), active_mq("a", "m-1", "e30=", true)],
            [
                active_mq("a", "m-1", "e30=", false),
                active_mq("a", "m-1", "W10=", false),
                active_mq("a", "m-2", "e30=", false),
                active_mq("b", "m-1", "e30=", false),
            ],
        ),
    ]
}
