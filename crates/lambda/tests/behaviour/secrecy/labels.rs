//! How a record is named where an application has chosen its id, and where AWS has.

use lambda_idempotency::{
    Operation,
    keys::KeyFormat,
    observe::TracingObserver,
    source::{EventBridge, RabbitMq, Scheduler, Sources},
};
use serde_json::{Value, json};

use crate::{
    secrets_capture::{CANARY, Captured},
    support::{World, bus_event, event_id},
    support_streams::{of_rabbit_mq, rabbit_mq},
};

/// The log of a record whose handler fails, and the text of the error.
async fn logged(source: impl Sources, operation: &Operation, event: &Value) -> String {
    let (world, captured) = (World::new(), Captured::default());
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let function = idempotency.on(source, operation, world.handler()).unwrap();
    captured.error(&world.invoke(&function, event).await.unwrap_err());
    drop(guard);
    captured.text()
}

/// So that they can be found in other logs.
#[tokio::test]
async fn ids_of_aws_are_shown() {
    let (id, time) = (event_id("1"), "2026-01-01T00:00:00Z");
    let event = bus_event(&id, "Placed", &json!({ "id": "a", "do": "fail" }));
    let log = logged(EventBridge::new(), &Operation::new("a"), &event).await;
    assert!(log.contains(&format!("eventbridge record {id}")), "{log}");
    let schedule = "arn:aws:scheduler:eu-west-1:1:schedule/default/nightly";
    let event = json!({ "scheduleArn": schedule, "scheduledTime": time, "do": "fail" });
    let log = logged(Scheduler::new(), &Operation::new("a"), &event).await;
    assert!(log.contains(&format!("scheduler record {time}")), "{log}");
}

/// Readers of the log who do not know the secret cannot find an id by trying values.
#[tokio::test]
async fn hashes_of_ids_use_the_secret_for_keys() {
    let hash = async |operation: Operation| {
        let event = rabbit_mq([of_rabbit_mq(CANARY, json!({ "do": "fail" }).to_string())]);
        let log = logged(RabbitMq::new(), &operation, &event).await;
        assert!(!log.contains(CANARY), "{log}");
        log.split("rabbitmq record #").nth(1).unwrap()[..12].to_owned()
    };
    let plain = hash(Operation::new("a")).await;
    assert_eq!(plain, hash(Operation::new("b")).await, "one record, one hash");
    let secret = async |byte| {
        hash(Operation::new("a").key_format(KeyFormat::secret([byte; 32]).unwrap())).await
    };
    let (one, other) = (secret(7).await, secret(8).await);
    assert!(plain != one && one != other);
}
