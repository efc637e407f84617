//! `.on_busy(..)` calls the user's code for records whose keys are claimed elsewhere.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::{Either, select};
use lambda_idempotency::{
    Function, Operation,
    source::{BusyRecord, Sqs},
};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::Value;

use crate::support::{World, batch, ids, order, serve};

/// What a hook does after it noted the record.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    Hang,
    Panic,
    PanicLater,
}

type Notified = Arc<Mutex<Vec<BusyRecord>>>;

fn with_hook(world: &World, does: Does) -> (Function, Notified) {
    let notified = Notified::default();
    let log = Arc::clone(&notified);
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
    let (source, operation) = (Sqs::new().on_busy(hook), Operation::new("place").key("id"));
    (world.on(source, &operation), notified)
}

/// Another worker claims the key of `a` and is killed.
async fn claimed_elsewhere(world: &World, function: &Function) -> Value {
    let killed = batch([order("m-1", "a", "sleep")]).to_string();
    assert!(drop_after(1, serve(function.clone(), &killed, world.context())).await.is_none());
    batch([order("m-1", "a", ""), order("m-2", "b", ""), order("m-3", "c", "fail")])
}

#[tokio::test]
async fn the_hook_gets_a_busy_record_with_the_end_of_its_lease() {
    let world = World::instant();
    let (function, notified) = with_hook(&world, Does::Nothing);
    let event = claimed_elsewhere(&world, &function).await;
    world.clock.advance(Duration::from_secs(11));
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-3"]);
    let notified = notified.lock().unwrap();
    assert_eq!(notified.len(), 1, "neither for the processed record nor for the failed one");
    assert_eq!(&*notified[0].record.id, "m-1");
    // 30 s for the invocation, 1 s of lease grace, 1 s of clock skew; 11 s have passed.
    assert_eq!(notified[0].wait, Duration::from_secs(21));
    assert_eq!(notified[0].until, world.clock.now().plus(Duration::from_secs(21)));
    let raw: Value = serde_json::from_str(&notified[0].raw).unwrap();
    assert_eq!(raw["receiptHandle"], "AQEB");
    assert!(!format!("{:?}", notified[0]).contains("AQEB"));
}

/// A failing hook must not change the answer.
#[tokio::test]
async fn a_hook_that_hangs_or_panics_does_not_change_the_answer() {
    for does in [Does::Hang, Does::Panic, Does::PanicLater] {
        let world = World::instant();
        let (function, notified) = with_hook(&world, does);
        let event = claimed_elsewhere(&world, &function).await;
        let before = world.clock.now();
        let answer = world.invoke(&function, &event).await.unwrap();
        assert_eq!(ids(&answer), ["m-1", "m-3"]);
        assert!(world.clock.now() <= before.plus(Duration::from_secs(2)));
        // The hook's panic poisoned the lock; the notes are still there.
        let notified = notified.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        assert_eq!(notified.len(), 1);
    }
}

#[tokio::test]
async fn hooks_that_hang_are_dropped_in_time_although_the_clock_is_put_back() {
    const HOUR: Duration = Duration::from_secs(3600);
    let world = World::instant();
    let clock = world.clock.clone();
    let hook = move |busy: BusyRecord| {
        if &*busy.record.id == "m-1" {
            clock.step_back(HOUR);
        }
        std::future::pending()
    };
    let function = world.on(Sqs::new().on_busy(hook), &Operation::new("place").key("id"));
    let event = batch([order("m-1", "a", "sleep"), order("m-2", "b", "sleep")]);
    let text = event.to_string();
    let killed = serve(function.clone(), &text, world.context());
    assert!(drop_after(1, killed).await.is_none());
    let before = world.clock.now();
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-2"]);
    assert!(world.clock.now() <= before.plus(Duration::from_secs(2)).minus(HOUR));
}

/// Each may open a connection, and an event may have ten thousand records.
#[tokio::test]
async fn a_hook_is_called_for_many_records_some_at_a_time() {
    let (world, counts) = (World::new(), Arc::new(Mutex::new((0, 0, 0))));
    let (clock, counted) = (world.clock.clone(), Arc::clone(&counts));
    let hook = async move |_: BusyRecord| {
        {
            let (running, most, calls) = &mut *counted.lock().unwrap();
            (*running, *calls) = (*running + 1, *calls + 1);
            *most = (*running).max(*most);
        }
        clock.sleep(Duration::from_millis(20)).await;
        counted.lock().unwrap().0 -= 1;
    };
    let operation = Operation::new("place").key("id");
    let place = |nth: u32| order(&format!("m-{nth}"), &nth.to_string(), "sleep");
    let event = batch((0..2000).map(place));
    let text = event.to_string();
    // Another worker claims all keys and is killed.
    let killed = serve(world.on(Sqs::new().concurrency(2000), &operation), &text, world.context());
    let killed = select(Box::pin(killed), world.clock.sleep(Duration::from_secs(5)));
    assert!(matches!(world.clock.drive(killed).await, Either::Right(_)));
    let function = world.on(Sqs::new().on_busy(hook), &operation);
    assert_eq!(world.returned(&function, &event).await.len(), 2000);
    assert_eq!(*counts.lock().unwrap(), (0, 64, 2000), "running, at once, in all");
}
