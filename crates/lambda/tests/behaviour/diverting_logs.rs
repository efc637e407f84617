//! The log of records that are put aside, and of records that could not be put aside.

use lambda_idempotency::{
    Failure,
    observe::TracingObserver,
    source::{DivertedRecord, Sqs},
};
use lambda_idempotency_core::{record::Status, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;

use crate::{
    diverting_failures::{Aside, index},
    secrets_capture::Captured,
    support::{World, batch, order},
};

/// The log of an order that fails permanently.
async fn logged(world: &World, observer: TracingObserver, source: Sqs) -> String {
    let captured = Captured::default();
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(observer);
    let function = idempotency.on(source, &index(), world.handler()).unwrap();
    world.returned(&function, &batch([order("m-1", "a", "give up")])).await;
    drop(guard);
    captured.text()
}

#[tokio::test]
async fn the_message_of_a_handlers_error_is_logged_only_if_enabled() {
    let (world, aside) = (World::new(), Aside::default());
    let log = logged(&world, TracingObserver::new(), Sqs::new().divert(aside.sink())).await;
    assert!(!log.contains("never again"), "{log}");
    let world = World::new();
    let shown = TracingObserver::new().showing_error_messages();
    let log = logged(&world, shown, Sqs::new().divert(aside.sink())).await;
    assert!(log.contains(r#"error_message="never again""#), "{log}");
    assert_eq!(aside.records().len(), 2);
}

/// If the sink fails, the log contains the error of the record, too.
#[tokio::test]
async fn a_failing_sink_is_logged_with_the_failure_of_the_record() {
    let (world, aside) = (World::new(), Aside::default());
    aside.refuse(1);
    let shown = TracingObserver::new().showing_error_messages();
    let log = logged(&world, shown, Sqs::new().divert(aside.sink())).await;
    assert!(log.contains(r#"error_message="never again; cannot be reached""#), "{log}");
    let why = "it was to be put aside: its handler failed permanently, with a message";
    assert!(log.contains(why), "{log}");
}

#[tokio::test]
async fn a_diverted_record_that_could_not_be_recorded_is_not_logged_as_processed() {
    let (world, aside) = (World::new(), Aside::default());
    let refused = Fault::refuse(StoreErrorKind::Denied).that_writes(Status::Completed);
    world.store.inject(refused.always());
    let log = logged(&world, TracingObserver::new(), Sqs::new().divert(aside.sink())).await;
    assert_eq!(aside.records().len(), 1);
    assert!(!log.contains(": processed"), "{log}");
    assert!(log.contains("ERROR") && log.contains("put aside, but that is not recorded"), "{log}");
    assert!(log.contains(r#"outcome="diverted""#), "{log}");
}

#[tokio::test]
async fn a_panic_of_the_sink_is_not_logged_as_one_of_the_handler() {
    async fn sink(_: DivertedRecord) -> Result<(), Failure> {
        panic!("no bucket")
    }
    let source = Sqs::new().divert(sink);
    let log = logged(&World::new(), TracingObserver::new(), source).await;
    assert!(log.contains("putting the record aside failed with a panic"), "{log}");
    assert!(!log.contains("the handler failed with a panic"), "{log}");
}
