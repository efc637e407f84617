//! What sources have in common, each with its own events: failures, busy keys, sinks, settings.

use std::time::Duration;

use lambda_idempotency::{
    Call, Failure, Function, Operation,
    handler::Handler,
    policy::OnConflict,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, EventBridge, Kafka, KeepOrder, Kinesis, Pipe,
        RabbitMq, S3, Sns, Source, Sqs,
    },
};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::{Value, json, value::RawValue};

use crate::{
    pipes::from_broker,
    support::{
        Noted, World, batch, bus_event, diagnostic, event_id, ids, notification, order, serve,
    },
    support_streams::{
        BROKER, CLUSTER, active_mq, change, collection, document, message, of_active_mq,
        of_rabbit_mq, put, rabbit_mq, topic, uploaded,
    },
};

/// Notes what it processes, and fails for payloads that say so.
fn failing(noted: &Noted<String>) -> impl Handler<Box<RawValue>, Result<(), Failure>> {
    let noted = noted.clone();
    async move |payload: Box<RawValue>, call: Call| {
        let text = payload.get();
        if text.contains("fail always") || text.contains("fail once") && call.failed_attempts() == 0
        {
            return Err(Failure::transient("no luck"));
        }
        noted.add(text.to_owned());
        Ok(())
    }
}

const ORDERS: [(u32, &str, &str); 3] = [(1, "a", ""), (2, "b", "fail once"), (3, "c", "")];

fn text(id: &str, action: &str) -> String {
    json!({ "id": id, "do": action }).to_string()
}

/// The records of a broker's messages as a pipe has them.
fn in_pipe(source: &str, arn: &str, records: [Value; 3]) -> Value {
    let of_pipe = |record| {
        let mut record = from_broker(record, source, arn);
        record["eventSourceKey"] = "orders::/".into();
        record
    };
    json!(records.map(of_pipe))
}

#[tokio::test]
async fn where_no_record_can_be_named_a_failure_fails_the_invocation_and_the_rest_is_replayed() {
    fn on(world: &World, noted: &Noted<String>, source: impl Source) -> Function {
        world.with_handler(source, &Operation::new("a"), failing(noted))
    }
    let (world, noted) = (World::new(), Noted::new());
    let on_source = (&world, &noted);
    macro_rules! on {
        ($source:expr) => {
            on(on_source.0, on_source.1, $source)
        };
    }
    let notified = |(n, id, action): (u32, &str, &str)| {
        notification(&format!("n-{n}"), &text(id, action))["Records"][0].take()
    };
    let placed = |(n, id, action): (u32, &str, &str)| {
        bus_event(&event_id(&n.to_string()), "Placed", &json!({ "id": id, "do": action }))
    };
    let stored =
        |(n, id, action): (u32, &str, &str)| uploaded(&format!("{id} {action}"), &n.to_string());
    let changed = |(n, id, action): (u32, &str, &str)| document(n, &format!("d-{n}"), id, action);
    let streamed = |(n, id, action): (u32, &str, &str)| message(n, 1, id, action);
    let queued =
        |(n, id, action): (u32, &str, &str)| of_active_mq(&n.to_string(), text(id, action));
    let posted = |(n, id, action): (u32, &str, &str)| of_rabbit_mq(n.to_string(), text(id, action));
    for (source, function, event) in [
        ("sns", on!(Sns::new()), batch(ORDERS.map(notified))),
        ("eventbridge", on!(EventBridge::new()), json!(ORDERS.map(placed))),
        ("s3", on!(S3::new()), batch(ORDERS.map(stored))),
        ("documentdb", on!(DocumentDb::new()), collection(ORDERS.map(changed))),
        ("activemq", on!(ActiveMq::new()), active_mq(ORDERS.map(queued))),
        ("rabbitmq", on!(RabbitMq::new()), rabbit_mq(ORDERS.map(posted))),
        ("kafka", on!(Kafka::new().without_partial_responses()), topic(ORDERS.map(streamed))),
        (
            "pipe",
            on!(Pipe::of(ActiveMq::new().key("id"))),
            in_pipe("aws:amq", BROKER, ORDERS.map(queued)),
        ),
        (
            "pipe",
            on!(Pipe::of(RabbitMq::new().key("[id]"))),
            in_pipe("aws:rmq", BROKER, ORDERS.map(posted)),
        ),
        (
            "pipe",
            on!(Pipe::of(Kafka::new().key("{id: id}"))),
            in_pipe("aws:kafka", CLUSTER, ORDERS.map(streamed)),
        ),
    ] {
        let text = world.fails(&function, &event, "RecordsReturned").await;
        assert!(text.contains(&format!("1 of 3 {source} record(s)")), "{text}");
        assert_eq!(noted.take().len(), 2, "{event}");
        // Only the event source mapping of Kafka reads such an answer.
        let nothing =
            if source == "kafka" { json!({ "batchItemFailures": [] }) } else { Value::Null };
        for processed in [1, 0] {
            let answer = world.invoke(&function, &event).await.unwrap();
            assert_eq!(answer, nothing, "{event}");
            assert_eq!(noted.take().len(), processed, "{event}");
        }
    }
}

/// The batch is one order group.
#[tokio::test]
async fn a_failure_can_stop_the_whole_batch() {
    let (world, noted) = (World::new(), Noted::new());
    let index = Operation::new("a");
    let orders = [(1, "a", ""), (2, "b", "fail always"), (3, "c", "")];
    let kinesis = Kinesis::new().order(KeepOrder::Shard);
    let active = ActiveMq::new().in_order();
    let queued = orders.map(|(n, id, action)| of_active_mq(&n.to_string(), text(id, action)));
    for (function, event, returned) in [
        (
            world.with_handler(kinesis, &index, failing(&noted)),
            batch(orders.map(|(n, id, action)| put(n, id, id, action))),
            Some(2),
        ),
        // As `guide/sources/active_mq.md` says.
        (world.with_handler(active, &index, failing(&noted)), active_mq(queued), None),
    ] {
        for processed in [1, 0, 0] {
            let answer = world.invoke(&function, &event).await;
            assert_eq!(answer.ok().map(|answer| ids(&answer).len()), returned, "{event}");
            assert_eq!(noted.take().len(), processed, "{event}");
        }
    }
}

/// A shard makes no progress without an answer, and all retries of an asynchronous invocation may come while a killed
/// attempt's lease holds the key. A queue delivers a message again, whoever reads it.
#[tokio::test]
async fn a_record_whose_key_is_busy_waits_where_its_source_would_not_bring_it_again_in_time() {
    macro_rules! waits {
        ($source:expr, $operation:expr, $event:expr) => {{
            let (world, noted) = (World::instant(), Noted::<Value>::new());
            let (operation, event) = ($operation, $event);
            let forever = |_: Value, _: Call| std::future::pending::<Result<(), Failure>>();
            let killed = world.with_handler($source, &operation, forever);
            let serving = event.to_string();
            let serving = serve(killed, &serving, world.context());
            assert!(drop_after(1, serving).await.is_none());
            world.clock.advance(Duration::from_secs(15));
            let before = world.clock.now();
            let function = world.with_handler($source, &operation, noted.payloads());
            let answer = world.invoke(&function, &event).await;
            let waited = world.clock.now().since(before);
            assert!(waited == Duration::ZERO || waited > Duration::from_secs(15), "{waited:?}");
            assert_eq!(noted.take().len() == 1, waited > Duration::ZERO, "{answer:?}");
            (waited > Duration::ZERO, answer)
        }};
    }
    let a = || Operation::new("a");
    let message = || order("m-1", "a", "");
    assert!(!waits!(Sqs::new(), a(), batch([message()])).0);
    assert!(!waits!(Pipe::of(Sqs::new()), a(), json!([message()])).0);
    assert!(waits!(Kinesis::new(), a(), batch([put(1, "k", "a", "")])).0);
    assert!(waits!(DynamoDbStream::new(), a(), batch([change(1, "k", "a", "")])).0);
    assert!(waits!(EventBridge::new(), a(), bus_event(&event_id("1"), "Placed", &json!({}))).0);
    assert!(waits!(Sns::new(), a(), notification("n-1", "{}")).0);
    let returns = a().on_conflict(OnConflict::Return);
    let (waits, answer) = waits!(Sns::new(), returns, notification("n-1", "{}"));
    let text = diagnostic(answer.unwrap_err()).1;
    assert!(!waits && text.contains("another worker"), "{text}");
}

/// Scheduler sends such an event where the schedule has no `Input`.
#[tokio::test]
async fn the_detail_of_a_schedule_without_an_input_is_an_empty_object() {
    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default)]
    struct Report {
        name: String,
    }
    let world = World::new();
    let (reports, values) = (Noted::<Report>::new(), Noted::<Value>::new());
    let mut event = bus_event("e-1", "Scheduled Event", &json!("{}"));
    event["source"] = "aws.scheduler".into();
    let typed = world.with_handler(EventBridge::new(), &Operation::new("a"), reports.payloads());
    let any = world.with_handler(EventBridge::new(), &Operation::new("b"), values.payloads());
    for function in [&typed, &any] {
        world.invoke(function, &event).await.unwrap();
    }
    assert_eq!((reports.take(), values.take()), (vec![Report::default()], vec![json!({})]));
    // The detail of another source may be a text.
    event["source"] = "shop".into();
    event["id"] = "e-2".into();
    world.invoke(&any, &event).await.unwrap();
    assert_eq!(values.take(), [json!("{}")]);
}
