//! A loop that makes a call for each result of a stream of calls.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use lambda_idempotency::{
    Failure, Idempotency, Operation, PostgresStore,
    clock::{Clock as _, SystemClock},
    policy::OnOutage,
};
use serde_json::json;

use crate::servers::Server;

async fn in_a_loop(outage: Option<OnOutage>) -> (Vec<String>, u32) {
    let server = Server::shared_postgres();
    let store = PostgresStore::builder(&server.url()).build().unwrap();
    // Half of it is less than it may take until the calls of the stream lose their connections.
    let soon = || SystemClock.now().plus(Duration::from_secs(6));
    // On a busy machine, new connections take seconds.
    let later = || SystemClock.now().plus(Duration::from_secs(60));
    store.migrate(later()).await.unwrap();
    let idempotency = Idempotency::new(store);
    let name = format!("notify-{}", outage.is_some());
    let mut notify = Operation::new(&*name).key("id");
    if let Some(outage) = outage {
        notify = notify.on_outage(outage);
    }
    let (idempotency, notify, effects) = (&idempotency, &notify, &AtomicU32::new(0));
    let effect = async |_: lambda_idempotency::Call| {
        effects.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Failure>(())
    };
    // Another process has done all three.
    let before = Idempotency::new(PostgresStore::builder(&server.url()).build().unwrap());
    for n in 0..3 {
        before.run(notify, &json!({ "id": n }), later(), effect).await.unwrap();
    }
    let charge = &Operation::new(format!("charge-{name}")).key("id");
    let mut calls = stream::iter(0..40)
        .map(|n| async move {
            let charged = async |_: lambda_idempotency::Call| Ok::<_, Failure>(());
            idempotency.run(charge, &json!({ "id": n }), later(), charged).await
        })
        .buffer_unordered(10);
    let mut errors = Vec::new();
    for n in 0..3 {
        let charged = calls.next().await.unwrap();
        errors.extend(charged.err().map(|error| format!("charge: {error}")));
        let notified = idempotency.run(notify, &json!({ "id": n }), soon(), effect).await;
        errors.extend(notified.err().map(|error| format!("notify: {error}")));
    }
    (errors, effects.load(Ordering::SeqCst))
}

/// Nor is it an outage: what is done is not done again, as if the server were out of reach.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_over_runs_can_run_others() {
    for outage in [None, Some(OnOutage::RunUnprotected)] {
        assert_eq!(in_a_loop(outage).await, (vec![], 3), "{outage:?}");
    }
}
