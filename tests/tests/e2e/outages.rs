//! DynamoDB is unavailable.

use std::time::Duration;

use lambda_idempotency_local::{Disposition, DynamoDb, Fault, SqsConfig};
use lambda_idempotency_tests::{
    CLAIMS,
    events::{batch_of, order},
};

use crate::support::{World, error, history, orders, outcomes, quick_queue};

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
