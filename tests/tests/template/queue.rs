//! The queue: its poller, its timeouts, and its dead-letter queue.

use serde_json::{Value, json};

use crate::{
    checks::{FUNCTION, Problems, QUEUE, expect},
    document::{at, entries, items},
};

/// The queue's poller reads partial failures, and its concurrency is limited.
pub(crate) fn events(template: &Value) -> Problems {
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

/// For every timeout that can be chosen, a message stays invisible for six times as long plus the batching window.
pub(crate) fn visibility(template: &Value) -> Problems {
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
        problems
            .push(format!("{parameter}: no AllowedValues, so no VisibilityTimeout can be checked"));
    }
    for timeout in timeouts {
        let Some(timeout) = timeout.as_u64() else {
            problems.push(format!("{parameter}: {timeout} is not a number of seconds"));
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

/// A failed message is retried often enough, and then kept for long in a separate queue.
pub(crate) fn dead_letters(template: &Value) -> Problems {
    let mut problems = expect(
        template,
        &format!("{QUEUE}/RedrivePolicy/deadLetterTargetArn"),
        json!({"Fn::GetAtt": "OrdersDeadLetterQueue.Arn"}),
    )
    .into_iter()
    .map(|problem| format!("{problem} (the queue's own dead-letter queue)"))
    .collect::<Problems>();
    let attempts = at(template, &format!("{QUEUE}/RedrivePolicy/maxReceiveCount"));
    if attempts.as_u64().is_none_or(|attempts| attempts < 10) {
        problems.push(format!("{QUEUE}: maxReceiveCount is {attempts}, must be at least 10"));
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

/// Every queue refuses requests without TLS.
pub(crate) fn in_transit(template: &Value) -> Problems {
    let resources = entries(at(template, "/Resources"));
    let of_type = |wanted: &str| {
        let wanted = wanted.to_owned();
        resources.iter().filter(move |(_, resource)| resource["Type"] == *wanted)
    };
    let refuses = |policy: &Value| {
        items(&policy["PolicyDocument"]["Statement"]).iter().any(|statement| {
            statement["Effect"] == "Deny"
                && statement["Principal"] == "*"
                && statement["Action"] == "sqs:*"
                && statement["Condition"] == json!({"Bool": {"aws:SecureTransport": "false"}})
        })
    };
    of_type("AWS::SQS::Queue")
        .filter(|(queue, _)| {
            !of_type("AWS::SQS::QueuePolicy").any(|(_, policy)| {
                let policy = &policy["Properties"];
                items(&policy["Queues"]).contains(&json!({"Ref": queue})) && refuses(policy)
            })
        })
        .map(|(queue, _)| format!("{queue} accepts requests without TLS"))
        .collect()
}
