//! Orders whose processes die, with the records in a server: each is placed once, and none is lost.

use std::time::Duration;

use lambda_idempotency::{
    PostgresStore,
    clock::{Clock as _, SystemClock},
};
use lambda_idempotency_tests::events::{batch_of, order, order_with};
use serde_json::json;

use crate::{
    servers::Server,
    support::{World, history, outcomes, scripted_orders},
};

/// The process dies after the claim and before the effect. A takeover waits for the end of the lease.
async fn an_order_survives(store: &str) {
    let function = scripted_orders().env("IDEMPOTENCY_TABLE", "").env("IDEMPOTENCY_STORE", store);
    let world = World::outlasting_leases(function).await;
    let deadly = order_with("o-1", json!({ "dieTimes": 1 }));
    let report = world.send(&batch_of([deadly.clone()])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    let line = report.records().last().unwrap().line.as_ref().unwrap();
    assert_eq!(line.lost_attempts, 1, "its handler is told");
    let again = world.send(&batch_of([deadly, order("o-2")])).await;
    assert_eq!(outcomes(&again), ["replayed", "executed"]);
    world.assert_placed_once(["o-1", "o-2"]);
    assert!(world.claims().is_empty(), "the records are in the server");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_process_dies_is_placed_once_with_its_record_in_postgres() {
    let server = Server::postgres(&[]);
    let store = PostgresStore::new(&server.url()).unwrap();
    store.migrate(SystemClock.now().plus(Duration::from_secs(60))).await.unwrap();
    an_order_survives(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_process_dies_is_placed_once_with_its_record_in_redis() {
    let server = Server::redis(&[]);
    an_order_survives(&server.url()).await;
}
