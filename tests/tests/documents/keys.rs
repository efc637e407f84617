//! Every key that a page of the guide recommends is tested with the events that it could confuse: a sample with changes
//! after which it is the same work, and changes after which it is other work.

use std::collections::BTreeSet;

use lambda_idempotency::{
    Operation,
    keys::{
        inspect::{self, AnySource},
        payload,
        powertools::PowertoolsKeys,
        record,
    },
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::files;

/// Shown as placeholders, or as a mistake.
const OTHERS: [&str; 3] = ["..", "...", "@"];

/// The expressions that a page has in `.key(..)`, with `record:` before those in `record(..)`: of lists and of paths. A
/// name alone is an id that an application gives.
fn recommended(page: &str) -> impl Iterator<Item = String> {
    let of = |sign: &'static str, mark: &'static str| {
        page.split(sign).skip(1).filter_map(move |rest| {
            let text = match rest.strip_prefix("r#\"") {
                Some(raw) => raw.split_once("\"#")?.0.to_owned(),
                None => literal(rest.strip_prefix('"')?)?,
            };
            let is_name = mark.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
            (!is_name && !OTHERS.contains(&&*text)).then(|| format!("{mark}{text}"))
        })
    };
    of(".key(", "").chain(of(".key(payload(", "")).chain(of("record(", "record:"))
}

/// The text of a string up to its end.
fn literal(text: &str) -> Option<String> {
    let mut characters = text.chars();
    let mut found = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(found),
            '\\' => found.push(characters.next()?),
            c => found.push(c),
        }
    }
}

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
fn of_payload(expression: &'static str, sample: Value, same: &[&str], distinct: &[&str]) {
    let operation = match expression.contains("coupon") {
        true => Operation::new("work").key(payload(expression).optional(["coupon"])),
        false => Operation::new("work").key(expression),
    };
    let producer = operation.producer().expect(expression);
    let key = |payload: &Value| producer.key(&payload.to_string()).expect(expression);
    compare(expression, |payload| key(payload).as_str().to_owned(), &sample, same, distinct);
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
    let operation = match expression.contains("powertools_") {
        true => operation.powertools(PowertoolsKeys::python("work")),
        false => operation,
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

/// Payloads: the expression, a sample, changes after which it is the same work, and changes after which it is other work.
/// The lines of logs that are the same work are compressed in two ways.
const PAYLOADS: &str = r##"
[order.id, coupon] | {"order":{"id":7}} | coupon:=null ; order/note=again | order/id:=8 ; coupon=~ ; coupon=SPRING ; order/id:=8&coupon=SPRING
[job.id, tasks[0].taskId] | {"invocationId":"i","job":{"id":"j"},"tasks":[{"taskId":"t"}]} | invocationId | job/id ; tasks/0/taskId
[account, region, source, id] | {"account":"1","region":"eu-west-1","source":"shop","id":"e-1","replay-name":"r"} | replay-name | account ; region ; source ; id
Details.ContactData.ContactId | {"Name":"ContactFlowEvent","Details":{"ContactData":{"ContactId":"c","Channel":"VOICE"}}} | Details/ContactData/Channel | Details/ContactData/ContactId
[execution, state, entered] | {"execution":"arn:e-1","state":"Charge","entered":"2026-01-01T00:00:00.000Z","token":"t"} | token | execution ; state ; entered
[execution, state, entered, index] | {"execution":"arn:e-1","state":"Charge","entered":"2026-01-01T00:00:00.000Z","index":0,"token":"t"} | token | execution ; state ; entered ; index:=1
"CodePipeline.job".id | {"CodePipeline.job":{"id":"j"}} | CodePipeline.job/data=1 | CodePipeline.job/id
Records[0].ses.mail.messageId | {"Records":[{"eventSource":"aws:ses","ses":{"mail":{"messageId":"m","commonHeaders":{"messageId":"same"}}}}]} | Records/0/ses/receipt=another | Records/0/ses/mail/messageId
[requestContext.authorizer.principalId, json(body).requestId] | {"body":"{\"requestId\":\"r-1\"}","requestContext":{"messageId":"m","authorizer":{"principalId":"ann"}}} | requestContext/messageId | requestContext/authorizer/principalId ; body={"requestId":"r-2"}
[info.parentTypeName, info.fieldName, identity.sub, arguments.orderId] | {"identity":{"sub":"ann"},"arguments":{"orderId":"o"},"info":{"parentTypeName":"Mutation","fieldName":"place"}} | request/headers/x-amzn-trace-id=t | info/parentTypeName ; info/fieldName ; identity/sub ; arguments/orderId
[info.channel.path, events[*].id] | {"info":{"channel":{"path":"/a"}},"events":[{"id":"1"},{"id":"2"}]} | info/operation=PUBLISH ; events/0/payload=p | info/channel/path ; events/1/id ; events:=[{"id":"1"}]
json(base64_gzip(awslogs.data)).[owner, logGroup, logStream, logEvents[*].id] | {"awslogs":{"data":"H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawGN5vR+UAAAAA=="}} | awslogs/data=H4sIAE0AAAAE/6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawGN5vR+UAAAAA== | awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEwGhBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKSADlGpjawHyihwiUAAAAA== ; awslogs/data=H4sIAAAAAAACA6tWyi/PSy1SslIyBAIjIDAGAiUdpZz8dPei/NICoEw6hBtcUpSamAvkF0P4rmWpeSXFSlbR1UqZKUBhI6Xa2FoAXZxUOVAAAAA=
[userPoolId, request.userAttributes.sub, triggerSource] | {"userPoolId":"p","triggerSource":"t","userName":"ann","request":{"userAttributes":{"sub":"s"}}} | userName | userPoolId ; triggerSource ; request/userAttributes/sub
[userPoolId, userName, triggerSource] | {"userPoolId":"p","triggerSource":"t","userName":"ann"} | callerContext=c | userPoolId ; triggerSource ; userName
[tenant, order.id] | {"tenant":"t","order":{"id":"7"}} | order/note=again | tenant ; order/id ; order/id:=7 ; tenant=t,7
[deliveryStreamArn, recordId] | {"deliveryStreamArn":"a","recordId":"r"} | invocationId=i | deliveryStreamArn ; recordId
"##;

/// Events: the expression, the file and what is changed in it, and the changes.
const EVENTS: &str = r##"
record:[eventSourceARN, attributes.MessageGroupId, attributes.MessageDeduplicationId] | sqs-fifo | | attributes/ApproximateReceiveCount=2&receiptHandle | eventSourceARN ; attributes/MessageGroupId ; attributes/MessageDeduplicationId
record:messageAttributes."idempotency-key".stringValue | sqs | messageAttributes/idempotency-key/stringValue=k | messageId | messageAttributes/idempotency-key/stringValue
record:body | sqs | body=A17 | receiptHandle | body=17 ; body=017
record:[Sns.MessageAttributes.tenant.Value, Sns.MessageId] | sns | Sns/MessageAttributes/tenant/Value=t | Sns/Timestamp=later | Sns/MessageAttributes/tenant/Value ; Sns/MessageId
record:powertools_json(body).orderId | sqs | | messageId | body={"orderId":"o-2"} ; body={"orderId":1}
record:Sns.MessageAttributes.orderId.Value | sns | Sns/MessageAttributes/orderId/Value=o | Sns/MessageId | Sns/MessageAttributes/orderId/Value
record:Sns.MessageAttributes."idempotency-key".Value | sns | Sns/MessageAttributes/idempotency-key/Value=k | Sns/MessageId | Sns/MessageAttributes/idempotency-key/Value
record:resources[0] | eventbridge | resources:=["k", "r"] | id | resources/0
record:headers."idempotency-key" | kafka | headers:=[{"idempotency-key":[107]}] | offset:=7 | headers/0/idempotency-key:=[108]
[keys.id, newImage.version] | dynamodb | dynamodb/Keys:={"id":{"S":"i"}}&dynamodb/NewImage:={"version":{"N":"2"}} | eventSourceARN&eventID&eventName=MODIFY | dynamodb/Keys/id/S ; dynamodb/NewImage/version/N=1 ; dynamodb/NewImage/version/N=3
[newImage.orderId, newImage.version] | dynamodb | dynamodb/NewImage/version/N=1 | eventID | dynamodb/NewImage/version/N=2 ; dynamodb/NewImage/orderId/S
[ns, documentKey._id."$oid", _id._data] | documentdb | | event/clusterTime/$timestamp/i:=7 | event/ns/coll ; event/documentKey/_id/$oid ; event/_id/_data
[s3.bucket.name, s3.object.key, s3.object.eTag] | s3 | | s3/object/sequencer=01 | s3/bucket/name ; s3/object/key ; s3/object/eTag
[s3.bucket.name, url_decode(s3.object.key), s3.object.sequencer] | s3 | s3/object/key=a+b%281%29.jpg | s3/object/key=a%20b(1).jpg ; eventTime=2026-01-01T00:00:00.000Z | s3/bucket/name ; s3/object/key=a%2Bb%281%29.jpg ; s3/object/sequencer
[bucket.name, object.key, object.sequencer] | eventbridge | detail:={"bucket":{"name":"b"},"object":{"key":"a+b","sequencer":"0C"}} | id ; detail/object/etag=e | detail/bucket/name ; detail/object/key=a b ; detail/object/sequencer
"##;

/// The rows of a table, by cells; a cell of changes has several.
fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let rows = table.lines().filter(|row| !row.is_empty());
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("{cells:?}"))
    })
}

fn several(cell: &str) -> Vec<&str> {
    cell.split(" ; ").collect()
}

#[test]
fn each_key_that_a_page_recommends_tells_apart_what_it_should() {
    let mut tested: BTreeSet<String> = BTreeSet::new();
    for [expression, sample, same, distinct] in rows(PAYLOADS) {
        let sample = serde_json::from_str(sample).expect(sample);
        of_payload(expression, sample, &several(same), &several(distinct));
        tested.insert(expression.to_owned());
    }
    for [expression, file, changes, same, distinct] in rows(EVENTS) {
        of_event(expression, (file, changes), &several(same), &several(distinct));
        tested.insert(expression.to_owned());
    }
    let pages = files(&["crates/lambda/src/guide"], &[".md"]);
    let found: BTreeSet<String> = pages.iter().flat_map(|(_, page)| recommended(page)).collect();
    assert_eq!(found, tested, "say which events a recommended key could confuse");
}
