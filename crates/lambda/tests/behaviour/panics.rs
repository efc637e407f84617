//! User code that panics outside a handler affects only its own record.

use std::{
    error::Error,
    fmt::{self, Display, Formatter},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lambda_idempotency::{Call, Failure, observe::TracingObserver, source::Sqs};
use serde::Deserialize;
use serde_json::Value;

use crate::support::{World, batch, order, place};

/// An error that panics when it is formatted, asked for its source, or dropped.
#[derive(Debug)]
enum Panicking {
    Formatted,
    Source,
    Dropped,
}

impl Display for Panicking {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        assert!(!matches!(self, Self::Formatted), "deliberate");
        f.write_str("panicking")
    }
}

impl Error for Panicking {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        assert!(!matches!(self, Self::Source), "deliberate");
        None
    }
}

impl Drop for Panicking {
    fn drop(&mut self) {
        assert!(!matches!(self, Self::Dropped), "deliberate");
    }
}

#[tokio::test]
async fn an_error_that_panics_does_not_affect_other_records() {
    for panicking in ["formatted", "source", "dropped"] {
        for permanent in [false, true] {
            let world = World::new();
            let ledger = world.ledger.clone();
            let handler = move |order: Value, _: Call| {
                let ledger = ledger.clone();
                async move {
                    if order["do"] == "fail" {
                        let error = match panicking {
                            "formatted" => Panicking::Formatted,
                            "source" => Panicking::Source,
                            _ => Panicking::Dropped,
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
                world.idempotency().with_log(TracingObserver::new().showing_error_messages());
            let function = idempotency.on(Sqs::new(), &place(), handler).unwrap();
            let event = batch([order("m-1", "a", ""), order("m-2", "b", "fail")]);
            for _ in 0..2 {
                assert_eq!(world.returned(&function, &event).await, ["m-2"], "{panicking}");
            }
            world.ledger.assert_once("a");
        }
    }
}

/// A payload that panics when it is dropped. A payload whose handler is not started is only dropped.
#[derive(Deserialize)]
struct PanickingPayload {
    id: String,
}

impl Drop for PanickingPayload {
    fn drop(&mut self) {
        panic!("deliberate: {}", self.id);
    }
}

#[tokio::test]
async fn a_payload_that_panics_when_dropped_does_not_affect_other_records() {
    let world = World::new();
    let ledger = world.ledger.clone();
    let handler = move |payload: PanickingPayload, _: Call| {
        let ledger = ledger.clone();
        async move {
            ledger.record(&payload.id, "");
            std::mem::forget(payload);
            Ok::<_, Failure>(())
        }
    };
    let function = world.with_handler(Sqs::new(), &place(), handler);
    let event = batch([order("m-1", "a", "")]);
    assert!(world.returned(&function, &event).await.is_empty());
    // Two are not started: `a` is completed, and the second `b` is a copy.
    let event = batch([order("m-2", "a", ""), order("m-3", "b", ""), order("m-4", "b", "")]);
    assert!(world.returned(&function, &event).await.is_empty());
    world.ledger.assert_once("b");
}

/// What a handler holds is cloned for each record, when its turn has come.
#[tokio::test]
async fn a_clone_that_panics_fails_its_own_record() {
    struct Client(Arc<AtomicUsize>);
    impl Clone for Client {
        fn clone(&self) -> Self {
            assert_ne!(self.0.fetch_add(1, Ordering::Relaxed), 1, "deliberate");
            Self(Arc::clone(&self.0))
        }
    }
    let world = World::new();
    let (ledger, client) = (world.ledger.clone(), Client(Arc::default()));
    let handler = async move |placed: Value, _: Call| {
        let _whole: &Client = &client;
        ledger.record(placed["id"].as_str().unwrap(), "");
        Ok::<_, Failure>(())
    };
    // No handler at a time counts as one.
    let queue = Sqs::new().concurrency(0);
    let function = world.with_handler(queue, &place(), handler);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", ""), order("m-3", "c", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
    assert!(world.returned(&function, &event).await.is_empty());
    world.ledger.assert_each_once(["a", "b", "c"]);
}
