//! Only the failed record is returned, and the others are not processed again.

use lambda_idempotency_local::{Apply, Disposition, Fault, SqsConfig};
use lambda_idempotency_tests::ORDERS;
use lambda_idempotency_tests::events::{batch, batch_of, message, order, order_with};
use serde_json::json;

use crate::support::{World, history, orders, quick_queue, returned, scripted_orders};

#[tokio::test]
async fn only_the_failed_record_is_returned_and_its_next_delivery_places_it() {
    let world = World::of(scripted_orders()).await;
    let failing = order_with("o-2", json!({ "failTimes": 2 }));
    let report = world.send(&batch_of([order("o-1"), failing, order("o-3")])).await;
    assert_eq!(
        history(&report),
        [
            ("m-o-1", 1, "executed"),
            ("m-o-2", 1, "failed"),
            ("m-o-3", 1, "executed"),
            ("m-o-2", 2, "failed"),
            ("m-o-2", 3, "executed"),
        ]
    );
    assert_eq!(returned(&report.invocations[0].invocation.result), ["m-o-2"]);
    let last = report.records().last().unwrap().line.clone().unwrap();
    assert_eq!((last.failed_attempts, last.lost_attempts), (2, 0));
    world.assert_placed_once(["o-1", "o-2", "o-3"]);
}

#[tokio::test]
async fn a_panic_fails_only_its_record() {
    let world = World::of(scripted_orders()).await;
    let panicking = order_with("o-2", json!({ "panicTimes": 1 }));
    let report = world.send(&batch_of([order("o-1"), panicking, order("o-3")])).await;
    assert_eq!(
        history(&report),
        [
            ("m-o-1", 1, "executed"),
            ("m-o-2", 1, "failed"),
            ("m-o-3", 1, "executed"),
            ("m-o-2", 2, "executed"),
        ]
    );
    let processes: Vec<_> = report.invocations.iter().map(|i| i.invocation.pid).collect();
    assert_eq!(processes[0], processes[1], "the process survived");
    world.assert_placed_once(["o-1", "o-2", "o-3"]);
}

#[tokio::test]
async fn a_permanent_failure_is_recorded_and_ends_in_the_dead_letter_queue() {
    let queue = SqsConfig { max_receive_count: 3, ..quick_queue() };
    let world = World::with(orders(), |local| local.sqs(queue)).await;
    let nothing = order_with("o-1", json!({ "quantity": 0 }));
    let report =
        world.send(&batch([message("m-1", &nothing), message("m-2", &order("o-2"))])).await;
    assert_eq!(
        history(&report),
        [
            ("m-1", 1, "failed"),
            ("m-2", 1, "executed"),
            ("m-1", 2, "permanently_failed"),
            ("m-1", 3, "permanently_failed"),
        ]
    );
    let dead = &report.dead_letters;
    assert_eq!((dead.len(), dead[0].record.as_deref()), (1, Some("m-1")));

    // Its duplicate fails in the same way, at once.
    let again = world.send(&batch([message("m-9", &nothing)])).await;
    assert_eq!(history(&again)[0], ("m-9", 1, "permanently_failed"));
    assert_eq!(again.dispositions(Disposition::DeadLettered), 1);
    world.assert_placed_once(["o-2"]);
}

#[tokio::test]
async fn a_failing_orders_table_fails_only_its_records() {
    let world = World::new().await;
    let fault = Fault::error(Apply::Before, 400, "ValidationException").table(ORDERS).times(1);
    world.dynamodb().faults().add(fault);
    let report = world.send(&batch_of(["o-1", "o-2"].map(order))).await;
    assert_eq!((report.records().count(), report.dispositions(Disposition::Returned)), (3, 1));
    assert!(report.is_complete());
    world.assert_placed_once(["o-1", "o-2"]);
}
