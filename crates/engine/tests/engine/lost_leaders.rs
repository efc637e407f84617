//! Invocations of one process whose leader fails, declines, or ends without a result.

use std::time::Duration;

use futures_util::future::{join, join_all};
use lambda_idempotency_core::{clock::Clock, failure::Failure, policy::OnConflict, store::Write};
use lambda_idempotency_testkit::{
    crashing::{crash_points, drop_after},
    faults::Fault,
};

use super::in_process::{SECOND, at_once};
use crate::support::{START, World, declining, failing, key, labels, ok, rec};

#[tokio::test]
async fn if_the_leader_fails_the_next_one_tries() {
    let world = World::yielding();
    let invocations = [vec![failing("a")], vec![failing("a")], vec![ok("a")], vec![ok("a")]];
    let mut outcomes = at_once(&world, invocations).await.concat();
    outcomes.sort_unstable();
    assert!(outcomes.starts_with(&["executed"]), "{outcomes:?}");
    assert!(outcomes[1..].iter().all(|outcome| ["failed", "replayed"].contains(outcome)));
    world.ledger.assert_once("a");
    let failed = outcomes.iter().filter(|outcome| **outcome == "failed").count();
    // A first claim and a release; then for each failure a refused claim, a takeover and a release.
    assert_eq!(world.requests(), 2 + 3 * failed);
}

#[tokio::test]
async fn if_the_leader_declines_the_next_one_tries() {
    let mut world = World::yielding();
    world.policy.max_failed_attempts = Some(1);
    let invocations = [vec![declining("a")], vec![ok("a")], vec![ok("a")]];
    let mut outcomes = at_once(&world, invocations).await.concat();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["declined", "executed", "replayed"]);
    world.ledger.assert_once("a");
}

/// The leader's claim had no answer, and its retry met the claim. Its handler failed, and the release had no
/// answer either.
#[tokio::test]
async fn with_skip_on_conflict_a_follower_is_not_acknowledged_for_the_claim_of_a_leader_that_failed()
 {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Skip;
    let claims = |write: &Write| write.record.as_ref().is_some_and(|r| r.owner.is_some());
    let releases = |write: &Write| write.record.as_ref().is_some_and(|r| r.owner.is_none());
    let late = Fault::delay_answer(world.clock.clone(), 20 * SECOND);
    world.store.inject(late.for_writes(claims).times(1));
    world.store.inject(Fault::lose_answer().for_key(&key("a")).for_writes(releases).always());
    let engine = world.engine();
    let fails = rec("a", |world: World, _| async move {
        world.clock.sleep(26 * SECOND).await;
        Err(Failure::transient("no luck"))
    });
    // Only in a batch of several is a claim sent again soon.
    let leader = world.invoke_by(&engine, vec![fails, ok("b")]);
    let follower = async {
        world.clock.sleep(Duration::from_millis(28_500)).await;
        world.invoke_by(&engine, vec![ok("a")]).await
    };
    let (first, second) = world.clock.drive(join(leader, follower)).await;
    assert_eq!([labels(&first), labels(&second)].concat(), ["failed", "executed", "executed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_cancelled_leader_keeps_its_lease_and_its_followers_claim_later() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    world.timeout = Some(100 * SECOND);
    let engine = world.engine();
    let leader = async {
        let short = World { timeout: Some(10 * SECOND), ..world.clone() };
        let forever = rec("a", |_, _| std::future::pending());
        drop_after(3, short.invoke_by(&engine, vec![forever])).await
    };
    let again = || {
        rec("a", |_, call| async move {
            assert_eq!(call.lost_attempts(), 1);
            Ok(())
        })
    };
    let followers = [again(), again()].map(|record| world.invoke_by(&engine, vec![record]));
    let (died, outcomes) = world.clock.drive(join(leader, join_all(followers))).await;
    assert!(died.is_none());
    let mut outcomes: Vec<_> = outcomes.iter().flat_map(|outcomes| labels(outcomes)).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["executed", "replayed"]);
    // 10 s of timeout, 1 s of lease grace, 1 s of clock skew, and the pause between two claims.
    let waited = world.clock.now().since(START);
    assert!(12 * SECOND < waited && waited <= 13 * SECOND, "{waited:?}");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn wherever_a_leader_is_dropped_its_followers_finish() {
    let points = crash_points(async |polls| {
        let mut world = World::yielding();
        world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
        let engine = world.engine();
        let batch = || {
            let waits = rec("b", |_, _| async {
                tokio::task::yield_now().await;
                Ok(())
            });
            vec![ok("a"), waits, ok("c")]
        };
        let victim = async {
            let short = World { timeout: Some(5 * SECOND), ..world.clone() };
            drop_after(polls, short.invoke_by(&engine, batch())).await.is_some()
        };
        let others = join_all((0..3).map(|_| world.invoke_by(&engine, batch())));
        let (lived, outcomes) = world.clock.drive(join(victim, others)).await;
        for outcome in outcomes.iter().flat_map(|outcomes| labels(outcomes)) {
            assert!(["executed", "replayed"].contains(&outcome), "{outcome}, after {polls} polls");
        }
        for label in ["a", "b", "c"] {
            let done = world.ledger.executed(label);
            assert!((1..=2).contains(&done), "{label} ran {done} times, after {polls} polls");
        }
        lived
    })
    .await;
    assert!(points >= 4, "{points} points");
}

#[tokio::test]
async fn a_wait_for_a_leader_that_is_stopped_ends_with_its_lease() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let engine = world.engine();
    world.timeout = Some(10 * SECOND);
    let forever = world.invoke_by(&engine, vec![rec("a", |_, _| std::future::pending())]);
    let patient = World { timeout: Some(30 * SECOND), ..world.clone() };
    let follower = patient.invoke_by(&engine, vec![ok("a")]);
    let (first, outcomes) = world.clock.drive(join(forever, follower)).await;
    assert_eq!(labels(&first), ["timed_out"], "a handler does not run without a lease");
    assert_eq!(labels(&outcomes), ["executed"], "the follower takes the key over");
    // 10 s of timeout, 1 s of lease grace, and 1 s of clock skew.
    assert_eq!(world.clock.now(), START.plus(Duration::from_millis(12_001)));
}
