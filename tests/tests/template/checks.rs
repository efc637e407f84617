//! The checks: each takes the parsed template, and gives the problems that it found.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    document::{at, entries, get_att, items, keys},
    stream,
};

pub(crate) type Problems = Vec<String>;

const CHECKS: [fn(&Value) -> Problems; 11] = [
    function_settings,
    environment,
    queue_events,
    asynchronous_events,
    visibility,
    dead_letters,
    tables,
    permissions,
    alarms,
    stream::mapping,
    stream::permissions,
];

pub(crate) const FUNCTION: &str = "/Resources/OrdersFunction/Properties";
pub(crate) const QUEUE: &str = "/Resources/OrdersQueue/Properties";

pub(crate) fn problems(template: &Value) -> Problems {
    CHECKS.iter().flat_map(|check| check(template)).collect()
}

/// It is built as `orders`, and runs as a custom runtime on Arm with JSON logs.
fn function_settings(template: &Value) -> Problems {
    let metadata = "/Resources/OrdersFunction/Metadata";
    [
        expect(template, &format!("{metadata}/BuildMethod"), json!("rust-cargolambda")),
        expect(template, &format!("{metadata}/BuildProperties/Binary"), json!("orders")),
        expect(template, &format!("{FUNCTION}/CodeUri"), json!(".")),
        expect(template, &format!("{FUNCTION}/Handler"), json!("bootstrap")),
        expect(template, &format!("{FUNCTION}/Runtime"), json!("provided.al2023")),
        expect(template, &format!("{FUNCTION}/Architectures"), json!(["arm64"])),
        expect(template, &format!("{FUNCTION}/LoggingConfig/LogFormat"), json!("JSON")),
    ]
    .concat()
}

/// It is told its tables and its key paths, under the names that it reads, and nothing unknown.
fn environment(template: &Value) -> Problems {
    let names = [
        ("IDEMPOTENCY_TABLE", "IdempotencyTable"),
        ("ORDERS_TABLE", "OrdersTable"),
        ("ORDERS_SQS_KEY", "SqsKeyPath"),
        ("ORDERS_SNS_KEY", "SnsKeyPath"),
        ("ORDERS_EVENTBRIDGE_KEY", "EventBridgeKeyPath"),
        ("ORDERS_KINESIS_KEY", "KinesisKeyPath"),
    ];
    let variables = format!("{FUNCTION}/Environment/Variables");
    let mut problems: Problems = names
        .iter()
        .flat_map(|(name, target)| {
            expect(template, &format!("{variables}/{name}"), json!({ "Ref": target }))
        })
        .collect();
    for name in keys(at(template, &variables)) {
        if name != "RUST_LOG" && !names.iter().any(|(known, _)| *known == name) {
            problems.push(format!("{variables}/{name}: the function reads no such variable"));
        }
    }
    for parameter in ["SqsKeyPath", "SnsKeyPath", "EventBridgeKeyPath", "KinesisKeyPath"] {
        problems.extend(expect(
            template,
            &format!("/Parameters/{parameter}/Default"),
            json!("orderId"),
        ));
    }
    problems
}

/// The queue's poller understands partial failures, and is bounded.
fn queue_events(template: &Value) -> Problems {
    let mut problems = Problems::new();
    let mut queues = 0;
    for (name, event) in entries(at(template, &format!("{FUNCTION}/Events"))) {
        if event["Type"] != "SQS" {
            continue;
        }
        queues += 1;
        let event = &event["Properties"];
        if event["FunctionResponseTypes"] != json!(["ReportBatchItemFailures"]) {
            problems.push(format!(
                "{name}: FunctionResponseTypes is {}, must be [ReportBatchItemFailures]: without \
                 it a batch with failed records is deleted",
                event["FunctionResponseTypes"]
            ));
        }
        let window = event["MaximumBatchingWindowInSeconds"].as_u64().unwrap_or(0);
        if event["BatchSize"].as_u64().is_none_or(|size| size > 10 && window == 0) {
            problems.push(format!(
                "{name}: a BatchSize of {} needs a MaximumBatchingWindowInSeconds",
                event["BatchSize"]
            ));
        }
        if event["ScalingConfig"]["MaximumConcurrency"].is_null() {
            problems.push(format!("{name}: no MaximumConcurrency"));
        }
    }
    if queues != 1 {
        problems.push(format!("{queues} SQS events, must be 1"));
    }
    problems
}

/// SNS and EventBridge retry, and keep what they could not deliver; so does Lambda's own queue.
fn asynchronous_events(template: &Value) -> Problems {
    let events = format!("{FUNCTION}/Events");
    let undelivered = json!({"Fn::GetAtt": "UndeliveredQueue.Arn"});
    let failed = json!({"Fn::GetAtt": "FailedEventsQueue.Arn"});
    let asynchronous = format!("{FUNCTION}/EventInvokeConfig");
    let placed = format!("{events}/OrderPlaced/Properties");
    let mut problems = [
        expect(
            template,
            &format!("{events}/OrderNotifications/Properties/RedrivePolicy/deadLetterTargetArn"),
            undelivered.clone(),
        ),
        expect(template, &format!("{placed}/DeadLetterConfig/Arn"), undelivered.clone()),
        expect(
            template,
            &format!("{placed}/Pattern"),
            json!({"source": ["orders.example"], "detail-type": ["OrderPlaced"]}),
        ),
        expect(template, &format!("{asynchronous}/MaximumRetryAttempts"), json!(2)),
        expect(template, &format!("{asynchronous}/DestinationConfig/OnFailure/Type"), json!("SQS")),
        expect(
            template,
            &format!("{asynchronous}/DestinationConfig/OnFailure/Destination"),
            failed,
        ),
    ]
    .concat();

    // Together they must end before a completed record expires, 24 hours after it was written.
    let age = |pointer: String| at(template, &pointer).as_u64().unwrap_or(u64::MAX / 2);
    let longest = age(format!("{placed}/RetryPolicy/MaximumEventAgeInSeconds"))
        + age(format!("{asynchronous}/MaximumEventAgeInSeconds"));
    if longest > 24 * 3600 {
        problems.push(format!(
            "RetryPolicy and EventInvokeConfig retry for {longest} s, longer than a completed \
             record is kept"
        ));
    }

    let policy = "/Resources/UndeliveredQueuePolicy/Properties";
    problems.extend(expect(
        template,
        &format!("{policy}/Queues"),
        json!([{"Ref": "UndeliveredQueue"}]),
    ));
    let statements = items(at(template, &format!("{policy}/PolicyDocument/Statement")));
    for (service, source) in [
        ("sns.amazonaws.com", json!({"Ref": "OrdersTopic"})),
        ("events.amazonaws.com", json!({"Fn::GetAtt": "OrdersFunctionOrderPlaced.Arn"})),
    ] {
        let allowed = statements.iter().any(|statement| {
            statement["Effect"] == "Allow"
                && statement["Principal"]["Service"] == service
                && statement["Action"] == "sqs:SendMessage"
                && statement["Resource"] == undelivered
                && statement["Condition"]["ArnEquals"]["aws:SourceArn"] == source
        });
        if !allowed {
            problems
                .push(format!("UndeliveredQueuePolicy: {service} may not send for {source} alone"));
        }
    }
    problems
}

/// Whatever timeout is chosen, a message stays invisible for six times as long, and the window.
fn visibility(template: &Value) -> Problems {
    let parameter = "/Parameters/FunctionTimeout";
    let mut problems =
        expect(template, &format!("{FUNCTION}/Timeout"), json!({"Ref": "FunctionTimeout"}));
    let window = at(
        template,
        &format!("{FUNCTION}/Events/Orders/Properties/MaximumBatchingWindowInSeconds"),
    )
    .as_u64()
    .unwrap_or(0);
    let timeouts = items(at(template, &format!("{parameter}/AllowedValues")));
    if !timeouts.contains(at(template, &format!("{parameter}/Default"))) {
        problems.push(format!("{parameter}: the Default is not among the AllowedValues"));
    }
    if timeouts.is_empty() {
        problems.push(format!("{parameter}: no AllowedValues, so no VisibilityTimeout is right"));
    }
    for timeout in timeouts {
        let Some(timeout) = timeout.as_u64() else {
            problems.push(format!("{parameter}: {timeout} is no number of seconds"));
            continue;
        };
        let least = 6 * timeout + window;
        match visibility_for(template, timeout) {
            Some(seconds) if (least..=43_200).contains(&seconds) => {}
            found => problems.push(format!(
                "VisibilityTimeout for a timeout of {timeout} s is {found:?}, must be at least \
                 {least} and at most 12 hours"
            )),
        }
    }
    problems
}

/// The queue's visibility timeout when the function's timeout is `timeout`.
fn visibility_for(template: &Value, timeout: u64) -> Option<u64> {
    let visibility = at(template, &format!("{QUEUE}/VisibilityTimeout"));
    if visibility.is_u64() {
        return visibility.as_u64();
    }
    let [map, key, field] = items(&visibility["Fn::FindInMap"]) else { return None };
    if *key != json!({"Ref": "FunctionTimeout"}) {
        return None;
    }
    let pointer = format!("/Mappings/{}/{timeout}/{}", map.as_str()?, field.as_str()?);
    at(template, &pointer).as_u64()
}

/// What fails is tried often enough, and then kept, in a queue of its own and for long.
fn dead_letters(template: &Value) -> Problems {
    let mut problems = expect(
        template,
        &format!("{QUEUE}/RedrivePolicy/deadLetterTargetArn"),
        json!({"Fn::GetAtt": "OrdersDeadLetterQueue.Arn"}),
    )
    .into_iter()
    .map(|problem| format!("{problem} (the queue's own dead-letter queue)"))
    .collect::<Problems>();
    let attempts = at(template, &format!("{QUEUE}/RedrivePolicy/maxReceiveCount"));
    if attempts.as_u64().is_none_or(|attempts| attempts < 3) {
        problems.push(format!("{QUEUE}: maxReceiveCount is {attempts}, must be at least 3"));
    }
    for queue in ["OrdersDeadLetterQueue", "UndeliveredQueue", "FailedEventsQueue"] {
        let resource = format!("/Resources/{queue}");
        problems.extend(expect(template, &format!("{resource}/Type"), json!("AWS::SQS::Queue")));
        let kept = at(template, &format!("{resource}/Properties/MessageRetentionPeriod")).as_u64();
        let source = at(template, &format!("{QUEUE}/MessageRetentionPeriod")).as_u64();
        // A dead letter keeps the age that it had in its first queue.
        if kept.is_none() || source.is_none() || kept <= source {
            problems.push(format!(
                "{queue}: MessageRetentionPeriod is {kept:?}, must be longer than {source:?}"
            ));
        }
    }
    problems
}

/// Key, TTL, billing, encryption, and what becomes of the data.
fn tables(template: &Value) -> Problems {
    let mut problems = Problems::new();
    for (table, key, deletion) in
        [("IdempotencyTable", "id", "Delete"), ("OrdersTable", "orderId", "Retain")]
    {
        let resource = format!("/Resources/{table}");
        for (property, expected) in [
            ("Type", json!("AWS::DynamoDB::Table")),
            ("DeletionPolicy", json!(deletion)),
            ("UpdateReplacePolicy", json!("Retain")),
            ("Properties/BillingMode", json!("PAY_PER_REQUEST")),
            ("Properties/KeySchema", json!([{"AttributeName": key, "KeyType": "HASH"}])),
            (
                "Properties/AttributeDefinitions",
                json!([{"AttributeName": key, "AttributeType": "S"}]),
            ),
            ("Properties/SSESpecification", json!({"SSEEnabled": true})),
        ] {
            problems.extend(expect(template, &format!("{resource}/{property}"), expected));
        }
    }
    problems.extend(expect(
        template,
        "/Resources/IdempotencyTable/Properties/TimeToLiveSpecification",
        json!({"AttributeName": "expiration", "Enabled": true}),
    ));
    problems
}

/// The role may do exactly what the function does, each action on one resource.
fn permissions(template: &Value) -> Problems {
    let expected: [(&str, &[&str]); 5] = [
        (
            "IdempotencyTable.Arn",
            &[
                "dynamodb:GetItem",
                "dynamodb:BatchGetItem",
                "dynamodb:PutItem",
                "dynamodb:DeleteItem",
                "dynamodb:PartiQLInsert",
                "dynamodb:PartiQLUpdate",
                "dynamodb:PartiQLDelete",
            ],
        ),
        ("OrdersTable.Arn", &["dynamodb:UpdateItem"]),
        ("OrdersQueue.Arn", &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]),
        ("FailedEventsQueue.Arn", &["sqs:SendMessage"]),
        ("OrdersLogs.Arn", &["logs:CreateLogStream", "logs:PutLogEvents"]),
    ];
    let role = "/Resources/OrdersRole/Properties";
    let mut problems =
        expect(template, &format!("{FUNCTION}/Role"), json!({"Fn::GetAtt": "OrdersRole.Arn"}));
    if !at(template, &format!("{FUNCTION}/Policies")).is_null() {
        problems.push(format!("{FUNCTION}/Policies: ignored beside Role"));
    }
    problems.extend(expect(
        template,
        &format!("{role}/ManagedPolicyArns"),
        json!([{"Fn::If": [
            "Traced",
            {"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/AWSXRayDaemonWriteAccess"},
            {"Ref": "AWS::NoValue"},
        ]}]),
    ));

    let statements: Vec<&Value> = items(at(template, &format!("{role}/Policies")))
        .iter()
        .flat_map(|policy| items(&policy["PolicyDocument"]["Statement"]))
        .collect();
    for statement in &statements {
        let sid = &statement["Sid"];
        for word in keys(statement) {
            if !["Sid", "Effect", "Action", "Resource"].contains(&word) {
                problems.push(format!("{sid}: {word} is not expected"));
            }
        }
        if statement["Effect"] != "Allow" {
            problems.push(format!("{sid}: Effect is {}", statement["Effect"]));
        }
        for part in ["Action", "Resource"] {
            if statement[part].to_string().contains('*') {
                problems.push(format!("{sid}: a wildcard in {part}: {}", statement[part]));
            }
        }
        let known = expected.iter().any(|(arn, _)| statement["Resource"] == get_att(arn));
        if !known {
            problems.push(format!("{sid}: Resource {} is not expected", statement["Resource"]));
        }
    }
    for (arn, actions) in expected {
        let wanted: BTreeSet<&str> = actions.iter().copied().collect();
        let granted: BTreeSet<&str> = statements
            .iter()
            .filter(|statement| statement["Resource"] == get_att(arn))
            .flat_map(|statement| items(&statement["Action"]))
            .filter_map(Value::as_str)
            .collect();
        for missing in wanted.difference(&granted) {
            problems.push(format!("{arn}: {missing} is missing"));
        }
        for surplus in granted.difference(&wanted) {
            problems.push(format!("{arn}: {surplus} is not needed"));
        }
    }
    problems
}

/// Somebody hears of every kept failure, every failed and every throttled invocation.
fn alarms(template: &Value) -> Problems {
    let waiting = "ApproximateNumberOfMessagesVisible";
    let function = json!({"Ref": "OrdersFunction"});
    let queue = |name: &str| get_att(&format!("{name}.QueueName"));
    [
        ("AWS/SQS", waiting, queue("OrdersDeadLetterQueue")),
        ("AWS/SQS", waiting, queue("UndeliveredQueue")),
        ("AWS/SQS", waiting, queue("FailedEventsQueue")),
        ("AWS/Lambda", "Errors", function.clone()),
        ("AWS/Lambda", "Throttles", function),
    ]
    .into_iter()
    .filter(|(namespace, metric, of)| {
        !entries(at(template, "/Resources")).iter().any(|(_, resource)| {
            let alarm = &resource["Properties"];
            resource["Type"] == "AWS::CloudWatch::Alarm"
                && alarm["Namespace"] == *namespace
                && alarm["MetricName"] == *metric
                && alarm["Dimensions"][0]["Value"] == *of
                && alarm["Threshold"] == 0
                && alarm["ComparisonOperator"] == "GreaterThanThreshold"
        })
    })
    .map(|(_, metric, of)| format!("no alarm on any {metric} of {of}"))
    .collect()
}

pub(crate) fn expect(template: &Value, pointer: &str, expected: Value) -> Problems {
    let found = at(template, pointer);
    if *found == expected {
        return Problems::new();
    }
    vec![format!("{pointer} is {found}, must be {expected}")]
}
