//! DynamoDB is unavailable, or its answers are lost or differ from what it did.

use std::time::Duration;

use lambda_idempotency_local::{Apply, Disposition, DynamoDb, Fault, Gate, SqsConfig};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch_of, event, notification, order},
};

use crate::support::{World, error, history, orders, outcomes, quick_queue, returned};

/// Short enough not to wait long for a store that is down.
const TIMEOUT: Duration = Duration::from_secs(4);

#[tokio::test]
async fn without_a_store_the_whole_invocation_fails_and_nothing_is_lost() {
    let dynamodb = DynamoDb::start().await.unwrap();
    dynamodb.faults().add(Fault::unavailable().table(CLAIMS));
    let healed = dynamodb.clone();
    let world = World::with(orders().timeout(TIMEOUT), |local| {
        local.dynamodb(dynamodb).on_invocation(move |_| healed.faults().clear())
    })
    .await;
    let report = world.send(&batch_of(["o-1", "o-2", "o-3"].map(order))).await;
    assert_eq!(outcomes(&report), [["unavailable"; 3], ["executed"; 3]].concat());
    let (kind, text) = error(&report.invocations[0].invocation.result);
    assert_eq!(kind, "Idempotency.RecordsReturned");
    assert!(text.contains("3 of 3 sqs record(s)") && text.contains("m-o-1"), "{text}");
    assert!(report.is_complete());
    world.assert_placed_once(["o-1", "o-2", "o-3"]);
}

#[tokio::test]
async fn without_a_store_a_notification_and_an_event_fail_and_are_retried() {
    let events = [notification("n-1", &order("o-1")), event("e-1", &order("o-1"))];
    for event in events {
        let dynamodb = DynamoDb::start().await.unwrap();
        dynamodb.faults().add(Fault::unavailable().table(CLAIMS));
        let healed = dynamodb.clone();
        let world = World::with(orders().timeout(TIMEOUT), |local| {
            local.dynamodb(dynamodb).on_invocation(move |_| healed.faults().clear())
        })
        .await;
        let report = world.send(&event).await;
        assert_eq!(outcomes(&report), ["unavailable", "executed"]);
        world.assert_placed_once(["o-1"]);
    }
}

/// One claim of two never succeeds: its record is returned, and the other one is processed.
#[tokio::test]
async fn only_the_record_whose_claim_fails_is_returned() {
    const TIMEOUT: Duration = Duration::from_secs(12);
    let world = World::of(orders().timeout(TIMEOUT)).await.warmed().await;
    let faults = world.dynamodb().faults();
    // Each retry of this claim alone meets the second fault.
    faults.add(Fault::throttle_members([1]));
    let down = faults.add(Fault::throttled().on("PutItem").table(CLAIMS));
    let gate = Gate::new();
    faults.add(Fault::hold(Apply::Before, &gate).table(ORDERS).times(1));
    let handed_over = tokio::time::Instant::now();
    let heal = async {
        gate.reached().await;
        // The claim is tried again while the other record's handler runs. Claiming gives up before half
        // of the invocation is over.
        tokio::time::sleep_until(handed_over + TIMEOUT * 3 / 4).await;
        faults.remove(down);
        gate.open();
    };
    let event = batch_of(["o-1", "o-2"].map(order));
    let (invocation, ()) = tokio::join!(world.invoke(&event), heal);
    assert_eq!(returned(&invocation.unwrap().result), ["m-o-2"]);
    world.assert_placed_once(["o-1"]);
    faults.clear();
    let report = world.send(&event).await;
    assert_eq!(outcomes(&report), ["replayed", "executed"]);
    world.assert_placed_once(["o-1", "o-2"]);
}

/// The claim is applied and its answer lost: the retry finds its own token, so the claim has won.
#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_recognised() {
    for fault in [Fault::internal_error(Apply::After), Fault::hang_up(Apply::After)] {
        for names in [&["o-1"][..], &["o-1", "o-2", "o-3"]] {
            let world = World::new().await;
            world.dynamodb().faults().add(fault.clone().table(CLAIMS).times(1));
            let report = world.send(&batch_of(names.iter().copied().map(order))).await;
            assert_eq!(outcomes(&report), vec!["executed"; names.len()], "{fault:?}");
            world.assert_placed_once(names.iter().copied());
        }
    }
}

#[tokio::test]
async fn a_completion_whose_answer_is_lost_counts() {
    let lost = [
        Fault::internal_error(Apply::After),
        Fault::internal_error(Apply::Before),
        Fault::hang_up(Apply::After),
        Fault::hang_up(Apply::Before),
        Fault::throttled(),
    ];
    for fault in lost {
        for names in [&["o-1"][..], &["o-1", "o-2", "o-3"]] {
            let world = World::new().await;
            // The first request claims, alone or together; the others complete.
            world.dynamodb().faults().add(fault.clone().table(CLAIMS).skip(1).times(2));
            let event = batch_of(names.iter().copied().map(order));
            let report = world.send(&event).await;
            assert_eq!(outcomes(&report), vec!["executed"; names.len()], "{fault:?}");
            let report = world.send(&event).await;
            assert_eq!(outcomes(&report), vec!["replayed"; names.len()], "{fault:?}");
            world.assert_placed_once(names.iter().copied());
        }
    }
}

#[tokio::test]
async fn members_that_are_throttled_are_sent_again() {
    let world = World::new().await;
    // First some of the claims, then some of the completions that share a request.
    world.dynamodb().faults().add(Fault::throttle_members([0, 2, 5]).times(4));
    let names: Vec<String> = (0..10).map(|number| format!("o-{number}")).collect();
    let event = batch_of(names.iter().map(|name| order(name)));
    let report = world.send(&event).await;
    assert_eq!(outcomes(&report), ["executed"; 10]);
    world.assert_placed_once(names.iter().map(String::as_str));
}

/// The order is placed and the store stays down beyond the deadline. Returning the record would certainly
/// place the order again, so it is acknowledged with an error in the log; only a later duplicate is at risk.
#[tokio::test]
async fn a_completion_that_cannot_be_recorded_in_time_is_acknowledged_and_logged() {
    let queue = SqsConfig { visibility: Some(Duration::from_secs(10)), ..quick_queue() };
    let world = World::with(orders().timeout(TIMEOUT), |local| local.sqs(queue)).await;
    world.dynamodb().faults().add(Fault::unavailable().table(CLAIMS).skip(1));
    let report = world.send(&batch_of([order("o-1")])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "completion_lost")]);
    assert_eq!(report.dispositions(Disposition::Done), 1);
    let line = report.records().next().unwrap().line.clone().unwrap();
    assert!(line.problem.is_some(), "{line:?}");
    world.assert_placed_once(["o-1"]);
    assert_eq!(world.claims()[0]["status"]["S"], "INPROGRESS", "the lease is kept until it ends");
}
