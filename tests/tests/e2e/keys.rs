//! Where the key is found is the operator's choice: an environment variable a source.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    batch, batch_of, event, message, notification, order, order_with,
};
use serde_json::json;

use crate::support::{World, orders, orders_by, outcomes};

#[tokio::test]
async fn by_customer_two_orders_of_one_customer_are_duplicates() {
    let world = World::of(orders().env("ORDERS_SQS_KEY", "customer")).await;
    let somebody_else = order_with("o-3", json!({ "customer": "c-8" }));
    let report = world.send(&batch_of([order("o-1"), somebody_else])).await;
    assert_eq!(outcomes(&report), ["executed", "executed"]);
    let report = world.send(&batch_of([order("o-2")])).await;
    assert_eq!(outcomes(&report), ["replayed"]);
    world.assert_placed_once(["o-1", "o-3"]);
}

#[tokio::test]
async fn by_several_parts_all_of_them_count() {
    let world = World::of(orders_by("[customer, sku]")).await;
    let other_sku = order_with("o-3", json!({ "sku": "kettle-1l" }));
    for (order, outcome) in
        [(order("o-1"), "executed"), (order("o-2"), "replayed"), (other_sku, "executed")]
    {
        assert_eq!(outcomes(&world.send(&batch_of([order])).await), [outcome]);
    }
    world.assert_placed_once(["o-1", "o-3"]);
}

/// Then it is redeliveries that are caught, and an order that is published twice is placed twice.
#[tokio::test]
async fn by_message_id_only_redeliveries_are_duplicates() {
    let world = World::of(orders().env("ORDERS_SQS_KEY", "record:messageId")).await;
    for (id, outcome) in [("m-1", "executed"), ("m-1", "replayed"), ("m-2", "executed")] {
        assert_eq!(outcomes(&world.send(&batch([message(id, &order("o-1"))])).await), [outcome]);
    }
    assert_eq!(world.placed()["o-1"], 2);
}

#[tokio::test]
async fn each_source_has_a_variable_of_its_own() {
    let function = orders()
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
async fn a_mistake_in_an_expression_keeps_the_function_from_starting() {
    for (expression, reason) in
        [("order[", "offset 6"), ("customer || nosuch(orderId)", "nosuch"), ("", "it is empty")]
    {
        let world = World::of(orders().env("ORDERS_SNS_KEY", expression)).await;
        let invocation = world.invoke(&batch_of([order("o-1")])).await.unwrap();
        // A runtime that never asks for an event has nobody to report to but its log.
        let exited = matches!(invocation.result, InvocationResult::Exited { code: Some(1), .. });
        assert!(exited, "{expression}: {}", invocation.result);
        let said = world.lines();
        let at = said.iter().position(|line| line.contains("ORDERS_SNS_KEY")).unwrap();
        assert!(said[at].contains(reason), "{said:?}");
        // The expression, and a caret under the place.
        assert_eq!(said[at + 1].trim(), expression);
        assert_eq!(said[at + 2].trim(), "^");
        assert_eq!(invocation.dynamodb.requests(), 0);
    }
}

#[tokio::test]
async fn without_its_table_the_function_says_which_variable_is_missing() {
    let world = World::of(orders().env("IDEMPOTENCY_TABLE", "")).await;
    let invocation = world.invoke(&batch_of([order("o-1")])).await.unwrap();
    assert!(!invocation.result.is_response(), "{}", invocation.result);
    let said = world.lines().join("\n");
    assert!(said.contains("IDEMPOTENCY_TABLE"), "{said}");
}
