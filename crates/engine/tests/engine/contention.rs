//! Many workers, one key: whatever they do at once, one of them has it.

use std::time::Duration;

use futures_util::future::join_all;
use lambda_idempotency_core::{
    clock::Clock,
    policy::{Lease, OnConflict},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Verdict},
};
use lambda_idempotency_testkit::faults::{Call, Fault, GuardKind};

use crate::support::{START, World, key, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);
const WORKERS: usize = 32;

/// The workers of one key, each a process of its own; what each says became of it, in order.
async fn at_once(world: &World) -> Vec<&'static str> {
    let workers =
        (0..WORKERS).map(|_| async { labels(&world.invoke(vec![slow("a", 5 * SECOND)]).await) });
    let mut said = world.clock.drive(join_all(workers)).await.concat();
    said.sort_unstable();
    said
}

/// One of `label`, and all others `rest`.
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
async fn of_many_claimants_one_runs_and_the_others_go_back() {
    let world = World::yielding();
    assert_one(&at_once(&world).await, "executed", "busy");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn of_many_claimants_that_wait_all_have_the_result_of_one() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 60 * SECOND };
    assert_one(&at_once(&world).await, "executed", "replayed");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn of_many_that_find_a_lapsed_key_one_takes_it_over() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 60 * SECOND };
    lapsed(&world);
    assert_one(&at_once(&world).await, "executed", "replayed");
    assert_eq!(world.ledger.entry("a").executions, ["0 1"], "and knows of the lost attempt");
}

/// Every answer is lost to somebody, claims and completions alike; each finds its own work again.
#[tokio::test]
async fn of_many_claimants_over_a_bad_network_one_runs() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 60 * SECOND };
    world.store.inject(Fault::lose_answer().one_in(3, 7));
    let said = at_once(&world).await;
    // A claim whose answer is lost is undone, and that delivery goes back to its source.
    let known = ["executed", "replayed", "unavailable"];
    assert!(said.iter().all(|said| known.contains(said)), "{said:?}");
    world.ledger.assert_once("a");
}

/// The renewal was applied, and nobody heard of it. The next one asks for longer, finds the lease that
/// the first has left, and goes on from there; the handler is not taken for one that lost its key.
#[tokio::test]
async fn a_longer_renewal_goes_on_from_the_one_that_was_lost() {
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
    assert_eq!(found.lease_until, Some(*lost), "the one whose answer was lost is there");
    assert!(matches!(again, (seen, _, Verdict::Written) if seen == lost), "{renewals:?}");
}

#[tokio::test]
async fn many_keys_at_once_do_not_meet() {
    let world = World::yielding();
    let workers = ["a", "b", "c", "d"].map(|label| world.invoke(vec![ok(label)]));
    let said = world.clock.drive(join_all(workers)).await.concat();
    assert_eq!(labels(&said), ["executed"; 4]);
    assert_eq!(world.ledger.total(), 4);
}
