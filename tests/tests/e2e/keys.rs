//! An environment variable for each source chooses the key expression.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    batch, batch_of, event, message, notification, order, order_with,
};
use serde_json::json;

use crate::support::{World, orders, orders_by, outcomes, scripted_orders};

#[tokio::test]
async fn with_the_customer_as_key_two_orders_of_a_customer_are_duplicates() {
    let world = World::of(orders().env("ORDERS_SQS_KEY", "customer")).await;
    let other_customer = order_with("o-3", json!({ "customer": "c-8" }));
    let report = world.send(&batch_of([order("o-1"), other_customer])).await;
    assert_eq!(outcomes(&report), ["executed", "executed"]);
    let report = world.send(&batch_of([order("o-2")])).await;
    assert_eq!(outcomes(&report), ["replayed"]);
    world.assert_placed_once(["o-1", "o-3"]);
}

#[tokio::test]
async fn with_several_parts_all_of_them_count() {
    let world = World::of(orders_by("[customer, sku]")).await;
    let other_sku = order_with("o-3", json!({ "sku": "kettle-1l" }));
    for (order, outcome) in
        [(order("o-1"), "executed"), (order("o-2"), "replayed"), (other_sku, "executed")]
    {
        assert_eq!(outcomes(&world.send(&batch_of([order])).await), [outcome]);
    }
    world.assert_placed_once(["o-1", "o-3"]);
}

/// Only redeliveries are then recognised: an order that is published twice is placed twice.
#[tokio::test]
async fn with_the_message_id_as_key_only_redeliveries_are_duplicates() {
    let world = World::of(scripted_orders().env("ORDERS_SQS_KEY", "record:messageId")).await;
    for (id, outcome) in [("m-1", "executed"), ("m-1", "replayed"), ("m-2", "executed")] {
        assert_eq!(outcomes(&world.send(&batch([message(id, &order("o-1"))])).await), [outcome]);
    }
    assert_eq!(world.placed()["o-1"], 2);
}

#[tokio::test]
async fn each_source_has_a_variable_of_its_own() {
    let function = scripted_orders()
        .env("ORDERS_SNS_KEY", "record:Sns.MessageId")
        .env("ORDERS_EVENTBRIDGE_KEY", "record:detail.customer");
    let world = World::of(function).await;
    for (id, outcome) in [("n-1", "executed"), ("n-2", "executed"), ("n-1", "replayed")] {
        assert_eq!(outcomes(&world.send(&notification(id, &order("o-1"))).await), [outcome]);
    }
    for (name, outcome) in [("o-2", "executed"), ("o-3", "replayed")] {
        assert_eq!(outcomes(&world.send(&event(name, &order(name))).await), [outcome]);
    }
    for (name, outcome) in [("o-4", "executed"), ("o-5", "executed"), ("o-4", "replayed")] {
        assert_eq!(outcomes(&world.send(&batch_of([order(name)])).await), [outcome]);
    }
}

#[tokio::test]
async fn a_function_with_a_mistake_in_an_expression_does_not_start() {
    for (expression, reason) in
        [("order[", "offset 6"), ("customer || nosuch(orderId)", "nosuch"), ("", "it is empty")]
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
