//! The alarms.

use serde_json::{Value, json};

use crate::{
    checks::Problems,
    document::{at, entries, get_att},
};

/// There is an alarm for every dead letter, every failed and every throttled invocation.
pub(crate) fn alarms(template: &Value) -> Problems {
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
