//! An environment variable for each source chooses the key expression.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    batch, batch_of, event, message, notification, order, order_with,
};
use serde_json::json;

use crate::support::{World, orders, orders_by, outcomes, scripted_orders};

#[tokio::test]
async fn orders_with_one_key_are_duplicates() {
    let with = |name: &str, value: &str| order_with("o-3", json!({ name: value }));
    for (variable, key, orders) in [
        ("SQS", "customer", [order("o-1"), order("o-2"), with("customer", "c-8")]),
        ("", "[customer, sku]", [order("o-1"), order("o-2"), with("sku", "kettle-1l")]),
    ] {
        let function = match variable {
            "" => orders_by(key),
            source => self::orders().env(format!("ORDERS_{source}_KEY"), key),
        };
        let world = World::of(function).await;
        for (order, outcome) in orders.into_iter().zip(["executed", "replayed", "executed"]) {
            assert_eq!(outcomes(&world.send(&batch_of([order])).await), [outcome], "{key}");
        }
        world.assert_placed_once(["o-1", "o-3"]);
    }
}

/// With the id of a message as its key, only redeliveries are recognised: an order that is published twice is placed twice.
#[tokio::test]
async fn each_source_has_a_variable_of_its_own() {
    let function = scripted_orders()
        .env("ORDERS_SQS_KEY", "record:messageId")
        .env("ORDERS_SNS_KEY", "record:Sns.MessageId")
        .env("ORDERS_EVENTBRIDGE_KEY", "record:detail.customer");
    let world = World::of(function).await;
    let queued = |id: &str| batch([message(id, &order("o-1"))]);
    let published = |id: &str| notification(id, &order("o-2"));
    for (event, outcome) in [
        (queued("m-1"), "executed"),
        (queued("m-1"), "replayed"),
        (queued("m-2"), "executed"),
        (published("n-1"), "executed"),
        (published("n-2"), "executed"),
        (published("n-1"), "replayed"),
        (event("e-1", &order("o-3")), "executed"),
        (event("e-2", &order("o-4")), "replayed"),
    ] {
        assert_eq!(outcomes(&world.send(&event).await), [outcome], "{event}");
    }
    assert_eq!(world.placed().into_values().collect::<Vec<_>>(), [2, 2, 1]);
}

#[tokio::test]
async fn a_function_with_a_mistake_in_an_expression_does_not_start() {
    for (expression, reason) in
        [("order[", "offset 6"), ("[customer, nosuch(orderId)]", "nosuch"), ("", "it is empty")]
    {
        let world = World::of(orders().env("ORDERS_SNS_KEY", expression)).await;
        let invocation = world.invoke(&batch_of([order("o-1")])).await.unwrap();
        // A function that fails at start can report the error only in its log.
        let exited = matches!(invocation.result, InvocationResult::Exited { code: Some(1), .. });
        assert!(exited, "{expression}: {}", invocation.result);
        let lines = world.lines();
        let at = lines
            .iter()
            .position(|line| line.contains("sns: the key of operation `place-order`"))
            .unwrap();
        assert!(lines[at].contains(reason), "{lines:?}");
        // The expression, and a caret under the mistake.
        assert_eq!(lines[at + 1].trim(), expression);
        assert_eq!(lines[at + 2].trim(), "^");
        assert_eq!(invocation.dynamodb.requests(), 0);
    }
}

#[tokio::test]
async fn without_its_table_the_function_names_the_missing_variable() {
    let world = World::of(orders().env("IDEMPOTENCY_TABLE", "")).await;
    let invocation = world.invoke(&batch_of([order("o-1")])).await.unwrap();
    assert!(!invocation.result.is_response(), "{}", invocation.result);
    let lines = world.lines().join("\n");
    assert!(lines.contains("IDEMPOTENCY_TABLE"), "{lines}");
}
