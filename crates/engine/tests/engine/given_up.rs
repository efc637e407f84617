//! Keys that are given up after so many lost attempts in a row.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a failing test"
)]

use lambda_idempotency_core::{outcome::Outcome, record::Status};

use crate::{
    killers::QUICK,
    queue::Queue,
    support::{failing, ok},
};

/// As each call of `run` is: a batch of one, without a count of receives.
#[tokio::test]
async fn a_key_that_has_lost_so_many_workers_in_a_row_fails_permanently() {
    let mut queue = Queue::new(1, &[0], QUICK);
    queue.counts = false;
    queue.world.policy.max_lost_attempts = Some(3);
    for _ in 0..6 {
        queue.receive(&[vec![0]], false).await;
    }
    let label = queue.messages[0].label;
    assert_eq!(queue.calls(0), 3);
    assert_eq!(queue.world.deliver(vec![ok(label)]).await, ["permanently_failed"]);
    let stored = queue.world.stored(label).await.unwrap();
    assert_eq!(
        (stored.status, stored.error_type.as_deref()),
        (Status::PermanentlyFailed, Some("lost attempts"))
    );
    assert_eq!(stored.lost_attempts, 3);
}

#[tokio::test]
async fn an_attempt_that_was_heard_of_ends_a_row_of_losses() {
    let mut queue = Queue::new(1, &[], QUICK);
    queue.world.policy.max_lost_attempts = Some(2);
    let label = queue.messages[0].label;
    for _ in 0..3 {
        queue.receive(&[vec![0]], true).await;
        assert_eq!(queue.world.deliver(vec![failing(label)]).await, ["failed"]);
    }
    assert_eq!(queue.world.deliver(vec![ok(label)]).await, ["executed"]);
}

#[tokio::test]
async fn the_delivery_that_gives_a_key_up_says_why() {
    let mut queue = Queue::new(1, &[0], QUICK);
    queue.world.policy.max_lost_attempts = Some(1);
    queue.receive(&[vec![0]], false).await;
    let label = queue.messages[0].label;
    let outcomes = queue.world.clock.drive(queue.world.invoke(vec![ok(label)])).await;
    let [Outcome::Failed { failure, permanent: true, .. }] = &*outcomes else {
        panic!("{outcomes:?}")
    };
    assert!(failure.message().contains("`max_lost_attempts`"), "{}", failure.message());
    queue.world.ledger.assert_never(label);
}
