//! A world for tests: one store, one clock, handlers that follow their payload, and events.

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency::{
    Call, Failure, Function, Idempotency, MemoryStore, Operation, Run, RunContext, RunError,
    clock::Timestamp,
    error::InvocationError,
    handler::{Handler, HandlerResult, Payload},
    source::{Source, Sources},
};
use lambda_idempotency_core::clock::{BoxFuture, Clock as _};
use lambda_idempotency_testkit::{clock::ManualClock, faults::FaultyStore, ledger::Ledger};
use lambda_runtime::{Context, LambdaEvent};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use tower_service::Service;

pub(crate) const QUEUE: &str = "arn:aws:sqs:eu-west-1:111122223333:orders";
pub(crate) const FIFO: &str = "arn:aws:sqs:eu-west-1:111122223333:orders.fifo";
pub(crate) const TOPIC: &str = "arn:aws:sns:eu-west-1:111122223333:orders";

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: FaultyStore<MemoryStore>,
    pub(crate) ledger: Ledger,
}

impl World {
    /// A world whose store takes time, as all do: what happens meanwhile would stay hidden.
    pub(crate) fn new() -> Self {
        let mut world = Self::instant();
        world.store = world.store.taking(world.clock.clone(), Duration::from_millis(8));
        world
    }

    /// A world whose store answers at once, for tests that do not drive the clock, or that count instants or polls.
    pub(crate) fn instant() -> Self {
        Self {
            clock: ManualClock::new(Timestamp::from_secs(1_700_000_000)),
            store: FaultyStore::new(MemoryStore::new()),
            ledger: Ledger::new(),
        }
    }

    pub(crate) fn idempotency(&self) -> Idempotency {
        Idempotency::new(self.store.clone()).with_clock(self.clock.clone()).without_log()
    }

    /// A handler that does what the payload's `do` says, and notes the `id` if it succeeds.
    pub(crate) fn handler(
        &self,
    ) -> impl Fn(Value, Call) -> BoxFuture<'static, Result<(), Failure>>
    + AsyncFn(Value, Call) -> Result<(), Failure>
    + Clone
    + Send
    + Sync
    + 'static {
        let world = self.clone();
        move |payload, call| {
            let world = world.clone();
            Box::pin(async move {
                let id = payload["id"].as_str().unwrap_or("nobody").to_owned();
                match payload["do"].as_str() {
                    Some("fail") => return Err(Failure::transient(format!("{id} has no luck"))),
                    Some("give up") => return Err(Failure::permanent("never again")),
                    Some("panic") => panic!("{id} panics"),
                    Some(sleep) if sleep.starts_with("sleep") => {
                        let seconds = sleep.rsplit(' ').next().and_then(|it| it.parse().ok());
                        world.clock.sleep(Duration::from_secs(seconds.unwrap_or(3600))).await;
                    }
                    Some("fail once") if call.failed_attempts() == 0 => {
                        return Err("not yet".into());
                    }
                    _ => {}
                }
                world.ledger.record(id, call.failed_attempts());
                Ok(())
            })
        }
    }

    /// A function of one source with that handler.
    pub(crate) fn on(&self, source: impl Sources, operation: &Operation) -> Function {
        self.with_handler(source, operation, self.handler())
    }

    /// A function of two sources with that handler.
    pub(crate) fn on_both(
        &self,
        one: (impl Source, Operation),
        other: (impl Source, Operation),
    ) -> Function {
        let function = self.idempotency().function().on(one.0, &one.1, self.handler());
        function.on(other.0, &other.1, self.handler()).build().unwrap()
    }

    pub(crate) fn with_handler<T: Payload, R: HandlerResult>(
        &self,
        source: impl Sources,
        operation: &Operation,
        handler: impl Handler<T, R>,
    ) -> Function {
        self.idempotency().on(source, operation, handler).unwrap()
    }

    /// Calls a function that returns `value`, without a deadline.
    pub(crate) async fn run(
        &self,
        idempotency: &Idempotency,
        operation: &Operation,
        payload: &Value,
        value: u32,
    ) -> Result<Run<u32>, RunError> {
        self.call(idempotency, operation, payload, async |_| Ok(value)).await
    }

    /// Calls a function without a deadline, in simulated time.
    pub(crate) async fn call<P, R, F, Fut>(
        &self,
        idempotency: &Idempotency,
        operation: &Operation,
        payload: &P,
        function: F,
    ) -> Result<Run<R>, RunError>
    where
        P: Serialize + ?Sized,
        R: Serialize + DeserializeOwned + Send,
        F: FnOnce(Call) -> Fut + Send,
        Fut: Future<Output = Result<R, Failure>> + Send,
    {
        let context = RunContext::without_deadline();
        self.clock.drive(idempotency.run(operation, payload, &context, function)).await
    }
    /// A handler of text, which notes the text.
    pub(crate) fn text_handler(&self) -> impl Handler<String, Result<(), Failure>> {
        let ledger = self.ledger.clone();
        async move |text: String, _: Call| {
            ledger.record(text, "");
            Ok(())
        }
    }

    /// A handler of any JSON, which notes the JSON text.
    pub(crate) fn raw_handler(&self) -> impl Handler<Box<RawValue>, Result<(), Failure>> {
        let ledger = self.ledger.clone();
        async move |json: Box<RawValue>, _: Call| {
            ledger.record(json.get(), "");
            Ok(())
        }
    }

    /// A context whose invocation ends in 30 seconds.
    pub(crate) fn context(&self) -> Context {
        let mut context = Context::default();
        context.request_id = "request-1".to_owned();
        context.deadline = self.clock.now().plus(Duration::from_secs(30)).as_millis();
        context
    }

    /// Invokes the function with an event as Lambda does, in simulated time.
    pub(crate) async fn invoke_raw(
        &self,
        function: &Function,
        event: &str,
    ) -> Result<Value, InvocationError> {
        let answer = self.clock.drive(serve(function.clone(), event, self.context())).await?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    pub(crate) async fn invoke(
        &self,
        function: &Function,
        event: &Value,
    ) -> Result<Value, InvocationError> {
        self.invoke_raw(function, &event.to_string()).await
    }

    /// The text of the error of an invocation, whose type is this one.
    pub(crate) async fn fails(&self, function: &Function, event: &Value, kind: &str) -> String {
        let (found, text) = diagnostic(self.invoke(function, event).await.unwrap_err());
        assert_eq!(found, format!("Idempotency.{kind}"), "{event}");
        text
    }

    /// The ids of the messages that an SQS function returns.
    pub(crate) async fn returned(&self, function: &Function, event: &Value) -> Vec<String> {
        ids(&self.invoke(function, event).await.unwrap())
    }
}

/// Adds every source but direct invocations to a function: with these settings, and an operation of its name.
macro_rules! every_source {
    ($function:expr, $operation:expr, $handler:expr, |$source:ident| $set:expr) => {{
        let (mut function, operation, handler) = ($function, $operation, $handler);
        every_source!(@ function operation handler |$source| $set;
            "sqs" Sqs, "sns" Sns, "s3" S3, "kinesis" Kinesis, "dynamodb" DynamoDbStream, "documentdb" DocumentDb,
            "kafka" Kafka, "activemq" ActiveMq, "rabbitmq" RabbitMq, "eventbridge" EventBridge, "scheduler" Scheduler);
        every_source!(@ function operation handler |$source| lambda_idempotency::source::Pipe::of($set);
            "pipe" Sqs, "pipe-kinesis" Kinesis, "pipe-changes" DynamoDbStream);
        function
    }};
    (@ $function:ident $operation:ident $handler:ident |$source:ident| $whole:expr; $($name:literal $type:ident),*) => {$(
        let $source = lambda_idempotency::source::$type::new();
        let source = $whole;
        $function = $function.on(source, &$operation($name), $handler.clone());
    )*};
}
pub(crate) use every_source;

/// The operation of most tests.
pub(crate) fn place() -> Operation {
    Operation::new("place").key("id")
}

/// What handlers noted, in the order of their calls.
pub(crate) struct Noted<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Noted<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Noted<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// A handler that notes what `read` makes of a payload and its call.
    pub(crate) fn handler<P: Payload>(
        &self,
        read: impl Fn(P, Call) -> T + Clone + Send + Sync + 'static,
    ) -> impl Handler<P, Result<(), Failure>> {
        let noted = self.clone();
        async move |payload: P, call: Call| {
            noted.add(read(payload, call));
            Ok(())
        }
    }

    /// A handler that notes its payloads.
    pub(crate) fn payloads(&self) -> impl Handler<T, Result<(), Failure>>
    where
        T: Payload,
    {
        self.handler(|payload, _| payload)
    }

    pub(crate) fn add(&self, what: T) {
        self.0.lock().unwrap().push(what);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A handler that does nothing.
pub(crate) async fn nothing(_: Value, _: Call) -> Result<(), Failure> {
    Ok(())
}

/// A result that cannot be serialized, or panics then.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Unserializable(pub(crate) bool);

impl Serialize for Unserializable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0, "deliberate");
        Err(serde::ser::Error::custom("s3cr3t"))
    }
}

/// Calls a service as the runtime does: after it is ready.
pub(crate) async fn serve<S>(
    mut service: S,
    event: &str,
    context: Context,
) -> Result<S::Response, S::Error>
where
    S: Service<LambdaEvent<Box<RawValue>>>,
{
    std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
    let payload = RawValue::from_string(event.to_owned()).unwrap();
    service.call(LambdaEvent::new(payload, context)).await
}

pub(crate) fn ids(answer: &Value) -> Vec<String> {
    let members = answer.as_object().unwrap();
    assert_eq!(members.len(), 1, "{answer}");
    let failures = members["batchItemFailures"].as_array().unwrap();
    failures
        .iter()
        .map(|failure| {
            assert_eq!(failure.as_object().unwrap().len(), 1, "{answer}");
            failure["itemIdentifier"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// The type and the text of an error, as Lambda gets them.
pub(crate) fn diagnostic(error: InvocationError) -> (String, String) {
    let lambda_runtime::Diagnostic { error_type, error_message } = error.into();
    (error_type, error_message)
}

/// A message whose body is an order with this id; the handler does `action`.
pub(crate) fn order(message: &str, id: &str, action: &str) -> Value {
    with_body(message, &json!({ "id": id, "do": action }).to_string())
}

pub(crate) fn with_body(message: &str, body: &str) -> Value {
    json!({
        "messageId": message,
        "receiptHandle": "AQEB",
        "body": body,
        "attributes": { "ApproximateReceiveCount": "1" },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE,
        "awsRegion": "eu-west-1",
    })
}

/// The same message, from another queue and in a group.
pub(crate) fn grouped(mut message: Value, queue: &str, group: &str) -> Value {
    message["eventSourceARN"] = queue.into();
    message["attributes"]["MessageGroupId"] = group.into();
    message
}

pub(crate) fn without(mut record: Value, member: &str) -> Value {
    record.as_object_mut().unwrap().remove(member);
    record
}

pub(crate) fn batch(records: impl IntoIterator<Item = Value>) -> Value {
    json!({ "Records": records.into_iter().collect::<Vec<_>>() })
}

pub(crate) fn notification(id: &str, message: &str) -> Value {
    batch([json!({
        "EventVersion": "1.0",
        "EventSource": "aws:sns",
        "EventSubscriptionArn": format!("{TOPIC}:1"),
        "Sns": { "MessageId": id, "TopicArn": TOPIC, "Message": message, "Type": "Notification" },
    })])
}

/// An id in the format of EventBridge.
pub(crate) fn event_id(number: &str) -> String {
    format!("17793124-05d4-b198-2fde-{number:0>12}")
}

/// An event of a bus. Errors contain its id only if it has the format of EventBridge: see
/// [`event_id`].
pub(crate) fn bus_event(id: &str, detail_type: &str, detail: &Value) -> Value {
    json!({
        "version": "0", "id": id, "detail-type": detail_type, "source": "shop",
        "account": "111122223333", "region": "eu-west-1", "time": "2026-01-01T00:00:00Z",
        "resources": [], "detail": detail,
    })
}

/// A sample event from AWS.
pub(crate) fn sample(name: &str) -> String {
    let path = format!("{}/tests/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Runs tests that are ignored here in a process of their own, because all tests of this process share its environment.
#[track_caller]
pub(crate) fn in_child(tests: &str, number: usize, set: impl FnOnce(&mut Command)) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([tests, "--ignored", "--test-threads=1"]);
    for variable in [
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "IDEMPOTENCY_APPLICATION",
        "IDEMPOTENCY_DISABLED",
        "IDEMPOTENCY_LOG_ERROR_MESSAGES",
        "IDEMPOTENCY_REPORT_EFFECTS",
    ] {
        child.env_remove(variable);
    }
    set(&mut child);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = text.contains(&format!("{number} passed"));
    assert!(output.status.success() && passed, "{child:?}: {text}");
}
