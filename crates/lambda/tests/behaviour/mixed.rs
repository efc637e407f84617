//! One function, several sources: each event goes to the first operation that accepts it.

use lambda_idempotency::{
    Operation,
    source::{EventBridge, Sns, Sqs},
};
use serde_json::{Value, json};

use crate::support::{FIFO, Noted, World, batch, bus_event, grouped, notification, with_body};

#[tokio::test]
async fn each_event_goes_to_the_handler_of_its_source() {
    let (world, noted) = (World::new(), Noted::new());
    let by_id = |name: &str| Operation::new(name).key("id");
    let named = |name: &'static str| noted.handler(move |_: Value, _| name);
    let bus = || EventBridge::new().event_source("shop");
    let function = world
        .idempotency()
        .function()
        .on(Sqs::new().queue("orders"), &by_id("place"), named("place"))
        .on(Sqs::new().queue(FIFO), &by_id("place-fifo"), named("place-fifo"))
        .on(Sns::new().topic("orders"), &by_id("ship"), named("ship"))
        .on(EventBridge::new().detail_type("OrderCancelled"), &by_id("cancel"), named("cancel"))
        .on(bus().detail_type("Audited"), &by_id("audit"), named("audit"))
        .on(bus(), &by_id("watch"), named("watch"))
        .build()
        .unwrap();
    let id = json!({ "id": "1" });
    for (event, handler) in [
        (batch([with_body("m-1", r#"{"id":"1"}"#)]), "place"),
        (batch([grouped(with_body("m-1", r#"{"id":"1"}"#), FIFO, "g")]), "place-fifo"),
        (notification("n-1", r#"{"id":"1"}"#), "ship"),
        (bus_event("e-1", "OrderCancelled", &id), "cancel"),
        (bus_event("e-1", "Audited", &id), "audit"),
        (bus_event("e-1", "AnythingElse", &id), "watch"),
    ] {
        for _ in 0..2 {
            world.invoke(&function, &event).await.unwrap();
        }
        assert_eq!(noted.take(), [handler], "one id, six operations: six keys");
    }
}
