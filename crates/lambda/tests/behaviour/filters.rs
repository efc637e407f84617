//! Filters of operations: each is compared only with the names of its own kind.

use lambda_idempotency::{
    ConfigError, Function, Operation,
    source::{DynamoDbStream, Invoke, Kafka, Pipe, Scheduler, Sqs},
};
use serde_json::{Value, json};

use crate::{
    pipes::{flat, from_broker},
    support::{World, batch, diagnostic, order},
    support_streams::{CLUSTER, change, message, put, topic},
};

async fn takes(world: &World, function: &Function, event: &Value) -> bool {
    match world.invoke(function, event).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(diagnostic(error).0, "Idempotency.UnknownEvent");
            false
        }
    }
}

/// A Kafka event with a record in each of these partitions, from a cluster named `shop`.
fn kafka(partitions: &[&str]) -> Value {
    let mut event = topic([]);
    for partition in partitions {
        event["records"][*partition] = json!([message(0, 1, "x", "")]);
    }
    event
}

#[tokio::test]
async fn a_kafka_topic_is_not_confused_with_its_cluster() {
    let world = World::new();
    let on = |operation: Operation| {
        world.idempotency().on(Kafka::new(), &operation, world.handler()).unwrap()
    };
    let named_as_the_cluster = on(Operation::new("a").topic("shop"));
    assert!(!takes(&world, &named_as_the_cluster, &kafka(&["orders-0"])).await);
    assert!(!takes(&world, &named_as_the_cluster, &kafka(&["shop-eu-0"])).await);
    assert!(takes(&world, &named_as_the_cluster, &kafka(&["shop-0", "shop-1"])).await);
    let named_as_the_topic = on(Operation::new("b").broker("orders"));
    assert!(!takes(&world, &named_as_the_topic, &kafka(&["orders-0"])).await);
}

/// A handler never gets records of another topic, not even in a batch with its own.
#[tokio::test]
async fn all_partitions_of_an_event_have_to_be_of_the_topic() {
    let world = World::new();
    let orders = Operation::new("a").topic("orders");
    let function = world.idempotency().on(Kafka::new(), &orders, world.handler()).unwrap();
    assert!(!takes(&world, &function, &kafka(&["orders-0", "refunds-0"])).await);
    assert_eq!(world.ledger.total(), 0);
    assert!(takes(&world, &function, &kafka(&["orders-0", "orders-10"])).await);
}

#[tokio::test]
async fn a_topic_filter_can_be_limited_to_one_cluster() {
    let world = World::new();
    for (broker, taken) in [("shop", true), (CLUSTER, true), ("orders", false), ("other", false)] {
        let operation = Operation::new("a").topic("orders").broker(broker);
        let function = world.idempotency().on(Kafka::new(), &operation, world.handler()).unwrap();
        assert_eq!(takes(&world, &function, &kafka(&["orders-0"])).await, taken, "{broker}");
        assert!(!takes(&world, &function, &kafka(&["refunds-0"])).await, "{broker}");
    }
}

/// All resources here are named `orders`, or belong to one that is.
#[tokio::test]
async fn a_filter_for_a_pipe_applies_to_one_kind_of_source() {
    let world = World::new();
    let broker = "arn:aws:mq:eu-west-1:1:broker:orders:b-1";
    let cluster = "arn:aws:kafka:eu-west-1:1:cluster/orders/3f2a-4";
    let active = from_broker(json!({ "messageID": "1" }), "aws:amq", broker);
    let lists = [
        ("queue", json!([order("m-1", "a", "")])),
        ("stream", json!([flat(put(1, "k", "b", ""))])),
        ("source_table", json!([change(1, "x", "c", "")])),
        ("broker", json!([from_broker(message(0, 1, "d", ""), "aws:kafka", cluster)])),
        ("broker", json!([active])),
    ];
    for (kind, named) in [
        ("queue", Operation::new("a").queue("orders")),
        ("stream", Operation::new("a").stream("orders")),
        ("source_table", Operation::new("a").source_table("orders")),
        ("broker", Operation::new("a").broker("orders")),
    ] {
        let named = named.key(lambda_idempotency::record("eventSource"));
        let function = world
            .idempotency()
            .on(Pipe::of(Sqs::new()), &named, |_: Value, _| async { Ok::<_, std::io::Error>(()) });
        let function = function.unwrap();
        for (found, list) in &lists {
            let answer = world.invoke(&function, list).await;
            let unknown =
                answer.is_err_and(|error| diagnostic(error).0 == "Idempotency.UnknownEvent");
            assert_eq!(!unknown, kind == *found, "`.{kind}(..)`: an event of a {found}");
        }
    }
}

/// Lambda and pipes deliver from one resource at a time, but a direct invocation can contain any records.
#[tokio::test]
async fn a_batch_from_two_queues_does_not_match_a_filter_for_one() {
    let world = World::new();
    let named = || Operation::new("a").queue("orders");
    let sqs = world.idempotency().on(Sqs::new(), &named(), world.handler()).unwrap();
    let pipe = world.idempotency().on(Pipe::of(Sqs::new()), &named(), world.handler()).unwrap();
    let mut other = order("m-2", "b", "");
    other["eventSourceARN"] = "arn:aws:sqs:eu-west-1:111122223333:refunds".into();
    let records = [order("m-1", "a", ""), other];
    assert!(!takes(&world, &sqs, &batch(records.clone())).await);
    assert!(!takes(&world, &pipe, &json!(records)).await);
    assert_eq!(world.ledger.total(), 0);
    // A record without an ARN is a bad record, and fails alone.
    let without_arn = json!({ "messageId": "m-3", "eventSource": "aws:sqs" });
    assert_eq!(world.returned(&sqs, &batch([order("m-1", "a", ""), without_arn])).await, ["m-3"]);
    world.ledger.assert_each_once(["a"]);
}

#[tokio::test]
async fn a_schedule_is_not_confused_with_its_group() {
    let world = World::new();
    let event = json!({
        "scheduleArn": "arn:aws:scheduler:eu-west-1:111122223333:schedule/reports/nightly",
        "scheduledTime": "2026-01-01T00:00:00Z", "id": "x",
    });
    for (name, taken) in [("nightly", true), ("reports", false)] {
        let operation = Operation::new("a").schedule(name);
        let function =
            world.idempotency().on(Scheduler::new(), &operation, world.handler()).unwrap();
        assert_eq!(takes(&world, &function, &event).await, taken, "{name}");
    }
}

#[tokio::test]
async fn a_table_filter_accepts_the_arn_of_the_table() {
    let world = World::new();
    for (arn, taken) in [
        ("arn:aws:dynamodb:eu-west-1:111122223333:table/orders", true),
        ("arn:aws:dynamodb:eu-west-1:111122223333:table/order", false),
        ("arn:aws:dynamodb:us-east-1:111122223333:table/orders", false),
    ] {
        let operation = Operation::new("a").source_table(arn);
        let image = |_: Value, _| async { Ok::<_, std::io::Error>(()) };
        let function = world.idempotency().on(DynamoDbStream::new(), &operation, image).unwrap();
        assert_eq!(
            takes(&world, &function, &batch([change(1, "x", "a", "")])).await,
            taken,
            "{arn}"
        );
    }
}

#[test]
fn a_filter_that_matches_no_record_is_refused() {
    let from = || Operation::new("a");
    let url = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders";
    for (operation, setting, problem) in [
        (from().queue(url), "queue", "is a URL"),
        (from().queue(""), "queue", "is empty"),
        (from().topic(" "), "topic", "is empty"),
        (from().stream("orders "), "stream", "characters"),
        (from().source_table("table/orders"), "source_table", "characters"),
        (from().bucket("s3://uploads"), "bucket", "is a URL"),
        (from().broker("b-1.shop:9092"), "broker", "characters"),
        (from().schedule(""), "schedule", "is empty"),
        (from().event_source(""), "event_source", "is empty"),
        (from().detail_type("Placed "), "detail_type", "a space"),
        (from().queue("arn:aws:sns:eu-west-1:1:orders"), "queue", "another service"),
        (from().queue("arn:aws:sqs:eu-west-1:1"), "queue", "whole ARN"),
        (from().topic("arn:aws:sns:eu-west-1:1:a:3f2a"), "topic", "whole ARN"),
    ] {
        let error = operation.check().unwrap_err();
        assert!(matches!(error, ConfigError::FilterName { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(setting) && text.contains(problem), "{text}");
        assert!(text.contains("`a`") && text.contains("give the name"), "{text}");
    }
}

#[test]
fn filters_that_exclude_each_other_are_refused() {
    let from = || Operation::new("a");
    for operation in [
        from().queue("orders").queue("refunds"),
        from().queue("orders").stream("orders"),
        from().topic("orders").broker("shop").topic("refunds"),
        from().event_source("shop").event_source("stock"),
        from().detail_type("Placed").detail_type("Cancelled"),
    ] {
        let error = operation.check().unwrap_err();
        assert!(matches!(error, ConfigError::Filters { .. }), "{error}");
    }
    for operation in [
        from().queue("orders").queue("orders"),
        from().topic("orders").broker("shop"),
        from().detail_type("Placed").event_source("shop"),
    ] {
        operation.check().unwrap();
    }
}

#[test]
fn a_filter_for_a_kafka_topic_cannot_be_an_arn() {
    let world = World::new();
    let operation = Operation::new("a").topic("arn:aws:sns:eu-west-1:1:orders");
    let error = world.idempotency().on(Kafka::new(), &operation, world.handler()).unwrap_err();
    assert!(error.to_string().contains("Kafka records contain the topic's name"), "{error}");
}

#[test]
fn a_queue_filter_by_arn_is_out_of_reach_after_its_name() {
    let world = World::new();
    let named = |operation: &str, queue: &str| Operation::new(operation).queue(queue);
    let arn = "arn:aws:sqs:eu-west-1:111122223333:orders";
    let build = |one, two| {
        world
            .idempotency()
            .function()
            .on(Sqs::new(), &one, world.handler())
            .on(Sqs::new(), &two, world.handler())
            .build()
    };
    let error = build(named("a", "orders"), named("b", arn)).unwrap_err();
    assert!(matches!(error, ConfigError::OutOfReach { .. }), "{error}");
    // In the other order, the second gets queues of that name in other accounts and regions.
    build(named("a", arn), named("b", "orders")).unwrap();
}

#[test]
fn a_stream_filter_is_out_of_reach_after_its_table() {
    let world = World::new();
    let named = |operation: &str, table: &str| Operation::new(operation).source_table(table);
    let table = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders";
    let stream = format!("{table}/stream/2026-01-01T00:00:00.000");
    let build = |one, two| {
        let function = world.idempotency().function();
        function
            .on(DynamoDbStream::new(), &one, world.handler())
            .on(DynamoDbStream::new(), &two, world.handler())
            .build()
    };
    let error = build(named("a", table), named("b", &stream)).unwrap_err();
    assert!(matches!(error, ConfigError::OutOfReach { .. }), "{error}");
    // In the other order, the second gets the table's other streams.
    build(named("a", &stream), named("b", table)).unwrap();
}

/// It may be a record of another queue, and another operation may be the one for it.
#[tokio::test]
async fn a_record_that_does_not_tell_where_it_is_from_passes_no_filter() {
    for unknown in [Value::Null, json!(""), json!(7)] {
        let world = World::new();
        let mut stray = order("m-2", "b", "");
        stray["eventSourceARN"] = unknown;
        let event = batch([order("m-1", "a", ""), stray]);
        let orders = Operation::new("a").key("id").queue("orders");
        let function = world.idempotency().on(Sqs::new(), &orders, world.handler()).unwrap();
        assert_eq!(world.returned(&function, &event).await, ["m-2"]);
        world.ledger.assert_each_once(["a"]);
    }
}
