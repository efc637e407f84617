//! EventBridge Pipes: lists of records, answered as their own sources expect.

use std::time::Duration;

use lambda_idempotency_local::{Disposition, Source, StreamConfig};
use lambda_idempotency_tests::events::{
    active_mq, batch, batch_of, from_broker_in_a_pipe, in_a_pipe, kinesis, message_in_group, order,
    order_with,
};
use serde_json::json;

use super::{Effects, every_source, fails};
use crate::support::{World, history, outcomes, returned};

#[tokio::test]
async fn only_failed_messages_of_a_queue_are_delivered_again() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let list = in_a_pipe(batch_of([order("o-1"), fails("o-2", 1), order("o-3"), fails("o-4", 99)]));
    assert!(list.is_array());
    let report = world.send(&list).await;
    assert_eq!(report.invocations[0].source, Source::Pipe);
    assert_eq!(returned(&report.invocations[0].invocation.result), ["m-o-2", "m-o-4"]);
    assert_eq!(report.invocations[1].records.len(), 2, "only the returned records");
    let mut placed = effects.placed();
    assert_eq!(placed.pop().as_deref(), Some("o-2"));
    placed.sort();
    assert_eq!(placed, ["o-1", "o-3"], "once each");
    let dead: Vec<_> = report.dead_letters.iter().map(|dead| dead.record.as_deref()).collect();
    assert_eq!((dead, report.dead_letters[0].receive_count), (vec![Some("m-o-4")], 5));
}

#[tokio::test]
async fn the_order_of_a_fifo_queue_is_kept() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let report = world
        .send(&in_a_pipe(batch([
            message_in_group("m-1", "a", &fails("a-1", 1)),
            message_in_group("m-2", "a", &order("a-2")),
            message_in_group("m-3", "b", &order("b-1")),
        ])))
        .await;
    assert!(report.is_complete());
    assert_eq!(effects.placed(), ["b-1", "a-1", "a-2"]);
}

/// A process that dies gives no partial answer, so all records are delivered again. The processed ones
/// are replayed.
#[tokio::test]
async fn after_a_death_the_whole_batch_is_delivered_again_and_processed_records_are_replayed() {
    let effects = Effects::new();
    let world = World::outlasting_leases(effects.of(every_source())).await;
    let dies = order_with("o-2", json!({ "dieTimes": 1 }));
    let report = world.send(&in_a_pipe(batch_of([order("o-1"), dies, order("o-3")]))).await;
    assert!(report.is_complete());
    assert!(!report.invocations[0].invocation.result.is_response());
    assert_eq!(report.invocations[0].records.len(), 3);
    assert!(
        report.invocations[0]
            .records
            .iter()
            .all(|record| record.disposition == Disposition::Returned)
    );
    assert_eq!(report.invocations[1].records.len(), 3);
    let mut placed = effects.placed();
    placed.sort();
    assert_eq!(placed, ["o-1", "o-2", "o-3"], "once each: {:?}", history(&report));
}

#[tokio::test]
async fn failed_and_not_started_records_of_a_stream_are_named_by_event_id() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let report = world
        .send(&in_a_pipe(kinesis([
            (0, 1, "ann", order("ann-1")),
            (0, 2, "bob", fails("bob-1", 1)),
            (0, 3, "ann", order("ann-2")),
            (0, 4, "bob", order("bob-2")),
        ])))
        .await;
    assert!(report.is_complete());
    let named = returned(&report.invocations[0].invocation.result);
    assert!(named.len() == 2 && named.iter().all(|id| id.starts_with("shardId-")), "{named:?}");
    assert_eq!(report.invocations[1].records.len(), 2, "bob-1 and bob-2");
    let mut placed = effects.placed();
    assert!(placed.iter().position(|o| o == "bob-1") < placed.iter().position(|o| o == "bob-2"));
    placed.sort();
    assert_eq!(placed, ["ann-1", "ann-2", "bob-1", "bob-2"], "once each");
}

#[tokio::test]
async fn a_stream_record_that_always_fails_is_given_up() {
    let effects = Effects::new();
    let limits = StreamConfig {
        batch_size: 1,
        max_retries: 2,
        retry_delay: Duration::from_millis(10),
        ..StreamConfig::default()
    };
    let world = World::with(effects.of(every_source()), |local| local.streams(limits)).await;
    let list = kinesis([(0, 1, "ann", fails("ann-1", 99)), (0, 2, "bob", order("bob-1"))]);
    let report = world.send(&in_a_pipe(list)).await;
    assert_eq!(effects.placed(), ["bob-1"]);
    assert_eq!((report.dead_letters.len(), report.dead_letters[0].receive_count), (1, 3));
}

/// Pipes accept no partial answer for brokers.
#[tokio::test]
async fn the_whole_batch_of_a_broker_is_delivered_again_and_processed_records_are_replayed() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let messages = active_mq([("ID:1", order("o-1")), ("ID:2", fails("o-2", 1))]);
    let report = world.send(&from_broker_in_a_pipe(messages)).await;
    assert!(report.is_complete());
    assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"]);
    assert_eq!(effects.placed(), ["o-1", "o-2"]);
}
