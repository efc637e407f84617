//! Permanent failures and mismatches can be put aside, so that they do not block later records.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency::{
    Failure, Function, Operation,
    outcome::DivertReason,
    source::{DivertedRecord, DynamoDbStream, EventBridge, Kafka, Kinesis, Sqs},
};
use lambda_idempotency_core::{
    clock::Clock as _,
    store::{Guard, RecordVersion, Store as _, Write},
};
use serde_json::{Value, json};

use crate::{
    support::{FIFO, World, batch, bus_event, grouped, order, with_body},
    support_streams::{CLUSTER, change, message, put, topic, with_data},
};

/// A sink for records that refuses a number of them.
#[derive(Clone, Default)]
pub(crate) struct Aside(Arc<Mutex<(Vec<DivertedRecord>, u32)>>);

impl Aside {
    pub(crate) fn refuse(&self, times: u32) {
        self.0.lock().unwrap().1 = times;
    }

    pub(crate) fn sink(
        &self,
    ) -> impl Fn(DivertedRecord) -> std::future::Ready<Result<(), Failure>> + use<> {
        let Self(kept) = self.clone();
        move |diverted| {
            let mut kept = kept.lock().unwrap();
            if kept.1 > 0 {
                kept.1 -= 1;
                return std::future::ready(Err(Failure::permanent("cannot be reached")));
            }
            kept.0.push(diverted);
            std::future::ready(Ok(()))
        }
    }

    pub(crate) fn records(&self) -> Vec<DivertedRecord> {
        self.0.lock().unwrap().0.clone()
    }
}

pub(crate) fn index() -> Operation {
    Operation::new("index").key("id").max_failed_attempts(2)
}

/// The first record of the group fails permanently at its second delivery; the record after it is
/// processed in the same invocation.
async fn does_not_block(function: impl FnOnce(&World, &Aside) -> Function, event: Value) {
    let (world, aside) = (World::new(), Aside::default());
    let function = function(&world, &aside);
    assert!(!is_empty(world.invoke(&function, &event).await), "the first failure is not permanent");
    world.ledger.assert_never("b");
    for _ in 0..2 {
        assert!(is_empty(world.invoke(&function, &event).await));
    }
    world.ledger.assert_each_once(["b"]);
    let records = aside.records();
    assert_eq!(records.len(), 1, "once, although it was delivered again: {records:?}");
    let DivertedRecord { operation, key_hash, raw, reason, .. } = &records[0];
    assert_eq!(&**operation, "index");
    assert_eq!(key_hash.as_deref().map(str::len), Some(64));
    assert!(serde_json::from_str::<Value>(raw).unwrap().is_object());
    assert!(
        matches!(reason, DivertReason::PermanentFailure { failed_attempts: 2, .. }),
        "{reason:?}"
    );
    assert_eq!(
        reason.to_string(),
        "its handler failed permanently, with a message, after 2 failed attempt(s) for this key"
    );
}

/// Whether no record is returned.
pub(crate) fn is_empty(answer: Result<Value, lambda_idempotency::error::InvocationError>) -> bool {
    answer.is_ok_and(|answer| answer.is_null() || answer == json!({ "batchItemFailures": [] }))
}

#[tokio::test]
async fn a_permanent_failure_does_not_stop_a_kinesis_shard() {
    let event = batch([put(1, "k", "a", "fail"), put(2, "k", "b", "")]);
    does_not_block(
        |w, to| {
            w.idempotency().on(Kinesis::new().divert(to.sink()), &index(), w.handler()).unwrap()
        },
        event,
    )
    .await;
}

#[tokio::test]
async fn a_permanent_failure_does_not_stop_a_table_stream() {
    let event = batch([change(1, "k", "a", "fail"), change(2, "k", "b", "")]);
    let function = |w: &World, aside: &Aside| {
        let op = index().key("newImage.id");
        let handler = w.handler();
        let handler = move |change: Value, call| handler(change["newImage"].clone(), call);
        w.idempotency().on(DynamoDbStream::new().divert(aside.sink()), &op, handler).unwrap()
    };
    does_not_block(function, event).await;
}

#[tokio::test]
async fn a_permanent_failure_does_not_stop_a_kafka_partition() {
    let event = topic([message(0, 1, "a", "fail"), message(0, 2, "b", "")]);
    assert_eq!(event["eventSourceArn"], CLUSTER);
    does_not_block(
        |w, to| w.idempotency().on(Kafka::new().divert(to.sink()), &index(), w.handler()).unwrap(),
        event,
    )
    .await;
}

#[tokio::test]
async fn a_permanent_failure_does_not_stop_a_fifo_group() {
    let message = |message, id, action| grouped(order(message, id, action), FIFO, "g");
    let event = batch([message("m-1", "a", "fail"), message("m-2", "b", "")]);
    does_not_block(
        |w, to| w.idempotency().on(Sqs::new().divert(to.sink()), &index(), w.handler()).unwrap(),
        event,
    )
    .await;
}

#[tokio::test]
async fn first_failures_that_are_permanent_and_panics_are_put_aside() {
    let (world, aside) = (World::new(), Aside::default());
    let operation = index().max_failed_attempts(1);
    let function = world.on(Kinesis::new().divert(aside.sink()), &operation);
    let event =
        batch([put(1, "k", "a", "give up"), put(2, "k", "b", "panic"), put(3, "k", "c", "")]);
    assert!(is_empty(world.invoke(&function, &event).await));
    assert_eq!(aside.records().len(), 2);
    world.ledger.assert_each_once(["c"]);
}

#[tokio::test]
async fn another_payload_under_a_key_is_put_aside() {
    let (world, aside) = (World::new(), Aside::default());
    let operation = index().fingerprint("do");
    let function = world.on(Kinesis::new().divert(aside.sink()), &operation);
    let event = batch([put(1, "k", "a", "1"), put(2, "k", "a", "2"), put(3, "k", "b", "3")]);
    for _ in 0..2 {
        assert!(is_empty(world.invoke(&function, &event).await));
    }
    world.ledger.assert_each_once(["a", "b"]);
    let records = aside.records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].reason, DivertReason::Mismatch);
}

/// Sending a record again does not release its key. The record must not be lost.
#[tokio::test]
async fn another_record_with_the_key_of_a_permanent_failure_is_put_aside_too() {
    let (world, aside) = (World::new(), Aside::default());
    let function = world.on(Sqs::new().divert(aside.sink()), &index());
    for message in ["m-1", "m-2", "m-2"] {
        let event = batch([order(message, "a", "give up")]);
        assert!(world.returned(&function, &event).await.is_empty());
    }
    let ids: Vec<_> = aside.records().iter().map(|record| record.record.id.to_string()).collect();
    assert_eq!(ids, ["m-1", "m-2"]);
}

#[tokio::test]
async fn a_sink_gets_bad_records_too_and_its_own_failures_are_never_permanent() {
    let (world, aside) = (World::new(), Aside::default());
    let function = world.on(Kinesis::new().divert(aside.sink()), &index());
    aside.refuse(5);
    let event = batch([with_data(1, "k", "not JSON"), put(2, "k", "b", "")]);
    for _ in 0..5 {
        assert!(!is_empty(world.invoke(&function, &event).await));
        world.ledger.assert_never("b");
    }
    assert!(is_empty(world.invoke(&function, &event).await));
    world.ledger.assert_each_once(["b"]);
    assert!(matches!(aside.records()[0].reason, DivertReason::BadRecord(_)));
}

#[tokio::test]
async fn bad_records_may_have_another_policy() {
    let (world, aside) = (World::new(), Aside::default());
    let failures = Sqs::new().divert_failures(aside.sink());
    let function = world.on(failures, &index());
    let event = batch([with_body("m-1", "not JSON"), order("m-2", "a", "give up")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    assert_eq!(aside.records().len(), 1);
}

/// A sink for bad records only does not get permanent failures, and is called at each delivery until it
/// succeeds.
#[tokio::test]
async fn a_sink_for_bad_records_only_is_called_until_it_succeeds() {
    let world = World::new();
    let remaining = Arc::new(Mutex::new(4));
    let in_sink = Arc::clone(&remaining);
    let sink = move |_: DivertedRecord| {
        let mut remaining = in_sink.lock().unwrap();
        *remaining -= 1;
        std::future::ready(if *remaining > 0 {
            Err(Failure::transient("cannot be reached"))
        } else {
            Ok(())
        })
    };
    let bad_records = Sqs::new().divert_bad_records(sink);
    let function = world.on(bad_records, &index());
    let event = batch([with_body("m-1", "not JSON"), order("m-2", "a", "give up")]);
    for _ in 0..3 {
        assert_eq!(world.returned(&function, &event).await, ["m-1", "m-2"]);
    }
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
    assert_eq!(*remaining.lock().unwrap(), 0);
}

/// A sink that does nothing discards what it takes: for failures that nobody will look at.
#[tokio::test]
async fn a_sink_can_discard_permanent_failures_and_return_mismatches() {
    let world = World::new();
    let discard = |diverted: DivertedRecord| {
        std::future::ready(match diverted.reason {
            DivertReason::PermanentFailure { .. } => Ok(()),
            other => Err(Failure::transient(other.to_string())),
        })
    };
    let source = Sqs::new().divert_failures(discard);
    let operation = index().fingerprint("do");
    let function = world.on(source, &operation);
    let event = batch([order("m-1", "a", "give up"), order("m-2", "b", "x")]);
    for _ in 0..2 {
        assert!(world.returned(&function, &event).await.is_empty());
    }
    assert_eq!(world.returned(&function, &batch([order("m-3", "b", "y")])).await, ["m-3"]);
}

#[tokio::test]
async fn the_debug_text_of_a_diverted_record_has_no_payload() {
    let (world, aside) = (World::new(), Aside::default());
    let function = world.on(Sqs::new().divert(aside.sink()), &index());
    let event = batch([order("m-1", "s3cr3t", "give up")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert!(!format!("{:?}", aside.records()).contains("s3cr3t"));
}

/// A replay from an archive has the id of the first delivery.
#[tokio::test]
async fn a_record_that_fails_again_after_its_item_was_deleted_is_put_aside_again() {
    let (world, aside) = (World::instant(), Aside::default());
    let operation = index();
    let key = operation.producer().unwrap().key(r#"{"id":"a"}"#).unwrap();
    let function = world.on(EventBridge::new().divert(aside.sink()), &operation);
    let event = bus_event("e-1", "t", &json!({ "id": "a", "do": "give up" }));
    for put_aside in 1..=2 {
        for _ in 0..2 {
            world.invoke(&function, &event).await.unwrap();
            assert_eq!(aside.records().len(), put_aside, "once for each failure");
        }
        world.clock.advance(Duration::from_secs(60));
        let deadline = world.clock.now().plus(Duration::from_secs(5));
        let found = world
            .store
            .read(std::slice::from_ref(&key), deadline)
            .await
            .remove(0)
            .unwrap()
            .unwrap();
        let guard = Guard::Unchanged(RecordVersion::of(&found));
        let delete = Write::new(key.clone(), guard, None);
        world.store.write(&[delete], deadline).await;
    }
}
