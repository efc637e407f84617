//! The parts of a key that the expression does not select: operation, tenant, source.

use lambda_idempotency::{
    Failure, Operation,
    clock::Timestamp,
    keys::{KeyFormat, inspect},
    source::Sqs,
};
use serde_json::{Value, json};

use crate::{
    pipes::{flat, from_broker},
    support::{FIFO, World, batch, bus_event, notification, order, serve, without},
    support_streams::{
        CLUSTER, STREAM, active_mq, change, collection, document, message, of_active_mq,
        of_rabbit_mq, put, rabbit_mq, topic, uploaded,
    },
};

/// Delivers an event for one tenant.
async fn deliver(
    world: &World,
    function: &lambda_idempotency::Function,
    event: &Value,
    tenant: Option<&str>,
) {
    let mut context = world.context();
    context.tenant_id = tenant.map(ToOwned::to_owned);
    let event = event.to_string();
    world.clock.drive(serve(function.clone(), &event, context)).await.unwrap();
}

#[tokio::test]
async fn tenants_never_share_a_key() {
    let by_id = || Operation::new("place").key("id");
    for operation in [
        by_id(),
        Operation::new("place"),
        by_id().key_format(KeyFormat::Readable),
        by_id().key_format(KeyFormat::secret("4f1f5c0e2b7d49a8").unwrap()),
    ] {
        let world = World::new();
        let function = world.on(Sqs::new(), &operation);
        let event = batch([order("m-1", "a", "")]);
        for (tenant, executed) in [
            (None, 1),
            (Some("t-1"), 2),
            (Some("t-2"), 3),
            (Some("t-1"), 3),
            (None, 3),
            (Some(""), 4),
        ] {
            deliver(&world, &function, &event, tenant).await;
            assert_eq!(world.ledger.executed("a"), executed, "{tenant:?}");
        }
    }
}

/// `run` takes the tenant from the invocation's context.
#[tokio::test]
async fn calls_of_run_belong_to_the_tenant_of_their_invocation() {
    let world = World::new();
    let [charge, refund] = ["charge", "refund"].map(|name| Operation::new(name).key("id"));
    let mut seen = 0;
    for (operation, tenant, value) in [
        (&charge, None, 1),
        (&charge, Some("t-1"), 2),
        (&charge, Some("t-2"), 3),
        (&charge, Some("t-1"), 2),
        (&refund, Some("t-1"), 4),
        (&charge, Some(""), 5),
        (&charge, None, 1),
    ] {
        let mut context = world.context();
        context.tenant_id = tenant.map(ToOwned::to_owned);
        let (idempotency, payload) = (world.idempotency(), json!({ "id": "a" }));
        let fresh = seen + 1;
        let deadline = Timestamp::from_millis(context.deadline);
        let running = idempotency.run(operation, &payload, &context, |call| async move {
            assert!(call.handler_deadline().is_some_and(|stop| stop <= deadline));
            Ok::<_, Failure>(fresh)
        });
        let run = world.clock.drive(running).await.unwrap();
        assert_eq!((run.result, run.replayed), (value, value <= seen), "{tenant:?}");
        seen = seen.max(value);
    }
    assert_eq!(seen, 5);
}

fn identity(event: &Value) -> Vec<String> {
    let records = inspect::event(&event.to_string(), None).unwrap();
    records[0].identity.clone().unwrap()
}

/// The event with other values at these pointers.
fn changed(event: &Value, members: &[(&str, Value)]) -> Value {
    let mut event = event.clone();
    for (pointer, value) in members {
        *event.pointer_mut(pointer).unwrap() = value.clone();
    }
    event
}

/// The identity contains nothing that a redelivery changes. `views` shows that functions store it as the key.
#[test]
fn deliveries_of_one_record_have_one_identity_for_each_source() {
    let kinesis = batch([put(1, "k", "a", "")]);
    let of_stream = |arn: &str| changed(&kinesis, &[("/Records/0/eventSourceARN", arn.into())]);
    let consumer = |name: &str| of_stream(&format!("{STREAM}/consumer/{name}:1540591608"));
    let document_db = collection([document(1, "d-1", "a", "")]);
    let kafka = topic([message(0, 1, "a", "")]);
    let own = without(kafka.clone(), "eventSourceArn");
    let scheduled = json!({
        "scheduleArn": "arn:aws:scheduler:eu-west-1:1:schedule/default/nightly",
        "scheduledTime": "2026-01-01T00:00:00Z", "executionId": "x-1", "attempt": "1",
    });
    let s3 = batch([uploaded("a.pdf", "01")]);
    let bus = bus_event("e-1", "Placed", &json!({}));
    for (one, other) in [
        (batch([order("m-1", "a", "")]), batch([order("m-1", "b", "")])),
        (batch([order("m-1", "a", "")]), json!([order("m-1", "a", "")])),
        // By shared polling, by enhanced fan-out and by a pipe.
        (kinesis.clone(), consumer("orders")),
        (consumer("orders"), consumer("again")),
        (kinesis.clone(), json!([flat(put(1, "k", "a", ""))])),
        (batch([change(1, "k", "a", "")]), json!([change(1, "k", "b", "")])),
        (
            document_db.clone(),
            changed(&document_db, &[("/events/0/event/fullDocument", json!({}))]),
        ),
        (kafka.clone(), json!([from_broker(message(0, 1, "a", ""), "aws:kafka", CLUSTER)])),
        (
            own.clone(),
            changed(&own, &[("/bootstrapServers", "b-1.shop:9092,b-2.shop:9092".into())]),
        ),
        (rabbit_mq([of_rabbit_mq("1", "a")]), rabbit_mq([of_rabbit_mq("1", "b")])),
        (
            scheduled.clone(),
            changed(&scheduled, &[("/executionId", "x-2".into()), ("/attempt", "2".into())]),
        ),
        (s3.clone(), changed(&s3, &[("/Records/0/eventTime", "later".into())])),
        (bus.clone(), changed(&bus, &[("/detail", json!({ "a": 1 }))])),
        (bus.clone(), json!([bus])),
    ] {
        assert_eq!(identity(&one), identity(&other), "{one} {other}");
    }
}

#[test]
fn records_of_different_places_or_times_have_different_identities() {
    let sqs = batch([order("1", "a", "")]);
    let kinesis = batch([put(1, "k", "a", "")]);
    let document_db = collection([document(1, "d-1", "a", "")]);
    let kafka = topic([message(0, 1, "a", "")]);
    let rabbit = rabbit_mq([of_rabbit_mq("1", "a")]);
    let of_queue = |name: &str| {
        changed(&rabbit, &[("/rmqMessagesByQueue", json!({ name: [of_rabbit_mq("1", "a")] }))])
    };
    let active = active_mq([of_active_mq("1", "a")]);
    let scheduled = json!({
        "scheduleArn": "arn:aws:scheduler:eu-west-1:1:schedule/default/nightly",
        "scheduledTime": "2026-01-01T00:00:00Z",
    });
    let s3 = batch([uploaded("a.pdf", "01")]);
    let tagged = changed(&s3, &[("/Records/0/s3/object/sequencer", "".into())]);
    let streams = "arn:aws:kinesis:eu-west-1:1:stream/consumer";
    for (event, pointer, other) in [
        (&sqs, "/Records/0/eventSourceARN", FIFO),
        (&sqs, "/Records/0/messageId", "2"),
        (&kinesis, "/Records/0/eventSourceARN", streams),
        (&kinesis, "/Records/0/eventID", "shardId-000000000007:1"),
        (&document_db, "/eventSourceArn", "arn:aws:rds:eu-west-1:1:cluster:shop-eu"),
        (&document_db, "/events/0/event/ns/coll", "refunds"),
        (&document_db, "/events/0/event/_id/_data", "0163eeb6e8"),
        (&kafka, "/eventSourceArn", "arn:aws:kafka:eu-west-1:1:cluster/shop/3f2a-5"),
        (&rabbit, "/eventSourceArn", "arn:aws:mq:eu-west-1:1:broker:shop:b-2"),
        (&active, "/eventSourceArn", "arn:aws:mq:eu-west-1:1:broker:shop:b-2"),
        (&active, "/messages/0/destination/physicalName", "refunds"),
        (&active, "/messages/0/messageID", "2"),
        (&scheduled, "/scheduleArn", "arn:aws:scheduler:eu-west-1:1:schedule/default/daily"),
        (&scheduled, "/scheduledTime", "2026-01-02T00:00:00Z"),
        (&s3, "/Records/0/s3/object/key", "b.pdf"),
        (&s3, "/Records/0/s3/object/sequencer", "02"),
        (&s3, "/Records/0/s3/object/eTag", "e52e"),
        (&s3, "/Records/0/s3/bucket/arn", "arn:aws:s3:::other"),
        (&s3, "/Records/0/eventName", "ObjectRemoved:Delete"),
        // Without a sequencer, time and request id replace it.
        (&tagged, "/Records/0/eventTime", "2026-01-01T00:00:01.000Z"),
    ] {
        let other = changed(event, &[(pointer, other.into())]);
        assert_ne!(identity(event), identity(&other), "{pointer} of {event}");
    }
    for (one, other) in [
        (sqs, notification("1", "{}")),
        (of_queue("orders::/"), of_queue("refunds::/")),
        (kafka.clone(), topic([message(1, 1, "a", "")])),
        (kafka.clone(), topic([message(0, 2, "a", "")])),
        // The topic was deleted and created again.
        (kafka.clone(), changed(&kafka, &[("/records/orders-0/0/timestamp", json!(1))])),
        (
            kafka.clone(),
            changed(&kafka, &[("/records", json!({ "refunds-0": [message(0, 1, "a", "")] }))]),
        ),
        (kafka.clone(), without(kafka, "eventSourceArn")),
    ] {
        assert_ne!(identity(&one), identity(&other), "{one} {other}");
    }
}
