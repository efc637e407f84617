//! Bad records can be put aside, so that they do not block other records.

use std::sync::{Arc, Mutex};

use lambda_idempotency::{
    Failure, Idempotency, Operation, Outcome,
    error::Rejection,
    observe::{Observer, Report},
    outcome::DivertReason,
    source::{DivertedRecord, Kinesis, Sqs},
};
use lambda_idempotency_core::{record::Status, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;
use serde_json::{Value, json};

use crate::{
    support::{World, batch, ids, order, with_body, without},
    support_streams::{put, sequence, with_data},
};

/// A sink for bad records that refuses a number of them.
#[derive(Clone, Default)]
struct Aside(Arc<Mutex<(Vec<DivertedRecord>, u32)>>);

impl Aside {
    fn refusing(times: u32) -> Self {
        Self(Arc::new(Mutex::new((Vec::new(), times))))
    }

    async fn take(self, bad: DivertedRecord) -> Result<(), Failure> {
        let mut kept = self.0.lock().unwrap();
        if kept.1 > 0 {
            kept.1 -= 1;
            return Err(Failure::transient("the queue cannot be reached"));
        }
        kept.0.push(bad);
        Ok(())
    }

    fn sqs(&self) -> Sqs {
        let aside = self.clone();
        Sqs::new().divert_bad_records(move |bad| aside.clone().take(bad))
    }

    fn kinesis(&self) -> Kinesis {
        let aside = self.clone();
        Kinesis::new().divert_bad_records(move |bad| aside.clone().take(bad))
    }

    fn records(&self) -> Vec<DivertedRecord> {
        self.0.lock().unwrap().0.clone()
    }
}

type IsExpected = fn(&Rejection) -> bool;

/// Bad records of each kind, with the expected rejection.
fn bad() -> Vec<(Value, IsExpected)> {
    vec![
        (with_data(2, "a", "not JSON"), |why| matches!(why, Rejection::Payload(_))),
        (with_data(3, "a", r#"{"id":null}"#), |why| matches!(why, Rejection::Key { .. })),
        (with_data(4, "a", [0xff]), |why| matches!(why, Rejection::NotText(_))),
        (with_data(5, "a", r#"{"id":7,"n":"x"}"#), |why| matches!(why, Rejection::Decode { .. })),
    ]
}

#[derive(serde::Deserialize)]
struct Order {
    id: Value,
    #[serde(default)]
    #[expect(dead_code, reason = "a record with a string here does not fit the type")]
    n: u32,
}

fn function(world: &World, aside: &Aside) -> lambda_idempotency::Function {
    let handler = world.handler();
    let typed = move |order: Order, call| handler(json!({ "id": order.id }), call);
    let operation = Operation::new("index").key("id");
    world.idempotency().on(aside.kinesis(), &operation, typed).unwrap()
}

#[tokio::test]
async fn a_bad_record_is_put_aside_and_the_shard_continues() {
    let world = World::new();
    let aside = Aside::default();
    let function = function(&world, &aside);
    let records = bad();
    let mut event = vec![put(1, "a", "a", "")];
    event.extend(records.iter().map(|(record, _)| record.clone()));
    event.push(put(6, "a", "b", ""));
    for _ in 0..2 {
        let answer = world.invoke(&function, &batch(event.clone())).await.unwrap();
        assert!(ids(&answer).is_empty(), "{answer}");
    }
    world.ledger.assert_each_once(["a", "b"]);
    let put_aside = aside.records();
    assert_eq!(put_aside.len(), records.len(), "each once, although it was delivered twice");
    for (found, (record, is_expected)) in put_aside.iter().zip(&records) {
        assert_eq!(serde_json::from_str::<Value>(&found.raw).unwrap(), *record);
        let DivertReason::BadRecord(why) = &found.reason else { panic!("{found:?}") };
        assert!(is_expected(&Rejection::from(why.clone())), "{why:?}");
        assert_eq!((&*found.operation, found.record.source), ("index", "kinesis"));
    }
}

/// The labels and reasons of outcomes.
#[derive(Clone, Default)]
struct Outcomes(Arc<Mutex<Vec<String>>>);

impl Observer for Outcomes {
    fn reported(&self, report: &Report<'_>) {
        let why = match report.outcome {
            Outcome::Diverted(_) if report.unrecorded.is_some() => ", not recorded".to_owned(),
            Outcome::Diverted(why) => format!(": {why}"),
            _ => String::new(),
        };
        self.0.lock().unwrap().push(format!("{}{why}", report.outcome.label()));
    }
}

/// The handler was not called, and observers can count such records separately.
#[tokio::test]
async fn a_record_that_was_put_aside_has_the_outcome_diverted() {
    let world = World::new();
    let (aside, outcomes) = (Aside::refusing(1), Outcomes::default());
    let operation = Operation::new("index").key("id");
    let idempotency = Idempotency::new(world.store.clone())
        .with_clock(world.clock.clone())
        .with_observer(outcomes.clone());
    let function = idempotency.on(aside.sqs(), &operation, world.handler()).unwrap();
    let twice = [with_body("m-1", "not JSON"), with_body("m-1", "not JSON")];
    for returned in [vec!["m-1"], vec![], vec![]] {
        assert_eq!(world.returned(&function, &batch(twice.clone())).await, returned);
    }
    let outcomes = outcomes.0.lock().unwrap();
    let aside = format!("diverted: {}", aside.records()[0].reason);
    assert_eq!(outcomes[..2], ["failed", "failed"], "the sink failed");
    assert_eq!(outcomes[2..4], [&*aside, "coalesced"]);
    assert_eq!(outcomes[4..], ["replayed", "replayed"]);
}

#[tokio::test]
async fn a_diverted_record_that_could_not_be_recorded_is_reported_so() {
    let world = World::new();
    let (aside, outcomes) = (Aside::default(), Outcomes::default());
    let operation = Operation::new("index").key("id");
    let idempotency = Idempotency::new(world.store.clone())
        .with_clock(world.clock.clone())
        .with_observer(outcomes.clone());
    let function = idempotency.on(aside.sqs(), &operation, world.handler()).unwrap();
    let refused = Fault::refuse(StoreErrorKind::Unavailable);
    world.store.inject(refused.that_writes(Status::Completed).always());
    let returned = world.returned(&function, &batch([with_body("m-1", "not JSON")])).await;
    assert!(returned.is_empty());
    assert_eq!(*outcomes.0.lock().unwrap(), ["diverted, not recorded"]);
}

/// A bad record is not acknowledged before the sink has it, and no later record of its key is started.
#[tokio::test]
async fn a_record_that_the_sink_refused_is_returned() {
    let world = World::new();
    let aside = Aside::refusing(1);
    let function = function(&world, &aside);
    let event = batch([with_data(1, "a", "not JSON"), put(2, "a", "b", "")]);
    assert_eq!(world.returned(&function, &event).await, [1, 2].map(sequence));
    assert_eq!((world.ledger.total(), aside.records().len()), (0, 0));
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!((world.ledger.executed("b"), aside.records().len()), (1, 1));
}

#[tokio::test]
async fn during_an_outage_of_the_store_nothing_is_put_aside() {
    let world = World::new();
    let aside = Aside::default();
    let function = function(&world, &aside);
    world.store.outage();
    let event = batch([with_data(1, "a", "not JSON")]);
    assert_eq!(world.returned(&function, &event).await, [sequence(1)]);
    assert!(aside.records().is_empty());
}

/// On a queue, even a message that the answer could not name can be put aside.
#[tokio::test]
async fn a_message_without_an_id_can_be_put_aside() {
    let world = World::new();
    let aside = Aside::default();
    let operation = Operation::new("index").key("id");
    let function = world.on(aside.sqs(), &operation);
    let event = batch([
        order("m-1", "a", ""),
        without(order("m-2", "b", ""), "messageId"),
        with_body("m-3", "not JSON"),
        order("m-4", "d", "fail"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-4"], "a failure is not a bad record");
    assert_eq!(aside.records().len(), 2);
    world.ledger.assert_each_once(["a"]);
}

/// Two bad records with equal bodies are both put aside.
#[tokio::test]
async fn bad_records_do_not_share_a_key() {
    let world = World::new();
    let aside = Aside::default();
    let operation = Operation::new("index").key("id");
    let function = world.on(aside.sqs(), &operation);
    let event = batch([with_body("m-1", "not JSON"), with_body("m-2", "not JSON")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(aside.records().len(), 2);
}
