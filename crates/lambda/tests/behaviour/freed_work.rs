//! What is left of work whose key was freed: what follows from the key, what was put aside, results that cannot be read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::join};
use lambda_idempotency::{
    Call, Failure, Idempotency, Mode, Operation, RunError,
    observe::Freed,
    outbox::{MemorySender, Message},
    source::Sqs,
};
use lambda_idempotency_core::{
    clock::Clock as _,
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store as _, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};
use lambda_idempotency_testkit::faults::Fault;
use serde_json::{Value, json};

use crate::{
    diverting_failures::Aside,
    support::{World, batch, order},
};

fn place() -> Operation {
    Operation::new("place-order").key("id")
}

fn payload() -> Value {
    json!({ "id": "a" })
}

async fn freed(idempotency: &Idempotency) -> Freed {
    idempotency.free(&place(), &payload()).await.unwrap()
}

/// A system that deduplicates by them takes the new work for the old. So does the one whose key expires.
#[tokio::test]
async fn the_subkeys_and_the_ids_of_messages_of_new_work_are_those_of_the_freed_work() {
    let world = World::instant();
    let sender = Arc::<MemorySender>::default();
    let idempotency = world.idempotency().with_sender(Arc::clone(&sender));
    let placed = async |call: Call| {
        call.publish(Message::new("parcels", "1"))?;
        Ok::<_, Failure>((call.subkey("charge"), call.fence()))
    };
    let run = async || {
        let run = world.call(&idempotency, &place(), &payload(), placed).await.unwrap();
        assert!(!run.replayed);
        run.result
    };
    let (subkey, fence) = run().await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(freed(&idempotency).await, Freed::Completed);
    let (again, later) = run().await;
    assert_eq!(again, subkey);
    assert!(later > fence, "a system that compares fences accepts the new work");
    let sent = sender.sent();
    assert_eq!((sent.len(), sent[0].id()), (2, sent[1].id()));
}

#[tokio::test]
async fn the_steps_of_freed_work_are_forgotten() {
    let world = World::instant();
    let paid = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&paid);
    let handler = async move |_: Value, call: Call| {
        let pay = async |_| Ok(counted.fetch_add(1, Ordering::Relaxed));
        call.step("pay", pay).await?;
        Err::<(), _>(Failure::transient("no parcels"))
    };
    let idempotency = world.idempotency();
    let function = idempotency.on(Sqs::new(), &place(), handler).unwrap();
    for (was, payments) in [(None, 1), (None, 1), (Some(Freed::Unfinished), 2)] {
        if let Some(was) = was {
            assert_eq!(freed(&idempotency).await, was);
        }
        assert_eq!(world.returned(&function, &batch([order("m-1", "a", "")])).await, ["m-1"]);
        assert_eq!(paid.load(Ordering::Relaxed), payments);
    }
}

#[tokio::test]
async fn a_record_that_fails_after_its_key_was_freed_is_put_aside_as_well() {
    let world = World::instant();
    let (idempotency, aside) = (world.idempotency(), Aside::default());
    let source = Sqs::new().divert_failures(aside.sink());
    let function = idempotency.on(source, &place(), world.handler()).unwrap();
    for round in 1..=2 {
        // The same message: somebody has moved it back.
        assert!(world.returned(&function, &batch([order("m-1", "a", "give up")])).await.is_empty());
        assert_eq!((aside.records().len(), aside.ids()), (round, 1));
        assert_eq!(freed(&idempotency).await, Freed::PermanentlyFailed);
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

/// `records evict` reads no results.
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

/// A limit: the worker that did the work got no answer to its completion, and another process frees the key before the
/// worker sends it again. To the worker, its claim was deleted, as by a TTL.
#[tokio::test]
async fn a_key_that_is_freed_while_its_completion_is_in_doubt_is_completed_again() {
    let world = World::instant();
    let sent = Arc::<AtomicUsize>::default();
    world.store.inject(Fault::lose_answer().that_writes(Status::Completed));
    let (counted, store, until) = (Arc::clone(&sent), world.store.clone(), world.clock.now());
    world.store.before(move |writes| {
        for write in writes {
            let completes = |record: &IdempotencyRecord| record.status == Status::Completed;
            if write.record.as_ref().is_some_and(completes)
                && counted.fetch_add(1, Ordering::Relaxed) == 1
            {
                let key = std::slice::from_ref(&write.key);
                let found = store.inner().read(key, until).now_or_never().unwrap().remove(0);
                let seen = RecordVersion::of(&found.unwrap().unwrap());
                let freed = [Write::new(write.key.clone(), Guard::Unchanged(seen), None)];
                let verdicts = store.inner().write(&freed, until).now_or_never().unwrap();
                assert!(matches!(verdicts[..], [Verdict::Written]));
            }
        }
    });
    let idempotency = world.idempotency();
    let function = idempotency.on(Sqs::new(), &place(), world.handler()).unwrap();
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    assert!(sent.load(Ordering::Relaxed) > 1);
    assert_eq!(freed(&idempotency).await, Freed::Completed, "and now it is not sent again");
    assert!(world.store.inner().is_empty());
}
