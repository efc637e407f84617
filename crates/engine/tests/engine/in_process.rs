//! Several concurrent invocations of one process, as on Managed Instances: clones of one engine.

use std::time::Duration;

use futures_util::future::{join, join_all};
use lambda_idempotency_core::{
    clock::Clock,
    failure::Failure,
    policy::OnConflict,
    store::{StoreErrorKind, Write},
};
use lambda_idempotency_engine::process::Cache;
use lambda_idempotency_testkit::{crashing::drop_after, faults::Fault};

use crate::support::{Rec, START, World, labels, ok, rec, slow};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

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
        let world = World::yielding();
        let engine = world.engine().with_cache(cache);
        let all = (0..8).map(|_| world.invoke_by(&engine, vec![slow("a", SECOND)]));
        let outcomes = world.clock.drive(join_all(all)).await.concat();
        let mut expected = ["replayed"; 8];
        expected[0] = "executed";
        assert_eq!(labels(&outcomes), expected);
        world.ledger.assert_once("a");
        assert_eq!(world.requests(), 2, "a claim and a completion");
    }
}

#[tokio::test]
async fn a_follower_with_another_payload_is_a_mismatch() {
    let world = World::yielding();
    let invocations = [
        vec![slow("a", SECOND).fingerprint("5")],
        vec![ok("a").fingerprint("6")],
        vec![ok("a").fingerprint("5").payload("another note")],
    ];
    let outcomes = at_once(&world, invocations).await;
    assert_eq!(outcomes, [["executed"], ["mismatch"], ["replayed"]]);
    assert_eq!(world.requests(), 2);
}

#[tokio::test]
async fn other_records_of_a_followers_batch_continue() {
    let world = World::yielding();
    let batch = vec![ok("a"), ok("b"), slow("c", SECOND)];
    let outcomes = at_once(&world, [vec![slow("a", 10 * SECOND)], batch]).await;
    assert_eq!(outcomes, [vec!["executed"], vec!["busy", "executed", "executed"]]);
    assert_eq!(world.clock.now(), START.plus(10 * SECOND));
}

#[tokio::test]
async fn a_queue_record_follows_for_two_seconds() {
    for (takes, second) in [(1900, "replayed"), (2100, "busy")] {
        let world = World::yielding();
        let engine = world.engine();
        let first = world.invoke_by(&engine, vec![slow("a", Duration::from_millis(takes))]);
        let follower = async {
            let outcomes = world.invoke_by(&engine, vec![ok("a")]).await;
            (labels(&outcomes), world.clock.now())
        };
        let (_, (outcomes, ended)) = world.clock.drive(join(first, follower)).await;
        assert_eq!(outcomes, [second]);
        assert!(ended <= START.plus(2 * SECOND));
        assert_eq!(world.requests(), 2);
    }
}

#[tokio::test]
async fn with_skip_on_conflict_a_record_does_not_follow() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Skip;
    let outcomes = at_once(&world, [vec![slow("a", SECOND)], vec![ok("a")]]).await;
    assert_eq!(outcomes, [["executed"], ["skipped"]]);
    assert_eq!(world.requests(), 2);
}

/// Its leader has failed or was stopped, and the store does not know that yet.
#[tokio::test]
async fn with_skip_on_conflict_a_record_is_not_acknowledged_for_one_that_is_being_returned() {
    for (takes, outcomes) in
        [(SECOND, ["failed", "executed"]), (40 * SECOND, ["timed_out", "busy"])]
    {
        let mut world = World::yielding();
        world.policy.on_conflict = OnConflict::Skip;
        let settles = |write: &Write| write.record.as_ref().is_none_or(|r| r.owner.is_none());
        let throttled = Fault::refuse(StoreErrorKind::Throttled).for_writes(settles).times(2);
        world.store.inject(throttled);
        let engine = world.engine();
        let fails = rec("a", move |world: World, _| async move {
            world.clock.sleep(takes).await;
            Err(Failure::transient("no luck"))
        });
        let follower = async {
            let stop = Duration::from_millis(29_250);
            world.clock.sleep(takes.min(stop) + Duration::from_millis(200)).await;
            world.invoke_by(&engine, vec![ok("a")]).await
        };
        let leader = world.invoke_by(&engine, vec![fails]);
        let (first, second) = world.clock.drive(join(leader, follower)).await;
        assert_eq!([labels(&first), labels(&second)].concat(), outcomes);
    }
}

#[tokio::test]
async fn each_invocation_has_its_own_deadline() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let engine = world.engine();
    let leader = world.invoke_by(&engine, vec![slow("a", 10 * SECOND)]);
    let followers = [2, 5, 20].map(|timeout| {
        let world = World { timeout: Some(timeout * SECOND), ..world.clone() };
        let engine = engine.clone();
        async move {
            let outcomes = world.invoke_by(&engine, vec![ok("a")]).await;
            (labels(&outcomes), world.clock.now().since(START))
        }
    });
    let (first, followers) = world.clock.drive(join(leader, join_all(followers))).await;
    assert_eq!(labels(&first), ["executed"]);
    let millis = Duration::from_millis;
    assert_eq!(
        followers,
        [
            (vec!["busy"], millis(1_800)),
            (vec!["busy"], millis(4_500)),
            (vec!["replayed"], 10 * SECOND)
        ]
    );
    assert_eq!(world.requests(), 2);
}

#[tokio::test]
async fn invocations_do_not_wait_for_each_other_in_a_circle() {
    for seed in 0..200_u64 {
        let mut world = World::yielding();
        world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
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
        assert!(world.clock.now() < START.plus(SECOND), "{seed}: a record waited until a timer");
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
    assert_eq!(world.clock.now(), START.plus(2 * SECOND));
}

#[tokio::test]
async fn a_quarantined_record_that_follows_gives_up_its_turn() {
    let world = World::yielding();
    for label in ["a", "b"] {
        let forever = rec(label, |_, _| std::future::pending());
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
    assert_eq!(took, Duration::from_millis(2_010), "the other quarantined record did not wait");
}

#[tokio::test]
async fn followers_do_not_count_against_concurrency() {
    let mut world = World::yielding();
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
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let engine = world.engine();
    let keys: Vec<&'static str> = (0..200).map(|n| &*format!("k{n}").leak()).collect();
    // The clock does not move, so no timer would hide a lost wake-up: the test would hang.
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
                    let records = batch.iter().map(yields).collect();
                    let outcomes = runtime.block_on(world.invoke_by(&engine, records));
                    for outcome in labels(&outcomes) {
                        assert!(["executed", "replayed"].contains(&outcome), "{outcome}");
                    }
                }
            });
        }
    });
    world.ledger.assert_each_once(keys.iter().copied());
    assert_eq!(world.store.writes(), 2 * keys.len(), "a claim and a completion each");
}
