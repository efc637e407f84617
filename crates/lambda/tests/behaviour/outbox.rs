//! Messages that are stored with a completion: what sources and callers are told, and what a consumer does with them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lambda_idempotency::{
    Call, Failure, Function, Operation, RunError, outbox::Message, source::Sqs, testing,
};
use serde_json::{Value, json};

use crate::{
    support::{World, batch, order},
    wire::Wire,
};

/// Publishes a message for each order.
async fn place(order: Value, call: Call) -> Result<(), Failure> {
    let body = json!({ "parcel": order["id"] }).to_string();
    call.publish(Message::new("parcels", body).with_attribute("tenant", "acme"))?;
    Ok(())
}

fn producer(world: &World, wire: &Arc<Wire>) -> Function {
    let idempotency = world.idempotency().with_sender(Arc::clone(wire));
    idempotency.on(Sqs::new(), &Operation::new("place-order").key("id"), place).unwrap()
}

async fn deliver(world: &World, function: &Function, event: &Value) -> Value {
    world.clock.drive(testing::invoke(function, event)).await.unwrap()
}

#[tokio::test]
async fn a_message_whose_messages_are_not_sent_is_named_and_its_handler_not_called_again() {
    let (world, wire) = (World::new(), Arc::<Wire>::default());
    let function = producer(&world, &wire);
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    wire.cut(true);
    let returned = deliver(&world, &function, &event).await;
    let names = ["m-1", "m-2"].map(|id| json!({ "itemIdentifier": id }));
    assert_eq!(returned, json!({ "batchItemFailures": names }));
    wire.cut(false);
    for _ in 0..2 {
        let answer = deliver(&world, &function, &event).await;
        assert_eq!(answer, json!({ "batchItemFailures": [] }));
    }
    assert_eq!(wire.sent(), 2);
}

#[tokio::test]
async fn run_says_that_messages_are_not_sent_and_sends_them_when_it_is_called_again() {
    let (world, wire) = (World::instant(), Arc::<Wire>::default());
    let idempotency = world.idempotency().with_sender(Arc::clone(&wire));
    let (operation, payload) = (Operation::new("place-order").key("id"), json!({ "id": "a" }));
    let calls = AtomicUsize::new(0);
    let run = || {
        let place = async |call: Call| {
            calls.fetch_add(1, Ordering::SeqCst);
            call.publish(Message::new("parcels", "{}"))?;
            Ok::<_, Failure>(42)
        };
        world.call(&idempotency, &operation, &payload, place)
    };
    wire.cut(true);
    for _ in 0..2 {
        let unsent = run().await.unwrap_err();
        assert!(matches!(unsent, RunError::Unsent(_)) && unsent.is_transient(), "{unsent}");
    }
    let kept = idempotency.kept_result::<u32, _>(&operation, &payload).await;
    assert_eq!(kept.unwrap(), Some(42), "the work is done");
    wire.cut(false);
    let run = run().await.unwrap();
    assert_eq!((run.result, run.replayed, run.recorded), (42, true, true));
    assert_eq!((calls.load(Ordering::SeqCst), wire.sent()), (1, 1));
}

#[tokio::test]
async fn without_a_sender_publishing_fails_the_handler_with_the_remedy() {
    let world = World::new();
    let function = world.with_handler(Sqs::new(), &Operation::new("place-order").key("id"), place);
    let answer = deliver(&world, &function, &batch([order("m-1", "a", "")])).await;
    assert_eq!(answer["batchItemFailures"][0]["itemIdentifier"], "m-1");
    let refused = Call::test("a").publish(Message::new("parcels", "{}")).unwrap_err();
    assert!(refused.to_string().contains("`Idempotency::with_sender`"), "{refused}");
}
