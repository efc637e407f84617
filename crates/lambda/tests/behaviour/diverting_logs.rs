//! What is logged of records that are put aside, or should have been.

use lambda_idempotency::{DivertedRecord, Failure, Operation, TracingObserver};
use lambda_idempotency_core::{record::Status, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;

use crate::{
    diverting_failures::{Aside, index},
    secrets_capture::Captured,
    support::{World, batch, order},
};

/// What is logged of an order that fails permanently.
async fn logged(world: &World, observer: TracingObserver, operation: Operation) -> String {
    let captured = Captured::default();
    let guard = captured.start();
    let idempotency = world.idempotency().with_observer(observer);
    let function = idempotency.sqs(operation, world.handler()).unwrap();
    world.returned(&function, &batch([order("m-1", "a", "give up")])).await;
    drop(guard);
    captured.text()
}

#[tokio::test]
async fn what_the_handler_said_is_logged_where_it_is_asked_for() {
    let (world, aside) = (World::new(), Aside::default());
    let log = logged(&world, TracingObserver::new(), index(&aside)).await;
    assert!(!log.contains("never again"), "{log}");
    let world = World::new();
    let shown = TracingObserver::new().showing_error_messages();
    let log = logged(&world, shown, index(&aside)).await;
    assert!(log.contains(r#"error_message="never again""#), "{log}");
    assert_eq!(aside.records().len(), 2);
}

/// A sink that fails, and the log says of which record and what that had said itself.
#[tokio::test]
async fn what_could_not_be_put_aside_is_logged_with_its_own_failure() {
    let (world, aside) = (World::new(), Aside::default());
    aside.refuse(1);
    let shown = TracingObserver::new().showing_error_messages();
    let log = logged(&world, shown, index(&aside)).await;
    assert!(log.contains(r#"error_message="never again; out of reach""#), "{log}");
    let why = "it was to be put aside: its handler failed permanently, with a message";
    assert!(log.contains(why), "{log}");
}

#[tokio::test]
async fn what_was_put_aside_but_not_recorded_is_not_logged_as_processed() {
    let (world, aside) = (World::new(), Aside::default());
    let refused = Fault::refuse(StoreErrorKind::Denied).that_writes(Status::Completed);
    world.store.inject(refused.always());
    let log = logged(&world, TracingObserver::new(), index(&aside)).await;
    assert_eq!(aside.records().len(), 1);
    assert!(!log.contains(": processed"), "{log}");
    assert!(log.contains("ERROR") && log.contains("put aside, but that is not recorded"), "{log}");
    assert!(log.contains(r#"outcome="diverted""#), "{log}");
}

#[tokio::test]
async fn a_panic_of_the_sink_is_not_told_of_the_handler() {
    async fn sink(_: DivertedRecord) -> Result<(), Failure> {
        panic!("no bucket")
    }
    let operation = Operation::new("index").key("id").divert(sink);
    let log = logged(&World::new(), TracingObserver::new(), operation).await;
    assert!(log.contains("putting the record aside failed with a panic"), "{log}");
    assert!(!log.contains("the handler failed with a panic"), "{log}");
}
