//! What holds for every template, however its resources are named.

use serde_json::{Value, json};

use crate::{
    checks::Problems,
    document::{at, entries, get_att, items, keys, of_type, referred, target},
    retention,
};

const CHECKS: [fn(&Value) -> Problems; 8] = [
    function,
    tables,
    mappings,
    alarms,
    crate::queue::in_transit,
    crate::grants::permissions,
    crate::http::http,
    crate::chain::chain,
];

pub(crate) fn problems(template: &Value) -> Problems {
    let mut problems: Problems = CHECKS.iter().flat_map(|check| check(template)).collect();
    problems.extend(retention::problems(template));
    problems
}

/// The template's one function.
pub(crate) fn the_function(template: &Value) -> &Value {
    of_type(template, "AWS::Serverless::Function").first().map_or(&Value::Null, |(_, it)| *it)
}

fn function(template: &Value) -> Problems {
    let function = the_function(template);
    let properties = &function["Properties"];
    let environment = &properties["Environment"]["Variables"];
    let mut problems = application(template);
    for (what, found, expected) in [
        ("BuildMethod", &function["Metadata"]["BuildMethod"], json!("rust-cargolambda")),
        ("CodeUri", &properties["CodeUri"], json!("../..")),
        ("Handler", &properties["Handler"], json!("bootstrap")),
        ("Runtime", &properties["Runtime"], json!("provided.al2023")),
        ("LogFormat", &properties["LoggingConfig"]["LogFormat"], json!("JSON")),
        // The default is INFO. With WARN, Lambda drops errors, too: the runtime's lines have no timestamp.
        ("ApplicationLogLevel", &properties["LoggingConfig"]["ApplicationLogLevel"], Value::Null),
        (
            "the variables",
            &json!(keys(environment)),
            json!(["IDEMPOTENCY_APPLICATION", "IDEMPOTENCY_TABLE"]),
        ),
    ] {
        if *found != expected {
            problems.push(format!("{what}: {found}, must be {expected}"));
        }
    }
    if retention::source(template).is_none() {
        let binary = &function["Metadata"]["BuildProperties"]["Binary"];
        problems.push(format!("Binary: there is no function {binary}"));
    }
    let logs = referred(template, &properties["LoggingConfig"]["LogGroup"]);
    if logs["RetentionInDays"].is_null() {
        problems.push("LogGroup: none that ends".to_owned());
    }
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
        if name == ours {
            expected.extend([
                (
                    "AttributeDefinitions",
                    &properties["AttributeDefinitions"],
                    json!([{"AttributeName": "id", "AttributeType": "S"}]),
                ),
                (
                    "KeySchema",
                    &properties["KeySchema"],
                    json!([{"AttributeName": "id", "KeyType": "HASH"}]),
                ),
                (
                    "TimeToLiveSpecification",
                    &properties["TimeToLiveSpecification"],
                    json!({"AttributeName": "expiration", "Enabled": true}),
                ),
            ]);
        } else {
            expected.push(("DeletionPolicy", &table["DeletionPolicy"], json!("Retain")));
        }
        let wrong = expected.into_iter().filter(|(_, found, expected)| *found != expected);
        problems.extend(wrong.map(|(what, found, expected)| {
            format!("{name}: {what} is {found}, must be {expected}")
        }));
    }
    problems
}

/// Every queue and stream that invokes the function.
pub(crate) fn mappings(template: &Value) -> Problems {
    let function = &the_function(template)["Properties"];
    let mut problems = Problems::new();
    for (name, event) in entries(&function["Events"]) {
        let mapping = &event["Properties"];
        let found = match event["Type"].as_str() {
            Some("SQS") => queue(template, mapping, function["Timeout"].as_u64().unwrap_or(0)),
            Some("Kinesis" | "DynamoDB") => stream(template, mapping),
            Some("HttpApi") => continue,
            other => vec![format!("no check knows events of {other:?}")],
        };
        problems.extend(found.into_iter().map(|problem| format!("{name}: {problem}")));
        if mapping["FunctionResponseTypes"] != json!(["ReportBatchItemFailures"]) {
            problems.push(format!("{name}: no ReportBatchItemFailures"));
        }
    }
    problems
}

/// Somebody is told of each queue that holds what was given up: every one from which no function receives.
pub(crate) fn alarms(template: &Value) -> Problems {
    let received: Vec<_> = entries(&the_function(template)["Properties"]["Events"])
        .into_iter()
        .map(|(_, event)| target(&event["Properties"]["Queue"]))
        .collect();
    let is_told = |queue: &str| {
        of_type(template, "AWS::CloudWatch::Alarm").into_iter().any(|(_, alarm)| {
            let alarm = &alarm["Properties"];
            alarm["Namespace"] == "AWS/SQS"
                && alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
                && alarm["Dimensions"][0]["Value"] == get_att(&format!("{queue}.QueueName"))
                && alarm["Threshold"] == 0
                && alarm["ComparisonOperator"] == "GreaterThanThreshold"
                && referred(template, &alarm["AlarmActions"][0])["Subscription"].is_array()
        })
    };
    let queues = of_type(template, "AWS::SQS::Queue").into_iter().map(|(name, _)| name);
    let silent = queues.filter(|name| !received.contains(name) && !is_told(name));
    silent.map(|name| format!("nobody is told of messages in {name}")).collect()
}

/// The function's idempotency records are of the stack: the function's name changes when it is replaced.
pub(crate) fn application(template: &Value) -> Problems {
    let variables = &the_function(template)["Properties"]["Environment"]["Variables"];
    let found = &variables["IDEMPOTENCY_APPLICATION"];
    let is_stack = *found == json!({"Ref": "AWS::StackName"});
    (!is_stack).then(|| format!("IDEMPOTENCY_APPLICATION: {found}")).into_iter().collect()
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
    let visibility = queue["VisibilityTimeout"].as_u64().unwrap_or(30);
    let least = 6 * timeout + window;
    if timeout == 0 || visibility < least {
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
    let failed = &mapping["DestinationConfig"]["OnFailure"]["Destination"];
    let queue = at(template, &format!("/Resources/{}/Type", target(failed)));
    if queue != "AWS::SQS::Queue" || items(&json!([failed])).is_empty() {
        problems.push("no OnFailure queue".to_owned());
    }
    problems
}
