//! A custom event bus hands over lists of events.

use lambda_idempotency::Operation;
use serde_json::{Value, json};

use crate::support::{World, bus_event, diagnostic, without};

fn placed(id: &str, order: &str, fate: &str) -> Value {
    bus_event(id, "Placed", &json!({ "id": order, "do": fate }))
}

#[tokio::test]
async fn each_event_of_a_list_is_a_record() {
    let world = World::new();
    let bus = world.idempotency().event_bridge(Operation::new("a"), world.handler()).unwrap();
    let list = json!([placed("1", "a", ""), placed("2", "b", "fail once"), placed("3", "c", "")]);
    let (kind, text) = diagnostic(world.invoke(&bus, &list).await.unwrap_err());
    assert_eq!(kind, "Idempotency.RecordsReturned");
    assert!(text.contains("1 of 3 eventbridge") && text.contains("record 2"), "{text}");
    world.ledger.assert_each_once(["a", "c"]);
    assert_eq!(world.invoke(&bus, &list).await.unwrap(), Value::Null);
    world.ledger.assert_each_once(["a", "b", "c"]);
    // Alone, it is the same event.
    assert_eq!(world.invoke(&bus, &placed("1", "a", "")).await.unwrap(), Value::Null);
    world.ledger.assert_once("a");
}

/// The id that such a bus gives is in its metadata, and may not be in the event.
#[tokio::test]
async fn an_event_without_an_id_needs_a_key() {
    let world = World::new();
    let idempotency = world.idempotency();
    let list = json!([without(placed("1", "a", ""), "id")]);
    let plain = idempotency.event_bridge(Operation::new("a"), world.handler()).unwrap();
    let (_, text) = diagnostic(world.invoke(&plain, &list).await.unwrap_err());
    assert!(text.contains(".key("), "{text}");
    let by_order = Operation::new("b").key("id");
    let keyed = idempotency.event_bridge(by_order, world.handler()).unwrap();
    for _ in 0..2 {
        assert_eq!(world.invoke(&keyed, &list).await.unwrap(), Value::Null);
    }
    world.ledger.assert_once("a");
}

/// An operation that takes one kind of event is not given others because they came along.
#[tokio::test]
async fn a_list_of_several_kinds_is_for_an_operation_that_takes_them_all() {
    let world = World::new();
    let idempotency = world.idempotency();
    let list = json!([placed("1", "a", ""), bus_event("2", "Cancelled", &json!({ "id": "b" }))]);
    let only = Operation::new("a").detail_type("Placed");
    let only = idempotency.event_bridge(only, world.handler()).unwrap();
    let (kind, _) = diagnostic(world.invoke(&only, &list).await.unwrap_err());
    assert_eq!(kind, "Idempotency.UnknownEvent");
    assert_eq!(world.ledger.total(), 0);
    let any = idempotency.event_bridge(Operation::new("b"), world.handler()).unwrap();
    assert_eq!(world.invoke(&any, &list).await.unwrap(), Value::Null);
    world.ledger.assert_each_once(["a", "b"]);
}
