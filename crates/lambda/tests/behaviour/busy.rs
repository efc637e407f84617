//! The user's code can be told of records whose keys are held elsewhere.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency::{BusyRecord, Function, Operation};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::{Value, json};

use crate::support::{World, batch, ids, order, serve};

/// What a hook does besides noting what it is told.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    Hang,
    Panic,
    PanicLater,
}

type Told = Arc<Mutex<Vec<BusyRecord>>>;

fn told(world: &World, does: Does) -> (Function, Told) {
    let told = Told::default();
    let log = Arc::clone(&told);
    let hook = move |busy: BusyRecord| {
        log.lock().unwrap().push(busy);
        assert!(does != Does::Panic);
        async move {
            assert!(does != Does::PanicLater);
            if does == Does::Hang {
                std::future::pending::<()>().await;
            }
        }
    };
    let operation = Operation::new("place").key("id").on_busy(hook);
    (world.idempotency().sqs(operation, world.handler()).unwrap(), told)
}

/// Another worker has claimed the key of `a`, and was killed.
async fn held(world: &World, function: &Function) -> Value {
    let killed = batch([order("m-1", "a", "sleep")]).to_string();
    assert!(drop_after(1, serve(function.clone(), &killed, world.context())).await.is_none());
    batch([order("m-1", "a", ""), order("m-2", "b", ""), order("m-3", "c", "fail")])
}

#[tokio::test]
async fn a_busy_record_is_told_with_the_end_of_its_lease() {
    let world = World::new();
    let (function, told) = told(&world, Does::Nothing);
    let event = held(&world, &function).await;
    world.clock.advance(Duration::from_secs(11));
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-3"]);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "not of what is done, nor of what failed");
    assert_eq!(&*told[0].record.id, "m-1");
    // 30 of the invocation, 1 of lease grace, 1 by which clocks may differ; 11 are gone.
    assert_eq!(told[0].wait, Duration::from_secs(21));
    assert_eq!(told[0].until, world.clock.now().plus(Duration::from_secs(21)));
    let raw: Value = serde_json::from_str(&told[0].raw).unwrap();
    assert_eq!(raw["receiptHandle"], "AQEB");
    assert!(!format!("{:?}", told[0]).contains("AQEB"));
}

/// What the hook does is a courtesy, and must not cost the answer.
#[tokio::test]
async fn a_hook_that_goes_wrong_does_no_harm() {
    for does in [Does::Hang, Does::Panic, Does::PanicLater] {
        let world = World::new();
        let (function, told) = told(&world, does);
        let event = held(&world, &function).await;
        let before = world.clock.now();
        let answer = world.invoke(&function, &event).await.unwrap();
        assert_eq!(ids(&answer), ["m-1", "m-3"]);
        assert!(world.clock.now() <= before.plus(Duration::from_secs(2)));
        // A lock that a panic poisoned still holds what was noted.
        let told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        assert_eq!(told.len(), 1);
    }
}

#[tokio::test]
async fn without_busy_records_the_hook_is_not_called() {
    let world = World::new();
    let (function, told) = told(&world, Does::Nothing);
    let answer = world.invoke(&function, &batch([order("m-1", "a", "")])).await.unwrap();
    assert_eq!(answer, json!({ "batchItemFailures": [] }));
    assert!(told.lock().unwrap().is_empty());
}
