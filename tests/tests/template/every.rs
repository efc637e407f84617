//! What holds for every template, however its resources are named.

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{at, deployed, entries, get_att, items, keys, of_type, referred, target},
    retention,
};

const CHECKS: [fn(&Value) -> Problems; 11] = [
    function,
    tables,
    mappings,
    alarms,
    application,
    encryption,
    crate::grants::permissions,
    crate::http::http,
    crate::chain::chain,
    crate::chain::in_transit,
    retention::problems,
];

/// The problems of the template in each way in which it can be deployed.
pub(crate) fn problems(template: &Value) -> Problems {
    let mut problems = optional(template);
    let ways = deployed(template);
    problems.extend(ways.iter().flat_map(|way| CHECKS.iter().flat_map(|check| check(way))));
    problems.sort();
    problems.dedup();
    problems
}

/// Where all that is optional is left out, nothing refers to a parameter that is empty by default.
fn optional(template: &Value) -> Problems {
    let parameters = entries(at(template, "/Parameters"));
    let empty = parameters.into_iter().filter(|(_, parameter)| parameter["Default"] == "");
    let least = at(deployed(template).last().unwrap(), "/Resources").to_string();
    let is_used = |name: &str| least.contains(&json!({ "Ref": name }).to_string());
    let used = empty.filter(|(name, _)| is_used(name));
    used.map(|(name, _)| format!("{name} is empty, and something refers to it")).collect()
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

fn function(template: &Value) -> Problems {
    let function = the_function(template);
    let (metadata, properties) = (&function["Metadata"], &function["Properties"]);
    let logging = &properties["LoggingConfig"];
    let mut problems = unlike(
        "the function",
        &[
            ("BuildMethod", &metadata["BuildMethod"], json!("rust-cargolambda")),
            ("Handler", &properties["Handler"], json!("bootstrap")),
            ("Runtime", &properties["Runtime"], json!("provided.al2023")),
            ("LogFormat", &logging["LogFormat"], json!("JSON")),
        ],
    );
    // The default is INFO. With WARN, Lambda drops errors, too: the runtime's lines have no timestamp.
    if !logging["ApplicationLogLevel"].is_null() && logging["ApplicationLogLevel"] != "INFO" {
        problems.push(format!("ApplicationLogLevel: {}", logging["ApplicationLogLevel"]));
    }
    if retention::source(template).is_none() {
        problems.push(format!("Binary: there is no function {}", metadata["BuildProperties"]));
    }
    if referred(template, &logging["LogGroup"])["RetentionInDays"].is_null() {
        problems.push("LogGroup: none that ends".to_owned());
    }
    let variables = keys(&properties["Environment"]["Variables"]);
    let ours = ["IDEMPOTENCY_APPLICATION", "IDEMPOTENCY_TABLE", "RUST_LOG"];
    let source = retention::source(template).unwrap_or_default();
    let is_read = |name: &&str| ours.contains(name) || source.contains(&format!("\"{name}\""));
    let unread = variables.iter().filter(|name| !is_read(name));
    problems.extend(unread.map(|name| format!("{name}: the function reads no such variable")));
    problems
}

/// The table of the function's idempotency records, and what becomes of others.
fn tables(template: &Value) -> Problems {
    let variables = &the_function(template)["Properties"]["Environment"]["Variables"];
    let ours = target(&variables["IDEMPOTENCY_TABLE"]);
    let mut problems = Problems::new();
    let tables = of_type(template, "AWS::DynamoDB::Table");
    if !tables.iter().any(|(name, _)| *name == ours) {
        problems.push(format!("IDEMPOTENCY_TABLE: there is no table {ours}"));
    }
    for (name, table) in tables {
        let properties = &table["Properties"];
        let mut expected = vec![
            ("BillingMode", &properties["BillingMode"], json!("PAY_PER_REQUEST")),
            ("UpdateReplacePolicy", &table["UpdateReplacePolicy"], json!("Retain")),
            ("SSEEnabled", &properties["SSESpecification"]["SSEEnabled"], json!(true)),
        ];
        let (key, ttl) = (&properties["KeySchema"], &properties["TimeToLiveSpecification"]);
        let key_is = |name: &str| json!([{ "AttributeName": name, "KeyType": "HASH" }]);
        if name == ours {
            let swept = json!({ "AttributeName": "expiration", "Enabled": true });
            let attributes = json!([{ "AttributeName": "id", "AttributeType": "S" }]);
            expected.extend([
                ("AttributeDefinitions", &properties["AttributeDefinitions"], attributes),
                ("KeySchema", key, key_is("id")),
                ("TimeToLiveSpecification", ttl, swept),
            ]);
        } else {
            expected.push(("DeletionPolicy", &table["DeletionPolicy"], json!("Retain")));
            expected.push(("KeySchema", key, key_is("orderId")));
        }
        problems.extend(unlike(name, &expected));
    }
    problems
}

/// Everything that invokes the function.
pub(crate) fn mappings(template: &Value) -> Problems {
    let functions = of_type(template, "AWS::Serverless::Function");
    let (of, function) =
        functions.first().map_or(("", &Value::Null), |(name, it)| (*name, &it["Properties"]));
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
            Some("SNS") => {
                let undelivered = &mapping["RedrivePolicy"]["deadLetterTargetArn"];
                asynchronous(template, undelivered, "sns.amazonaws.com", &mapping["Topic"])
            }
            Some("EventBridgeRule") => {
                let rule = get_att(&format!("{of}{name}.Arn"));
                let undelivered = &mapping["DeadLetterConfig"]["Arn"];
                let mut found = asynchronous(template, undelivered, "events.amazonaws.com", &rule);
                // A failed event is in its queue, and causes an alarm, within a day.
                let ages = [&mapping["RetryPolicy"], &function["EventInvokeConfig"]];
                let ages = ages.map(|it| it["MaximumEventAgeInSeconds"].as_u64());
                let longest: Option<u64> = ages.into_iter().sum();
                if longest.is_none_or(|longest| longest > 24 * 3600) {
                    found
                        .push(format!("RetryPolicy and EventInvokeConfig retry for {longest:?} s"));
                }
                found
            }
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
fn asynchronous(template: &Value, undelivered: &Value, service: &str, from: &Value) -> Problems {
    let again = &the_function(template)["Properties"]["EventInvokeConfig"];
    let failed = &again["DestinationConfig"]["OnFailure"];
    let mut problems = unlike(
        "EventInvokeConfig",
        &[
            ("MaximumRetryAttempts", &again["MaximumRetryAttempts"], json!(2)),
            ("OnFailure", &failed["Type"], json!("SQS")),
        ],
    );
    if !is_queue(template, &failed["Destination"]) || !is_queue(template, undelivered) {
        problems.push(format!("no queue: {failed}, {undelivered}"));
    }
    if !crate::chain::may_send(template, undelivered, service, from) {
        problems.push(format!("{service} may not send to {undelivered} for {from} alone"));
    }
    problems
}

fn is_queue(template: &Value, reference: &Value) -> bool {
    at(template, &format!("/Resources/{}/Type", target(reference))) == "AWS::SQS::Queue"
}

/// Each queue that holds what was given up, from which no function receives, keeps it as long as it can, and somebody is told.
/// So is somebody if a record blocks a stream for hours.
pub(crate) fn alarms(template: &Value) -> Problems {
    let events = entries(&the_function(template)["Properties"]["Events"]);
    let received: Vec<_> =
        events.iter().map(|(_, it)| target(&it["Properties"]["Queue"])).collect();
    let tells = |action: &Value| {
        // A topic that the parameter names, or one with subscriptions.
        *action == json!({ "Ref": "AlarmTopicArn" })
            || referred(template, action)["Subscription"].is_array()
    };
    let is_optional = !at(template, "/Parameters/AlarmTopicArn").is_null();
    let has_alarm = |metric: [&str; 2], of: &Value, threshold: u64| {
        of_type(template, "AWS::CloudWatch::Alarm").into_iter().any(|(_, alarm)| {
            let alarm = &alarm["Properties"];
            let actions = items(&alarm["AlarmActions"]);
            [&alarm["Namespace"], &alarm["MetricName"]] == metric
                && alarm["Dimensions"][0]["Value"] == *of
                && alarm["Threshold"].as_u64().is_some_and(|limit| limit <= threshold)
                && alarm["ComparisonOperator"] == "GreaterThanThreshold"
                && actions.first().map_or(is_optional, tells)
        })
    };
    let is_told = |queue: &str| {
        let name = get_att(&format!("{queue}.QueueName"));
        has_alarm(["AWS/SQS", "ApproximateNumberOfMessagesVisible"], &name, 0)
    };
    let is_stream = |kind: &Value| *kind == "Kinesis" || *kind == "DynamoDB";
    let mut kinds = events.iter().map(|(_, it)| &it["Type"]);
    let mappings = of_type(template, "AWS::Lambda::EventSourceMapping");
    let has_stream = kinds.any(is_stream) || !mappings.is_empty();
    let function = of_type(template, "AWS::Serverless::Function");
    let function = function.first().map(|(name, _)| json!({ "Ref": name }));
    let is_old = function
        .filter(|function| {
            has_stream && !has_alarm(["AWS/Lambda", "IteratorAge"], function, 3_600_000)
        })
        .map(|_| "nobody is told that a stream's records wait".to_owned());
    let queues = of_type(template, "AWS::SQS::Queue").into_iter();
    let given_up = queues.filter(|(name, _)| !received.contains(name));
    let problems = given_up.flat_map(|(name, queue)| {
        let told = (!is_told(name)).then(|| format!("nobody is told of messages in {name}"));
        let is_short = kept(&queue["Properties"]) != 1_209_600;
        let short = is_short.then(|| format!("{name} keeps messages for less than 14 days"));
        told.into_iter().chain(short)
    });
    problems.chain(is_old).collect()
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

/// Everything stored is encrypted: by keys of AWS, or all of it by the key that the parameter names.
fn encryption(template: &Value) -> Problems {
    let key = json!({ "Ref": "KmsKeyArn" });
    let has_key = at(template, "/Resources").to_string().contains(&key.to_string());
    let mut problems = Problems::new();
    for (name, resource) in entries(at(template, "/Resources")) {
        let it = &resource["Properties"];
        let (kms, by_aws, is_encrypted) = match resource["Type"].as_str().unwrap_or_default() {
            // SQS refuses a queue with both kinds.
            "AWS::SQS::Queue" => {
                let by_sqs = it["SqsManagedSseEnabled"] == true;
                let by_kms = !it["KmsMasterKeyId"].is_null();
                (&it["KmsMasterKeyId"], by_sqs, by_sqs != by_kms)
            }
            "AWS::SNS::Topic" if it["Subscription"].is_array() => continue, // mails of alarms
            "AWS::SNS::Topic" => {
                let id = &it["KmsMasterKeyId"];
                (id, *id == "alias/aws/sns", !id.is_null())
            }
            "AWS::DynamoDB::Table" => {
                let id = &it["SSESpecification"]["KMSMasterKeyId"];
                (id, id.is_null(), true) // `tables` checks SSEEnabled
            }
            "AWS::Logs::LogGroup" => (&it["KmsKeyId"], it["KmsKeyId"].is_null(), true),
            _ => continue,
        };
        if !is_encrypted || by_aws == has_key || (has_key && *kms != key) {
            problems.push(format!("{name} is not encrypted by one key: {it}"));
        }
    }
    problems
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
