//! Log lines and errors contain nothing of a payload, a key or a result.

use lambda_idempotency::{
    Call, Failure, Function, Idempotency, OnMissingKey, Operation,
    keys::KeyFormat,
    observe::TracingObserver,
    powertools::PowertoolsKeys,
    record,
    source::{ActiveMq, EventBridge, Pipe, RabbitMq, Scheduler, Sns, Sqs},
    store::StoreErrorKind,
};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    secrets_capture::Captured,
    support::{World, batch, bus_event, diagnostic, ids, notification, serve, with_body},
    support_streams::{BROKER, active_mq, of_active_mq, of_rabbit_mq, rabbit_mq},
};

const SECRET: &str = "s3cr3t";

#[derive(Debug, Deserialize, Serialize)]
struct Order {
    id: String,
    n: u32,
    #[serde(default)]
    action: String,
}

#[derive(Debug)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused: {}", self.0)
    }
}

impl std::error::Error for Refused {}

async fn handle(order: Order, _: Call) -> Result<String, Failure> {
    let text = format!("{order:?}");
    match &*order.action {
        "message" => Err(text.into()),
        "error" => Err(Refused(text).into()),
        "boxed" => Err(Failure::transient(Box::<dyn std::error::Error + Send + Sync>::from(text))),
        "permanent" => Err(Failure::permanent(Refused(text))),
        "panic" => std::panic::panic_any(text),
        _ => Ok(text),
    }
}

fn body(action: &str) -> String {
    json!({ "id": format!("{SECRET}-{action}"), "n": 1, "action": action, "note": SECRET })
        .to_string()
}

/// A valid body, bodies whose handler fails, and invalid bodies.
fn bodies() -> Vec<String> {
    let mut bodies: Vec<String> =
        ["", "message", "error", "boxed", "permanent", "permanent"].map(body).into();
    bodies.extend([
        format!("{SECRET} not JSON"),
        format!("{{\"id\": \"{SECRET}"),
        format!("{{\"id\": {SECRET}}}"),
        format!("{{\"note\": \"{SECRET}\", \"n\": 1}}"),
        format!("{{\"id\": null, \"note\": \"{SECRET}\", \"n\": 1}}"),
        format!("{{\"id\": \"a\", \"n\": \"{SECRET}\"}}"),
        format!("{{\"{SECRET}\": 1, \"{SECRET}\": 2}}"),
        format!("[\"{SECRET}\"]"),
        format!("\"{SECRET}\""),
    ]);
    bodies
}

fn check(captured: &Captured, proof: &[&str]) {
    let text = captured.text();
    for part in proof {
        assert!(text.contains(part), "the test did not capture this: {part}\n{text}");
    }
    let leak = text.lines().find(|line| line.contains(SECRET));
    assert_eq!(leak, None, "\n{text}");
}

/// A world whose log and whose answers are captured.
struct Watched {
    world: World,
    captured: Captured,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Watched {
    fn new() -> Self {
        let (world, captured) = (World::new(), Captured::default());
        let _guard = captured.start();
        Self { world, captured, _guard }
    }

    fn idempotency(&self) -> Idempotency {
        self.world.idempotency().with_log(TracingObserver::new())
    }

    /// Calls the function and captures its answer or its error.
    async fn call(&self, function: &Function, event: &Value) -> Value {
        let (event, context) = (event.to_string(), self.world.context());
        match self.world.clock.drive(serve(function.clone(), &event, context)).await {
            Ok(answer) => {
                self.captured.add(answer.get());
                serde_json::from_str(answer.get()).unwrap()
            }
            Err(error) => {
                self.captured.error(&error);
                let (kind, text) = diagnostic(error);
                self.captured.add(&format!("{kind}: {text}\n"));
                Value::Null
            }
        }
    }

    fn check(&self, proof: &[&str]) {
        check(&self.captured, proof);
    }
}

#[tokio::test]
async fn records_of_every_source_in_every_state() {
    let watched = Watched::new();
    let function = watched
        .idempotency()
        .function()
        .on(Sqs::new(), &Operation::new("a").key("id").fingerprint("note"), handle)
        .on(Sns::new(), &Operation::new("b").key("[id, n]"), handle)
        .on(EventBridge::new().key(record("detail.{id: id}")), &Operation::new("c"), handle)
        .build()
        .unwrap();
    for _ in 0..2 {
        let messages = bodies();
        let messages = messages.iter().enumerate();
        let event = batch(messages.map(|(at, body)| with_body(&format!("m-{at}"), body)));
        let answer = watched.call(&function, &event).await;
        assert!(!ids(&answer).is_empty());
        for body in bodies() {
            watched.call(&function, &notification("n-1", &body)).await;
            let detail = serde_json::from_str(&body).unwrap_or(Value::String(body));
            watched.call(&function, &bus_event("e-1", "Placed", &detail)).await;
        }
    }
    let other = body("").replace("\"note\":\"s3cr3t\"", "\"note\":\"another s3cr3t\"");
    watched.call(&function, &batch([with_body("m-1", &other)])).await;
    watched.call(&function, &json!({ "secret": SECRET })).await;
    watched.call(&function, &json!(SECRET)).await;
    watched.check(&[
        "executed",
        "replayed",
        "failed with",
        "Refused",
        "permanently_failed",
        "rejected",
        "fingerprint",
        "mismatch",
        "UnknownEvent",
        "sns record n-1",
        "key_hash=",
    ]);
}

/// Applications can choose some ids of records: those of brokers always, those of EventBridge and
/// Scheduler if a transformer or a direct invocation wrote the event.
#[tokio::test]
async fn ids_that_applications_choose() {
    let watched = Watched::new();
    let function = watched
        .idempotency()
        .function()
        .on(ActiveMq::new(), &Operation::new("a"), handle)
        .on(RabbitMq::new(), &Operation::new("b"), handle)
        .on(EventBridge::new(), &Operation::new("c"), handle)
        .on(Scheduler::new(), &Operation::new("d"), handle)
        .on(Pipe::of(Sqs::new()), &Operation::new("e"), handle)
        .build()
        .unwrap();
    for action in ["", "message", "panic"] {
        let body = json!({ "id": action, "n": 1, "action": action });
        let id = format!("{SECRET}-{action}");
        let active = of_active_mq(&id, body.to_string());
        let rabbit = of_rabbit_mq(&*id, body.to_string());
        let mut piped = rabbit.clone();
        piped["eventSource"] = "aws:rmq".into();
        piped["eventSourceArn"] = BROKER.into();
        piped["eventSourceKey"] = "orders::/".into();
        let mut scheduled = body.clone();
        scheduled["scheduleArn"] = "arn:aws:scheduler:eu-west-1:1:schedule/default/nightly".into();
        scheduled["scheduledTime"] = id.clone().into();
        for event in [
            active_mq([active]),
            rabbit_mq([rabbit]),
            bus_event(&id, "Placed", &body),
            scheduled,
            json!([piped]),
        ] {
            for _ in 0..2 {
                watched.call(&function, &event).await;
            }
        }
    }
    watched.check(&[
        "executed",
        "replayed",
        "RecordsReturned",
        "activemq record #",
        "rabbitmq record #",
        "eventbridge record #",
        "scheduler record #",
        "record=\"#",
    ]);
}

/// Ids from AWS are shown unchanged, so that they can be found in other logs.
#[tokio::test]
async fn ids_of_aws_are_shown() {
    let watched = Watched::new();
    let function = watched
        .idempotency()
        .function()
        .on(EventBridge::new(), &Operation::new("c").key("id"), handle)
        .on(Scheduler::new(), &Operation::new("d").key("id"), handle)
        .build()
        .unwrap();
    let (id, time) = ("17793124-05d4-b198-2fde-7ededc63b103", "2026-01-01T00:00:00Z");
    let body = json!({ "id": "a", "n": 1, "action": "message" });
    watched.call(&function, &bus_event(id, "Placed", &body)).await;
    let mut scheduled = body.clone();
    scheduled["scheduleArn"] = "arn:aws:scheduler:eu-west-1:1:schedule/default/nightly".into();
    scheduled["scheduledTime"] = time.into();
    watched.call(&function, &scheduled).await;
    let (event, run) = (format!("eventbridge record {id}"), format!("scheduler record {time}"));
    watched.check(&[&event, &run]);
}

/// Readers of the log who do not know the secret cannot find an id by trying values.
#[tokio::test]
async fn hashes_of_ids_use_the_secret_for_keys() {
    let hashes = async |operation: Operation| {
        let watched = Watched::new();
        let function = watched.idempotency().on(RabbitMq::new(), &operation, handle).unwrap();
        let body = json!({ "id": "a", "n": 1, "action": "message" }).to_string();
        watched.call(&function, &rabbit_mq([of_rabbit_mq(SECRET, body)])).await;
        watched.check(&["rabbitmq record #"]);
        let text = watched.captured.text();
        text.split("rabbitmq record #").nth(1).unwrap()[..12].to_owned()
    };
    let plain = hashes(Operation::new("a")).await;
    assert_eq!(plain, hashes(Operation::new("b")).await, "one record, one hash");
    let secret = hashes(Operation::new("a").key_format(KeyFormat::secret([7; 32]).unwrap())).await;
    let other = hashes(Operation::new("a").key_format(KeyFormat::secret([8; 32]).unwrap())).await;
    assert!(plain != secret && secret != other);
}

/// Only the program's panic hook gets the message of a panic.
#[tokio::test]
async fn panics() {
    let watched = Watched::new();
    let idempotency = watched.idempotency();
    let sqs = idempotency.on(Sqs::new(), &Operation::new("a").key("id"), handle).unwrap();
    watched.call(&sqs, &batch([with_body("m-1", &body("panic"))])).await;
    let sns = idempotency.on(Sns::new(), &Operation::new("b").key("id"), handle).unwrap();
    watched.call(&sns, &notification("n-1", &body("panic"))).await;
    watched.check(&["a panic"]);
}

#[tokio::test]
async fn policies_for_missing_keys() {
    let watched = Watched::new();
    for policy in [OnMissingKey::Return, OnMissingKey::RunUnprotected] {
        let operation = Operation::new("a").key("nowhere").on_missing_key(policy);
        let sqs = watched.idempotency().on(Sqs::new(), &operation, handle).unwrap();
        for action in ["", "error"] {
            watched.call(&sqs, &batch([with_body("m-1", &body(action))])).await;
        }
    }
    watched.check(&["rejected", "unprotected"]);
}

#[tokio::test]
async fn records_with_the_keys_of_another_library() {
    let watched = Watched::new();
    for powertools in [PowertoolsKeys::python("p"), PowertoolsKeys::typescript("t")] {
        let operation =
            Operation::new("a").key("[id, n]").fingerprint("note").powertools(powertools);
        let sqs = watched.idempotency().on(Sqs::new(), &operation, handle).unwrap();
        let lossy = format!("{{\"id\": [\"{SECRET}\", 0.1000000000000000055], \"n\": 1}}");
        let bodies: Vec<String> = bodies().into_iter().chain([lossy]).collect();
        for _ in 0..2 {
            let messages = bodies.iter().enumerate();
            let event = batch(messages.map(|(at, body)| with_body(&format!("m-{at}"), body)));
            watched.call(&sqs, &event).await;
        }
        let other = body("").replace("\"note\":\"s3cr3t\"", "\"note\":\"another s3cr3t\"");
        watched.call(&sqs, &batch([with_body("m-1", &other)])).await;
    }
    watched.check(&["executed", "replayed", "failed", "rejected", "mismatch", "accept_collisions"]);
}

#[tokio::test]
async fn a_store_that_fails() {
    let watched = Watched::new();
    let sqs = watched.idempotency().on(Sqs::new(), &Operation::new("a").key("id"), handle).unwrap();
    let event = batch([with_body("m-1", &body(""))]);
    watched.world.store.outage();
    watched.call(&sqs, &event).await;
    watched.world.store.heal();
    watched
        .world
        .store
        .inject(Fault::refuse(StoreErrorKind::Corrupt).guarded_by(GuardKind::OwnedBy));
    watched.call(&sqs, &event).await;
    watched.call(&sqs, &event).await;
    watched.check(&["unavailable", "completion_lost", "busy", "RecordsReturned"]);
}

#[tokio::test]
async fn results_of_any_size() {
    let watched = Watched::new();
    let (idempotency, captured) = (watched.idempotency(), &watched.captured);
    let operation = Operation::new("charge").key("id").fingerprint("note");
    for (id, size) in [("small", 1), ("large", 100_000)] {
        for (round, note) in [SECRET, SECRET, "another s3cr3t"].into_iter().enumerate() {
            let payload = json!({ "id": format!("{SECRET}-{id}"), "note": note });
            let result = SECRET.repeat(size);
            let charge = |call: Call| {
                captured.add(&format!("{call:?}"));
                async { Ok(result) }
            };
            match watched.world.call(&idempotency, &operation, &payload, charge).await {
                Ok(run) => assert_eq!(run.replayed, round > 0),
                Err(error) => captured.error(&error),
            }
        }
    }
    let payload = json!({ "id": format!("{SECRET}-small"), "note": SECRET });
    let typed = watched.world.run(&idempotency, &operation, &payload, 1).await;
    captured.error(&typed.unwrap_err());
    watched.check(&["TooLarge", "replayed", "not kept", "another type", "another payload"]);
}

#[test]
#[should_panic(expected = "left: Some")]
fn a_leak_is_found() {
    let captured = Captured::default();
    let guard = captured.start();
    tracing::trace!(note = SECRET, "at the lowest level");
    drop(guard);
    check(&captured, &["at the lowest level"]);
}
