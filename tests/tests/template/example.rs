//! What only `template.yaml` has: its variables, alarms, log filters and dashboard.

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{at, deployed, entries, get_att},
    every::unlike,
};

pub(crate) fn problems(template: &Value) -> Problems {
    let mut problems = settings(template);
    problems.extend(deployed(template).iter().flat_map(alarms));
    problems.extend(dashboard(template));
    problems
}

fn settings(template: &Value) -> Problems {
    let function = at(template, "/Resources/OrdersFunction");
    let properties = &function["Properties"];
    let (variables, events) = (&properties["Environment"]["Variables"], &properties["Events"]);
    let to = |name: &str| json!({ "Ref": name });
    // At every level, the SDK's lines below WARN are left out: they can show the content of requests.
    let log =
        "${LogLevel},aws_config=warn,aws_sdk_dynamodb=warn,aws_smithy_runtime=warn,hyper_util=warn";
    let scaling = &events["Orders"]["Properties"]["ScalingConfig"]["MaximumConcurrency"];
    let pattern = json!({ "source": ["orders.example"], "detail-type": ["OrderPlaced"] });
    let mut expected = vec![
        ("Binary", &function["Metadata"]["BuildProperties"]["Binary"], json!("orders")),
        ("CodeUri", &properties["CodeUri"], json!(".")),
        ("Architectures", &properties["Architectures"], json!(["arm64"])),
        ("RUST_LOG", &variables["RUST_LOG"]["Fn::Sub"], json!(log)),
        ("ORDERS_TABLE", &variables["ORDERS_TABLE"], to("OrdersTable")),
        ("ORDERS_SQS_KEY", &variables["ORDERS_SQS_KEY"], to("SqsKeyPath")),
        ("ORDERS_SNS_KEY", &variables["ORDERS_SNS_KEY"], to("SnsKeyPath")),
        ("ORDERS_EVENTBRIDGE_KEY", &variables["ORDERS_EVENTBRIDGE_KEY"], to("EventBridgeKeyPath")),
        ("ORDERS_KINESIS_KEY", &variables["ORDERS_KINESIS_KEY"], to("KinesisKeyPath")),
        ("MaximumConcurrency", scaling, to("MaximumConcurrency")),
        ("Pattern", &events["OrderPlaced"]["Properties"]["Pattern"], pattern),
    ];
    for parameter in ["SqsKeyPath", "SnsKeyPath", "EventBridgeKeyPath", "KinesisKeyPath"] {
        let default = &template["Parameters"][parameter]["Default"];
        expected.push((parameter, default, json!("orderId")));
    }
    let mapping = at(template, "/Resources/OrderStreamMapping");
    expected.extend([
        ("FunctionName", &mapping["Properties"]["FunctionName"], to("OrdersFunction")),
        ("EventSourceArn", &mapping["Properties"]["EventSourceArn"], to("OrderStreamArn")),
        ("DependsOn", &mapping["DependsOn"], json!("OrderStreamPolicy")),
    ]);
    // The two metrics that count the function's log lines have the names that their alarms use. The library's tests check
    // which lines the patterns match (`behaviour::log_filters`).
    for (filter, metric) in [
        ("NotRecordedCount", "ProcessedNotRecorded"),
        ("PermanentFailureCount", "PermanentFailures"),
    ] {
        let filter = &at(template, &format!("/Resources/{filter}"))["Properties"];
        let count = &filter["MetricTransformations"][0];
        expected.extend([
            ("LogGroupName", &filter["LogGroupName"], to("OrdersLogs")),
            ("MetricName", &count["MetricName"], json!(metric)),
            ("MetricNamespace", &count["MetricNamespace"], to("AWS::StackName")),
            ("MetricValue", &count["MetricValue"], json!("1")),
        ]);
    }
    unlike("template.yaml", &expected)
}

/// There is an alarm for everything that can be lost, doubled or stuck. `every::alarms` has those of queues that hold what was
/// given up.
fn alarms(template: &Value) -> Problems {
    let to = |name: &str| json!({ "Ref": name });
    let function = || to("OrdersFunction");
    let table = || to("IdempotencyTable");
    let (sqs, lambda, dynamodb) = (json!("AWS/SQS"), json!("AWS/Lambda"), json!("AWS/DynamoDB"));
    let (ours, queue) = (to("AWS::StackName"), get_att("OrdersQueue.QueueName"));
    // Invocations that come close to the timeout.
    let timeout = at(template, "/Resources/OrdersFunction/Properties/Timeout").as_u64();
    let mut wanted = vec![
        (&sqs, "ApproximateAgeOfOldestMessage", queue, json!(900)),
        (&lambda, "Errors", function(), json!(0)),
        (&lambda, "Throttles", function(), json!(0)),
        (&lambda, "DestinationDeliveryFailures", function(), json!(0)),
        (&lambda, "Duration", function(), json!(timeout.unwrap_or(0) * 750)),
        (&dynamodb, "ReadThrottleEvents", table(), json!(0)),
        (&dynamodb, "WriteThrottleEvents", table(), json!(0)),
        (&ours, "ProcessedNotRecorded", Value::Null, json!(0)),
        (&ours, "PermanentFailures", Value::Null, json!(0)),
    ];
    if !at(template, "/Resources/OrderStreamMapping").is_null() {
        wanted.push((&lambda, "IteratorAge", function(), json!(3_600_000)));
    }
    wanted.retain(|(namespace, metric, of, threshold)| {
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
    });
    let missing = wanted.into_iter();
    missing
        .map(|(_, metric, of, most)| format!("no alarm on {metric} of {of} above {most}"))
        .collect()
}

/// The dashboard is JSON, and has widgets for the outcomes and for everything that needs attention.
fn dashboard(template: &Value) -> Problems {
    let body = at(template, "/Resources/OrdersDashboard/Properties/DashboardBody/Fn::Sub/0");
    let parsed: Value = match serde_json::from_str(body.as_str().unwrap_or_default()) {
        Ok(parsed) => parsed,
        Err(error) => return vec![format!("OrdersDashboard: its body is not JSON: {error}")],
    };
    let text = parsed.to_string();
    let shown = [
        "fields.outcome",
        "ProcessedNotRecorded",
        "PermanentFailures",
        "${DeadLetters}",
        "${Queue}",
    ];
    let missing = shown.into_iter().filter(|shown| !text.contains(shown));
    missing.map(|missing| format!("OrdersDashboard does not show {missing}")).collect()
}
