//! What holds for every template, however its resources are named.

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{at, deployed, entries, of_type, referred, target},
    grants, retention,
};

const CHECKS: [fn(&Value) -> Problems; 5] =
    [tables, mappings, application, grants::permissions, retention::problems];

/// The problems of the template in each way in which it can be deployed.
pub(crate) fn problems(template: &Value) -> Problems {
    let ways = deployed(template);
    let problems = ways.iter().flat_map(|way| CHECKS.iter().flat_map(|check| check(way)));
    let mut problems: Problems = problems.collect();
    problems.sort();
    problems.dedup();
    problems
}

/// A problem for each of these that is not as expected.
pub(crate) fn unlike(of: &str, expected: &[(&str, &Value, Value)]) -> Problems {
    let wrong = expected.iter().filter(|(_, found, expected)| *found != expected);
    wrong
        .map(|(what, found, expected)| format!("{of}: {what} is {found}, must be {expected}"))
        .collect()
}

/// The template's one function.
pub(crate) fn the_function(template: &Value) -> &Value {
    of_type(template, "AWS::Serverless::Function").first().map_or(&Value::Null, |(_, it)| *it)
}

/// The table of the function's idempotency records.
fn tables(template: &Value) -> Problems {
    let variables = &the_function(template)["Properties"]["Environment"]["Variables"];
    let ours = target(&variables["IDEMPOTENCY_TABLE"]);
    let table = at(template, &format!("/Resources/{ours}"));
    let properties = &table["Properties"];
    if table["Type"] != "AWS::DynamoDB::Table" {
        return vec![format!("IDEMPOTENCY_TABLE: there is no table {ours}")];
    }
    let key = json!([{ "AttributeName": "id", "KeyType": "HASH" }]);
    let swept = json!({ "AttributeName": "expiration", "Enabled": true });
    let attributes = json!([{ "AttributeName": "id", "AttributeType": "S" }]);
    unlike(
        ours,
        &[
            ("UpdateReplacePolicy", &table["UpdateReplacePolicy"], json!("Retain")),
            ("AttributeDefinitions", &properties["AttributeDefinitions"], attributes),
            ("KeySchema", &properties["KeySchema"], key),
            ("TimeToLiveSpecification", &properties["TimeToLiveSpecification"], swept),
        ],
    )
}

/// Everything that invokes the function.
pub(crate) fn mappings(template: &Value) -> Problems {
    let function = &the_function(template)["Properties"];
    let mut problems = Problems::new();
    let others = of_type(template, "AWS::Lambda::EventSourceMapping").into_iter();
    let others = others.map(|(name, it)| (name, &it["Type"], &it["Properties"]));
    let events = entries(&function["Events"]).into_iter();
    let events = events.map(|(name, it)| (name.as_str(), &it["Type"], &it["Properties"]));
    for (name, kind, mapping) in events.chain(others) {
        let found = match kind.as_str() {
            Some("SQS") => queue(template, mapping, function["Timeout"].as_u64().unwrap_or(0)),
            Some("Kinesis" | "DynamoDB" | "AWS::Lambda::EventSourceMapping") => {
                stream(template, mapping)
            }
            Some("HttpApi") => continue,
            Some("SNS") => asynchronous(template, &mapping["RedrivePolicy"]["deadLetterTargetArn"]),
            Some("EventBridgeRule") => asynchronous(template, &mapping["DeadLetterConfig"]["Arn"]),
            other => vec![format!("no check knows events of {other:?}")],
        };
        problems.extend(found.into_iter().map(|problem| format!("{name}: {problem}")));
        let answers = !["SNS", "EventBridgeRule"].iter().any(|it| kind == it);
        if answers && mapping["FunctionResponseTypes"] != json!(["ReportBatchItemFailures"]) {
            problems.push(format!("{name}: no ReportBatchItemFailures"));
        }
    }
    problems
}

/// SNS and EventBridge invoke the function through Lambda's asynchronous queue: what they could not hand over and what it
/// could not process is kept.
fn asynchronous(template: &Value, undelivered: &Value) -> Problems {
    let again = &the_function(template)["Properties"]["EventInvokeConfig"];
    let failed = &again["DestinationConfig"]["OnFailure"]["Destination"];
    let lost = [failed, undelivered].into_iter().filter(|kept| !is_queue(template, kept));
    lost.map(|kept| format!("no queue: {kept}")).collect()
}

fn is_queue(template: &Value, reference: &Value) -> bool {
    at(template, &format!("/Resources/{}/Type", target(reference))) == "AWS::SQS::Queue"
}

/// The function's idempotency records are of the stack: the function's name changes when it is replaced.
pub(crate) fn application(template: &Value) -> Problems {
    let variables = &the_function(template)["Properties"]["Environment"]["Variables"];
    let stack = json!({ "Ref": "AWS::StackName" });
    unlike(
        "variables",
        &[("IDEMPOTENCY_APPLICATION", &variables["IDEMPOTENCY_APPLICATION"], stack)],
    )
}

/// The seconds that a queue keeps messages.
pub(crate) fn kept(queue: &Value) -> u64 {
    queue["MessageRetentionPeriod"].as_u64().unwrap_or(345_600)
}

fn queue(template: &Value, mapping: &Value, timeout: u64) -> Problems {
    let mut problems = Problems::new();
    let queue = referred(template, &mapping["Queue"]);
    let window = mapping["MaximumBatchingWindowInSeconds"].as_u64().unwrap_or(0);
    if mapping["BatchSize"].as_u64().is_none_or(|size| size > 10 && window == 0) {
        problems.push(format!("a BatchSize of {} needs a window", mapping["BatchSize"]));
    }
    // A message stays invisible for six times as long as an invocation, and the batching window. SQS allows 12 hours.
    let visibility = queue["VisibilityTimeout"].as_u64().unwrap_or(30);
    let least = 6 * timeout + window;
    if timeout == 0 || !(least..=43_200).contains(&visibility) {
        problems.push(format!("VisibilityTimeout is {visibility}, must be at least {least}"));
    }
    let attempts = &queue["RedrivePolicy"]["maxReceiveCount"];
    let fifo = queue["FifoQueue"] == true;
    // Three records that kill keep those of other order groups for longer.
    let least = if fifo { 15 } else { 10 };
    if attempts.as_u64().is_none_or(|attempts| attempts < least) {
        problems.push(format!("maxReceiveCount is {attempts}, must be at least {least}"));
    }
    let dead_letters = referred(template, &queue["RedrivePolicy"]["deadLetterTargetArn"]);
    if dead_letters.is_null() || dead_letters == queue || kept(dead_letters) <= kept(queue) {
        problems.push("no dead-letter queue that keeps messages for longer".to_owned());
    }
    if (dead_letters["FifoQueue"] == true) != fifo {
        problems.push("the dead-letter queue is of another kind".to_owned());
    }
    problems
}

/// A record that always fails must not block its stream forever.
fn stream(template: &Value, mapping: &Value) -> Problems {
    let mut problems = Problems::new();
    if mapping["BisectBatchOnFunctionError"] != true {
        problems.push("no BisectBatchOnFunctionError".to_owned());
    }
    // Each delivery in an outage of the table takes five seconds: these are more than an hour.
    if mapping["MaximumRetryAttempts"].as_u64().is_none_or(|most| !(1000..=10_000).contains(&most))
    {
        problems.push("MaximumRetryAttempts must be 1000 to 10000".to_owned());
    }
    let age = &mapping["MaximumRecordAgeInSeconds"];
    if age.as_u64().is_none_or(|age| !(60..=24 * 3600).contains(&age)) {
        problems.push(format!("MaximumRecordAgeInSeconds is {age}, must be a day at most"));
    }
    if !is_queue(template, &mapping["DestinationConfig"]["OnFailure"]["Destination"]) {
        problems.push("no OnFailure queue".to_owned());
    }
    problems
}
