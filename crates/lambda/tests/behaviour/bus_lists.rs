//! A custom event bus invokes the function with lists of events.

use lambda_idempotency::{
    Operation,
    keys::{
        KeyFormat,
        inspect::{self, AnySource},
    },
    observe::TracingObserver,
    source::{EventBridge, Invoke},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    metrics::Lines,
    secrecy::capture::Captured,
    support::{World, bus_event, diagnostic, event_id, without},
};

fn placed(id: &str, order: &str, action: &str) -> Value {
    bus_event(&event_id(id), "Placed", &json!({ "id": order, "do": action }))
}

fn cancelled(id: &str, order: &str, action: &str) -> Value {
    bus_event(&event_id(id), "Cancelled", &json!({ "id": order, "do": action }))
}

fn of(detail_type: &str) -> EventBridge {
    EventBridge::new().detail_type(detail_type)
}

/// Each event goes to the first operation that accepts it, whatever the other events of the list.
#[tokio::test]
async fn each_event_of_a_list_goes_to_its_own_operation() {
    let world = World::new();
    let [placing, other] = [World::new(), World::new()];
    let function = world
        .idempotency()
        .function()
        .on(of("Placed"), &Operation::new("place"), placing.handler())
        .on(of("Cancelled"), &Operation::new("cancel"), world.handler())
        .on(EventBridge::new(), &Operation::new("other"), other.handler())
        .build()
        .unwrap();
    let list = json!([
        placed("1", "a", ""),
        cancelled("2", "b", ""),
        bus_event(&event_id("3"), "Shipped", &json!({ "id": "c" })),
        placed("4", "d", ""),
    ]);
    for _ in 0..2 {
        assert_eq!(world.invoke(&function, &list).await.unwrap(), Value::Null);
        placing.ledger.assert_each_once(["a", "d"]);
        world.ledger.assert_each_once(["b"]);
        other.ledger.assert_each_once(["c"]);
    }
    // Delivered alone, the events have the same identities.
    world.invoke(&function, &placed("1", "a", "")).await.unwrap();
    placing.ledger.assert_each_once(["a", "d"]);
    assert_eq!(other.ledger.total(), 1, "it is of the first that takes it");
}

#[tokio::test]
async fn failed_events_of_a_list_run_again_and_the_others_do_not() {
    let world = World::new();
    let [place, cancel] = ["place", "cancel"].map(Operation::new);
    let function = world.on_both((of("Placed"), place), (of("Cancelled"), cancel));
    let without_id = without(placed("", "e", ""), "id");
    let list = json!([
        cancelled("1", "a", "fail once"),
        placed("2", "b", ""),
        placed("3", "c", "fail once"),
        cancelled("4", "d", ""),
        without_id,
    ]);
    let text = world.fails(&function, &list, "RecordsReturned").await;
    // The error names the records in the order of the list.
    let [first, third, without_id] =
        [&*event_id("1"), &event_id("3"), "no. 5 of the batch"].map(|part| text.find(part));
    assert!(first.is_some() && first < third && third < without_id, "{text}");
    assert!(text.contains("3 of 5 eventbridge"), "{text}");
    world.ledger.assert_each_once(["b", "d"]);
    world.invoke(&function, &list).await.unwrap_err();
    world.ledger.assert_each_once(["a", "b", "c", "d"]);
}

/// Such an event cannot be acknowledged, and must not stop the others.
#[tokio::test]
async fn an_event_of_a_list_that_no_operation_takes_is_returned_and_the_others_are_processed() {
    let world = World::new();
    let unknown = bus_event(&event_id("9"), "Strange", &json!({ "id": "s3cr3t" }));
    let list = json!([unknown, placed("1", "a", "")]);
    let build = || world.idempotency().function();
    for function in [
        build().on(of("Placed"), &Operation::new("place"), world.handler()),
        // `.otherwise(..)` and `.invoke(..)` do not take single events of a list.
        build()
            .on(of("Placed"), &Operation::new("place"), world.handler())
            .otherwise(|_| async { Ok::<_, std::io::Error>("taken") }),
        build().on(of("Placed"), &Operation::new("place"), world.handler()).on(
            Invoke::new(),
            &Operation::new("any").key("@"),
            world.raw_handler(),
        ),
    ] {
        let function = function.build().unwrap();
        let text = world.fails(&function, &list, "RecordsReturned").await;
        for part in ["1 of 2 eventbridge", &event_id("9"), "no operation"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
        assert_eq!((world.ledger.executed("a"), world.ledger.total()), (1, 1));
    }
}

#[tokio::test]
async fn the_log_and_metrics_have_the_events_of_a_list_that_no_operation_takes() {
    let (world, captured, metrics) = (World::new(), Captured::default(), Lines::default());
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let idempotency = idempotency.with_observer(metrics.metrics());
    let function = idempotency.on(of("Placed"), &Operation::new("place"), world.handler()).unwrap();
    let unknown = bus_event(&event_id("9"), "Strange", &json!({}));
    let guard = captured.start_as_lambda_does();
    world.invoke(&function, &json!([unknown, placed("1", "a", "")])).await.unwrap_err();
    drop(guard);
    let lines = captured.text();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "of the event that was processed there is nothing to say");
    let found: Vec<[&str; 3]> = lines
        .iter()
        .map(|line| {
            ["operation", "record", "outcome"].map(|it| line["fields"][it].as_str().unwrap())
        })
        .collect();
    let wanted = [["", &event_id("9"), "rejected"]];
    assert_eq!(found, wanted);
    let rejected: Vec<_> =
        metrics.take().into_iter().filter(|document| document["rejected"] == 1.0).collect();
    assert_eq!((rejected.len(), &rejected[0]["operation"]), (1, &json!("?")));
}

/// A transformer may have set any id.
#[tokio::test]
async fn the_id_of_an_event_that_no_operation_takes_is_hashed_with_the_secret_of_another() {
    let unknown = bus_event("ann@example.com", "Strange", &json!({}));
    let list = json!([unknown, placed("1", "a", "")]);
    let error_of = async |operation: Operation| {
        let world = World::new();
        let function = world.on(of("Placed"), &operation);
        let (_, text) = diagnostic(world.invoke(&function, &list).await.unwrap_err());
        assert!(text.contains('#') && !text.contains("ann@"), "{text}");
        text
    };
    let plain = error_of(Operation::new("place")).await;
    let secret =
        error_of(Operation::new("place").key_format(KeyFormat::secret([7; 32]).unwrap())).await;
    assert_ne!(plain, secret);
}

/// A transformer may have replaced an event with other JSON.
#[tokio::test]
async fn json_in_a_list_that_is_not_an_event_does_not_affect_the_others() {
    let world = World::new();
    let function = world.on(EventBridge::new(), &Operation::new("a"));
    let list = json!([{ "id": "s3cr3t" }, placed("1", "a", ""), 7, placed("2", "b", "")]);
    for _ in 0..2 {
        let text = world.fails(&function, &list, "RecordsReturned").await;
        for part in ["2 of 4 eventbridge", "no. 1 of the batch", "no. 3 of the batch"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("s3cr3t"), "{text}");
        world.ledger.assert_each_once(["a", "b"]);
    }
    assert_eq!(inspect::event(&list.to_string(), None).unwrap().len(), 4);
}

/// If no operation accepts any event of a list, the list is an unknown event.
#[tokio::test]
async fn a_list_without_an_event_for_any_operation_is_unknown() {
    let world = World::new();
    let list = json!([cancelled("1", "a", ""), cancelled("2", "b", "")]);
    let place =
        || world.idempotency().function().on(of("Placed"), &Operation::new("a"), world.handler());
    let only = place().build().unwrap();
    let text = world.fails(&only, &list, "UnknownEvent").await;
    assert!(text.contains("a list of 2"), "{text}");
    assert_eq!(world.ledger.total(), 0);
    let rest = place().otherwise(|_| async { Ok::<_, std::io::Error>("taken") }).build().unwrap();
    assert_eq!(world.invoke(&rest, &list).await.unwrap(), "taken");
}

/// With an operation, inspection shows the events of a list that the operation gets.
#[test]
fn inspection_shows_the_events_of_the_operation() {
    let list = json!([placed("1", "a", ""), cancelled("2", "b", "")]).to_string();
    let ids = |source: AnySource| -> Vec<_> {
        let records = inspect::invocation(&list, &source, None, &Context::default()).unwrap();
        records.into_iter().map(|record| record.id).collect()
    };
    assert_eq!(ids(AnySource::new()), ["1", "2"].map(event_id));
    assert_eq!(ids(of("Cancelled").into()), [event_id("2")]);
}
