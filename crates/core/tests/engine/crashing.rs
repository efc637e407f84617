//! The invocation dies at each of its awaits in turn; what it left is delivered again.

use std::time::Duration;

use lambda_idempotency_testkit::crashing::{crash_points, drop_after};

use crate::support::{World, failing, ok, rec};

fn batch() -> Vec<crate::support::Rec> {
    let waits = rec("b", |_, _| async {
        tokio::task::yield_now().await;
        Ok(())
    });
    vec![ok("a"), waits, failing("c"), ok("a")]
}

#[tokio::test]
async fn wherever_it_dies_nothing_is_lost_and_only_the_unrecorded_is_doubled() {
    let points = crash_points(async |polls| {
        let world = World::yielding();
        let died = drop_after(polls, world.invoke(batch())).await;
        let lived = died.is_some();
        let done_before = ["a", "b"].map(|label| world.ledger.executed(label));
        // Past the lease, the source delivers everything again, until all is acknowledged.
        world.clock.advance(Duration::from_mins(1));
        let outcomes = world.deliver(vec![ok("a"), ok("b"), ok("c"), ok("a")]).await;
        for (at, outcome) in outcomes.iter().enumerate() {
            assert!(
                ["executed", "replayed", "coalesced"].contains(outcome),
                "record {at} is {outcome} after a death at poll {polls}"
            );
        }
        for (label, before) in ["a", "b"].into_iter().zip(done_before) {
            let done = world.ledger.executed(label);
            assert!((1..=before + 1).contains(&done), "{label} was done {done} times");
        }
        let repeat = world.deliver(vec![ok("a"), ok("b"), ok("c")]).await;
        assert_eq!(repeat, ["replayed"; 3]);
        lived
    })
    .await;
    assert!(points >= 4, "{points} points");
}
