//! How many requests a batch costs. The handler awaits nothing, so that all of them are the
//! library's, and their number is the same each time: one future on one thread.

use lambda_idempotency_local::Local;
use lambda_idempotency_tests::events::{batch_of, order};

use crate::support::{World, idle, returned};

/// Requests for a fresh batch, for the same batch again, and for the same once more in another process.
async fn requests(records: usize) -> [u64; 3] {
    let world = World::of(idle()).await;
    let event = batch_of((0..records).map(|number| order(&format!("o-{number}"))));
    let fresh = world.invoke(&event).await.unwrap();
    let warm = world.invoke(&event).await.unwrap();
    let other = Local::builder(idle()).dynamodb(world.dynamodb().clone()).start().await.unwrap();
    let cold = other.invoke(&event).await.unwrap();
    for (invocation, outcome) in [(&fresh, "executed"), (&warm, "replayed"), (&cold, "replayed")] {
        assert!(returned(&invocation.result).is_empty());
        let told: Vec<_> = invocation.records.iter().map(|line| line.outcome.as_str()).collect();
        assert_eq!(told, vec![outcome; records]);
    }
    let all = [fresh, warm, cold].map(|invocation| invocation.dynamodb);
    println!("{records} records: {:?}", all.each_ref().map(|usage| &usage.operations));
    all.map(|usage| usage.requests())
}

#[tokio::test]
async fn one_record_costs_a_claim_and_a_completion() {
    assert_eq!(requests(1).await, [2, 0, 1]);
}

/// The claims in one request, the completions in another one.
#[tokio::test]
async fn a_batch_of_ten_costs_no_more_than_three_requests() {
    let [fresh, warm, cold] = requests(10).await;
    assert!(fresh <= 3, "{fresh}");
    assert_eq!(warm, 0);
    assert!(cold <= 2, "{cold}");
}

/// 25 keys fit into a request.
#[tokio::test]
async fn a_batch_of_a_hundred_costs_no_more_than_ten_requests() {
    let [fresh, warm, cold] = requests(100).await;
    assert!(fresh <= 10, "{fresh}");
    assert_eq!(warm, 0);
    assert!(cold <= 8, "{cold}");
}
