//! Topics and queues: a queue that is subscribed to a topic (order, deduplication, and what happens to messages that SNS
//! cannot deliver), and who may send to a queue.

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{items, of_type, referred, target},
    retention,
};

pub(crate) fn chain(template: &Value) -> Problems {
    let mut problems = Problems::new();
    for (name, subscription) in of_type(template, "AWS::SNS::Subscription") {
        let subscription = &subscription["Properties"];
        let topic = referred(template, &subscription["TopicArn"]);
        let undelivered = &subscription["RedrivePolicy"]["deadLetterTargetArn"];
        // A queue that loses the order or the group of a FIFO topic would lose it silently.
        for queue in [&subscription["Endpoint"], undelivered] {
            if referred(template, queue)["FifoQueue"] != topic["FifoTopic"] {
                problems.push(format!("{name}: {queue} and its topic are not both FIFO"));
            }
            if !may_send(template, queue, "sns.amazonaws.com", &subscription["TopicArn"]) {
                problems.push(format!("{name}: the topic may not send to {queue}"));
            }
        }
        if topic["FifoTopic"] == true && topic["ContentBasedDeduplication"].is_null() {
            problems.push(format!("{name}: ContentBasedDeduplication is not chosen"));
        }
        let envelope = retention::source(template).is_some_and(|it| it.contains("Envelope::Sns"));
        if (subscription["RawMessageDelivery"] == true) == envelope {
            problems
                .push(format!("{name}: RawMessageDelivery does not fit the function's envelope"));
        }
        if !subscription["FilterPolicy"].is_null() {
            problems.push(format!("{name}: FilterPolicy makes deliveries at most once"));
        }
    }
    problems
}

/// The statements of a queue's policies.
fn statements<'t>(template: &'t Value, queue: &str) -> impl Iterator<Item = &'t Value> {
    let queue = json!({ "Ref": queue });
    let policies = of_type(template, "AWS::SQS::QueuePolicy").into_iter();
    let policies = policies.map(|(_, policy)| &policy["Properties"]);
    let of_queue = policies.filter(move |policy| items(&policy["Queues"]).contains(&queue));
    of_queue.flat_map(|policy| items(&policy["PolicyDocument"]["Statement"]))
}

/// Whether a service may send messages to a queue for this source, and for no other.
pub(crate) fn may_send(template: &Value, queue: &Value, service: &str, from: &Value) -> bool {
    statements(template, target(queue)).any(|statement| {
        statement["Effect"] == "Allow"
            && statement["Principal"]["Service"] == service
            && statement["Action"] == "sqs:SendMessage"
            && statement["Condition"]["ArnEquals"]["aws:SourceArn"] == *from
    })
}

/// Every queue refuses requests without TLS.
pub(crate) fn in_transit(template: &Value) -> Problems {
    let refuses = |statement: &Value| {
        statement["Effect"] == "Deny"
            && statement["Principal"] == "*"
            && statement["Action"] == "sqs:*"
            && statement["Condition"] == json!({"Bool": {"aws:SecureTransport": "false"}})
    };
    let queues = of_type(template, "AWS::SQS::Queue").into_iter().map(|(name, _)| name);
    let open = queues.filter(|queue| !statements(template, queue).any(refuses));
    open.map(|queue| format!("{queue} accepts requests without TLS")).collect()
}
