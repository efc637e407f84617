//! A world whose log, metrics, errors and values are captured, and handlers that show all that they get.

use std::{
    panic::resume_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lambda_idempotency::{
    Call, Failure, Idempotency,
    observe::{BatchEnd, Observer, Report, StoreCall, TracingObserver},
    outbox::Message,
    source::{BusyRecord, DivertedRecord},
    store::{BoxFuture, StoreErrorKind},
};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::faults::{Fault, GuardKind};
use lambda_runtime::Context;
use serde_json::Value;

use crate::{
    metrics::Lines,
    outbox::Wire,
    secrets_capture::{CANARY, Captured},
    support::World,
};

/// What happens to a record, delivery by delivery.
pub(crate) const STORIES: [&[&str]; 11] = [
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

#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) world: World,
    pub(crate) captured: Captured,
    metrics: Lines,
    /// What the handler does.
    does: Arc<Mutex<&'static str>>,
    /// Whether the sink has failed, as it does the first time.
    sink_failed: Arc<AtomicBool>,
}

impl Watch {
    pub(crate) fn new(captured: &Captured) -> Self {
        Self {
            world: World::instant(),
            captured: captured.clone(),
            metrics: Lines::default(),
            does: Arc::default(),
            sink_failed: Arc::default(),
        }
    }

    pub(crate) fn idempotency(&self, log: TracingObserver) -> Idempotency {
        let idempotency = self.world.idempotency().with_log(log).with_opentelemetry_fields();
        let idempotency = idempotency.with_sender(Arc::new(Wire::down()));
        idempotency.with_observer(self.captured.clone()).with_observer(self.metrics.metrics())
    }

    pub(crate) fn context(&self) -> Context {
        let mut context = self.world.context();
        context.tenant_id = Some(CANARY.to_owned());
        context
    }

    /// Prepares the store and the handler for a step of a story.
    pub(crate) fn prepare(&self, step: &'static str) {
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

    pub(crate) async fn handle(&self, payload: Value, call: Call) -> Result<String, Failure> {
        // The line has the fields of the handler's span.
        tracing::info!("handling");
        self.captured.debug(&call);
        self.captured.debug(call.record());
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

    pub(crate) fn sink(
        &self,
    ) -> impl Fn(DivertedRecord) -> std::future::Ready<Result<(), Failure>> + Clone + use<> {
        let watch = self.clone();
        move |diverted| {
            watch.captured.debug(&diverted);
            watch.captured.error(&diverted.reason);
            let has_failed = watch.sink_failed.swap(true, Ordering::SeqCst);
            std::future::ready(if has_failed { Ok(()) } else { Err(diverted.raw.into()) })
        }
    }

    pub(crate) fn hook(&self) -> impl Fn(BusyRecord) -> BoxFuture<'static, ()> + Clone + use<> {
        let captured = self.captured.clone();
        move |busy| {
            captured.debug(&busy);
            Box::pin(std::future::ready(()))
        }
    }
}

/// The metrics are complete when the world ends.
impl Drop for Watch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for document in self.metrics.take() {
                self.captured.add(&format!("{document}\n"));
            }
        }
    }
}
