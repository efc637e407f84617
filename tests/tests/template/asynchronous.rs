//! SNS, EventBridge and Lambda's asynchronous queue: how long they retry, and where failed events are kept.

use serde_json::{Value, json};

use crate::{
    checks::{FUNCTION, Problems, expect},
    document::{at, items},
};

/// SNS, EventBridge and Lambda's asynchronous queue retry, and keep the events that they could not deliver.
pub(crate) fn events(template: &Value) -> Problems {
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

    // A failed event is in its queue, and causes an alarm, within a day. `retention` compares the same ages with the
    // function's idempotency records.
    let age = |pointer: String| at(template, &pointer).as_u64().unwrap_or(u64::MAX / 2);
    let longest = age(format!("{placed}/RetryPolicy/MaximumEventAgeInSeconds"))
        + age(format!("{asynchronous}/MaximumEventAgeInSeconds"));
    if longest > 24 * 3600 {
        problems.push(format!(
            "RetryPolicy and EventInvokeConfig retry for {longest} s, longer than a day"
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
