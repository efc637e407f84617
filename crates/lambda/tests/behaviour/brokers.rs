//! ActiveMQ and RabbitMQ: messages that cannot be read or told apart.

use lambda_idempotency::{
    Operation,
    policy::OnMissingKey,
    source::{ActiveMq, RabbitMq},
};
use serde_json::{Value, json};

use crate::{
    support::{World, diagnostic},
    support_streams::{active_mq, base64, of_active_mq, of_rabbit_mq, rabbit_mq},
};

#[tokio::test]
async fn bad_messages_fail_with_the_cause_in_the_error() {
    let world = World::new();
    let from_active = world.on(ActiveMq::new(), &Operation::new("a"));
    let from_rabbit = world.on(RabbitMq::new(), &Operation::new("b"));
    for (data, expected) in [
        (json!(base64([0xff])), "whole_record"),
        (json!("not base64!"), "whole_record"),
        (json!(null), "the record has no valid `data`"),
        (json!(7), "the record has no valid `data`"),
    ] {
        let (mut active, mut rabbit) = (of_active_mq("1", ""), of_rabbit_mq("1", ""));
        active["data"] = data.clone();
        rabbit["data"] = data;
        for (function, event) in
            [(&from_active, active_mq([active])), (&from_rabbit, rabbit_mq([rabbit]))]
        {
            let (_, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
            assert!(text.contains(expected), "{text}");
        }
    }
    let mut odd = rabbit_mq([]);
    odd["rmqMessagesByQueue"]["orders::/"] = "not a list".into();
    assert!(world.invoke(&from_rabbit, &odd).await.is_err());
    assert_eq!(world.ledger.total(), 0);
    for (function, event) in [(&from_active, active_mq([])), (&from_rabbit, rabbit_mq([]))] {
        assert_eq!(world.invoke(function, &event).await.unwrap(), Value::Null);
    }
}

/// RabbitMQ sets no id by itself. The payload cannot replace it: two orders may be equal.
#[tokio::test]
async fn a_message_without_an_id_runs_unprotected_only_if_the_operation_says_so() {
    let world = World::new();
    let event = rabbit_mq([of_rabbit_mq(Value::Null, r#"{"id":"x"}"#)]);
    let refuses = world.on(RabbitMq::new(), &Operation::new("a"));
    let (_, text) = diagnostic(world.invoke(&refuses, &event).await.unwrap_err());
    assert!(text.contains("basicProperties.messageId") && text.contains(".key("), "{text}");
    assert_eq!(world.ledger.total(), 0);
    let unprotected = Operation::new("b").on_missing_key(OnMissingKey::RunUnprotected);
    let runs = world.on(RabbitMq::new(), &unprotected);
    for executed in [1, 2] {
        world.invoke(&runs, &event).await.unwrap();
        assert_eq!(world.ledger.executed("x"), executed);
    }
}
