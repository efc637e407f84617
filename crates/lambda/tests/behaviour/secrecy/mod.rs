//! A canary in each place that an application fills is in no log line, metric, error or `Debug` text: each sample of AWS,
//! through each source, outcome, fault of the store, sink and recovery; and calls of `run`.
//!
//! Requests of HTTP have their own test in `http/secrets.rs`.

pub(crate) mod capture;
mod values;

use std::{
    panic::resume_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_idempotency::{
    Call, Failure, Function, Idempotency, Operation, RunContext,
    handler::keep_result,
    keys::{KeyFormat, inspect, powertools::PowertoolsKeys},
    observe::{BatchEnd, CloudWatchMetrics, Observer, Report, StoreCall, TracingObserver},
    outbox::Message,
    policy::OnMissingKey,
    recovery::Recovery,
    source::{BusyRecord, DivertedRecord, Invoke},
    store::StoreErrorKind,
};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::{
    crashing::drop_after,
    faults::{Fault, GuardKind},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use self::capture::{CANARY, Captured};
use crate::{
    samples::samples,
    support::{World, batch, diagnostic, every_source, order, serve},
    wire::Wire,
};

/// AWS or the owner of the account chooses these members, and logs may show them.
const NAMES: &str = "EventSource EventVersion MessageId SequenceNumber Type _data awsRegion bootstrapServers eventID eventName \
                     eventSource eventSourceARN eventSourceArn eventTime eventVersion messageId sequenceNumber sequencer \
                     source topic";

/// Plants the canary in each place that an application fills; `mark` is in the payload.
fn plant(name: &str, value: &mut Value, mark: &str) {
    match value {
        // The samples of RabbitMQ have no id.
        Value::Null if name == "messageId" => *value = CANARY.into(),
        Value::String(text)
            if !NAMES.split(' ').any(|it| it == name) && !text.starts_with("arn:") =>
        {
            *text = in_text(text, mark);
        }
        Value::Array(bytes) if !bytes.is_empty() && bytes.iter().all(Value::is_u64) => {
            bytes.extend(CANARY.bytes().map(Value::from));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| plant(name, value, mark)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(name, value)| plant(name, value, mark));
            if name == "detail" {
                members.insert("mark".to_owned(), json!(CANARY));
                members.insert("note".to_owned(), json!(mark));
                members.insert(CANARY.to_owned(), json!(1));
            }
        }
        _ => {}
    }
}

/// Text that may be JSON, or JSON in base64.
fn in_text(text: &str, mark: &str) -> String {
    let decoded = STANDARD.decode(text).ok().filter(|bytes| bytes.len() > 6);
    if let Ok(mut object @ Value::Object(_)) = serde_json::from_str(text) {
        plant("detail", &mut object, mark);
        object.to_string()
    } else if let Some(decoded) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
        STANDARD.encode(in_text(&decoded, mark))
    } else {
        format!("{text}-{CANARY}")
    }
}

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

/// What happens to a record, delivery by delivery.
const STORIES: [&[&str]; 11] = [
    &["fail", "panic", "work", "work", "another payload"],
    &["give up", "give up", "give up"],
    &["sleep", "work"],
    &["return much", "work"],
    &["publish", "publish"],
    &["outage", "work"],
    &["throttled", "work"],
    &["answer lost", "work"],
    &["completion refused", "work", "work"],
    &["claim too large", "work"],
    &["die", "work", "recover"],
];

impl Observer for Captured {
    fn reported(&self, report: &Report<'_>) {
        self.debug(report);
    }

    fn store_called(&self, call: &StoreCall<'_>) {
        self.debug(call);
    }

    fn batch_ended(&self, end: &BatchEnd<'_>) {
        self.debug(end);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String, #[source] std::io::Error);

/// A world whose log, metrics, errors and values are captured, and handlers that show all that they get.
#[derive(Clone)]
struct Watch {
    world: World,
    captured: Captured,
    /// What the handler does.
    does: Arc<Mutex<&'static str>>,
    /// Whether the sink has failed, as it does the first time.
    sink_failed: Arc<AtomicBool>,
}

impl Watch {
    fn new(captured: &Captured) -> Self {
        let (does, sink_failed) = (Arc::default(), Arc::default());
        Self { world: World::instant(), captured: captured.clone(), does, sink_failed }
    }

    fn idempotency(&self, log: TracingObserver) -> Idempotency {
        let idempotency = self.world.idempotency().with_log(log).with_opentelemetry_fields();
        let idempotency = idempotency.with_sender(Arc::new(Wire::down()));
        let captured = self.captured.clone();
        let metrics = CloudWatchMetrics::new("Shop").unwrap();
        let metrics = metrics.with_output(move |line| captured.add(&format!("{line}\n")));
        idempotency.with_observer(self.captured.clone()).with_observer(metrics)
    }

    fn context(&self) -> Context {
        let mut context = self.world.context();
        context.tenant_id = Some(CANARY.to_owned());
        context
    }

    /// Prepares the store and the handler for a step of a story.
    fn prepare(&self, step: &'static str) {
        *self.does.lock().unwrap() = step;
        let store = &self.world.store;
        store.heal();
        let refuse = Fault::refuse;
        match step {
            "outage" => store.outage(),
            "throttled" => store.inject(refuse(StoreErrorKind::Throttled).always()),
            "answer lost" => store.inject(Fault::lose_answer().times(4)),
            "completion refused" => store
                .inject(refuse(StoreErrorKind::Corrupt).guarded_by(GuardKind::OwnedBy).always()),
            "claim too large" => {
                store.inject(refuse(StoreErrorKind::TooLarge).guarded_by(GuardKind::Absent));
            }
            "recover" => self.world.clock.advance(Duration::from_mins(16)),
            _ => {}
        }
    }

    async fn handle(self, payload: Value, call: Call) -> Result<String, Failure> {
        // The line has the fields of the handler's span.
        tracing::info!("handling");
        self.captured.debug(&(&call, call.record()));
        self.captured.error(&call.record_as::<Vec<u8>>().unwrap_err());
        let id = &call.record().id;
        let text = format!("{CANARY} {payload} {id} {:?}", call.raw_record());
        call.step("note", |_| async { Ok::<_, Failure>(text.clone()) }).await?;
        let does = *self.does.lock().unwrap();
        match does {
            "fail" => return Err(Refused(text, std::io::Error::other("c4n4ry was reset")).into()),
            "give up" => return Err(Failure::permanent(text)),
            // Without the hook of panics, which prints it.
            "panic" => resume_unwind(Box::new(text)),
            "sleep" => self.world.clock.sleep(Duration::from_hours(1)).await,
            "die" => std::future::pending().await,
            "return much" => return Ok(CANARY.repeat(100_000)),
            "publish" => {
                let message = Message::new("parcels", &*text).with_attribute("id", CANARY);
                self.captured.debug(&message);
                call.publish(message.with_group(CANARY))?;
            }
            _ => {}
        }
        Ok(text)
    }

    fn function(&self, way: fn(Operation) -> Operation, log: TracingObserver) -> Function {
        let this = self.clone();
        let handler = keep_result(move |payload, call| this.clone().handle(payload, call));
        let this = self.clone();
        let sink = move |diverted: DivertedRecord| {
            this.captured.debug(&diverted);
            this.captured.error(&diverted.reason);
            let has_failed = this.sink_failed.swap(true, Ordering::SeqCst);
            std::future::ready(if has_failed { Ok(()) } else { Err(Failure::from(diverted.raw)) })
        };
        let captured = self.captured.clone();
        let hook = move |busy: BusyRecord| {
            captured.debug(&busy);
            std::future::ready(())
        };
        // Direct invocations need a key in the payload. Without one, no record has room to be kept.
        let is_direct = way(Operation::new("invoke")).producer().is_ok();
        let room = if is_direct { 64 * 1024 } else { 9 };
        let operation = |name: &str| way(Operation::new(name));
        let function = self.idempotency(log).function();
        let mut function = every_source!(function, operation, handler.clone(), |source| {
            source.recoverable(room).on_busy(hook.clone()).divert(sink.clone())
        });
        if is_direct {
            function = function.on(Invoke::new(), &operation("invoke"), handler);
        }
        function.build().unwrap()
    }

    async fn deliver(&self, function: &Function, event: &str, step: &'static str) {
        self.prepare(step);
        let serving = serve(function.clone(), event, self.context());
        if step == "die" {
            return drop(drop_after(1, serving).await);
        }
        if step == "recover" {
            let recovery = Recovery::new(self.world.store.clone(), function.clone()).unwrap();
            let context = RunContext::without_deadline();
            let running = recovery.run(None, &context);
            self.captured.debug(&self.world.clock.drive(running).await);
            return self.captured.debug(&recovery);
        }
        // An answer is for the caller or the source, and an error is logged, too.
        if let Err(error) = self.world.clock.drive(serving).await {
            self.captured.error(&error);
            self.captured.debug(&diagnostic(error));
        }
    }
}

#[tokio::test]
async fn records_of_every_source_with_every_outcome() {
    let captured = Captured::default();
    let guard = captured.start();
    for (name, sample) in samples() {
        let [event, other] = [CANARY, "another c4n4ry"].map(|mark| {
            let mut event = serde_json::from_str(&sample).unwrap();
            plant("detail", &mut event, mark);
            event.to_string()
        });
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
        let (operation, context) = (way(Operation::new("call")), watch.context());
        for step in story {
            watch.prepare(step);
            let payload = json!({ "mark": CANARY, "note": format!("{step} {CANARY}") });
            let handle = |call| watch.clone().handle(payload.clone(), call);
            let running = idempotency.run(&operation, &payload, &context, handle);
            if *step == "die" {
                drop(drop_after(1, running).await);
                continue;
            }
            let run = watch.world.clock.drive(running).await;
            let payloads = [payload.clone(), payload.clone(), json!({ CANARY: CANARY })];
            let handle = |payload, call| watch.clone().handle(payload, call);
            let running = idempotency.run_many(&operation, payloads, &context, handle);
            let runs = watch.world.clock.drive(running).await.into_iter().chain([run]);
            let typed = async |_| Ok::<_, Failure>(1);
            let running = idempotency.run(&operation, &payload, &context, typed);
            let typed = watch.world.clock.drive(running).await.err();
            for error in runs.filter_map(Result::err).chain(typed) {
                captured.error(&error);
            }
            captured.debug(&(&idempotency, &operation));
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
    let shown = captured.leaks();
    for line in &shown {
        let (before, _) = line.split_once(" error_message=").unwrap();
        assert!(!before.contains(CANARY), "{line}");
    }
    // The sink quotes the record in its error.
    assert_eq!(shown.len(), 4, "{shown:#?}");
    assert!(shown[0].contains(": c4n4ry was reset\""), "{shown:#?}");
}
