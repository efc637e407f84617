//! Operations whose keys only exclude each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_idempotency::{
    Call, ConfigError, Failure, Mode, Operation, policy::OnTimeout, source::Sqs,
};
use serde_json::{Value, json};

use crate::support::{Noted, World, batch, order};

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
    let (world, noted) = (World::new(), Noted::new());
    let (at_work, begun) = (Arc::new(AtomicUsize::new(0)), noted.clone());
    let handler = async move |order: Value, _: Call| {
        let is_a = usize::from(order["id"] == "a");
        assert_eq!(at_work.fetch_add(is_a, Ordering::SeqCst) * is_a, 0, "they overlap");
        tokio::task::yield_now().await;
        at_work.fetch_sub(is_a, Ordering::SeqCst);
        begun.add(order["id"].to_string());
        Ok::<_, Failure>(())
    };
    let function = world.with_handler(Sqs::new(), &imports(), handler);
    let event = batch([order("m-1", "a", ""), order("m-2", "a", ""), order("m-3", "b", "")]);
    for _ in 0..2 {
        assert!(world.returned(&function, &event).await.is_empty());
        assert_eq!(noted.take().len(), 3);
    }
    assert!(world.store.inner().is_empty(), "nothing is kept");
}
#[tokio::test]
async fn each_call_of_run_gets_its_own_result() {
    let (world, payload) = (World::instant(), json!({ "id": "a" }));
    let idempotency = world.idempotency();
    for expected in 1..4 {
        let run = world.run(&idempotency, &imports(), &payload, expected).await.unwrap();
        assert_eq!((run.result, run.replayed, run.recorded), (expected, false, false));
        assert_eq!((run.done_at, run.answers_until), (None, None), "there is no completion");
    }
}
