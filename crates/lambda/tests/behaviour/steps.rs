//! Steps of handlers, however they are called.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use lambda_idempotency::{Call, Failure, Operation, error::StepError, source::Sqs, testing};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{World, batch, order};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Payment {
    id: String,
    cents: u32,
}

/// Pays in a step, and fails after it the first time.
async fn pay(call: Call, payments: Arc<AtomicU32>) -> Result<Payment, Failure> {
    let payment = call
        .step("pay", |key| async move {
            payments.fetch_add(1, Ordering::Relaxed);
            assert_eq!(key.len(), 64);
            Ok(Payment { id: "p-1".to_owned(), cents: 7 })
        })
        .await?;
    if call.failed_attempts() == 0 { Err("not yet".into()) } else { Ok(payment) }
}

#[tokio::test]
async fn a_step_of_a_record_runs_once() {
    let (world, payments) = (World::new(), Arc::<AtomicU32>::default());
    let counted = Arc::clone(&payments);
    let handler = move |_: Value, call: Call| {
        let payments = Arc::clone(&counted);
        async move { pay(call, payments).await.map(drop) }
    };
    let place = Operation::new("place").key("id");
    let function = world.with_handler(Sqs::new(), &place, handler);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    for returned in [2, 0, 0] {
        let answer = world.clock.drive(testing::invoke(&function, &event)).await.unwrap();
        assert_eq!(answer["batchItemFailures"].as_array().unwrap().len(), returned);
    }
    assert_eq!(payments.load(Ordering::Relaxed), 2, "one for each record");
}

#[tokio::test]
async fn a_step_of_run_runs_once() {
    let (world, payments) = (World::new(), Arc::<AtomicU32>::default());
    let (idempotency, operation) = (world.idempotency(), Operation::new("place").key("id"));
    let payload = json!({ "id": "a" });
    for succeeds in [false, true, true] {
        let pays = |call| pay(call, Arc::clone(&payments));
        let run = world.call(&idempotency, &operation, &payload, pays).await;
        assert_eq!(run.is_ok(), succeeds);
        if let Ok(run) = run {
            assert_eq!(run.result, Payment { id: "p-1".to_owned(), cents: 7 });
        }
    }
    assert_eq!(payments.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_for_a_test_has_the_steps_of_an_earlier_attempt() {
    let payments = Arc::<AtomicU32>::default();
    let call = Call::test("o-1").with_failed_attempts(1);
    let known = call.clone().with_step("pay", json!({ "id": "p-0", "cents": 5 }));
    assert_eq!(pay(known, Arc::clone(&payments)).await.unwrap().id, "p-0");
    assert_eq!(payments.load(Ordering::Relaxed), 0);

    let other = Call::test("o-2").with_step("pay", "p-0");
    let error = pay(other, payments).await.unwrap_err();
    assert!(matches!(error.error().downcast_ref(), Some(StepError::Mismatch { .. })));
}
