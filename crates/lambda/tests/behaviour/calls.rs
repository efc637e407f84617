//! A handler gets the record, the invocation and the results of earlier steps from its `Call`, beside the decoded payload.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use lambda_idempotency::{
    Call, CallExt as _, Failure, Function, Idempotency, Operation, RunContext, RunError,
    error::{InvocationError, StepError},
    source::{ActiveMq, Envelope, Invoke, Kafka, Pipe, RabbitMq, RecordError, Sns, Sqs},
    testing,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Noted, World, batch, notification, order, sample};

fn sent(message: &str, id: &str, receives: &str) -> Value {
    let mut message = order(message, id, "");
    message["attributes"]["ApproximateReceiveCount"] = receives.into();
    message["messageAttributes"] = json!({
        "tenant": { "dataType": "String", "stringValue": "acme \u{e9} \"x\"" },
        "size": { "dataType": "Number", "stringValue": "12" },
        "digest": { "dataType": "Binary", "binaryValue": "AAEC" },
    });
    message
}

#[tokio::test]
async fn a_handler_of_a_payload_can_read_the_record() {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Message<'m> {
        message_id: &'m str,
    }

    let (world, noted) = (World::new(), Noted::new());
    let handler = noted.handler(|payload: Value, call| {
        let message: Message<'_> = call.record_as().unwrap();
        let attributes = ["tenant", "size", "digest", "none"].map(|name| call.attribute(name));
        let context = call.context().unwrap();
        format!(
            "{} {} {:?} {:?} {attributes:?} {}",
            payload["id"],
            message.message_id,
            call.receives(),
            call.request_id(),
            context.deadline > 0
        )
    });
    // The key expression reads the decoded body, although the handler reads the message.
    let function = world.with_handler(Sqs::new(), &Operation::new("a").key("id"), handler);
    let event = batch([sent("m-1", "a", "3"), sent("m-2", "a", "1")]);
    assert!(world.returned(&function, &event).await.is_empty());
    let attributes = r#"[Some("acme é \"x\""), Some("12"), Some("AAEC"), None]"#;
    let wanted = format!("\"a\" m-1 Some(3) Some(\"request-1\") {attributes} true");
    assert_eq!(noted.take(), [wanted]);
}

#[tokio::test]
async fn the_raw_record_is_a_part_of_the_event_and_not_a_copy() {
    let (world, noted) = (World::new(), Noted::new());
    let handler = noted.handler(|_: Value, call| {
        let raw = call.raw_record().unwrap();
        format!("{} {raw}", raw.as_ptr().addr())
    });
    let function = world.with_handler(Sqs::new(), &Operation::new("a").key("id"), handler);
    let messages = [sent("m-1", "a", "1"), sent("m-2", "b", "1")];
    let texts = messages.clone().map(|message| message.to_string());
    let event = batch(messages).to_string();
    world.invoke_raw(&function, &event).await.unwrap();
    let noted = noted.take();
    let places: Vec<(usize, &str)> = noted
        .iter()
        .map(|noted| noted.split_once(' ').unwrap())
        .map(|(place, text)| (place.parse().unwrap(), text))
        .collect();
    assert_eq!(places.iter().map(|(_, text)| *text).collect::<Vec<_>>(), texts);
    let between = event.find(&texts[1]).unwrap() - event.find(&texts[0]).unwrap();
    assert_eq!(places[1].0 - places[0].0, between, "both are parts of one event");
}

/// What the handler of a function notes for an event.
async fn noted_by(
    event: &str,
    function: impl Fn(&World, Operation, Noted<String>) -> Function,
) -> Vec<String> {
    let (world, noted) = (World::new(), Noted::new());
    let operation = Operation::new("a");
    let function = function(&world, operation, noted.clone());
    world.invoke_raw(&function, event).await.unwrap();
    noted.take()
}

/// What a function of one source notes for an attribute.
macro_rules! noted {
    ($event:expr, $name:literal, $source:expr $(, $envelope:expr)?) => {
        noted_by($event, |world, operation, noted| {
            let source = $source$(.envelope($envelope))?;
            let handler = noted.handler(|_: Value, call| format!("{:?}", call.attribute($name)));
            world.with_handler(source, &operation, handler)
        })
        .await
    };
}

#[tokio::test]
async fn each_source_has_its_own_attributes() {
    let mut published = notification("n-1", "{}");
    let attributes = json!({ "tenant": { "Type": "String", "Value": "acme" } });
    published["Records"][0]["Sns"]["MessageAttributes"] = attributes.clone();
    assert_eq!(noted!(&published.to_string(), "tenant", Sns::new()), [r#"Some("acme")"#]);
    assert_eq!(noted!(&published.to_string(), "other", Sns::new()), ["None"]);

    let piped = json!([sent("m-1", "a", "1")]).to_string();
    assert_eq!(noted!(&piped, "size", Pipe::of(Sqs::new())), [r#"Some("12")"#]);

    let kafka = r#"{"eventSource":"aws:kafka","bootstrapServers":"b","records":{"t-0":[{"topic":"t",
        "partition":0,"offset":1,"timestamp":1,"value":"e30=","headers":[{"tenant":[97,-61,-87]},
        {"twice":[49]},{"twice":[50]},{"bytes":[-1]}]}]}}"#;
    assert_eq!(noted!(kafka, "tenant", Kafka::new()), [r#"Some("aé")"#]);
    assert_eq!(noted!(kafka, "twice", Kafka::new()), [r#"Some("2")"#]);
    assert_eq!(noted!(kafka, "bytes", Kafka::new()), ["None"]);

    let rabbit = sample("rabbitMQEvent").replace(r#""messageId": null"#, r#""messageId": "m""#);
    assert_eq!(noted!(&rabbit, "header1", RabbitMq::new()), [r#"Some("value1")"#]);
    assert_eq!(noted!(&rabbit, "numberInHeader", RabbitMq::new()), [r#"Some("10")"#]);
    let active = r#"{"eventSource":"aws:amq","eventSourceArn":"b","messages":[{"messageID":"m",
        "destination":{"physicalName":"q"},"data":"e30=","properties":{"tenant":"acme","size":12}}]}"#;
    assert_eq!(noted!(active, "tenant", ActiveMq::new()), [r#"Some("acme")"#]);
    assert_eq!(noted!(active, "size", ActiveMq::new()), [r#"Some("12")"#]);
}

#[tokio::test]
async fn a_notification_in_an_envelope_has_the_attributes_of_its_publisher() {
    let body = json!({
        "MessageId": "n-1", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": "{}",
        "MessageAttributes": { "tenant": { "Type": "String", "Value": "acme" } },
    });
    let mut message = order("m-1", "a", "");
    message["body"] = body.to_string().into();
    let event = batch([message]).to_string();
    assert_eq!(noted!(&event, "tenant", Sqs::new(), Envelope::Sns), [r#"Some("acme")"#]);
    // Only if the operation names the envelope: envelopes are not guessed.
    assert_eq!(noted!(&event, "tenant", Sqs::new()), ["None"]);
}

#[tokio::test]
async fn sources_that_do_not_count_receives_return_none() {
    let (world, noted) = (World::new(), Noted::new());
    let handler = noted.handler(|_: Value, call| {
        format!("{:?} {:?} {:?}", call.receives(), call.attribute("a"), call.request_id())
    });
    let function = world.with_handler(Invoke::new(), &Operation::new("a").key("id"), handler);
    world.invoke(&function, &json!({ "id": "a" })).await.unwrap();
    assert_eq!(noted.take(), [r#"None None Some("request-1")"#]);
}

#[tokio::test]
async fn run_takes_the_invocation_from_its_context() {
    let world = World::new();
    let idempotency = world.idempotency();
    let operation = Operation::new("a").key("id");
    let noted = |call: Call| async move {
        let missing = call.record_as::<Value>().unwrap_err();
        assert_eq!(missing, RecordError::Missing);
        Ok::<_, Failure>(format!("{:?} {}", call.request_id(), call.context().is_some()))
    };
    let (a, b) = (json!({ "id": "a" }), json!({ "id": "b" }));
    let context = world.context();
    let running = idempotency.run(&operation, &a, &context, noted);
    let within = world.clock.drive(running).await.unwrap();
    assert_eq!(within.result, r#"Some("request-1") true"#);
    let running = idempotency.run(&operation, &b, &RunContext::without_deadline(), noted);
    assert_eq!(world.clock.drive(running).await.unwrap().result, "None false");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Payment {
    id: String,
    cents: u32,
}

/// Pays in a step, and fails after it the first time.
async fn pay(call: Call, payments: Arc<AtomicU32>) -> Result<Payment, Failure> {
    let payment = call
        .step("pay", |key| async move {
            payments.fetch_add(1, Ordering::Relaxed);
            assert_eq!(key.len(), 64);
            Ok(Payment { id: "p-1".to_owned(), cents: 7 })
        })
        .await?;
    if call.failed_attempts() == 0 { Err("not yet".into()) } else { Ok(payment) }
}

#[tokio::test]
async fn a_step_of_a_record_runs_once() {
    let (world, payments) = (World::new(), Arc::<AtomicU32>::default());
    let counted = Arc::clone(&payments);
    let handler = move |_: Value, call: Call| {
        let payments = Arc::clone(&counted);
        async move { pay(call, payments).await.map(drop) }
    };
    let place = Operation::new("place").key("id");
    let function = world.with_handler(Sqs::new(), &place, handler);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    for returned in [2, 0, 0] {
        let answer = world.clock.drive(testing::invoke(&function, &event)).await.unwrap();
        assert_eq!(answer["batchItemFailures"].as_array().unwrap().len(), returned);
    }
    assert_eq!(payments.load(Ordering::Relaxed), 2, "one for each record");
}

#[tokio::test]
async fn a_call_for_a_test_has_the_steps_of_an_earlier_attempt() {
    let payments = Arc::<AtomicU32>::default();
    let call = Call::test("o-1").with_failed_attempts(1);
    let known = call.clone().with_step("pay", json!({ "id": "p-0", "cents": 5 }));
    assert_eq!(pay(known, Arc::clone(&payments)).await.unwrap().id, "p-0");
    assert_eq!(payments.load(Ordering::Relaxed), 0);

    let other = Call::test("o-2").with_step("pay", "p-0");
    let error = pay(other, payments).await.unwrap_err();
    assert!(matches!(error.error().downcast_ref(), Some(StepError::Mismatch { .. })));
}

#[test]
fn public_types_are_clone_send_and_sync() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    fn error<T: std::error::Error + Clone + Send + Sync + 'static>() {}
    shared::<Function>();
    shared::<Idempotency>();
    shared::<Operation>();
    error::<InvocationError>();
    error::<RunError>();
    error::<lambda_idempotency::ConfigError>();
}

/// `run` can be awaited in a task of a multi-threaded runtime.
#[test]
fn run_is_send() {
    fn send<T: Send>(_: T) {}
    let idempotency = World::new().idempotency();
    let operation = Operation::new("a");
    send(idempotency.run(&operation, "payload", &RunContext::without_deadline(), |_| async {
        Ok::<_, Failure>(1)
    }));
}
