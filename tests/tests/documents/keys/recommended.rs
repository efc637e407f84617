//! The expressions, and the events that each could confuse: a sample with changes after which it is the same work, and
//! changes after which it is other work.

use lambda_idempotency::{
    Operation,
    inspect::{self, AnySource},
    keys::Functions,
    payload, record,
};
use lambda_runtime::Context;
use serde_json::{Value, json};

/// Fields or lists of fields of the payload, with ids that an application gives: each counts, each has to be there, and
/// nothing else counts.
const FIELDS: &str = "Details.ContactData.ContactId; [customer, month]; [customer, orderId]; \
    [deliveryStreamArn, recordId]; [tenant, id]; [a, b]; [id, coupon]; [tenant, order.id]; [tenant, orderId]; \
    [userPoolId, request.userAttributes.sub, triggerSource]; [userPoolId, userName, triggerSource]; bookingId; data; \
    depositId; documentId; email; exportId; id; mailId; month; order; order.id; orderId; order_id; paymentId; payoutId; \
    requestId; resultToken; sku; tenant";
/// Shown as mistakes, or as keys that miss duplicates.
const MISTAKES: [&str; 4] = ["'orderId'", "payment.", "record:@", "record:messageId"];

/// Lines of a log: the first two are compressed in two ways and equal.
const LOGS: [&str; 7] = [
    "awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawGN5vR+UAAAAA==",
    "awslogs/data=H4sIAE0AAAAE/6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawGN5vR+UAAAAA==",
    "awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyAQJTIDADAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKUBhQ6Xa2FoAsapiIlAAAAA=",
    "awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEwGhBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawHyihwiUAAAAA==",
    "awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkl0D4rmWpeSXFSlbR1UqZKSADlGpjawHeFf16UAAAAA==",
    "awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKUBhI6Xa2FoAXZxUOVAAAAA=",
    "awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGp1oEwjpdrYWgBRDmq0WwAAAA==",
];

/// A sample with these changes, with `&` between those that are made together: `path=text`, `path:=json`, or a path alone,
/// for any other text or truth value.
fn changed(sample: &Value, changes: &str) -> Value {
    let mut sample = sample.clone();
    for change in changes.split('&').filter(|change| !change.is_empty()) {
        let (path, value) = change.split_once('=').map_or((change, None), |(p, v)| (p, Some(v)));
        let names = path.trim_end_matches(':').split('/');
        let at = names.fold(&mut sample, |at, name| match name.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[name],
        });
        *at = match (&*at, value) {
            (_, Some(json)) if path.ends_with(':') => serde_json::from_str(json).expect(change),
            (_, Some(text)) => text.into(),
            (Value::String(text), None) => format!("{text}-2").into(),
            (Value::Bool(before), None) => (!before).into(),
            (other, None) => panic!("{path} is {other}: name another value"),
        };
    }
    sample
}

/// Fails unless the sample has one key after each change of `same`, and different ones after those of `distinct`.
fn compare(
    expression: &str,
    key: impl Fn(&Value) -> String,
    sample: &Value,
    same: &[&str],
    distinct: &[&str],
) {
    assert!(!distinct.is_empty(), "`{expression}`: changes after which it is other work");
    for change in same {
        assert_eq!(key(sample), key(&changed(sample, change)), "`{expression}`: {change}");
    }
    let all: Vec<_> = [""].iter().chain(distinct).map(|one| changed(sample, one)).collect();
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            assert_ne!(key(one), key(other), "`{expression}` of {one} and {other}");
        }
    }
}

/// The keys that a producer makes.
fn of_payload(
    expression: &'static str,
    adjust: impl Fn(Operation) -> Operation,
    sample: Value,
    same: &[&str],
    distinct: &[&str],
) {
    let producer = adjust(Operation::new("work").key(expression)).producer().expect(expression);
    let key = |payload: &Value| producer.key(&payload.to_string()).expect(expression);
    compare(expression, |payload| key(payload).as_str().to_owned(), &sample, same, distinct);
}

fn of_fields(expression: &'static str) {
    let list = expression.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let is_field = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let (mut sample, mut distinct, mut missing) = (json!({}), Vec::new(), Vec::new());
    for (at, path) in list.unwrap_or(expression).split(", ").enumerate() {
        assert!(path.chars().all(is_field), "`{expression}` has other steps than fields");
        let path = path.replace('.', "/");
        sample = changed(&sample, &format!("{path}=a-{at}"));
        distinct
            .extend(["=b", ":=42", "=42", "=a-0,a-1", "=A-0"].map(|value| path.clone() + value));
        missing.extend([":=null", "="].map(|value| path.clone() + value));
    }
    let producer = Operation::new("work").key(expression).producer().expect(expression);
    for change in missing {
        let key = producer.key(&changed(&sample, &change).to_string());
        assert!(key.is_err(), "`{expression}` with {change}");
    }
    let distinct: Vec<_> = distinct.iter().map(String::as_str).collect();
    of_payload(expression, |it| it, sample, &["sentAt=later"], &distinct);
}

/// The keys of events, which are samples of `events/` with one record, to which these changes are made.
fn of_event(
    expression: &'static str,
    (file, changes): (&str, &str),
    same: &[&str],
    distinct: &[&str],
) {
    let (operation, source) = (Operation::new("work"), AnySource::new());
    let (operation, source) = match expression.strip_prefix("record:") {
        Some(on_record) => (operation, source.key(record(on_record))),
        // Without `record:`, that of a source whose payload is the whole record.
        None if ["sqs", "activemq"].contains(&file) => {
            (operation.key(expression), source.whole_record())
        }
        None => (operation.key(expression), source),
    };
    let event: Value = serde_json::from_str(&crate::read(&format!("events/{file}.json")))
        .expect("as in the sample");
    let lists = ["/Records", "/events", "/messages", "/records/orders-0"];
    let list = lists.into_iter().find(|list| event.pointer(list).is_some());
    let key = |record: &Value| {
        let mut event = event.clone();
        match list {
            Some(list) => *event.pointer_mut(list).expect("as in the sample") = json!([record]),
            None => event = record.clone(),
        }
        let none = Context::default();
        let records = inspect::invocation(&event.to_string(), &source, Some(&operation), &none);
        let records = records.expect(expression);
        let key = records[0].key.as_ref().expect(expression).key.as_ref();
        key.unwrap_or_else(|error| panic!("`{expression}`: {error}")).as_str().to_owned()
    };
    let sample = list.map_or(&event, |list| &event.pointer(list).expect("as in the sample")[0]);
    compare(expression, key, &changed(sample, changes), same, distinct);
}

/// Payloads: the expression, its settings, a sample, and its changes.
type OfPayload =
    (&'static str, fn(Operation) -> Operation, Value, Vec<&'static str>, Vec<&'static str>);

fn payloads() -> Vec<OfPayload> {
    const PLAIN: fn(Operation) -> Operation = |operation| operation;
    let coupon =
        |operation: Operation| operation.key(payload("[order.id, coupon]").optional(["coupon"]));
    let lower = |operation: Operation| {
        operation.key_functions(Functions::standard().with("lower", 1, |texts| match texts {
            [Value::String(text)] => Ok(text.to_lowercase().into()),
            _ => Err("it takes one text"),
        }))
    };
    vec![
        (
            "[order.id, coupon]",
            coupon,
            json!({ "order": { "id": 7 } }),
            vec!["coupon:=null", "order/note=again"],
            vec!["order/id:=8", "coupon=~", "coupon=SPRING", "order/id:=8&coupon=SPRING"],
        ),
        (
            "json(body).orderId",
            PLAIN,
            json!({ "body": "{\"orderId\":7}" }),
            vec!["body={ \"orderId\": 7 }"],
            vec!["body={\"orderId\":\"7\"}", "body={\"orderId\":8}"],
        ),
        (
            "lower(email)",
            lower,
            json!({ "email": "ann@b.c" }),
            vec!["email=Ann@B.C"],
            vec!["email=an@nb.c"],
        ),
        // A task of S3 Batch Operations: its ids are of one job.
        (
            "[job.id, tasks[0].taskId]",
            PLAIN,
            json!({ "invocationId": "i", "job": { "id": "j" }, "tasks": [{ "taskId": "t" }] }),
            vec!["invocationId"],
            vec!["job/id", "tasks/0/taskId"],
        ),
        (
            "\"CodePipeline.job\".id",
            PLAIN,
            json!({ "CodePipeline.job": { "id": "j" } }),
            vec!["CodePipeline.job/data=1"],
            vec!["CodePipeline.job/id"],
        ),
        (
            "Records[0].ses.mail.messageId",
            PLAIN,
            json!({ "Records": [{ "eventSource": "aws:ses", "ses": {
                "mail": { "messageId": "m", "commonHeaders": { "messageId": "same" } } } }] }),
            vec!["Records/0/ses/receipt=another"],
            vec!["Records/0/ses/mail/messageId"],
        ),
        // What a client sends again over a WebSocket has new ids, and another client may choose the same.
        (
            "[requestContext.authorizer.principalId, json(body).requestId]",
            PLAIN,
            json!({ "body": "{\"requestId\":\"r-1\"}", "requestContext": {
                "messageId": "m", "authorizer": { "principalId": "ann" } } }),
            vec!["requestContext/messageId"],
            vec!["requestContext/authorizer/principalId", "body={\"requestId\":\"r-2\"}"],
        ),
        // A mutation of AppSync.
        (
            "[info.parentTypeName, info.fieldName, identity.sub, arguments.orderId]",
            PLAIN,
            json!({ "identity": { "sub": "ann" }, "arguments": { "orderId": "o" },
                "info": { "parentTypeName": "Mutation", "fieldName": "place" } }),
            vec!["request/headers/x-amzn-trace-id=t"],
            vec!["info/parentTypeName", "info/fieldName", "identity/sub", "arguments/orderId"],
        ),
        // Events that a client has published to a channel of AppSync.
        (
            "[info.channel.path, events[*].id]",
            PLAIN,
            json!({ "info": { "channel": { "path": "/a" } }, "events": [{ "id": "1" }, { "id": "2" }] }),
            vec!["info/operation=PUBLISH", "events/0/payload=p"],
            vec!["info/channel/path", "events/1/id", "events:=[{\"id\":\"1\"}]"],
        ),
        (
            "json(base64_gzip(awslogs.data)).[owner, logGroup, logStream, logEvents[*].id]",
            PLAIN,
            changed(&json!({}), LOGS[0]),
            vec![LOGS[1]],
            LOGS[2..].to_vec(),
        ),
    ]
}

/// The expression, the file and what is changed in it, and the changes after which it is the same or other work.
type Changed =
    (&'static str, (&'static str, &'static str), &'static [&'static str], &'static [&'static str]);

const EVENTS: [Changed; 18] = [
    // SQS compares deduplication ids within a queue, or within a group of it.
    (
        "record:[eventSourceARN, attributes.MessageGroupId, attributes.MessageDeduplicationId]",
        ("sqs-fifo", ""),
        &["attributes/ApproximateReceiveCount=2&receiptHandle"],
        &["eventSourceARN", "attributes/MessageGroupId", "attributes/MessageDeduplicationId"],
    ),
    // A relay sends a message twice.
    (
        "record:messageAttributes.\"idempotency-key\".stringValue",
        ("sqs", "messageAttributes/idempotency-key/stringValue=k"),
        &["messageId"],
        &["messageAttributes/idempotency-key/stringValue"],
    ),
    // Messages whose body is a text: equal texts are one work.
    ("record:body", ("sqs", "body=A17"), &["receiptHandle"], &["body=17", "body= 17"]),
    (
        "record:powertools_json(body).orderId",
        ("sqs", ""),
        &["messageId"],
        &["body={\"orderId\":\"o-2\"}", "body={\"orderId\":1}"],
    ),
    // An id of SQS is unique over all queues.
    (
        "messageId",
        ("sqs", ""),
        &["attributes/ApproximateReceiveCount=2&receiptHandle"],
        &["messageId"],
    ),
    (
        "messageAttributes.order.stringValue",
        ("sqs", "messageAttributes/order/stringValue=o"),
        &["attributes/ApproximateReceiveCount=2&receiptHandle"],
        &["messageAttributes/order/stringValue"],
    ),
    // An id of SNS is unique over all topics.
    ("record:Sns.MessageId", ("sns", ""), &["Sns/Timestamp=later"], &["Sns/MessageId"]),
    (
        "record:[Sns.MessageAttributes.tenant.Value, Sns.MessageId]",
        ("sns", "Sns/MessageAttributes/tenant/Value=t"),
        &["Sns/Timestamp=later"],
        &["Sns/MessageAttributes/tenant/Value", "Sns/MessageId"],
    ),
    (
        "record:Sns.MessageAttributes.orderId.Value",
        ("sns", "Sns/MessageAttributes/orderId/Value=o"),
        &["Sns/MessageId"],
        &["Sns/MessageAttributes/orderId/Value"],
    ),
    (
        "record:Sns.MessageAttributes.\"idempotency-key\".Value",
        ("sns", "Sns/MessageAttributes/idempotency-key/Value=k"),
        &["Sns/MessageId"],
        &["Sns/MessageAttributes/idempotency-key/Value"],
    ),
    (
        "record:resources[0]",
        ("eventbridge", "resources:=[\"k\", \"r\"]"),
        &["id"],
        &["resources/0"],
    ),
    (
        "record:headers.\"idempotency-key\"",
        ("kafka", "headers:=[{\"idempotency-key\":[107]}]"),
        &["offset:=7"],
        &["headers/0/idempotency-key:=[108]"],
    ),
    (
        "record:[eventSourceARN, eventID]",
        ("kinesis", ""),
        &["kinesis/approximateArrivalTimestamp:=7"],
        &["eventSourceARN", "eventID=shardId-000000000000:7", "eventID=shardId-000000000001:7"],
    ),
    // The same change of an item in two streams of the table.
    (
        "[keys.id, newImage.version]",
        (
            "dynamodb",
            "dynamodb/Keys:={\"id\":{\"S\":\"i\"}}&dynamodb/NewImage:={\"version\":{\"N\":\"2\"}}",
        ),
        &["eventSourceARN&eventID&eventName=MODIFY"],
        &["dynamodb/Keys/id/S", "dynamodb/NewImage/version/N=1", "dynamodb/NewImage/version/N=3"],
    ),
    (
        "[newImage.orderId, newImage.version]",
        ("dynamodb", "dynamodb/NewImage/version/N=1"),
        &["eventID"],
        &["dynamodb/NewImage/version/N=2", "dynamodb/NewImage/orderId/S"],
    ),
    (
        "[ns, documentKey._id.\"$oid\", _id._data]",
        ("documentdb", ""),
        &["event/clusterTime/$timestamp/i:=7"],
        &["event/ns/coll", "event/documentKey/_id/$oid", "event/_id/_data"],
    ),
    // Once for each content of an object.
    (
        "[s3.bucket.name, s3.object.key, s3.object.eTag]",
        ("s3", ""),
        &["s3/object/sequencer=01"],
        &["s3/bucket/name", "s3/object/key", "s3/object/eTag"],
    ),
    (
        "[destination.physicalName, messageID, data]",
        ("activemq", ""),
        &["redelivered&brokerOutTime:=7"],
        &["destination/physicalName", "messageID", "data=W10="],
    ),
];

/// Checks all expressions, and returns them.
pub(super) fn check() -> Vec<&'static str> {
    let mut all = MISTAKES.to_vec();
    for expression in FIELDS.split("; ") {
        of_fields(expression);
        all.push(expression);
    }
    for (expression, adjust, sample, same, distinct) in payloads() {
        of_payload(expression, adjust, sample, &same, &distinct);
        all.push(expression);
    }
    for (expression, event, same, distinct) in EVENTS {
        of_event(expression, event, same, distinct);
        all.push(expression);
    }
    all
}
