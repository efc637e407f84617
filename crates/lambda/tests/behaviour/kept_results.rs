//! `keep_result` keeps the results of records: for observers and for later calls of `kept_result`.

use std::sync::{Arc, Mutex};

use lambda_idempotency::{
    Call, Failure, Idempotency, Operation, Outcome, RunError,
    error::ResultLost,
    handler::keep_result,
    observe::{Observer, Report, ResultKept},
    source::{Invoke, Sqs},
    store::Cache,
};
use serde_json::{Value, json};

use crate::{
    secrecy::capture::Captured,
    support::{Noted, Unserializable, World, batch, order, place},
};

/// Confirms the order, or fails as the order says.
async fn confirm(order: Value, _: Call) -> Result<Value, Failure> {
    match order["do"].as_str() {
        Some("give up") => Err(Failure::permanent("never again")),
        Some("fail") => Err(Failure::transient("not now")),
        _ => Ok(json!({ "confirmed": order["id"] })),
    }
}

/// An outcome's label and result.
type Reported = (&'static str, Option<String>);

impl Observer for Noted<Reported> {
    fn reported(&self, report: &Report<'_>) {
        let value = report.outcome.result().map(|json| json.to_string());
        self.add((report.outcome.label(), value));
    }
}

impl Observer for Noted<ResultKept> {
    fn reported(&self, report: &Report<'_>) {
        let Outcome::Executed { kept, .. } = report.outcome else { panic!("{report:?}") };
        self.add(*kept);
    }
}

/// A separate process: it shares only the store with others.
fn process(world: &World, seen: &Noted<Reported>) -> Idempotency {
    Idempotency::new(world.store.clone())
        .with_clock(world.clock.clone())
        .with_observer(seen.clone())
        .with_cache(Cache::off())
}

#[tokio::test]
async fn observers_get_a_kept_result_at_each_delivery() {
    let (world, seen) = (World::new(), Noted::<Reported>::new());
    let event = batch([order("m-1", "a", ""), order("m-2", "a", "")]);
    for _ in 0..2 {
        let function =
            process(&world, &seen).on(Sqs::new(), &place(), keep_result(confirm)).unwrap();
        assert!(world.returned(&function, &event).await.is_empty());
    }
    let seen = seen.take();
    let labels: Vec<_> = seen.iter().map(|(label, _)| *label).collect();
    assert_eq!(labels, ["executed", "coalesced", "replayed", "replayed"]);
    let result = json!({ "confirmed": "a" }).to_string();
    assert!(seen.iter().all(|(_, value)| value.as_ref() == Some(&result)), "{seen:?}");
}

#[tokio::test]
async fn without_keep_result_no_result_is_kept() {
    let (world, seen) = (World::instant(), Noted::<Reported>::new());
    let function = process(&world, &seen).on(Sqs::new(), &place(), confirm).unwrap();
    let event = batch([order("m-1", "a", "")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(seen.take(), [("executed", None)]);
    let lost = world.idempotency().kept_result::<Value, _>(&place(), &json!({ "id": "a" })).await;
    assert!(matches!(lost, Err(RunError::ResultLost(ResultLost::NotKept))), "{lost:?}");
}

#[tokio::test]
async fn a_kept_result_can_be_read_later_with_the_payload() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let function = idempotency.on(Sqs::new(), &place(), keep_result(confirm)).unwrap();
    let kept_for = async |id: &str| {
        idempotency.kept_result::<Value, _>(&place(), &json!({ "id": id, "other": 1 })).await
    };
    assert_eq!(kept_for("a").await.unwrap(), None, "not processed yet");
    let event =
        batch([order("m-1", "a", ""), order("m-2", "b", "give up"), order("m-3", "c", "fail")]);
    assert_eq!(world.returned(&function, &event).await, ["m-2", "m-3"]);
    assert_eq!(kept_for("a").await.unwrap(), Some(json!({ "confirmed": "a" })));
    let failed = kept_for("b").await;
    assert!(matches!(failed, Err(RunError::PermanentlyFailed { .. })), "{failed:?}");
    assert_eq!(kept_for("c").await.unwrap(), None, "it failed, and may still succeed");
    let other = idempotency.kept_result::<u32, _>(&place(), &json!({ "id": "a" })).await;
    assert!(matches!(other, Err(RunError::ResultLost(ResultLost::OtherType))), "{other:?}");
    let without_key = idempotency.kept_result::<Value, _>(&place(), &json!({})).await;
    assert!(matches!(without_key, Err(RunError::Rejected(_))), "{without_key:?}");
    let by_source = idempotency.kept_result::<Value, _>(&Operation::new("o"), &json!({})).await;
    assert!(matches!(by_source, Err(RunError::Config(_))), "no payload finds its result");
    world.clock.advance(std::time::Duration::from_hours(25));
    assert_eq!(kept_for("a").await.unwrap(), None, "its retention has ended");
}

#[tokio::test]
async fn reading_a_result_in_progress_returns_busy() {
    let world = World::new();
    let idempotency = world.idempotency();
    let inner = idempotency.clone();
    let result = Arc::new(Mutex::new(None));
    let answer = Arc::clone(&result);
    let handler = move |order: Value, _: Call| {
        let (idempotency, answer) = (inner.clone(), Arc::clone(&answer));
        async move {
            let found = idempotency.kept_result::<Value, _>(&place(), &order).await;
            *answer.lock().unwrap() = Some(found);
            Ok::<_, Failure>(())
        }
    };
    let function = idempotency.on(Sqs::new(), &place(), keep_result(handler)).unwrap();
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    let found = result.lock().unwrap().take().unwrap();
    assert!(matches!(found, Err(RunError::Busy { .. })), "{found:?}");
}

#[tokio::test]
async fn work_whose_result_cannot_be_serialized_is_completed() {
    let (world, lost) = (World::new(), Noted::<ResultKept>::new());
    let handler = async |order: Value, _: Call| {
        Ok::<_, Failure>(Unserializable(order["do"].as_str() == Some("panic")))
    };
    let idempotency = world.idempotency().with_observer(lost.clone());
    let function = idempotency.on(Sqs::new(), &place(), keep_result(handler)).unwrap();
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "panic")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(lost.take(), [ResultKept::Unserializable; 2]);
}

/// A direct invocation gets it, and a completion keeps it; elsewhere it goes nowhere.
#[test]
fn a_result_that_nobody_gets_is_said_at_the_start() {
    let said = |build: &dyn Fn(&Idempotency)| {
        let captured = Captured::default();
        let guard = captured.start();
        build(&World::new().idempotency());
        drop(guard);
        captured.text().contains("the handler returns a result that nobody gets")
    };
    let nothing = async |_: Value, _: Call| Ok::<_, Failure>(());
    assert!(said(&|one| drop(one.on(Sqs::new(), &place(), confirm).unwrap())));
    assert!(!said(&|one| drop(one.on(Sqs::new(), &place(), nothing).unwrap())));
    assert!(!said(&|one| drop(one.on(Sqs::new(), &place(), keep_result(confirm)).unwrap())));
    assert!(!said(&|one| drop(one.on((Sqs::new(), Invoke::new()), &place(), confirm).unwrap())));
}
