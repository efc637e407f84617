//! Operations whose keys only exclude each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_idempotency::{
    Call, ConfigError, Failure, Mode, OnTimeout, Operation, RunContext, source::Sqs,
};
use serde_json::{Value, json};

use crate::support::{World, batch, order};

fn imports() -> Operation {
    Operation::new("import").key("id").mode(Mode::Mutex)
}

#[test]
fn what_would_have_no_effect_is_refused() {
    assert_eq!(imports().check(), Ok(()));
    let kept = World::new().idempotency().on(
        Sqs::new().recoverable(64 * 1024),
        &imports(),
        async |_: Value, _: Call| Ok::<_, Failure>(()),
    );
    for (refused, setting) in [
        (imports().retention(Duration::from_hours(1)).check(), "retention"),
        (imports().fingerprint("amount").check(), "fingerprint"),
        (imports().on_timeout(OnTimeout::FailPermanently).check(), "on_timeout"),
        (imports().max_failed_attempts(3).check(), "max_failed_attempts"),
        (imports().max_lost_attempts(3).check(), "max_lost_attempts"),
        (kept.map(drop), "recoverable"),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ConfigError::Mode(_)), "{error}");
        let text = error.to_string();
        let parts = [
            "operation `import` has `Mode::Mutex`",
            &format!("`.{setting}(..)`"),
            "remove it, or choose another mode",
        ];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[tokio::test]
async fn each_message_is_processed_and_copies_one_after_the_other() {
    let (world, at_work) = (World::new(), Arc::new(AtomicUsize::new(0)));
    let processed = Arc::new(AtomicUsize::new(0));
    let counts = (Arc::clone(&at_work), Arc::clone(&processed));
    let function = world.idempotency().on(Sqs::new(), &imports(), move |order: Value, _: Call| {
        let (at_work, processed) = counts.clone();
        async move {
            if order["id"] == "a" {
                assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0, "they overlap");
                tokio::task::yield_now().await;
                at_work.fetch_sub(1, Ordering::SeqCst);
            }
            processed.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Failure>(())
        }
    });
    let function = function.unwrap();
    for _ in 0..2 {
        let event = batch([order("m-1", "a", ""), order("m-2", "a", ""), order("m-3", "b", "")]);
        let response = world.invoke(&function, &event).await.unwrap();
        assert_eq!(response, json!({ "batchItemFailures": [] }));
    }
    assert_eq!(processed.load(Ordering::SeqCst), 6);
    assert!(world.store.inner().is_empty(), "nothing is kept");
}

#[tokio::test]
async fn each_call_of_run_gets_its_own_result() {
    let (world, payload) = (World::instant(), json!({ "id": "a" }));
    let idempotency = world.idempotency();
    for expected in 1..4 {
        let context = RunContext::without_deadline();
        let operation = imports();
        let run = idempotency
            .run(&operation, &payload, context, async move |_: Call| Ok::<_, Failure>(expected));
        let run = run.await.unwrap();
        assert_eq!((run.result, run.replayed, run.recorded), (expected, false, false));
    }
}
