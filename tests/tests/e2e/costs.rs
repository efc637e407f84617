//! How many requests a batch costs. The handler awaits nothing, so that all of them are the
//! library's, and their number is the same each time: one future on one thread.

use lambda_idempotency_tests::events::{batch_of, order};

use crate::support::{World, idle, returned};

/// Requests for a fresh batch, and for the same batch again.
async fn requests(records: usize) -> (u64, u64) {
    let world = World::of(idle()).await;
    let event = batch_of((0..records).map(|number| order(&format!("o-{number}"))));
    let fresh = world.invoke(&event).await.unwrap();
    let duplicate = world.invoke(&event).await.unwrap();
    for (invocation, outcome) in [(&fresh, "executed"), (&duplicate, "replayed")] {
        assert!(returned(&invocation.result).is_empty());
        let told: Vec<_> = invocation.records.iter().map(|line| line.outcome.as_str()).collect();
        assert_eq!(told, vec![outcome; records]);
    }
    println!(
        "{records} records: fresh {:?}, duplicates {:?}",
        fresh.dynamodb.operations, duplicate.dynamodb.operations
    );
    (fresh.dynamodb.requests(), duplicate.dynamodb.requests())
}

#[tokio::test]
async fn one_record_costs_a_claim_and_a_completion() {
    assert_eq!(requests(1).await, (2, 1));
}

/// The claims in one request, the completions in another one.
#[tokio::test]
async fn a_batch_of_ten_costs_no_more_than_three_requests() {
    let (fresh, duplicates) = requests(10).await;
    assert!(fresh <= 3, "{fresh}");
    assert!(duplicates <= 2, "{duplicates}");
}

/// 25 keys fit into a request.
#[tokio::test]
async fn a_batch_of_a_hundred_costs_no_more_than_ten_requests() {
    let (fresh, duplicates) = requests(100).await;
    assert!(fresh <= 10, "{fresh}");
    assert!(duplicates <= 8, "{duplicates}");
}
