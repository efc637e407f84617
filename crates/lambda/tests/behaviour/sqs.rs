//! SQS: which messages are returned.

use lambda_idempotency::{source::Sqs, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::{Call, Fault, GuardKind};
use serde_json::json;

use crate::support::{World, batch, order, place, with_body};

#[tokio::test]
async fn only_failed_messages_are_returned() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let event = batch([
        order("m-1", "a", ""),
        order("m-2", "b", "fail once"),
        order("m-3", "c", ""),
        order("m-4", "d", "panic"),
        with_body("m-5", "{}"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-2", "m-4", "m-5"]);
    world.ledger.assert_each_once(["a", "c"]);
    let again = batch([order("m-2", "b", "fail once"), order("m-4", "d", "")]);
    assert!(world.returned(&function, &again).await.is_empty());
    world.ledger.assert_each_once(["a", "b", "c", "d"]);
    for id in ["b", "d"] {
        let executions = world.ledger.entry(id).executions;
        assert_eq!(executions, ["1"], "the handler of {id} got the number of failed attempts");
    }
}

#[tokio::test]
async fn a_message_that_is_twice_in_a_batch_is_named_once() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let twice = || order("m-1", "a", "fail");
    let event = batch([twice(), order("m-2", "b", ""), twice(), order("m-2", "b", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    world.ledger.assert_once("b");
}

#[tokio::test]
async fn another_payload_with_the_same_key_is_returned() {
    let world = World::new();
    let operation = place().fingerprint("amount");
    let function = world.on(Sqs::new(), &operation);
    let paid = |message, amount: u32| {
        with_body(message, &json!({ "id": "a", "amount": amount }).to_string())
    };
    assert!(world.returned(&function, &batch([paid("m-1", 5)])).await.is_empty());
    assert!(world.returned(&function, &batch([paid("m-2", 5)])).await.is_empty());
    assert_eq!(world.returned(&function, &batch([paid("m-3", 6)])).await, ["m-3"]);
    world.ledger.assert_once("a");
    let one_batch = batch([paid("m-4", 5), paid("m-5", 6), with_body("m-6", r#"{"id":"a"}"#)]);
    assert_eq!(world.returned(&function, &one_batch).await, ["m-5", "m-6"]);
}

#[tokio::test]
async fn a_message_that_failed_permanently_or_too_often_is_returned_and_not_tried_again() {
    for (action, operation, attempts) in
        [("give up", place(), 1), ("fail", place().max_failed_attempts(2), 2)]
    {
        let world = World::new();
        let function = world.on(Sqs::new(), &operation);
        for action in std::iter::repeat_n(action, attempts).chain([""]) {
            let event = batch([order("m-1", "a", action)]);
            assert_eq!(world.returned(&function, &event).await, ["m-1"]);
        }
        world.ledger.assert_never("a");
    }
}

#[tokio::test]
async fn an_outage_that_returns_all_fails_the_invocation_so_that_pollers_slow_down() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    world.store.outage();
    let event = batch([order("m-1", "a", ""), order("m-2", "b", "")]);
    let text = world.fails(&function, &event, "RecordsReturned").await;
    assert!(text.contains("2 of 2 sqs") && text.contains("m-1"), "{text}");
    assert_eq!(world.ledger.total(), 0);
    world.store.heal();
    assert!(world.returned(&function, &event).await.is_empty());
    world.ledger.assert_each_once(["a", "b"]);
}

#[tokio::test]
async fn an_outage_for_some_keys_returns_their_messages() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    world.invoke(&function, &batch([order("m-0", "b", "")])).await.unwrap();
    let [Call::Write { writes, .. }, ..] = &world.store.history()[..] else { panic!() };
    let done = writes[0].key.clone();
    let others = Fault::refuse(StoreErrorKind::Unavailable).for_keys(move |key| *key != done);
    world.store.inject(others.always());
    let event = batch([order("m-1", "a", ""), order("m-2", "b", ""), order("m-3", "c", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-3"]);
    world.ledger.assert_each_once(["b"]);
}

#[tokio::test]
async fn a_message_whose_completion_is_lost_is_acknowledged() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let refused = Fault::refuse(StoreErrorKind::Denied).guarded_by(GuardKind::OwnedBy);
    world.store.inject(refused.always());
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    world.ledger.assert_once("a");
}
