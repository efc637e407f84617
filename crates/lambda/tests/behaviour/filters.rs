//! Filters of sources: each is compared only with the names of its own kind.

use lambda_idempotency::{
    ConfigError, Function, Operation,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, EventBridge, Kafka, Kinesis, Pipe, RabbitMq, S3,
        Scheduler, Sns, Source, Sqs,
    },
};
use serde_json::{Value, json};

use crate::{
    pipes::{flat, from_broker},
    support::{
        FIFO, QUEUE, TOPIC, World, batch, bus_event, diagnostic, grouped, nothing, notification,
        order, without,
    },
    support_streams::{
        BROKER, CLUSTER, DOCUMENTS, active_mq, change, collection, document, message, of_active_mq,
        of_rabbit_mq, put, rabbit_mq, topic, uploaded,
    },
};

fn built(source: impl Source) -> Result<Function, ConfigError> {
    World::instant().idempotency().on(source, &Operation::new("a"), nothing)
}

fn function(world: &World, source: impl Source) -> Function {
    world.on(source, &Operation::new("a"))
}

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
async fn a_filter_accepts_a_name_or_an_arn() {
    let world = World::new();
    macro_rules! takes {
        ($event:expr; $($source:expr => $taken:literal,)+) => {{
            let event = $event;
            $(
                let function = built($source).unwrap();
                let taken = takes(&world, &function, &event).await;
                assert_eq!(taken, $taken, "{}: {event}", stringify!($source));
            )+
        }};
    }
    takes!(batch([order("m-1", "a", "")]);
        Sqs::new().queue("orders") => true,
        Sqs::new().queue(QUEUE) => true,
        Sqs::new().queue(FIFO) => false,
    );
    let from = |queue: &str| batch([grouped(order("m-1", "a", ""), queue, "g")]);
    takes!(from("arn:aws:sqs:eu-west-1:2:orders");
        Sqs::new().queue("orders") => true,
        Sqs::new().queue(QUEUE) => false,
    );
    for other in ["arn:aws:sqs:eu-west-1:1:orders-eu", "arn:aws:sqs:eu-west-1:1:my-orders"] {
        takes!(from(other); Sqs::new().queue("orders") => false,);
    }
    takes!(json!([order("m-1", "a", "")]);
        Pipe::of(Sqs::new().queue("orders")) => true,
        Pipe::of(Sqs::new().queue("other")) => false,
    );
    takes!(notification("n-1", "{}");
        Sns::new().topic("orders") => true,
        Sns::new().topic(TOPIC) => true,
        Sns::new().topic(format!("{TOPIC}-eu")) => false,
    );
    takes!(kafka(&["orders-0"]);
        Kafka::new().topic("orders") => true,
        Kafka::new().topic("order") => false,
        Kafka::new().broker("shop") => true,
        Kafka::new().broker(CLUSTER) => true,
        Kafka::new().broker("other") => false,
        Kafka::new().topic("orders").broker(CLUSTER) => true,
        Kafka::new().topic("orders").broker("other") => false,
        Kafka::new().topic("refunds").broker("shop") => false,
    );
    takes!(active_mq([of_active_mq("1", "{}")]);
        ActiveMq::new().broker("shop") => true,
        ActiveMq::new().broker(BROKER) => true,
        ActiveMq::new().broker("b-1") => false,
    );
    takes!(rabbit_mq([of_rabbit_mq("1", "{}")]);
        RabbitMq::new().broker("shop") => true,
        RabbitMq::new().broker(BROKER) => true,
        RabbitMq::new().broker("b-1") => false,
    );
    takes!(collection([document(1, "d-1", "a", "")]);
        DocumentDb::new().cluster("shop") => true,
        DocumentDb::new().cluster(DOCUMENTS) => true,
        DocumentDb::new().cluster("orders") => false,
        DocumentDb::new().cluster("arn:aws:rds:eu-west-1:1:cluster:shop") => false,
    );
    let schedule = "arn:aws:scheduler:eu-west-1:111122223333:schedule/reports/nightly";
    takes!(json!({ "scheduleArn": schedule, "scheduledTime": "2026-01-01T00:00:00Z" });
        Scheduler::new().schedule("nightly") => true,
        Scheduler::new().schedule(schedule) => true,
        Scheduler::new().schedule("reports") => false,
    );
    takes!(batch([change(1, "x", "a", "")]);
        DynamoDbStream::new().table("orders") => true,
        DynamoDbStream::new().table("arn:aws:dynamodb:eu-west-1:111122223333:table/orders") => true,
        DynamoDbStream::new().table("arn:aws:dynamodb:eu-west-1:111122223333:table/order") => false,
        DynamoDbStream::new().table("arn:aws:dynamodb:us-east-1:111122223333:table/orders") => false,
    );
    takes!(batch([uploaded("a.pdf", "01")]);
        S3::new().bucket("uploads") => true,
        S3::new().bucket("other") => false,
    );
    takes!(bus_event("e-1", "Audited", &json!({}));
        EventBridge::new().event_source("shop") => true,
        EventBridge::new().event_source("aws.ec2") => false,
    );
}
#[tokio::test]
async fn a_kafka_topic_is_not_confused_with_its_cluster() {
    let world = World::new();
    let named_as_the_cluster = function(&world, Kafka::new().topic("shop"));
    assert!(!takes(&world, &named_as_the_cluster, &kafka(&["orders-0"])).await);
    assert!(!takes(&world, &named_as_the_cluster, &kafka(&["shop-eu-0"])).await);
    assert!(takes(&world, &named_as_the_cluster, &kafka(&["shop-0", "shop-1"])).await);
    let named_as_the_topic = function(&world, Kafka::new().broker("orders"));
    assert!(!takes(&world, &named_as_the_topic, &kafka(&["orders-0"])).await);
}

/// A handler never gets records of another topic, not even in a batch with its own.
#[tokio::test]
async fn all_partitions_of_an_event_have_to_be_of_the_topic() {
    let world = World::new();
    let function = function(&world, Kafka::new().topic("orders"));
    assert!(!takes(&world, &function, &kafka(&["orders-0", "refunds-0"])).await);
    assert_eq!(world.ledger.total(), 0);
    assert!(takes(&world, &function, &kafka(&["orders-0", "orders-10"])).await);
}

/// All resources here are named `orders`, or belong to one that is.
#[tokio::test]
async fn a_filter_for_a_pipe_applies_to_one_kind_of_source() {
    let world = World::new();
    let broker = "arn:aws:mq:eu-west-1:1:broker:orders:b-1";
    let cluster = "arn:aws:kafka:eu-west-1:1:cluster/orders/3f2a-4";
    let active = from_broker(json!({ "messageID": "1" }), "aws:amq", broker);
    let lists = [
        ("sqs", json!([order("m-1", "a", "")])),
        ("kinesis", json!([flat(put(1, "k", "b", ""))])),
        ("dynamodb", json!([change(1, "x", "c", "")])),
        ("kafka", json!([from_broker(message(0, 1, "d", ""), "aws:kafka", cluster)])),
        ("activemq", json!([active])),
    ];
    for (source, function) in [
        ("sqs", built(Pipe::of(Sqs::new().queue("orders")))),
        ("kinesis", built(Pipe::of(Kinesis::new().stream("orders")))),
        ("dynamodb", built(Pipe::of(DynamoDbStream::new().table("orders")))),
        ("kafka", built(Pipe::of(Kafka::new().broker("orders")))),
        ("activemq", built(Pipe::of(ActiveMq::new().broker("orders")))),
    ] {
        let function = function.unwrap();
        for (found, list) in &lists {
            let answer = world.invoke(&function, list).await;
            let unknown =
                answer.is_err_and(|error| diagnostic(error).0 == "Idempotency.UnknownEvent");
            assert_eq!(!unknown, source == *found, "a pipe of {source}: an event of {found}");
        }
    }
}

/// A pipe's records name their topic, each for itself.
#[tokio::test]
async fn a_filter_for_a_pipe_of_kafka_can_be_a_topic() {
    let cluster = "arn:aws:kafka:eu-west-1:1:cluster/shop/3f2a-4";
    let record = || from_broker(message(0, 1, "a", ""), "aws:kafka", cluster);
    let mut by_partition = without(record(), "topic");
    by_partition["eventSourceKey"] = "orders-0".into();
    let by_partition = without(by_partition, "partition");
    for (record, (source, taken)) in [record(), by_partition].into_iter().flat_map(|record| {
        let sources = [
            (Kafka::new().topic("orders"), true),
            (Kafka::new().topic("orders").broker("shop"), true),
            (Kafka::new().topic("order"), false),
            (Kafka::new().topic("orders").broker("other"), false),
        ];
        sources.map(|source| (record.clone(), source))
    }) {
        let world = World::new();
        let function = function(&world, Pipe::of(source));
        assert_eq!(takes(&world, &function, &json!([record])).await, taken, "{record}");
    }
    let world = World::new();
    let orders = function(&world, Pipe::of(Kafka::new().topic("orders")));
    let mut other = record();
    other["topic"] = "clicks".into();
    for mixed in [json!([record(), other]), json!([without(record(), "topic")])] {
        assert!(!takes(&world, &orders, &mixed).await);
    }
}

/// Lambda and pipes deliver from one resource at a time, but a direct invocation can contain any records.
#[tokio::test]
async fn a_batch_from_two_queues_does_not_match_a_filter_for_one() {
    let world = World::new();
    let named = || Sqs::new().queue("orders");
    let (sqs, pipe) = (function(&world, named()), function(&world, Pipe::of(named())));
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

/// It may be a record of another queue, and another operation may be the one for it.
#[tokio::test]
async fn a_record_that_does_not_tell_where_it_is_from_passes_no_filter() {
    for unknown in [Value::Null, json!(""), json!(7)] {
        let world = World::new();
        let mut stray = order("m-2", "b", "");
        stray["eventSourceARN"] = unknown;
        let event = batch([order("m-1", "a", ""), stray]);
        let function = function(&world, Sqs::new().queue("orders").key("id"));
        assert_eq!(world.returned(&function, &event).await, ["m-2"]);
        world.ledger.assert_each_once(["a"]);
    }
}
