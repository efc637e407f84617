//! `run`: any function, executed once per key.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use lambda_idempotency::{
    Call, CallExt as _, Failure, Idempotency, Mode, Operation, Run, RunContext, RunError,
    clock::Timestamp,
    error::Rejection,
    policy::OnConflict,
    source::{DivertedRecord, Sqs},
    store::StoreErrorKind,
};
use lambda_idempotency_core::{browse::Browse as _, clock::Clock as _};
use lambda_idempotency_testkit::{crashing::drop_after, faults::Fault};
use serde_json::{Value, json};

use crate::support::{Noted, World, batch, order, place};

async fn run(
    world: &World,
    operation: &Operation,
    payload: &Value,
    result: Result<u32, Failure>,
) -> Result<Run<u32>, RunError> {
    world.call(&world.idempotency(), operation, payload, |_| async { result }).await
}

#[tokio::test]
async fn later_calls_get_the_first_result() {
    let world = World::new();
    let payload = json!({ "id": "a" });
    let first = run(&world, &place(), &payload, Ok(1)).await.unwrap();
    assert_eq!((first.result, first.replayed, first.recorded), (1, false, true));
    for _ in 0..2 {
        let later = run(&world, &place(), &payload, Ok(2)).await.unwrap();
        assert_eq!((later.result, later.replayed, later.recorded), (1, true, true));
    }
    world.clock.advance(Duration::from_secs(24 * 3600 + 2));
    let expired = run(&world, &place(), &payload, Ok(3)).await.unwrap();
    assert_eq!((expired.result, expired.replayed), (3, false));
}

#[tokio::test]
async fn without_an_expression_the_whole_payload_is_the_key() {
    let world = World::new();
    let whole = Operation::new("charge");
    for (payload, value) in [
        (json!({ "a": 1, "b": [2] }), 1),
        (json!({ "b": [2], "a": 1 }), 1),
        (json!({ "a": 1, "b": [2, null] }), 3),
        (json!("text"), 4),
    ] {
        assert_eq!(run(&world, &whole, &payload, Ok(value)).await.unwrap().result, value);
    }
    let nothing = run(&world, &whole, &Value::Null, Ok(1)).await.unwrap_err();
    assert!(matches!(nothing, RunError::Rejected(Rejection::Key { .. })), "{nothing:?}");
}

#[tokio::test]
async fn each_kind_of_error_has_its_own_variant() {
    let world = World::new();
    let operation = place().fingerprint("amount");
    let payload = |id: &str, amount: u32| json!({ "id": id, "amount": amount });

    let failed = run(&world, &operation, &payload("a", 1), Err("no".into())).await.unwrap_err();
    assert!(matches!(&failed, RunError::Failed(f) if !f.is_permanent()) && failed.is_transient());
    assert_eq!(run(&world, &operation, &payload("a", 1), Ok(7)).await.unwrap().result, 7);
    let mismatch = run(&world, &operation, &payload("a", 2), Ok(8)).await.unwrap_err();
    assert!(matches!(mismatch, RunError::Mismatch) && !mismatch.is_transient());

    let permanent = Failure::permanent(std::io::Error::other("s3cr3t"));
    let failed = run(&world, &operation, &payload("b", 1), Err(permanent)).await.unwrap_err();
    assert!(matches!(&failed, RunError::Failed(f) if f.is_permanent()) && !failed.is_transient());
    let failed_before = run(&world, &operation, &payload("b", 1), Ok(1)).await.unwrap_err();
    assert!(
        matches!(failed_before, RunError::PermanentlyFailed { .. })
            && !failed_before.is_transient()
    );
    let text = failed_before.to_string();
    assert!(text.contains("io") && !text.contains("s3cr3t"), "{text}");

    let no_key = run(&world, &operation, &json!({}), Ok(1)).await.unwrap_err();
    assert!(matches!(no_key, RunError::Rejected(Rejection::Key { .. })));
    let no_amount = run(&world, &operation, &json!({ "id": "c" }), Ok(1)).await.unwrap_err();
    assert!(matches!(no_amount, RunError::Rejected(Rejection::Fingerprint { .. })));

    world.store.outage();
    let store = run(&world, &operation, &payload("d", 1), Ok(1)).await.unwrap_err();
    assert!(matches!(store, RunError::Store(_)) && store.is_transient());
    world.store.heal();
    world.store.inject(Fault::refuse(StoreErrorKind::Denied));
    let denied = run(&world, &operation, &payload("d", 1), Ok(1)).await.unwrap_err();
    assert!(matches!(denied, RunError::Store(_)) && !denied.is_transient());
}

/// Claims the key; then the process is killed.
async fn claim_and_die(world: &World, operation: &Operation, payload: &Value, deadline: Timestamp) {
    let idempotency = world.idempotency();
    let forever = |_| std::future::pending::<Result<u32, Failure>>();
    let run = idempotency.run(operation, payload, &deadline, forever);
    assert!(drop_after(1, run).await.is_none());
}

#[tokio::test]
async fn a_key_that_is_claimed_elsewhere_is_busy_until_its_lease_ends() {
    let world = World::instant();
    let payload = json!({ "id": "a" });
    let deadline = world.clock.now().plus(Duration::from_secs(30));
    claim_and_die(&world, &place(), &payload, deadline).await;
    let busy = run(&world, &place(), &payload, Ok(1)).await.unwrap_err();
    assert!(busy.is_transient());
    let RunError::Busy { until } = busy else { panic!("{busy:?}") };
    assert!(until >= deadline && until <= deadline.plus(Duration::from_secs(3)));
    let patient = place().on_conflict(OnConflict::Wait { up_to: Duration::MAX });
    let attempts = |call: Call| async move { Ok((call.failed_attempts(), call.lost_attempts())) };
    let waited = world.call(&world.idempotency(), &patient, &payload, attempts).await.unwrap();
    assert_eq!(waited.result, (0, 1), "the other call is a lost attempt");
    assert!(world.clock.now() > until);
}

#[tokio::test]
async fn a_function_is_stopped_at_the_deadline() {
    let world = World::new();
    let idempotency = world.idempotency();
    let deadline = world.clock.now().plus(Duration::from_secs(10));
    let operation = place();
    let payload = json!({ "id": "a" });
    let slow = idempotency.run(&operation, &payload, &deadline, |call| {
        assert!(call.remaining().unwrap() < Duration::from_secs(10));
        let clock = world.clock.clone();
        async move {
            clock.sleep(Duration::from_secs(60)).await;
            Ok::<_, Failure>(1)
        }
    });
    let error = world.clock.drive(slow).await.unwrap_err();
    assert!(matches!(error, RunError::OutOfTime) && error.is_transient());
    assert!(world.clock.now() < deadline);
    let past = Timestamp::from_secs(1);
    let late = idempotency.run(&operation, &payload, &past, |_| async { Ok::<_, Failure>(1) });
    assert!(world.clock.drive(late).await.is_err());
}

/// If they were stopped together, the stop of the inner one could not be recorded, and its next attempt would take it for the
/// death of the process.
#[tokio::test]
async fn a_call_inside_a_handler_ends_before_the_handler_and_holds_its_key_as_long() {
    for has_sink in [false, true] {
        let (world, seen) = (World::new(), Noted::new());
        let (inner, noted) = (world.clone(), seen.clone());
        let handler = async move |payload: Value, call: Call| {
            let (idempotency, context) = (inner.idempotency(), call.context().unwrap().clone());
            let sleeps = async |_: Call| {
                noted.add(());
                inner.clock.sleep(Duration::from_hours(1)).await;
                Ok::<_, Failure>(1)
            };
            let charge = Operation::new("charge").key("id").max_lost_attempts(1);
            let run = idempotency.run(&charge, &payload, &context, sleeps).await;
            assert!(matches!(run, Err(RunError::OutOfTime)), "{run:?}");
            Err::<(), _>(Failure::from(run.unwrap_err()))
        };
        let sink = async |_: DivertedRecord| Ok::<_, Failure>(());
        let source = if has_sink { Sqs::new().divert(sink) } else { Sqs::new() };
        let function = world.with_handler(source, &place(), handler);
        for _ in 0..3 {
            let grace = world.clock.now().plus(Duration::from_secs(31));
            let event = batch([order("m-1", "a", "")]);
            assert_eq!(world.returned(&function, &event).await, ["m-1"]);
            let page = world.store.page(None, NonZeroUsize::MAX, grace).await.unwrap();
            let mut left = page.items.into_iter().map(|(_, left)| left.unwrap());
            assert!(left.any(|left| left.lease_until == Some(grace)));
            world.clock.advance(Duration::from_mins(1));
        }
        assert_eq!(seen.take().len(), 3, "has a sink: {has_sink}");
    }
}

#[tokio::test]
async fn operations_inside_operations_complete_their_own_keys() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let payload = json!({ "id": "a" });
    let (outer, inner) = (place(), Operation::new("mail").key("id"));
    let calls = AtomicU32::new(0);
    let once = |idempotency: Idempotency, fails: bool| {
        let (outer, inner, payload, calls) = (&outer, &inner, &payload, &calls);
        async move {
            let nested = idempotency.clone();
            let run =
                idempotency.run(outer, payload, &RunContext::without_deadline(), |_| async move {
                    let mail =
                        nested.run(inner, payload, &RunContext::without_deadline(), |_| async {
                            Ok::<_, Failure>(calls.fetch_add(1, Ordering::Relaxed))
                        });
                    let mail = mail.await?.result;
                    if fails { Err(Failure::transient("after the mail")) } else { Ok(mail + 10) }
                });
            run.await
        }
    };
    assert!(once(idempotency.clone(), true).await.is_err());
    assert_eq!(once(idempotency.clone(), false).await.unwrap().result, 10);
    assert!(once(idempotency, false).await.unwrap().replayed);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "one mail");
    assert_eq!(world.store.inner().len(), 2);
}

/// Key and fingerprint are made from the payload at the start of the call.
#[tokio::test]
async fn the_key_is_made_before_the_function_changes_its_payload() {
    let world = World::instant();
    let (idempotency, operation) = (world.idempotency(), place().fingerprint("@"));
    for replayed in [false, true] {
        let payload = std::sync::Mutex::new(json!({ "id": "a", "amount": 1 }));
        let changes = |_| {
            *payload.lock().unwrap() = json!({ "id": "b" });
            async { Ok(1) }
        };
        let run = world.call(&idempotency, &operation, &payload, changes).await;
        assert_eq!(run.unwrap().replayed, replayed);
    }
}

#[tokio::test]
async fn each_call_of_a_mutex_gets_its_own_result() {
    let imports = Operation::new("import").key("id").mode(Mode::Mutex);
    let (world, payload) = (World::instant(), json!({ "id": "a" }));
    let idempotency = world.idempotency();
    for expected in 1..4 {
        let run = world.run(&idempotency, &imports, &payload, expected).await.unwrap();
        assert_eq!((run.result, run.replayed, run.recorded), (expected, false, false));
        assert_eq!((run.done_at, run.answers_until), (None, None), "there is no completion");
    }
}
