//! Records that are kept with their claims, where the store has no room for them.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use lambda_idempotency::{
    Call, Failure, Function, Idempotency, Operation, clock::Timestamp, source::Sqs,
};
use lambda_idempotency_core::{browse::Browse as _, record::IdempotencyRecord};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::{Value, json};

use crate::support::{World, batch, serve, with_body};

async fn stored(world: &World) -> IdempotencyRecord {
    let until = Timestamp::from_secs(2_000_000_000);
    let mut page = world.store.page(None, 9.try_into().unwrap(), until).await.unwrap();
    page.items.remove(0).1.unwrap()
}

/// A function over the store itself, and one whose store encrypts.
fn functions(world: &World, operation: &Operation) -> [(usize, Function); 2] {
    let key = EncryptionKey::new("k1", &[1; 32]).unwrap();
    let encrypts = Results::new(world.store.clone()).encrypt_with(LocalKeys::new(key));
    let encrypts = Idempotency::new(encrypts.clock(world.clock.clone()));
    let encrypts = encrypts.with_clock(world.clock.clone()).without_log();
    let of = |idempotency: Idempotency| {
        idempotency.on(Sqs::new().recoverable(1024 * 1024), operation, world.handler()).unwrap()
    };
    // Encrypted text is longer by a third.
    [(410 * 1024, of(world.idempotency())), (350 * 1024, of(encrypts))]
}

fn message(bytes: usize) -> Value {
    let body = json!({ "id": "o-1", "do": "", "text": "x".repeat(bytes) });
    batch([with_body("m-1", &body.to_string())])
}

#[tokio::test]
async fn a_record_for_which_the_store_has_no_room_is_processed_and_not_kept() {
    let operation = Operation::new("place").key("id");
    for at in 0..2 {
        let world = World::new();
        let (bytes, function) = functions(&world, &operation).into_iter().nth(at).unwrap();
        let event = message(bytes);
        for _ in 0..2 {
            assert!(world.returned(&function, &event).await.is_empty());
            world.ledger.assert_once("o-1");
        }
    }
}

#[tokio::test]
async fn its_claim_is_stored_without_it() {
    let operation = Operation::new("place").key("id");
    for (bytes, is_kept) in [(390 * 1024, true), (410 * 1024, false)] {
        let world = World::instant();
        let [(_, function), _] = functions(&world, &operation);
        let mut event = message(bytes);
        let body = event["Records"][0]["body"]
            .as_str()
            .unwrap()
            .replace("\"do\":\"\"", "\"do\":\"sleep\"");
        event["Records"][0]["body"] = body.into();
        let event = event.to_string();
        let running = serve(function, &event, world.context());
        assert!(world.clock.drive(drop_after(3, running)).await.is_none());
        assert_eq!(stored(&world).await.payload.is_some(), is_kept);
    }
}

/// The result of a step is worth more: without it, its effect would be made at every receive.
#[tokio::test]
async fn a_step_takes_the_room_of_the_record_that_is_kept() {
    let (world, payments) = (World::new(), Arc::<AtomicU32>::default());
    let counted = Arc::clone(&payments);
    let handler = move |_: Value, call: Call| {
        let payments = Arc::clone(&counted);
        async move {
            let pay = |_| async move {
                payments.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Failure>("x".repeat(30 * 1024))
            };
            call.step("pay", pay).await?;
            if call.failed_attempts() == 0 { Err(Failure::transient("not yet")) } else { Ok(()) }
        }
    };
    let operation = Operation::new("place").key("id");
    let function = world.with_handler(Sqs::new().recoverable(1024 * 1024), &operation, handler);
    let event = message(380 * 1024);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    let released = stored(&world).await;
    assert!(released.steps.is_some() && released.payload.is_none());
    assert_eq!((released.failed_attempts, released.lost_attempts), (1, 0));
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(payments.load(Ordering::Relaxed), 1);
}
