//! Each call of a handler has a span, which distinguishes its log lines from those of other calls.

use std::time::Duration;

use lambda_idempotency::{
    Call, Failure, Function, Idempotency, Operation,
    handler::Handler,
    source::{EventBridge, Invoke, Kinesis, Pipe, Sns, Sqs, TraceContext},
};
use lambda_idempotency_core::clock::Clock as _;
use serde_json::{Value, json};

use crate::{
    secrecy::capture::Captured,
    support::{QUEUE, World, batch, bus_event, event_id, notification, order, sample, serve},
};

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const X_RAY: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
const X_RAY_AS_W3C: &str = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";

/// Notes that a handler's future is dropped.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        tracing::info!("dropped");
    }
}

/// A handler that logs twice, and lets others run in between.
async fn log(world: &World, id: &str) -> Result<(), Failure> {
    let _dropped = Dropped;
    tracing::info!(id, "before");
    let pause = if id == "never" { 3600 } else { 1 };
    world.clock.sleep(Duration::from_secs(pause)).await;
    tracing::info!(id, "after");
    if id == "fails" { Err(Failure::transient("no luck")) } else { Ok(()) }
}

fn handler(world: &World) -> impl Handler<Value, Result<(), Failure>> {
    let world = world.clone();
    async move |payload: Value, call: Call| {
        tracing::info!(traced = call.trace_context().map(|found| found.traceparent()), "called");
        log(&world, payload["id"].as_str().unwrap_or_default()).await
    }
}
/// The lines that are logged meanwhile.
async fn lines(logging: impl Future<Output = ()>) -> Vec<Value> {
    let captured = Captured::default();
    let guard = captured.start_as_lambda_does();
    logging.await;
    drop(guard);
    captured.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The line of a handler with this message.
fn line<'l>(lines: &'l [Value], message: &str) -> &'l Value {
    let found = lines.iter().find(|line| line["fields"]["message"] == message);
    found.unwrap_or_else(|| panic!("no line {message} in {lines:#?}"))
}

#[tokio::test]
async fn lines_of_concurrent_handlers_say_which_record_they_are_of() {
    let world = World::new();
    let place = Operation::new("place").key("id");
    let function = world.with_handler(Sqs::new(), &place, handler(&world));
    let orders = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    let lines = lines(async {
        world.invoke(&function, &orders).await.unwrap();
    })
    .await;
    let of = |id: &str| -> Vec<(&Value, &Value)> {
        let lines = lines.iter().filter(|line| line["fields"]["id"] == id);
        lines.map(|line| (&line["fields"]["message"], &line["span"])).collect()
    };
    for (id, message) in [("a", "m-1"), ("b", "m-2")] {
        let [(first, before), (second, after)] = of(id).try_into().unwrap();
        assert_eq!((first, second), (&json!("before"), &json!("after")));
        assert_eq!(before, after);
        assert_eq!(before["record"], message, "{id}");
    }
    let order: Vec<&Value> = lines.iter().map(|line| &line["fields"]["id"]).collect();
    let begin = order.iter().position(|id| **id == "b").unwrap();
    let end = order.iter().rposition(|id| **id == "a").unwrap();
    assert!(begin < end, "the handlers ran one after the other: {lines:#?}");
    let key_hashes = [of("a")[0].1, of("b")[0].1].map(|span| span["key_hash"].as_str().unwrap());
    assert_eq!(key_hashes.map(str::len), [64, 64]);
    assert_ne!(key_hashes[0], key_hashes[1]);
}

/// The span of a handler that fails for the second time, without its key hash.
async fn span_of_a_failure(world: &World, idempotency: &Idempotency) -> Value {
    let function =
        idempotency.on(Sqs::new(), &Operation::new("place").key("id"), handler(world)).unwrap();
    let orders = batch([order("m-1", "fails", "")]);
    let lines = lines(async {
        for _ in 0..2 {
            world.invoke(&function, &orders).await.unwrap();
        }
    })
    .await;
    let second = lines.iter().rfind(|line| line["fields"]["message"] == "after").unwrap();
    let mut span = second["span"].clone();
    assert_eq!(span["key_hash"].take().as_str().unwrap().len(), 64);
    span
}

#[tokio::test]
async fn a_span_has_the_fields_of_the_log_line_that_name_the_record() {
    let world = World::new();
    assert_eq!(
        span_of_a_failure(&world, &world.idempotency()).await,
        json!({
            "name": "handler", "source": "sqs", "record": "m-1", "operation": "place",
            "key_hash": null, "failed_attempts": 1,
        })
    );
}

#[tokio::test]
async fn a_span_has_the_fields_of_opentelemetry_if_they_are_asked_for() {
    let world = World::new();
    let idempotency = world.idempotency().with_opentelemetry_fields();
    let destination = QUEUE.rsplit(':').next().unwrap();
    assert_eq!(
        span_of_a_failure(&world, &idempotency).await,
        json!({
            "name": "handler", "source": "sqs", "record": "m-1", "operation": "place",
            "key_hash": null, "failed_attempts": 1,
            "otel.name": format!("process {destination}"), "otel.kind": "consumer",
            "messaging.system": "aws_sqs", "messaging.operation.name": "process",
            "messaging.operation.type": "process", "messaging.destination.name": destination,
            "messaging.message.id": "m-1",
        })
    );
}

#[tokio::test]
async fn a_handler_that_is_stopped_is_dropped_in_its_span() {
    let world = World::new();
    let place = Operation::new("place").key("id");
    let idempotency = world.idempotency().with_opentelemetry_fields();
    let function = idempotency.on(Sqs::new(), &place, handler(&world)).unwrap();
    let lines = lines(async {
        world.invoke(&function, &batch([order("m-1", "never", "")])).await.unwrap();
    })
    .await;
    let span = &line(&lines, "dropped")["span"];
    assert_eq!((&span["record"], &span["error.type"]), (&json!("m-1"), &json!("stopped")));
}

#[tokio::test]
async fn direct_invocations_and_calls_of_run_have_a_span() {
    let world = World::new();
    let idempotency = world.idempotency().with_opentelemetry_fields();
    let (of_event, of_run) = (world.clone(), world.clone());
    let charge = async move |_: Value, _: Call| log(&of_event, "a").await;
    let charging = Operation::new("charge").key("id");
    let service = idempotency.on(Invoke::new(), &charging, charge).unwrap();
    let operation = Operation::new("refund").key("id");
    for (name, source, found) in [
        (
            "charge",
            "invoke",
            lines(async {
                world.clock.drive(serve(service, r#"{"id":"a"}"#, traced(&world))).await.unwrap();
            })
            .await,
        ),
        (
            "refund",
            "run",
            lines(async {
                let context = traced(&world);
                let payload = json!({ "id": "a" });
                let refund = |_| async move { log(&of_run, "a").await };
                let run = idempotency.run(&operation, &payload, &context, refund);
                world.clock.drive(run).await.unwrap();
            })
            .await,
        ),
    ] {
        let span = &line(&found, "after")["span"];
        assert_eq!((&span["operation"], &span["source"]), (&json!(name), &json!(source)));
        assert_eq!((&span["otel.name"], &span["otel.kind"]), (&json!(name), &json!("internal")));
        assert_eq!(span["trace.parent"], X_RAY_AS_W3C);
        assert_eq!(span["messaging.system"], Value::Null);
    }
}

/// A context of an invocation that X-Ray traces.
fn traced(world: &World) -> lambda_runtime::Context {
    let mut context = world.context();
    context.xray_trace_id = Some(X_RAY.to_owned());
    context
}

/// The trace in which a handler finds its record, in an invocation that X-Ray traces. It is the one in its span.
async fn trace(
    event: &Value,
    function: impl Fn(&Idempotency, Operation, &World) -> Function,
) -> Option<String> {
    let world = World::new();
    let idempotency = world.idempotency().with_opentelemetry_fields();
    let function = function(&idempotency, Operation::new("a"), &world);
    let event = event.to_string();
    let lines = lines(async {
        world.clock.drive(serve(function, &event, traced(&world))).await.unwrap();
    })
    .await;
    let line = line(&lines, "called");
    let (call, span) = (line["fields"]["traced"].as_str(), line["span"]["trace.parent"].as_str());
    assert_eq!(call, span, "{line}");
    call.map(str::to_owned)
}

macro_rules! trace {
    ($event:expr, $source:expr) => {
        trace($event, |idempotency, operation, world| {
            idempotency.on($source, &operation, handler(world)).unwrap()
        })
        .await
        .as_deref()
    };
}

#[tokio::test]
async fn the_trace_of_a_message_is_that_of_its_sender() {
    let plain = order("m-1", "a", "");
    assert_eq!(
        trace!(&batch([plain.clone()]), Sqs::new()),
        None,
        "the invocation is that of a poller"
    );
    let mut traced = plain;
    traced["attributes"]["AWSTraceHeader"] = X_RAY.into();
    assert_eq!(trace!(&batch([traced.clone()]), Sqs::new()), Some(X_RAY_AS_W3C));
    assert_eq!(trace!(&json!([traced.clone()]), Pipe::of(Sqs::new())), Some(X_RAY_AS_W3C));
    let attribute = |text: &str| json!({ "dataType": "String", "stringValue": text });
    traced["messageAttributes"]["traceparent"] = attribute("no trace");
    assert_eq!(trace!(&batch([traced.clone()]), Sqs::new()), Some(X_RAY_AS_W3C));
    traced["messageAttributes"]["traceparent"] = attribute(TRACEPARENT);
    assert_eq!(trace!(&batch([traced]), Sqs::new()), Some(TRACEPARENT));
}

#[tokio::test]
async fn the_trace_of_an_invocation_is_that_of_the_record_that_caused_it() {
    let mut notification = notification("n-1", r#"{"id":"a"}"#);
    assert_eq!(trace!(&notification, Sns::new()), Some(X_RAY_AS_W3C));
    let attribute = json!({ "Type": "String", "Value": TRACEPARENT });
    notification["Records"][0]["Sns"]["MessageAttributes"] = json!({ "traceparent": attribute });
    assert_eq!(trace!(&notification, Sns::new()), Some(TRACEPARENT));
    let event = |number: &str| bus_event(&event_id(number), "Placed", &json!({ "id": "a" }));
    assert_eq!(trace!(&event("1"), EventBridge::new()), Some(X_RAY_AS_W3C));
    // Each of a list has a trace of its own, which AWS does not hand on.
    assert_eq!(trace!(&json!([event("1"), event("2")]), EventBridge::new()), None);
    assert_eq!(trace!(&json!({ "id": "a" }), Invoke::by_request_id()), Some(X_RAY_AS_W3C));
    let stream: Value = serde_json::from_str(&sample("kinesisStreamEvent")).unwrap();
    let handler = |idempotency: &Idempotency, operation: Operation, world: &World| {
        let world = world.clone();
        let handler = move |_: String, call: Call| {
            let _ = &world;
            tracing::info!(
                traced = call.trace_context().map(|found| found.traceparent()),
                "called"
            );
            std::future::ready(Ok::<_, Failure>(()))
        };
        idempotency.on(Kinesis::new(), &operation, handler).unwrap()
    };
    assert_eq!(trace(&stream, handler).await, None);
}

#[tokio::test]
async fn a_test_sets_the_trace_of_a_call() {
    let context = TraceContext::parse(TRACEPARENT).unwrap();
    let call = Call::test("o-1").with_trace_context(context);
    assert_eq!(call.trace_context(), Some(context));
    assert_eq!(Call::test("o-1").trace_context(), None);
    let call = Call::test("o-1").with_attribute("traceparent", TRACEPARENT);
    assert_eq!(call.trace_context(), Some(context));
}
