//! Bad records can be put aside, so that they are in nobody's way.

use std::sync::{Arc, Mutex};

use lambda_idempotency::{
    BadRecord, Failure, Idempotency, Observer, OnBadRecord, Operation, Outcome, Rejection, Report,
};
use lambda_idempotency_core::{record::Status, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;
use serde_json::{Value, json};

use crate::{
    support::{World, batch, ids, order, with_body, without},
    support_streams::{put, sequence, with_data},
};

/// A place for bad records, which refuses as many as it is told to.
#[derive(Clone, Default)]
struct Aside(Arc<Mutex<(Vec<BadRecord>, u32)>>);

impl Aside {
    fn refusing(times: u32) -> Self {
        Self(Arc::new(Mutex::new((Vec::new(), times))))
    }

    fn policy(&self) -> OnBadRecord {
        let Self(kept) = self.clone();
        OnBadRecord::divert(move |bad| {
            let kept = Arc::clone(&kept);
            async move {
                let mut kept = kept.lock().unwrap();
                if kept.1 > 0 {
                    kept.1 -= 1;
                    return Err(Failure::transient("the queue is out of reach"));
                }
                kept.0.push(bad);
                Ok(())
            }
        })
    }

    fn records(&self) -> Vec<BadRecord> {
        self.0.lock().unwrap().0.clone()
    }
}

type IsExpected = fn(&Rejection) -> bool;

/// Each of these is bad in its own way, with what is said of it.
fn bad() -> Vec<(Value, IsExpected)> {
    vec![
        (with_data(2, "a", "no JSON"), |why| matches!(why, Rejection::Payload(_))),
        (with_data(3, "a", r#"{"id":null}"#), |why| matches!(why, Rejection::Key { .. })),
        (with_data(4, "a", [0xff]), |why| matches!(why, Rejection::NotText(_))),
        (with_data(5, "a", r#"{"id":7,"n":"x"}"#), |why| matches!(why, Rejection::Decode { .. })),
    ]
}

#[derive(serde::Deserialize)]
struct Order {
    id: Value,
    #[serde(default)]
    #[expect(dead_code, reason = "so that a text does not fit")]
    n: u32,
}

fn function(world: &World, aside: &Aside) -> lambda_idempotency::Function {
    let handler = world.handler();
    let typed = move |order: Order, call| handler(json!({ "id": order.id }), call);
    let operation = Operation::new("index").key("id").on_bad_record(aside.policy());
    world.idempotency().kinesis(operation, typed).unwrap()
}

#[tokio::test]
async fn a_bad_record_is_put_aside_and_the_shard_goes_on() {
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
    assert_eq!(put_aside.len(), records.len(), "each once, however often it is delivered");
    for (found, (record, is_expected)) in put_aside.iter().zip(&records) {
        assert_eq!(serde_json::from_str::<Value>(&found.raw).unwrap(), *record);
        assert!(is_expected(&found.rejection), "{:?}", found.rejection);
        assert_eq!((&*found.operation, found.record.source), ("index", "kinesis"));
    }
}

/// The outcomes of records, in words.
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

/// It was not executed, and whoever counts outcomes can tell.
#[tokio::test]
async fn a_record_that_was_put_aside_has_an_outcome_of_its_own() {
    let world = World::new();
    let (aside, outcomes) = (Aside::refusing(1), Outcomes::default());
    let operation = Operation::new("index").key("id").on_bad_record(aside.policy());
    let idempotency = Idempotency::new(world.store.clone())
        .with_clock(world.clock.clone())
        .with_observer(outcomes.clone());
    let function = idempotency.sqs(operation, world.handler()).unwrap();
    let twice = [with_body("m-1", "no JSON"), with_body("m-1", "no JSON")];
    for returned in [vec!["m-1"], vec![], vec![]] {
        assert_eq!(world.returned(&function, &batch(twice.clone())).await, returned);
    }
    let outcomes = outcomes.0.lock().unwrap();
    let aside = format!("diverted: {}", aside.records()[0].rejection);
    assert_eq!(outcomes[..2], ["failed", "failed"], "the place was out of reach");
    assert_eq!(outcomes[2..4], [&*aside, "coalesced"]);
    assert_eq!(outcomes[4..], ["replayed", "replayed"]);
}

#[tokio::test]
async fn one_that_was_put_aside_and_could_not_be_recorded_is_said_loudly() {
    let world = World::new();
    let (aside, outcomes) = (Aside::default(), Outcomes::default());
    let operation = Operation::new("index").key("id").on_bad_record(aside.policy());
    let idempotency = Idempotency::new(world.store.clone())
        .with_clock(world.clock.clone())
        .with_observer(outcomes.clone());
    let function = idempotency.sqs(operation, world.handler()).unwrap();
    let refused = Fault::refuse(StoreErrorKind::Unavailable);
    world.store.inject(refused.that_writes(Status::Completed).always());
    let returned = world.returned(&function, &batch([with_body("m-1", "no JSON")])).await;
    assert!(returned.is_empty());
    assert_eq!(*outcomes.0.lock().unwrap(), ["diverted, not recorded"]);
}

/// Until it is safely put aside, it is not acknowledged, and nothing behind it is started.
#[tokio::test]
async fn what_could_not_be_put_aside_goes_back() {
    let world = World::new();
    let aside = Aside::refusing(1);
    let function = function(&world, &aside);
    let event = batch([with_data(1, "a", "no JSON"), put(2, "a", "b", "")]);
    assert_eq!(world.returned(&function, &event).await, [1, 2].map(sequence));
    assert_eq!((world.ledger.total(), aside.records().len()), (0, 0));
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!((world.ledger.executed("b"), aside.records().len()), (1, 1));
}

#[tokio::test]
async fn with_the_store_out_of_reach_nothing_is_put_aside() {
    let world = World::new();
    let aside = Aside::default();
    let function = function(&world, &aside);
    world.store.outage();
    let event = batch([with_data(1, "a", "no JSON")]);
    assert_eq!(world.returned(&function, &event).await, [sequence(1)]);
    assert!(aside.records().is_empty());
}

/// On a queue too; there even what could not be named in the answer.
#[tokio::test]
async fn a_message_without_an_id_can_be_put_aside() {
    let world = World::new();
    let aside = Aside::default();
    let operation = Operation::new("index").key("id").on_bad_record(aside.policy());
    let function = world.idempotency().sqs(operation, world.handler()).unwrap();
    let event = batch([
        order("m-1", "a", ""),
        without(order("m-2", "b", ""), "messageId"),
        with_body("m-3", "no JSON"),
        order("m-4", "d", "fail"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-4"], "a failure is not a bad record");
    assert_eq!(aside.records().len(), 2);
    world.ledger.assert_each_once(["a"]);
}

/// Two bad records are two, even of one text.
#[tokio::test]
async fn bad_records_do_not_share_a_key() {
    let world = World::new();
    let aside = Aside::default();
    let operation = Operation::new("index").key("id").on_bad_record(aside.policy());
    let function = world.idempotency().sqs(operation, world.handler()).unwrap();
    let event = batch([with_body("m-1", "no JSON"), with_body("m-2", "no JSON")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(aside.records().len(), 2);
}

#[test]
fn nothing_shows_what_is_in_a_bad_record() {
    let aside = Aside::default();
    let operation = Operation::new("index").on_bad_record(aside.policy());
    assert!(format!("{operation:?}").contains("Divert"));
}
