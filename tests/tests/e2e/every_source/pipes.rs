//! EventBridge Pipes: lists of records, answered as their own sources expect.

use lambda_idempotency_local::{Disposition, Source};
use lambda_idempotency_tests::events::{batch_of, in_a_pipe, order, order_with};
use serde_json::json;

use super::{Effects, every_source, fails};
use crate::support::{World, history, returned};

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
