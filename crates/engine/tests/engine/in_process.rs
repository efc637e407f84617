//! Several concurrent invocations of one process, as on Managed Instances: clones of one engine. A key that another of
//! them works on is busy, as one that another process works on.

use std::time::Duration;

use futures_util::future::{join, join_all};
use lambda_idempotency_core::{clock::Clock, policy::OnConflict};
use lambda_idempotency_engine::completed::Cache;
use lambda_idempotency_testkit::crashing::drop_after;

use crate::support::{Rec, START, World, hanging, labels, ok, rec, slow};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A world whose records wait for a busy key.
fn patient() -> World {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    world
}

/// Runs invocations of one process concurrently, and returns the labels of their outcomes.
pub(crate) async fn at_once(
    world: &World,
    invocations: impl IntoIterator<Item = Vec<Rec>>,
) -> Vec<Vec<&'static str>> {
    let engine = world.engine();
    let all = invocations.into_iter().map(|records| world.invoke_by(&engine, records));
    let outcomes = world.clock.drive(join_all(all)).await;
    outcomes.iter().map(|outcomes| labels(outcomes)).collect()
}

#[tokio::test]
async fn one_invocation_runs_the_handler_and_the_others_get_its_result() {
    for cache in [Cache::default(), Cache::off()] {
        let world = patient();
        let engine = world.engine().with_cache(cache);
        let all = (0..8).map(|_| world.invoke_by(&engine, vec![slow("a", SECOND)]));
        let outcomes = world.clock.drive(join_all(all)).await.concat();
        let mut labels = labels(&outcomes);
        labels.sort_unstable();
        assert_eq!((labels[0], &labels[1..]), ("executed", &["replayed"; 7][..]));
        world.ledger.assert_once("a");
    }
}

#[tokio::test]
async fn a_queue_record_whose_key_is_busy_is_returned_at_once() {
    let world = World::yielding();
    let batch = vec![ok("a"), ok("b"), slow("c", SECOND)];
    let outcomes = at_once(&world, [vec![slow("a", 10 * SECOND)], batch]).await;
    assert_eq!(outcomes, [vec!["executed"], vec!["busy", "executed", "executed"]]);
    world.ledger.assert_each_once(["a", "b", "c"]);
}

#[tokio::test]
async fn invocations_do_not_wait_for_each_other_in_a_circle() {
    for seed in 0..200_u64 {
        let mut world = patient();
        world.policy.concurrency = 1 + usize::try_from(seed % 3).unwrap();
        let mut keys = ["a", "b", "c", "d", "e", "f"];
        let invocations = (0..5_u64).map(|invocation| {
            // Each invocation has another order, in two ordered groups or in none.
            let mut state = seed * 5 + invocation + 1;
            for at in (1..keys.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                keys.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
            }
            let records = keys.iter().enumerate().map(|(at, key)| {
                let record = slow(key, Duration::from_millis(10));
                match (seed % 2, at % 2) {
                    (0, _) => record,
                    (_, 0) => record.group("left"),
                    _ => record.group("right"),
                }
            });
            records.collect::<Vec<_>>()
        });
        let outcomes = at_once(&world, invocations.collect::<Vec<_>>()).await.concat();
        assert!(
            outcomes.iter().all(|outcome| ["executed", "replayed"].contains(outcome)),
            "{seed}: {outcomes:?}"
        );
        world.ledger.assert_each_once(["a", "b", "c", "d", "e", "f"]);
        assert!(world.clock.now() < START.plus(9 * SECOND), "{seed}: a record waited for a lease");
    }
}

/// A record whose handler processes the same key again, with the same engine.
fn calls_itself(engine: lambda_idempotency_engine::batch::Engine) -> Rec {
    rec("a", move |world: World, _| async move {
        let inner = world.invoke_by(&engine, vec![ok("a")]).await;
        assert_ne!(labels(&inner), ["executed"]);
        Ok(())
    })
}

#[tokio::test]
async fn a_handler_that_claims_its_own_key_finds_it_busy() {
    let world = World::yielding();
    let engine = world.engine();
    let outcomes =
        world.clock.drive(world.invoke_by(&engine, vec![calls_itself(engine.clone())])).await;
    assert_eq!(labels(&outcomes), ["executed"]);
    assert_eq!(world.clock.now(), START);
}

#[tokio::test]
async fn a_quarantined_record_whose_key_is_busy_gives_up_its_turn() {
    let world = patient();
    for label in ["a", "b"] {
        let forever = hanging(label);
        assert!(drop_after(3, world.invoke(vec![forever])).await.is_none());
    }
    world.clock.advance(40 * SECOND);
    let begun = world.clock.now();
    let engine = world.engine();
    // Two quarantined records wait until the third record has ended, and hold no claim meanwhile.
    let batch = vec![ok("a"), slow("b", SECOND), slow("c", SECOND)];
    let first = world.invoke_by(&engine, batch);
    // So another invocation can claim one of them, and its handler still runs when the turn of
    // that record comes.
    let second = async {
        world.clock.sleep(Duration::from_millis(10)).await;
        world.invoke_by(&engine, vec![slow("a", 2 * SECOND)]).await
    };
    let (first, second) = world.clock.drive(join(first, second)).await;
    assert_eq!(labels(&first), ["replayed", "executed", "executed"]);
    assert_eq!(labels(&second), ["executed"]);
    let took = world.clock.now().since(begun);
    assert!(took < 3 * SECOND, "the other quarantined record did not wait: {took:?}");
}

#[tokio::test]
async fn records_that_wait_for_a_busy_key_do_not_count_against_concurrency() {
    let mut world = patient();
    world.policy.concurrency = 1000;
    let many = || (0..250).map(|n| &*format!("k{n}").leak()).map(|label| slow(label, SECOND));
    let first: Vec<_> = many().collect();
    let second: Vec<_> = many().chain([ok("z")]).collect();
    let engine = world.engine();
    let later = async {
        world.clock.sleep(Duration::from_millis(10)).await;
        let z = rec("z", |world: World, _| async move {
            assert!(world.clock.now() < START.plus(Duration::from_millis(100)), "it started late");
            Ok(())
        });
        let mut second = second;
        second.pop();
        second.push(z);
        world.invoke_by(&engine, second).await
    };
    let (_, outcomes) = world.clock.drive(join(world.invoke_by(&engine, first), later)).await;
    let outcomes = labels(&outcomes);
    assert_eq!(outcomes.last(), Some(&"executed"));
    assert!(outcomes[..250].iter().all(|outcome| *outcome == "replayed"), "{outcomes:?}");
}

#[test]
fn threads_share_an_engine() {
    let world = World::yielding();
    let engine = world.engine();
    let keys: Vec<&'static str> = (0..200).map(|n| &*format!("k{n}").leak()).collect();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for batch in keys.chunks(4) {
                    let yields = |label: &&'static str| {
                        rec(label, |_, _| async {
                            tokio::task::yield_now().await;
                            Ok(())
                        })
                    };
                    let done = || {
                        let records = batch.iter().map(yields).collect();
                        let outcomes = runtime.block_on(world.invoke_by(&engine, records));
                        labels(&outcomes).iter().all(|outcome| match *outcome {
                            "executed" | "replayed" => true,
                            "busy" => false,
                            other => panic!("{other}"),
                        })
                    };
                    while !done() {}
                }
            });
        }
    });
    world.ledger.assert_each_once(keys.iter().copied());
}
