//! A canary in each place that an application fills is in no log line, metric, error or `Debug` text: each sample of AWS,
//! through each source, outcome, fault of the store, sink and recovery; and calls of `run`.

use lambda_idempotency::{
    Call, Failure, Function, Operation, RunContext,
    error::InvocationError,
    handler::keep_result,
    keys::{KeyFormat, inspect, powertools::PowertoolsKeys},
    observe::TracingObserver,
    policy::OnMissingKey,
    recovery::Recovery,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, EventBridge, Invoke, Kafka, Kinesis, Pipe, RabbitMq,
        S3, Scheduler, Sns, Sqs,
    },
};
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::{Value, json};

use crate::{
    secrecy::{
        planted::events,
        watch::{STORIES, Watch},
    },
    secrets_capture::{CANARY, Captured},
    support::{batch, diagnostic, order, serve},
};

/// Ways to make keys.
const WAYS: [fn(Operation) -> Operation; 7] = [
    |it| it,
    |it| it.fingerprint("note"),
    |it| it.key("mark").fingerprint("note").key_format(KeyFormat::Readable),
    |it| it.key("[mark]").powertools(PowertoolsKeys::python("p").accept_collisions()),
    |it| it.key("mark").powertools(PowertoolsKeys::typescript("t")),
    |it| it.key("nowhere"),
    |it| it.key("nowhere").on_missing_key(OnMissingKey::RunUnprotected),
];

impl Watch {
    fn function(&self, way: fn(Operation) -> Operation, log: TracingObserver) -> Function {
        let (this, sink, hook) = (self.clone(), self.sink(), self.hook());
        let handler = keep_result(move |payload: Value, call: Call| {
            let this = this.clone();
            async move { this.handle(payload, call).await }
        });
        let mut function = self.idempotency(log).function();
        // Direct invocations need a key in the payload. Without one, no record has room to be kept.
        let is_direct = way(Operation::new("invoke")).producer().is_ok();
        let room = if is_direct { 64 * 1024 } else { 9 };
        macro_rules! on {
            ($($name:literal $source:ident),*) => {$(
                let operation = way(Operation::new($name));
                let source = || $source::new().recoverable(room);
                let watched = source().on_busy(hook.clone()).divert(sink.clone());
                function = function.on(watched, &operation, handler.clone());
            )*};
        }
        on!("sqs" Sqs, "sns" Sns, "s3" S3, "kinesis" Kinesis, "dynamodb" DynamoDbStream);
        on!("documentdb" DocumentDb, "kafka" Kafka, "activemq" ActiveMq, "rabbitmq" RabbitMq);
        on!("eventbridge" EventBridge, "scheduler" Scheduler);
        let operation = |name: &str| way(Operation::new(name));
        function = function.on(Pipe::of(Sqs::new()), &operation("pipe"), handler.clone()).on(
            Pipe::of(Kinesis::new()),
            &operation("pipe-kinesis"),
            handler.clone(),
        );
        if is_direct {
            function = function.on(Invoke::new(), &operation("invoke"), handler);
        }
        function.build().unwrap()
    }

    /// What the caller or the source gets: an answer, or an error. Both are for them, but only the error is logged.
    fn failed(&self, answer: Result<impl Sized, InvocationError>) {
        if let Err(error) = answer {
            self.captured.error(&error);
            self.captured.debug(&diagnostic(error));
        }
    }

    async fn deliver(&self, function: &Function, event: &str, step: &'static str) {
        self.prepare(step);
        let serving = serve(function.clone(), event, self.context());
        match step {
            "die" => drop(drop_after(1, serving).await),
            "recover" => {
                let recovery = Recovery::new(self.world.store.clone(), function.clone()).unwrap();
                let running = recovery.run(None, RunContext::without_deadline());
                self.captured.debug(&self.world.clock.drive(running).await);
                self.captured.debug(&recovery);
            }
            _ => self.failed(self.world.clock.drive(serving).await),
        }
    }
}

#[tokio::test]
async fn records_of_every_source_with_every_outcome() {
    let captured = Captured::default();
    let guard = captured.start();
    let other = events(&format!("another {CANARY}"));
    for ((name, event), (_, other)) in events(CANARY).into_iter().zip(other) {
        // The others are of the same sources.
        let stories = if name.contains("aws_lambda_events") { &STORIES[..1] } else { &STORIES };
        for way in WAYS {
            for story in stories {
                let watch = Watch::new(&captured);
                let function = watch.function(way, TracingObserver::new());
                captured.debug(&function);
                for step in *story {
                    let event = if *step == "another payload" { &other } else { &event };
                    watch.deliver(&function, event, step).await;
                }
            }
            let operation = way(Operation::new("inspected"));
            for record in inspect::event(&event, Some(&operation)).unwrap() {
                captured.debug(&record);
                captured.debug(&record.key.map(|key| key.key));
            }
        }
        captured.error(&inspect::event(&event[..event.len() - 1], None).unwrap_err());
    }
    drop(guard);
    captured.assert_silent(
        "source: \"sqs\"|source: \"sns\"|source: \"s3\"|source: \"kinesis\"|source: \"dynamodb\"|source: \"documentdb\"|\
         source: \"kafka\"|source: \"pipe\"|source: \"invoke\"|activemq record #|rabbitmq record #|eventbridge record #|scheduler record #|\
         \"executed\"|\"replayed\"|\"coalesced\"|\"failed\"|\"permanently_failed\"|\"busy\"|\"mismatch\"|\
         \"timed_out\"|\"rejected\"|\"unavailable\"|\"unprotected\"|\"unsent\"|\"completion_lost\"|a panic|\
         record diverted|the sink failed|its result is not kept|too large to be kept|no room to keep it|\
         Recovered { recovered: |Idempotency.UnknownEvent|Idempotency.RecordsReturned|Idempotency.HandlerFailed|\
         key_hash=|accept_collisions|\"Namespace\":\"Shop\"|otel.name",
    );
}

#[tokio::test]
async fn calls_of_run_run_many_and_free() {
    let captured = Captured::default();
    let guard = captured.start();
    for (way, story) in WAYS.into_iter().flat_map(|way| STORIES.map(|story| (way, story))) {
        let watch = Watch::new(&captured);
        let idempotency = watch.idempotency(TracingObserver::new());
        let operation = way(Operation::new("call"));
        let context = watch.context();
        for step in story {
            watch.prepare(step);
            let payload = json!({ "mark": CANARY, "note": format!("{step} {CANARY}") });
            let handle = |call| watch.handle(payload.clone(), call);
            let running = idempotency.run(&operation, &payload, &context, handle);
            if *step == "die" {
                drop(drop_after(1, running).await);
                continue;
            }
            if let Err(error) = watch.world.clock.drive(running).await {
                captured.error(&error);
            }
            let payloads = [payload.clone(), payload.clone(), json!({ CANARY: CANARY })];
            let handle = |payload, call| watch.handle(payload, call);
            let running = idempotency.run_many(&operation, payloads, &context, handle);
            for error in watch.world.clock.drive(running).await.into_iter().filter_map(Result::err)
            {
                captured.error(&error);
            }
            let typed = async |_| Ok::<_, Failure>(1);
            let running = idempotency.run(&operation, &payload, &context, typed);
            if let Err(error) = watch.world.clock.drive(running).await {
                captured.error(&error);
            }
            captured.debug(&idempotency);
            captured.debug(&operation);
        }
        let unserializable = std::collections::BTreeMap::from([((CANARY, 1), CANARY)]);
        let called = watch.world.call(&idempotency, &operation, &unserializable, async |_| Ok(1));
        captured.error(&called.await.unwrap_err());
        let payload = json!({ "mark": CANARY });
        watch.prepare("work");
        drop(watch.world.run(&idempotency, &operation, &payload, 1).await);
        captured.debug(&idempotency.free(&operation, &payload).await);
    }
    drop(guard);
    captured.assert_silent(
        "source=\"run\"|the handler failed with|failed permanently|another payload|another type|was not kept|\
         another worker|did not return before|messages are not all sent|the store failed|cannot be serialized|\
         no idempotency key|\"completion_lost\"|Ok(Completed)",
    );
}

/// Nothing but the message, of the error and of its sources, and of a panic. It shows that the canary was there.
#[tokio::test]
async fn the_message_of_a_handlers_error_is_logged_if_that_is_enabled() {
    let captured = Captured::default();
    let watch = Watch::new(&captured);
    let guard = captured.start();
    let function = watch.function(WAYS[0], TracingObserver::new().showing_error_messages());
    let event = batch([order("m-1", CANARY, "")]).to_string();
    for step in ["fail", "panic", "give up"] {
        watch.deliver(&function, &event, step).await;
    }
    drop(guard);
    let text = captured.text();
    let shown: Vec<&str> = text.lines().filter(|line| line.contains(CANARY)).collect();
    for line in &shown {
        let (before, _) = line.split_once(" error_message=").unwrap();
        assert!(!before.contains(CANARY), "{line}");
    }
    // The sink quotes the record in its error.
    assert_eq!(shown.len(), 4, "{shown:#?}");
    assert!(shown[0].contains(": c4n4ry was reset\""), "{shown:#?}");
}

#[test]
#[should_panic(expected = "left: Some")]
fn a_leak_is_found() {
    let captured = Captured::default();
    let guard = captured.start();
    tracing::trace!(note = ?CANARY.as_bytes(), "at the lowest level");
    drop(guard);
    captured.assert_silent("at the lowest level");
}
