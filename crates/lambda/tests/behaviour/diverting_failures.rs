//! Permanent failures and mismatches can be diverted, so that they do not block later records.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency::{
    Failure, Function, Operation,
    handler::Callback,
    source::{DivertReason, DivertedRecord, DynamoDbStream, Kafka, Kinesis, Sqs},
};
use lambda_idempotency_core::clock::Clock as _;
use serde_json::{Value, json};

use crate::{
    support::{FIFO, World, batch, grouped, ids, order, with_body},
    support_streams::{change, message, put, topic, with_data},
};

/// A sink for records that refuses a number of them.
#[derive(Clone, Default)]
pub(crate) struct Taken(Arc<Mutex<(Vec<DivertedRecord>, u32)>>);

impl Taken {
    pub(crate) fn refuse(&self, times: u32) {
        self.0.lock().unwrap().1 = times;
    }

    fn take(&self, diverted: DivertedRecord) -> Result<(), Failure> {
        let mut kept = self.0.lock().unwrap();
        if kept.1 > 0 {
            kept.1 -= 1;
            return Err(Failure::permanent("cannot be reached"));
        }
        kept.0.push(diverted);
        Ok(())
    }

    pub(crate) fn sink(&self) -> impl Callback<DivertedRecord, Result<(), Failure>> + use<> {
        let taken = self.clone();
        async move |diverted| taken.take(diverted)
    }

    /// A sink that never returns for the messages with these ids.
    pub(crate) fn hanging<F: Fn(&str) -> bool + Send + Sync + 'static>(
        &self,
        hangs: F,
    ) -> impl Callback<DivertedRecord, Result<(), Failure>> + use<F> {
        let (taken, hangs) = (self.clone(), Arc::new(hangs));
        async move |diverted: DivertedRecord| match hangs(&diverted.record.id) {
            true => std::future::pending().await,
            false => taken.take(diverted),
        }
    }

    /// A sink that takes so long.
    pub(crate) fn slow(
        &self,
        world: &World,
        time: Duration,
    ) -> impl Callback<DivertedRecord, Result<(), Failure>> + use<> {
        let (taken, clock) = (self.clone(), world.clock.clone());
        async move |diverted| {
            let took = taken.take(diverted);
            clock.sleep(time).await;
            took
        }
    }

    /// How many ids the records have that it took.
    pub(crate) fn ids(&self) -> usize {
        self.records().into_iter().map(|record| record.id).collect::<BTreeSet<_>>().len()
    }

    pub(crate) fn records(&self) -> Vec<DivertedRecord> {
        self.0.lock().unwrap().0.clone()
    }
}

pub(crate) fn index() -> Operation {
    Operation::new("index").key("id").max_failed_attempts(2)
}

/// Whether no record is returned.
pub(crate) fn is_empty(answer: Result<Value, lambda_idempotency::error::InvocationError>) -> bool {
    answer.is_ok_and(|answer| answer.is_null() || answer == json!({ "batchItemFailures": [] }))
}

/// The first record of the group fails permanently at its second delivery; the record after it is
/// processed in the same invocation.
#[tokio::test]
async fn a_permanent_failure_does_not_stop_its_shard_partition_or_group() {
    type Build = fn(&World, &Taken) -> Function;
    let kinesis: Build = |w, taken| w.on(Kinesis::new().divert(taken.sink()), &index());
    let table: Build = |w, taken| {
        let handler = w.handler();
        let image = move |change: Value, call| handler(change["newImage"].clone(), call);
        let source = DynamoDbStream::new().divert(taken.sink());
        w.with_handler(source, &index().key("newImage.id"), image)
    };
    let kafka: Build = |w, taken| w.on(Kafka::new().divert(taken.sink()), &index());
    let queue: Build = |w, taken| w.on(Sqs::new().divert(taken.sink()), &index());
    let in_group = |message, id, action| grouped(order(message, id, action), FIFO, "g");
    for (function, event) in [
        (kinesis, batch([put(1, "k", "a", "fail"), put(2, "k", "b", "")])),
        (table, batch([change(1, "k", "a", "fail"), change(2, "k", "b", "")])),
        (kafka, topic([message(0, 1, "a", "fail"), message(0, 2, "b", "")])),
        (queue, batch([in_group("m-1", "a", "fail"), in_group("m-2", "b", "")])),
    ] {
        let (world, taken) = (World::new(), Taken::default());
        let function = function(&world, &taken);
        let first = world.invoke(&function, &event).await;
        assert!(!is_empty(first), "the first failure is not permanent");
        world.ledger.assert_never("b");
        for _ in 0..2 {
            assert!(is_empty(world.invoke(&function, &event).await), "{event}");
        }
        world.ledger.assert_each_once(["b"]);
        let records = taken.records();
        assert_eq!((records.len(), taken.ids()), (2, 1), "at each delivery, with one id");
        let DivertedRecord { operation, key_hash, raw, reason, .. } = &records[0];
        assert_eq!(&**operation, "index");
        assert_eq!(key_hash.as_deref().map(str::len), Some(64));
        assert!(serde_json::from_str::<Value>(raw).unwrap().is_object());
        let is_second = matches!(reason, DivertReason::PermanentFailure { failed_attempts: 2, .. });
        assert!(is_second, "{reason:?}");
        assert_eq!(
            reason.to_string(),
            "its handler failed permanently, with a text, after 2 failed attempt(s) for this key"
        );
    }
}

#[tokio::test]
async fn first_failures_that_are_permanent_and_panics_are_diverted() {
    let (world, taken) = (World::new(), Taken::default());
    let operation = index().max_failed_attempts(1);
    let function = world.on(Kinesis::new().divert(taken.sink()), &operation);
    let event =
        batch([put(1, "k", "a", "give up"), put(2, "k", "b", "panic"), put(3, "k", "c", "")]);
    assert!(is_empty(world.invoke(&function, &event).await));
    assert_eq!(taken.records().len(), 2);
    world.ledger.assert_each_once(["c"]);
}

#[tokio::test]
async fn another_payload_under_a_key_is_diverted() {
    let (world, taken) = (World::new(), Taken::default());
    let operation = index().fingerprint("do");
    let function = world.on(Kinesis::new().divert(taken.sink()), &operation);
    let event = batch([put(1, "k", "a", "1"), put(2, "k", "a", "2"), put(3, "k", "b", "3")]);
    for _ in 0..2 {
        assert!(is_empty(world.invoke(&function, &event).await));
    }
    world.ledger.assert_each_once(["a", "b"]);
    let records = taken.records();
    assert_eq!((records.len(), taken.ids()), (2, 1));
    assert_eq!(records[0].reason, DivertReason::Mismatch);
}

#[tokio::test]
async fn a_record_is_returned_until_its_sink_takes_it_and_those_behind_it_do_not_wait() {
    let (world, taken) = (World::new(), Taken::default());
    let function = world.on(Kinesis::new().divert(taken.sink()), &index());
    taken.refuse(5);
    let event = batch([with_data(1, "k", "not JSON"), put(2, "k", "b", "")]);
    for _ in 0..5 {
        // The first failure that a stream is told is that of the sink.
        let answer = world.invoke(&function, &event).await.unwrap();
        assert_eq!(
            ids(&answer),
            [event["Records"][0]["kinesis"]["sequenceNumber"].as_str().unwrap()]
        );
        world.ledger.assert_each_once(["b"]);
    }
    assert!(is_empty(world.invoke(&function, &event).await));
    world.ledger.assert_each_once(["b"]);
    assert!(matches!(taken.records()[0].reason, DivertReason::BadRecord(_)));
}

#[tokio::test]
async fn bad_records_may_have_another_policy() {
    let (world, taken) = (World::new(), Taken::default());
    let failures = Sqs::new().divert_failures(taken.sink());
    let function = world.on(failures, &index());
    let event = batch([with_body("m-1", "not JSON"), order("m-2", "a", "give up")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    assert_eq!(taken.records().len(), 1);
}

/// A sink for bad records only does not get permanent failures, and is called at each delivery until it
/// succeeds.
#[tokio::test]
async fn a_sink_for_bad_records_only_is_called_until_it_succeeds() {
    let (world, taken) = (World::new(), Taken::default());
    let function = world.on(Sqs::new().divert_bad_records(taken.sink()), &index());
    let event = batch([with_body("m-1", "not JSON"), order("m-2", "a", "give up")]);
    taken.refuse(3);
    for _ in 0..3 {
        assert_eq!(world.returned(&function, &event).await, ["m-1", "m-2"]);
    }
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
    assert_eq!(taken.records().len(), 1);
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
