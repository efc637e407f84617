//! A queue that is subscribed to a topic: order, deduplication, and what happens to messages that SNS cannot deliver.

use serde_json::{Value, json};

use crate::{
    checks::Problems,
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
            if !may_send(template, queue, &subscription["TopicArn"]) {
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
        if topic["KmsMasterKeyId"].is_null() {
            problems.push(format!("{name}: the topic has no KmsMasterKeyId"));
        }
    }
    problems
}

fn may_send(template: &Value, queue: &Value, topic: &Value) -> bool {
    let queue = target(queue);
    of_type(template, "AWS::SQS::QueuePolicy").into_iter().any(|(_, policy)| {
        let policy = &policy["Properties"];
        items(&policy["Queues"]).contains(&json!({ "Ref": queue }))
            && items(&policy["PolicyDocument"]["Statement"]).iter().any(|statement| {
                statement["Effect"] == "Allow"
                    && statement["Principal"]["Service"] == "sns.amazonaws.com"
                    && statement["Action"] == "sqs:SendMessage"
                    && statement["Condition"]["ArnEquals"]["aws:SourceArn"] == *topic
            })
    })
}
