//! One function, several sources: each event goes to the first operation that accepts it.

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Operation,
    source::{EventBridge, Sns, Sqs},
};
use serde_json::{Value, json};

use crate::support::{
    FIFO, TOPIC, World, batch, bus_event, grouped, notification, order, with_body,
};

/// A handler that notes its own name.
fn named(
    world: &World,
    name: &'static str,
) -> impl Fn(Value, Call) -> std::future::Ready<Result<(), Failure>>
+ AsyncFn(Value, Call) -> Result<(), Failure>
+ Clone
+ Send
+ Sync
+ 'static {
    let ledger = world.ledger.clone();
    move |_, _| {
        ledger.record(name, "");
        std::future::ready(Ok(()))
    }
}

fn shop(world: &World) -> Function {
    world
        .idempotency()
        .function()
        .on(Sqs::new().queue("orders"), &Operation::new("place").key("id"), named(world, "place"))
        .on(
            Sqs::new().queue(FIFO),
            &Operation::new("place-fifo").key("id"),
            named(world, "place-fifo"),
        )
        .on(Sns::new().topic("orders"), &Operation::new("ship").key("id"), named(world, "ship"))
        .on(
            EventBridge::new().detail_type("OrderCancelled"),
            &Operation::new("cancel").key("id"),
            named(world, "cancel"),
        )
        .on(
            EventBridge::new().event_source("shop").detail_type("Audited"),
            &Operation::new("audit").key("id"),
            named(world, "audit"),
        )
        .on(
            EventBridge::new().event_source("shop"),
            &Operation::new("watch").key("id"),
            named(world, "watch"),
        )
        .build()
        .unwrap()
}

#[tokio::test]
async fn each_event_goes_to_the_handler_of_its_source() {
    let world = World::new();
    let function = shop(&world);
    let id = json!({ "id": "1" });
    for (event, handler) in [
        (batch([with_body("m-1", r#"{"id":"1"}"#)]), "place"),
        (batch([grouped(with_body("m-1", r#"{"id":"1"}"#), FIFO, "g")]), "place-fifo"),
        (notification("n-1", r#"{"id":"1"}"#), "ship"),
        (bus_event("e-1", "OrderCancelled", &id), "cancel"),
        (bus_event("e-1", "Audited", &id), "audit"),
        (bus_event("e-1", "AnythingElse", &id), "watch"),
    ] {
        for _ in 0..2 {
            world.invoke(&function, &event).await.unwrap();
        }
        world.ledger.assert_once(handler);
    }
    assert_eq!(world.ledger.total(), 6, "one id, six operations: six keys");
}

#[tokio::test]
async fn events_from_other_resources_match_no_operation() {
    let world = World::new();
    let function = shop(&world);
    let mut elsewhere = notification("n-1", "{}");
    elsewhere["Records"][0]["Sns"]["TopicArn"] = format!("{TOPIC}-eu").into();
    let mut stranger = bus_event("e-1", "Audited", &json!({}));
    stranger["source"] = "aws.ec2".into();
    for event in [
        batch([grouped(order("m-1", "a", ""), "arn:aws:sqs:eu-west-1:1:orders-eu", "g")]),
        batch([grouped(order("m-1", "a", ""), "arn:aws:sqs:eu-west-1:1:my-orders", "g")]),
        // A filter with a whole ARN does not accept a queue of the same name in another account.
        batch([grouped(order("m-1", "a", ""), "arn:aws:sqs:eu-west-1:2:orders.fifo", "g")]),
        elsewhere,
        stranger,
    ] {
        assert!(world.invoke(&function, &event).await.is_err(), "{event}");
    }
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn the_first_operation_that_accepts_an_event_gets_it() {
    let world = World::new();
    let function = world
        .idempotency()
        .function()
        .on(
            Sqs::new().queue("orders"),
            &Operation::new("orders").key("id"),
            named(&world, "orders"),
        )
        .on(Sqs::new(), &Operation::new("any").key("id"), named(&world, "any"))
        .build()
        .unwrap();
    world.invoke(&function, &batch([order("m-1", "a", "")])).await.unwrap();
    world.ledger.assert_once("orders");
    world.ledger.assert_never("any");
}

/// Two operations for queues without a filter: the second handler would never be called.
#[test]
fn a_handler_that_no_event_reaches_is_refused() {
    let world = World::new();
    let [a, b] = ["a", "b"].map(|name| Operation::new(name).key("id"));
    let build = |first: Sqs, second: Sqs| {
        let function = world.idempotency().function();
        function.on(first, &a, named(&world, "")).on(second, &b, named(&world, "")).build()
    };
    for (first, second) in [
        (Sqs::new(), Sqs::new()),
        (Sqs::new(), Sqs::new().queue("orders")),
        (Sqs::new().queue("orders"), Sqs::new().queue("orders")),
    ] {
        let error = build(first, second).unwrap_err();
        assert!(matches!(error, ConfigError::Source(_)), "{error}");
        let text = error.to_string();
        let expected =
            "operation `b` is never reached: `a` comes before it and takes all of its sqs";
        assert!(text.starts_with(expected) && text.contains(".queue("), "{text}");
    }
    build(Sqs::new().queue("orders"), Sqs::new().queue("refunds")).unwrap();

    let bus = || EventBridge::new().event_source("shop");
    let buses = |first: EventBridge, second: EventBridge| {
        let function = world.idempotency().function();
        function.on(first, &a, named(&world, "")).on(second, &b, named(&world, "")).build()
    };
    assert!(buses(bus(), bus().detail_type("Placed")).is_err());
    buses(bus().detail_type("Placed"), bus()).unwrap();
    // Operations of different sources do not compete.
    let function = world.idempotency().function();
    function
        .on(Sqs::new(), &a, named(&world, ""))
        .on(Sns::new(), &b, named(&world, ""))
        .build()
        .unwrap();
}

#[test]
fn the_debug_text_of_a_function_lists_its_operations() {
    let shown = format!("{:?}", shop(&World::new()));
    assert!(shown.contains(r#""place": "sqs from orders""#), "{shown}");
    assert!(shown.contains(r#""cancel": "eventbridge from OrderCancelled""#), "{shown}");
}

#[tokio::test]
async fn clones_of_a_function_share_keys() {
    let world = World::new();
    let function = shop(&world);
    let event = batch([order("m-1", "a", "")]);
    for function in [function.clone(), function] {
        world.invoke(&function, &event).await.unwrap();
    }
    world.ledger.assert_once("place");
}
