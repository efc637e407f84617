//! A key is freed from code: its next delivery is new work.

use std::{sync::Arc, time::Duration};

use futures_util::future::join;
use lambda_idempotency::{
    Call, Failure, Idempotency, Mode, Operation, RunError, observe::Freed, outbox::Message,
    policy::OnConflict, source::Sqs,
};
use lambda_idempotency_core::{
    clock::Clock as _,
    record::{IdempotencyRecord, Owner, Status},
    store::StoreErrorKind,
};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};
use lambda_idempotency_testkit::faults::Fault;
use serde_json::{Value, json};

use crate::{
    diverting_failures::Taken,
    support::{World, batch, order},
    wire::Wire,
};

fn place() -> Operation {
    Operation::new("place-order").key("id").on_conflict(OnConflict::Return)
}

fn payload() -> Value {
    json!({ "id": "a" })
}

/// Calls a function that returns `number`; what the caller got, and whether it is a replay.
async fn run(world: &World, idempotency: &Idempotency, number: u32) -> (u32, bool) {
    let run = world.run(idempotency, &place(), &payload(), number).await.unwrap();
    (run.result, run.replayed)
}
#[tokio::test]
async fn a_freed_key_is_new_work_in_this_process_at_once() {
    let world = World::instant();
    let idempotency = world.idempotency();
    assert_eq!(run(&world, &idempotency, 1).await, (1, false));
    assert_eq!(run(&world, &idempotency, 2).await, (1, true), "from memory");
    let freed = idempotency.free(&place(), &json!({ "id": "a", "reason": "cancelled" })).await;
    assert_eq!(freed.unwrap(), Freed::Completed);
    assert_eq!(run(&world, &idempotency, 3).await, (3, false));
    assert_eq!(run(&world, &idempotency, 4).await, (3, true));
}

#[tokio::test]
async fn another_process_answers_from_memory_until_its_cache_ends() {
    let world = World::instant();
    let (one, other) = (world.idempotency(), world.idempotency());
    run(&world, &one, 1).await;
    assert_eq!(run(&world, &other, 2).await, (1, true));
    assert_eq!(one.free(&place(), &payload()).await.unwrap(), Freed::Completed);
    assert_eq!(run(&world, &other, 3).await, (1, true), "from memory");
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(run(&world, &other, 4).await, (4, false));
}

#[tokio::test]
async fn what_a_key_was_is_said() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let function = idempotency.on(Sqs::new(), &place(), world.handler()).unwrap();
    let free = async || idempotency.free(&place(), &payload()).await.unwrap();
    assert_eq!(free().await, Freed::WasFree);
    for (what, was) in [("fail", Freed::Unfinished), ("give up", Freed::PermanentlyFailed)] {
        let event = batch([order("m-1", "a", what)]);
        assert_eq!(world.returned(&function, &event).await, ["m-1"]);
        assert_eq!(free().await, was);
        assert_eq!(free().await, Freed::WasFree);
    }
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    world.clock.advance(Duration::from_hours(25));
    assert_eq!(free().await, Freed::WasFree, "it has expired");
}

#[tokio::test]
async fn the_key_of_another_application_is_not_freed() {
    let world = World::instant();
    run(&world, &world.idempotency().application("shop"), 1).await;
    for other in [world.idempotency(), world.idempotency().application("bank")] {
        let freed = other.free(&place(), &payload()).await;
        assert!(matches!(freed, Err(RunError::Foreign(_))), "{freed:?}");
    }
    let shop = world.idempotency().application("shop");
    assert_eq!(shop.free(&place(), &payload()).await.unwrap(), Freed::Completed);
}

#[tokio::test]
async fn messages_that_are_not_sent_are_not_lost() {
    let world = World::instant();
    let idempotency = world.idempotency().with_sender(Arc::new(Wire::down()));
    let publish = async |_: Value, call: Call| {
        call.publish(Message::new("parcels", "1"))?;
        Ok::<_, Failure>(())
    };
    let function = idempotency.on(Sqs::new(), &place(), publish).unwrap();
    assert_eq!(world.returned(&function, &batch([order("m-1", "a", "")])).await, ["m-1"]);
    let freed = idempotency.free(&place(), &payload()).await.unwrap_err();
    assert!(matches!(freed, RunError::Unsent(_)), "{freed:?}");
    assert!(freed.to_string().contains("would be lost"), "{freed}");
}

/// Replaces the record by one of another worker just before it is deleted.
fn overtaken(world: &World, status: Status) {
    let store = world.store.clone();
    let until = world.clock.now().plus(Duration::from_secs(60));
    world.store.before(move |writes| {
        for write in writes.iter().filter(|write| write.record.is_none()) {
            let mut record = IdempotencyRecord::new(status, until);
            record.owner = Some(Owner::from_bits(7));
            record.lease_until = Some(until);
            store.inner().insert(write.key.clone(), record);
        }
    });
}

#[tokio::test]
async fn a_record_that_changes_meanwhile_is_left() {
    for status in [Status::InProgress, Status::Completed] {
        let world = World::instant();
        let idempotency = world.idempotency();
        run(&world, &idempotency, 1).await;
        overtaken(&world, status);
        let freed = idempotency.free(&place(), &payload()).await.unwrap_err();
        match (status, &freed) {
            (Status::InProgress, RunError::Busy { .. }) => {}
            (Status::Completed, RunError::Store(error)) => {
                assert_eq!(error.kind(), StoreErrorKind::Contended);
                assert!(!error.may_have_applied());
            }
            _ => panic!("{freed:?}"),
        }
        assert_eq!(world.store.inner().len(), 1, "the other worker's record is there");
    }
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_is_not_forgotten_by_this_process() {
    let world = World::instant();
    let idempotency = world.idempotency();
    run(&world, &idempotency, 1).await;
    world.store.inject(Fault::lose_answer());
    let freed = idempotency.free(&place(), &payload()).await;
    let Err(RunError::Store(error)) = freed else { panic!("{freed:?}") };
    assert!(error.may_have_applied(), "{error}");
    assert_eq!(run(&world, &idempotency, 2).await, (2, false), "it was applied");
}

#[tokio::test]
async fn a_key_that_no_payload_has_cannot_be_freed() {
    let idempotency = World::new().idempotency();
    let freed = idempotency.free(&place(), &json!({})).await;
    assert!(matches!(freed, Err(RunError::Rejected(_))), "{freed:?}");
    let by_its_source = Operation::new("place-order");
    let freed = idempotency.free(&by_its_source, &payload()).await;
    assert!(matches!(freed, Err(RunError::Config(_))), "{freed:?}");
}

#[tokio::test]
async fn a_record_that_fails_after_its_key_was_freed_is_diverted_as_well() {
    let world = World::instant();
    let (idempotency, taken) = (world.idempotency(), Taken::default());
    let source = Sqs::new().divert_failures(taken.sink());
    let function = idempotency.on(source, &place(), world.handler()).unwrap();
    for round in 1..=2 {
        // The same message: somebody has moved it back.
        assert!(world.returned(&function, &batch([order("m-1", "a", "give up")])).await.is_empty());
        assert_eq!((taken.records().len(), taken.ids()), (round, 1));
        assert_eq!(idempotency.free(&place(), &payload()).await.unwrap(), Freed::PermanentlyFailed);
        world.clock.advance(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_key_that_is_freed_twice_at_once_is_free() {
    let world = World::new();
    let (one, other) = (world.idempotency(), world.idempotency());
    let function = one.on(Sqs::new(), &place(), world.handler()).unwrap();
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    let (operation, payload) = (place(), payload());
    let both = join(one.free(&operation, &payload), other.free(&operation, &payload));
    let (one, other) = world.clock.drive(both).await;
    assert!(matches!(one, Ok(Freed::Completed | Freed::WasFree)), "{one:?}");
    assert!(matches!(other, Ok(Freed::Completed | Freed::WasFree)), "{other:?}");
    assert!(world.store.inner().is_empty());
}

#[tokio::test]
async fn a_key_is_freed_in_each_mode_and_only_when_nobody_has_it() {
    for (mode, was) in [
        (Mode::Claim, Freed::Completed),
        (Mode::Transactional, Freed::Completed),
        (Mode::Optimistic, Freed::Completed),
        (Mode::Mutex, Freed::WasFree),
    ] {
        let world = World::instant();
        let (idempotency, operation) = (world.idempotency(), place().mode(mode));
        let inner = (idempotency.clone(), operation.clone());
        let function = async move |_: Call| {
            let during = inner.0.free(&inner.1, &payload()).await;
            match mode {
                Mode::Optimistic => {
                    assert_eq!(during.unwrap(), Freed::WasFree, "nothing is claimed")
                }
                _ => assert!(matches!(during, Err(RunError::Busy { .. })), "{during:?}"),
            }
            Ok::<_, Failure>(1)
        };
        let payload = payload();
        let run = world.call(&idempotency, &operation, &payload, function).await;
        assert_eq!(run.unwrap().result, 1);
        assert_eq!(idempotency.free(&operation, &payload).await.unwrap(), was, "{mode:?}");
        assert!(world.store.inner().is_empty());
    }
}

/// `records free` reads no results.
#[tokio::test]
async fn a_key_whose_result_cannot_be_read_is_not_freed() {
    let world = World::instant();
    let with_key = |byte: u8| {
        let keys = LocalKeys::new(EncryptionKey::new(format!("k{byte}"), &[byte; 32]).unwrap());
        let store = Results::new(world.store.clone()).encrypt_with(keys).clock(world.clock.clone());
        Idempotency::new(store).with_clock(world.clock.clone()).without_log()
    };
    let (operation, payload) = (place(), payload());
    let old = with_key(1);
    assert_eq!(world.run(&old, &operation, &payload, 1).await.unwrap().result, 1);
    let freed = with_key(2).free(&operation, &payload).await;
    let Err(RunError::Store(error)) = freed else { panic!("{freed:?}") };
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert_eq!(old.free(&operation, &payload).await.unwrap(), Freed::Completed);
}
