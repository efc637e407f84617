//! Many workers and one key: only one of them holds it at a time.

use std::time::Duration;

use futures_util::future::join_all;
use lambda_idempotency_core::{
    clock::Clock,
    policy::{Lease, OnConflict},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Verdict},
};
use lambda_idempotency_testkit::faults::{Call, Fault, GuardKind};

use crate::support::{START, World, key, labels, rec, slow};

const SECOND: Duration = Duration::from_secs(1);
const WORKERS: usize = 32;

/// Runs the workers concurrently, each in its own process and all with one key, and returns the
/// labels of their outcomes, sorted.
async fn at_once(world: &World) -> Vec<&'static str> {
    let workers =
        (0..WORKERS).map(|_| async { labels(&world.invoke(vec![slow("a", 5 * SECOND)]).await) });
    let mut said = world.clock.drive(join_all(workers)).await.concat();
    said.sort_unstable();
    said
}

/// Asserts that one outcome is `label` and all others are `rest`.
#[track_caller]
fn assert_one(said: &[&str], label: &str, rest: &str) {
    let (ones, others): (Vec<&str>, Vec<&str>) = said.iter().partition(|said| **said == label);
    assert_eq!(ones.len(), 1, "{said:?}");
    assert!(others.iter().all(|other| *other == rest), "{said:?}");
}

fn lapsed(world: &World) {
    let mut gone = IdempotencyRecord::new(Status::InProgress, START.plus(3600 * SECOND));
    gone.owner = Some(Owner::from_bits(1));
    gone.lease_until = Some(START.minus(60 * SECOND));
    world.store.inner().insert(key("a"), gone);
}

#[tokio::test]
async fn of_many_claimants_one_runs_and_the_others_are_returned() {
    let world = World::yielding();
    assert_one(&at_once(&world).await, "executed", "busy");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn of_many_claimants_that_wait_all_get_the_result_of_one() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 60 * SECOND };
    assert_one(&at_once(&world).await, "executed", "replayed");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn of_many_workers_one_takes_over_an_expired_lease() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 60 * SECOND };
    lapsed(&world);
    assert_one(&at_once(&world).await, "executed", "replayed");
    assert_eq!(world.ledger.entry("a").executions, ["0 1"], "its handler sees one lost attempt");
}

/// One in three answers is lost, to claims and to completions; each worker recognises its own writes.
#[tokio::test]
async fn of_many_claimants_over_a_bad_network_one_runs() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 60 * SECOND };
    world.store.inject(Fault::lose_answer().one_in(3, 7));
    let said = at_once(&world).await;
    // A claim whose answer is lost is undone, and that delivery is returned to its source.
    let known = ["executed", "replayed", "unavailable"];
    assert!(said.iter().all(|said| known.contains(said)), "{said:?}");
    world.ledger.assert_once("a");
}

/// The store applied a renewal and its answer was lost. The next renewal finds the lease that the first
/// one wrote, and continues from it: the handler is not fenced.
#[tokio::test]
async fn a_later_renewal_continues_from_one_whose_answer_was_lost() {
    let mut world = World { timeout: Some(60 * SECOND), ..World::new() };
    world.policy.lease = Lease::Renewed { length: 6 * SECOND };
    world.store.inject(Fault::lose_answer().guarded_by(GuardKind::Unchanged));
    let long = rec("a", |world: World, _| async move {
        world.clock.sleep(10 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![long]).await, ["executed"]);
    world.ledger.assert_once("a");
    let mut renewals = Vec::new();
    for call in world.store.history() {
        let Call::Write { writes, verdicts: Some(verdicts) } = call else { continue };
        if let Guard::Unchanged(seen) = &writes[0].guard {
            let lease = writes[0].record.as_ref().unwrap().lease_until.unwrap();
            renewals.push((seen.lease_until.unwrap(), lease, verdicts[0].clone()));
        }
    }
    let [(_, lost, Verdict::Unknown(_)), (_, longer, Verdict::Found(Some(found))), again, ..] =
        &renewals[..]
    else {
        panic!("{renewals:?}")
    };
    assert!(longer > lost, "{renewals:?}");
    assert_eq!(found.lease_until, Some(*lost), "the renewal whose answer was lost was applied");
    assert!(matches!(again, (seen, _, Verdict::Written) if seen == lost), "{renewals:?}");
}
