//! The alarms, and the log filters that count for them.

use serde_json::{Value, json};

use crate::{
    checks::{Problems, expect},
    document::{at, entries, get_att, items},
};

/// There is an alarm for everything that can be lost, doubled or stuck.
pub(crate) fn alarms(template: &Value) -> Problems {
    let waiting = "ApproximateNumberOfMessagesVisible";
    let function = || json!({"Ref": "OrdersFunction"});
    let table = || json!({"Ref": "IdempotencyTable"});
    let queue = |name: &str| get_att(&format!("{name}.QueueName"));
    let (sqs, lambda, dynamodb) = (json!("AWS/SQS"), json!("AWS/Lambda"), json!("AWS/DynamoDB"));
    let ours = json!({"Ref": "AWS::StackName"});
    let long = json!({
        "Fn::FindInMap": ["LongByTimeout", {"Ref": "FunctionTimeout"}, "Milliseconds"],
    });
    [
        (&sqs, waiting, queue("OrdersDeadLetterQueue"), json!(0)),
        (&sqs, waiting, queue("UndeliveredQueue"), json!(0)),
        (&sqs, waiting, queue("FailedEventsQueue"), json!(0)),
        (&sqs, "ApproximateAgeOfOldestMessage", queue("OrdersQueue"), json!(900)),
        (&lambda, "Errors", function(), json!(0)),
        (&lambda, "Throttles", function(), json!(0)),
        (&lambda, "DestinationDeliveryFailures", function(), json!(0)),
        (&lambda, "Duration", function(), long),
        (&lambda, "IteratorAge", function(), json!(3_600_000)),
        (&dynamodb, "ReadThrottleEvents", table(), json!(0)),
        (&dynamodb, "WriteThrottleEvents", table(), json!(0)),
        (&ours, "ProcessedNotRecorded", Value::Null, json!(0)),
        (&ours, "PermanentFailures", Value::Null, json!(0)),
    ]
    .into_iter()
    .filter(|(namespace, metric, of, threshold)| {
        !entries(at(template, "/Resources")).iter().any(|(_, resource)| {
            let alarm = &resource["Properties"];
            resource["Type"] == "AWS::CloudWatch::Alarm"
                && alarm["Namespace"] == **namespace
                && alarm["MetricName"] == *metric
                && alarm["Dimensions"][0]["Value"] == *of
                && alarm["Threshold"] == *threshold
                && alarm["ComparisonOperator"] == "GreaterThanThreshold"
                && alarm["TreatMissingData"] == "notBreaching"
        })
    })
    .map(|(_, metric, of, threshold)| format!("no alarm on {metric} of {of} above {threshold}"))
    .collect()
}

/// The two metrics that count the function's log lines have the names that their alarms use. The library's tests
/// check which lines the patterns match (`behaviour::log_filters`).
pub(crate) fn log_filters(template: &Value) -> Problems {
    let filters = [
        ("NotRecordedCount", "ProcessedNotRecorded"),
        ("PermanentFailureCount", "PermanentFailures"),
    ];
    filters
        .into_iter()
        .flat_map(|(filter, metric)| {
            let properties = format!("/Resources/{filter}/Properties");
            let transformation = format!("{properties}/MetricTransformations/0");
            [
                (format!("/Resources/{filter}/Type"), json!("AWS::Logs::MetricFilter")),
                (format!("{properties}/LogGroupName"), json!({"Ref": "OrdersLogs"})),
                (format!("{transformation}/MetricName"), json!(metric)),
                (format!("{transformation}/MetricNamespace"), json!({"Ref": "AWS::StackName"})),
                (format!("{transformation}/MetricValue"), json!("1")),
            ]
        })
        .flat_map(|(pointer, expected)| expect(template, &pointer, expected))
        .collect()
}

/// For every timeout that can be chosen, the alarm on long invocations has a limit below it.
pub(crate) fn durations(template: &Value) -> Problems {
    let timeouts = items(at(template, "/Parameters/FunctionTimeout/AllowedValues"));
    let limit = |seconds: u64| {
        at(template, &format!("/Mappings/LongByTimeout/{seconds}/Milliseconds")).as_u64()
    };
    timeouts
        .iter()
        .filter_map(Value::as_u64)
        .filter(|seconds| limit(*seconds) != Some(seconds * 750))
        .map(|seconds| {
            format!("LongByTimeout for {seconds} s is {:?}, must be three quarters", limit(seconds))
        })
        .collect()
}

/// The dashboard is JSON, and has widgets for the outcomes and for everything that needs attention.
pub(crate) fn dashboard(template: &Value) -> Problems {
    let body = at(template, "/Resources/OrdersDashboard/Properties/DashboardBody/Fn::Sub/0");
    let parsed: Value = match serde_json::from_str(body.as_str().unwrap_or_default()) {
        Ok(parsed) => parsed,
        Err(error) => return vec![format!("OrdersDashboard: its body is not JSON: {error}")],
    };
    let text = parsed.to_string();
    ["fields.outcome", "ProcessedNotRecorded", "PermanentFailures", "${DeadLetters}", "${Queue}"]
        .into_iter()
        .filter(|shown| !text.contains(shown))
        .map(|missing| format!("OrdersDashboard does not show {missing}"))
        .collect()
}
