//! User code that panics outside a handler costs its own record, and no other.

use std::{
    error::Error,
    fmt::{self, Display, Formatter},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lambda_idempotency::{
    Call, Failure, Observer, Operation, Report, RunContext, RunError, TracingObserver,
};
use lambda_runtime::{LambdaEvent, service_fn, tower::ServiceBuilder};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::support::{World, batch, order, serve};

fn by_id() -> Operation {
    Operation::new("place").key("id")
}

/// An error that panics when this is done to it.
#[derive(Debug)]
enum Touchy {
    Shown,
    Asked,
    Dropped,
}

impl Display for Touchy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        assert!(!matches!(self, Self::Shown), "rehearsed");
        f.write_str("touchy")
    }
}

impl Error for Touchy {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        assert!(!matches!(self, Self::Asked), "rehearsed");
        None
    }
}

impl Drop for Touchy {
    fn drop(&mut self) {
        assert!(!matches!(self, Self::Dropped), "rehearsed");
    }
}

#[tokio::test]
async fn an_error_that_panics_harms_no_neighbour() {
    for touchy in ["shown", "asked", "dropped"] {
        for permanent in [false, true] {
            let world = World::new();
            let ledger = world.ledger.clone();
            let handler = move |order: Value, _: Call| {
                let ledger = ledger.clone();
                async move {
                    if order["do"] == "fail" {
                        let error = match touchy {
                            "shown" => Touchy::Shown,
                            "asked" => Touchy::Asked,
                            _ => Touchy::Dropped,
                        };
                        let failure =
                            if permanent { Failure::permanent } else { Failure::transient };
                        return Err(failure(error));
                    }
                    ledger.record(order["id"].as_str().unwrap(), "");
                    Ok(())
                }
            };
            let idempotency =
                world.idempotency().with_observer(TracingObserver::new().showing_error_messages());
            let function = idempotency.sqs(by_id(), handler).unwrap();
            let event = batch([order("m-1", "a", ""), order("m-2", "b", "fail")]);
            for _ in 0..2 {
                assert_eq!(world.returned(&function, &event).await, ["m-2"], "{touchy}");
            }
            world.ledger.assert_once("a");
        }
    }
}

struct Loud;

impl Observer for Loud {
    fn reported(&self, report: &Report<'_>) {
        assert_ne!(&*report.record.id, "m-1", "rehearsed");
    }
}

#[tokio::test]
async fn an_observer_that_panics_changes_no_outcome() {
    let world = World::new();
    let function = world.idempotency().with_observer(Loud).sqs(by_id(), world.handler()).unwrap();
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "fail"), order("m-3", "c", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
    assert_eq!(world.ledger.total(), 2);
}

/// A payload that panics when it is dropped, which is all that happens to one that is not started.
#[derive(Deserialize)]
struct Heavy {
    id: String,
}

impl Drop for Heavy {
    fn drop(&mut self) {
        panic!("rehearsed: {}", self.id);
    }
}

#[tokio::test]
async fn a_payload_that_panics_when_it_is_dropped_harms_no_neighbour() {
    let world = World::new();
    let ledger = world.ledger.clone();
    let handler = move |heavy: Heavy, _: Call| {
        let ledger = ledger.clone();
        async move {
            ledger.record(&heavy.id, "");
            std::mem::forget(heavy);
            Ok::<_, Failure>(())
        }
    };
    let function = world.idempotency().sqs(by_id(), handler).unwrap();
    let event = batch([order("m-1", "a", "")]);
    assert!(world.returned(&function, &event).await.is_empty());
    // Two are not started: `a` is done, and the second `b` is a copy.
    let event = batch([order("m-2", "a", ""), order("m-3", "b", ""), order("m-4", "b", "")]);
    assert!(world.returned(&function, &event).await.is_empty());
    world.ledger.assert_once("b");
}

/// A result that panics when it is written as JSON.
#[derive(Debug, Deserialize)]
struct Bomb;

impl Serialize for Bomb {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("rehearsed")
    }
}

#[tokio::test]
async fn a_result_that_panics_when_it_is_written_leaves_the_work_done() {
    let (world, ran) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let idempotency = world.idempotency();
    let charge = || {
        let ran = Arc::clone(&ran);
        async move |_: Call| {
            ran.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Failure>(Bomb)
        }
    };
    let payload = json!({ "id": "a" });
    let first = idempotency
        .run(&by_id(), &payload, RunContext::without_deadline(), charge())
        .await
        .unwrap();
    assert!(first.recorded && !first.replayed);
    let again = idempotency.run(&by_id(), &payload, RunContext::without_deadline(), charge()).await;
    assert!(matches!(again, Err(RunError::ResultLost(_))), "{again:?}");
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_events_result_that_panics_when_it_is_written_leaves_the_work_done() {
    let world = World::new();
    let ledger = world.ledger.clone();
    let charge = move |event: LambdaEvent<Value>| {
        let ledger = ledger.clone();
        async move {
            ledger.record(event.payload["id"].as_str().unwrap(), "");
            Ok::<_, std::io::Error>(Bomb)
        }
    };
    let layer = world.idempotency().event::<Value>(by_id()).unwrap();
    let service = ServiceBuilder::new().layer(layer).service(service_fn(charge));
    serve(service.clone(), r#"{"id":"a"}"#, world.context()).await.unwrap();
    serve(service, r#"{"id":"a"}"#, world.context()).await.unwrap_err();
    world.ledger.assert_once("a");
}
